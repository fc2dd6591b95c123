"""What was recorded and cannot be true: times of another clock, and work that its own queue contradicts.

Two checks, each a few passes over whole columns:

- *Islands.* The events of one recording lie together. Where a week or more without any event lies between
  two groups of them, only the larger group has the times of this recording; the others are zero, of another
  clock, or damaged.
- *Queues.* A stream runs its work in order. A span that lasts beyond the starts of many later launches of its
  own stream did not last that long: its end was never recorded, or recorded wrong. Overlaps with the next few
  spans are legal (programmatic dependent launch), so are those of one launch (branches of a graph), and a
  queue whose spans overlap as a rule is not in order at all.

Marked spans keep their recorded times and get timing ``implausible``: they are shown, and stand in no sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.model import schema
from torchtrt_viz.model.nesting import nest_observed
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["mark_implausible"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_APART_NS = 7 * 86_400 * 10**9
_MANY = 8
"""Later launches of a queue in order whose starts no span outlasts."""
_FEW, _SOME = 0.05, 0.25
"""Share of a queue's spans that may be marked, and share where each outlasts the whole queue twice."""
_BEYOND = 10
"""A device's span is marked that lasts this many times everything else, and ends after it."""

_MEASURED, _IMPLAUSIBLE = schema.TIMINGS.index("measured"), schema.TIMINGS.index("implausible")
_INVALID = schema.STATES.index("invalid")
_IS_WORK = np.isin(schema.KINDS, ("kernel", "memcpy", "memset", "communication"))
_HOST, _GPU = schema.DOMAINS.index("host"), schema.DOMAINS.index("gpu")


def mark_implausible(trace: TraceData) -> list[Repair]:
    """Mark in place the spans of ``trace`` that cannot be true, and instants of another clock as invalid.

    Returns
    -------
    list of Repair
        ``implausible_time`` for each queue, and for spans apart from the others: number and recorded time.
    """
    spans = trace.spans
    timing = spans["timing"].cat.codes.to_numpy()
    path = trace.meta["sources"][0] if trace.meta["sources"] else None
    repairs: list[Repair] = []
    if not len(spans):
        return repairs
    measured = timing == _MEASURED
    start = _times(spans["start_ns"], 0)
    dur = spans["dur_ns"].to_numpy()
    starts = start if measured.all() else start[measured]
    if not len(starts):
        return repairs
    first, last = int(starts.min()), int(starts.max())
    low, high = _recording(starts, first, last)
    bad = np.zeros(len(start), bool)
    if (low, high) != (first, last):
        bad = measured & ((start < low) | (start > high))
        repairs.append(_apart(start[bad], dur[bad], (low, high), path))
    others = _mark_instants(trace, low, high) + _leave_out_counters(trace, low, high)
    if others:
        repairs.append(
            Repair(
                "implausible_time",
                f"{others} instants and values of counters have the times of another clock: the instants are "
                "marked invalid, the values are left out",
                path,
                count=others,
            )
        )
    domain = spans["domain"].cat.codes.to_numpy()
    work = np.flatnonzero(domain == _GPU)
    kind = spans["kind"].cat.codes.to_numpy()[work]
    work = work[_IS_WORK[kind] & measured[work] & ~bad[work]]
    if len(work):
        track = spans["track"].to_numpy()[work]
        launch = filled(spans["correlation"].iloc[work])
        found = _outlasting(track, start[work], dur[work], launch)
        if int(dur[work].max()) > _BEYOND * (high - low):
            found |= _beyond_everything(work, start, dur, (domain == _HOST) & measured & ~bad, (low, high))
        for queue in np.unique(track[found]).tolist():
            here = work[found & (track == queue)]
            repairs.append(_in_queue(trace, queue, start[here], dur[here], path))
        bad[work[found]] = True
    if bad.any():
        _mark(trace, bad, timing)
    return repairs


def _recording(start: Ints, first: int, last: int) -> tuple[int, int]:
    """Return first and last start of the largest group of spans that lie together."""
    if last - first < _APART_NS:
        return first, last
    ordered = np.sort(start)
    gaps = np.flatnonzero(np.diff(ordered) >= _APART_NS)
    edges = np.concatenate([[0], gaps + 1, [len(ordered)]])
    sizes = np.diff(edges)
    largest = int(np.flatnonzero(sizes == sizes.max())[-1])  # of two, the later: zero is no time
    return int(ordered[edges[largest]]), int(ordered[edges[largest + 1] - 1])


def _outlasting(track: Ints, start: Ints, dur: Ints, launch: Ints) -> Mask:
    """Say which spans of queues in order outlast the starts of many later launches of their queue."""
    out = np.zeros(len(track), bool)
    order = np.lexsort((start, track))
    track, start, launch = track[order], start[order], launch[order]
    end = start + dur[order]
    if len(track) <= _MANY:
        return out
    ahead = np.zeros(len(track), bool)
    ahead[:-_MANY] = (track[_MANY:] == track[:-_MANY]) & (end[:-_MANY] > start[_MANY:])
    for queue in np.unique(track[ahead]).tolist():
        low, high = np.searchsorted(track, [queue, queue + 1])
        here = slice(low, high)
        candidates = np.flatnonzero(ahead[here])
        until = np.searchsorted(start[here], end[here][candidates], side="left")
        length = int(start[high - 1] - start[low])
        # work whose launch is not recorded may be of several branches: only what dwarfs the queue is certain
        whole = (end[here] - start[here])[candidates] > 2 * length
        many = _launches(launch[here], candidates, until) >= _MANY
        marked = candidates[many & (whole | (launch[here][candidates] >= 0))]
        share = _SOME if whole.all() else _FEW
        few = max(2, int(share * (high - low)))
        if len(marked) and len(candidates) <= few + _MANY and len(marked) <= few:
            out[order[low + marked]] = True
    return out


def _launches(launch: Ints, rows: Ints, until: Ints) -> Ints:
    """Count the launches other than its own whose spans begin after each of ``rows`` and before ``until``.

    Spans of one launch are a graph's: its branches may run at the same time. A span without an id counts as
    a launch of its own.
    """
    counts = np.zeros(len(rows), np.int64)
    for number, (row, end) in enumerate(zip(rows.tolist(), until.tolist(), strict=True)):
        others = launch[row + 1 : min(end, row + 1 + 64 * _MANY)]
        if launch[row] >= 0:
            others = others[others != launch[row]]
        unknown = int((others < 0).sum())
        counts[number] = unknown + len(np.unique(others[others >= 0]))
    return counts


def _beyond_everything(work: Ints, start: Ints, dur: Ints, host: Mask, kept: tuple[int, int]) -> Mask:
    """Say which device spans last many times the whole recording, beyond the last end of the host's spans."""
    low, high = kept
    out = np.zeros(len(work), bool)
    lasted = dur[work]
    if not host.any():
        return out
    last = int((start + dur)[host].max())
    other = max(last, high) - low
    found = ((start + dur)[work] > last) & (lasted > _BEYOND * max(other, 1))
    if other > 0 and found.sum() <= max(2, int(_FEW * len(work))):
        out = found
    return out


def _mark(trace: TraceData, bad: Mask, timing: NDArray[np.integer[Any]]) -> None:
    """Set the timing, and nest the others on the tracks concerned as if the marked ones were not there."""
    spans = trace.spans
    codes = timing.copy()
    codes[bad] = _IMPLAUSIBLE
    spans["timing"] = pd.Categorical.from_codes(codes, categories=spans["timing"].cat.categories)
    track = spans["track"].to_numpy()
    concerned = np.zeros(len(trace.tracks), bool)
    concerned[track[bad]] = True
    again = np.flatnonzero(concerned[track])
    start = _times(spans["start_ns"], 0)
    parent, depth, own = nest_observed(
        track[again],
        start[again],
        spans["dur_ns"].to_numpy()[again],
        codes[again] == _MEASURED,
    )
    columns = {
        "parent": np.where(parent >= 0, again[parent], -1),
        "depth": depth,
        "self_ns": own,
    }
    for name, values in columns.items():
        whole = spans[name].to_numpy().copy()
        whole[again] = values
        spans[name] = whole
    trace.__dict__.pop("measured", None)


def _mark_instants(trace: TraceData, low: int, high: int) -> int:
    """Mark as invalid the instants of another clock; returns their number."""
    instants = trace.instants
    away = _away(instants["ts_ns"], low, high)
    codes = instants["state"].cat.codes.to_numpy()
    away &= codes != _INVALID
    if away.any():
        changed = np.where(away, np.int8(_INVALID), codes)
        instants["state"] = pd.Categorical.from_codes(changed, categories=instants["state"].cat.categories)
    return int(away.sum())


def _leave_out_counters(trace: TraceData, low: int, high: int) -> int:
    """Leave out values of counters of another clock, which have no column to say so; returns their number."""
    away = _away(trace.counters["ts_ns"], low, high)
    count = int(away.sum())
    if count:
        trace.counters = trace.counters[~away].reset_index(drop=True)
        accounting = trace.meta.get("accounting")
        if accounting is not None:
            accounting["rows"]["counters"] = len(trace.counters)
            accounting["counter_values_left_out"] = count  # one event may have several values
    return count


def _times(column: pd.Series, missing: int) -> Ints:
    """Return times as int64, without a copy where none can be missing."""
    return column.to_numpy() if column.dtype == np.int64 else column.to_numpy(np.int64, na_value=missing)


def _away(times: pd.Series, low: int, high: int) -> Mask:
    at = _times(times, low)
    return np.asarray((at < low - _APART_NS) | (at > high + _APART_NS))


def _apart(start: Ints, dur: Ints, kept: tuple[int, int], path: str | None) -> Repair:
    away = np.minimum(np.abs(start - kept[0]), np.abs(start - kept[1]))
    days = int(away.min()) // (86_400 * 10**9)
    return Repair(
        "implausible_time",
        f"{len(start)} spans begin {days} days or more apart from the others: they have the times of "
        f"another clock, and are left out of all sums ({_seconds(dur)} recorded)",
        path,
        count=len(start),
    )


def _in_queue(trace: TraceData, queue: int, start: Ints, dur: Ints, path: str | None) -> Repair:
    label = str(trace.tracks["label"].iloc[queue])
    return Repair(
        "implausible_time",
        f"{len(dur)} spans on {label!r} last longer than the work after them in this queue allows (the first "
        f"at {int(start.min())} ns); they are left out of all sums ({_seconds(dur)} recorded)",
        path,
        count=len(dur),
    )


def _seconds(dur: Ints) -> str:
    return f"{float(np.sum(dur, dtype=np.float64)) / 1e9:.6g} s"
