"""Collectives and transfers of one rank: sizes, and the bandwidth that they reached at least."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.device import COLLECTIVES
from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.attributes import as_text
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.element_types import element_bytes
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.links import launches
from torchtrt_viz.analysis.core.masks import names_matching, strings
from torchtrt_viz.analysis.core.tables import floats, integers, text
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["KINDS", "collectives", "kind_of"]

Ints = NDArray[np.int64]

KINDS: dict[str, re.Pattern[str]] = {
    "all_reduce": re.compile(r"all_?reduce", re.I),
    "reduce_scatter": re.compile(r"reduce_?scatter", re.I),
    "all_gather": re.compile(r"all_?gather", re.I),
    "all_to_all": re.compile(r"all_?to_?all", re.I),
    "broadcast": re.compile(r"broadcast", re.I),
    "barrier": re.compile(r"barrier", re.I),
    "gather": re.compile(r"gather", re.I),
    "scatter": re.compile(r"scatter", re.I),
    "reduce": re.compile(r"reduce", re.I),
    "send": re.compile(r"(?<!recv_)\bi?send\b|^send", re.I),
    "recv": re.compile(r"\bi?recv\b|^recv", re.I),
    "send_recv": re.compile(r"send_?recv", re.I),
}
_PARAMS = re.compile(r"^record_param_comms$")


def kind_of(name: str | None, kernel: str) -> str:
    """Return the sort of collective by the name it was recorded under, or by its kernel's; "unknown"."""
    for candidate in (name, kernel):
        for kind, pattern in KINDS.items():
            if candidate and pattern.search(candidate):
                return kind
    return "unknown"


def bus_factor(kind: str, ranks: int) -> float | None:
    """Return bus bytes per message byte: what each link carries in a ring; None where it is not defined."""
    if ranks < 2:
        return None
    if kind == "all_reduce":
        return 2.0 * (ranks - 1) / ranks
    if kind in ("reduce_scatter", "all_gather", "all_to_all"):
        return (ranks - 1) / ranks
    if kind in ("broadcast", "reduce", "send", "recv"):
        return 1.0
    return None


@returns(COLLECTIVES)
def collectives(trace: TraceData) -> pd.DataFrame:
    """Collectives and point-to-point transfers on devices, one row each, in order of start.

    A collective's kernel runs from this rank's arrival to the end of the transfer, so its duration contains
    the wait for later ranks: the bandwidth of a single rank is a lower bound. To tell waiting from
    transfer, compare ranks (:func:`torchtrt_viz.analysis.collective_skew`).

    Returns
    -------
    pandas.DataFrame
        One row per collective or point-to-point transfer on a device, in order of start.

    Examples
    --------
    >>> tv.analysis.collectives(trace)[["collective", "stream"]].head(1).to_dict("records")
    [{'collective': 'all_reduce', 'stream': 'stream 20'}]
    """
    work = device_work(trace)
    work = work.of(work.is_class("communication"))
    spans = trace.spans
    kernels = strings(spans["name"])[work.row]
    details = _details(trace, work.row)
    rows: list[dict[str, Any]] = []
    seen: dict[tuple[str | None, str | None], int] = {}
    for found, kernel in zip(details, kernels, strict=True):
        kind = kind_of(as_text(found.get("Collective name")), str(kernel))
        group, ranks = as_text(found.get("Process Group Name")), as_text(found.get("Process Group Ranks"))
        key = (group, ranks)
        seen[key] = seen.get(key, -1) + 1
        size = _number(found.get("Group size"))
        message = _message_bytes(kind, found)
        rows.append(
            {
                "kernel": kernel,
                "collective": kind,
                "group": group,
                "group_size": size,
                "group_ranks": ranks,
                "sequence": seen[key],
                "dtype": as_text(found.get("dtype")),
                "message_bytes": message,
                "factor": bus_factor(kind, int(size)) if size else None,
            }
        )
    frame = pd.DataFrame(
        rows,
        columns=[
            "kernel",
            "collective",
            "group",
            "group_size",
            "group_ranks",
            "sequence",
            "dtype",
            "message_bytes",
            "factor",
        ],
    )
    dur = work.dur.astype(np.float64)
    size_of = _floats(frame["message_bytes"])
    with np.errstate(invalid="ignore", divide="ignore"):
        algorithm = np.where(dur > 0, size_of / dur, np.nan)  # byte per ns are 10^9 byte per s
    return pd.DataFrame(
        {
            "row": work.row,
            "device": integers(work.device, work.device >= 0),
            "stream": trace.tracks["label"].to_numpy(dtype=object)[work.track],
            "kernel": text(frame["kernel"].to_list()),
            "collective": text(frame["collective"].to_list()),
            "group": text(frame["group"].to_list()),
            "group_size": _integers(frame["group_size"]),
            "group_ranks": text(frame["group_ranks"].to_list()),
            "sequence": frame["sequence"].to_numpy(dtype=np.int64),
            "dtype": text(frame["dtype"].to_list()),
            "message_bytes": _integers(frame["message_bytes"]),
            "start_ns": work.start,
            "dur_ns": work.dur,
            "algorithm_gbps": floats(algorithm),
            "bus_gbps": floats(algorithm * _floats(frame["factor"])),
        }
    )


def _details(trace: TraceData, rows: Ints) -> list[dict[str, Any]]:
    """Return the recorded parameters: of the kernel itself, else of the host event that started it."""
    found = trace.args.read(rows)
    lacking = [position for position, details in enumerate(found) if "Collective name" not in details]
    if lacking:
        owners = _parameter_rows(trace, rows[lacking])
        known = owners >= 0
        host = trace.args.read(owners[known])
        for position, details in zip(np.array(lacking)[known], host, strict=True):
            found[position] = {**details, **found[position]}
    return found


def _parameter_rows(trace: TraceData, rows: Ints) -> Ints:
    """Return the host event that records a collective's parameters, -1 none."""
    spans = trace.spans
    params = names_matching(spans["name"], _PARAMS)
    if not params.any():
        return np.full(len(rows), -1, np.int64)
    found = launches(trace)
    position = np.full(len(spans), -1, np.int64)
    position[found.work.row] = np.arange(len(found.work))
    host = found.host[position[rows]]
    above = nearest(host_nesting(trace).parent, params)
    out = np.where(host >= 0, above[np.maximum(host, 0)], -1)
    external = filled(spans["external_id"])
    by_id = {int(external[row]): int(row) for row in np.flatnonzero(params) if external[row] > 0}
    for index in np.flatnonzero(out < 0):
        out[index] = by_id.get(int(external[rows[index]]), -1)
    return out


def _message_bytes(kind: str, found: dict[str, Any]) -> int | None:
    per_element = element_bytes(found.get("dtype"))
    elements = _number(found.get("Out msg nelems" if kind == "all_gather" else "In msg nelems"))
    return None if per_element is None or elements is None else round(elements * per_element)


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _floats(column: pd.Series) -> NDArray[np.float64]:
    return np.array([np.nan if pd.isna(value) else float(value) for value in column], dtype=np.float64)


def _integers(column: pd.Series) -> pd.arrays.IntegerArray:
    known = [not pd.isna(value) for value in column]
    return integers([int(value) if here else 0 for value, here in zip(column, known, strict=True)], known)
