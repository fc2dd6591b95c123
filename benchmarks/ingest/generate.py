"""Make a realistic Kineto trace of any size, and the truth about it.

    python benchmarks/ingest/generate.py OUT.json --size 100MB [--seed 1] [--gzip]

writes ``OUT.json`` and ``OUT.truth.json``: events by phase and category, and the exact sum of durations in
nanoseconds, counted while writing and not by reading. The file says of itself that it is synthetic.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from step_model import AUTOGRAD, COMMUNICATION, COMPUTE, DEVICE, MAIN, PID, Event, StepModel

__all__ = ["generate", "parse_size"]

BASE_NS = 1_790_857_026_000_000_000
FIRST_NS = 5_178_930_899_500_638  # of the first step, on the file's base
_SPLIT = re.compile(r"%d")


def parse_size(text: str) -> int:
    """Return bytes for "100MB", "1GB", "4096"."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMG]?)B?", text)
    if match is None:
        raise ValueError(f"{text!r} is no size: write 10MB, 1GB, ...")
    return int(float(match[1]) * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}[match[2]])


def _text(event: Event) -> str:
    """One event as Kineto writes it, with %d for numbers that change."""
    where = f'"pid": {event.pid}, "tid": {event.tid}'
    if event.phase == "X":
        return (
            f'  {{\n    "ph": "X", "cat": "{event.category}", "name": "{event.name}", {where},\n'
            f'    "ts": %d.%03d, "dur": %d.%03d,\n    "args": {{\n      {event.args}\n    }}\n  }},\n'
        )
    if event.phase == "i":
        return (
            f'  {{\n    "ph": "i", "cat": "{event.category}", "s": "t", "name": "{event.name}",\n'
            f"    {where},\n"
            f'    "ts": %d.%03d,\n    "args": {{\n      {event.args}\n    }}\n  }},\n'
        )
    tail = ', "bp": "e"' if event.phase == "f" else ""
    return (
        f'  {{\n    "ph": "{event.phase}", "id": %d, {where}, "ts": %d.%03d,\n'
        f'    "cat": "{event.category}", "name": "{event.name}"{tail}\n  }},\n'
    )


class _Section:
    """Events of a step that are written together: one format for the whole section, filled in by arrays."""

    def __init__(self, events: list[Event], strides: dict[str, int]) -> None:
        self.events = events
        self.format = "".join(_text(event) for event in events)
        starts, ends, ids, strided, order = [], [], [], [], []
        for event in events:
            starts.append(event.start)
            ends.append(max(event.end, event.start))
            flow_or_step = [("step", i) for name, i in event.ids if name == "step"]
            for name, value in event.ids:
                ids.append(value)
                strided.append(strides[name])
            number = len(starts) - 1
            first = len(ids) - len(event.ids)
            slots: list[tuple[str, int]] = []
            if event.phase in "sft":
                slots = [("id", first), ("ts", number), ("frac", number)]
            else:
                at = first
                if flow_or_step:
                    slots.append(("id", at))
                    at += 1
                slots += [("ts", number), ("frac", number)]
                if event.phase == "X":
                    slots += [("dur", number), ("dfrac", number)]
                slots += [("id", i) for i in range(at, len(ids))]
            order += slots
        self.starts, self.ends = np.array(starts, np.int64), np.array(ends, np.int64)
        self.ids, self.strides = np.array(ids, np.int64), np.array(strided, np.int64)
        kinds = ["ts", "frac", "dur", "dfrac", "id"]
        self.kind = np.array([kinds.index(kind) for kind, _ in order], np.int8)
        self.index = np.array([index for _, index in order], np.int64)
        self.category = [f"{event.phase}:{event.category}" for event in events]

    def fill(self, base: int, permille: int, step: int) -> tuple[str, np.ndarray]:
        """Return the section's text for one step, and the durations in it."""
        starts = base + self.starts * permille // 1000
        durations = base + self.ends * permille // 1000 - starts
        values = np.empty(len(self.kind), np.int64)
        for number, array in enumerate(
            (
                starts // 1000,
                starts % 1000,
                durations // 1000,
                durations % 1000,
                self.ids + self.strides * step,
            )
        ):
            chosen = self.kind == number
            values[chosen] = array[self.index[chosen]]
        return self.format % tuple(values.tolist()), durations


def _header(rank: int, world: int) -> str:
    group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": world}
    distributed = {
        "backend": "nccl",
        "rank": rank,
        "world_size": world,
        "pg_count": 1,
        "pg_config": [{**group, "ranks": list(range(world))}],
    }
    return f"""{{
  "schemaVersion": 1,
  "synthetic": 1,
  "deviceProperties": [
    {{
      "id": 0, "name": "Made-up GPU", "totalGlobalMem": 85000000000,
      "computeMajor": 8, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 108
    }}
  ],
  "record_shapes": 1,
  "with_stack": 1,
  "profile_memory": 1,
  "distributedInfo": {json.dumps(distributed)},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": {BASE_NS},
  "traceEvents": [
"""


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _metadata(what: str, ts: str, pid: int, tid: int, value: str) -> str:
    return (
        f'  {{\n    "name": "{what}", "ph": "M", "ts": {ts}, "pid": {pid}, "tid": {tid},\n'
        f'    "args": {{\n      {value}\n    }}\n  }},\n'
    )


def _mark(name: str, pid: str, tid: str, ts: str) -> str:
    return (
        f'  {{\n    "name": "{name}", "ph": "i", "s": "g",\n'
        f'    "pid": "{pid}", "tid": "{tid}", "ts": {ts}\n  }}'
    )


def _closing(first: int, last: int, title: str) -> tuple[str, dict[str, list[int]]]:
    begin, end = _us(first), _us(last)
    meta = []
    for pid, labels, order in ((PID, "CPU", PID), (DEVICE, "GPU 0", 5000000)):
        meta.append(_metadata("process_name", begin, pid, 0, '"name": "python3"'))
        meta.append(_metadata("process_labels", begin, pid, 0, f'"labels": "{labels}"'))
        meta.append(_metadata("process_sort_index", begin, pid, 0, f'"sort_index": {order}'))
    for pid, tid, name in (
        (PID, MAIN, f"thread {MAIN} (python3)"),
        (PID, AUTOGRAD, f"thread {AUTOGRAD} (pt_autograd_0)"),
        (DEVICE, COMPUTE, f"stream {COMPUTE} "),
        (DEVICE, COMMUNICATION, f"stream {COMMUNICATION} "),
    ):
        meta.append(_metadata("thread_name", begin, pid, tid, f'"name": "{name}"'))
    text = (
        "".join(meta)
        + f'  {{\n    "ph": "X", "cat": "Trace", "ts": {begin}, "dur": {_us(last - first)},\n'
        + '    "pid": "Spans", "tid": "PyTorch Profiler",\n    "name": "PyTorch Profiler (0)",\n'
        + '    "args": {\n      "Op count": 0\n    }\n  },\n'
        + _mark("Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler", begin)
        + ",\n"
        + _mark("Record Window End", "", "", end)
        + f'\n  ],\n  "traceName": "{title}"\n}}\n'
    )
    return text, {"M:": [len(meta), 0], "X:Trace": [1, last - first], "i:": [2, 0]}


def _written(
    sections: list[_Section], steps: int, step_ns: int
) -> Iterator[tuple[_Section, str, np.ndarray]]:
    for section in sections:
        for step in range(steps):
            permille = 900 + (step * 37) % 100  # no two steps take the same time; none runs into the next
            text, durations = section.fill(FIRST_NS + step * step_ns, permille, step)
            yield section, text, durations


def generate(
    path: Path,
    size: int,
    *,
    seed: int = 1,
    rank: int = 0,
    world: int = 8,
    stack: bool = True,
    shapes: bool = True,
    memory: bool = True,
) -> dict[str, Any]:
    """Write a trace of about ``size`` bytes and return the truth about it.

    Returns
    -------
    dict
        ``events``; ``categories`` ("phase:category" -> [events, sum of durations in ns]); ``overlaps`` (spans
        that overlap another one of their stream); ``bytes``.
    """
    model = StepModel(seed, stack=stack, shapes=shapes, memory=memory)
    strides = {**model.counters, "step": 1}
    sections = [
        _Section(e, strides) for e in (model.operators, model.allocations, model.frames, model.device) if e
    ]
    step_bytes = sum(len(section.fill(FIRST_NS, 1000, 0)[0]) for section in sections)
    steps = max(1, round((size - 4000) / step_bytes))
    truth: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    with path.open("w", encoding="utf-8") as out:
        out.write(_header(rank, world))
        for section, text, durations in _written(sections, steps, model.duration):
            out.write(text)
            for category, duration in zip(section.category, durations.tolist(), strict=True):
                entry = truth[category]
                entry[0] += 1
                entry[1] += duration
        first = FIRST_NS - 10_000
        text, counts = _closing(first, FIRST_NS + steps * model.duration, path.name)
        out.write(text)
    truth.update(counts)
    return {
        "synthetic": True,
        "bytes": path.stat().st_size,
        "steps": steps,
        "events": sum(entry[0] for entry in truth.values()),
        "overlaps": model.overlaps * steps,
        "categories": dict(sorted(truth.items())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--size", default="100MB", type=parse_size)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--rank", default=0, type=int)
    parser.add_argument("--world", default=8, type=int)
    parser.add_argument("--no-stack", action="store_true")
    parser.add_argument("--no-shapes", action="store_true")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--gzip", action="store_true", help="write a .gz of it as well")
    options = parser.parse_args()
    truth = generate(
        options.path,
        options.size,
        seed=options.seed,
        rank=options.rank,
        world=options.world,
        stack=not options.no_stack,
        shapes=not options.no_shapes,
        memory=not options.no_memory,
    )
    options.path.with_suffix(".truth.json").write_text(json.dumps(truth, indent=1))
    if options.gzip:
        import gzip
        import shutil

        with (
            options.path.open("rb") as plain,
            gzip.open(f"{options.path}.gz", "wb", compresslevel=6) as packed,
        ):
            shutil.copyfileobj(plain, packed, 1 << 20)
    print(f"{options.path}: {truth['bytes']} bytes, {truth['events']} events, {truth['steps']} steps")


if __name__ == "__main__":
    main()
