"""Dumps of Flight Recorders as torch writes them, for jobs of which the right answer is known.

A `Job` has a recorder per rank. Calls are recorded as the communication library would: NCCL notes when a
collective started and completed, Gloo leaves every entry scheduled and says only that it is done with it.
"""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

BASE_NS = 1_790_000_000_000_000_000
MS = 1_000_000
TORCH = "/x/site-packages/torch"
PROGRAM = "/home/someone/train.py"


class Recorder:
    """The recorder of one rank, and the counters of its groups."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.entries: list[dict[str, Any]] = []
        self.sequence: dict[str, int] = defaultdict(int)
        self.p2p: dict[str, int] = defaultdict(int)
        self.operation: dict[str, int] = defaultdict(int)

    def add(
        self,
        group: str,
        desc: str,
        name: str,
        sizes: Sequence[Sequence[int]],
        outputs: Sequence[Sequence[int]] | None = None,
        *,
        dtype: str = "Float",
        state: str = "completed",
        retired: bool | None = None,
        p2p: bool = False,
        count: bool = True,
        line: int = 10,
        at_ms: int | None = None,
        timeout_ms: int = 600_000,
    ) -> None:
        if count and p2p:
            self.p2p[group] += 1
        elif count:
            self.sequence[group] += 1
        self.operation[group] += 1
        number = len(self.entries)
        created = BASE_NS + MS * (number if at_ms is None else at_ms) + self.rank
        outputs = sizes if outputs is None else outputs
        self.entries.append(
            {
                "frames": [
                    {
                        "name": "wrapper",
                        "filename": "/x/site-packages/torch/distributed/c10d_logger.py",
                        "line": 83,
                    },
                    {"name": "step", "filename": "/home/someone/train.py", "line": line},
                    {"name": "<module>", "filename": "/home/someone/train.py", "line": 99},
                ],
                "record_id": number,
                "pg_id": 0 if desc == "default_pg" else 1,
                "process_group": (group, desc),
                "thread_name": "python",
                "thread_id": "1",
                "collective_seq_id": self.sequence[group],
                "p2p_seq_id": self.p2p[group],
                "op_id": self.operation[group],
                "profiling_name": name,
                "time_created_ns": created,
                "input_sizes": [list(shape) for shape in sizes],
                "input_dtypes": [dtype] * len(sizes),
                "output_sizes": [list(shape) for shape in outputs],
                "output_dtypes": [dtype] * len(outputs),
                "state": state,
                "time_discovered_started_ns": None if state == "scheduled" else created + MS // 2,
                "time_discovered_completed_ns": created + MS if state == "completed" else None,
                "retired": state == "completed" if retired is None else retired,
                "timeout_ms": timeout_ms,
                "is_p2p": p2p,
            }
        )


class Job:
    """Ranks with their recorders; ``groups`` are process groups beside the default one: name, desc, ranks."""

    def __init__(
        self, ranks: int, groups: Iterable[tuple[str, str, tuple[int, ...]]] = (), backend: str = "nccl"
    ) -> None:
        self.recorders = [Recorder(rank) for rank in range(ranks)]
        self.backend = backend
        self.groups = [("0", "default_pg", tuple(range(ranks))), *groups]

    def members(self, group: str, rank: int | None = None) -> tuple[str, tuple[int, ...]]:
        """Return description and ranks of a group: of several with one name, the one that ``rank`` is in."""
        return next(
            (desc, ranks)
            for name, desc, ranks in self.groups
            if name == group and (rank is None or rank in ranks)
        )

    def call(
        self,
        name: str,
        sizes: Sequence[Sequence[int]] = ((16,),),
        outputs: Sequence[Sequence[int]] | None = None,
        *,
        group: str = "0",
        ranks: Iterable[int] | None = None,
        **more: Any,
    ) -> None:
        """Record a collective on all ranks of the group, or on some."""
        for rank in self.members(group)[1] if ranks is None else ranks:
            self.recorders[rank].add(
                group, self.members(group, rank)[0], f"{self.backend}:{name}", sizes, outputs, **more
            )

    def send(self, source: int, target: int, sizes: Sequence[Sequence[int]] = ((5,),), **more: Any) -> None:
        """Record a send of the default group on its source."""
        name = f"{self.backend}:send {source}->{target}"
        self.recorders[source].add("0", "default_pg", name, sizes, p2p=True, **more)

    def receive(
        self, source: int, target: int, sizes: Sequence[Sequence[int]] = ((5,),), **more: Any
    ) -> None:
        """Record a receive of the default group on its target."""
        name = f"{self.backend}:recv {target}<-{source}"
        self.recorders[target].add("0", "default_pg", name, sizes, p2p=True, **more)

    def document(self, rank: int, last: int | None = None) -> dict[str, Any]:
        """Return a rank's dump; of a ring buffer that is full, the ``last`` entries."""
        entries = self.recorders[rank].entries
        config = {
            name: {"name": name, "desc": desc, "ranks": str(list(ranks))}
            for name, desc, ranks in self.groups
            if rank in ranks
        }
        return {
            "version": "2.10",
            "pg_config": config,
            "comm_lib_version": "2.27.3",
            "pg_status": {},
            "entries": entries if last is None else entries[-last:],
        }

    def write(
        self,
        folder: Path,
        *,
        ranks: Iterable[int] | None = None,
        last: dict[int, int] | int | None = None,
        prefix: str = "nccl_trace_rank_",
    ) -> Path:
        """Write the dumps of all ranks, or of some, as pickles of protocol 2."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(len(self.recorders)) if ranks is None else ranks:
            kept = last.get(rank) if isinstance(last, dict) else last
            (folder / f"{prefix}{rank}").write_bytes(pickle.dumps(self.document(rank, kept), 2))
        return folder

    def write_json(self, folder: Path) -> Path:
        """Write the dumps as torch writes JSON: without frames, and with 0 for no time."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(len(self.recorders)):
            document = self.document(rank)
            for entry in document["entries"]:
                del entry["frames"]
                for name in ("time_discovered_started_ns", "time_discovered_completed_ns"):
                    entry[name] = entry[name] or 0
            (folder / f"comm_lib_trace_rank_{rank}.json").write_text(json.dumps(document, sort_keys=True))
        return folder


def old_document(version: str | None, ranks: Sequence[int], calls: int, waiting: bool = False) -> Any:
    """Return a dump of a version before 2: ``seq_id``, groups as lists of ranks, or the entries alone."""
    entries = [
        {
            "record_id": number,
            "pg_id": 0,
            "seq_id": number + 1,
            "op_id": number + 1,
            "profiling_name": "nccl:all_reduce",
            "time_created_ns": BASE_NS + MS * number,
            "input_sizes": [[16]],
            "output_sizes": [[16]],
            "state": "started" if waiting and number == calls - 1 else "completed",
            "time_discovered_started_ns": BASE_NS + MS * number + 1,
            "time_discovered_completed_ns": None
            if waiting and number == calls - 1
            else BASE_NS + MS * number + 2,
            "retired": not (waiting and number == calls - 1),
            "frames": [{"name": "step", "filename": "train.py", "line": 7}],
        }
        for number in range(calls)
    ]
    if version is None:
        return entries
    document: dict[str, Any] = {"entries": entries, "version": version}
    if version >= "1.2":
        document["pg_config"] = {0: list(ranks)}
    return document


def many_ranks(ranks: int) -> Job:
    """Return a job of tensor-parallel pairs, in which one rank misses a collective of all."""
    pairs = [(f"{100 + n}", "tp", (n, n + 1)) for n in range(0, ranks, 2)]
    job = Job(ranks, pairs)
    job.call("all_reduce")
    job.call("all_reduce")
    for name, _, members in pairs:
        job.call("all_gather", [[2]], [[4]], group=name, ranks=members)
    late = ranks // 3
    job.call("all_reduce", ranks=[rank for rank in range(ranks) if rank != late], state="started")
    return job
