"""`Trace`: one capture of one process, as plain pandas frames."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.select import select
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.widgets.explore import Explorer
    from torchtrt_viz.widgets.timeline import Timeline

__all__ = ["Repair", "Trace"]


class Trace(TraceData):
    """DOC"""

    def _repr_html_(self) -> str:
        from torchtrt_viz.report.static_html import static_html

        return static_html(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show a static picture: no widget beside it, which would hide it where no kernel runs."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def select(self, mask: Any) -> Trace:
        """Return a trace of the spans where ``mask`` is true (a boolean array, or rows).

        Links to spans that are left out become -1; tracks, instants and counters stay.
        """
        return Trace.of(select(self, mask))

    # -- tables --------------------------------------------------------------------------------------

    def operators(self, **options: Any) -> pd.DataFrame:
        """Host operators by name: see :func:`torchtrt_viz.analysis.device.operator_tables.operators`."""
        from torchtrt_viz.analysis.device.operator_tables import operators

        return operators(self, **options)

    def kernels(self, **options: Any) -> pd.DataFrame:
        """Device work by name: see :func:`torchtrt_viz.analysis.device.operator_tables.kernels`."""
        from torchtrt_viz.analysis.device.operator_tables import kernels

        return kernels(self, **options)

    def delegates(self, **options: Any) -> pd.DataFrame:
        """Calls of delegates: see :func:`torchtrt_viz.analysis.engine.delegate_calls.delegates`."""
        from torchtrt_viz.analysis.engine.delegate_calls import delegates

        return delegates(self, **options)

    def phases(self, **options: Any) -> pd.DataFrame:
        """Phases inside delegate calls: see :func:`torchtrt_viz.analysis.engine.delegate_calls.phases`."""
        from torchtrt_viz.analysis.engine.delegate_calls import phases

        return phases(self, **options)

    def layers(self, **options: Any) -> pd.DataFrame:
        """Layers of engines: see :func:`torchtrt_viz.analysis.engine.layer_table.layers`."""
        from torchtrt_viz.analysis.engine.layer_table import layers

        return layers(self, **options)

    def memory(self, **options: Any) -> pd.DataFrame:
        """Memory over time: see :func:`torchtrt_viz.analysis.device.memory_use.memory`."""
        from torchtrt_viz.analysis.device.memory_use import memory

        return memory(self, **options)

    def host_gpu(self, **options: Any) -> pd.DataFrame:
        """Host and GPU time side by side: see :func:`torchtrt_viz.analysis.device.host_gpu_time.host_gpu`."""
        from torchtrt_viz.analysis.device.host_gpu_time import host_gpu

        return host_gpu(self, **options)

    def questions(self, **options: Any) -> pd.DataFrame:
        """Answer the six questions: see :func:`torchtrt_viz.analysis.answers.six_questions.questions`."""
        from torchtrt_viz.analysis.answers.six_questions import questions

        return questions(self, **options)

    def summary(self, **options: Any) -> pd.DataFrame:
        """Totals of the capture: see :func:`torchtrt_viz.analysis.answers.capture_summary.summary`."""
        from torchtrt_viz.analysis.answers.capture_summary import summary

        return summary(self, **options)

    def explain(self, **options: Any) -> pd.DataFrame:
        """Say what matters most, in sentences: see :func:`torchtrt_viz.analysis.answers.findings.explain`."""
        from torchtrt_viz.analysis.answers.findings import explain

        return explain(self, **options)

    # -- views ---------------------------------------------------------------------------------------

    def timeline(self, **options: Any) -> Timeline:
        """Return the interactive timeline widget: see :class:`torchtrt_viz.widgets.timeline.Timeline`."""
        from torchtrt_viz.widgets.timeline import Timeline

        return Timeline(self, **options)

    def explore(self, **options: Any) -> Explorer:
        """Return timeline and tables, linked: see :class:`torchtrt_viz.widgets.explore.Explorer`."""
        from torchtrt_viz.widgets.explore import Explorer

        return Explorer(self, **options)

    def to_html(self, path: str | PathLike[str], **options: Any) -> None:
        """Write a report that opens offline from disk: see :func:`torchtrt_viz.report.html.write_html`."""
        from torchtrt_viz.report.html import write_html

        write_html(self, path, **options)

    def to_perfetto(self, path: str | PathLike[str], **options: Any) -> None:
        """Write a Perfetto trace: see :func:`torchtrt_viz.formats.perfetto.writer.write_perfetto`."""
        from torchtrt_viz.formats.perfetto.writer import write_perfetto

        write_perfetto(self, path, **options)
