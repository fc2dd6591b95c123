"""Findings from traces: a trace goes in, a pandas frame comes out, nothing is drawn.

All times are integer nanoseconds; host time and GPU time are never added; sums of kernel durations are not
wall time; what was not collected is missing, never 0. The docstring of each function names every column, and
so does ``torchtrt_viz.schema.table("temporal_breakdown").describe()``.

The functions are called with a trace: ``analysis.temporal_breakdown(trace)``. Those that `Trace` offers as
methods are the same functions: `operators`, `kernels`, `graphs`, `delegates`, `phases`, `layers`, `memory`,
`kernel_metrics`, `nvtx`, `host_gpu`, `questions`, `summary`, `explain`, `verdict`,
`recorded_collectives`. The others can be called as ``trace.analysis.temporal_breakdown()``, too.

Host and device:

==========================================  ==================================================
`temporal_breakdown`, `overlap`,            compute, communication, copies, idle; what hides what
`kernel_types`
`idle_causes`, `idle_gaps`                  why a stream or a device had nothing to do
`launch_delays`, `launch_stats`,            from the host's call to the device's work
`launch_delay_histogram`, `graph_launches`
`launched_work`                             of each piece: its call, its operator, behind how many it waited
`graphs`                                    launches of graphs, and what their captures tell of their kernels
`queue_length`, `queue_summary`,            how much work waits between them
`blocked_on_full_queue`
`kernel_metrics`                            what Nsight Compute measured, joined to kernels by name
`nvtx`                                      ranges that the program named, on the host and on the device
`phases_by_call`                            what each call of a delegate consists of
`delegate_gaps`, `orchestration`            what happens between delegates
`provenance`                                which events lead back to the model
`critical_path`, `critical_path_summary`    what the end waited for, back to the beginning
`copies`, `copy_bandwidth`                  how much was copied, which way, how fast
`collectives`                               collectives of one rank and the bandwidth they reached
`memory_peaks`, `memory_by_operator`        most memory in use, and who allocated it
`collective_skew`                           waiting told from transfer, over the ranks of a session
`recorded_collectives`                      the entries of a Flight Recorder's dump
`operator_roofline`, `device_roofs`         matrix products, convolutions, attention against a device's roof
==========================================  ==================================================

What is known:

==========================================  ==================================================
`repairs`                                   what a loader mended, left out or could not know
==========================================  ==================================================

Engines:

==========================================  ==================================================
`engine_roofline`                           layers against a device's limits
`engine_lint`, `reformats`                  what looks wrong, and what conversions cost
`engine_diff`                               two engines, layer by layer
`layer_types`                               layers by type and precision
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
                                            :func:`torchtrt_viz.analysis.compare`
`compare_structure`, `structure_summary`    two runs whose names differ, aligned by their trees
==========================================  ==================================================
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
