"""What the layers of an engine have to do, and how near they come to the device's limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.engines import ENGINE_ROOFLINE
from torchtrt_viz.analysis.core.tables import floats, integers, order, records, text
from torchtrt_viz.analysis.device.device_specs import Device, device_of, find_device
from torchtrt_viz.analysis.engine.engine_facts import engine_infos
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["engine_roofline", "multiplications", "uses_tensor_cores"]

Shape = tuple[int, ...]

_TENSOR = re.compile(
    r"tensor\d|tensorop|_hmma|_imma|HMMA|IMMA|_tf32|i8i8|i8f\d+_i8|f8f8|s1688|s16816|i16832|h16816"
)
_SCALAR = re.compile(r"simt|f32f32_f32f32|scudnn|gemvx|_ffma|sgemm|depthwiseFP32|wngd_f32f32_f32_f32")
_PRECISIONS = {"FP64": "fp64", "FP32": "fp32", "TF32": "tf32", "FP16": "fp16", "BF16": "bf16", "FP8": "fp8",
               "INT8": "int8", "FP4": "fp4"}  # fmt: skip


def uses_tensor_cores(tactic: object) -> bool | None:
    """Say by the kernel's name whether a layer runs on tensor cores; None where the name does not tell."""
    if not isinstance(tactic, str):
        return None
    if _SCALAR.search(tactic):
        return False
    return True if _TENSOR.search(tactic) else None


def multiplications(row: Any) -> int | None:
    """Return the multiply-adds of one call of a layer, from the recorded shapes; None where they do not tell.

    ``row`` is a row of :data:`torchtrt_viz.formats.engine.info.LAYERS`. Convolutions and matrix products have
    them; of other layers None is returned, not 0.
    """
    attributes = convolution_facts(row)
    inputs = [_known(tensor.shape) for tensor in row.inputs or ()]
    outputs = [_known(tensor.shape) for tensor in row.outputs or ()]
    kind = "" if pd.isna(row.type) else str(row.type)
    if "Conv" in kind or attributes.get("ParameterType") == "Convolution":
        return _convolution(attributes, inputs, outputs)
    if (
        "gemm" in kind.lower()
        or "MatrixMultiply" in kind
        or attributes.get("ParameterType") == "MatrixMultiply"
    ):
        return _matrix_product(attributes, inputs, outputs)
    return None


def convolution_facts(row: Any) -> Mapping[str, Any]:
    """Return a layer's attributes; of a convolution fused with a pooling those of the convolution."""
    attributes = row.attributes if isinstance(row.attributes, Mapping) else {}
    if "ConvKernel" not in attributes:
        return attributes
    own = {key[4:]: value for key, value in attributes.items() if key.startswith("Conv")}
    return {**attributes, **own}


def _known(shape: Any) -> Shape | None:
    if shape is None or any(not isinstance(size, int) or size < 0 for size in shape):
        return None
    return tuple(shape)


def _convolution(
    attributes: Mapping[str, Any], inputs: list[Shape | None], outputs: list[Shape | None]
) -> int | None:
    kernel, groups = attributes.get("Kernel"), attributes.get("Groups", 1)
    if not inputs or not outputs or not isinstance(kernel, list) or not isinstance(groups, int) or groups < 1:
        return None
    x, y = inputs[0], outputs[0]
    if x is None or y is None or len(x) != len(kernel) + 2 or len(y) != len(x):
        return None
    if not all(isinstance(size, int) and size > 0 for size in kernel):
        return None
    if attributes.get("ParameterType") == "Deconvolution":
        return prod(x) * (y[1] // groups) * prod(kernel)
    # a fused pooling shrinks the output that is recorded: the convolution's own follows from its strides
    space = _convolved(attributes, x, kernel) or y[2:]
    maps = attributes.get("OutMaps", y[1])
    if not isinstance(maps, int):
        return None
    return x[0] * maps * prod(space) * (x[1] // groups) * prod(kernel)


def _convolved(attributes: Mapping[str, Any], x: Shape, kernel: list[int]) -> Shape | None:
    dims = len(kernel)
    lists = [attributes.get(name) for name in ("Stride", "PrePadding", "PostPadding", "Dilation")]
    if not all(isinstance(v, list) and len(v) == dims and all(isinstance(i, int) for i in v) for v in lists):
        return None
    stride, before, behind, dilation = lists
    out = tuple(
        (size + b + a - d * (k - 1) - 1) // s + 1
        for size, k, s, b, a, d in zip(x[2:], kernel, stride, before, behind, dilation, strict=True)  # type: ignore[arg-type]
        if s > 0
    )
    return out if len(out) == dims and all(size > 0 for size in out) else None


def _matrix_product(
    attributes: Mapping[str, Any], inputs: list[Shape | None], outputs: list[Shape | None]
) -> int | None:
    if not inputs or not outputs or inputs[0] is None or outputs[0] is None:
        return None
    a, out = inputs[0], outputs[0]
    if len(a) < 2 or len(out) < 2:
        return None
    rows, columns = out[-2], out[-1]
    # the inner dimension is the one of a's last two that is not the output's rows
    inner = a[-2] if "TRANSPOSE" in str(attributes.get("OpA", "")).upper() else a[-1]
    b = inputs[1] if len(inputs) > 1 else None
    if b is not None and len(b) >= 2 and inner not in b[-2:]:
        return None
    return prod(out[:-2]) * rows * columns * inner


@returns(ENGINE_ROOFLINE)
def engine_roofline(
    trace: TraceData,
    *,
    device: Device | str | None = None,
    sort: str | None = "mean_ns",
    top: int | None = None,
) -> pd.DataFrame:
    """Layers of engines against the limits of a device.

    Parameters
    ----------
    device
        A known device's name, or a `Device`; None: the one that the files name, if it is known.
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`.

    Returns
    -------
    pandas.DataFrame
        One row per layer of a described engine, against a device's limits.

        Only engines whose description is in the trace have rows.

    Examples
    --------
    >>> engines = tv.load(samples / "trex")
    >>> tv.analysis.engine_roofline(engines, device="A100")["engine"].unique().tolist()
    ['region_000', 'region_001']
    """
    roof = device_of(trace) if device is None else find_device(device)
    timed = layers(trace, sort=None)
    parts = []
    for run_id, info in engine_infos(trace).items():
        mine = timed[timed["engine"] == run_id].head(len(info.layers)).reset_index(drop=True)
        parts.append(_rows(mine, info.layers.reset_index(drop=True), roof))
    if not parts:
        parts.append(_rows(timed.head(0), pd.DataFrame(), roof))
    return order(pd.concat(parts, ignore_index=True), sort, top, ("engine", "position"))


def _rows(timed: pd.DataFrame, table: pd.DataFrame, roof: Device | None) -> pd.DataFrame:
    rows = list(records(table))
    macs = [multiplications(row) for row in rows]
    moved = [_bytes(row) for row in rows]
    cores = [uses_tensor_cores(None if pd.isna(row.tactic) else row.tactic) for row in rows]
    mean = timed["mean_ns"].to_numpy(dtype=np.float64, na_value=np.nan)
    operations = np.array([np.nan if value is None else 2.0 * value for value in macs])
    size = np.array([np.nan if value is None else float(value) for value in moved])
    with np.errstate(invalid="ignore", divide="ignore"):
        intensity = np.where(size > 0, operations / size, np.nan)
        reached = np.where(mean > 0, operations / mean / 1e3, np.nan)  # per ns are 10^9 per s
        traffic = np.where(mean > 0, size / mean, np.nan)
    limits = np.full(len(rows), np.nan)
    bound: list[str | None] = [None] * len(rows)
    efficiency = np.full(len(rows), np.nan)
    if roof is not None:
        for at, row in enumerate(rows):
            peak = _peak(roof, row, cores[at])
            if np.isnan(operations[at]):
                if not np.isnan(traffic[at]):
                    bound[at], efficiency[at] = "memory", 100.0 * traffic[at] / roof.bandwidth_gbps
                continue
            if peak is None or np.isnan(intensity[at]):
                continue
            memory = intensity[at] * roof.bandwidth_gbps / 1e3
            limits[at] = min(peak, memory)
            bound[at] = "memory" if memory < peak else "compute"
            efficiency[at] = 100.0 * reached[at] / limits[at]
    known = [value is not None for value in macs]
    return pd.DataFrame(
        {
            **{
                name: timed[name]
                for name in ("engine", "position", "name", "type", "precision", "mean_ns", "domain")
            },
            "macs": integers([value or 0 for value in macs], known),
            "bytes": integers(np.nan_to_num(size), ~np.isnan(size)),
            "intensity": floats(intensity),
            "tflops": floats(reached),
            "gbps": floats(traffic),
            "tensor_cores": pd.array(cores, dtype="boolean"),
            "bound": text(bound),
            "roof_tflops": floats(limits),
            "efficiency_pct": floats(efficiency),
        }
    )


def _bytes(row: Any) -> int | None:
    parts = [row.in_bytes, row.out_bytes]
    if any(pd.isna(part) for part in parts):
        return None
    weights = 0 if pd.isna(row.weights_bytes) else int(row.weights_bytes)
    if pd.isna(row.weights_bytes) and not pd.isna(row.weights_count):
        return None
    return int(row.in_bytes) + int(row.out_bytes) + weights


def _peak(roof: Device, row: Any, cores: bool | None) -> float | None:
    precision = _PRECISIONS.get("" if pd.isna(row.precision) else str(row.precision).upper())
    if precision == "fp32" and cores:
        precision = "tf32"
    return None if precision is None else roof.peak(precision)
