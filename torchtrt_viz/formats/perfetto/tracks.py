"""Perfetto's tracks as rows of ``trace.tracks``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.formats.producers.rules import GPU
from torchtrt_viz.model import schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from torchtrt_viz.formats.producers.rules import Place

__all__ = ["TrackNames", "TrackTable"]

#: Numbers that the decoder gives to the sorts of track.
_CUSTOM, _PROCESS, _THREAD, _COUNTER, _SEQUENCE, _ASYNC, _QUEUE = range(7)
_TYPES = {
    _CUSTOM: "other",
    _PROCESS: "process",
    _THREAD: "thread",
    _COUNTER: "counter",
    _SEQUENCE: "other",
    _ASYNC: "async",
    _QUEUE: "stream",
}
_MOST_PARENTS = 64


class TrackNames:
    """What the decoder's tracks are called, by their index.

    Parameters
    ----------
    columns
        The decoder's columns.
    strings
        Its table of strings.
    """

    def __init__(self, columns: dict[str, np.ndarray], strings: list[str]) -> None:
        self._columns = columns
        self._strings = strings
        self._by_uuid = {int(uuid): i for i, uuid in enumerate(columns["uuid"]) if uuid}

    def number(self, column: str, index: int) -> int:
        """Return a value of a column."""
        return int(self._columns[column][index])

    def text(self, column: str, index: int) -> str | None:
        """Return the string that a column of codes refers to."""
        code = self.number(column, index)
        return None if code < 0 else self._strings[code]

    def own(self, index: int) -> str | None:
        """Return the name of the track, a thread's own where it is one."""
        return self.text("thread_name", index) or self.text("name", index)

    def _chain(self, index: int) -> Iterator[int]:
        """Yield the track and those above it; a circle of parents ends."""
        for _ in range(_MOST_PARENTS):
            yield index
            above = self._by_uuid.get(self.number("parent", index))
            if above is None:
                return
            index = above

    def above(self, index: int) -> list[str]:
        """Return the names of the tracks above, the nearest first."""
        names = [self.own(at) for at in list(self._chain(index))[1:]]
        return list(dict.fromkeys(name for name in names if name))

    def process_of(self, index: int) -> tuple[int, str | None]:
        """Find the process that a track belongs to, over its parents: (pid or -1, name)."""
        for at in self._chain(index):
            pid = self.number("pid", at)
            if pid >= 0:
                return pid, self.text("process_name", at)
        return -1, None

    def process(self, index: int) -> str | None:
        """Return the name of the process, None where there is none."""
        return self.process_of(index)[1]

    def gpu(self, index: int) -> int | None:
        """Return the number of the GPU that a track is said to be of, -1 for one without a number."""
        for at in self._chain(index):
            if self.number("gpu", at):
                return self.number("device", at)
        return None

    def is_lane(self, index: int) -> bool:
        """Whether the track is no thread's and no process's: what runs there is for its writer to say."""
        return self.number("kind", index) in (_CUSTOM, _ASYNC, _SEQUENCE)


class TrackTable:
    """Maps the decoder's tracks to rows.

    Tracks of one name under one parent are one row, as Perfetto shows them: writers of asynchronous work
    make a track for each operation. Threads of one process and thread id are one row.

    Parameters
    ----------
    names
        The decoder's tracks.
    used
        For each of them, whether anything is on it; others get no row.
    places
        What their names say, None for nothing.
    """

    def __init__(self, names: TrackNames, used: np.ndarray, places: Sequence[Place | None]) -> None:
        self._names = names
        self._places = places
        self.row = np.full(len(used), -1, np.int32)
        self._rows: list[dict[str, Any]] = []
        known: dict[Any, int] = {}
        for index in np.flatnonzero(used):
            key = self._key(int(index))
            at = known.get(key)
            if at is None:
                at = known[key] = len(self._rows)
                self._rows.append(self._describe(int(index)))
            self.row[index] = at

    def _key(self, index: int) -> Any:
        names = self._names
        kind = names.number("kind", index)
        if kind == _THREAD:
            return kind, *(names.number(column, index) for column in ("pid", "tid", "thread_name"))
        name = names.number("name", index)
        if kind in (_CUSTOM, _ASYNC) and name >= 0:
            return kind, names.number("parent", index), names.number("pid", index), name
        return "own", index

    def _describe(self, index: int) -> dict[str, Any]:
        names = self._names
        kind = names.number("kind", index)
        pid, process = names.process_of(index)
        tid = names.number("tid", index)
        thread = names.text("thread_name", index)
        name = names.text("name", index)
        place = self._places[index]
        streams = kind == _QUEUE or (place is not None and place.domain == GPU and kind != _COUNTER)
        device: int | None = names.number("device", index)
        if device is None or device < 0:
            device = place.device if place is not None and streams else None
        if kind == _THREAD:
            label = f"{thread or name} {tid}" if thread or name else f"thread {tid}"
        elif kind == _PROCESS:
            label = process or name or f"process {pid}"
        elif kind == _SEQUENCE:
            label = f"sequence {tid}"
        elif kind == _QUEUE:
            label = name or "queue"
            label = label if device is None else f"GPU {device} {label}"
        else:
            label = name or f"track {names.number('uuid', index)}"
        lane: str | int | None = None
        if kind == _THREAD:
            lane = thread or str(tid)
        elif kind == _QUEUE:
            lane = name
        elif streams and place is not None:
            lane = place.stream or name
        return {
            "label": label,
            "type": "stream" if streams else _TYPES[kind],
            "process": (f"{process} {pid}" if process else str(pid)) if pid >= 0 else None,
            "process_name": (process or None) if pid >= 0 else None,
            "thread": None if lane is None else str(lane),
            "device": device,
            "sort_index": names.number("order", index),
        }

    def __len__(self) -> int:
        return len(self._rows)

    def frame(self, gpu: np.ndarray, rank: int) -> pd.DataFrame:
        """Return the frame; ``gpu`` says for each row whether GPU work is on it."""
        import pandas as pd

        rows = self._rows
        return schema.TRACKS.frame(
            {
                "label": [row["label"] for row in rows],
                "type": [row["type"] for row in rows],
                "domain": np.where(gpu, schema.DOMAINS.index("gpu"), schema.DOMAINS.index("host")),
                "process": [row["process"] for row in rows],
                "thread": [row["thread"] for row in rows],
                "device": pd.array([row["device"] for row in rows], dtype="Int32"),
                "process_name": [row["process_name"] for row in rows],
                "rank": np.full(len(rows), rank, np.int32),
                "sort_index": np.array([row["sort_index"] for row in rows], np.int64),
            },
            len(rows),
        )
