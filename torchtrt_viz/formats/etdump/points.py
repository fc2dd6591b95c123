"""Events of an ETDump that have no duration: values that were logged, allocations, and runs without an end.

Logged values ("debug events") and allocations carry no time. They are placed at the end of the event that
follows them in their run, the earliest recorded time by which they had happened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.etdump.dump import Events
from torchtrt_viz.formats.etdump.runs import Runs
from torchtrt_viz.model import schema
from torchtrt_viz.model.args import ArgsSource

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz._native import etdump as native_etdump

__all__ = [
    "Points",
    "allocation_frame",
    "allocations",
    "debugs",
    "instants_frame",
    "places",
    "unfinished",
]

#: ScalarType of scalar_type.fbs -> (name, bytes per element)
SCALAR_TYPES: dict[int, tuple[str, int]] = {
    0: ("uint8", 1),
    1: ("int8", 1),
    2: ("int16", 2),
    3: ("int32", 4),
    4: ("int64", 8),
    5: ("float16", 2),
    6: ("float32", 4),
    7: ("float64", 8),
    11: ("bool", 1),
    12: ("qint8", 1),
    13: ("quint8", 1),
    14: ("qint32", 4),
    15: ("bfloat16", 2),
    22: ("bits16", 2),
    23: ("float8_e5m2", 1),
    24: ("float8_e4m3fn", 1),
    25: ("float8_e5m2fnuz", 1),
    26: ("float8_e4m3fnuz", 1),
    27: ("uint16", 2),
    28: ("uint32", 4),
    29: ("uint64", 8),
}
VALUE_TYPES = ("null", "int", "bool", "float", "double", "tensor", "tensor_list", "string")


@dataclass
class Points:
    """Instants of one sort: columns of ``trace.instants``, and the arguments of each."""

    name: list[str]
    kind: str
    state: str
    ts_ns: NDArray[np.int64]
    run: NDArray[np.int32]
    args: Any

    def __len__(self) -> int:
        return len(self.name)


def places(
    run: NDArray[np.int32],
    after: NDArray[np.int64],
    raw_first: NDArray[np.int64],
    kept: NDArray[np.int64] | None,
    events: Events,
    runs: Runs,
) -> NDArray[np.int64]:
    """Return times for events that follow ``after`` others in their run; -1 where the run has none."""
    raw = raw_first[run] + after
    row = raw if kept is None else np.searchsorted(kept, raw)
    last = runs.first[run] + runs.count[run] - 1
    at = np.minimum(row, last)
    known = runs.count[run] > 0
    out = np.full(len(run), -1, np.int64)
    out[known] = events.start[at[known]] + events.dur[at[known]]
    return out


def debugs(dump: native_etdump.Dump, ts_ns: NDArray[np.int64]) -> Points:
    """Return the logged values that have a time."""
    columns = dump["debugs"]
    rows = np.flatnonzero(ts_ns >= 0)
    strings = dump["strings"]
    names = [
        strings[code] if code >= 0 else "method output" if output == 1 else "logged value"
        for code, output in zip(columns["name"][rows].tolist(), columns["output"][rows].tolist(), strict=True)
    ]
    return Points(
        names, "other", "instant", ts_ns[rows], columns["run"][rows], lambda i: debug_args(dump, int(rows[i]))
    )


def debug_args(dump: native_etdump.Dump, row: int) -> dict[str, Any]:
    """Return what one logged value says: a scalar, or tensors with their place in the debug buffer."""
    columns = dump["debugs"]
    out: dict[str, Any] = {"block": int(columns["run"][row]), "chain": int(columns["chain"][row])}
    if out["chain"] >= 0:
        out["instruction"] = int(columns["instruction"][row])
    if columns["delegate_name"][row] >= 0:
        out["delegate_debug_id"] = dump["strings"][int(columns["delegate_name"][row])]
    elif columns["delegate_id"][row] != -1:
        out["delegate_debug_id"] = int(columns["delegate_id"][row])
    kind = int(columns["type"][row])
    if kind < 0:
        return out
    out["value_type"] = VALUE_TYPES[kind] if kind < len(VALUE_TYPES) else f"unknown ({kind})"
    if columns["output"][row] >= 0:
        out["output"] = bool(columns["output"][row])
    if out["value_type"] == "int":
        out["value"] = int(columns["integer"][row])
    elif out["value_type"] == "bool":
        out["value"] = bool(columns["integer"][row])
    elif out["value_type"] in ("float", "double"):
        out["value"] = float(columns["real"][row])
    first, count = int(columns["tensor_first"][row]), int(columns["tensor_count"][row])
    tensors = [_tensor(dump["tensors"], first + i) for i in range(count)]
    if out["value_type"] == "tensor_list":
        out["tensors"] = tensors
    elif tensors:
        out |= tensors[0]
    return out


def _tensor(columns: native_etdump.Tensors, row: int) -> dict[str, Any]:
    scalar_type = int(columns["scalar_type"][row])
    name, width = SCALAR_TYPES.get(scalar_type, (f"unknown ({scalar_type})", 0))

    def part(first: str, count: str, values: str) -> list[int]:
        begin = int(columns[first][row])  # type: ignore[literal-required]
        return columns[values][begin : begin + int(columns[count][row])].tolist()  # type: ignore[literal-required,no-any-return]

    sizes = part("size_first", "size_count", "sizes")
    elements = math.prod(max(size, 0) for size in sizes)
    return {
        "dtype": name,
        "sizes": sizes,
        "strides": part("stride_first", "stride_count", "strides"),
        "offset": int(columns["offset"][row]),
        "nbytes": elements * width,
    }


def _allocator_name(dump: native_etdump.Dump, run: int, allocator: int) -> str:
    # Allocators are numbered from 1, in the order in which the run lists them.
    first, behind = np.searchsorted(dump["allocators"]["run"], [run, run + 1]).tolist()
    if 1 <= allocator <= behind - first:
        code = int(dump["allocators"]["name"][first + allocator - 1])
        if code >= 0:
            return dump["strings"][code]
    return f"allocator {allocator}"


def allocation_frame(dump: native_etdump.Dump, ts_ns: NDArray[np.int64]) -> pd.DataFrame:
    """Return all allocations: ``block``, ``allocator``, ``bytes``, ``ts_ns`` (NA: no event places it)."""
    import pandas as pd

    columns = dump["allocations"]
    names: dict[tuple[int, int], str] = {}
    labels = []
    for run, allocator in zip(columns["run"].tolist(), columns["allocator"].tolist(), strict=True):
        if (run, allocator) not in names:
            names[run, allocator] = _allocator_name(dump, run, allocator)
        labels.append(names[run, allocator])
    times = pd.array(np.maximum(ts_ns, 0), dtype="Int64")
    times[ts_ns < 0] = pd.NA
    return pd.DataFrame(
        {
            "block": columns["run"],
            "allocator": pd.Series(labels, dtype=object),
            "bytes": columns["size"],
            "ts_ns": times,
        }
    )


def allocations(frame: pd.DataFrame) -> Points:
    """Return the allocations that have a time."""
    rows = np.flatnonzero(frame["ts_ns"].notna().to_numpy())
    run = frame["block"].to_numpy()[rows].astype(np.int32)
    names = frame["allocator"].to_numpy()[rows]
    sizes = frame["bytes"].to_numpy()[rows]
    return Points(
        [f"allocate: {name}" for name in names],
        "memory",
        "instant",
        frame["ts_ns"].to_numpy(dtype=np.int64, na_value=-1)[rows],
        run,
        lambda i: {"block": int(run[i]), "allocator": str(names[i]), "bytes": int(sizes[i])},
    )


def unfinished(runs: Runs) -> Points:
    """Return an instant for each execution without an end, at its first event."""
    rows = np.array([run for run in runs.unfinished() if runs.start[run] <= runs.end[run]], np.int64)
    return Points(
        ["Method::execute"] * len(rows),
        "method",
        "unfinished",
        runs.start[rows],
        rows.astype(np.int32),
        lambda i: _unfinished_args(runs, int(rows[i])),
    )


def _unfinished_args(runs: Runs, run: int) -> dict[str, Any]:
    out: dict[str, Any] = {
        "block": run,
        "iteration": int(runs.iteration[run]),
        "reason": "the runtime wrote no end of this execution: it failed, or the dump ends in it",
    }
    method = runs.method_name(run)
    if method is not None:
        out["method"] = method
    return out


class _PointArgs:
    def __init__(self, points: list[Points]) -> None:
        self._points = [part for part in points if len(part)]
        self._edges = np.cumsum([len(part) for part in self._points])

    def read(self, rows: NDArray[Any]) -> list[dict[str, Any]]:
        out = []
        for row in rows.tolist():
            part = int(np.searchsorted(self._edges, row, side="right"))
            before = int(self._edges[part - 1]) if part else 0
            out.append(dict(self._points[part].args(row - before)))
        return out


def instants_frame(
    points: list[Points], lane: NDArray[np.int32], rank: int
) -> tuple[pd.DataFrame, ArgsSource | None]:
    """Return ``trace.instants`` and its arguments; ``lane`` has the track of each run."""
    parts = [part for part in points if len(part)]
    if not parts:
        return schema.INSTANTS.frame({}), None

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    frame = schema.INSTANTS.frame(
        {
            "name": [name for part in parts for name in part.name],
            "kind": np.concatenate(
                [np.full(len(part), schema.KINDS.index(part.kind), np.int8) for part in parts]
            ),
            "state": np.concatenate(
                [np.full(len(part), schema.STATES.index(part.state), np.int8) for part in parts]
            ),
            "track": lane[joined("run")],
            "ts_ns": joined("ts_ns"),
            "rank": rank,
        }
    )
    return frame, _PointArgs(parts)
