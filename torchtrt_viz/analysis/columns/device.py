"""Columns of what devices did: time by class of work, launches, queues, gaps, the critical path."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.sorts import DEVICE, STREAM, amount, count, ns, number, percent, rate, text
from torchtrt_viz.model.schema import Column, FrameSchema

__all__ = [
    "BLOCKED_ON_FULL_QUEUE",
    "COLLECTIVES",
    "COPIES",
    "COPY_BANDWIDTH",
    "CRITICAL_PATH",
    "CRITICAL_PATH_SUMMARY",
    "DEVICE_ROOFS",
    "GRAPH_LAUNCHES",
    "IDLE_CAUSES",
    "IDLE_GAPS",
    "KERNEL_METRICS",
    "KERNEL_TYPES",
    "LAUNCHED_WORK",
    "LAUNCH_DELAYS",
    "LAUNCH_DELAY_HISTOGRAM",
    "LAUNCH_STATS",
    "NVTX",
    "OPERATOR_ROOFLINE",
    "OVERLAP",
    "QUEUE_LENGTH",
    "QUEUE_SUMMARY",
    "TEMPORAL_BREAKDOWN",
]

_WHOLE = count(
    "device", "device index; NA where the trace does not say, or for all devices together", "Int64"
)
_GAP_STREAM = text("stream", 'label of the stream; missing for level="device"')
_CAUSE = (
    "host wait: the work that ended the gap was launched only after the gap began, the host did not keep the "
    "device fed; kernel wait: it was launched in time, and the gap is shorter than `kernel_wait_ns`; other: "
    "launched in time, yet the gap is longer (it waited for an event, another stream, memory, ...); unknown: "
    "its launch is not in the trace"
)
_SEGMENT = (
    "host, launch delay, compute, communication, copy, fill, kernel gap, unexplained gap, stream wait, "
    "synchronisation or host idle"
)
_WAITED_FOR = "host or gpu: who was being waited for; a launch delay and a gap belong to the gpu"

TEMPORAL_BREAKDOWN = FrameSchema(
    "temporal_breakdown",
    (
        _WHOLE,
        ns("span_ns", "from the first start to the last end of device work", "Int64"),
        ns("busy_ns", "time with device work", "Int64"),
        ns("idle_ns", "time without device work; with busy_ns it makes span_ns", "Int64"),
        ns("compute_ns", "time in which at least one compute kernel ran", "Int64"),
        ns(
            "communication_ns",
            "time in which at least one collective or point-to-point transfer ran",
            "Int64",
        ),
        ns("copy_ns", "time in which at least one copy or fill ran", "Int64"),
        ns("exposed_communication_ns", "communication while nothing was computed", "Int64"),
        ns("exposed_copy_ns", "copies and fills while nothing was computed or communicated", "Int64"),
        ns("overlapped_communication_ns", "communication hidden under computation", "Int64"),
        ns(
            "non_compute_ns",
            "busy without computing: exposed_communication_ns + exposed_copy_ns",
            "Int64",
        ),
        percent(
            "compute_pct",
            "compute_ns in percent of span_ns; the four shares sum to 100; NA when the span is 0",
        ),
        percent("exposed_communication_pct", "exposed_communication_ns in percent of span_ns"),
        percent("exposed_copy_pct", "exposed_copy_ns in percent of span_ns"),
        percent("idle_pct", "idle_ns in percent of span_ns"),
        count("kernels", "pieces of device work", "Int64"),
    ),
    "one row per device, its time divided into compute, communication, copies and idle",
)

OVERLAP = FrameSchema(
    "overlap",
    (
        DEVICE,
        ns("communication_ns", "time in which something was communicated", "Int64"),
        ns("overlapped_ns", "the part of it in which something was computed as well", "Int64"),
        ns("exposed_ns", "the rest", "Int64"),
        percent("overlap_pct", "overlapped_ns in percent of communication_ns; NA without communication"),
    ),
    "one row per device: communication hidden under computation",
)

KERNEL_TYPES = FrameSchema(
    "kernel_types",
    (
        DEVICE,
        text("classes", 'classes of work that ran at the same time, joined by " + "'),
        ns("ns", "time with exactly these"),
        percent("pct", "in percent of the device's busy time"),
    ),
    "one row per device and set of classes that ran together",
)

IDLE_GAPS = FrameSchema(
    "idle_gaps",
    (
        DEVICE,
        _GAP_STREAM,
        ns("start_ns", "when the gap began, on the trace's base"),
        ns("dur_ns", "how long it was"),
        Column("cause", "category", _CAUSE),
        count("next_row", "row of trace.spans of the work that ended the gap"),
        count("launch_row", "row of the host span that launched it; NA unknown", "Int64"),
    ),
    "one row per gap between pieces of device work, with its cause",
)

IDLE_CAUSES = FrameSchema(
    "idle_causes",
    (
        DEVICE,
        _GAP_STREAM,
        text("cause", "host wait, kernel wait, other or unknown, as idle_gaps says"),
        count("gaps", "number of gaps"),
        ns("idle_ns", "their total length"),
        percent("idle_pct", "in percent of the stream's (or device's) idle time"),
        ns("median_ns", "length of a gap, median", "float64"),
        ns("max_ns", "length of a gap, most"),
    ),
    "one row per stream (or device) and cause of idle time",
)

LAUNCH_DELAYS = FrameSchema(
    "launch_delays",
    (
        count("row", "row of trace.spans of the device work, of several pieces the first to start"),
        count("host_row", "row of trace.spans of the call that launched it"),
        Column("name", "category", "name of the device work; missing: several pieces (a graph)"),
        Column(
            "class", "category", "compute, communication, copy or fill; missing: pieces of several classes"
        ),
        Column("launched_by", "category", "name of the host call"),
        Column("operator", "category", "innermost operator around the call; missing: none was recorded"),
        count("pieces", "pieces of device work that the call launched"),
        ns("host_ns", "duration of the call on the host (launch overhead, not device time)"),
        ns("device_ns", "duration of the work on the device; the sum of the durations of several pieces"),
        ns(
            "delay_ns",
            "from the end of the call to the start of the (first piece of) work; negative when the work "
            "began before the call returned",
        ),
        ns(
            "queued_ns",
            "from the start of the call to the start of the work; negative only when the two clocks are not "
            "aligned",
        ),
        count("graph", "whether the call launched a whole graph (one call, many pieces of work)", "bool"),
    ),
    "one row per call that launched device work of the trace",
)

LAUNCH_DELAY_HISTOGRAM = FrameSchema(
    "launch_delay_histogram",
    (
        text("class", "class of the work; missing: pieces of several classes (a graph)"),
        ns("from_ns", "least delay of the range, in it; NA: the work began before its call did", "Int64"),
        ns("to_ns", "end of the range, not in it; NA as above", "Int64"),
        count("launches", "calls whose work waited so long"),
        ns("queued_ns", "their delays, from the start of a call to the start of its work, summed"),
    ),
    "one row per class of work and range of launch delays",
)

LAUNCHED_WORK = FrameSchema(
    "launched_work",
    (
        count("row", "row of trace.spans of the piece of device work"),
        Column("name", "category", "name of the work"),
        count("host_row", "row of trace.spans of the call that launched it; missing: unknown", "Int64"),
        Column("launched_by", "category", "name of that call"),
        count(
            "operator_row", "row of trace.spans of the operator that launched it; missing: unknown", "Int64"
        ),
        Column("operator", "category", "name of that operator"),
        ns("queued_ns", "from the start of the call to the start of the work", "Int64"),
        count(
            "ahead",
            "pieces of work of the same stream that were launched before it and had not begun when it was",
            "Int64",
        ),
    ),
    "one row per piece of device work",
)

LAUNCH_STATS = FrameSchema(
    "launch_stats",
    (
        text(
            "launched_by",
            'name of the host call; with by="name" or by="class" the column has that name instead',
        ),
        count("calls", "launching calls: a graph is launched by one"),
        count("pieces", "pieces of device work that they launched"),
        ns("host_mean_ns", "duration of the launching call on the host, mean", "float64"),
        ns("host_p99_ns", "duration of the launching call on the host, 99th percentile", "float64"),
        ns("device_mean_ns", "duration of a call's work, mean (of several pieces the sum)", "float64"),
        ns("delay_median_ns", "from the end of the call to the start of the work, median", "float64"),
        ns("delay_p90_ns", "from the end of the call to the start of the work, 90th percentile", "float64"),
        ns("delay_p99_ns", "from the end of the call to the start of the work, 99th percentile", "float64"),
        ns("delay_max_ns", "from the end of the call to the start of the work, most"),
        count("short", "calls whose work took less time than they did"),
        percent("short_pct", "in percent of calls"),
        count("early", "calls whose work began before they did (clocks that are not aligned)"),
    ),
    "one row per launching call, kernel or class of work",
)

GRAPH_LAUNCHES = FrameSchema(
    "graph_launches",
    (
        count("host_row", "row of trace.spans of the launching call"),
        text("launched_by", "its name"),
        ns("start_ns", "start of the call on the host, on the trace's base"),
        ns("host_ns", "duration of the call on the host"),
        DEVICE,
        count("kernels", "pieces of device work that the graph ran; 0 when the trace holds none of them"),
        ns("device_start_ns", "start of the first piece, on the trace's base; NA without kernels", "Int64"),
        ns(
            "device_span_ns",
            "from the first piece's start to the last one's end; NA without kernels",
            "Int64",
        ),
        ns("device_busy_ns", "time in which at least one piece ran; NA without kernels", "Int64"),
        ns("device_sum_ns", "sum of durations (not wall time); NA without kernels", "Int64"),
        ns("delay_ns", "from the end of the call to the first piece; NA without kernels", "Int64"),
    ),
    "one row per launch of a CUDA (or HIP) graph",
)

NVTX = FrameSchema(
    "nvtx",
    (
        count("row", "row of trace.spans of the range"),
        Column("name", "category", "name of the range"),
        text("domain", "NVTX domain; missing: the default one, or the format has no domains"),
        text("track", "label of the track that the range lies on"),
        count("parent", "row of trace.spans of the range around it on its thread; NA none", "Int64"),
        ns("start_ns", "start on the host, on the trace's base"),
        ns("dur_ns", "duration on the host"),
        count("launches", "calls inside the range that launched device work of the trace"),
        count("pieces", "pieces of device work that they launched"),
        count("device", "device of the first piece; NA where the trace does not say", "Int64"),
        ns("device_start_ns", "start of the first piece, on the trace's base; NA without pieces", "Int64"),
        ns(
            "device_span_ns",
            "from the first piece's start to the last one's end: the range as it is seen on the device; NA "
            "without pieces",
            "Int64",
        ),
        ns("device_busy_ns", "time of that in which at least one piece ran; NA without pieces", "Int64"),
        ns("device_sum_ns", "sum of the pieces' durations (not wall time); NA without pieces", "Int64"),
    ),
    "one row per range that the program or a library named",
)

KERNEL_METRICS = FrameSchema(
    "kernel_metrics",
    (
        Column("name", "category", "name of the kernel, as the page has it"),
        count("row", "row of trace.spans of the kernel; NA where it is none, or one of several", "Int64"),
        Column(
            "match",
            "category",
            "how the row was found: exact (name, grid and block, the only such launch), ordered (as many "
            "such launches on both sides, in order), by_name (same name, other or unknown sizes or numbers: "
            "no row unless there is only one), none; missing for the page's own kernels",
        ),
        count("candidates", "kernels of the trace that fit as well as this row; 0 none", "Int64"),
        count("launch", "number of the kernel in the page, from 0"),
        Column("section", "category", "section of the details page; missing: none"),
        Column("metric", "category", "name of the metric"),
        Column("unit", "category", "unit of the value; missing: none"),
        number("value", "value; NA where it is no number", "Float64"),
        text("text", "value as the page has it"),
    ),
    "one row per metric of a kernel that Nsight Compute profiled",
)

QUEUE_LENGTH = FrameSchema(
    "queue_length",
    (
        DEVICE,
        STREAM,
        count("track", "row of trace.tracks of the stream"),
        ns("ts_ns", "time of the change, on the trace's base; rows are ordered by stream, then time"),
        count("length", "launches that wait from this time on"),
    ),
    "one row per change of the number of launches that wait on a stream",
)

QUEUE_SUMMARY = FrameSchema(
    "queue_summary",
    (
        DEVICE,
        STREAM,
        count("launches", "launches counted"),
        number("mean", "length over time, between the stream's first launch and its last start, mean"),
        number("median", "length over that time, median"),
        number("p95", "length over that time, 95th percentile"),
        count("max", "longest queue"),
        percent("empty_pct", "share of that time in which nothing waited"),
    ),
    "one row per stream: how much work waited",
)

BLOCKED_ON_FULL_QUEUE = FrameSchema(
    "blocked_on_full_queue",
    (
        DEVICE,
        STREAM,
        ns("full_ns", "time with `limit` or more launches waiting"),
        percent(
            "full_pct", "in percent of the capture's length (first start to last end of everything measured)"
        ),
    ),
    "one row per stream with launches: time in which its queue was full",
)

CRITICAL_PATH = FrameSchema(
    "critical_path",
    (
        Column("segment", "category", _SEGMENT),
        text("domain", _WAITED_FOR),
        text("name", "kernel, synchronising call, or thread"),
        count("row", "row of trace.spans of the kernel or call; NA for stretches of a thread", "Int64"),
        count("track", "row of trace.tracks; NA when no thread was busy", "Int64"),
        ns("start_ns", "start on the trace's base"),
        ns("dur_ns", "length; the lengths sum to that of the whole stretch"),
        count(
            "presumed",
            "True where the trace does not record the dependency and the path follows the most likely one",
            "bool",
        ),
    ),
    "one row per piece of the critical path, in order of time; each begins where the one before ended",
)

CRITICAL_PATH_SUMMARY = FrameSchema(
    "critical_path_summary",
    (
        text("segment", _SEGMENT),
        text("domain", _WAITED_FOR),
        text(
            "name",
            "kernel or synchronising call; of host stretches the innermost span of the thread at that time; "
            'missing: none was running, or by="segment"',
        ),
        count("pieces", "pieces of the path"),
        ns("total_ns", "their length"),
        percent("pct", "in percent of the path"),
    ),
    "one row per segment and name on the critical path, the longest first",
)

COPIES = FrameSchema(
    "copies",
    (
        DEVICE,
        text("direction", "host to device, device to host, device to device, peer to peer, fill or unknown"),
        text("name", "name of the copy, which tells pageable from pinned memory"),
        count("calls", "number of copies"),
        amount("bytes", "moved by those whose size is recorded; NA when none is"),
        count("sized_calls", "copies whose size is recorded"),
        ns("total_ns", "sum of durations on the device (not wall time)"),
        ns("busy_ns", "time in which at least one of them ran"),
        ns("mean_ns", "duration of one copy", "float64"),
        rate("gbps", "bytes per summed duration of the sized copies; NA without sizes"),
    ),
    "one row per device, direction and name of copies and fills",
)

COPY_BANDWIDTH = FrameSchema(
    "copy_bandwidth",
    (
        DEVICE,
        text("direction", "as in copies"),
        ns("ts_ns", "time of the change, on the trace's base"),
        Column(
            "gbps", "float64", "bandwidth from this time on; exactly 0 when nothing is copied", "10^9 byte/s"
        ),
    ),
    "one row per change of the bandwidth of copies, per device and direction",
)

COLLECTIVES = FrameSchema(
    "collectives",
    (
        count("row", "row of trace.spans"),
        DEVICE,
        STREAM,
        text("kernel", "name of the kernel"),
        text(
            "collective", "all_reduce, all_gather, ..., by the recorded name, else by the kernel's; unknown"
        ),
        text("group", "process group as recorded; missing: not recorded"),
        count("group_size", "ranks of the group as recorded; NA: not recorded", "Int64"),
        text("group_ranks", "their numbers as recorded; missing: not recorded"),
        count("sequence", "how many collectives ran in this group before"),
        text("dtype", "element type; missing: not recorded"),
        amount(
            "message_bytes",
            "size of the message (all_gather: the output; others: the input); NA: not recorded",
        ),
        ns("start_ns", "start on the trace's base"),
        ns("dur_ns", "duration on the device, the wait for other ranks included"),
        rate("algorithm_gbps", "message_bytes per duration, a lower bound; NA without a size"),
        rate(
            "bus_gbps",
            "the same times the traffic of a ring per message byte (2 (n-1)/n for all_reduce), comparable "
            "with a link's bandwidth, a lower bound; NA where it is not defined",
        ),
    ),
    "one row per collective or point-to-point transfer on a device, in order of start",
)

OPERATOR_ROOFLINE = FrameSchema(
    "operator_roofline",
    (
        text("name", "operator"),
        text("family", "gemm, convolution or attention"),
        text("shape", "input dimensions as recorded; missing: not recorded"),
        text("dtype", "element type as recorded; missing: not recorded"),
        count("calls", "number of calls"),
        text(
            "domain",
            "where time_ns was spent: gpu (the work that the calls launched), or host when the trace holds "
            "no device work",
        ),
        ns(
            "time_ns",
            "on the GPU the sum of the durations of the calls' kernels (not wall time), on the host the "
            "inclusive time of the calls; NA when kernels cannot be linked to the calls",
            "Int64",
        ),
        count("flops", "operations of one call; NA where too little was recorded", "Int64"),
        amount("bytes", "bytes of one call; NA where too little was recorded"),
        rate("intensity", "operations per byte; NA as above", "operation/byte"),
        rate("tflops", "operations reached; NA as above", "10^12 operation/s"),
        rate("gbps", "bandwidth reached; NA as above"),
        text("bound", "compute or memory: which roof lies lower at this intensity; missing without a device"),
        rate(
            "roof_tflops",
            "the lower of the two roofs; NA without a device or a limit for the type",
            "10^12 operation/s",
        ),
        percent("efficiency_pct", "tflops in percent of roof_tflops; NA as above"),
    ),
    "one row per operator with known shapes, against a device's roof",
)

DEVICE_ROOFS = FrameSchema(
    "device_roofs",
    (
        text("device", "name of the device"),
        text("precision", "fp64, fp32, tf32, fp16, bf16, fp8, int8 or fp4"),
        rate("tflops", "most operations, dense, as the maker states", "10^12 operation/s"),
        rate("gbps", "memory bandwidth, as the maker states"),
        rate("ridge", "intensity from which arithmetic is the limit: tflops over gbps", "operation/byte"),
    ),
    "one row per precision: what a device can do at best",
)
