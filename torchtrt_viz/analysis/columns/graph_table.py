"""Columns about launches of CUDA and HIP graphs, and what their captures tell of them."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.sorts import DEVICE, count, ns, percent, text
from torchtrt_viz.model.schema import FrameSchema

__all__ = ["GRAPHS"]

GRAPHS = FrameSchema(
    "graphs",
    (
        count("host_row", "row of trace.spans of the launching call"),
        text("launched_by", "its name"),
        text("graph", "the captured graph that it replays; missing: none was found", title="graph"),
        count(
            "batch",
            "batch size of the capture, as its file, its range or a file beside it states; NA unknown",
            "Int64",
        ),
        text(
            "mode", "mode of the capture as the engine calls it (FULL, PIECEWISE, DECODE); missing: unknown"
        ),
        count("step_batch", "batch size that a range around the launch states; NA where none does", "Int64"),
        ns("start_ns", "start of the call on the host, on the trace's base"),
        ns("host_ns", "duration of the call on the host, once for the whole graph", title="host"),
        DEVICE,
        count("kernels", "pieces of device work that the graph ran; 0 when the trace holds none of them"),
        ns("gpu_ns", "sum of their durations (not wall time); NA without any", "Int64", title="GPU sum"),
        ns(
            "gpu_busy_ns", "time in which at least one of them ran; NA without any", "Int64", title="GPU busy"
        ),
        ns(
            "gpu_span_ns",
            "from the first one's start to the last one's end; NA without any",
            "Int64",
            title="GPU span",
        ),
        count(
            "exact",
            "kernels of a launch whose work is, name by name, what was captured, or whose graph node torch "
            "annotated: operator, shapes, module and source line are those of the captured call",
        ),
        count(
            "ordered",
            "kernels whose captured call the order tells, where names do not: the capture lacks names, or "
            "the launch ran nearly the same work",
        ),
        count(
            "by_name",
            "kernels of which only the operator's name is known, and what all calls in question agree on",
        ),
        count("none", "kernels without an operator", title="unmatched"),
        count(
            "ambiguous",
            "of these, kernels that can be of calls of different operators; NA where nothing was compared",
            "Int64",
        ),
        percent(
            "matched_pct", "kernels with an operator, percent of all; NA without kernels", title="matched"
        ),
        percent(
            "matched_gpu_pct",
            "their durations, percent of gpu_ns; NA without kernels",
            title="matched of GPU sum",
        ),
        text("capture", "recording of the capture; missing: none was found"),
        text("note", "why kernels have no operator; missing when all have one"),
    ),
    "one row per launch of a CUDA (or HIP) graph",
)
