"""What is looked at for findings, in the order in which equal ones stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torchtrt_viz.analysis.findings.device import exposed, in_graphs, leading_kernel, unexplained
from torchtrt_viz.analysis.findings.doubts import doubts
from torchtrt_viz.analysis.findings.engine import (
    conversions,
    leading_delegate,
    leading_layer,
    outside,
    staging,
    without_tensor_cores,
)
from torchtrt_viz.analysis.findings.finding import Finding
from torchtrt_viz.analysis.findings.host import leading_operator, slow_iterations, warmup
from torchtrt_viz.analysis.findings.idle import idle, nothing_recorded, waiting
from torchtrt_viz.analysis.findings.launching import allocations, launching, on_the_path, queueing
from torchtrt_viz.analysis.findings.memory_held import memory_use
from torchtrt_viz.analysis.findings.roofs import layers_below_the_roof, operators_below_the_roof
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["ALL", "STAKES", "Look"]

Look = Callable[[TraceData], Iterator[Finding]]

STAKES: tuple[Look, ...] = (
    idle,
    exposed,
    leading_kernel,
    unexplained,
    in_graphs,
    launching,
    waiting,
    leading_operator,
    leading_delegate,
    outside,
    leading_layer,
    conversions,
    without_tensor_cores,
    warmup,
)
"""Those of which the time at stake is known."""

ALL: tuple[Look, ...] = (
    *STAKES,
    slow_iterations,
    staging,
    queueing,
    on_the_path,
    allocations,
    operators_below_the_roof,
    layers_below_the_roof,
    memory_use,
    nothing_recorded,
    doubts,
)
"""All that are looked at."""
