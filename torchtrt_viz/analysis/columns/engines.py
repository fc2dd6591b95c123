"""Columns of the tables about delegates and engines."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.sorts import amount, count, ns, percent, rate, text
from torchtrt_viz.model.schema import FrameSchema

__all__ = [
    "DELEGATES",
    "DELEGATE_GAPS",
    "ENGINE_DIFF",
    "ENGINE_LINT",
    "ENGINE_ROOFLINE",
    "LAYERS",
    "LAYER_TYPES",
    "ORCHESTRATION",
    "PHASES",
    "PHASES_BY_CALL",
    "PROVENANCE",
    "REFORMATS",
]

_RUNTIME = text(
    "engine_runtime",
    "what executes the engine: tensorrt, host (the region runs on the CPU), ...; missing: not recorded",
)

DELEGATES = FrameSchema(
    "delegates",
    (
        text("delegate", "the instance (run_id of its spans)"),
        text("backend", "name of the backend; missing: not recorded"),
        text("method", "method of the program that calls it; missing: not recorded"),
        _RUNTIME,
        count("calls", "number of calls"),
        ns("host_total_ns", "host time inside the calls", title="host total"),
        ns("host_mean_ns", "host time of one call, mean", "float64", title="host mean"),
        ns("host_median_ns", "host time of one call, median", "float64", title="host median"),
        ns("host_min_ns", "host time of one call, least", title="host min"),
        ns("host_max_ns", "host time of one call, most", title="host max"),
        percent(
            "host_pct",
            "host time of its calls inside methods in percent of the time of all executions of methods; NA "
            "without such calls",
            title="of host window",
        ),
        ns(
            "phases_ns",
            "part of host_total_ns that lies in recorded phases; NA when none were recorded",
            "Int64",
            title="host, in phases",
        ),
        ns(
            "unattributed_ns",
            "the rest of it; NA when no phases were recorded",
            "Int64",
            title="host, no phase",
        ),
        ns(
            "launch_overhead_ns",
            "part of host_total_ns spent in enqueue phases: the time that the host takes to submit the "
            "work, not the time that the device takes; of an engine that runs on the host, which does its "
            "work there, the measured time of its layers is taken off; NA when not recorded",
            "Int64",
            title="of it launch overhead (host)",
        ),
        ns(
            "layers_ns",
            "sum of the times of its layers, on layers_domain; NA when not recorded",
            "Int64",
            title="layers",
        ),
        text(
            "layers_domain",
            "where the layers' time was spent: host, gpu or mixed; missing: none",
            title="layers on",
        ),
        ns(
            "gpu_ns",
            "sum of its measured device time other than layers, never part of a host column; NA when not "
            "recorded",
            "Int64",
            title="GPU time",
        ),
        text(
            "op_types",
            "operators of the exported graph that the region holds, with their number; missing: no ETRecord",
        ),
    ),
    "one row per delegate instance: which ran, how often, what its calls cost the host",
)

PHASES = FrameSchema(
    "phases",
    (
        text("delegate", "the instance (run_id of its spans)"),
        text("phase", "name of the phase; `(outside its phases)` for the rest"),
        text(
            "role",
            "what the phase does, in words; an enqueue is launch overhead, the time that the host takes to "
            "submit work, and only where the engine runs on the host is it the work itself",
        ),
        text("domain", "always host", title="time on"),
        count("calls", "how often the phase ran"),
        ns("total_ns", "host time"),
        ns("mean_ns", "host time of one occurrence; of the rest, per call of the delegate", "float64"),
        ns("median_ns", "host time of one occurrence, median; NA for the rest", "Float64"),
        ns("min_ns", "host time of one occurrence, least; NA for the rest", "Int64"),
        ns("max_ns", "host time of one occurrence, most; NA for the rest", "Int64"),
        percent(
            "pct",
            "total_ns in percent of the delegate's host time; where its calls were not recorded, of the sum "
            "of its phases",
            title="of delegate",
        ),
    ),
    "one row per delegate and phase of its calls",
)

PHASES_BY_CALL = FrameSchema(
    "phases_by_call",
    (
        text("delegate", "the instance (run_id of its spans)"),
        count("call", "number of the call among the delegate's, in the order of time, from 0"),
        count("call_row", "row of trace.spans of the call"),
        text("phase", "name of the phase; `(outside its phases)` for the rest"),
        ns("dur_ns", "host time of the phase in this call"),
        ns("call_dur_ns", "host time of the call"),
    ),
    "one row per call of a delegate and phase of it",
)

LAYERS = FrameSchema(
    "layers",
    (
        text("engine", "engine or delegate that the layer belongs to (run_id)"),
        count(
            "position", "place in the engine, from 0: in its description, or in order of execution", "Int64"
        ),
        text(
            "name",
            "name as recorded; a layer is not claimed to be an operator of the model unless that was "
            "recorded",
        ),
        count("calls", "executions that the times sum over; NA: not recorded", "Int64"),
        ns("total_ns", "time over all calls, in `domain`; NA: not timed", "Int64"),
        ns("mean_ns", "total_ns per call; NA where the number of calls is not recorded", "Float64"),
        ns("median_ns", "median over the calls; NA: not recorded", "Float64"),
        percent(
            "pct",
            "total_ns in percent of the engine's timed layers: sums to 100 in each engine, or is NA; a "
            "share of the layers' sum, not of the engine's latency",
            title="of engine",
        ),
        text(
            "timing",
            "measured (each execution has a start and an end), modeled (real durations at places that are "
            "not real), aggregate (sums only: no place on a time axis), ticks (numbers of unknown unit, in "
            "trace.spans: the times here are NA); missing: not timed",
        ),
        text(
            "domain",
            "where the time was spent: gpu, or host for an engine that ran on the CPU; missing: unknown",
            title="time on",
        ),
        _RUNTIME,
        text("type", "type of the layer, from the engine's description; missing without one"),
        text(
            "role",
            "compute, reformat, shape, sync, constant, region or unknown; missing without a description",
        ),
        text("precision", "type of the weights, of the first input where there are none"),
        text("tactic", "kernel that TensorRT chose; missing: not recorded"),
        text("module", "module path that all fused parts have in common; missing: none recorded"),
        text("in_shapes", "shapes of the inputs as 1x3x224x224, separated by '; '"),
        text("out_shapes", "shapes of the outputs"),
        amount("in_bytes", "inputs of one call; NA where a type or dimension is unknown"),
        amount("out_bytes", "outputs of one call; NA where a type or dimension is unknown"),
        amount("weights_bytes", "weights and bias; NA: none recorded, or a type that is unknown"),
        text(
            "explanation", "what can and cannot be known of a fused or opaque layer; missing: nothing to say"
        ),
    ),
    "one row per layer of an engine, with its times and what the files say of it",
)

LAYER_TYPES = FrameSchema(
    "layer_types",
    (
        text("engine", "engine or delegate, as in layers"),
        text("type", "type of the layers, from the engine's description"),
        text("precision", "type of the weights, of the first input where there are none; missing: unknown"),
        text("domain", "where the time was spent: gpu, or host; missing: unknown", title="time on"),
        count("layers", "layers of the sort"),
        count("timed", "of these, layers whose time is known"),
        ns("total_ns", "their time over all calls, in `domain`; NA: none is timed", "Int64"),
        percent("pct", "total_ns in percent of the engine's timed layers; NA as above", title="of engine"),
        amount("weights_bytes", "weights and bias of the layers that record them; NA: none does"),
    ),
    "one row per engine, type and precision of its layers",
)

DELEGATE_GAPS = FrameSchema(
    "delegate_gaps",
    (
        text("after", "delegate before the gap; `(start)` at the start of the method"),
        text("before", "delegate after the gap; `(end)` at the end of the method"),
        count(
            "method_row", "row of trace.spans of the method's execution; NA for calls outside any", "Int64"
        ),
        count("iteration", "iteration of the execution; NA unknown", "Int32"),
        ns("start_ns", "when the gap began, on the trace's base"),
        ns("dur_ns", "its length on the host"),
        ns("operators_ns", "the part in which operators ran on the host"),
        ns("other_ns", "the rest: the runtime's orchestration"),
        ns(
            "gpu_copy_ns",
            "time within the gap in which a device copied or filled memory: the device's time, overlapping "
            "the host's; NA without device work in the trace",
            "Int64",
        ),
    ),
    "one row per stretch between delegate calls on one thread, within one execution",
)

ORCHESTRATION = FrameSchema(
    "orchestration",
    (
        text("part", "delegates, operators (outside delegates), orchestration (neither)"),
        text("domain", "always host"),
        ns("total_ns", "host time over all executions; the parts sum to the methods' time"),
        ns("mean_ns", "host time per execution", "float64"),
        percent("pct", "in percent of the methods' time"),
    ),
    "three rows: what executions of methods spent in delegates, in operators and in neither",
)

PROVENANCE = FrameSchema(
    "provenance",
    (
        text("of", "what the events are: delegate calls, layers, operators"),
        text("what", "what is asked for: graph operators, module paths, source lines"),
        count("events", "different events (by name and instance)"),
        count("known", "of these, with the answer recorded"),
        text("example", "one answer; missing without any"),
    ),
    "one row per sort of event and sort of origin: how many lead back to the model",
)

ENGINE_ROOFLINE = FrameSchema(
    "engine_roofline",
    (
        text("engine", "as in layers"),
        count("position", "as in layers", "Int64"),
        text("name", "as in layers"),
        text("type", "as in layers"),
        text("precision", "as in layers"),
        ns("mean_ns", "time of one call, on `domain`; NA where it is not known", "Float64"),
        text("domain", "gpu or host"),
        count(
            "macs",
            "multiply-adds of one call, from the shapes; NA for layers without any and for dynamic shapes",
            "Int64",
        ),
        amount(
            "bytes", "inputs, outputs and weights of one call, each moved once; NA where a size is unknown"
        ),
        rate("intensity", "operations (two per multiply-add) per byte; NA as above", "operation/byte"),
        rate("tflops", "operations reached; NA as above", "10^12 operation/s"),
        rate("gbps", "bandwidth reached; NA as above"),
        count(
            "tensor_cores",
            "whether the kernel runs on tensor cores, by its name; NA where that does not tell",
            "boolean",
        ),
        text("bound", "compute or memory: the lower of the roofs; missing without a device"),
        rate("roof_tflops", "the lower roof; NA without a device", "10^12 operation/s"),
        percent(
            "efficiency_pct",
            "what was reached in percent of the lower roof; for layers without multiplications of the memory "
            "bandwidth; NA without a device",
        ),
    ),
    "one row per layer of a described engine, against a device's limits",
)

REFORMATS = FrameSchema(
    "reformats",
    (
        text("engine", "the layer's engine"),
        count("position", "its place in the engine"),
        text("name", "its name"),
        text("converts", "precision, layout, precision and layout, or unknown"),
        text("origin", "why TensorRT put it there, as recorded (QDQ, REFORMAT); missing: not recorded"),
        text("from", "precision and layout before it; missing: not recorded"),
        text("to", "precision and layout after it; missing: not recorded"),
        amount("bytes", "read and written by one call; NA where a size is unknown"),
        ns("mean_ns", "time of one call, on the engine's domain; NA: not timed", "Float64"),
        percent("pct", "share of the engine's timed layers; NA: not timed"),
        text("serves", "operators of the layer that it converts for, as recorded; missing: none"),
    ),
    "one row per layer that only converts layout or precision",
)

ENGINE_LINT = FrameSchema(
    "engine_lint",
    (
        text("engine", "the engine"),
        count("position", "place of the layer in it; NA for findings about the whole engine", "Int64"),
        text("layer", "name of the layer"),
        text(
            "rule",
            "tensor cores, alignment, mixed precision, conversion, loose quantisation, strided slice, "
            "opaque region or no names",
        ),
        text("finding", "what is wrong, with the facts"),
        text("remedy", "what can be done"),
        ns(
            "mean_ns",
            "time of one call of the layer, which is the time at stake, not the time to be won; NA: not "
            "timed",
            "Float64",
        ),
        percent("pct", "share of the engine's timed layers; NA: not timed"),
    ),
    "one row per thing that makes an engine slow, by engine, then time at stake",
)

ENGINE_DIFF = FrameSchema(
    "engine_diff",
    (
        text("a", 'layers of the first engine, several joined by " | "; missing: none corresponds'),
        text("b", 'layers of the second engine, several joined by " | "; missing: none corresponds'),
        text("matched_by", "operators, name, place, or missing"),
        text(
            "status",
            "same, changed (precision, tactic, type or shapes differ), fused, split, added or removed",
        ),
        text("changes", "what differs, in words; missing when nothing does"),
        ns("a_ns", "time of one call in the first; NA where it is not known", "Float64"),
        ns("b_ns", "time of one call in the second; NA where it is not known", "Float64"),
        ns(
            "delta_ns",
            "b_ns - a_ns; a layer that is not there counts as 0; NA where a time is not known",
            "Float64",
        ),
        rate("speedup", "a_ns / b_ns: above 1 is faster in the second; NA where a time is missing or 0", ""),
        count("a_position", "place of the first layer in the first engine; NA for added layers", "Int64"),
    ),
    "one row per layer, or layers that correspond, of two engines",
)
