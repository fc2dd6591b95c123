"""The traces of many ranks: who is there, how one is read, and frames over all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from os import PathLike
from typing import Any, Self
from weakref import WeakValueDictionary

import pandas as pd

from torchtrt_viz.errors import TorchTrtVizError, TraceFormatError
from torchtrt_viz.model.rank_tasks import RankTrace, ReadOptions, Work, run_here, run_tasks
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["ANY", "KEY_COLUMNS", "KeptFrames", "Numbers", "SessionData", "Texts"]

KEY_COLUMNS = ("session", "rank", "role", "instance", "host", "cycle", "stage")
"""Columns that say whose a row is, in every frame over ranks."""

_MORE_COLUMNS = (
    "state",
    "error",
    "format",
    "what",
    "writer",
    "path",
    "pid",
    "device",
    "world_size",
    "start_unix_ns",
    "stop_unix_ns",
    "cut_at_start",
    "cut_at_stop",
)
_DTYPES = {
    "rank": "Int32",
    "cycle": "Int32",
    "pid": "Int64",
    "world_size": "Int32",
    "start_unix_ns": "Int64",
    "stop_unix_ns": "Int64",
}
_SHOWN = 12


class _NoSingleTrace(KeyError):
    """No trace, or several, are what was asked for."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the message quoted


class Unspecified(Enum):
    """The type of `ANY`."""

    ANY = "any"

    def __repr__(self) -> str:
        return "ANY"


ANY = Unspecified.ANY
"""Asks nothing of a column. None asks for what nothing says."""

Numbers = int | Collection[int | None] | None | Unspecified
Texts = str | Collection[str | None] | None | Unspecified


def _given(**columns: Any) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not ANY}


@dataclass(frozen=True)
class KeptFrames:
    """Frames of all ranks that were worked out before.

    Attributes
    ----------
    rows
        Rows of the session's ranks that they are of.
    frames
        One for each function: the ranks' frames under each other.
    counts
        For each function the number of rows of each rank's frame.
    skipped
        Rows that could not be read, and why.
    """

    rows: list[int]
    frames: list[pd.DataFrame]
    counts: list[list[int]]
    skipped: list[tuple[int, str]]


def _as_it_is(trace: TraceData) -> TraceData:
    return trace


class SessionData:
    """The traces of many ranks.

    Made by :func:`torchtrt_viz.load` of a folder, an archive or several files. Nothing but the ranks'
    descriptions is held; ``session[rank]`` and ``session.trace(...)`` read a trace, and forget it when
    the caller does.

    Attributes
    ----------
    meta : dict
        ``sources`` (what was loaded), ``manifests``, ``warnings`` (list of `Repair`: damaged and missing
        ranks, traces that nothing tells apart), ``other_files`` (files that are no traces).
    engine : str or None
        "dask" when frames over ranks are computed as one task per rank.
    computed : dict
        Tables over all ranks that were worked out before, by name: reading the ranks again costs time.
    dataset : str or None
        Folder of the saved session that it was loaded from.
    tables : function or None
        Returns what was worked out of all ranks when the session was saved, for a work, kinds of recordings
        and rows; None for what was not.
    """

    dataset: str | None = None
    tables: Callable[[Work, Collection[str] | None, list[int]], KeptFrames | None] | None = None

    @classmethod
    def present(cls) -> Callable[[TraceData], TraceData]:
        """Return what makes of a trace that was read what callers and functions over ranks get."""
        return _as_it_is

    def __init__(
        self,
        files: Sequence[RankTrace],
        *,
        manifests: Sequence[Any] = (),
        options: ReadOptions,
        engine: str | None = None,
        paths: Sequence[str | PathLike[str]] = (),
        other_files: Sequence[str] = (),
    ) -> None:
        self._files = tuple(files)
        self._options = options
        self._ranks: pd.DataFrame | None = None
        self._live: WeakValueDictionary[int, TraceData] = WeakValueDictionary()
        self.computed: dict[str, Any] = {}
        self.engine = engine
        self.meta: dict[str, Any] = {
            "format": "session",
            "sources": [str(p) for p in paths],
            "manifests": list(manifests),
            "warnings": list(self._options.warnings),
            "other_files": list(other_files),
        }

    @classmethod
    def of(cls, data: SessionData) -> Self:
        """Return a session of this class over the same ranks; nothing is read or copied."""
        if isinstance(data, cls):
            return data
        session = cls.__new__(cls)
        session.__dict__.update(data.__dict__)
        return session

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickle and copy take: the ranks' descriptions; traces are read again when asked for."""
        return {**self.__dict__, "_options": self._options.elsewhere(), "_live": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._live = WeakValueDictionary()

    def __len__(self) -> int:
        """Return the number of traces, those that are missing included."""
        return len(self._files)

    def __repr__(self) -> str:
        work = [f for f in self._files if f.what in ("trace", "partial", "dump")] or self._files
        ranks = len({f.path if f.rank is None and f.cycle is None else f.key for f in work})
        states: dict[str, int] = {}
        for file in self._files:
            states[file.state] = states.get(file.state, 0) + 1
        bad = ", ".join(f"{n} {state}" for state, n in sorted(states.items()) if state != "ok")
        roles = {f.role for f in self._files if f.role}
        of = f" ({', '.join(sorted(roles))})" if roles else ""
        lazily = "" if self.engine is None else f", by {self.engine}"
        bad = f", {bad}" if bad else ""
        dumps = sum(f.what == "dump" for f in self._files)
        counts = [f"{n} {word}" for n, word in ((len(self._files) - dumps, "traces"), (dumps, "dumps")) if n]
        held = " and ".join(counts) or "0 traces"
        return f"<{type(self).__name__}: {held} of {ranks} ranks{of}{bad}{lazily}>"

    # -- which ranks there are -----------------------------------------------------------------------

    @property
    def ranks(self) -> pd.DataFrame:
        """The traces of the session, one row each (a rank has one per recording cycle).

        Columns: ``session``, ``rank`` (unique within a session where it says so itself; else what the
        trace or its name says), ``role`` (prefill, decode, ...), ``instance`` (replica; also what keeps
        traces apart of which nothing says that they are one rank's: a node, a process, a file), ``host``,
        ``cycle`` (from 0), ``stage``; ``state`` ("ok", "damaged", "staged": recorded but not packed yet,
        "missing"), ``error`` (why it is not ok); ``format``, ``what`` ("trace", or "merged", "frontend",
        "capture" for what is not one rank's work), ``writer``, ``path``, ``pid``, ``device``,
        ``world_size``; ``start_unix_ns`` and ``stop_unix_ns`` (the rank's own clock), ``cut_at_start``
        and ``cut_at_stop`` (requests in flight at the boundaries). Missing values are what nothing says.
        """
        if self._ranks is None:
            columns = (*KEY_COLUMNS, *_MORE_COLUMNS)
            data = {
                column: pd.Series(
                    [getattr(f, column) for f in self._files], dtype=_DTYPES.get(column, object)
                )
                for column in columns
            }
            self._ranks = pd.DataFrame(data)
        return self._ranks.copy()

    def select(
        self,
        *,
        session: Texts = ANY,
        rank: Numbers = ANY,
        role: Texts = ANY,
        instance: Texts = ANY,
        host: Texts = ANY,
        cycle: Numbers = ANY,
        stage: Texts = ANY,
        state: Texts = ANY,
        format: Texts = ANY,
        what: Texts = ANY,
        writer: Texts = ANY,
        path: Texts = ANY,
        pid: Numbers = ANY,
        device: Texts = ANY,
        world_size: Numbers = ANY,
    ) -> Self:
        """Return the session of some of its traces: those that fit everything that is given.

        Parameters
        ----------
        session, rank, role, instance, host, cycle, stage, state, format, what, writer, path, pid, device, \
world_size
            A value of this column of :attr:`ranks`, or several (a list, set, range, ...). None asks for
            traces of which nothing says it; ``ANY``, the default, asks for nothing.

        Examples
        --------
        >>> len(session.select(role="prefill"))
        2
        >>> session.select(rank=[0, 1], state="ok").ranks["rank"].tolist()
        [0, 1]
        """
        return self._part(
            self._rows(
                _given(
                    session=session,
                    rank=rank,
                    role=role,
                    instance=instance,
                    host=host,
                    cycle=cycle,
                    stage=stage,
                    state=state,
                    format=format,
                    what=what,
                    writer=writer,
                    path=path,
                    pid=pid,
                    device=device,
                    world_size=world_size,
                )
            )
        )

    def _part(self, rows: Sequence[int]) -> Self:
        part = type(self)([self._files[row] for row in rows], options=self._options, engine=self.engine)
        part.meta = {**self.meta, "warnings": list(self.meta["warnings"])}
        part.dataset = self.dataset
        return part

    def _rows(self, wanted: dict[str, Any]) -> list[int]:

        def fits(file: RankTrace) -> bool:
            for name, value in wanted.items():
                has = getattr(file, name)
                several = isinstance(value, (list, tuple, set, frozenset, range))
                if not (has in value if several else has == value):
                    return False
            return True

        return [row for row, file in enumerate(self._files) if fits(file)]

    # -- traces --------------------------------------------------------------------------------------

    def trace(
        self,
        rank: int | None = None,
        *,
        row: int | None = None,
        session: Texts = ANY,
        role: Texts = ANY,
        instance: Texts = ANY,
        host: Texts = ANY,
        cycle: Numbers = ANY,
        stage: Texts = ANY,
        state: Texts = ANY,
        format: Texts = ANY,
        what: Texts = ANY,
        writer: Texts = ANY,
        path: Texts = ANY,
        pid: Numbers = ANY,
        device: Texts = ANY,
        world_size: Numbers = ANY,
    ) -> TraceData:
        """Read one rank's trace.

        Parameters
        ----------
        rank
            The rank's number.
        row
            Row of :attr:`ranks`, instead of everything else.
        session, role, instance, host, cycle, stage, state, format, what, writer, path, pid, device, \
world_size
            What tells the trace from others: values of these columns of :attr:`ranks`, as in :meth:`select`.

        Raises
        ------
        KeyError
            When no trace is so, or several are; the message lists them.
        TraceFormatError
            When the trace is missing, or nothing of it can be read.

        Examples
        --------
        >>> session.trace(1).meta["rank"]
        1
        >>> session.trace(role="decode", rank=3).meta["rank"]
        3
        """
        if row is not None:
            if not -len(self) <= row < len(self):
                raise _NoSingleTrace(f"row {row} of {len(self)}")
            return self._load(row % len(self))
        wanted = _given(
            rank=ANY if rank is None else rank,
            session=session,
            role=role,
            instance=instance,
            host=host,
            cycle=cycle,
            stage=stage,
            state=state,
            format=format,
            what=what,
            writer=writer,
            path=path,
            pid=pid,
            device=device,
            world_size=world_size,
        )
        rows = self._rows(wanted)
        if "what" not in wanted and len(rows) > 1:
            rows = [r for r in rows if self._files[r].what == "trace"] or rows
        if len(rows) != 1:
            raise _NoSingleTrace(self._no_single(wanted, rows))
        return self._load(rows[0])

    def _no_single(self, wanted: dict[str, Any], rows: list[int]) -> str:
        asked = ", ".join(f"{k}={v!r}" for k, v in wanted.items()) or "no choice"
        if not rows:
            ranks = sorted({f.rank for f in self._files if f.rank is not None})
            shown = ", ".join(map(str, ranks[:_SHOWN])) + (", ..." if len(ranks) > _SHOWN else "")
            there = f"the session has ranks {shown}" if shown else "its traces have no rank numbers"
            return f"no trace with {asked}; {there}: see session.ranks"
        differing = [c for c in KEY_COLUMNS if len({getattr(self._files[r], c) for r in rows}) > 1]
        differing = differing or ["path"]
        lines = [
            "row=" + str(r) + ": " + ", ".join(f"{c}={getattr(self._files[r], c)!r}" for c in differing)
            for r in rows[:_SHOWN]
        ]
        more = f"\n  and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
        return (
            f"{len(rows)} traces with {asked}; say which by {', '.join(differing)} "
            f"(session.trace(..., {differing[0]}=...)):\n  " + "\n  ".join(lines) + more
        )

    def __getitem__(self, key: int | tuple[int, int]) -> TraceData:
        """Read the trace of a rank, or of (rank, cycle)."""
        if isinstance(key, tuple):
            rank, cycle = key
            return self.trace(rank, cycle=cycle)
        return self.trace(key)

    def _load(self, row: int) -> TraceData:
        trace = self._live.get(row)
        if trace is None:
            trace = self.present()(self._files[row].load(self._options))
            self._live[row] = trace
        return trace

    def traces(self) -> Iterator[tuple[RankTrace, TraceData]]:
        """Read the traces one after the other (missing ones, and what is not one rank's work, are left out).

        Yields
        ------
        (RankTrace, TraceData)
            What the session knows about the trace, and the trace. One that turns out to be unreadable is
            left out, with a warning in ``meta["warnings"]``.
        """
        for row in self._readable():
            try:
                trace = self._load(row)
            except TraceFormatError as error:
                self._unreadable(row, str(error))
                continue
            yield self._files[row], trace

    def _readable(self, what: Collection[str] | None = None) -> list[int]:
        rows = [r for r, f in enumerate(self._files) if f.what in (what or ("trace", "partial"))]
        if what is None:
            rows = rows or list(range(len(self._files)))
        return [r for r in rows if self._files[r].state != "missing"]

    def _unreadable(self, row: int, error: str) -> None:
        """Note that a trace could not be read."""
        file = self._files[row]
        repair = Repair("damaged_rank", f"left out: {error}", path=file.path)
        if self._options.strict:
            raise TraceFormatError(error, path=file.path)
        if repair not in self.meta["warnings"]:
            self.meta["warnings"].append(repair)
        if file.state == "ok":
            changed = replace(file, state="damaged", error=error)
            self._files = (*self._files[:row], changed, *self._files[row + 1 :])
            self._ranks = None

    # -- frames over ranks ---------------------------------------------------------------------------

    def map(self, function: Callable[..., pd.DataFrame], **keywords: Any) -> pd.DataFrame:
        """Call a function for every rank's trace and put the frames it returns under each other.

        With ``engine="dask"`` each rank is one task on the current ``distributed`` client (or dask's default
        scheduler): the trace is read, reduced and forgotten where the task runs, and only the frames travel.

        Parameters
        ----------
        function
            Called with a trace; returns a frame.
        **keywords
            Passed on to ``function``.

        Returns
        -------
        pandas.DataFrame
            The columns of :data:`KEY_COLUMNS` (``session``, ``rank``, ``role``, ``instance``, ``host``,
            ``cycle``, ``stage``), then the function's. ``attrs["skipped"]`` lists (path, error) of the
            traces that could not be read.

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.map(tv.analysis.iterations)["rank"].unique().tolist()
        [0, 1, 2, 3]
        """
        return self.map_all([(function, keywords)])[0]

    def map_all(
        self,
        work: Work,
        *,
        what: Collection[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[pd.DataFrame]:
        """Do the same for several functions, reading every trace once.

        Parameters
        ----------
        work
            (function, options) for each frame that is wanted.
        what
            Which recordings are read, by the column ``what`` of :attr:`ranks`; None: the traces, or all where
            there are none.
        progress
            Called with (ranks done, ranks in all) after each rank.

        Returns
        -------
        list of pandas.DataFrame
            For each function what :meth:`map` returns.

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> steps, copies = session.map_all([(tv.analysis.iterations, {}), (tv.analysis.copies, {})])
        >>> len(copies)
        0
        """
        rows = self._readable(what)
        kept = None if self.tables is None else self.tables(work, what, rows)
        if kept is not None:
            for row, error in kept.skipped:
                self._unreadable(row, error)
            skipped = kept.skipped
            out = [self._whose(kept.rows, *of) for of in zip(kept.counts, kept.frames, strict=True)]
        else:
            read, columns, skipped = self.rank_frames(work, rows, progress)
            out = [self._keyed(read, frames) for frames in columns]
        for frame in out:
            frame.attrs = {"skipped": [(self._files[row].path, error) for row, error in skipped]}
        return out

    def rank_frames(
        self,
        work: Work,
        rows: Sequence[int] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[list[int], list[list[pd.DataFrame]], list[tuple[int, str]]]:
        """Call several functions for every rank's trace, and return their frames one by one.

        Parameters
        ----------
        work, progress
            As in :meth:`map_all`.
        rows
            Rows of :attr:`ranks`; None: the traces.

        Returns
        -------
        list of int
            The rows that could be read.
        list of list of pandas.DataFrame
            For each function its frame of each of these.
        list of (int, str)
            The rows that could not be read, and why.

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> from torchtrt_viz.analysis.session.rank_steps import trace_steps
        >>> read, (steps,), missing = session.rank_frames([(trace_steps, {})])
        >>> len(read) == len(steps), missing
        (True, [])
        """
        rows = self._readable() if rows is None else list(rows)
        if self.engine == "dask":
            results = run_tasks([self._files[r] for r in rows], self._options, work, self.present())
        else:
            results = (run_here(self._load, row, work) for row in rows)
        read: list[int] = []
        columns: list[list[pd.DataFrame]] = [[] for _ in work]
        skipped: list[tuple[int, str]] = []
        for done, (row, (frames, error)) in enumerate(zip(rows, results, strict=True), start=1):
            if frames is None:
                skipped.append((row, error or "unreadable"))
                self._unreadable(*skipped[-1])
            else:
                read.append(row)
                for into, frame in zip(columns, frames, strict=True):
                    into.append(frame)
            if progress is not None:
                progress(done, len(rows))
        if not read:
            raise TorchTrtVizError("no rank of this session can be read: session.ranks says why")
        return read, columns, skipped

    def _keyed(self, rows: Sequence[int], frames: list[pd.DataFrame]) -> pd.DataFrame:
        """Put the ranks' frames under each other, with the columns that say whose a row is."""
        return self._whose(rows, [len(frame) for frame in frames], pd.concat(frames, ignore_index=True))

    def _whose(self, rows: Sequence[int], lengths: list[int], out: pd.DataFrame) -> pd.DataFrame:
        for position, column in enumerate(KEY_COLUMNS):
            dtype = _DTYPES.get(column, object)
            values = pd.Series([getattr(self._files[row], column) for row in rows], dtype=dtype)
            out.insert(position, column, values.repeat(lengths).reset_index(drop=True))
        return out
