"""Where events ran: threads of processes, queues of devices, and rows for what is neither.

A kernel lies on the row of its hardware queue, which runs its work in order, as torch.profiler has it on
ROCm; the stream of the program is in its arguments. Copies have no queue: they lie on a row of their stream.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.model import schema

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Agent", "Places", "combinations"]

Ints = NDArray[np.int64]

_ORDER = {"thread": 0, "async": 1, "other": 2, "stream": 3, "counter": 4}
_MAX_DEVICE = 4096


@dataclass(frozen=True)
class Agent:
    """A processor: GPUs have the number that programs know them by."""

    gpu: bool
    index: int
    name: str = ""


def combinations(columns: Sequence[Ints]) -> tuple[list[tuple[int, ...]], Ints]:
    """Return the distinct combinations of several columns, and the position of each row's among them."""
    import pandas as pd  # slow to import

    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        inverse, found = pd.factorize(column)
        codes = pd.factorize(codes * max(1, len(found)) + inverse)[0]
    first = np.zeros(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return list(zip(*(column[first].tolist() for column in columns), strict=True)), codes


class Places:
    """The rows of the timeline, made as events ask for them."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._row_of: dict[Hashable, int] = {}
        self._names: dict[int, str] = {}
        self._threads: dict[tuple[int, int], str] = {}

    def name_process(self, pid: int, name: str) -> None:
        """Say what a process is called."""
        if name:
            self._names[pid] = name

    def name_thread(self, pid: int, tid: int, name: str) -> None:
        """Say what a thread is called."""
        if name:
            self._threads[pid, tid] = name

    def described(self) -> dict[int, dict[str, Any]]:
        """Return the names of processes that have rows, for ``trace.meta``."""
        pids = sorted({row["pid"] for row in self._rows if row["pid"] >= 0})
        return {pid: {"name": self._names.get(pid, ""), "labels": ""} for pid in pids}

    def threads(self, pid: Ints, tid: Ints) -> NDArray[np.int32]:
        """Return the row of each thread."""

        def row(process: int, thread: int) -> int:
            if thread < 0:
                return self.row(process, "other", "unknown thread")
            label = self._threads.get((process, thread)) or f"thread {thread}"
            return self.row(process, "thread", label, thread=str(thread))

        return self.each([pid, tid], row)

    def queues(self, pid: Ints, device: Ints, queue: Ints, stream: Ints) -> NDArray[np.int32]:
        """Return the row of each queue of a device; of recordings without queues that of the stream."""

        def row(process: int, index: int, number: int, of: int) -> int:
            what = f"queue {number}" if number >= 0 else f"stream {of}" if of >= 0 else "no queue"
            text = str(number if number >= 0 else of)
            return self.row(process, "stream", f"{_gpu(index)}{what}", thread=text, device=index)

        return self.each([pid, device, queue, np.where(queue >= 0, -1, stream)], row)

    def copies(self, pid: Ints, device: Ints, stream: Ints) -> NDArray[np.int32]:
        """Return the row of each stream's copies to or from a device."""

        def row(process: int, index: int, number: int) -> int:
            of = f" of stream {number}" if number >= 0 else ""
            return self.row(process, "stream", f"{_gpu(index)}copies{of}", thread=f"copies{of}", device=index)

        return self.each([pid, device, stream], row)

    def each(self, columns: Sequence[Ints], row_of: Callable[..., int]) -> NDArray[np.int32]:
        """Ask once for each distinct combination."""
        found, inverse = combinations(columns)
        return np.array([*(row_of(*one) for one in found), 0], np.int32)[inverse]

    def row(self, pid: int, what: str, label: str, *, thread: str | None = None, device: int = -1) -> int:
        """Return one row."""
        key = (what, pid, label, thread, device)
        found = self._row_of.get(key)
        if found is None:
            found = self._row_of[key] = len(self._rows)
            self._rows.append({"pid": pid, "type": what, "label": label, "thread": thread, "device": device})
        return found

    def frame(self, rank: int) -> pd.DataFrame:
        """Return ``trace.tracks``."""
        import pandas as pd  # slow to import

        rows = self._rows
        order = sorted(
            range(len(rows)),
            key=lambda at: (rows[at]["pid"], _ORDER[rows[at]["type"]], rows[at]["device"], at),
        )
        place = {at: number for number, at in enumerate(order)}
        several = len({row["pid"] for row in rows if row["pid"] >= 0}) > 1
        devices = [row["device"] if 0 <= row["device"] < _MAX_DEVICE else None for row in rows]
        return schema.TRACKS.frame(
            {
                "label": [
                    f"{row['label']} (pid {row['pid']})"  # rows of the host stand below their process
                    if several and row["type"] in ("stream", "counter") and row["pid"] >= 0
                    else row["label"]
                    for row in rows
                ],
                "type": [row["type"] for row in rows],
                "domain": ["gpu" if row["type"] == "stream" or _on_device(row) else "host" for row in rows],
                "process": [str(row["pid"]) if row["pid"] >= 0 else None for row in rows],
                "thread": [row["thread"] for row in rows],
                "device": pd.array(devices, "Int32"),
                "rank": rank,
                "sort_index": [place[at] for at in range(len(rows))],
                "process_name": [self._names.get(row["pid"]) or None for row in rows],
            },
            len(rows),
        )


def _gpu(index: int) -> str:
    return f"GPU {index} " if index >= 0 else ""


def _on_device(row: dict[str, Any]) -> bool:
    return bool(row["type"] == "counter" and row["device"] >= 0)
