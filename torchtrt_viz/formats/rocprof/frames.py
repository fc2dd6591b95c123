"""The events of a recording as a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.rocprof.args import RowArgs
from torchtrt_viz.formats.rocprof.counters import Series, counters_frame
from torchtrt_viz.formats.rocprof.events import Events, Names, Part
from torchtrt_viz.formats.rocprof.links import unique_links
from torchtrt_viz.formats.rocprof.places import Places
from torchtrt_viz.formats.session.rank_names import read_rank_name
from torchtrt_viz.model import schema
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions

__all__ = ["trace_of"]

_CLOCK = "nanoseconds since the machine's start, as the recording gives them"


def trace_of(
    events: Events,
    names: Names,
    places: Places,
    series: Sequence[Series],
    meta: dict[str, Any],
    path: str,
    options: LoadOptions,
) -> TraceData:
    """Make the trace.

    Raises
    ------
    TraceFormatError
        When there is no event in any table that is read; with ``options.strict`` also for any damage.
    """
    rank = _rank(path, options.rank)
    counters = counters_frame(series, rank)
    tracks = places.frame(rank)
    spans = _spans(events.spans, names, rank)
    instants = _instants(events.instants, names, rank)
    rows = {"spans": len(spans), "instants": len(instants), "counters": len(counters), "flows": 0}
    unread = {table: count for table, count in events.unread.items() if count}
    if not any(rows.values()):
        raise TraceFormatError(
            "the recording holds no event that is read",
            path=path,
            offset=0,
            expected="kernels, copies, calls of HIP or HSA, markers or counters",
            found=", ".join(f"{name} {count}" for name, count in unread.items()) or "none",
            hint="Record some: rocprofv3 --sys-trace -- PROGRAM",
        )
    _warn(events, unread, path, options)
    return TraceData(
        spans=spans,
        tracks=tracks,
        instants=instants,
        counters=counters,
        meta={
            "format": "rocprof",
            "sources": [path],
            **meta,
            "base_ns": None,
            "clock": _CLOCK,
            "rank": None if rank < 0 else rank,
            "warnings": options.warnings,
            "accounting": _accounting(events, unread, rows, spans["dur_ns"].to_numpy()),
            "processes": places.described(),
        },
        args=RowArgs(events.spans),
        instant_args=RowArgs(events.instants),
    )


def _accounting(events: Events, unread: dict[str, int], rows: dict[str, int], dur: Any) -> dict[str, Any]:
    """Return ``trace.meta["accounting"]``.

    ``in_file`` is the number of records of all tables; it equals ``read``, the sum of ``left_out`` and the
    sum of ``unread``. ``tables`` is the part of ``read`` by table, ``bookkeeping`` the part that describes
    the recording and becomes no row; ``table_ns`` has the durations of the spans by table.
    """
    described = {table: count for table, count in events.described.items() if count}
    read = sum(events.read.values()) + sum(described.values())
    return {
        "unit": "records",
        "in_file": read + sum(events.left_out.values()) + sum(unread.values()),
        "read": read,
        "repaired": 0,
        "left_out": dict(events.left_out),
        "unread": unread,
        "bookkeeping": described,
        "tables": dict(events.read),
        "table_ns": dict(events.times),
        "rows": rows,
        "span_ns": int(np.sum(dur, dtype=np.float64)),
    }


def _warn(events: Events, unread: dict[str, int], path: str, options: LoadOptions) -> None:
    warnings = options.warnings
    if events.unfinished:
        text = "events without a recorded end are instants, state unfinished"
        warnings.append(Repair("missing_duration", text, path, count=events.unfinished))
    if events.invalid:
        text = "events that end before they start, or have no times, are instants, state invalid"
        options.repaired(Repair("invalid_duration", text, path, count=events.invalid))
    for why, count in events.left_out.items():
        text = f"records that cannot be placed or read were left out ({why})"
        warnings.append(Repair("left_out", text, path, count=count))
    if unread:
        words = ", ".join(f"{name} {count}" for name, count in list(unread.items())[:12])
        text = f"tables that are not read: {words}"
        warnings.append(Repair("unread_tables", text, path, count=sum(unread.values())))


def _rank(path: str, given: int | None) -> int:
    if given is not None:
        return given
    said = read_rank_name(path.replace("!", "/"))
    return -1 if said is None or said.rank is None else said.rank


def _joined(parts: Sequence[Part], column: str, dtype: Any) -> NDArray[Any]:
    arrays = [getattr(part, column) for part in parts]
    return np.concatenate(arrays).astype(dtype, copy=False) if arrays else np.zeros(0, dtype)


def _domains(parts: Sequence[Part]) -> NDArray[np.int8]:
    return np.repeat(np.array([part.domain for part in parts], np.int8), [len(part) for part in parts])


def _spans(parts: Sequence[Part], names: Names, rank: int) -> pd.DataFrame:
    track = _joined(parts, "track", np.int32)
    start, dur = _joined(parts, "start", np.int64), _joined(parts, "dur", np.int64)
    parent, depth, own, _ = native("columns").nest(track, start, dur)
    return schema.SPANS.frame(
        {
            "name": _named(names, _joined(parts, "name", np.int32)),
            "kind": _joined(parts, "kind", np.int8),
            "domain": _domains(parts),
            "track": track,
            "start_ns": start,
            "dur_ns": dur,
            "self_ns": own,
            "depth": depth,
            "parent": parent,
            "correlation": unique_links(parts),
            "rank": rank,
        },
        len(start),
    )


def _instants(parts: Sequence[Part], names: Names, rank: int) -> pd.DataFrame:
    start = _joined(parts, "start", np.int64)
    return schema.INSTANTS.frame(
        {
            "name": _named(names, _joined(parts, "name", np.int32)),
            "kind": _joined(parts, "kind", np.int8),
            "domain": _domains(parts),
            "track": _joined(parts, "track", np.int32),
            "ts_ns": start,
            "state": _joined(parts, "dur", np.int8),
            "rank": rank,
        },
        len(start),
    )


def _named(names: Names, codes: NDArray[np.int32]) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, categories=pd.Index(names.texts, dtype="str"), validate=False)
