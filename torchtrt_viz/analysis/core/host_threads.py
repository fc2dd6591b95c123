"""Host time by thread of the operating system: who encloses whom on it, and what each call took itself.

One thread may have several tracks: a merged capture holds what each recorder saw of it. Its time is divided
once, whoever saw it: at each moment it belongs to one span, so that the self times of a thread add up to the
time in which anything was recorded on it, and never to more.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.cache import kept
from torchtrt_viz.analysis.core.flatten import sweep
from torchtrt_viz.analysis.core.intervals import length, merge
from torchtrt_viz.analysis.core.masks import among, ints, measured
from torchtrt_viz.model.nesting import nest_observed
from torchtrt_viz.model.threads import CALLS, known_text, os_threads
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["HostNesting", "exclusive_times", "host_nesting", "os_threads", "thread_count"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_INPUTS = {
    "spans": ("domain", "timing", "track", "start_ns", "dur_ns", "self_ns", "parent"),
    "tracks": ("type", "domain", "process", "thread", "rank"),
}


@dataclass(frozen=True)
class HostNesting:
    """How host spans nest on the threads that ran them.

    Attributes
    ----------
    thread
        For every span the number of its thread (`os_threads`); -1 where it is no measured host span.
    parent
        Row of the innermost enclosing span, on whatever track of the thread; -1 none. Other rows keep the
        parent that the trace states.
    self_ns
        The part of a span's time in which nothing inside it ran on its thread; 0 for other rows.
    crossing
        Numbers of the threads on which spans overlap without lying inside each other.
    """

    thread: Ints
    parent: Ints
    self_ns: Ints
    crossing: frozenset[int]


def thread_count(trace: TraceData) -> int:
    """Return how many threads have measured host spans: those that are named, or recorded as threads."""
    nesting = host_nesting(trace)
    used = np.unique(nesting.thread[nesting.thread >= 0])
    kind = among(trace.tracks["type"], ("thread", "method"))
    named = np.array([known_text(value) is not None for value in trace.tracks["thread"]], dtype=bool)
    calls = among(trace.tracks["type"], CALLS)
    return int((kind | (named & calls))[used].sum())


def host_nesting(trace: TraceData) -> HostNesting:
    """Nest the measured host spans of a trace thread by thread."""
    return kept(trace, "host nesting", _INPUTS, lambda: _nesting(trace))


def _nesting(trace: TraceData) -> HostNesting:
    spans = trace.spans
    rows = np.flatnonzero(among(spans["domain"], ("host",)) & measured(trace))
    track = spans["track"].to_numpy()
    start, dur = ints(spans["start_ns"]), spans["dur_ns"].to_numpy()
    thread = np.full(len(spans), -1, np.int64)
    thread[rows] = os_threads(trace)[track[rows]]
    parent = spans["parent"].to_numpy().astype(np.int64)
    own = np.zeros(len(spans), np.int64)
    own[rows] = spans["self_ns"].to_numpy()[rows]

    used = np.unique(track[rows])
    numbers, tracks_of = np.unique(os_threads(trace)[used], return_counts=True)
    shared = np.zeros(len(spans), bool)
    shared[rows] = np.isin(thread[rows], numbers[tracks_of > 1])
    if shared.any():
        _nest_across(thread, track, start, dur, shared, parent, own)
    crossing = set()
    for number, mine in _by_thread(thread, rows):
        above = parent[mine]
        inside = above >= 0
        inner, outer = mine[inside], above[inside]
        nested = (
            (thread[outer] == number)
            & (start[inner] >= start[outer])
            & (start[inner] + dur[inner] <= start[outer] + dur[outer])
        ).all()
        # less than the whole is right: what an engine reports of itself may lack a place
        if not nested or int(own[mine].sum()) > length(merge(start[mine], start[mine] + dur[mine])):
            crossing.add(number)
            own[mine] = _swept(start, dur, mine)
    for part in (thread, parent, own):
        part.flags.writeable = False
    return HostNesting(thread, parent, own, frozenset(crossing))


def _nest_across(
    thread: Ints, track: NDArray[np.int32], start: Ints, dur: Ints, shared: Mask, parent: Ints, own: Ints
) -> None:
    """Give spans of threads with several tracks the parent and self time that all tracks together show.

    A parent on the same track stays the one that the trace states.
    """
    found, _, self_ns = nest_observed(thread, start, dur, shared)
    rows = np.flatnonzero(shared)
    own[rows] = self_ns[rows]
    place = np.zeros(len(thread), np.int64)
    place[rows[np.lexsort((rows, -dur[rows], start[rows]))]] = np.arange(len(rows))
    stated, timed = parent[rows], found[rows]
    outer = np.maximum(stated, 0)
    keep = (
        (stated >= 0)
        & (track[np.maximum(timed, 0)] == track[rows])
        & (start[outer] + dur[outer] >= start[rows] + dur[rows])
        & (place[outer] < place[rows])
    )
    parent[rows] = np.where(keep, stated, timed)


def _by_thread(thread: Ints, rows: Ints) -> list[tuple[int, Ints]]:
    """Return the rows of each thread."""
    ordered = rows[np.argsort(thread[rows], kind="stable")]
    numbers = thread[ordered]
    bounds = np.flatnonzero(np.diff(numbers, prepend=-2, append=-2))
    return [(int(numbers[a]), ordered[a:b]) for a, b in pairwise(bounds.tolist())]


def _swept(start: Ints, dur: Ints, rows: Ints) -> Ints:
    """Return how long each of a thread's spans was the one that began last of those running."""
    times, inner = sweep(start[rows], start[rows] + dur[rows])
    out = np.zeros(len(rows), np.int64)
    running = inner[:-1] >= 0
    np.add.at(out, inner[:-1][running], np.diff(times)[running])
    return out


def exclusive_times(trace: TraceData, mask: Mask) -> tuple[Ints, Ints]:
    """Return parent and self time among some measured host spans, as if no others had been recorded.

    Parameters
    ----------
    mask
        Which spans; those that are no measured host spans are left out.

    Returns
    -------
    tuple
        For every span of the trace the row of the nearest enclosing span of ``mask``, -1 none; and its self
        time, 0 outside ``mask``.
    """
    nesting = host_nesting(trace)
    mask = mask & (nesting.thread >= 0)
    parent = nearest(nesting.parent, mask)
    start, dur = ints(trace.spans["start_ns"]), trace.spans["dur_ns"].to_numpy()
    rows = np.flatnonzero(mask)
    children = np.zeros(len(dur), np.int64)
    inner = rows[parent[rows] >= 0]
    np.add.at(children, parent[inner], dur[inner])
    own = np.zeros(len(dur), np.int64)
    own[rows] = dur[rows] - children[rows]
    if nesting.crossing:
        for number, mine in _by_thread(nesting.thread, rows):
            if number in nesting.crossing:
                own[mine] = _swept(start, dur, mine)
    return parent, own
