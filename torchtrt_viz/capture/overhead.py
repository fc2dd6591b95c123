"""What recording costs: the price of one event, measured in this process with the options of the capture.

The price times the number of events is the time that a capture added to its block. Both prices are measured
after the capture, when somebody asks, so that asking costs the block nothing.
"""

from __future__ import annotations

import statistics
import time
from functools import cache
from typing import Any

from torchtrt_viz.runtime.modules import capture_module, loaded_torch
from torchtrt_viz.runtime.torch_profiler import TorchRecording, profiler_active

__all__ = ["program_event_ns", "torch_event_ns"]

_CALLS = 400
_ROUNDS = 5


@cache
def torch_event_ns(
    record_shapes: bool, with_stack: bool, profile_memory: bool, with_flops: bool
) -> float | None:
    """Return ns that torch.profiler adds to one operator call; None while a profiler is recording.

    The difference between calls of an operator on a tensor of one element with and without the profiler.
    """
    torch = loaded_torch()
    if torch is None or profiler_active():
        return None
    value = torch.zeros(1)
    plain = _per_call(value.neg)
    recording = TorchRecording(
        "the measurement of a recording's cost",
        ("cpu",),
        record_shapes=record_shapes,
        with_stack=with_stack,
        profile_memory=profile_memory,
        with_flops=with_flops,
    )
    recording.start()
    try:
        recorded = _per_call(value.neg)
    finally:
        recording.discard()
    return max(0.0, recorded - plain)


def _per_call(call: Any) -> float:
    rounds = []
    for _ in range(_ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(_CALLS):
            call()
        rounds.append((time.perf_counter_ns() - begin) / _CALLS)
    return statistics.median(rounds)


@cache
def program_event_ns() -> float:
    """Return ns that the recording of one event of a program takes, clock readings among them."""
    return float(capture_module().event_cost_ns())
