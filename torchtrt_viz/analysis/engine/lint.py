"""What looks wrong in an engine: conversions, missed tensor cores, loose quantisation, opaque regions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.engines import ENGINE_LINT, REFORMATS
from torchtrt_viz.analysis.core.tables import floats, number_or_nan, records, text
from torchtrt_viz.analysis.engine.engine_facts import engine_infos
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.analysis.engine.roofline import convolution_facts, uses_tensor_cores
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["RULES", "engine_lint", "reformats"]

RULES = {
    "tensor cores": "choose FP16, BF16, INT8 or TF32 for the layer, and sizes that tensor cores can use",
    "alignment": "pad the channels to a multiple of {multiple}",
    "mixed precision": "let the layer's neighbours produce and take its precision",
    "conversion": "keep both sides in one precision or layout; check which layer forces the other one",
    "loose quantisation": "place Q/DQ pairs so that they fuse with the layers around them",
    "strided slice": "slice with a stride of 1, or fold the slice into the layer before it",
    "opaque region": "build with detailed profiling verbosity, or see its kernels with a system profiler",
    "no names": "rebuild with profilingVerbosity=detailed",
}
_FLOATS = {"FP32", "FP16", "BF16", "TF32", "FP64"}
_QUANTISE = re.compile(r"Quantize|QuantizeLinear|DequantizeLinear|^Scale$")
_CHANNELS = {"FP16": 8, "BF16": 8, "INT8": 16, "FP8": 16}


def _parts(value: Any) -> list[str]:
    return [] if pd.isna(value) else [part.strip() for part in str(value).split(",") if part.strip()]


@returns(REFORMATS)
def reformats(trace: TraceData) -> pd.DataFrame:
    """Layers that only convert layout or precision, and what they cost.

    Returns
    -------
    pandas.DataFrame
        One row per layer that only converts layout or precision.

    Examples
    --------
    >>> engines = tv.load(samples / "trex")
    >>> len(tv.analysis.reformats(engines))
    0
    """
    rows = []
    for run_id, info, timed in _engines(trace):
        for at, row in enumerate(records(info.layers)):
            if row.role != "reformat":
                continue
            source = row.inputs[0] if row.inputs else None
            target = row.outputs[0] if row.outputs else None
            known = not pd.isna(row.in_bytes) and not pd.isna(row.out_bytes)
            attributes = row.attributes if isinstance(row.attributes, Mapping) else {}
            rows.append(
                {
                    "engine": run_id,
                    "position": at,
                    "name": str(row.name),
                    "converts": _converts(source, target),
                    "origin": attributes.get("Origin"),
                    "from": _described(source),
                    "to": _described(target),
                    "bytes": int(row.in_bytes) + int(row.out_bytes) if known else pd.NA,
                    "mean_ns": timed["mean_ns"].iloc[at],
                    "pct": timed["pct"].iloc[at],
                    "serves": ", ".join(map(str, row.operators or ())) or None,
                }
            )
    columns = [
        "engine",
        "position",
        "name",
        "converts",
        "origin",
        "from",
        "to",
        "bytes",
        "mean_ns",
        "pct",
        "serves",
    ]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.astype({"position": "int64", "bytes": "Int64", "mean_ns": "Float64", "pct": "Float64"})


def _described(tensor: Any) -> str | None:
    if tensor is None:
        return None
    return tensor.format or tensor.dtype  # type: ignore[no-any-return]


def _converts(source: Any, target: Any) -> str:
    if source is None or target is None or source.dtype is None or target.dtype is None:
        return "unknown"
    precision = source.dtype != target.dtype
    layout = _layout(source.format) != _layout(target.format)
    return "precision and layout" if precision and layout else "precision" if precision else "layout"


def _layout(format: str | None) -> str | None:
    """Return the layout part of a format, without the precision."""
    if format is None:
        return None
    return re.sub(r"\b(FP\d+|BF16|BFloat16|INT8|Int8|Float|Half|TF32|format)\b", "", format).strip(" .")


def _engines(trace: TraceData) -> Iterator[tuple[str, Any, pd.DataFrame]]:
    timed = layers(trace, sort=None)
    for run_id, info in engine_infos(trace).items():
        mine = timed[timed["engine"] == run_id].head(len(info.layers)).reset_index(drop=True)
        yield run_id, info, mine


@returns(ENGINE_LINT)
def engine_lint(trace: TraceData) -> pd.DataFrame:
    """Look for what makes engines slow.

    Returns
    -------
    pandas.DataFrame
        One row per thing that makes an engine slow, by engine, then time at stake.

        Ordered by engine, then by time at stake.

    Examples
    --------
    >>> engines = tv.load(samples / "trex")
    >>> tv.analysis.engine_lint(engines)["rule"].unique().tolist()
    []
    """
    rows: list[dict[str, Any]] = []
    for run_id, info, timed in _engines(trace):
        if info.verbosity in ("layer_names_only", "none"):
            rows.append(
                {
                    "engine": run_id,
                    "position": pd.NA,
                    "layer": "",
                    "rule": "no names",
                    "finding": f"built with profiling verbosity {info.verbosity}: types, shapes and kernels "
                    "of the layers are not recorded",
                    "remedy": RULES["no names"],
                    "mean_ns": np.nan,
                    "pct": np.nan,
                }
            )
        for at, row in enumerate(records(info.layers)):
            for rule, finding, remedy in _findings(row):
                rows.append(
                    {
                        "engine": run_id,
                        "position": at,
                        "layer": str(row.name),
                        "rule": rule,
                        "finding": finding,
                        "remedy": remedy,
                        "mean_ns": number_or_nan(timed["mean_ns"].iloc[at]),
                        "pct": number_or_nan(timed["pct"].iloc[at]),
                    }
                )
    frame = pd.DataFrame(
        rows, columns=["engine", "position", "layer", "rule", "finding", "remedy", "mean_ns", "pct"]
    )
    frame = frame.assign(
        position=frame["position"].astype("Int64"),
        mean_ns=floats(frame["mean_ns"].to_numpy(dtype=np.float64)),
        pct=floats(frame["pct"].to_numpy(dtype=np.float64)),
        **{name: text(frame[name].to_list()) for name in ("engine", "layer", "rule", "finding", "remedy")},
    )
    return frame.sort_values(["engine", "mean_ns"], ascending=[True, False], kind="stable").reset_index(
        drop=True
    )


def _findings(row: Any) -> Iterator[tuple[str, str, str]]:
    """Yield rule, finding and remedy for one layer."""
    kind = "" if pd.isna(row.type) else str(row.type)
    precision = "" if pd.isna(row.precision) else str(row.precision)
    attributes = convolution_facts(row)
    arithmetic = "Conv" in kind or "gemm" in kind.lower() or "MatrixMultiply" in kind
    if row.role == "reformat":
        if kind != "NoOp":  # moves no data
            yield from _conversion(row)
    elif arithmetic:
        yield from _arithmetic(row, precision, attributes)
    if _QUANTISE.search(kind) or (
        row.role != "reformat" and _QUANTISE.search(str(attributes.get("ParameterType")))
    ):
        yield (
            "loose quantisation",
            f"a layer of its own that only scales: {kind}",
            RULES["loose quantisation"],
        )
    if attributes.get("ParameterType") == "Slice":
        stride = attributes.get("Stride")
        if isinstance(stride, list) and any(step != 1 for step in stride):
            yield "strided slice", f"slices with stride {stride}", RULES["strided slice"]
    if row.role == "region":
        detail = "" if pd.isna(row.explanation) else f": {row.explanation}"
        yield "opaque region", f"many operators compiled as one layer{detail}", RULES["opaque region"]


def _conversion(row: Any) -> Iterator[tuple[str, str, str]]:
    source = row.inputs[0] if row.inputs else None
    target = row.outputs[0] if row.outputs else None
    converts = _converts(source, target)
    if "precision" in converts and source is not None and target is not None:
        pair = {source.dtype, target.dtype}
        between = (
            "INT8 and floating point" if "INT8" in pair and pair & _FLOATS else " and ".join(sorted(pair))
        )
        yield "conversion", f"converts {converts} between {between}", RULES["conversion"]
    elif converts == "layout" and source is not None and target is not None:
        yield "conversion", f"converts layout from {source.format} to {target.format}", RULES["conversion"]


def _arithmetic(row: Any, precision: str, attributes: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    tactic = None if pd.isna(row.tactic) else str(row.tactic)
    cores = uses_tensor_cores(tactic)
    if cores is False:
        yield "tensor cores", f"{precision or 'unknown precision'} on {tactic}", RULES["tensor cores"]
    multiple = _CHANNELS.get(precision)
    groups = attributes.get("Groups", 1)
    if multiple and groups == 1:
        for which, tensors in (("input", row.inputs), ("output", row.outputs)):
            shape = tensors[0].shape if tensors else None
            if shape is not None and len(shape) > 2 and shape[1] > 0 and shape[1] % multiple:
                yield (
                    "alignment",
                    f"{shape[1]} {which} channels in {precision}, not a multiple of {multiple}",
                    RULES["alignment"].format(multiple=multiple),
                )
    ins, outs = set(_parts(row.in_dtypes)), set(_parts(row.out_dtypes))
    known = {*ins, *outs, precision} - {""}
    if "INT8" in known and known & _FLOATS and (ins != outs):
        yield (
            "mixed precision",
            f"takes {', '.join(sorted(ins))}, computes in {precision}, gives {', '.join(sorted(outs))}",
            RULES["mixed precision"],
        )
