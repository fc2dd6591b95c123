"""The tables of an export as a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.nsys.about import DIAGNOSTICS, described, diagnostics
from torchtrt_viz.formats.nsys.accounting import accounting_of, unread_tables
from torchtrt_viz.formats.nsys.args import RowArgs
from torchtrt_viz.formats.nsys.counters import counters_frame, read_metrics
from torchtrt_viz.formats.nsys.device_tables import read_device
from torchtrt_viz.formats.nsys.events import MEASURED, Events, Part, Scopes
from torchtrt_viz.formats.nsys.host_tables import read_host
from torchtrt_viz.formats.nsys.memory import read_memory
from torchtrt_viz.formats.nsys.names import Names
from torchtrt_viz.formats.nsys.nvtx import read_nvtx
from torchtrt_viz.formats.nsys.places import Places
from torchtrt_viz.formats.session.rank_names import read_rank_name
from torchtrt_viz.model import schema
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.nsys.export import Export

__all__ = ["trace_of"]


def trace_of(export: Export, path: str, options: LoadOptions) -> TraceData:
    """Make the trace of an export.

    Raises
    ------
    TraceFormatError
        When there is no event in any table that is read; with ``options.strict`` also for any damage.
    """
    names = Names(export)
    places = Places(export, names)
    scopes, events = Scopes(), Events()
    ranges, domains = read_nvtx(export, names, places, events)
    read = dict(ranges)
    read |= read_host(export, names, places, scopes, events)
    read |= read_device(export, names, places, scopes, events)
    rank = _rank(path, options.rank)
    allocations, found = read_memory(export, names, places, scopes, events)
    metrics, sampled, without = read_metrics(export, places)
    read |= {**found, **sampled}
    events.leave_out("no_value_or_time", without)
    counters = counters_frame([each for each in (allocations, metrics) if each is not None], rank)
    messages, said, count, lost = diagnostics(export, path)
    if count:
        read[DIAGNOSTICS] = count, lost
    tracks = places.frame(rank)
    spans = _spans(events, names, scopes, rank)
    instants = _instants(events.instants, names, rank)
    rows = {"spans": len(spans), "instants": len(instants), "counters": len(counters), "flows": 0}
    accounting = accounting_of(export, read, events, rows, spans["dur_ns"].to_numpy())
    export.report(options)
    if not any(rows.values()):
        raise TraceFormatError(
            "the export holds no event that is read",
            path=path,
            offset=0,
            expected="kernels, copies, CUDA calls, NVTX ranges or metrics",
            found=", ".join(f"{name} {number}" for name, number in accounting["unread"].items()) or "none",
            hint="Record some: nsys profile --trace=cuda,nvtx PROGRAM",
        )
    options.warnings.extend(said)
    options.warnings.extend(unread_tables(accounting, list(export.closed_tables), path))
    _warn(events, path, options)
    meta = described(export)
    base = meta.pop("base_ns", None)
    return TraceData(
        spans=spans,
        tracks=tracks,
        instants=instants,
        counters=counters,
        meta={
            "format": "nsys",
            "sources": [path],
            **meta,
            "base_ns": base,
            "clock": "nanoseconds since the session's start, as the export gives them",
            "rank": None if rank < 0 else rank,
            "warnings": options.warnings,
            "accounting": accounting,
            "processes": places.described(),
            "diagnostics": messages,
        },
        args=RowArgs(export, events.spans, names, domains, places.devices),
        instant_args=RowArgs(export, events.instants, names, domains, places.devices),
    )


def _rank(path: str, given: int | None) -> int:
    if given is not None:
        return given
    said = read_rank_name(path.replace("!", "/"))
    return -1 if said is None or said.rank is None else said.rank


def _warn(events: Events, path: str, options: LoadOptions) -> None:
    if events.unfinished:
        text = "events without a recorded end are instants, state unfinished"
        options.warnings.append(Repair("missing_duration", text, path, count=events.unfinished))
    if events.invalid:
        text = (
            "events that end before they start, or whose times could not be had, are instants, state invalid"
        )
        options.repaired(Repair("invalid_duration", text, path, count=events.invalid))
    if events.unlinked:
        text = (
            "several processes launch work, and the export does not say whose the work on the device is: it "
            "is linked to no launch"
        )
        options.warnings.append(Repair("ambiguous_id", text, path, count=events.unlinked))
    for why, count in events.left_out.items():
        text = f"rows that hold no event of a known kind were left out ({why})"
        options.warnings.append(Repair("left_out", text, path, count=count))


def _joined(parts: Sequence[Part], column: str, dtype: Any) -> NDArray[Any]:
    """Put a column of all parts together; they hold it no longer."""
    out = np.empty(sum(len(part) for part in parts), dtype)
    at = 0
    for part in parts:
        out[at : at + len(part)] = part.take(column)
        at += len(part)
    return out


def _repeated(parts: Sequence[Part], value: Callable[[Part], int]) -> NDArray[np.int8]:
    """Return what is the same for all rows of a part."""
    return np.repeat(np.array([value(part) for part in parts], np.int8), [len(part) for part in parts])


def _spans(events: Events, names: Names, scopes: Scopes, rank: int) -> pd.DataFrame:
    parts = events.spans
    parts.sort(key=lambda part: part.timing)  # what was measured comes first
    for part in parts:
        if part.correlation is None:
            part.correlation = np.broadcast_to(np.int64(-1), len(part))
        else:
            part.correlation = scopes.dense(part.correlation)
    count = sum(len(part) for part in parts)
    track = _joined(parts, "track", np.int32)
    start = _joined(parts, "start", np.int64)
    dur = _joined(parts, "dur", np.int64)
    columns: dict[str, Any] = {
        "name": _named(names, _joined(parts, "name", np.int32)),
        "kind": _joined(parts, "kind", np.int8),
        "domain": _repeated(parts, lambda part: part.domain),
        "timing": _repeated(parts, lambda part: part.timing),
        "correlation": _joined(parts, "correlation", np.int64),
    }
    measured = sum(len(part) for part in parts if part.timing == MEASURED)
    parent, depth, own = _nested(track, start, dur, measured)
    return schema.SPANS.frame(
        {
            **columns,
            "track": track,
            "start_ns": start,
            "dur_ns": dur,
            "self_ns": own,
            "depth": depth,
            "parent": parent,
            "rank": rank,
        },
        count,
    )


def _nested(
    track: NDArray[np.int32], start: NDArray[np.int64], dur: NDArray[np.int64], measured: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return (parent, depth, self_ns); what comes after the measured spans is nobody's parent or child."""
    # the others lie on tracks of their own, so that they take nothing off what was measured
    parent, depth, own, _ = native("columns").nest(track, start, dur)
    parent[measured:], depth[measured:], own[measured:] = -1, 0, dur[measured:]
    return parent, depth, own


def _instants(parts: Sequence[Part], names: Names, rank: int) -> pd.DataFrame:
    return schema.INSTANTS.frame(
        {
            "name": _named(names, _joined(parts, "name", np.int32)),
            "kind": _joined(parts, "kind", np.int8),
            "domain": _repeated(parts, lambda part: part.domain),
            "track": _joined(parts, "track", np.int32),
            "ts_ns": _joined(parts, "start", np.int64),
            "state": _joined(parts, "dur", np.int8),
            "rank": rank,
        },
        sum(len(part) for part in parts),
    )


def _named(names: Names, codes: NDArray[np.int32]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, categories=pd.Index(names.texts, dtype="str"), validate=False)
