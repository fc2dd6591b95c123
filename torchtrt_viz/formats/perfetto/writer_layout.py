"""How a trace's tracks become Perfetto's processes, threads and lanes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz._native import native
from torchtrt_viz.model import schema
from torchtrt_viz.model.places import process_label

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Group", "Layout", "clean", "layout"]

_FIRST_MADE_UP_ID = 1_000_001
_LAST_NUMBER = re.compile(r"(\d{1,9})\s*$")
_MOST_INT32 = 2**31 - 1


@dataclass
class Group:
    """A process of the written trace: the host side of a process, or a device."""

    name: str
    pid: int
    order: int


@dataclass
class Layout:
    """Where each track goes.

    Attributes
    ----------
    groups
        Processes.
    group_of, tid_of, name_of, order_of
        For each row of ``trace.tracks``: its process, thread id, name and position in the process.
    placed
        Rows of ``trace.spans`` that have a place on the time axis.
    modeled
        For each of them whether the place was computed and not observed.
    lane
        For each of them its lane of the track, 0 for the first. Modeled spans have lanes of their own.
    """

    groups: list[Group]
    group_of: list[int]
    tid_of: list[int]
    name_of: list[str]
    order_of: list[int]
    placed: np.ndarray
    modeled: np.ndarray
    lane: np.ndarray


def clean(text: object) -> str:
    """Return text that every encoder takes: lone surrogates become "?"."""
    return str(text).encode("utf-8", "replace").decode("utf-8")


def layout(trace: TraceData) -> Layout:
    """Plan the processes, threads and lanes of a trace."""
    tracks = trace.tracks
    groups, group_of = _groups(tracks)
    timing = trace.spans["timing"].cat.codes.to_numpy()
    somewhere = (timing != schema.TIMINGS.index("aggregate")) & trace.spans["start_ns"].notna().to_numpy()
    placed = np.flatnonzero(somewhere)
    spans = trace.spans.iloc[placed]
    modeled = timing[placed] == schema.TIMINGS.index("modeled")
    lane = native("perfetto").assign_lanes(
        np.ascontiguousarray(spans["track"].to_numpy(dtype=np.int32) * 2 + modeled, dtype=np.int32),
        np.ascontiguousarray(spans["start_ns"].to_numpy(dtype=np.int64)),
        np.ascontiguousarray(spans["dur_ns"].to_numpy(dtype=np.int64)),
    )
    order = np.lexsort((np.arange(len(tracks)), tracks["sort_index"].to_numpy()))
    order_of = [0] * len(tracks)
    for position, row in enumerate(order):
        order_of[int(row)] = position + 1
    return Layout(
        groups=groups,
        group_of=group_of,
        tid_of=_thread_ids(tracks, group_of),
        name_of=[clean(label) for label in tracks["label"]],
        order_of=order_of,
        placed=placed,
        modeled=modeled,
        lane=lane,
    )


def _groups(tracks: pd.DataFrame) -> tuple[list[Group], list[int]]:
    """One process for the host side of each process, one for each device: host and GPU never share one."""
    import pandas as pd

    groups: list[Group] = []
    known: dict[Any, int] = {}
    group_of: list[int] = []
    pids: set[int] = set()
    for _, track in tracks.iterrows():
        gpu = track["domain"] == "gpu"
        rank = -1 if pd.isna(track["rank"]) else int(track["rank"])
        process = None if pd.isna(track["process"]) else clean(track["process"])
        said = process_label(process, track.get("process_name"))
        said = None if said is None else clean(said)
        device = None if pd.isna(track["device"]) else int(track["device"])
        place: Any = device if gpu and device is not None else process
        key = (gpu, rank, type(place).__name__, place)
        if key not in known:
            name = _group_name(gpu, said, device)
            if rank >= 0:
                name = f"rank {rank}: {name}"
            pid = _free_id(None if gpu else process, pids)
            known[key] = len(groups)
            groups.append(Group(name, pid, len(groups)))
        group_of.append(known[key])
    return groups, group_of


def _group_name(gpu: bool, process: str | None, device: int | None) -> str:
    if gpu:
        if device is not None:
            return f"GPU {device}"
        return f"GPU ({process})" if process else "GPU"
    if process is None:
        return "Host"
    return f"Host (process {process})" if process.isdigit() else f"Host ({process})"


def _thread_ids(tracks: pd.DataFrame, group_of: list[int]) -> list[int]:
    taken: dict[int, set[int]] = {}
    return [
        _free_id(thread, taken.setdefault(group, set()))
        for thread, group in zip(tracks["thread"], group_of, strict=True)
    ]


def _free_id(text: object, taken: set[int]) -> int:
    """Return the number that the producer gave, where it has one that is not taken, else a made-up one."""
    found = _LAST_NUMBER.search(text) if isinstance(text, str) else None
    number = int(found.group(1)) if found else 0
    if not 0 < number <= _MOST_INT32 or number in taken:
        number = _FIRST_MADE_UP_ID + len(taken)
        while number in taken:
            number += 1
    taken.add(number)
    return number
