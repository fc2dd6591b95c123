"""One thing that a capture shows: in words, in numbers, and as the spans and the table that prove it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.masks import ends, ints
from torchtrt_viz.model.places import trace_start
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Evidence", "Finding", "device_words", "pct"]

Ints = NDArray[np.int64]


def pct(share: float) -> str:
    """Write a share of 1 in percent."""
    return f"{100.0 * share:.3g} %"


def device_words(number: int | None) -> str:
    """Name a device at the beginning of a sentence."""
    return "The GPU" if number is None else f"GPU {number}"


@dataclass(frozen=True)
class Evidence:
    """What proves a finding.

    Attributes
    ----------
    rows
        Rows of ``trace.spans``.
    worst
        The one of them to look at first; -1 none.
    window
        Start and end of what to look at, on the trace's base, in ns; None: ``worst``, or all ``rows``.
    """

    rows: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    worst: int = -1
    window: tuple[int, int] | None = None

    @staticmethod
    def of(trace: TraceData, rows: Ints, window: tuple[int, int] | None = None) -> Evidence:
        """Return the evidence of some spans: the longest one is looked at first."""
        if not len(rows):
            return Evidence(rows.astype(np.int64), -1, window)
        worst = int(rows[int(np.argmax(trace.spans["dur_ns"].to_numpy()[rows]))])
        return Evidence(rows.astype(np.int64), worst, window)

    def view(self, trace: TraceData) -> tuple[int, int] | None:
        """Return what a timeline should show, with some time around it; None without a place on the axis."""
        if self.window is not None:
            begin, stop = self.window
        elif self.worst >= 0 and str(trace.spans["timing"].iloc[self.worst]) == "measured":
            begin, stop = int(ints(trace.spans["start_ns"])[self.worst]), int(ends(trace)[self.worst])
        else:
            return None
        around = max(1, (stop - begin) // 2)
        first = trace_start(trace.spans)
        last = (first or 0) + (trace.duration_ns or 0)
        return max(begin - around, min(begin, first or 0)), min(stop + around, max(stop, last))


@dataclass(frozen=True)
class Finding:
    """One thing that a capture shows.

    Attributes
    ----------
    text
        A sentence with its numbers.
    impact_ns, share, of
        The time at stake, and its share (0 to 1) of what ``of`` names.
    domain
        host or gpu.
    source
        The call that gives the table behind it.
    remedy
        What usually helps.
    placed
        Whether the time is part of the capture's, or an average without a place.
    kind
        What sort of finding it is, a word or two.
    head
        The finding in a few words.
    could_save_ns
        By how much the capture could be shorter; None where it cannot be said.
    basis
        What that rests on, or why it cannot be said.
    evidence
        The spans that prove it.
    frame
        An expression in which ``trace`` is the trace, and which makes the table that proves it.
    """

    text: str
    impact_ns: float
    share: float
    of: str
    domain: str
    source: str
    remedy: str
    placed: bool = True
    kind: str = ""
    head: str = ""
    could_save_ns: float | None = None
    basis: str = ""
    evidence: Evidence = field(default_factory=Evidence)
    frame: str = ""

    def weight(self, whole: int | None) -> float:
        """Return the share of the capture's length, by which findings are ranked."""
        return self.impact_ns / whole if self.placed and whole else self.share

    def with_evidence(self, evidence: Evidence) -> Finding:
        """Return the same finding with other evidence."""
        return replace(self, evidence=evidence)
