"""The runs (blocks) of an ETDump: which are executions, of which method, whether they ended, where."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.etdump.clock import Sidecar
from torchtrt_viz.formats.etdump.dump import LAYER_ROLES, Events
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz._native import etdump as native_etdump

__all__ = ["Lane", "Runs", "assign_lanes", "make_runs"]

METHOD = 0  # row of ROLES: Method::execute
_FAR = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Lane:
    """A sequence of runs that do not overlap: one row of ``trace.tracks``."""

    thread: int | None


@dataclass
class Runs:
    """Columns with one row per run of the dump.

    Attributes
    ----------
    names
        Block names, None where the writer gave none.
    first, count
        Rows of the run in `Events` (valid ones).
    shape
        Runs with the same sequence of events have the same number; ``example`` is a run of each shape.
    iteration
        Index among the executions, from 0; -1 for blocks of loading.
    method
        Row of ``methods``, -1 unknown.
    executed
        Row of Method::execute in `Events`, -1 none.
    start, end
        Extent of what the runtime logged (ns); start > end for a run without events.
    """

    names: list[str | None]
    bundled_input: NDArray[np.int32]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    shape: NDArray[np.int32]
    example: NDArray[np.int64]
    iteration: NDArray[np.int32]
    executed: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    method: NDArray[np.int32]
    status: list[str | None]
    thread: list[int | None]
    methods: list[str] = field(default_factory=list)
    lane: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    _codes: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def method_code(self, name: str) -> int:
        """Return the number of a method, giving it one when it is new."""
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self.methods)
            self.methods.append(name)
        return code

    def method_name(self, run: int) -> str | None:
        """Return the method of a run, None unknown."""
        code = int(self.method[run])
        return None if code < 0 else self.methods[code]

    def unfinished(self) -> NDArray[np.int64]:
        """Return the executions that have no Method::execute: they failed, or the dump ends in them."""
        return np.flatnonzero((self.iteration >= 0) & (self.executed < 0))

    def frame(self, events: Events) -> pd.DataFrame:
        """Return the runs as a frame (see ``trace.meta["etdump"]["runs"]``)."""
        import pandas as pd

        status = np.where(self.iteration < 0, "load", np.where(self.executed < 0, "unfinished", "ok")).astype(
            object
        )
        for run, said in enumerate(self.status):
            if said is not None and self.iteration[run] >= 0:
                status[run] = said
        duration = pd.array(np.full(len(self), pd.NA), dtype="Int64")
        done = self.executed >= 0
        duration[done] = events.dur[self.executed[done]]
        start = pd.array(np.where(self.start <= self.end, self.start, 0), dtype="Int64")
        start[self.start > self.end] = pd.NA
        methods = np.array([*self.methods, None], dtype=object)

        def text(values: object) -> pd.Series:
            return pd.Series(values, dtype=object)  # None stays None

        return pd.DataFrame(
            {
                "name": text(self.names),
                "method": text(methods[self.method]),
                "iteration": self.iteration,
                "status": text(status),
                "events": self.count,
                "start_ns": start,
                "dur_ns": duration,
                "bundled_input": self.bundled_input,
                "thread": text(self.thread),
            }
        )


def make_runs(dump: native_etdump.Dump, events: Events, sidecar: Sidecar | None) -> tuple[Runs, list[Repair]]:
    """Describe the runs, and say where the sidecar does not fit.

    Methods are known from the sidecar only: the dump does not hold them.
    """
    raw = dump["runs"]
    runs = len(raw["name"])
    strings = dump["strings"]
    names: list[str | None] = [strings[code] if code >= 0 else None for code in raw["name"].tolist()]
    count = np.bincount(events.run, minlength=runs).astype(np.int64)
    first = np.concatenate(([0], np.cumsum(count)[:-1])).astype(np.int64) if runs else count
    _, example, shape = np.unique(raw["signature"], return_index=True, return_inverse=True)
    executed = np.full(runs, -1, np.int64)
    methods = np.flatnonzero(events.role == METHOD)
    executed[events.run[methods]] = methods
    start, end = _extents(events, first, count)
    made = Runs(
        names=names,
        bundled_input=raw["bundled_input"],
        first=first,
        count=count,
        shape=shape.reshape(-1).astype(np.int32),
        example=example,
        iteration=_iterations(names, executed, count),
        executed=executed,
        start=start,
        end=end,
        method=np.full(runs, -1, np.int32),
        status=[None] * runs,
        thread=[None] * runs,
    )
    if sidecar is not None and sidecar.blocks is not None:
        return made, _apply(made, sidecar)
    return made, []


def _iterations(
    names: list[str | None], executed: NDArray[np.int64], count: NDArray[np.int64]
) -> NDArray[np.int32]:
    named = np.array([name not in (None, "Default") for name in names], bool)
    is_run = named | (executed >= 0)
    iteration = np.cumsum(is_run) - 1
    return np.where(is_run, iteration, -1).astype(np.int32)


def _extents(
    events: Events, first: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first start and last end of each run; a delegate's own times count where there are no others."""
    start = np.full(len(first), _FAR, np.int64)
    end = np.full(len(first), -1, np.int64)
    some = np.flatnonzero(count)
    if len(some) == 0:
        return start, end
    edges = first[some]
    own = events.role < LAYER_ROLES
    for rows in (own, np.ones(len(events), bool)):
        low = np.minimum.reduceat(np.where(rows, events.start, _FAR), edges)
        high = np.maximum.reduceat(np.where(rows, events.start + events.dur, -1), edges)
        missing = start[some] > end[some]
        start[some[missing]] = low[missing]
        end[some[missing]] = high[missing]
        if (start[some] <= end[some]).all():
            break
    return start, end


def _apply(runs: Runs, sidecar: Sidecar) -> list[Repair]:
    blocks = sidecar.blocks or ()
    fits = len(blocks) == len(runs) and all(
        block.name is None or name is None or block.name == name
        for block, name in zip(blocks, runs.names, strict=True)
    )
    if not fits:
        return [
            Repair(
                "sidecar_mismatch",
                f"the sidecar describes {len(blocks)} blocks and the dump has {len(runs)}, or their names "
                "differ: its methods and threads are not used",
                sidecar.name,
            )
        ]
    for run, block in enumerate(blocks):
        if block.method is not None:
            runs.method[run] = runs.method_code(block.method)
        runs.status[run] = block.status
        runs.thread[run] = block.thread
    return []


def assign_lanes(runs: Runs) -> list[Lane]:
    """Give each run a lane: one per thread, and more where runs of one thread overlap."""
    lanes: list[Lane] = []
    runs.lane = np.zeros(len(runs), np.int32)
    by_thread: dict[int | None, list[int]] = {}
    for run, thread in enumerate(runs.thread):
        by_thread.setdefault(thread, []).append(run)
    for thread, on_thread in (by_thread or {None: []}).items():
        members = np.array(on_thread, np.int64)
        timed = members[runs.start[members] <= runs.end[members]]
        base = len(lanes)
        lanes.append(Lane(thread))
        runs.lane[members] = base
        if (runs.start[timed][1:] >= runs.end[timed][:-1]).all():
            continue
        order = timed[np.argsort(runs.start[timed], kind="stable")]
        free: list[tuple[int, int]] = [(-1, base)]
        for run in order.tolist():
            if free and free[0][0] <= runs.start[run]:
                _, lane = heapq.heappop(free)
            else:
                lane = len(lanes)
                lanes.append(Lane(thread))
            runs.lane[run] = lane
            heapq.heappush(free, (int(runs.end[run]), lane))
    return lanes
