"""A chart as a file of its own, drawn without a browser."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from torchtrt_viz.charts.figure import svg_file
from torchtrt_viz.charts.registry import chart
from torchtrt_viz.errors import OptionError
from torchtrt_viz.formats.io.whole_file import write_atomically

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["write_chart"]

_OF_ENGINES = ("layers", "layer_types", "plan")


def write_chart(
    trace: TraceData,
    name: str,
    path: str | PathLike[str],
    *,
    engine: str | None = None,
    theme: str = "auto",
    width: int = 1000,
) -> Path:
    """Write a chart as SVG; the parameters are those of `torchtrt_viz.Trace.save_chart`."""
    if engine is not None and name not in _OF_ENGINES:
        raise OptionError("engine", engine, f"only for {', '.join(_OF_ENGINES)}")
    made = chart(trace, name) if engine is None else chart(trace, name, engine=engine)
    return write_atomically(path, svg_file(made, width=width, theme=theme))
