"""What is known of one engine: its layers, tensors, times and the run that was timed.

A trace keeps one `EngineInfo` per engine in ``trace.meta["engines"]``. Layers are also spans of the trace
(kind "layer", timing "aggregate": a sum over calls, with no place on a time axis); column ``span`` of
`LAYERS` says which.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from torchtrt_viz.formats.engine.sums import roll_up, sums
from torchtrt_viz.model.schema import Column, FrameSchema

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BINDINGS", "LAYERS", "ROLES", "EngineInfo", "Tensor"]

ROLES: tuple[str, ...] = (
    "compute",  # does the model's arithmetic
    "reformat",  # changes layout or precision of a tensor
    "shape",  # computes shapes, reshapes or moves no data
    "sync",  # orders work between streams, subgraphs or devices
    "constant",
    "region",  # many operators compiled as one, whose inside the file does not show
    "unknown",  # the file gives only a name
)

LAYERS = FrameSchema(
    "layers",
    (
        Column("name", "string", "name as the file gives it"),
        Column("occurrence", "int32", "how many earlier rows of the engine have the same name", default=0),
        Column("layer", "int32", "position in the engine's own list; -1: only the times name it", default=-1),
        Column("type", "string", "LayerType as the file gives it; NA: only the name is recorded"),
        Column("role", "category", "what sort of layer it is", categories=ROLES, default="unknown"),
        Column("profile", "int32", "optimisation profile that the layer belongs to", default=0),
        Column("precision", "string", "type of the weights, of the first input where there are none"),
        Column("in_dtypes", "string", "types of the inputs, each once, in order"),
        Column("out_dtypes", "string", "types of the outputs, each once, in order"),
        Column("in_shapes", "string", "shapes of the inputs as 1x3x224x224, separated by '; '"),
        Column("out_shapes", "string", "shapes of the outputs"),
        Column("in_bytes", "Int64", "sum over the inputs; NA where a type or dimension is unknown", "byte"),
        Column("out_bytes", "Int64", "sum over the outputs; NA where a type or dimension is unknown", "byte"),
        Column("weights_dtype", "string", "type of the weights; NA none recorded"),
        Column("weights_count", "Int64", "elements of weights and bias; NA none recorded"),
        Column(
            "weights_bytes", "Int64", "weights and bias; NA none recorded or a type that is unknown", "byte"
        ),
        Column("tactic", "string", "kernel that TensorRT chose; NA not recorded"),
        Column("tactic_value", "string", "TensorRT's number of the tactic; NA not recorded"),
        Column("stream", "Int32", "auxiliary stream; NA not recorded (before TensorRT 8.6)"),
        Column("module", "string", "module path that all fused parts have in common; NA none recorded"),
        Column("operators", "object", "tuple of recorded operators (aten targets, ONNX nodes), in order"),
        Column(
            "explanation",
            "string",
            "what can and cannot be known of a fused or opaque layer; NA nothing to say",
        ),
        Column("count", "Int64", "calls that the times sum over; NA not recorded"),
        Column("total_ms", "Float64", "time over all calls; NA not measured", "ms"),
        Column("average_ms", "Float64", "time per call; NA where the number of calls is not recorded", "ms"),
        Column("median_ms", "Float64", "median over the calls; NA not recorded", "ms"),
        Column(
            "percentage",
            "Float64",
            "share of the sum of the timed layers, computed from total_ms: sums to 100 in each engine",
            "%",
        ),
        Column("percentage_recorded", "Float64", "the file's own percentage; NA not recorded", "%"),
        Column("in_graph", "bool", "whether the layer information has the layer", default=False),
        Column("in_profile", "bool", "whether the times have the layer", default=False),
        Column("inputs", "object", "tuple of Tensor"),
        Column("outputs", "object", "tuple of Tensor"),
        Column("attributes", "object", "mapping of what else the file records of the layer"),
        Column("span", "int64", "row of trace.spans; -1: the layer was not timed", default=-1),
    ),
)

BINDINGS = FrameSchema(
    "bindings",
    (
        Column("name", "string", "tensor at the engine's border"),
        Column(
            "direction",
            "category",
            "input or output; missing: cannot be told",
            categories=("input", "output"),
        ),
        Column("dtype", "string", "type of the elements; NA not recorded"),
        Column("shape", "string", "1x3x224x224, -1 for a dynamic dimension; NA not recorded"),
        Column("bytes", "Int64", "size; NA where a type or dimension is unknown", "byte"),
        Column("format", "string", "memory layout as the file gives it; NA not recorded"),
        Column("location", "string", "Device or Host; NA not recorded"),
        Column("min_shape", "string", "smallest shape of optimisation profile 0; NA not recorded"),
        Column("opt_shape", "string", "shape that profile 0 is tuned for; NA not recorded"),
        Column("max_shape", "string", "largest shape of optimisation profile 0; NA not recorded"),
    ),
)


class Tensor(NamedTuple):
    """A tensor that a layer reads or writes."""

    name: str
    shape: tuple[int, ...] | None
    dtype: str | None
    format: str | None
    location: str | None
    bytes: int | None


@dataclass
class EngineInfo:
    """One engine of a trace.

    Attributes
    ----------
    name
        Name as the files give it (file stem, or the engine's name in a Torch-TensorRT trace).
    run_id
        Value of ``spans.run_id`` of its layers: the name, made unique within the trace.
    runtime
        "tensorrt", or "host" for an engine that ran on the CPU; its layers have domain gpu or host.
    producer
        Who wrote the times or the layer information: "trtexec", "torch_tensorrt", "iprofiler" (a user's
        own profiler), "unknown".
    layers
        Frame with the columns of `LAYERS`, in the order of the engine's list; rows that only the times
        name come last.
    bindings
        Frame with the columns of `BINDINGS`.
    count
        Calls that the layers' times sum over; None when the file does not say.
    performance
        Summary of the run: ``latency_ms``, ``end_to_end_ms``, ``enqueue_ms``, ``h2d_ms``,
        ``gpu_compute_ms``, ``d2h_ms`` (mappings of min, max, mean, median, p90 ... to milliseconds),
        ``throughput_qps``, ``host_walltime_s``, ``gpu_compute_s``, ``queries``, ``warmup_queries``,
        ``averages`` (a list: the means of so many ``runs`` each), ``build_s``, ``load_s``; only what is
        recorded: TensorRT 7's enqueue times have no mean.
    timing
        One row per timed inference (the columns of the file, in ms), None without such a file.
    inference_options, build_options, model_options, device
        What the metadata files and the log record.
    other_sections
        Other sections of them, by name (``system_options``, ``reporting_options``, ``versions``), and
        ``layer_information``: what stands beside the layers there.
    verbosity
        "detailed", "layer_names_only", "none", or None when there is no layer information.
    notes
        What a reader of the numbers should know, a sentence each.
    files
        Kind of file -> where it came from.
    """

    name: str
    run_id: str
    layers: pd.DataFrame
    bindings: pd.DataFrame
    runtime: str = "tensorrt"
    producer: str = "unknown"
    count: int | None = None
    performance: dict[str, Any] = field(default_factory=dict)
    timing: pd.DataFrame | None = None
    inference_options: dict[str, Any] = field(default_factory=dict)
    build_options: dict[str, Any] = field(default_factory=dict)
    model_options: dict[str, Any] = field(default_factory=dict)
    device: dict[str, Any] = field(default_factory=dict)
    other_sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    verbosity: str | None = None
    notes: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        timed = int(self.layers["in_profile"].sum())
        return f"<EngineInfo {self.name}: {len(self.layers)} layers, {timed} timed, {self.runtime}>"

    @property
    def domain(self) -> str:
        """Where its layers spent their time: "gpu", or "host" for an engine that ran on the CPU."""
        return "host" if self.runtime == "host" else "gpu"

    def sums(self) -> pd.DataFrame:
        """Layer sum, GPU compute, host latency side by side: `torchtrt_viz.formats.engine.sums.sums`."""
        return sums(self)

    def modules(self, depth: int | None = None) -> pd.DataFrame:
        """Times rolled up by module path: see :func:`torchtrt_viz.formats.engine.sums.roll_up`."""
        return roll_up(self.layers, depth)

    def of_profile(self, profile: int) -> pd.DataFrame:
        """Return the layers of one optimisation profile."""
        return self.layers[self.layers["profile"] == profile]
