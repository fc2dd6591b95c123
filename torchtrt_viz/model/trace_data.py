"""The frames of one trace: what loaders make and analyses read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from torchtrt_viz.model import schema
from torchtrt_viz.model.args import Args, ArgsSource

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TraceData"]


class TraceData:
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
    as_saved : bool
        Whether the trace was read as it was saved: nothing is to be found out or added any more.
    """

    as_saved = False

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

    @classmethod
    def of(cls, data: TraceData) -> Self:
        """Return a trace of this class with the same frames; nothing is copied."""
        if isinstance(data, cls):
            return data
        trace = cls.__new__(cls)
        trace.__dict__.update(data.__dict__)
        return trace

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
        return f"<{type(self).__name__}{of}: {', '.join(parts)}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the frames for pickle and copy; what follows from them is worked out again."""
        return {name: value for name, value in self.__dict__.items() if name != "measured"}

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
        return int((frame["start_ns"] + frame["dur_ns"]).max()) - int(frame["start_ns"].min())
