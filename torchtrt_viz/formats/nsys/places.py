"""Where events ran: processes, threads and streams out of the numbers that an export gives them.

A global thread id holds machine, process and thread: the upper 40 bits are the process, in a global process
id too, whose lower 24 bits are zero. Ids of launches count within one process.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.nsys.distinct import combinations
from torchtrt_viz.formats.nsys.export import Export, Table
from torchtrt_viz.model import schema

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.formats.nsys.names import Names

__all__ = ["UNKNOWN", "Devices", "Places", "process_of"]

Ints = NDArray[np.int64]

_THREAD_BITS = 24
_LOW = (1 << _THREAD_BITS) - 1
UNKNOWN = -1
_MAX_DEVICE = 4096
#: Order of the rows of one process.
_ORDER = {"thread": 0, "async": 1, "other": 2, "process": 3, "stream": 4, "counter": 5}


def process_of(global_ids: Ints) -> Ints:
    """Return the process of global thread or process ids, -1 where there is none."""
    return np.where(global_ids >= 0, global_ids >> _THREAD_BITS, UNKNOWN)


class Devices:
    """CUDA numbers the devices of each process anew; the export says which of the machine's they are."""

    def __init__(self, export: Export) -> None:
        self._machine: dict[tuple[int, int], int] = {}
        if "TARGET_INFO_CUDA_DEVICE" in export.tables:
            table = Table(
                export,
                "TARGET_INFO_CUDA_DEVICE",
                dict.fromkeys(("gpuId", "cudaId", "pid"), "integer"),
            )
            if all(name in table for name in ("gpuId", "cudaId", "pid")):
                columns = [table.integers(name).tolist() for name in ("pid", "cudaId", "gpuId")]
                self._machine = {
                    (pid, cuda): gpu for pid, cuda, gpu in zip(*columns, strict=True) if gpu >= 0
                }

    def index(self, process: int, device: int) -> int:
        """Return the machine's number of a process's device, -1 unknown."""
        found = self._machine.get((process & _LOW, device), device)
        return found if 0 <= found < _MAX_DEVICE else UNKNOWN


class Places:
    """The rows of the timeline, made as events ask for them."""

    def __init__(self, export: Export, names: Names) -> None:
        self.devices = Devices(export)
        self._names = names
        self._rows: list[dict[str, Any]] = []
        self._row_of: dict[Hashable, int] = {}
        self._processes = self._named_processes(export)
        self._threads = self._named_threads(export)
        self._pids: dict[int, set[int]] = {}
        self._contexts: dict[tuple[int, int], set[int]] = {}

    def _named_processes(self, export: Export) -> dict[int, str]:
        if "PROCESSES" not in export.tables:
            return {}
        table = Table(export, "PROCESSES", {"globalPid": "integer", "name": "text"})
        keys, names = process_of(table.integers("globalPid")), table.take("name")
        if names is None:
            return {}
        texts = [*(names.texts or ()), ""]
        return {
            key: texts[code].strip()
            for key, code in zip(keys.tolist(), names.values.tolist(), strict=True)
            if key >= 0 and code >= 0
        }

    def _named_threads(self, export: Export) -> dict[int, str]:
        if "ThreadNames" not in export.tables:
            return {}
        table = Table(export, "ThreadNames", dict.fromkeys(("nameId", "globalTid"), "integer"))
        named = zip(table.integers("globalTid").tolist(), table.integers("nameId").tolist(), strict=True)
        return {thread: text for thread, number in named if (text := self._names.string(number))}

    def name_thread(self, thread: int, text: str) -> None:
        """Name a thread as the program itself does (NVTX)."""
        self._threads[thread] = text

    def described(self) -> dict[int | str, dict[str, Any]]:
        """Return name and labels of the processes that have rows, for ``trace.meta``."""
        return {
            self._process(key): {"name": self._processes.get(key, ""), "labels": ""}
            for key in sorted({row["key"] for row in self._rows if row["key"] >= 0})
        }

    def threads(self, global_tids: Ints) -> NDArray[np.int32]:
        """Return the row of each thread."""
        return self._each([global_tids], self._thread)

    def streams(self, process: Ints, device: Ints, context: Ints, stream: Ints) -> NDArray[np.int32]:
        """Return the row of each stream."""
        return self._each([process, device, context, stream], self._stream)

    def groups(self, columns: Sequence[Ints], label: Callable[..., str]) -> NDArray[np.int32]:
        """Return a row for each combination of a process (first) and what else tells rows apart."""
        return self._each(columns, lambda key, *more: self.row(key, "async", label(key, *more)))

    def row(self, key: int, what: str, label: str, *, domain: str = "host", device: int = UNKNOWN) -> int:
        """Return the row of something that is neither a thread nor a stream."""
        return self._add((what, key, label, device), key, what, label, None, domain, device)

    def _each(self, columns: Sequence[Ints], row_of: Callable[..., int]) -> NDArray[np.int32]:
        """Ask once for each distinct combination."""
        found, inverse = combinations(columns)
        return np.array([*(row_of(*each) for each in found), 0], np.int32)[inverse]

    def _thread(self, global_tid: int) -> int:
        if global_tid < 0:
            return self.row(UNKNOWN, "other", "unknown thread")
        tid = global_tid & _LOW
        label = self._threads.get(global_tid) or f"thread {tid}"
        key = global_tid >> _THREAD_BITS
        return self._add(("thread", global_tid), key, "thread", label, str(tid), "host", UNKNOWN)

    def _stream(self, process: int, device: int, context: int, stream: int) -> int:
        self._contexts.setdefault((process, device), set()).add(context)
        index = self.devices.index(process, device)
        at = f"GPU {index} " if index >= 0 else ""
        label = f"{at}stream {stream}" if stream >= 0 else f"{at}no stream"
        row = self._add(
            ("stream", process, device, context, stream), process, "stream", label, str(stream), "gpu", index
        )
        self._rows[row]["context"] = (process, device, context)
        return row

    def _add(
        self,
        identity: Hashable,
        key: int,
        what: str,
        label: str,
        thread: str | None,
        domain: str,
        device: int,
    ) -> int:
        found = self._row_of.get(identity)
        if found is None:
            found = self._row_of[identity] = len(self._rows)
            if key >= 0:
                self._pids.setdefault(key & _LOW, set()).add(key)
            self._rows.append(
                {
                    "key": key,
                    "type": what,
                    "label": label,
                    "thread": thread,
                    "domain": domain,
                    "device": device,
                }
            )
        return found

    def _process(self, key: int) -> int | str:
        """Return a process as its number, with its machine's where the file has two of one number."""
        pid = key & _LOW
        return pid if len(self._pids.get(pid, ())) < 2 else f"{pid}@{key >> _THREAD_BITS:x}"

    def frame(self, rank: int) -> pd.DataFrame:
        """Return ``trace.tracks``."""
        import pandas as pd  # slow to import

        rows = self._rows
        order = sorted(
            range(len(rows)),
            key=lambda at: (rows[at]["key"], _ORDER[rows[at]["type"]], rows[at]["device"], at),
        )
        place = {at: number for number, at in enumerate(order)}
        known = [row["key"] >= 0 for row in rows]
        return schema.TRACKS.frame(
            {
                "label": [self._label(row) for row in rows],
                "type": [row["type"] for row in rows],
                "domain": [row["domain"] for row in rows],
                "process": [
                    str(self._process(row["key"])) if is_known else None
                    for row, is_known in zip(rows, known, strict=True)
                ],
                "thread": [self._thread_text(row) for row in rows],
                "device": pd.array([row["device"] if row["device"] >= 0 else None for row in rows], "Int32"),
                "rank": rank,
                "sort_index": [place[at] for at in range(len(rows))],
                "process_name": [self._processes.get(row["key"]) or None for row in rows],
            },
            len(rows),
        )

    def _several_contexts(self, row: dict[str, Any]) -> bool:
        of = row.get("context")  # streams alone have one
        return of is not None and len(self._contexts[of[:2]]) > 1

    def _label(self, row: dict[str, Any]) -> str:
        """Say the context too where a process uses several on one device: streams are numbered in each."""
        context = f" (context {row['context'][2]})" if self._several_contexts(row) else ""
        return f"{row['label']}{context}"

    def _thread_text(self, row: dict[str, Any]) -> str | None:
        thread: str | None = row["thread"]
        return f"{row['context'][2]}/{thread}" if self._several_contexts(row) else thread
