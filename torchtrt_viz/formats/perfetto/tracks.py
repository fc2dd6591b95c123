"""Perfetto's tracks as rows of ``trace.tracks``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.model import schema

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TrackTable"]

#: Numbers that the decoder gives to the sorts of track.
_CUSTOM, _PROCESS, _THREAD, _COUNTER, _SEQUENCE, _ASYNC = range(6)
_TYPES = {
    _CUSTOM: "other",
    _PROCESS: "process",
    _THREAD: "thread",
    _COUNTER: "counter",
    _SEQUENCE: "other",
    _ASYNC: "async",
}
_MOST_PARENTS = 64


class TrackTable:
    """Maps the decoder's tracks to rows.

    Tracks of one name under one parent are one row, as Perfetto shows them: writers of asynchronous work
    make a track for each operation. Threads of one process and thread id are one row.

    Parameters
    ----------
    columns
        The decoder's columns.
    strings
        Its table of strings.
    used
        For each of its tracks, whether anything is on it; others get no row.
    """

    def __init__(self, columns: dict[str, np.ndarray], strings: list[str], used: np.ndarray) -> None:
        self._columns = columns
        self._strings = strings
        self._by_uuid = {int(uuid): i for i, uuid in enumerate(columns["uuid"]) if uuid}
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

    def _get(self, column: str, index: int) -> int:
        return int(self._columns[column][index])

    def _text(self, column: str, index: int) -> str | None:
        code = self._get(column, index)
        return None if code < 0 else self._strings[code]

    def _key(self, index: int) -> Any:
        kind = self._get("kind", index)
        if kind == _THREAD:
            return kind, self._get("pid", index), self._get("tid", index), self._get("thread_name", index)
        name = self._get("name", index)
        if kind in (_CUSTOM, _ASYNC) and name >= 0:
            return kind, self._get("parent", index), self._get("pid", index), name
        return "own", index

    def _process_of(self, index: int) -> tuple[int, str | None]:
        """Find the process that a track belongs to, over its parents: (pid or -1, name)."""
        for _ in range(_MOST_PARENTS):
            pid = self._get("pid", index)
            if pid >= 0:
                return pid, self._text("process_name", index)
            above = self._by_uuid.get(self._get("parent", index))
            if above is None:
                break
            index = above
        return -1, None

    def _describe(self, index: int) -> dict[str, Any]:
        kind = self._get("kind", index)
        pid, process = self._process_of(index)
        tid = self._get("tid", index)
        thread = self._text("thread_name", index)
        name = self._text("name", index)
        if kind == _THREAD:
            label = f"{thread or name} {tid}" if thread or name else f"thread {tid}"
        elif kind == _PROCESS:
            label = process or name or f"process {pid}"
        elif kind == _SEQUENCE:
            label = f"sequence {tid}"
        else:
            label = name or f"track {self._get('uuid', index)}"
        return {
            "label": label,
            "type": _TYPES[kind],
            "process": (f"{process} {pid}" if process else str(pid)) if pid >= 0 else None,
            "process_name": (process or None) if pid >= 0 else None,
            "thread": (thread or str(tid)) if kind == _THREAD else None,
            "sort_index": self._get("order", index),
        }

    def __len__(self) -> int:
        return len(self._rows)

    def frame(self, gpu: np.ndarray, rank: int) -> pd.DataFrame:
        """Return the frame; ``gpu`` says for each row whether GPU work is on it."""
        rows = self._rows
        return schema.TRACKS.frame(
            {
                "label": [row["label"] for row in rows],
                "type": [row["type"] for row in rows],
                "domain": np.where(gpu, schema.DOMAINS.index("gpu"), schema.DOMAINS.index("host")),
                "process": [row["process"] for row in rows],
                "thread": [row["thread"] for row in rows],
                "process_name": [row["process_name"] for row in rows],
                "rank": np.full(len(rows), rank, np.int32),
                "sort_index": np.array([row["sort_index"] for row in rows], np.int64),
            },
            len(rows),
        )
