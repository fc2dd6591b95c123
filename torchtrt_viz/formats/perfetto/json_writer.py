"""The JSON form: trace events, as Chrome, Perfetto and the tools around PyTorch's profiler read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from torchtrt_viz.formats.perfetto.writer_args import plain
from torchtrt_viz.formats.perfetto.writer_layout import Layout, clean, layout
from torchtrt_viz.model.optional_ints import filled

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["write_json"]

_PORTION = 100_000
_FIRST_MODELED = 1 << 20  # lanes from here on hold times that were not observed
#: (kind, domain) -> category, as PyTorch's profiler names them; others are the kind itself.
_CATEGORIES = {
    ("operator", "host"): "cpu_op",
    ("annotation", "host"): "user_annotation",
    ("annotation", "gpu"): "gpu_user_annotation",
    ("runtime", "host"): "cuda_runtime",
    ("kernel", "gpu"): "kernel",
    ("memcpy", "gpu"): "gpu_memcpy",
    ("memset", "gpu"): "gpu_memset",
    ("python", "host"): "python_function",
}
_NOTE = "sums over calls: no place on a time axis, and not among the events"


def write_json(trace: TraceData, file: Path, *, args: bool) -> None:
    """Write ``trace`` to ``file``."""
    plan = layout(trace)
    head: dict[str, Any] = {
        "displayTimeUnit": "ns",
        "otherData": {
            "writer": "torchtrt_viz",
            "clock": clean(trace.meta.get("clock", "unknown")),
            "synthetic": bool(trace.meta.get("synthetic")),
            "not_on_the_time_axis": {"note": _NOTE, "records": _unplaced(trace, plan)},
        },
    }
    base = trace.meta.get("base_ns")
    if isinstance(base, int):
        head["baseTimeNanoseconds"] = base
    rank = trace.meta.get("rank")
    if isinstance(rank, int):
        head["distributedInfo"] = {"rank": rank}
    with file.open("wb") as out:
        out.write(orjson.dumps(head)[:-1] + b',"traceEvents":[')
        joint = b"\n"
        portion: list[bytes] = []
        for event in _events(trace, plan, args):
            portion.append(orjson.dumps(event))
            if len(portion) >= _PORTION:
                out.write(joint + b",\n".join(portion))
                joint, portion = b",\n", []
        if portion:
            out.write(joint + b",\n".join(portion))
        out.write(b"\n]}\n")


def _unplaced(trace: TraceData, plan: Layout) -> list[dict[str, Any]]:
    rows = np.setdiff1d(np.arange(len(trace.spans)), plan.placed)
    spans = trace.spans.iloc[rows]
    return [
        {
            "name": clean(name),
            "kind": kind,
            "domain": domain,
            "timing": timing,
            "dur_ns": int(dur),
            "track": plan.name_of[track],
        }
        for name, kind, domain, timing, dur, track in zip(
            spans["name"],
            spans["kind"],
            spans["domain"],
            spans["timing"],
            spans["dur_ns"],
            spans["track"],
            strict=True,
        )
    ]


def _events(trace: TraceData, plan: Layout, with_args: bool) -> Iterator[dict[str, Any]]:
    places = _Places(trace, plan)
    spans = trace.spans.iloc[plan.placed]
    numbers = (plan.lane + _FIRST_MODELED * plan.modeled).tolist()
    lanes = [places.of(int(track), lane) for track, lane in zip(spans["track"], numbers, strict=True)]
    yield from places.names()
    details = trace.args.read(plan.placed) if with_args else [{}] * len(spans)
    columns = zip(
        lanes,
        spans["name"].astype(object),
        spans["kind"].astype(object),
        spans["domain"].astype(object),
        spans["start_ns"].to_numpy(dtype=np.int64).tolist(),
        spans["dur_ns"].to_numpy(dtype=np.int64).tolist(),
        filled(spans["correlation"]).tolist(),
        filled(spans["external_id"]).tolist(),
        details,
        strict=True,
    )
    for (pid, tid), name, kind, domain, start, dur, correlation, external, found in columns:
        args = plain(found)
        if correlation != -1:
            args["correlation"] = correlation
        if external != -1:
            args["External id"] = external
        yield {
            "ph": "X",
            "name": clean(name),
            "cat": _CATEGORIES.get((kind, domain), kind),
            "pid": pid,
            "tid": tid,
            "ts": start / 1000,
            "dur": dur / 1000,
            "args": args,
        }
    yield from _instants(trace, places)
    yield from _counters(trace, plan)
    yield from _flows(trace, plan, lanes)


def _instants(trace: TraceData, places: _Places) -> Iterator[dict[str, Any]]:
    frame = trace.instants
    for track, name, kind, ts, state in zip(
        frame["track"], frame["name"], frame["kind"], frame["ts_ns"], frame["state"], strict=True
    ):
        pid, tid = places.of(int(track), 0)
        yield {
            "ph": "i",
            "s": "t",
            "name": clean(name),
            "cat": kind,
            "pid": pid,
            "tid": tid,
            "ts": int(ts) / 1000,
            "args": {} if state == "instant" else {"state": state},
        }


def _counters(trace: TraceData, plan: Layout) -> Iterator[dict[str, Any]]:
    frame = trace.counters
    for track, name, ts, value in zip(
        frame["track"], frame["name"], frame["ts_ns"], frame["value"], strict=True
    ):
        group = plan.groups[plan.group_of[int(track)]]
        yield {
            "ph": "C",
            "name": clean(name),
            "pid": group.pid,
            "tid": 0,
            "ts": int(ts) / 1000,
            "args": {"value": None if np.isnan(value) else float(value)},
        }


def _flows(trace: TraceData, plan: Layout, lanes: list[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Arrows; an end that has no place on the time axis has none."""
    place = np.full(len(trace.spans), -1, np.int64)
    place[plan.placed] = np.arange(len(plan.placed))
    starts = trace.spans["start_ns"].iloc[plan.placed].to_numpy(dtype=np.int64)
    for number, (name, source, target) in enumerate(
        zip(trace.flows["name"], filled(trace.flows["source"]), filled(trace.flows["target"]), strict=True)
    ):
        if source < 0 or target < 0 or place[source] < 0 or place[target] < 0:
            continue
        for phase, row in (("s", place[source]), ("f", place[target])):
            pid, tid = lanes[row]
            yield {
                "ph": phase,
                "bp": "e",
                "id": number + 1,
                "name": clean(name),
                "cat": clean(name),
                "pid": pid,
                "tid": tid,
                "ts": int(starts[row]) / 1000,
            }


class _Places:
    """Process and thread ids of lanes: a thread id of its own for each lane behind the first."""

    def __init__(self, trace: TraceData, plan: Layout) -> None:
        self._plan = plan
        self._taken: dict[int, set[int]] = {}
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        for group, tid in zip(plan.group_of, plan.tid_of, strict=True):
            self._taken.setdefault(group, set()).add(tid)
        for track in range(len(trace.tracks)):
            self._known[(track, 0)] = (plan.groups[plan.group_of[track]].pid, plan.tid_of[track])

    def of(self, track: int, lane: int) -> tuple[int, int]:
        """Return (pid, tid) of a lane."""
        known = self._known.get((track, lane))
        if known is None:
            group = self._plan.group_of[track]
            taken = self._taken[group]
            tid = max(taken) + 1
            taken.add(tid)
            known = self._known[(track, lane)] = (self._plan.groups[group].pid, tid)
        return known

    def names(self) -> Iterator[dict[str, Any]]:
        """Yield the events that name processes and threads, of all lanes known so far."""
        for group in self._plan.groups:
            yield _name("process_name", group.pid, 0, "name", group.name)
            yield _name("process_sort_index", group.pid, 0, "sort_index", group.order)
        for (track, lane), (pid, tid) in self._known.items():
            label = self._plan.name_of[track]
            if lane >= _FIRST_MODELED:
                label += " (modeled)"
            elif lane:
                label += f" (overlap {lane})"
            yield _name("thread_name", pid, tid, "name", label)
            yield _name("thread_sort_index", pid, tid, "sort_index", self._plan.order_of[track])


def _name(what: str, pid: int, tid: int, key: str, value: object) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {key: value}}
