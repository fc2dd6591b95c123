"""Replays and captures of graphs with events lost, doubled, moved and filled with nonsense: never a crash.

``TORCHTRT_VIZ_FUZZ_INPUTS`` says how many pairs are tried.
"""

from __future__ import annotations

import json
import os
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

from graph_traces import Launch, capture, model, replay, write_pair

import torchtrt_viz as tv
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.trace import Trace

PAIRS = int(os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "30"))
NONSENSE: tuple[Any, ...] = (
    *(None, True, -1, 0, 0.5, 10**18, 2**63, -(2**63), 2**70, 1e300, float("nan")),
    *("", "\0", "StreamBeginCapture", "hipGraphLaunch", "capture_9999999_X", "step[DECODE bs=0]"),
    *([], [[]], {}, {"a": 1}),
)
ARGUMENTS = ("kernel", "str", "module_fqn", "graph node id", "Input Dims", "correlation")


def damaged(chance: random.Random, document: dict[str, Any]) -> bytes:
    document = deepcopy(document)
    events = document["traceEvents"]
    for _ in range(chance.randint(1, 12)):
        at, to = chance.randrange(len(events)), chance.randrange(len(events))
        event = events[at]
        match chance.randrange(6):
            case 0:
                del events[at]
            case 1:
                events.insert(to, deepcopy(event))
            case 2:
                events[at], events[to] = events[to], event
            case 3:
                event[chance.choice(list(event))] = chance.choice(NONSENSE)
            case 4 if isinstance(event.get("args"), dict):
                event["args"][chance.choice(ARGUMENTS)] = chance.choice(NONSENSE)
            case _ if isinstance(event.get("ts"), float):
                event["ts"] *= chance.choice((-1, 0, 0.001, 1.5, 1000))
    text = json.dumps(document).encode()
    return text[: chance.randrange(len(text))] if chance.random() < 0.15 else text


def test_damaged_pairs_load_and_answer(tmp_path: Path) -> None:
    chance = random.Random(20261201)
    calls = model(layers=2)
    launches = [Launch(tuple(calls)), Launch(tuple(calls[:7]))]
    replayed = json.loads(replay(launches, nodes=True))
    captured = json.loads(capture([calls[:5], calls[5:]]))
    answered = 0
    for number in range(PAIRS):
        details = [{"file": "bs_32_rank0.json", "batch_size": chance.choice(NONSENSE), "mode": "FULL"}]
        folder = write_pair(
            tmp_path / str(number),
            damaged(chance, replayed),
            {"bs_32_rank0.json": damaged(chance, captured)},
            details=[details, None][number % 2],
            name="replay.json",
        )
        try:
            trace = tv.load(folder)
        except TorchTrtVizError:
            continue  # nothing was left of the replay
        if not isinstance(trace, Trace):
            continue
        answered += 1
        table = trace.graphs()
        assert (
            table["exact"] + table["ordered"] + table["by_name"] + table["none"] == table["kernels"]
        ).all()
        work = trace.operators()
        known = work.attrs["device_unexplained_ns"]
        if known is not None:
            assert int(work["device_self_ns"].sum()) + known == work.attrs["device_ns"]
        trace.explain()
        trace.summary()
        trace.kernels(by=("operator", "module", "match"))
        tv.analysis.call_tree(trace, value="gpu")
    assert answered > PAIRS // 2
