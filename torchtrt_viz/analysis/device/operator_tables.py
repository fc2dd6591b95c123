"""Tables of operators (host) and kernels (device)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.by_name import KERNELS, OPERATORS
from torchtrt_viz.analysis.core.ancestry import nearest, recursive
from torchtrt_viz.analysis.core.attributes import attribute
from torchtrt_viz.analysis.core.device_sums import device_sums
from torchtrt_viz.analysis.core.device_work import CLASSES, DeviceWork, device_label, device_work
from torchtrt_viz.analysis.core.groups import Groups, exact_sums
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.humanize import duration
from torchtrt_viz.analysis.core.links import (
    Launches,
    calling_parent,
    launches,
    of_graphs,
    operator_rows,
    operators_of,
)
from torchtrt_viz.analysis.core.masks import among, codes
from torchtrt_viz.analysis.core.recovered import Recovered, recovered
from torchtrt_viz.analysis.core.stated import stated
from torchtrt_viz.analysis.core.tables import duration_columns, floats, integers, order, percent
from torchtrt_viz.analysis.device.summed_tables import summed_kernels
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.graph_rows import MATCHES
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.schema import KINDS
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["device_coverage", "kernels", "operators"]

Ints = NDArray[np.int64]

_BY = ("device", "stream", "operator", "shape", "dtype", "module", "source", "match", "iteration")


@returns(OPERATORS)
def operators(
    trace: TraceData,
    *,
    by: str | Sequence[str] = (),
    kinds: Iterable[str] = ("operator",),
    sort: str | None = "self_ns",
    top: int | None = None,
) -> pd.DataFrame:
    """Host operators by name.

    Parameters
    ----------
    by
        What else tells rows apart, one or several of `torchtrt_viz.analysis.core.attributes.ATTRIBUTES`:
        shape, dtype, values, op_type, module, source, stack, track, iteration, run_id, kind, and of ONNX
        Runtime node and provider. Shapes, modules and stacks are read from the trace's details, which takes
        longer.
    kinds
        Kinds of host spans to count (``annotation``, ``runtime``, ``python``, ... as well as ``operator``).
    sort
        Column to sort by, numbers largest first; None keeps the order of the names' codes. Operators that
        only graphs ran took no host time: by it they come last, those with the most device work first.
    top
        At most so many rows.

    Returns
    -------
    pandas.DataFrame
        One row per operator on the host, by name.

        Only measured spans on the host count as calls. Operators that were recovered for the launches of
        graphs (:func:`torchtrt_viz.analysis.graphs`) are rows too, with their work on the device, and with
        calls on the host only where they were called outside graphs as well; so are operators that the
        recording itself states for the device's work (XLA's programs), and scopes of a profile that holds
        sums alone (Proton's trees). An empty trace gives an empty
        frame. ``attrs`` says how
        much of the device's time these operators explain: ``device_ns`` (durations of all device work),
        ``device_unexplained_ns`` (of work that none of them launched, as far as the trace tells),
        ``device_unexplained_pct`` and ``coverage``, a sentence; None and empty without device work.

    Examples
    --------
    >>> tv.analysis.operators(trace, by="shape", top=1)[["name", "shape", "calls"]].to_dict("records")
    [{'name': 'aten::linear', 'shape': '[[8,512,768],[768,768]]', 'calls': 96}]
    """
    by = (by,) if isinstance(by, str) else tuple(by)
    kinds = tuple(kinds)
    for kind in kinds:
        if kind not in KINDS:
            raise OptionError("kinds", kind, "one of " + ", ".join(KINDS))
    spans = trace.spans
    mask = operator_rows(trace, kinds)
    graphs = recovered(trace)
    sums = device_sums(trace)
    if sums is not None:
        mask = mask | (sums.rows & among(spans["kind"], kinds))
    rows = np.flatnonzero(mask)
    columns: dict[str, Any] = {"name": spans["name"].array[rows]}
    for name in by:
        columns[name] = attribute(trace, rows, name)
    groups = Groups.by(columns)
    dur = spans["dur_ns"].to_numpy()[rows]

    parent = calling_parent(trace)
    if sums is not None:
        parent = np.where(sums.rows, spans["parent"].to_numpy(), parent)
    above = nearest(parent, mask)
    code = np.full(len(spans), -1, np.int64)
    code[rows] = groups.codes
    called = np.ones(len(rows), bool) if graphs is None else ~graphs.rows[rows]
    named = stated(trace)
    if named is not None:
        called &= ~named.rows[rows]
    if sums is not None:
        called &= ~sums.rows[rows]
    on_host = Groups(groups.codes[called], groups.labels)
    nested = recursive(rows[called], above, code)

    found = duration_columns(on_host, dur[called])
    some = found["calls"] > 0
    self_ns = on_host.total(host_nesting(trace).self_ns[rows[called]])
    device_total, device_self, in_graphs, unexplained = _device_sums(trace, mask, above, code, groups.size)
    frame = groups.labels.assign(
        calls=found["calls"],
        nested_calls=on_host.count(nested),
        graph_calls=_graph_calls(graphs, rows, groups),
        total_ns=on_host.total(dur[called], ~nested),
        self_ns=self_ns,
        self_pct=percent(self_ns),
        mean_ns=found["mean_ns"],
        median_ns=found["median_ns"],
        min_ns=integers(found["min_ns"], some),
        max_ns=integers(found["max_ns"], some),
        device_total_ns=device_total,
        device_self_ns=device_self,
        device_graph_ns=in_graphs,
    )
    ties: tuple[str, ...] = ("name",)
    elsewhere = (graphs, named, sums)
    if any(each is not None for each in elsewhere) and sort in ("calls", "self_ns", "total_ns"):
        # by host time alone what never ran on the host would stand in the order of names
        frame = frame.sort_values(["device_total_ns", "name"], ascending=[False, True], kind="stable")
        ties = ()
    frame = order(frame, sort, top, ties)
    frame.attrs.update(unexplained)
    return frame


def _graph_calls(graphs: Recovered | None, rows: Ints, groups: Groups) -> Any:
    """Return per group how many calls graphs replayed; what lies on several streams is one call."""
    if graphs is None:
        return integers(np.zeros(groups.size), False)
    return integers(groups.count((graphs.rows & ~graphs.again)[rows]))


def _coverage(device_ns: int | None, unexplained_ns: int | None) -> dict[str, Any]:
    """Say how much of the device's time no operator explains."""
    pct = 100.0 * unexplained_ns / device_ns if device_ns and unexplained_ns is not None else None
    words = ""
    if pct is not None:
        part = f"{pct:.3g} % ({duration(unexplained_ns)} of {duration(device_ns)})" if pct else "None"
        words = f"{part} of the devices' time is work that no operator launched, as far as the trace tells."
    return {
        "device_ns": device_ns,
        "device_unexplained_ns": unexplained_ns,
        "device_unexplained_pct": pct,
        "coverage": words,
    }


def device_coverage(trace: TraceData) -> dict[str, Any]:
    """Return ``attrs`` of `operators`: how much of the device's time operators explain."""
    work = device_work(trace)
    return _coverage_of(work, operators_of(trace, launches(trace, work), operator_rows(trace)))


def _coverage_of(work: DeviceWork, owner: Ints) -> dict[str, Any]:
    if not len(work):
        return _coverage(None, None)
    return _coverage(int(work.dur.sum()), int(work.dur[owner < 0].sum()))


def _device_sums(
    trace: TraceData, is_operator: NDArray[np.bool_], above: Ints, code: Ints, size: int
) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return per group the sums of device durations launched inside its calls, and by them directly.

    Also the part of these that graphs replayed, and what none of them launched.
    """
    work = device_work(trace)
    graphs = recovered(trace)
    sums = device_sums(trace)
    if sums is not None:
        at = np.flatnonzero(sums.work)
        owner, dur = above[at], sums.own[at]
        coverage = _coverage(int(dur.sum()), int(dur[owner < 0].sum()))
    elif len(work) == 0:
        none = integers(np.zeros(size), False)
        return none, none.copy(), none.copy(), _coverage(None, None)
    else:
        owner, dur = operators_of(trace, launches(trace, work), is_operator), work.dur
        coverage = _coverage_of(work, owner)
    known = owner >= 0
    dur, owner = dur[known], owner[known]
    direct = exact_sums(code[owner], dur, size)
    in_graphs = integers(np.zeros(size), False)
    if graphs is not None:
        replayed = graphs.rows[owner]
        in_graphs = integers(exact_sums(code[owner[replayed]], dur[replayed], size))
    total = np.zeros(size, np.int64)
    # climb from each launching operator; a group met twice on the way up counts once
    met = [np.full(len(owner), -1, np.int64)]
    while len(owner):
        group = code[owner]
        fresh = np.ones(len(owner), bool)
        for earlier in met:
            fresh &= earlier != group
        total += exact_sums(group[fresh], dur[fresh], size)
        met.append(group)
        owner = above[owner]
        go_on = owner >= 0
        owner, dur = owner[go_on], dur[go_on]
        met = [earlier[go_on] for earlier in met]
    return integers(total), integers(direct), in_graphs, coverage


@returns(KERNELS)
def kernels(
    trace: TraceData,
    *,
    by: str | Sequence[str] = (),
    sort: str | None = "total_ns",
    top: int | None = None,
) -> pd.DataFrame:
    """Device work by name: kernels, copies, fills and collectives.

    Where an engine was timed on the device and no kernel was recorded inside, its phases (or else its layers)
    are the work. Of a profile that holds sums over all executions (Proton's trees) the sums are, and what
    they do not tell is missing.

    Parameters
    ----------
    by
        What else tells rows apart: ``device``, ``stream`` (the track's label), ``operator`` (the innermost
        operator that launched the work), ``shape``, ``dtype``, ``module``, ``source`` (of that operator;
        module and source of the launch where there is none), ``match`` (of work of graphs, how it was matched
        with their capture: exact, ordered, by_name or none; missing for other work), ``iteration``.
    sort, top
        As in :func:`operators`.

    Returns
    -------
    pandas.DataFrame
        One row per kernel, copy, fill or collective on devices, by name.

    Examples
    --------
    >>> tv.analysis.kernels(trace, by="stream", top=1)[["name", "stream"]].to_dict("records")
    [{'name': 'ampere_sgemm_128x64_tn', 'stream': 'stream 7'}]
    """
    by = (by,) if isinstance(by, str) else tuple(by)
    work = device_work(trace)
    sums = device_sums(trace)
    if sums is not None:
        return summed_kernels(trace, sums, by, sort, top)
    found = launches(trace, work)
    spans = trace.spans
    columns: dict[str, Any] = {
        "name": spans["name"].array[work.row],
        "class": pd.Categorical.from_codes(work.kind, categories=pd.Index(CLASSES)),
    }
    for name in by:
        columns[name] = _kernel_attribute(trace, found, name)
    groups = Groups.by(columns)
    stats = duration_columns(groups, work.dur)
    frame = groups.labels.assign(
        calls=stats["calls"],
        total_ns=stats["total_ns"],
        total_pct=percent(stats["total_ns"]),
        mean_ns=stats["mean_ns"],
        median_ns=stats["median_ns"],
        min_ns=integers(stats["min_ns"]),
        max_ns=integers(stats["max_ns"]),
        std_ns=floats(groups.std(work.dur)),
        launch_rows=groups.count(found.host >= 0),
    )
    front = ["name", *by, "class"]
    frame = frame[front + [c for c in frame.columns if c not in front]]
    return order(frame, sort, top, ("name",))


def _kernel_attribute(trace: TraceData, found: Launches, name: str) -> Any:
    work = found.work
    if name == "device":
        return np.array([device_label(int(d)) for d in work.device], dtype=object)
    if name == "stream":
        return trace.tracks["label"].to_numpy(dtype=object)[work.track]
    if name == "iteration":
        return filled(trace.spans["iteration"])[work.row]
    if name == "match":
        return _matches(trace, found)
    if name in ("shape", "dtype", "module", "source"):
        owner = operators_of(trace, found, operator_rows(trace))
        if name in ("module", "source"):
            graphs = recovered(trace)
            caller = found.host if graphs is None else graphs.owner[work.row]
            caller = np.where(caller >= 0, caller, found.host)
            owner = np.where(owner >= 0, owner, caller)
        known, place = np.unique(owner[owner >= 0], return_inverse=True)
        out = np.full(len(owner), None, dtype=object)
        out[owner >= 0] = attribute(trace, known, name)[place.reshape(-1)]
        return out
    if name == "operator":
        spans = trace.spans
        owner = operators_of(trace, found, operator_rows(trace))
        categories = spans["name"].cat.categories
        owner_codes = np.where(owner >= 0, codes(spans["name"])[np.maximum(owner, 0)], -1)
        return pd.Categorical.from_codes(owner_codes, categories=categories)
    raise OptionError("by", name, f"one of {', '.join(_BY)}")


def _matches(trace: TraceData, found: Launches) -> NDArray[Any]:
    """Return how work of graphs was matched, None for other work."""
    out = np.full(len(found.work), None, dtype=object)
    out[of_graphs(trace, found)] = "none"
    graphs = recovered(trace)
    if graphs is not None:
        match = graphs.match[found.work.row]
        out[match >= 0] = np.array(MATCHES, dtype=object)[match[match >= 0]]
    return out
