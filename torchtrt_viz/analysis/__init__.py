"""Findings from traces: a trace goes in, a pandas frame comes out, nothing is drawn.

The tables that a trace offers as methods have their homes here, next to the analyses that look deeper. All
times are integer nanoseconds; host time and GPU time are never added; sums of kernel durations are not wall
time; what was not collected is missing, never 0. The docstring of each function names every column.

The tables that `Trace` offers as methods (operators, kernels, delegates, phases, layers, memory, host_gpu,
questions, summary) live in the modules of these names. The functions below are called with a trace,
``analysis.temporal_breakdown(trace)``.

`explain` says in sentences what matters most.

Host and device:

==========================================  ==================================================
`temporal_breakdown`, `overlap`,            compute, communication, copies, idle; what hides what
`kernel_types`
`idle_causes`, `idle_gaps`                  why a stream or a device had nothing to do
`launch_delays`, `launch_stats`,            from the host's call to the device's work
`graph_launches`
`queue_length`, `queue_summary`,            how much work waits between them
`blocked_on_full_queue`
`delegate_gaps`, `orchestration`            what happens between delegates
`provenance`                                which events lead back to the model
`critical_path`, `critical_path_summary`    what the end waited for, back to the beginning
`copies`, `copy_bandwidth`                  how much was copied, which way, how fast
`collectives`                               collectives of one rank and the bandwidth they reached
`memory_peaks`, `memory_by_operator`        most memory in use, and who allocated it
`collective_skew`                           waiting told from transfer, over the ranks of a session
`operator_roofline`                         matrix products, convolutions, attention against a device's roof
==========================================  ==================================================

Engines:

==========================================  ==================================================
`engine_roofline`                           layers against a device's limits
`engine_lint`, `reformats`                  what looks wrong, and what conversions cost
`engine_diff`                               two engines, layer by layer
`plan_graph`                                the graph of an engine's plan, laid out for drawing
==========================================  ==================================================

Code:

==========================================  ==================================================
`call_tree`, `flame_graph`, `folded_stacks` who called whom, in host time or in device time launched
==========================================  ==================================================

Runs:

==========================================  ==================================================
`iterations`, `iteration_of`, `variability` scatter from iteration to iteration, and warm-up
`regressions`, `series`, `series_values`    what changed between runs, beyond noise; see also
                                            :func:`torchtrt_viz.analysis.compare.compare`
==========================================  ==================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "call_tree": "calltree",
    "collective_skew": "skew",
    "collectives": "communication",
    "copies": "transfers",
    "copy_bandwidth": "transfers",
    "iteration_of": "steps",
    "iterations": "steps",
    "memory_by_operator": "memory",
    "memory_peaks": "memory",
    "operator_roofline": "roofline",
    "reformats": "engine_rules",
    "regressions": "compare",
    "series": "trends",
    "series_values": "trends",
    "variability": "scatter",
    "blocked_on_full_queue": "queues",
    "critical_path": "critical",
    "critical_path_summary": "critical",
    "delegate_gaps": "gaps",
    "engine_diff": "engine_pairs",
    "engine_lint": "engine_rules",
    "engine_roofline": "engine_work",
    "explain": "findings",
    "flame_graph": "calltree",
    "folded_stacks": "calltree",
    "graph_launches": "launch",
    "idle_causes": "idle",
    "idle_gaps": "idle",
    "kernel_types": "temporal",
    "kernels": "operators",
    "launch_delays": "launch",
    "launch_stats": "launch",
    "orchestration": "gaps",
    "overlap": "temporal",
    "phases": "delegates",
    "provenance": "origins",
    "plan_graph": "plan",
    "queue_length": "queues",
    "queue_summary": "queues",
    "temporal_breakdown": "temporal",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"torchtrt_viz.analysis.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'torchtrt_viz.analysis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
