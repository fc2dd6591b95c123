"""`Trace`: one capture of one process, as plain pandas frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from torchtrt_viz import schema
from torchtrt_viz.args import Args, ArgsSource

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.widgets.explore import Explorer
    from torchtrt_viz.widgets.timeline import Timeline

__all__ = ["Repair", "Trace"]


@dataclass(frozen=True)
class Repair:
    """Something that a loader mended, left out or could not know.

    Attributes
    ----------
    code
        Short stable name of the kind of repair ("truncated", "invalid_duration", "wrong_etrecord", ...).
    message
        One sentence for a reader.
    path
        File, or ``archive!member``.
    offset
        Byte offset in the uncompressed content, None where it has no single place.
    count
        How often it was done.
    """

    code: str
    message: str
    path: str | None = None
    offset: int | None = None
    count: int = 1

    def __str__(self) -> str:
        place = "" if self.path is None else f"{self.path}: "
        at = "" if self.offset is None else f" (byte {self.offset})"
        times = "" if self.count == 1 else f" [{self.count} times]"
        return f"{place}{self.message}{at}{times}"


class Trace:
    """One capture of one process (rank).

    Attributes
    ----------
    spans, tracks, instants, counters, flows : pandas.DataFrame
        The events; every column is documented in :mod:`torchtrt_viz.schema` (``schema.SPANS.describe()``).
    args, instant_args : Args
        Per-event details of spans and instants, built on demand.
    meta : dict
        ``format``, ``sources`` (files), ``base_ns`` (Unix time in ns of ``start_ns == 0``, or None when it
        is unknown), ``clock`` (what the base is and how clocks were aligned, in words), ``rank``,
        ``versions``, ``synthetic`` (True for made-up data), ``warnings`` (list of :class:`Repair`), and
        what else the format records.
    """

    def __init__(
        self,
        *,
        spans: pd.DataFrame,
        tracks: pd.DataFrame,
        instants: pd.DataFrame | None = None,
        counters: pd.DataFrame | None = None,
        flows: pd.DataFrame | None = None,
        meta: dict[str, Any] | None = None,
        args: ArgsSource | None = None,
        instant_args: ArgsSource | None = None,
    ) -> None:
        self.spans = spans
        self.tracks = tracks
        self.instants = schema.INSTANTS.frame({}) if instants is None else instants
        self.counters = schema.COUNTERS.frame({}) if counters is None else counters
        self.flows = schema.FLOWS.frame({}) if flows is None else flows
        self.args = Args(args, len(spans))
        self.instant_args = Args(instant_args, len(self.instants))
        self.meta: dict[str, Any] = {
            "format": None,
            "sources": [],
            "base_ns": None,
            "clock": "unknown",
            "rank": None,
            "versions": {},
            "synthetic": False,
            "warnings": [],
        }
        self.meta.update(meta or {})

    def __repr__(self) -> str:
        sources = self.meta["sources"]
        of = f" of {sources[0]}" if len(sources) == 1 else f" of {len(sources)} files" if sources else ""
        parts = [f"{len(self.spans)} spans on {len(self.tracks)} tracks"]
        parts += [
            f"{len(frame)} {name}"
            for name, frame in (
                ("instants", self.instants),
                ("counters", self.counters),
                ("flows", self.flows),
            )
            if len(frame)
        ]
        if self.meta["warnings"]:
            count = len(self.meta["warnings"])
            parts.append(f"{count} warning{'s' if count > 1 else ''}")
        return f"<Trace{of}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        from torchtrt_viz.report.static_html import static_html

        return static_html(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show a static picture: no widget beside it, which would hide it where no kernel runs."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    # -- selections ----------------------------------------------------------------------------------

    @cached_property
    def measured(self) -> pd.DataFrame:
        """The spans that have a place on the time axis, rows as in ``spans`` (``start_ns`` int64)."""
        spans = self.spans
        keep = spans["timing"].cat.codes == schema.TIMINGS.index("measured")
        frame = spans if bool(keep.all()) else spans[keep]
        return frame if frame["start_ns"].dtype == "int64" else frame.astype({"start_ns": "int64"})

    @property
    def duration_ns(self) -> int | None:
        """Time from the first start to the last end of the measured spans, in ns; None without any."""
        frame = self.measured
        if frame.empty:
            return None
        return int((frame["start_ns"] + frame["dur_ns"]).max() - frame["start_ns"].min())

    def select(self, mask: Any) -> Trace:
        """Return a trace of the spans where ``mask`` is true (a boolean array, or rows).

        Links to spans that are left out become -1; tracks, instants and counters stay.
        """
        from torchtrt_viz.select import select

        return select(self, mask)

    # -- tables --------------------------------------------------------------------------------------

    def operators(self, **options: Any) -> pd.DataFrame:
        """Host operators by name: see :func:`torchtrt_viz.analysis.operators.operators`."""
        from torchtrt_viz.analysis.operators import operators

        return operators(self, **options)

    def kernels(self, **options: Any) -> pd.DataFrame:
        """Device work by name: see :func:`torchtrt_viz.analysis.operators.kernels`."""
        from torchtrt_viz.analysis.operators import kernels

        return kernels(self, **options)

    def delegates(self, **options: Any) -> pd.DataFrame:
        """Calls of delegates: see :func:`torchtrt_viz.analysis.delegates.delegates`."""
        from torchtrt_viz.analysis.delegates import delegates

        return delegates(self, **options)

    def phases(self, **options: Any) -> pd.DataFrame:
        """Phases inside delegate calls: see :func:`torchtrt_viz.analysis.delegates.phases`."""
        from torchtrt_viz.analysis.delegates import phases

        return phases(self, **options)

    def layers(self, **options: Any) -> pd.DataFrame:
        """Layers of engines: see :func:`torchtrt_viz.analysis.layers.layers`."""
        from torchtrt_viz.analysis.layers import layers

        return layers(self, **options)

    def memory(self, **options: Any) -> pd.DataFrame:
        """Memory over time: see :func:`torchtrt_viz.analysis.memory.memory`."""
        from torchtrt_viz.analysis.memory import memory

        return memory(self, **options)

    def host_gpu(self, **options: Any) -> pd.DataFrame:
        """Host and GPU time side by side: see :func:`torchtrt_viz.analysis.host_gpu.host_gpu`."""
        from torchtrt_viz.analysis.host_gpu import host_gpu

        return host_gpu(self, **options)

    def questions(self, **options: Any) -> pd.DataFrame:
        """Answer the six questions: see :func:`torchtrt_viz.analysis.questions.questions`."""
        from torchtrt_viz.analysis.questions import questions

        return questions(self, **options)

    def summary(self, **options: Any) -> pd.DataFrame:
        """Totals of the capture: see :func:`torchtrt_viz.analysis.summary.summary`."""
        from torchtrt_viz.analysis.summary import summary

        return summary(self, **options)

    def explain(self, **options: Any) -> pd.DataFrame:
        """Say what matters most, in sentences: see :func:`torchtrt_viz.analysis.findings.explain`."""
        from torchtrt_viz.analysis.findings import explain

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
        """Write a Perfetto trace: see :func:`torchtrt_viz.report.perfetto.write_perfetto`."""
        from torchtrt_viz.report.perfetto import write_perfetto

        write_perfetto(self, path, **options)
