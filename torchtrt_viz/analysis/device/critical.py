"""The critical path: what the end of a capture waited for, back to its beginning.

From the end the path leads backwards. A kernel waited for the kernel before it on its stream, for one on
another stream that its stream had been told to wait for, or for the host's call that launched it, whichever
came last. A host thread that synchronises waited for the last kernel to end during that call. A host thread
otherwise waited for itself, and at its beginning for the thread that was busy then. The pieces cover the
time from beginning to end exactly once.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.device import CRITICAL_PATH, CRITICAL_PATH_SUMMARY
from torchtrt_viz.analysis.core.device_work import CLASSES, DeviceWork, work_mask
from torchtrt_viz.analysis.core.flatten import innermost_line, pieces_of
from torchtrt_viz.analysis.core.groups import Groups, exact_sums
from torchtrt_viz.analysis.core.host_threads import os_threads
from torchtrt_viz.analysis.core.intervals import merge
from torchtrt_viz.analysis.core.links import launches
from torchtrt_viz.analysis.core.masks import (
    among,
    choice,
    codes,
    ends,
    ints,
    measured,
    names_matching,
    strings,
)
from torchtrt_viz.analysis.core.steps import iterations
from torchtrt_viz.analysis.core.tables import integers, order, percent, text
from torchtrt_viz.analysis.core.waiting import wait_mask
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["SEGMENTS", "critical_path", "critical_path_summary"]

Ints = NDArray[np.int64]

SEGMENTS = (
    "host",  # a host thread worked
    "host idle",  # no host thread did anything
    "launch delay",  # from the launching call to the kernel, nothing else in the way
    "compute",
    "communication",
    "copy",
    "fill",
    "kernel gap",  # between two kernels of a stream, started back to back
    "unexplained gap",  # before a kernel that had been launched in time: the trace does not tell for what
    "stream wait",  # from a kernel of another stream, which the stream waited for, to the kernel
    "synchronisation",  # from the end of the kernel to the end of the call that waited for it
)

_BACK_TO_BACK = 30_000  # ns; work that starts this soon after other work ended was waiting for nothing else
_STREAM_WAIT = re.compile(r"^(cuda|cu|hip)StreamWaitEvent")


@returns(CRITICAL_PATH)
def critical_path(
    trace: TraceData,
    *,
    iteration: int | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
) -> pd.DataFrame:
    """Find the critical path of a capture, an iteration, or a stretch of time.

    Parameters
    ----------
    iteration
        Only this iteration (:func:`torchtrt_viz.analysis.iterations`).
    start_ns, end_ns
        Only this stretch, on the trace's base; default: from the first start to the last end of host
        activity and device work.

    Returns
    -------
    pandas.DataFrame
        One row per piece of the critical path, in order of time; each begins where the one before ended.

        What host threads did on the path is said by :func:`torchtrt_viz.analysis.critical_path_summary`.

    Examples
    --------
    >>> path = tv.analysis.critical_path(trace)
    >>> int(path["dur_ns"].sum()) == trace.duration_ns
    True
    """
    begin, stop = _window(trace, iteration, start_ns, end_ns)
    if begin is None or stop is None:
        return _frame([], trace)
    walker = _Walker(trace, begin, stop)
    return _frame(walker.walk(), trace)


def host_activity(trace: TraceData) -> NDArray[np.bool_]:
    """Say for each span whether a host thread did something in it (the profiler's own records are not)."""
    spans = trace.spans
    return measured(trace) & among(spans["domain"], ("host",)) & ~among(spans["kind"], ("other",))


def _window(
    trace: TraceData, iteration: int | None, start_ns: int | None, end_ns: int | None
) -> tuple[int | None, int | None]:
    here = host_activity(trace) | work_mask(trace)
    if not here.any():
        return None, None
    begin = int(ints(trace.spans["start_ns"])[here].min())
    stop = int(ends(trace)[here].max())
    if iteration is not None:
        listed = iterations(trace)
        chosen = listed[listed["iteration"] == iteration]
        if not len(chosen):
            known = ", ".join(map(str, sorted(set(listed["iteration"].tolist()))[:20]))
            raise OptionError(
                "iteration", iteration, f"one of the capture's iterations: {known or 'it has none'}"
            )
        begin = int(chosen["start_ns"].min())
        stop = int((chosen["start_ns"] + chosen["dur_ns"]).max())
    begin = begin if start_ns is None else max(begin, start_ns)
    stop = stop if end_ns is None else min(stop, end_ns)
    if stop < begin:
        raise OptionError("end_ns", end_ns, "a time after start_ns, inside the capture")
    return begin, stop


@dataclass
class _Thread:
    """A host thread: its busy stretches, the calls in which it waited for a device, and for a thread."""

    starts: list[int]
    ends: list[int]
    wait_starts: list[int]
    wait_ends: list[int]
    wait_rows: list[int]
    helped_ends: list[int] = field(default_factory=list)
    helpers: list[int] = field(default_factory=list)


class _Walker:
    """Goes back in time from the end of a stretch."""

    def __init__(self, trace: TraceData, begin: int, stop: int) -> None:
        self.begin, self.stop = begin, stop
        spans = trace.spans
        self._start, self._end = ints(spans["start_ns"]), ends(trace)
        found = launches(trace)
        inside = (found.work.start < stop) & (found.work.end > begin) & (found.work.dur > 0)
        self._work: DeviceWork = found.work.of(inside)
        self._host = found.host[inside]
        self._before = self._previous()
        by_end = np.argsort(self._work.end, kind="stable")
        self._by_end = by_end.tolist()
        self._sorted_ends = self._work.end[by_end].tolist()
        self._track = os_threads(trace)[spans["track"].to_numpy()]
        self._threads = self._host_threads(trace)
        self._waits_for_streams(trace)
        self._waits_for_threads(trace)
        self.pieces: list[tuple[str, int, int, int, int, bool]] = []

    def _previous(self) -> list[int]:
        """For each piece of work the one that ended last before it on its stream, -1 none."""
        work = self._work
        out = np.full(len(work), -1, np.int64)
        for track in np.unique(work.track):
            mine = np.flatnonzero(work.track == track)
            ordered = mine[np.argsort(work.end[mine], kind="stable")]
            position = np.searchsorted(work.end[ordered], work.start[mine], side="right") - 1
            out[mine] = np.where(position >= 0, ordered[np.maximum(position, 0)], -1)
        return [int(value) for value in out]

    def _host_threads(self, trace: TraceData) -> dict[int, _Thread]:
        here = host_activity(trace)
        here &= (self._start < self.stop) & (self._end > self.begin)
        waits = wait_mask(trace) & here
        # a call that returns after its own work has ended has waited for it (a blocking copy)
        own = np.flatnonzero(self._host >= 0)
        rows = self._host[own]
        blocking = (self._work.end[own] <= self._end[rows]) & (self._work.end[own] > self._start[rows])
        waits[rows[blocking]] = True
        waits &= here
        out = {}
        for track in np.unique(self._track[here]):
            mine = np.flatnonzero(here & (self._track == track))
            starts, stops = merge(self._start[mine], self._end[mine])
            calls = np.flatnonzero(waits & (self._track == track))
            calls = calls[np.argsort(self._end[calls], kind="stable")]
            out[int(track)] = _Thread(
                starts.tolist(),
                stops.tolist(),
                self._start[calls].tolist(),
                self._end[calls].tolist(),
                calls.tolist(),
            )
        return out

    def _waits_for_streams(self, trace: TraceData) -> None:
        rows = np.flatnonzero(
            names_matching(trace.spans["name"], _STREAM_WAIT) & among(trace.spans["domain"], ("host",))
        )
        times: dict[int, list[int]] = {}
        for row in rows[np.argsort(self._start[rows], kind="stable")].tolist():
            times.setdefault(int(self._track[row]), []).append(int(self._start[row]))
        self._stream_waits = times

    def _waits_for_threads(self, trace: TraceData) -> None:
        """Find where a thread did nothing of its own while another one worked from beginning to end.

        That is how a call of ``backward`` waits for the threads of autograd. Only inside Python frames and
        annotations: an operator without children may well be computing.
        """
        spans = trace.spans
        here = host_activity(trace)
        idle_kinds = among(spans["kind"], ("python", "annotation", "step"))
        for track, thread in self._threads.items():
            times, inner = innermost_line(trace, here & (self._track == track))
            found: list[tuple[int, int]] = []
            for other, helper in self._threads.items():
                if other == track or not len(times):
                    continue
                begin, stop = np.array(helper.starts), np.array(helper.ends)
                at = np.searchsorted(times, begin, side="right") - 1
                silent = (at >= 0) & (np.searchsorted(times, stop, side="left") - 1 == at)
                row = inner[np.maximum(at, 0)]
                silent &= begin > times[np.maximum(at, 0)]
                silent &= (row >= 0) & idle_kinds[np.maximum(row, 0)]
                found += [(int(end), other) for end in stop[silent]]
            found.sort()
            thread.helped_ends = [end for end, _ in found]
            thread.helpers = [other for _, other in found]

    # -- the walk --------------------------------------------------------------------------------------

    def walk(self) -> list[tuple[str, int, int, int, int, bool]]:
        now, work, thread = self.stop, -1, -1
        while now > self.begin:
            if work >= 0:
                now, work, thread = self._through_work(work, now)
            elif thread >= 0:
                now, work, thread = self._through_thread(thread, now)
            else:
                now, work, thread = self._through_nothing(now)
        return self.pieces[::-1]

    def _add(self, segment: str, row: int, track: int, begin: int, stop: int, presumed: bool = False) -> None:
        begin = max(begin, self.begin)
        if stop > begin:
            self.pieces.append((segment, row, track, begin, stop, presumed))

    def _last(self, now: int) -> tuple[int, int]:
        """Return the work, or else the thread, that was active last before ``now``."""
        position = bisect_right(self._sorted_ends, now) - 1
        device_end = self._sorted_ends[position] if position >= 0 else -1
        running = np.flatnonzero((self._work.start < now) & (self._work.end >= now))
        thread, host_end = self._busiest(now)
        if len(running) and host_end < now:
            return int(running[np.argmax(self._work.end[running])]), -1
        if position >= 0 and device_end > host_end:
            return self._by_end[position], -1
        return -1, thread

    def _busiest(self, now: int) -> tuple[int, int]:
        """Return the thread whose last activity before ``now`` ended last, and when."""
        return self._busiest_other(-1, now)

    def _through_work(self, work: int, now: int) -> tuple[int, int, int]:
        start, end = int(self._work.start[work]), int(self._work.end[work])
        row, track = int(self._work.row[work]), int(self._work.track[work])
        now = min(now, end)
        self._add(CLASSES[int(self._work.kind[work])], row, track, start, now)
        now = min(now, start)
        if now <= self.begin:
            return now, -1, -1
        host = int(self._host[work])
        previous = self._before[work]
        ready = int(self._work.end[previous]) if previous >= 0 else -(2**62)
        called = int(self._end[host]) if host >= 0 else -(2**62)
        if called > now:
            # the work began before its call returned: it was submitted somewhere inside the call
            called = min(int(self._start[host]), now)
        other = self._other_stream(work, max(ready, called), now, host)
        if other >= 0:
            stop = int(self._work.end[other])
            self._add("stream wait", row, track, stop, now, True)
            return stop, other, -1
        if previous >= 0 and ready >= called:
            known = now - ready <= _BACK_TO_BACK
            self._add("kernel gap" if known else "unexplained gap", row, track, ready, now)
            return ready, previous, -1
        if host >= 0:
            self._add("launch delay", row, track, called, now)
            return called, -1, int(self._track[host])
        # its launch is not in the trace: the host was on the way to it
        return now, -1, -1

    def _other_stream(self, work: int, after: int, now: int, host: int) -> int:
        """Return work of another stream that this one seems to have waited for, -1 none.

        That is the last to end before it, if the stream was told to wait for another one, or if nothing else
        explains why launched work did not start.
        """
        after, near = max(after, self.begin), now - _BACK_TO_BACK
        told = self._told_to_wait(work, host)
        if not told and after >= near:
            return -1  # started back to back with what is known to precede it
        place = bisect_right(self._sorted_ends, now) - 1
        while place >= 0 and self._sorted_ends[place] > after:
            candidate = int(self._by_end[place])
            if not told and self._sorted_ends[place] < near:
                return -1
            if self._work.track[candidate] != self._work.track[work]:
                return candidate
            place -= 1
        return -1

    def _told_to_wait(self, work: int, host: int) -> bool:
        """Say whether the host told the stream to wait for another one just before it launched the work."""
        if host < 0:
            return False
        times = self._stream_waits.get(int(self._track[host]), [])
        position = bisect_left(times, int(self._start[host])) - 1
        if position < 0:
            return False
        previous = self._before[work]
        launched = int(self._host[previous]) if previous >= 0 else -1
        return launched < 0 or times[position] >= int(self._start[launched])

    def _through_thread(self, track: int, now: int) -> tuple[int, int, int]:
        thread = self._threads[track]
        position = bisect_left(thread.starts, now) - 1
        if position < 0 or thread.ends[position] < now:
            return self._before_thread(track, now)
        start = thread.starts[position]
        help_at = bisect_right(thread.helped_ends, now) - 1
        helped = thread.helped_ends[help_at] if help_at >= 0 else -(2**62)
        at = bisect_right(thread.wait_ends, now) - 1
        while at >= 0 and thread.wait_ends[at] > max(start, helped):
            work = self._waited_for(thread.wait_starts[at], thread.wait_ends[at])
            if work >= 0:
                ended, row = int(self._work.end[work]), thread.wait_rows[at]
                self._add("host", -1, track, thread.wait_ends[at], now)
                self._add("synchronisation", row, track, ended, thread.wait_ends[at])
                return ended, work, -1
            at -= 1
        if helped > start:
            self._add("host", -1, track, helped, now)
            return helped, -1, thread.helpers[help_at]
        self._add("host", -1, track, start, now)
        return self._before_thread(track, start)

    def _waited_for(self, begin: int, stop: int) -> int:
        """Return the work that ended last during a waiting call, -1 none."""
        position = bisect_right(self._sorted_ends, stop) - 1
        if position < 0 or self._sorted_ends[position] <= begin:
            return -1
        return int(self._by_end[position])

    def _before_thread(self, track: int, now: int) -> tuple[int, int, int]:
        """Go on with the thread that was busy when this one began; through idle time where none was."""
        if now <= self.begin:
            return now, -1, -1
        other, ended = self._busiest_other(track, now)
        if other < 0:
            return now, -1, -1
        if ended < now:
            self._add("host idle", -1, -1, ended, now)
        return min(ended, now), -1, other

    def _busiest_other(self, track: int, now: int) -> tuple[int, int]:
        best, when, longest = -1, -(2**62), 2**62
        for name, thread in self._threads.items():
            position = bisect_left(thread.starts, now) - 1
            if position < 0:
                continue
            end = min(thread.ends[position], now)
            if name == track and end == now:
                continue
            if end > when or (end == when and thread.starts[position] < longest):
                best, when, longest = name, end, thread.starts[position]
        return best, when

    def _through_nothing(self, now: int) -> tuple[int, int, int]:
        work, thread = self._last(now)
        if thread >= 0:
            ended = self._busiest(now)[1]
            if ended < now:
                self._add("host idle", -1, -1, ended, now)
            return min(ended, now), -1, thread
        if work >= 0:
            ended = min(int(self._work.end[work]), now)
            if ended < now:
                self._add("host idle", -1, -1, ended, now)
            return ended, work, -1
        self._add("host idle", -1, -1, self.begin, now)
        return self.begin, -1, -1


def _frame(pieces: list[tuple[str, int, int, int, int, bool]], trace: TraceData) -> pd.DataFrame:
    table = np.array([piece[1:5] for piece in pieces], dtype=np.int64).reshape(-1, 4)
    row, track = table[:, 0], table[:, 1]
    names = strings(trace.spans["name"])
    labels = trace.tracks["label"].to_numpy(dtype=object)
    named: list[Any] = [
        names[r] if r >= 0 else labels[t] if t >= 0 else None for r, t in zip(row, track, strict=True)
    ]
    segment = [piece[0] for piece in pieces]
    on_host = {"host", "host idle", "synchronisation"}
    return pd.DataFrame(
        {
            "segment": pd.Categorical(segment, categories=list(SEGMENTS)),
            "domain": text(["host" if name in on_host else "gpu" for name in segment]),
            "name": text(named),
            "row": integers(row, row >= 0),
            "track": integers(track, track >= 0),
            "start_ns": table[:, 2],
            "dur_ns": table[:, 3] - table[:, 2],
            "presumed": np.array([piece[5] for piece in pieces], dtype=bool),
        }
    )


@returns(CRITICAL_PATH_SUMMARY)
def critical_path_summary(
    trace: TraceData,
    path: pd.DataFrame | None = None,
    *,
    by: str = "name",
    iteration: int | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
) -> pd.DataFrame:
    """Say what the critical path consists of, by segment and name; host stretches by what the thread did.

    Parameters
    ----------
    path
        What :func:`critical_path` returned for this trace; None finds it.
    by
        ``name``: a row per segment and name; ``segment``: a row per segment, its names together.
    iteration, start_ns, end_ns
        As in :func:`critical_path`, which finds the path; with ``path`` they say nothing.

    Returns
    -------
    pandas.DataFrame
        One row per segment and name on the critical path, the longest first.

    Examples
    --------
    >>> tv.analysis.critical_path_summary(trace)["domain"].unique().tolist()
    ['host', 'gpu']
    """
    choice("by", by, ("name", "segment"))
    if path is None:
        path = critical_path(trace, iteration=iteration, start_ns=start_ns, end_ns=end_ns)
    names = trace.spans["name"].cat.categories.to_numpy(dtype=object)
    code_of = codes(trace.spans["name"])
    other = path[path["segment"] != "host"]
    parts = [other[["segment", "domain", "name", "dur_ns"]].astype({"segment": object}).assign(pieces=1)]
    host = path[path["segment"] == "host"]
    here = host_activity(trace)
    track_of = os_threads(trace)[trace.spans["track"].to_numpy()]
    for track, part in host.groupby("track", sort=True):
        line = innermost_line(trace, here & (track_of == track))
        begin = part["start_ns"].to_numpy()
        row, length = pieces_of(line, begin, begin + part["dur_ns"].to_numpy())
        code = np.where(row >= 0, code_of[np.maximum(row, 0)], len(names))
        total = exact_sums(code, length, len(names) + 1)
        found = np.flatnonzero(total)
        parts.append(
            pd.DataFrame(
                {
                    "segment": "host",
                    "domain": "host",
                    "name": [names[at] if at < len(names) else None for at in found],
                    "dur_ns": total[found],
                    "pieces": np.bincount(code, minlength=len(names) + 1)[found],
                }
            )
        )
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    if by == "segment":
        table = table.assign(name=None)
    groups = Groups.by({name: text(table[name].to_list()) for name in ("segment", "domain", "name")})
    total = groups.total(table["dur_ns"].to_numpy(dtype=np.int64))
    pieces = groups.total(table["pieces"].to_numpy(dtype=np.int64))
    frame = groups.labels.assign(pieces=pieces, total_ns=total, pct=percent(total))
    return order(frame, "total_ns", None, ("segment", "name"))
