"""Columns of the tables by name: operators on the host, kernels on devices, and who calls whom."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.sorts import count, modeled, ns, percent, text
from torchtrt_viz.model.schema import FrameSchema

__all__ = [
    "CALL_TREE",
    "FLAME_GRAPH",
    "FOLDED_STACKS",
    "HOST_GPU",
    "ITERATIONS",
    "KERNELS",
    "OPERATORS",
]

OPERATORS = FrameSchema(
    "operators",
    (
        text("name", "name of the operator; after it one column per entry of `by` (missing: not recorded)"),
        count(
            "calls",
            "number of calls on the host; 0 for one that only graphs or compiled programs ran",
        ),
        count(
            "nested_calls",
            "of these, calls inside another call of the same row on the same thread (recursion)",
        ),
        modeled(
            count(
                "graph_calls",
                "number of calls that launches of graphs replayed, as the graphs' capture tells: they ran on "
                "the device and not on the host; NA where nothing was recovered of a capture",
                "Int64",
            )
        ),
        ns(
            "total_ns",
            "inclusive host time: the sum over calls that are not nested in the same row; children of other "
            "names are included, so rows must not be added up",
            title="host total (with children)",
        ),
        ns(
            "self_ns",
            "host time not covered by any child span, summed over all calls; rows may be added up, and over "
            "several threads the sum can exceed the capture's length",
            title="host self",
        ),
        percent(
            "self_pct", "self_ns in percent of the column's sum; NA when that is 0", title="of host self"
        ),
        ns("mean_ns", "inclusive host time of one call, mean", "float64", title="host mean"),
        ns("median_ns", "inclusive host time of one call, median", "float64", title="host median"),
        ns("min_ns", "inclusive host time of one call, least; NA without calls", "Int64", title="host min"),
        ns("max_ns", "inclusive host time of one call, most; NA without calls", "Int64", title="host max"),
        ns(
            "device_total_ns",
            "sum of the durations of device work launched inside these calls, nested calls not counted "
            "twice: neither wall time nor host time, never to be added to total_ns; NA without device work",
            "Int64",
            title="GPU work launched (with children)",
        ),
        ns(
            "device_self_ns",
            "the part of it launched by these calls themselves, not through an inner operator; NA as above",
            "Int64",
            title="GPU work launched",
        ),
        modeled(
            ns(
                "device_graph_ns",
                "the part of device_self_ns that launches of graphs ran; NA where nothing was recovered",
                "Int64",
                title="GPU work in graphs",
            )
        ),
    ),
    "one row per operator on the host, by name",
)

KERNELS = FrameSchema(
    "kernels",
    (
        text(
            "name", "name of the kernel or copy; after it one column per entry of `by` (missing: not known)"
        ),
        text("class", "compute, communication, copy or fill"),
        count("calls", "number of executions"),
        ns(
            "total_ns",
            "sum of their durations; work on several streams overlaps, so this is not wall time (see "
            "host_gpu)",
            title="GPU sum",
        ),
        percent(
            "total_pct",
            "total_ns in percent of the column's sum (a share of summed durations, not of the capture); NA "
            "when that is 0",
            title="of GPU sum",
        ),
        ns("mean_ns", "duration of one execution, mean", "float64", title="GPU mean"),
        ns("median_ns", "duration of one execution, median", "float64", title="GPU median"),
        ns(
            "min_ns",
            "duration of one execution, least; NA where only the sum of several is known",
            "Int64",
            title="GPU min",
        ),
        ns("max_ns", "duration of one execution, most; NA as above", "Int64", title="GPU max"),
        ns("std_ns", "sample standard deviation; NA for one execution", "Float64", title="GPU std"),
        count("launch_rows", "executions whose launching host call is in the trace"),
    ),
    "one row per kernel, copy, fill or collective on devices, by name",
)

HOST_GPU = FrameSchema(
    "host_gpu",
    (
        text("measure", "what is measured; `meaning` says it in words"),
        text("domain", "host, gpu, or both", title="time on"),
        count("device", "device index; NA for host rows and where the trace does not say", "Int64"),
        ns(
            "ns",
            "length of a union of intervals; NA when nothing of the sort was collected",
            "Int64",
            title="time",
        ),
        percent("pct", "in percent of the capture's window; NA without a window", title="of window"),
        count("spans", "number of spans behind the row; NA for derived rows", "Int64"),
        text("meaning", "one sentence"),
    ),
    "one row per view of the capture's time, host and GPU side by side",
)

ITERATIONS = FrameSchema(
    "iterations",
    (
        text("of", "the method (its instance, or name), or steps"),
        count(
            "iteration",
            "number of the iteration; counts from 0 within the capture unless the steps carry numbers",
        ),
        count("row", "row of trace.spans"),
        ns("start_ns", "when it began, on the trace's base"),
        ns("dur_ns", "how long it took on the host"),
        count(
            "warmup",
            "whether it is one of the first iterations that took longer than those that followed",
            "bool",
        ),
    ),
    "one row per execution of a method, or per profiler step where there are none",
)

CALL_TREE = FrameSchema(
    "call_tree",
    (
        count("node", "number of the node; parents come before their children"),
        count("parent", "number of the caller's node; -1 for roots"),
        count("depth", "0 for roots"),
        text("name", "name of the calls, or label of the thread"),
        text("kind", "kind of the calls; thread for threads"),
        count("calls", "number of calls"),
        ns(
            "total_ns",
            "time of the calls with everything inside them: host time, or the sum of the durations of device "
            "work (not wall time)",
        ),
        ns("self_ns", "the part of it spent in (or launched by) the calls themselves"),
    ),
    "one row per path of names",
)

FLAME_GRAPH = FrameSchema(
    "flame_graph",
    (
        *CALL_TREE.columns,
        ns(
            "left_ns",
            "left edge of the box, from the left edge of the graph; its width is total_ns; children stand in "
            "order of their time, the longest first",
        ),
        percent("pct", "width in percent of the whole graph", "float64"),
    ),
    "one row per box of a flame graph",
)

FOLDED_STACKS = FrameSchema(
    "folded_stacks",
    (
        text("stack", "names from the root down, joined by `;` (a `;` inside a name becomes `,`)"),
        ns("self_ns", "time of the node itself; nodes without any are left out"),
    ),
    "one row per path of names that has time of its own",
)
