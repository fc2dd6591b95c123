"""Events of an ETDump that have no duration: values that were logged, allocations, and runs without an end.

Logged values ("debug events") and allocations carry no time. They are placed at the end of the event that
follows them in their run, the earliest recorded time by which they had happened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.loaders.etdump_dump import Events
from torchtrt_viz.loaders.etdump_runs import Runs

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz._native import etdump as native_etdump

__all__ = ["Points", "allocation_frame", "allocations", "debug_tensor", "debugs", "places"]

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
_SAME_BYTES = {"qint8": "int8", "quint8": "uint8", "qint32": "int32", "bits16": "uint16"}


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
        for code, output in zip(
            columns["name"][rows].tolist(), columns["output"][rows].tolist(), strict=True
        )
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


def debug_tensor(args: Mapping[str, Any], buffer: bytes) -> NDArray[Any]:
    """Return a logged tensor as an array.

    Parameters
    ----------
    args
        Arguments of the instant (``trace.instant_args[row]``), or one entry of its ``tensors``.
    buffer
        Content of the debug buffer that was written beside the ETDump.

    Returns
    -------
    numpy.ndarray
        A copy, of the shape and strides recorded; bfloat16 becomes float32.

    Raises
    ------
    TorchTrtVizError
        When the arguments describe no tensor, its type has no counterpart in numpy, or it lies outside
        the buffer.
    """
    if "offset" not in args:
        raise TorchTrtVizError(f"no tensor was logged here: {dict(args)}")
    name, sizes = str(args["dtype"]), list(args["sizes"])
    stored = "uint16" if name == "bfloat16" else _SAME_BYTES.get(name, name)
    try:
        dtype = np.dtype(stored)
    except TypeError:
        raise TorchTrtVizError(f"numpy has no type for elements of type {name}") from None
    strides = list(args["strides"])
    if len(strides) != len(sizes):
        strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    if any(size < 0 for size in sizes) or any(stride < 0 for stride in strides):
        raise TorchTrtVizError(f"a tensor of sizes {sizes} and strides {strides} cannot be")
    reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    needed = 0 if 0 in sizes else (reach + 1) * dtype.itemsize
    offset = int(args["offset"])
    # sizes with strides of 0 could ask for any number of elements
    if offset < 0 or offset + needed > len(buffer) or math.prod(sizes) * dtype.itemsize > len(buffer):
        raise TorchTrtVizError(
            f"the tensor lies at bytes {offset} to {offset + needed} of a debug buffer of {len(buffer)} bytes: "
            "it belongs to another dump, or was cut off"
        )
    if 0 in sizes:
        return np.zeros(sizes, np.float32 if name == "bfloat16" else dtype)
    flat = np.frombuffer(buffer, np.uint8, needed, offset).view(dtype) if needed else np.zeros(0, dtype)
    out = np.lib.stride_tricks.as_strided(
        flat, sizes, [stride * dtype.itemsize for stride in strides], writeable=False
    ).copy()
    if name == "bfloat16":
        return (out.astype(np.uint32) << 16).view(np.float32)
    return out


def _allocator_name(dump: native_etdump.Dump, run: int, allocator: int) -> str:
    # Allocators are numbered from 1, in the order in which the run lists them.
    first, behind = np.searchsorted(dump["allocators"]["run"], [run, run + 1]).tolist()
    if 1 <= allocator <= behind - first:
        code = int(dump["allocators"]["name"][first + allocator - 1])
        if code >= 0:
            return dump["strings"][code]
    return f"allocator {allocator}"


def allocation_frame(dump: native_etdump.Dump, ts_ns: NDArray[np.int64]) -> pd.DataFrame:
    """Return all allocations: ``block``, ``allocator``, ``bytes``, ``ts_ns`` (NA: no event to place it by)."""
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
            "allocator": np.array(labels, dtype=object),
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
