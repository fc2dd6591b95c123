"""Rows of the timeline of a trace-event file: which thread, stream or counter, and what it is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchtrt_viz.formats.producers.rules import GPU, Place
from torchtrt_viz.model import schema

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Labels", "identity", "tracks_frame"]

_MAX_DEVICE = 4096
_MAX_DIGITS = 18
_DEVICE_LABEL = re.compile(r"(?:GPU|XPU|NPU|MTIA|HPU) (\d{1,4})$")

Lane = tuple[str, "str | None", "str | None", "str | None", "int | None"]
"""(thread, stream, async or counter; process; thread; label of asynchronous work; device)"""


def identity(text: str | None) -> int | str | None:
    """Return a process or thread id as the number that it is, or its text."""
    if text is None:
        return None
    digits = text[1:] if text.startswith("-") else text
    plain = digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS
    return int(text) if plain and (digits == "0" or not digits.startswith("0")) else text


@dataclass
class Labels:
    """What metadata events say, by process and by (process, thread), wherever in the file they stood."""

    processes: dict[str | None, tuple[str, str, int | None]] = field(default_factory=dict)
    threads: dict[tuple[str | None, str | None], tuple[str, int | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[tuple[str | None, str | None, bool, str, str, int | None]]) -> Labels:
        """Take the decoder's rows: process, thread, of a thread, name, labels, sort index."""
        out = cls()
        for process, thread, of_thread, name, labels, sort_index in rows:
            if of_thread:
                out.threads[process, thread] = (name.strip(), sort_index)
            else:
                out.processes[process] = (name.strip(), labels.strip(), sort_index)
        return out

    def described(self, limit: int = 1000) -> dict[int | str | None, dict[str, Any]]:
        """Return name and labels of the processes that have them, for ``trace.meta``."""
        out: dict[int | str | None, dict[str, Any]] = {}
        for process, (name, labels, _) in self.processes.items():
            if (name or labels) and len(out) < limit:
                out[identity(process)] = {"name": name, "labels": labels}
        return out


def _label(lane: Lane, labels: Labels, device: int | None, shared: bool) -> str:
    kind, process, thread, work, _ = lane
    if kind == "async":
        return work or "asynchronous work"
    if kind == "counter":
        name = labels.processes.get(process, ("", "", None))[0]
        return f"counters of {name or 'process'} {process}" if process else "counters"
    given = labels.threads.get((process, thread), ("", None))[0]
    known = identity(thread)
    text = given or (f"{kind} {known}" if isinstance(known, int) else known or "")
    if kind == "stream":
        text = text or "stream"
        return text if device is None else f"GPU {device} {text}"
    if shared:  # what the host did about a stream, which the file puts under the stream's id
        return f"{text or 'thread'} (host)"
    return text or (f"process {process}" if process else "no thread")


def _placed(lane: Lane, place: Place | None) -> Lane:
    """Take a lane for a device's stream where its names say so."""
    if place is None or place.domain != GPU or lane[0] != "thread":
        return lane
    return ("stream", *lane[1:])


def _device(lane: Lane, labels: Labels, place: Place | None) -> int | None:
    kind, process, _, _, device = lane
    if kind != "stream":
        return None
    if device is not None and 0 <= device < _MAX_DEVICE:
        return device
    if place is not None and place.device is not None:
        return place.device
    # libkineto labels the process of a device "GPU 0"; a small process id alone says nothing
    said = _DEVICE_LABEL.match(labels.processes.get(process, ("", "", None))[1])
    return int(said[1]) if said else None


def _sort_indices(lanes: Sequence[Lane], labels: Labels) -> list[int]:
    """One number for (order of the process, order of the thread): their rank."""
    keys = [
        (
            labels.processes.get(process, ("", "", None))[2] or 0,
            labels.threads.get((process, thread), ("", None))[1] or 0,
        )
        for _, process, thread, _, _ in lanes
    ]
    rank = {key: number for number, key in enumerate(sorted(set(keys)))}
    return [rank[key] for key in keys]


def tracks_frame(
    lanes: Sequence[Lane], labels: Labels, rank: int, places: Sequence[Place | None]
) -> pd.DataFrame:
    """Return ``trace.tracks``, one row a lane."""
    import pandas as pd

    lanes = [_placed(lane, place) for lane, place in zip(lanes, places, strict=True)]
    devices = [_device(lane, labels, place) for lane, place in zip(lanes, places, strict=True)]
    streams = {lane[1:3] for lane in lanes if lane[0] == "stream"}
    types = ["process" if kind == "thread" and thread is None else kind for kind, _, thread, _, _ in lanes]
    return schema.TRACKS.frame(
        {
            "label": [
                _label(lane, labels, device, lane[1:3] in streams)
                for lane, device in zip(lanes, devices, strict=True)
            ],
            "type": types,
            "domain": ["gpu" if kind == "stream" else "host" for kind, *_ in lanes],
            "process": [identity(lane[1]) for lane in lanes],
            "thread": [identity(lane[2]) for lane in lanes],
            "process_name": [labels.processes.get(lane[1], ("", "", None))[0] or None for lane in lanes],
            "device": pd.array(devices, dtype="Int32"),
            "rank": rank,
            "sort_index": _sort_indices(lanes, labels),
        },
        length=len(lanes),
    )
