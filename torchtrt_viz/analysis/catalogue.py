"""The tables of a trace: one list for `Trace`, command line, magic, report and explorer."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from torchtrt_viz.errors import OptionError

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["TABLES", "Table", "table"]


@dataclass(frozen=True)
class Table:
    """One table of a trace.

    Attributes
    ----------
    name
        Method of `Trace` that returns it.
    function
        Where it is computed: module below `torchtrt_viz.analysis`, and function.
    title
        Heading, which says host or GPU where it is one of them.
    """

    name: str
    function: str
    title: str

    def __call__(self, trace: TraceData, **options: Any) -> pd.DataFrame:
        """Compute the table; ``options`` are those of its function."""
        module, _, name = self.function.partition(":")
        made = getattr(import_module(f"torchtrt_viz.analysis.{module}"), name)(trace, **options)
        return cast("pd.DataFrame", made)


TABLES: dict[str, Table] = {
    entry.name: entry
    for entry in (
        Table("summary", "answers.capture_summary:summary", "Summary"),
        Table("questions", "answers.six_questions:questions", "The six questions"),
        Table("explain", "answers.findings:explain", "What stands out"),
        Table("host_gpu", "device.host_gpu_time:host_gpu", "Host and GPU"),
        Table("operators", "device.operator_tables:operators", "Operators (host)"),
        Table("kernels", "device.operator_tables:kernels", "Kernels (GPU)"),
        Table("delegates", "engine.delegate_calls:delegates", "Delegates (host)"),
        Table("phases", "engine.delegate_calls:phases", "Phases of delegate calls"),
        Table("layers", "engine.layer_table:layers", "Layers of engines"),
        Table("memory", "device.memory_use:memory", "Memory over time"),
    )
}


def table(trace: TraceData, name: str, **options: Any) -> pd.DataFrame:
    """Compute a table of ``trace`` by its name.

    Raises
    ------
    OptionError
        For a name that is no table.
    """
    if name not in TABLES:
        raise OptionError("table", name, f"one of {', '.join(TABLES)}")
    return TABLES[name](trace, **options)
