"""A dump of torch.distributed's Flight Recorder as a trace.

A collective whose end the recorder found is a span: from the call that enqueued it to the moment at which the
watchdog noticed that it was complete, both by the host's clock. The work itself lies somewhere between, so
that the spans are ``modeled`` and stand in no sum. A collective without an end is an instant whose state is
``unfinished``. Every entry with all that it says is a row of ``analysis.recorded_collectives(trace)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.flight_recorder.columns import entries_frame
from torchtrt_viz.formats.flight_recorder.dump import Dump, read_dump
from torchtrt_viz.formats.flight_recorder.sniff import is_dump
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.session.rank_names import read_dump_name
from torchtrt_viz.model import schema
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "flight_recorder"

_CLOCK = (
    "the host's clock (Unix time): from the call that enqueues a collective to the moment at which the "
    "recorder found it complete, which may be late by the time between two looks"
)
_UNNAMED = "unnamed"
_UNFINISHED, _INVALID = schema.STATES.index("unfinished"), schema.STATES.index("invalid")
_DETAILS = (
    *("group", "group_desc", "sequence", "p2p_sequence", "state", "retired", "input_sizes", "input_types"),
    *("output_sizes", "output_types", "timeout_ns", "device_ns", "source", "stack", "thread_name"),
)


def sniff(head: bytes, filename: str) -> bool:
    """Tell a dump by its keys, as a pickle or as JSON."""
    return is_dump(head)


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read a dump.

    ``trace.meta["flight_recorder"]`` holds ``version``, ``library`` (version of the communication library),
    ``groups`` (name, description and ranks of each process group), ``status`` (for each group's number the
    last collective that was enqueued, started, completed, as the recorder counts them), ``cut`` (whether its
    end is missing) and ``entries``, a frame; ``trace.meta["accounting"]`` what became of every entry.

    Raises
    ------
    TraceFormatError
        When it is no dump, or nothing of it is whole; with ``strict`` at the first damage.
    """
    rank = options.rank if options.rank is not None else read_dump_name(source.filename).rank
    data = source.read()
    if options.progress is not None:
        options.progress(len(data), len(data))
    dump = read_dump(data, source.name, options)
    entries = entries_frame(dump)
    created, completed = _filled(entries["created_unix_ns"]), _filled(entries["completed_unix_ns"])
    base = int(created[created > 0].min()) if (created > 0).any() else None
    whole = (created > 0) & (completed >= created)
    points = (created > 0) & ~whole
    if not len(entries):
        options.warnings.append(
            Repair(
                "no_events", "the dump holds no entry: nothing was recorded, or all was left out", source.name
            )
        )
    elif (created <= 0).any():
        options.warnings.append(
            Repair(
                "no_time",
                "entries without a time are in the table and not among the events",
                source.name,
                count=int((created <= 0).sum()),
            )
        )
    tracks, lane = _tracks(entries, rank)
    of = -1 if rank is None else rank
    spans = _rows(entries, whole, lane, created - (base or 0))
    dur = (completed - created)[whole]
    invalid = completed[points] > 0
    instants = _rows(entries, points, lane, created - (base or 0))
    return TraceData(
        spans=schema.SPANS.frame(
            {**spans, "timing": "modeled", "dur_ns": dur, "self_ns": dur, "rank": of}, length=len(dur)
        ),
        tracks=tracks,
        instants=schema.INSTANTS.frame(
            {
                **{"ts_ns" if name == "start_ns" else name: values for name, values in instants.items()},
                "state": np.where(invalid, _INVALID, _UNFINISHED).astype(np.int8),
                "rank": of,
            },
            length=int(points.sum()),
        ),
        meta={
            "format": FORMAT,
            "sources": [source.name],
            "base_ns": base,
            "clock": _CLOCK,
            "rank": rank,
            "versions": {
                name: said
                for name, said in (("flight_recorder", dump.version), ("communication library", dump.library))
                if said
            },
            "warnings": options.warnings,
            "flight_recorder": {
                "version": dump.version,
                "library": dump.library,
                "groups": [
                    {"key": key, "name": group.name, "desc": group.desc, "ranks": group.ranks}
                    for key, group in dump.groups.items()
                ],
                "status": dump.status,
                "cut": dump.cut,
                "entries": entries,
            },
            "accounting": _accounting(dump, entries, dur, int(points.sum())),
        },
        args=_Details(entries, np.flatnonzero(whole)),
        instant_args=_Details(entries, np.flatnonzero(points)),
    )


class _Details:
    """What an entry says, as arguments of its event."""

    def __init__(self, entries: pd.DataFrame, rows: NDArray[np.int64]) -> None:
        self._entries = entries
        self._rows = rows

    def read(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        part = self._entries.iloc[self._rows[rows]]
        columns = {name: part[name].astype(object).where(part[name].notna(), None) for name in _DETAILS}
        return [
            {name: value for name, value in zip(columns, values, strict=True) if value is not None}
            for values in zip(*columns.values(), strict=True)
        ]


def _filled(column: pd.Series) -> NDArray[np.int64]:
    return column.to_numpy(dtype=np.int64, na_value=-1)


def _tracks(entries: pd.DataFrame, rank: int | None) -> tuple[pd.DataFrame, NDArray[np.int32]]:
    """Make a lane for each process group and backend; returns the lanes and each entry's."""
    keys = [entries[name] for name in ("backend", "group_desc", "group")]
    codes, lane = np.unique(
        np.column_stack([key.cat.codes.to_numpy() for key in keys]), axis=0, return_inverse=True
    )
    texts = [[*key.cat.categories, None] for key in keys]  # -1, none, is the last one
    labels = []
    for row in codes.tolist():
        backend, desc, group = (text[code] for text, code in zip(texts, row, strict=True))
        labels.append(f"{backend or 'collectives'} {desc or 'group'}" + (f" {group}" if group else ""))
    process = None if rank is None else f"rank {rank}"
    of = -1 if rank is None else rank
    tracks = schema.TRACKS.frame(
        {"label": labels, "type": "async", "process": process, "rank": of}, length=len(labels)
    )
    return tracks, lane.reshape(-1).astype(np.int32)


def _rows(
    entries: pd.DataFrame, chosen: NDArray[np.bool_], lane: NDArray[np.int32], start: NDArray[np.int64]
) -> dict[str, Any]:
    names = entries["profiling_name"]
    if names.hasnans:
        names = names.cat.add_categories([_UNNAMED]).fillna(_UNNAMED)
    return {
        "name": names.array[chosen],
        "kind": "communication",
        "track": lane[chosen],
        "start_ns": start[chosen],
    }


def _accounting(dump: Dump, entries: pd.DataFrame, dur: NDArray[np.int64], points: int) -> dict[str, Any]:
    """Return ``trace.meta["accounting"]``: ``in_file`` is what was read and left out together."""
    left_out = {what: count for what, count in dump.left_out.items() if count}
    return {
        "unit": "entries",
        "in_file": len(entries) + sum(left_out.values()),
        "read": len(entries),
        "repaired": 0,
        "left_out": left_out,
        "unread": dict(dump.unread),
        "rows": {"spans": len(dur), "instants": points, "entries": len(entries)},
        "span_ns": int(np.sum(dur, dtype=np.float64)),
    }
