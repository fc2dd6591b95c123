"""Device-time analyses of a Kineto file by plain loops, exactly or with the habits of HolisticTraceAnalysis.

With no habit the values are the right ones: exact nanoseconds of all device work in the file. Each habit is
something that library does to a file; with all of them the values are that library's (in µs there).
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import raw_kineto

#: What HolisticTraceAnalysis 0.5.0 does that changes a result.
HABITS = {
    "microseconds": "starts are rounded up and ends down to whole µs in files with fractions of them",
    "last step": "work launched after the last ProfilerStep began is dropped, with all that has no launch",
    "synchronisation": "records of waiting on a stream count as work of that stream",
    "any stream": "host operators that name a stream among their details, as Triton's do, count as work",
    "names": "a collective is what nccl...Kernel names; a copy or fill what Memcpy, Memset or dma begins",
    "previous end": "idle time counts from the end of the work that started last, not of the furthest end",
    "four calls": "launches are cudaLaunchKernel, cudaLaunchKernelExC, cudaMemcpyAsync, cudaMemsetAsync",
    "a launch a piece": "a call that launched several pieces of work is a launch for each of them",
    "no early start": "a delay of work that began before its call returned is 0",
}

_RUNTIME = {"cuda_runtime", "cuda_driver", "runtime"}
_COLLECTIVE = re.compile(r"nccl|all_reduce_kernel", re.IGNORECASE)
_CALLS = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"}
_THRESHOLD = {True: 30, False: 30_000}

Event = dict[str, Any]


@lru_cache(maxsize=2)
def _events(path: Path) -> list[Event]:
    return raw_kineto.events(path)


class PlainDevice:
    """The device work of one file; times in µs with the habit of microseconds, else in ns."""

    def __init__(self, path: Path, habits: frozenset[str] = frozenset()) -> None:
        assert habits <= set(HABITS)
        self.habits = habits
        raw = _events(path)
        rounded = "microseconds" in habits
        fractional = rounded and any(e["ts"] % 1000 or e["dur"] % 1000 for e in raw)
        self.work: list[Event] = []
        self.host: list[Event] = []
        for event in raw:
            args = event.get("args") or {}
            start, end = event["ts"], event["ts"] + event["dur"]
            if fractional:
                start, end = math.ceil(start / 1000), math.floor(end / 1000)
            elif rounded:
                start, end = start // 1000, end // 1000
            found = {
                "name": event["name"],
                "category": str(event.get("cat", "")).lower(),
                "start": start,
                "end": end,
                "stream": args.get("stream"),
                "pid": event["pid"],
                "correlation": args.get("correlation", -1),
            }
            streamed = isinstance(found["stream"], int) and found["stream"] >= 0
            habit = "synchronisation" if found["category"] == "cuda_sync" else "any stream"
            if found["category"] in raw_kineto.DEVICE or (streamed and habit in habits):
                self.work.append(found)
            elif found["category"] not in ("trace", "cuda_sync"):
                self.host.append(found)
        if "last step" in habits:
            self._drop_last_step()
        self.work.sort(key=lambda e: (e["start"], e["end"]))

    def _drop_last_step(self) -> None:
        steps = [e for e in self.host if "ProfilerStep" in e["name"]]
        if len({e["name"] for e in steps}) < 2:
            return
        last = max(e["start"] for e in steps)
        self.host = [e for e in self.host if e["start"] < last]
        launched: dict[int, int] = defaultdict(int)
        for event in self.host:
            launched[event["correlation"]] += 1
        self.work = [e for e in self.work for _ in range(launched[e["correlation"]])]

    def kind(self, event: Event) -> str:
        """Return the class of a piece of work."""
        name = event["name"]
        if "names" in self.habits:
            if re.match(r"^nccl.*Kernel", name):
                return "communication"
            if re.match(r"(^Memcpy)|(^Memset)|(^dma)", name):
                return "copy"
            return "other" if re.match(r"(.*(Memcpy)|(Memset))|(.*Sync)", name) else "compute"
        if event["category"] == "kernel":
            return "communication" if _COLLECTIVE.search(name) else "compute"
        return "copy" if event["category"] != "cuda_sync" else "other"

    def _union(self, kind: str | None = None) -> list[tuple[int, int]]:
        """Return when anything, or one class, ran.

        Rounding makes ends that lie before their starts; with that habit such pieces remain, alone, with a
        negative length.
        """
        merged: list[list[int]] = []
        for event in self.work:
            if kind is not None and self.kind(event) != kind:
                continue
            if merged and event["start"] <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], event["end"])
            else:
                merged.append([event["start"], event["end"]])
        return [(start, end) for start, end in merged]

    @cached_property
    def sets(self) -> dict[str, list[tuple[int, int]]]:
        """Return when each class ran."""
        return {kind: self._union(kind) for kind in ("compute", "communication", "copy")}

    def temporal(self) -> tuple[int, int, int, int]:
        """Return idle, compute, other busy time, and all of it."""
        busy = raw_kineto.length(self._union())
        span = max(e["end"] for e in self.work) - min(e["start"] for e in self.work)
        compute = raw_kineto.length(self.sets["compute"])
        return span - busy, compute, busy - compute, span

    def overlap(self) -> float | None:
        """Return the percentage of communication time in which something was computed."""
        total = raw_kineto.length(self.sets["communication"])
        hidden = raw_kineto.intersection(self.sets["communication"], self.sets["compute"])
        return 100 * hidden / total if total else None

    def types(self) -> dict[frozenset[str], int]:
        """Return busy time by the set of classes that ran.

        Each class has a bit, added at its starts and taken away at its ends. A piece of negative length ends
        first: for that time the sum stands for other classes than those that run.
        """
        steps: dict[int, int] = defaultdict(int)
        for bit, found in enumerate(self.sets.values()):
            for start, end in found:
                steps[start] += 1 << bit
                steps[end] -= 1 << bit
        out: dict[frozenset[str], int] = defaultdict(int)
        running, before = 0, 0
        for at in sorted(steps):
            if running > 0:
                out[frozenset(k for bit, k in enumerate(self.sets) if running >> bit & 1)] += at - before
            running += steps[at]
            before = at
        return {now: time for now, time in out.items() if time}

    def kernels(self) -> dict[str, dict[str, list[int]]]:
        """Return the durations by class and name."""
        out: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for event in self.work:
            out[self.kind(event)][event["name"]].append(event["end"] - event["start"])
        return out

    @cached_property
    def _callers(self) -> dict[int, list[Event]]:
        out: dict[int, list[Event]] = defaultdict(list)
        for event in self.host:
            known = isinstance(event["correlation"], int) and event["correlation"] > 0
            if known and event["category"] in _RUNTIME:
                out[event["correlation"]].append(event)
        return out

    def idle(self) -> dict[str, dict[str, int]]:
        """Return idle time between pieces of work by stream and cause."""
        lanes: dict[Any, list[Event]] = defaultdict(list)
        for event in self.work:
            if event["category"] in raw_kineto.DEVICE:
                lanes[(event["pid"], event["stream"])].append(event)
        out: dict[str, dict[str, int]] = {}
        for (_, stream), events in lanes.items():
            causes = out.setdefault(str(stream), defaultdict(int))
            reach = None
            for event in events:
                gap = 0 if reach is None else event["start"] - reach
                if reach is not None and (gap > 0 or "previous end" in self.habits):
                    causes[self._cause(event, reach, gap)] += gap
                last = "previous end" in self.habits or reach is None
                reach = event["end"] if last else max(reach, event["end"])
        return {stream: dict(causes) for stream, causes in out.items()}

    def _cause(self, event: Event, reach: int, gap: int) -> str:
        callers = self._callers.get(event["correlation"], [])
        if not callers:
            return "unknown"
        if max(callers, key=lambda e: e["start"])["start"] > reach:
            return "host wait"
        return "kernel wait" if gap < _THRESHOLD["microseconds" in self.habits] else "other"

    def launches(self) -> tuple[int, int, int, int]:
        """Return how many launches, and the sums of host time, device time and delay."""
        pieces: dict[object, list[tuple[Event, Event]]] = defaultdict(list)
        for position, event in enumerate(self.work):
            callers = self._callers.get(event["correlation"], [])
            if "four calls" in self.habits and not any(c["name"] in _CALLS for c in callers):
                continue
            if callers:
                call = max(callers, key=lambda e: e["start"])
                pieces[position if "a launch a piece" in self.habits else id(call)].append((call, event))
        rows = []
        for launched in pieces.values():
            call = launched[0][0]
            delay = min(event["start"] for _, event in launched) - call["end"]
            if "no early start" in self.habits:
                delay = max(delay, 0)
            work = sum(event["end"] - event["start"] for _, event in launched)
            rows.append((call["end"] - call["start"], work, delay))
        host, device, delay = (sum(column) for column in zip(*rows, strict=True)) if rows else (0, 0, 0)
        return len(rows), host, device, delay


def describe(durations: list[int]) -> tuple[float, ...]:
    """Return sum, maximum, minimum, mean and sample standard deviation (0 for one)."""
    scatter = statistics.stdev(durations) if len(durations) > 1 else 0.0
    total = sum(durations)
    return total, max(durations), min(durations), total / len(durations), scatter
