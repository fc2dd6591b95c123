"""Tables of one recording: ``operators.csv``, ``summary.json``, and what its options add.

Runs in a process of its own (``child_main.py``). Reads the trace with the package's own loader, so that the
tables and ``torchtrt_viz.load`` agree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.attributes import attribute, python_stacks
from torchtrt_viz.analysis.core.intervals import length, merge
from torchtrt_viz.analysis.device.flops import family, work_of
from torchtrt_viz.analysis.device.operator_tables import kernels, operators
from torchtrt_viz.errors import CaptureError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.io.whole_file import write_whole
from torchtrt_viz.formats.kineto.reader import read
from torchtrt_viz.formats.session.manifest import RANK_META
from torchtrt_viz.model.trace_data import TraceData
from torchtrt_viz.serving.artifacts.parse_memory import allocations

__all__ = ["COLUMNS", "SUMMARY_FORMAT", "operator_table", "parse_job_folder", "stack_lines", "summarize"]

SUMMARY_FORMAT = "torchtrt_viz.summary/1"
COLUMNS = {
    "name": "operator, range or kernel as the profiler recorded it",
    "kind": "operator, annotation, step, runtime, communication; of a device compute, communication, copy, "
    "fill",
    "domain": "host or gpu: where the time was spent; the two are never added",
    "process": "process of the thread, as recorded",
    "thread": "thread, or stream on a device",
    "device": "device, empty on the host",
    "input_shapes": "input dimensions; empty when not recorded",
    "calls": "number of calls",
    "inclusive_ns": "ns, calls' durations with their children, recursion counted once: rows must not be "
    "added up. For kernels the sum of durations, which overlap on streams: no wall time",
    "self_ns": "ns, durations without children; empty for kernels, which have none",
    "mean_ns": "ns, inclusive, of one call",
    "median_ns": "ns, inclusive, of one call",
    "min_ns": "ns, inclusive, of one call",
    "max_ns": "ns, inclusive, of one call",
    "device_inclusive_ns": "ns, sum of durations of device work launched inside the calls; empty without any",
    "device_self_ns": "ns, of it launched by the calls themselves",
    "allocated_bytes": "bytes allocated in the calls themselves; empty when not collected",
    "freed_bytes": "bytes released in the calls themselves; empty when not collected",
    "flops": "estimated operations of the calls; empty without a model of the operator, or without shapes",
}
_KINDS = ("operator", "annotation", "step", "runtime", "communication")
_MOST_STEPS = 100_000
_LOSS = ("truncated", "unclosed", "lost_event")
"""Repairs that mean that a part of what was recorded is not in the file; others lose nothing."""

_IDENTITY = ("session_id", "rank", "role", "instance", "host", "pid", "device", "cycle", "mode")


def parse_job_folder(folder: str) -> dict[str, Any]:
    """Make the tables of a staging folder; return the files made and the warnings."""
    import orjson

    root = Path(folder)
    meta = orjson.loads((root / RANK_META).read_bytes())
    config = meta.get("config") or {}
    options = LoadOptions(rank=int(meta["rank"]))
    trace = read(Source(root / "raw" / "trace.json"), options)
    lost = [w for w in trace.meta["warnings"] if w.code in _LOSS]
    if lost:
        told = "; ".join(f"{w.message} (byte {w.offset})" for w in lost)
        raise CaptureError(f"the recording is damaged: {told}")
    parsed = root / "parsed"
    parsed.mkdir(exist_ok=True)

    memory = allocations(trace, host_rows(trace)) if config.get("profile_memory") else None
    table = operator_table(trace, config, memory)
    _write_csv(parsed / "operators.csv", table)
    made = ["operators.csv", "summary.json"]
    if config.get("with_stack"):
        lines = stack_lines(trace)
        write_whole(parsed / "stacks.folded", "".join(lines).encode(), durable=False)
        made.append("stacks.folded")
    if memory is not None and config.get("record_shapes") and config.get("with_stack"):
        _write_csv(parsed / "memory_timeline.csv", memory_timeline(trace, memory))
        made.append("memory_timeline.csv")
    summary = summarize(trace, meta, table, memory)
    write_whole(
        parsed / "summary.json",
        orjson.dumps(summary, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY),
        durable=False,
    )
    return {"files": made, "spans": len(trace.spans), "warnings": _repairs(trace)[:20]}


def _repairs(trace: TraceData) -> list[str]:
    """The loader's repairs, without the staging path, which will be gone."""
    return [f"{w.message} [{w.count} times]" for w in trace.meta["warnings"]]


def _write_csv(path: Path, frame: pd.DataFrame) -> None:
    write_whole(path, frame.to_csv(index=False, lineterminator="\n").encode(), durable=False)


def host_rows(trace: TraceData) -> NDArray[np.int64]:
    """Rows of the spans that ``operators.csv`` counts on the host."""
    spans = trace.spans
    wanted = spans["kind"].isin(_KINDS) & (spans["domain"] == "host") & (spans["timing"] == "measured")
    return np.flatnonzero(wanted.to_numpy())


def operator_table(
    trace: TraceData, config: dict[str, Any], memory: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the rows of ``operators.csv``; the columns are those of :data:`COLUMNS`.

    Parameters
    ----------
    config
        Options of the recording: what was not asked for is left empty, not zero.
    memory
        The recording's allocations.
    """
    by = ["kind", "track", *(["shape"] if config.get("record_shapes") else [])]
    host = operators(trace, by=by, kinds=_KINDS, sort=None)
    host["name"] = host["name"].astype(object)
    keys = ["name", *by]
    if memory is not None:
        host = host.merge(_memory_by_operator(trace, memory, by), on=keys, how="left")
        for column in ("allocated_bytes", "freed_bytes"):
            host[column] = host[column].fillna(0).astype("Int64")
    if config.get("with_flops") and config.get("record_shapes"):
        host = host.merge(_flops_by_operator(trace, by), on=keys, how="left")
    processes = dict(zip(trace.tracks["label"], trace.tracks["process"], strict=True))
    host = host.rename(
        columns={
            "track": "thread",
            "shape": "input_shapes",
            "total_ns": "inclusive_ns",
            "device_total_ns": "device_inclusive_ns",
        }
    )
    host = host.assign(domain="host", process=host["thread"].map(processes))
    host = host.sort_values("self_ns", ascending=False, kind="stable")
    device = kernels(trace, by=("device", "stream"))
    device = device.rename(columns={"class": "kind", "stream": "thread", "total_ns": "inclusive_ns"})
    device["name"], device["kind"] = device["name"].astype(object), device["kind"].astype(object)
    device = device.assign(domain="gpu")
    parts = [part.reindex(columns=list(COLUMNS)).astype(object) for part in (host, device)]
    return pd.concat(parts, ignore_index=True)


def _labels(trace: TraceData, rows: NDArray[np.int64], by: list[str]) -> dict[str, Any]:
    names = trace.spans["name"].array[rows].astype(object)
    return {"name": names, **{name: attribute(trace, rows, name) for name in by}}


def _memory_by_operator(trace: TraceData, memory: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Sum allocations and releases over the operators that ``operators.csv`` tells apart."""
    owned = memory[memory["owner"] >= 0]
    delta = owned["delta_bytes"].fillna(0).astype("int64")
    owners, position = np.unique(owned["owner"].to_numpy(), return_inverse=True)
    frame = pd.DataFrame(_labels(trace, owners, by)).iloc[position].reset_index(drop=True)
    frame["allocated_bytes"] = delta.clip(lower=0).to_numpy()
    frame["freed_bytes"] = (-delta).clip(lower=0).to_numpy()
    groups = frame.groupby(["name", *by], dropna=False, sort=False)
    return groups[["allocated_bytes", "freed_bytes"]].sum().reset_index()


def _flops_by_operator(trace: TraceData, by: list[str]) -> pd.DataFrame:
    """Sum the estimated operations of all calls whose operator has a cost model."""
    rows = host_rows(trace)
    names = trace.spans["name"].array[rows].astype(object)
    modelled = rows[[family(str(name)) is not None for name in names]]
    frame = pd.DataFrame(_labels(trace, modelled, by))
    estimates = []
    for name, details in zip(frame["name"], trace.args.read(modelled), strict=True):
        work = work_of(
            str(name), details.get("Input Dims"), details.get("Input type"), details.get("Concrete Inputs")
        )
        estimates.append(pd.NA if work is None else work.flops)
    frame["flops"] = pd.array(estimates, dtype="Int64")
    groups = frame.groupby(["name", *by], dropna=False, sort=False)
    return groups[["flops"]].sum(min_count=1).reset_index()


def stack_lines(trace: TraceData) -> list[str]:
    """Return self time by call stack, one ``frame;frame;operator nanoseconds`` per line (folded stacks)."""
    spans = trace.spans
    wanted = spans["kind"].isin((*_KINDS, "python")) & (spans["domain"] == "host")
    rows = np.flatnonzero((wanted & (spans["timing"] == "measured")).to_numpy())
    stacks = python_stacks(trace, rows)
    names = spans["name"].array[rows].astype(object)
    self_ns = spans["self_ns"].to_numpy()[rows]
    total: dict[str, int] = {}
    for stack, name, spent in zip(stacks, names, self_ns, strict=True):
        plain = str(name).replace(";", ",").replace("\n", " ")
        key = plain if stack is None else f"{stack};{plain}".replace("\n", " ")
        total[key] = total.get(key, 0) + int(spent)
    return [f"{key} {spent}\n" for key, spent in sorted(total.items()) if spent > 0]


def memory_timeline(trace: TraceData, memory: pd.DataFrame) -> pd.DataFrame:
    """Return every allocation with the operator and the Python frames that it happened in."""
    owner = memory["owner"].to_numpy()
    names = trace.spans["name"].array.astype(object)
    known = owner >= 0
    operator = np.full(len(owner), None, dtype=object)
    operator[known] = np.asarray(names, dtype=object)[owner[known]]
    stack = np.full(len(owner), None, dtype=object)
    stack[known] = python_stacks(trace, owner[known])
    frame = memory.drop(columns=["owner", "track"])
    return frame.assign(operator=operator, stack=stack)


def _busy(trace: TraceData, rows: NDArray[np.int64]) -> int:
    """Time in which at least one of the spans lasts, ns."""
    start = trace.spans["start_ns"].to_numpy(dtype="int64", na_value=0)[rows]
    return length(merge(start, start + trace.spans["dur_ns"].to_numpy()[rows]))


def summarize(
    trace: TraceData, meta: dict[str, Any], table: pd.DataFrame, memory: pd.DataFrame | None
) -> dict[str, Any]:
    """Return what ``summary.json`` says: totals with their meaning, and what is not there with the reason."""
    config = meta.get("config") or {}
    spans = trace.spans
    on_device = np.flatnonzero((spans["domain"] == "gpu").to_numpy())
    steps = spans[(spans["kind"] == "step") & (spans["domain"] == "host")].head(_MOST_STEPS)
    host = table[table["domain"] == "host"]
    operators_only = host[host["kind"] == "operator"]
    device_rows = table[table["domain"] == "gpu"]
    some = len(on_device) > 0
    return {
        "format": SUMMARY_FORMAT,
        "identity": {key: meta.get(key) for key in _IDENTITY},
        "config": config,
        "collection": {k: meta.get(k) for k in ("start_unix_ns", "stop_unix_ns", "stop_s", "export_s")},
        "clock": {"base_unix_ns": trace.meta.get("base_ns"), "aligned_with_other_hosts": False},
        "trace": {
            "spans": len(spans),
            "instants": len(trace.instants),
            "duration_ns": trace.duration_ns,
            "warnings": _repairs(trace),
        },
        "host": {
            "operator_calls": int(operators_only["calls"].sum()),
            "operator_self_ns": int(operators_only["self_ns"].sum()),
            "threads": _threads(trace),
        },
        "device": {
            "calls": int(device_rows["calls"].sum()) if some else None,
            "summed_durations_ns": int(device_rows["inclusive_ns"].sum()) if some else None,
            "busy_ns": _busy(trace, on_device) if some else None,
        },
        "steps": [
            {"name": str(name), "start_ns": int(start), "dur_ns": int(dur)}
            for name, start, dur in zip(steps["name"], steps["start_ns"], steps["dur_ns"], strict=True)
        ],
        "memory": _memory_summary(memory),
        "units": {
            "duration_ns": "from the first start to the last end",
            "operator_self_ns": "host time of operators without their children, all threads: not wall time",
            "summed_durations_ns": "kernels overlap on streams: not wall time",
            "busy_ns": "time in which at least one kernel or copy runs",
        },
        "columns": COLUMNS,
        "unavailable": _unavailable(config, some),
    }


def _threads(trace: TraceData) -> list[dict[str, Any]]:
    tracks = trace.tracks
    track = trace.spans["track"].to_numpy()
    counted = np.zeros(len(track), bool)
    counted[host_rows(trace)] = True
    counted |= (trace.spans["kind"] == "python").to_numpy()
    out = []
    for number in np.flatnonzero((tracks["domain"] == "host").to_numpy()):
        rows = np.flatnonzero((track == number) & counted)
        if len(rows):
            process = tracks["process"].iloc[number]
            out.append(
                {
                    "thread": str(tracks["label"].iloc[number]),
                    "process": None if process is None else str(process),
                    "spans": len(rows),
                    "busy_ns": _busy(trace, rows),
                }
            )
    return out


def _memory_summary(memory: pd.DataFrame | None) -> dict[str, Any] | None:
    if memory is None:
        return None
    out = {}
    for device, part in memory.groupby("device", sort=True):
        delta = part["delta_bytes"].fillna(0)
        totals = part["allocated_bytes"].dropna()
        out[str(device)] = {
            "allocations": int((delta > 0).sum()),
            "releases": int((delta < 0).sum()),
            "allocated_bytes": int(delta[delta > 0].sum()),
            "released_bytes": int(-delta[delta < 0].sum()),
            "peak_allocated_bytes": int(totals.max()) if len(totals) else None,
        }
    return out


def _unavailable(config: dict[str, Any], device: bool) -> dict[str, str]:
    """Give the reason for everything that is missing."""
    out = {}
    if not config.get("record_shapes"):
        out["input_shapes"] = "record_shapes was off"
    if not config.get("profile_memory"):
        out["memory"] = "profile_memory was off"
    elif not (config.get("record_shapes") and config.get("with_stack")):
        out["memory_timeline"] = "needs record_shapes, with_stack and profile_memory together"
    if not config.get("with_stack"):
        out["stacks"] = "with_stack was off"
    if not config.get("with_flops"):
        out["flops"] = "with_flops was off"
    elif not config.get("record_shapes"):
        out["flops"] = "operations are estimated from shapes, and record_shapes was off"
    if not device:
        out["device"] = "no device activity is in the trace"
    return out
