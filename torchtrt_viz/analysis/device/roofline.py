"""Operators against the limits of a device: how much arithmetic, how much traffic, how near the roof."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.device import OPERATOR_ROOFLINE
from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.attributes import attribute
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.element_types import is_float
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.links import calling_parent, launches, operator_rows, operators_of
from torchtrt_viz.analysis.core.masks import among
from torchtrt_viz.analysis.core.recovered import recovered
from torchtrt_viz.analysis.core.tables import floats, integers, order, text
from torchtrt_viz.analysis.device.device_specs import Device, device_of, find_device
from torchtrt_viz.analysis.device.flops import Work, family, work_of
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["operator_roofline", "precision_of"]

Ints = NDArray[np.int64]


@returns(OPERATOR_ROOFLINE)
def operator_roofline(
    trace: TraceData,
    *,
    device: Device | str | None = None,
    tf32: bool = False,
    sort: str | None = "time_ns",
    top: int | None = None,
) -> pd.DataFrame:
    """Matrix products, convolutions and attention by shape: operations, bytes, and the distance to the roof.

    Of nested operators (``linear`` calls ``addmm``) only the outermost with known shapes counts. Operations
    and bytes are what the shapes ask for at least (:mod:`torchtrt_viz.analysis.device.flops`), not what the
    kernels did.

    Parameters
    ----------
    device
        A known device's name, or a `Device`; None: the one that the trace names, if it is known.
    tf32
        Take the tensor cores' limit for float32 products.
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`.

    Returns
    -------
    pandas.DataFrame
        One row per operator with known shapes, against a device's roof.

    Raises
    ------
    OptionError
        For a device that is not known.

    Examples
    --------
    >>> rows = tv.analysis.operator_roofline(trace, device="A100")
    >>> rows[["name", "family", "bound"]].head(1).to_dict("records")
    [{'name': 'aten::linear', 'family': 'gemm', 'bound': 'compute'}]
    """
    roof = device_of(trace) if device is None else find_device(device)
    spans = trace.spans
    wanted = [str(name) for name in spans["name"].cat.categories if family(str(name)) is not None]
    mask = among(spans["name"], wanted) & operator_rows(trace)
    rows = np.flatnonzero(mask)
    needs, groups = _needs(trace, rows)
    keep = _outermost(calling_parent(trace), mask, rows, needs, groups)
    return _table(trace, rows, keep, needs, groups, roof, tf32, sort, top)


def _outermost(
    parent: Ints, mask: NDArray[np.bool_], rows: Ints, needs: list[Work | None], groups: Groups
) -> NDArray[np.bool_]:
    """Choose the calls that count, so that no work counts twice.

    That is every call with a model that no other such call encloses; a call without one only where nothing
    around it and nothing inside it has one.
    """
    known = np.zeros(len(mask), bool)
    known[rows] = np.array([need is not None for need in needs], dtype=bool)[groups.codes]
    modelled = known & (nearest(parent, known) < 0)
    alone = mask & ~known & (nearest(parent, mask) < 0)
    holders = nearest(parent, alone)[known]
    alone[holders[holders >= 0]] = False
    return modelled | alone


def _needs(trace: TraceData, rows: Ints) -> tuple[list[Work | None], Groups]:
    """Group calls by name, shapes, types and values, and model each group once."""
    spans = trace.spans
    groups = Groups.by(
        {
            "name": spans["name"].array[rows],
            "shape": attribute(trace, rows, "shape"),
            "dtype": attribute(trace, rows, "dtype"),
            "values": attribute(trace, rows, "values"),
        }
    )
    first = groups.first_row() if groups.size else np.zeros(0, np.int64)
    names = groups.labels["name"].astype(object).to_list()
    needs = [
        work_of(
            str(name),
            found.get("Input Dims", found.get("Input dims")),
            found.get("Input type"),
            found.get("Concrete Inputs"),
        )
        for name, found in zip(names, trace.args.read(rows[first]), strict=True)
    ]
    return needs, groups


def _table(
    trace: TraceData,
    rows: Ints,
    keep: NDArray[np.bool_],
    needs: list[Work | None],
    groups: Groups,
    roof: Device | None,
    tf32: bool,
    sort: str | None,
    top: int | None,
) -> pd.DataFrame:
    spans = trace.spans
    chosen = keep[rows]
    group_of = np.full(len(spans), -1, np.int64)
    group_of[rows[chosen]] = groups.codes[chosen]
    graphs = recovered(trace)
    calls = groups.count(chosen if graphs is None else chosen & ~graphs.again[rows])
    work = device_work(trace)
    on_gpu = len(work) > 0
    if on_gpu:
        owner = operators_of(trace, launches(trace, work), keep)
        linked = owner >= 0
        time = np.zeros(groups.size, np.int64)
        np.add.at(time, group_of[owner[linked]], work.dur[linked])
        timed = np.bincount(group_of[owner[linked]], minlength=groups.size) > 0
    else:
        time = groups.total(spans["dur_ns"].to_numpy()[rows], chosen)
        timed = calls > 0
    flops = np.array([np.nan if need is None else float(need.flops) for need in needs])
    moved = np.array([np.nan if need is None or need.bytes is None else float(need.bytes) for need in needs])
    seconds = np.where(timed & (time > 0), time / 1e9, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        intensity = np.where(moved > 0, flops / moved, np.nan)
        reached = flops * calls / seconds / 1e12
        traffic = moved * calls / seconds / 1e9
    roofs, bound = _roofs(needs, intensity, roof, tf32)
    frame = pd.DataFrame(
        {
            "name": groups.labels["name"].astype(object).to_numpy(),
            "family": text([family(str(name)) for name in groups.labels["name"].astype(object)]),
            "shape": groups.labels["shape"].to_numpy(dtype=object),
            "dtype": text([None if need is None else need.dtype for need in needs]),
            "calls": calls,
            "domain": "gpu" if on_gpu else "host",
            "time_ns": integers(time, timed),
            "flops": integers(np.nan_to_num(flops), ~np.isnan(flops)),
            "bytes": integers(np.nan_to_num(moved), ~np.isnan(moved)),
            "intensity": floats(intensity),
            "tflops": floats(reached),
            "gbps": floats(traffic),
            "bound": text(bound),
            "roof_tflops": floats(roofs),
            "efficiency_pct": floats(100.0 * reached / roofs),
        }
    )
    frame = frame[calls > 0]
    return order(frame, sort, top, ("name", "shape"))


def precision_of(dtype: str | None, tf32: bool = False) -> str | None:
    """Return the precision whose limit applies to an element type; None where no limit can be named."""
    if dtype is None:
        return None
    key = dtype.lower().replace("c10::", "").replace(" ", "").replace("_", "")
    if key in ("double", "float64"):
        return "fp64"
    if key in ("float", "float32", "fp32"):
        return "tf32" if tf32 else "fp32"
    if "bfloat16" in key or key == "bf16":
        return "bf16"
    if key in ("half", "float16", "fp16"):
        return "fp16"
    if "float8" in key or "fp8" in key:
        return "fp8"
    if key in ("int8", "signedchar", "char", "uint8", "unsignedchar"):
        return "int8"
    if "fp4" in key or "float4" in key:
        return "fp4"
    return "fp32" if is_float(dtype) else None


def _roofs(
    needs: list[Work | None], intensity: NDArray[np.float64], roof: Device | None, tf32: bool
) -> tuple[NDArray[np.float64], list[Any]]:
    limits = np.full(len(needs), np.nan)
    bound: list[Any] = [None] * len(needs)
    if roof is None:
        return limits, bound
    for position, need in enumerate(needs):
        precision = None if need is None else precision_of(need.dtype, tf32)
        peak = None if precision is None else roof.peak(precision)
        if peak is None or np.isnan(intensity[position]):
            continue
        memory = intensity[position] * roof.bandwidth_gbps / 1e3
        limits[position] = min(peak, memory)
        bound[position] = "memory" if memory < peak else "compute"
    return limits, bound
