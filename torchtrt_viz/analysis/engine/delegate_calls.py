"""Calls of delegates, and the phases inside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.engines import DELEGATES, PHASES
from torchtrt_viz.analysis.core.ancestry import nearest, outermost
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.masks import among, names_matching, strings
from torchtrt_viz.analysis.core.tables import duration_columns, floats, integers, order, text
from torchtrt_viz.analysis.core.waiting import ENQUEUE
from torchtrt_viz.analysis.engine.engine_facts import details_of, engine_runtimes, first_detail
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.schema import DOMAINS
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["UNATTRIBUTED", "delegates", "phases"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

UNATTRIBUTED = "(outside its phases)"

_ROLES = (
    ("input_binding", "binding of inputs"),
    ("output_binding", "binding of outputs"),
    ("shape_inference", "shape inference"),
    ("output_staging", "staging of outputs"),
    ("input_staging", "staging of inputs"),
    ("staging", "staging"),
    ("synchronize", "synchronisation: the host waits for the device"),
    ("enqueue", "launch overhead"),
)


@dataclass(frozen=True)
class Calls:
    """The delegate calls of a trace.

    ``call`` marks the outermost host spans of kind delegate; ``instance`` names each span's delegate;
    ``inside`` is the call that a span lies in, -1 none.
    """

    call: Mask
    instance: NDArray[Any]
    inside: Ints


def delegate_calls(trace: TraceData) -> Calls:
    """Find the delegate calls: spans of kind delegate on the host with no other around them."""
    spans = trace.spans
    parent = host_nesting(trace).parent
    kind = among(spans["kind"], ("delegate",)) & among(spans["domain"], ("host",)) & timed(trace)
    call = outermost(parent, kind)
    instance = strings(spans["run_id"])
    inside = nearest(parent, call)
    # a call without an instance is known by its name
    unnamed = np.flatnonzero(call & pd.isna(instance))
    if len(unnamed):
        instance = instance.copy()
        instance[unnamed] = strings(spans["name"])[unnamed]
    return Calls(call, instance, inside)


def timed(trace: TraceData) -> Mask:
    """Say for each span whether its duration is that of one occurrence, and can be true."""
    return among(trace.spans["timing"], ("measured", "modeled"))


@returns(DELEGATES)
def delegates(
    trace: TraceData, *, sort: str | None = "host_total_ns", top: int | None = None
) -> pd.DataFrame:
    """One row per delegate instance: which ran, how often, and what its calls cost the host.

    Parameters
    ----------
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`.

    Returns
    -------
    pandas.DataFrame
        One row per delegate instance: which ran, how often, what its calls cost the host.

    Examples
    --------
    >>> tv.analysis.delegates(trace)[["delegate", "calls"]].to_dict("records")
    [{'delegate': 'head_0', 'calls': 4}]
    """
    spans = trace.spans
    calls = delegate_calls(trace)
    rows = np.flatnonzero(calls.call)
    groups = Groups.by({"delegate": text(calls.instance[rows])})
    dur = spans["dur_ns"].to_numpy()
    found = duration_columns(groups, dur[rows])
    names = groups.labels["delegate"].to_list()

    methods = among(spans["kind"], ("method",)) & among(spans["domain"], ("host",)) & timed(trace)
    around = outermost(host_nesting(trace).parent, methods)
    whole = int(dur[around].sum())
    # a share of the methods' time is that of the calls inside them
    within = nearest(host_nesting(trace).parent, around)[rows] >= 0
    in_methods, share_known = groups.total(dur[rows], within), groups.count(within) > 0
    phase = phase_mask(trace) & (calls.inside >= 0)
    owner = np.full(len(spans), -1, np.int64)
    owner[rows] = groups.codes
    in_phases = _sum(owner, calls.inside, dur, phase, groups.size)
    enqueue = phase & names_matching(spans["name"], ENQUEUE)
    launch = _sum(owner, calls.inside, dur, enqueue, groups.size)

    by_name = {name: position for position, name in enumerate(names)}
    group_of = np.array([by_name.get(name, -1) for name in calls.instance], dtype=np.int64)
    # sums over calls count as well; what cannot be true, and what is in another unit, does not
    layer = among(spans["kind"], ("layer",)) & among(spans["domain"], DOMAINS)
    layer &= ~among(spans["timing"], ("implausible",))
    layers = _sum_of(group_of, dur, layer, groups.size)
    # the device's time of a whole call has a measured duration, whatever is known of its place
    of_phases = among(spans["kind"], ("phase",)) & among(spans["timing"], ("modeled", "aggregate"))
    placed = among(spans["timing"], ("measured",)) | of_phases
    # what lies inside another piece of the same track is part of it
    device = outermost(spans["parent"].to_numpy(), among(spans["domain"], ("gpu",)) & placed & ~layer)
    gpu = _sum_of(group_of, dur, device, groups.size)
    layer_domains = _domains(trace, group_of, layer, groups.size)

    some = [rows[groups.codes == group][:3] for group in range(groups.size)]
    details = [details_of(trace, chosen) for chosen in some]
    known = engine_runtimes(trace)
    runtimes = [
        first_detail(found, "engine_runtime") or known.get(name)
        for name, found in zip(names, details, strict=True)
    ]
    on_host = np.array([runtime == "host" for runtime in runtimes], dtype=bool)
    overhead = np.where(on_host, np.maximum(launch[0] - layers[0], 0), launch[0])
    overhead_known = launch[1] & (~on_host | layers[1])
    total = found["total_ns"]
    frame = pd.DataFrame(
        {
            "delegate": names,
            "backend": text([first_detail(d, *_BACKEND) for d in details]),
            "method": text([first_detail(d, "method", "method_name") for d in details]),
            "engine_runtime": text(runtimes),
            "calls": found["calls"],
            "host_total_ns": total,
            "host_mean_ns": found["mean_ns"],
            "host_median_ns": found["median_ns"],
            "host_min_ns": found["min_ns"],
            "host_max_ns": found["max_ns"],
            "host_pct": floats(100.0 * in_methods / (whole or np.nan), share_known),
            "phases_ns": integers(*in_phases),
            "unattributed_ns": integers(total - in_phases[0], in_phases[1]),
            "launch_overhead_ns": integers(overhead, overhead_known),
            "layers_ns": integers(*layers),
            "layers_domain": text(layer_domains),
            "gpu_ns": integers(*gpu),
            "op_types": text([_joined(first_detail(d, "op_types", "op_type")) for d in details]),
        }
    )
    return order(DELEGATES.typed(frame), sort, top, ("delegate",))


_BACKEND = ("backend", "delegate_backend", "delegate_backend_name", "backend_name", "backend_id")


def phase_mask(trace: TraceData) -> Mask:
    """Say for each span whether it is a phase on the host that no other phase encloses."""
    spans = trace.spans
    kind = among(spans["kind"], ("phase",)) & among(spans["domain"], ("host",)) & timed(trace)
    return outermost(host_nesting(trace).parent, kind)


def _sum(owner: Ints, inside: Ints, dur: Ints, mask: Mask, size: int) -> tuple[Ints, Mask]:
    """Sum durations by the delegate whose call a span lies in; also say which delegates have any."""
    rows = np.flatnonzero(mask & (inside >= 0))
    return _grouped(owner[inside[rows]], dur[rows], size)


def _sum_of(group: Ints, dur: Ints, mask: Mask, size: int) -> tuple[Ints, Mask]:
    rows = np.flatnonzero(mask & (group >= 0))
    return _grouped(group[rows], dur[rows], size)


def _grouped(codes: Ints, dur: Ints, size: int) -> tuple[Ints, Mask]:
    total = np.zeros(size, np.int64)
    np.add.at(total, codes, dur)
    return total, np.bincount(codes, minlength=size) > 0


def _domains(trace: TraceData, group: Ints, layer: Mask, size: int) -> list[str | None]:
    host = among(trace.spans["domain"], ("host",))
    out: list[str | None] = []
    on_host = np.bincount(group[layer & (group >= 0) & host], minlength=size)
    on_gpu = np.bincount(group[layer & (group >= 0) & ~host], minlength=size)
    for h, g in zip(on_host, on_gpu, strict=True):
        out.append("mixed" if h and g else "host" if h else "gpu" if g else None)
    return out


def _joined(value: object) -> str | None:
    if value is None or not isinstance(value, (list, tuple)):
        return None if value is None else str(value)
    counts = Counter(map(str, value))
    return ", ".join(name if number == 1 else f"{name} x{number}" for name, number in counts.items())


@returns(PHASES)
def phases(
    trace: TraceData, *, rest: bool = True, sort: str | None = None, top: int | None = None
) -> pd.DataFrame:
    """Host time inside delegate calls by phase.

    The sidecars of an engine (as those of a ``.pt2`` or ``.pte`` package) may record the phases of its calls
    and not the calls: then the phases of the engine are listed, without the rest.

    Parameters
    ----------
    rest
        Add a row per delegate for the time of its calls that no phase covers, so that shares sum to 100.
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`; by default delegates and their phases come
        in the order in which they first ran.

    Returns
    -------
    pandas.DataFrame
        One row per delegate and phase of its calls.

        Delegates without phases, and phases of an unknown engine, have no rows.

    Examples
    --------
    >>> tv.analysis.phases(trace)["phase"].tolist()[-1]
    '(outside its phases)'
    """
    spans = trace.spans
    calls = delegate_calls(trace)
    dur = spans["dur_ns"].to_numpy()
    call_rows = np.flatnonzero(calls.call)
    by_delegate = Groups.by({"delegate": text(calls.instance[call_rows])})
    called = by_delegate.labels["delegate"].to_list()
    whole = dict(zip(called, by_delegate.total(dur[call_rows]).tolist(), strict=True))
    count = dict(zip(called, by_delegate.count().tolist(), strict=True))

    run_id = strings(spans["run_id"])
    alone = (calls.inside < 0) & ~pd.isna(run_id) & ~np.isin(run_id.astype(str), called)
    rows = np.flatnonzero(phase_mask(trace) & ((calls.inside >= 0) | alone))
    owner = np.where(alone[rows], run_id[rows], calls.instance[np.maximum(calls.inside[rows], 0)])
    groups = Groups.by({"delegate": text(owner), "phase": spans["name"].array[rows]})
    found = duration_columns(groups, dur[rows])
    frame = groups.labels.assign(**found)
    frame["first"] = rows[groups.first_row()] if groups.size else np.zeros(0, np.int64)
    for name, total in frame.groupby("delegate")["total_ns"].sum().items():
        whole.setdefault(str(name), int(total))
    if rest and len(frame):
        frame = _with_rest(frame, whole, count)
    runtimes = _runtimes(trace, frame["delegate"].drop_duplicates().to_list(), calls)
    total = frame["total_ns"].to_numpy(dtype=np.float64)
    wholes = np.array([float(whole[name]) for name in frame["delegate"]])
    out = pd.DataFrame(
        {
            "delegate": frame["delegate"].to_numpy(),
            "phase": frame["phase"].to_numpy(),
            "role": [
                _role(phase, runtimes.get(delegate))
                for delegate, phase in zip(frame["delegate"], frame["phase"], strict=True)
            ],
            "domain": "host",
            "calls": frame["calls"].to_numpy(),
            "total_ns": frame["total_ns"].to_numpy(),
            "mean_ns": frame["mean_ns"].to_numpy(),
            "median_ns": floats(frame["median_ns"].to_numpy(dtype=np.float64)),
            "min_ns": _optional(frame["min_ns"]),
            "max_ns": _optional(frame["max_ns"]),
            "pct": floats(np.where(wholes > 0, 100.0 * total / np.where(wholes > 0, wholes, 1), np.nan)),
        }
    )
    if sort is None and len(out):
        first = frame.groupby("delegate")["first"].transform("min").to_numpy()
        out = out.iloc[np.lexsort((frame["first"].to_numpy(), first))]
    return order(PHASES.typed(out), sort, top, ("delegate", "phase"))


def _with_rest(frame: pd.DataFrame, whole: dict[str, int], count: dict[str, int]) -> pd.DataFrame:
    covered = frame.groupby("delegate", sort=False)["total_ns"].sum()
    names = [name for name in covered.index if name in count]
    left = [whole[name] - int(covered[name]) for name in names]
    more = pd.DataFrame(
        {
            "delegate": names,
            "phase": UNATTRIBUTED,
            "calls": [count[name] for name in names],
            "total_ns": left,
            "mean_ns": [value / count[name] for value, name in zip(left, names, strict=True)],
            "first": np.iinfo(np.int64).max,
        }
    )
    return pd.concat([frame, more], ignore_index=True)


def _optional(column: pd.Series) -> pd.arrays.IntegerArray:
    known = column.notna().to_numpy()
    return integers(column.fillna(0).to_numpy(dtype=np.int64), known)


def _runtimes(trace: TraceData, names: list[str], calls: Calls) -> dict[str, str | None]:
    out: dict[str, str | None] = dict(engine_runtimes(trace))
    for name in names:
        rows = np.flatnonzero(calls.call & (calls.instance == name))[:3]
        found = first_detail(details_of(trace, rows), "engine_runtime")
        if found is not None:
            out[name] = str(found)
    return out


def _role(phase: str, runtime: str | None) -> str:
    if phase == UNATTRIBUTED:
        return "the delegate's own bookkeeping, and the runtime's around it"
    for key, role in _ROLES:
        if key in phase:
            if key == "enqueue" and runtime == "host":
                return "execution on the host engine: the layers run inside it"
            return role
    return "host work"
