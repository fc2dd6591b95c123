"""Ranges that the program or a library named, and the device work that was launched inside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.device import NVTX
from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.device_work import DeviceWork
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.links import launches
from torchtrt_viz.analysis.core.masks import among, choice, ints, measured
from torchtrt_viz.analysis.core.tables import integers, order, text
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.schema import KINDS
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["nvtx"]

Ints = NDArray[np.int64]

_NAMED = ("annotation", "step", "communication")
#: Formats in which operators are ranges that torch named.
_OPERATORS_ARE_RANGES = ("nsys", "rocprof")
_AT_ONCE = 1 << 21
_LIMIT = 1 << 62


@returns(NVTX)
def nvtx(
    trace: TraceData,
    *,
    project: str = "host",
    domain: str | None = None,
    kinds: Iterable[str] | None = None,
    sort: str | None = None,
    top: int | None = None,
) -> pd.DataFrame:
    """Ranges that the program or a library named (NVTX, roctx, ``record_function``), on host and device.

    Parameters
    ----------
    project
        ``host``: every range, by its start; ``gpu``: those that launched device work of the trace, by the
        start of the first piece.
    domain
        Only ranges of this NVTX domain; "" is the default one.
    kinds
        Kinds of host spans that count as ranges; None: annotations, steps and communication, and of
        recordings of Nsight Systems and rocprofv3 the operators too, which are such ranges there.
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`; None for ``sort`` keeps the order of ``project``.

    Returns
    -------
    pandas.DataFrame
        One row per range.

        Work counts for a range when the call that launched it began inside the range on the same thread (of
        ranges that may end on another thread: in the same process). Ranges lie inside one another, so that
        the rows of several do not add up. The launch of a graph is one call.

    Examples
    --------
    >>> tv.analysis.nvtx(trace, project="gpu", top=1)[["name", "launches"]].to_dict("records")
    [{'name': 'ProfilerStep#0', 'launches': 60}]
    """
    choice("project", project, ("host", "gpu"))
    if kinds is None:
        kinds = (*_NAMED, "operator") if trace.meta["format"] in _OPERATORS_ARE_RANGES else _NAMED
    kinds = tuple(kinds)
    for kind in kinds:
        if kind not in KINDS:
            raise OptionError("kinds", kind, "one of " + ", ".join(KINDS))
    spans = trace.spans
    mask = among(spans["kind"], kinds) & among(spans["domain"], ("host",)) & measured(trace)
    rows = np.flatnonzero(mask)
    codes, names = trace.args.values(rows, "domain")
    domains = np.array([*names, None], dtype=object)[codes]
    if domain is not None:
        keep = np.array([(found or "") == domain for found in domains], bool)
        rows, domains = rows[keep], domains[keep]
    nesting = host_nesting(trace)
    parent = nearest(nesting.parent, mask)[rows]
    start, dur = ints(spans["start_ns"])[rows], spans["dur_ns"].to_numpy()[rows]
    labels = trace.tracks["label"].to_numpy(dtype=object)
    seen = _projected(trace, rows, start, start + dur)
    some = seen.pieces > 0
    names_of_spans: Any = spans["name"].array
    frame = pd.DataFrame(
        {
            "row": rows,
            "name": names_of_spans[rows],
            "domain": text(domains),
            "track": text(labels[spans["track"].to_numpy()[rows]]),
            "parent": integers(parent, parent >= 0),
            "start_ns": start,
            "dur_ns": dur,
            "launches": seen.launches,
            "pieces": seen.pieces,
            "device": integers(seen.device, some & (seen.device >= 0)),
            "device_start_ns": integers(seen.first, some),
            "device_span_ns": integers(seen.last - seen.first, some),
            "device_busy_ns": integers(seen.busy, some),
            "device_sum_ns": integers(seen.total, some),
        }
    )
    if project == "gpu":
        frame = frame[some].sort_values(["device_start_ns", "row"], kind="stable")
    else:
        frame = frame.sort_values(["start_ns", "row"], kind="stable")
    return order(frame, sort, top)


@dataclass(frozen=True)
class _Projected:
    """What ranges launched, one entry a range."""

    launches: Ints
    pieces: Ints
    device: Ints
    first: Ints
    last: Ints
    busy: Ints
    total: Ints

    @classmethod
    def nothing(cls, count: int) -> _Projected:
        return cls(*(np.zeros(count, np.int64) for _ in range(7)))


def _projected(trace: TraceData, rows: Ints, start: Ints, end: Ints) -> _Projected:
    """Find the device work launched inside each range."""
    out = _Projected.nothing(len(rows))
    found = launches(trace)
    known = np.flatnonzero(found.host >= 0)
    if not len(known) or not len(rows):
        return out
    groups, crossing = _groups(trace)
    track = trace.spans["track"].to_numpy()
    thread = host_nesting(trace).thread
    called_by = thread[found.host[known]]
    process = groups[track[found.host[known]]]
    begins = ints(trace.spans["start_ns"])[found.host[known]]
    on_thread = ~crossing[track[rows]]
    for key, mine, owner in (
        *_by_value(thread[rows], on_thread, called_by),
        *_by_value(groups[track[rows]], ~on_thread, process),
    ):
        pieces = known[owner == key]
        ordered = np.lexsort((found.host[pieces], begins[owner == key]))
        _fill(out, mine, start, end, found.work, pieces[ordered], found.host, begins[owner == key][ordered])
    return out


def _by_value(keys: Ints, chosen: NDArray[np.bool_], owner: Ints) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield each key, the ranges that have it, and the owner of each launch."""
    for key in np.unique(keys[chosen]).tolist():
        if key >= 0:
            yield key, np.flatnonzero(chosen & (keys == key)), owner


def _groups(trace: TraceData) -> tuple[Ints, NDArray[np.bool_]]:
    """Return a number for the process of each track, and which tracks hold ranges that may end elsewhere."""
    tracks = trace.tracks
    process = [None if pd.isna(value) else str(value) for value in tracks["process"]]
    numbers: dict[str | None, int] = {}
    of_track = np.array([numbers.setdefault(name, len(numbers)) for name in process], np.int64)
    return of_track, among(tracks["type"], ("async",))


def _fill(
    out: _Projected,
    mine: Ints,
    start: Ints,
    end: Ints,
    work: DeviceWork,
    pieces: Ints,
    host: Ints,
    begins: Ints,
) -> None:
    """Fill in the ranges of one thread; ``pieces`` of device work are in the order of their launches."""
    low = np.searchsorted(begins, start[mine], side="left")
    high = np.searchsorted(begins, end[mine], side="left")
    new = np.diff(host[pieces], prepend=-1) != 0  # a launch of several pieces counts once
    calls = np.concatenate([[0], np.cumsum(new)])
    totals = np.concatenate([[0], np.cumsum(work.end[pieces] - work.start[pieces])])
    out.launches[mine] = calls[high] - calls[low]
    out.pieces[mine] = high - low
    out.total[mine] = totals[high] - totals[low]
    begin, stop = work.start[pieces], work.end[pieces]
    some = np.flatnonzero(high > low)
    for part in _portions(some, high - low, begin, stop):
        sizes = (high - low)[part]
        at = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        segment = np.repeat(np.arange(len(part)), sizes)
        piece = np.arange(len(segment)) - np.repeat(at, sizes) + np.repeat(low[part], sizes)
        by_start = np.lexsort((begin[piece], segment))
        piece = piece[by_start]
        first, last = begin[piece], stop[piece]
        target = mine[part]
        out.first[target] = first[at]
        out.device[target] = work.device[pieces[piece[at]]]
        out.last[target] = np.maximum.reduceat(last, at)
        out.busy[target] = np.add.reduceat(_uncovered(first, last, segment, at), at)


def _portions(some: Ints, sizes: Ints, begin: Ints, stop: Ints) -> Iterator[Ints]:
    """Yield ranges in portions of bounded size, the pieces of nested ranges counted in each of them."""
    if not len(some):
        return
    longest = int(stop.max()) - int(begin.min()) + 1
    most = max(1, min(_AT_ONCE, _LIMIT // longest))
    at = 0
    reach = np.cumsum(sizes[some])
    while at < len(some):
        before = int(reach[at - 1]) if at else 0
        until = int(np.searchsorted(reach, before + _AT_ONCE, side="right"))
        until = min(max(until, at + 1), at + most)
        yield some[at:until]
        at = until


def _uncovered(first: Ints, last: Ints, segment: Ints, at: Ints) -> Ints:
    """Return how much of each piece no earlier one of its segment covers; they are ordered by start."""
    base = int(first.min())
    apart = int(last.max()) - base + 1
    reach = np.maximum.accumulate(last - base + segment * apart) - segment * apart + base
    before = np.concatenate([[base], reach[:-1]])
    before[at] = first[at]
    out: Ints = np.maximum(last - np.maximum(first, before), 0)
    return out
