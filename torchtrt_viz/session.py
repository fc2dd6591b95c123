"""`Session`: the traces of many ranks, each loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from torchtrt_viz.errors import OptionError, TorchTrtVizError, TraceFormatError
from torchtrt_viz.loaders.options import LoadOptions
from torchtrt_viz.trace import Repair, Trace

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.analysis.session_overview import Overview
    from torchtrt_viz.analysis.session_tasks import Work
    from torchtrt_viz.loaders.manifest import Manifest
    from torchtrt_viz.loaders.rank_files import RankFile

__all__ = ["KEY_COLUMNS", "Session"]

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
_READ_TO_SHOW = 8 << 20


class _NoSingleTrace(KeyError):
    """No trace, or several, are what was asked for."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the message quoted


class Session:
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
    """

    def __init__(
        self,
        files: Sequence[RankFile],
        *,
        manifests: Sequence[Manifest] = (),
        options: LoadOptions | None = None,
        engine: str | None = None,
        paths: Sequence[str | PathLike[str]] = (),
        other_files: Sequence[str] = (),
    ) -> None:
        self._files = tuple(files)
        self._options = options or LoadOptions()
        self._ranks: pd.DataFrame | None = None
        self._live: WeakValueDictionary[int, Trace] = WeakValueDictionary()
        self._overview: Overview | None = None
        self.engine = engine
        self.meta: dict[str, Any] = {
            "format": "session",
            "sources": [str(p) for p in paths],
            "manifests": list(manifests),
            "warnings": list(self._options.warnings),
            "other_files": list(other_files),
        }

    def __len__(self) -> int:
        """Return the number of traces, those that are missing included."""
        return len(self._files)

    def __repr__(self) -> str:
        ranks = len({f.key if f.rank is not None else f.path for f in self._files})
        states: dict[str, int] = {}
        for file in self._files:
            states[file.state] = states.get(file.state, 0) + 1
        bad = ", ".join(f"{n} {state}" for state, n in sorted(states.items()) if state != "ok")
        roles = {f.role for f in self._files if f.role}
        of = f" ({', '.join(sorted(roles))})" if roles else ""
        lazily = "" if self.engine is None else f", by {self.engine}"
        bad = f", {bad}" if bad else ""
        return f"<Session: {len(self._files)} traces of {ranks} ranks{of}{bad}{lazily}>"

    def _repr_html_(self) -> str:
        """Show a static summary; a small session is read for it, a large one only when it has been before."""
        from torchtrt_viz.report.static_session import session_static_html

        if self._overview is None and self.engine is None and self._stored_bytes() < _READ_TO_SHOW:
            try:
                self.overview()
            except TorchTrtVizError:
                return session_static_html(self, None)
        return session_static_html(self, self._overview)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show a static picture: no widget beside it, which would hide it where no kernel runs."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _stored_bytes(self) -> int:
        """Size of the recordings as they are stored."""
        stored = {file.path: file.archive or file.source for file in self._files}
        try:
            return sum((source.stored_bytes or 0) for source in stored.values() if source is not None)
        except OSError:  # a recording has gone since
            return _READ_TO_SHOW

    # -- which ranks there are -----------------------------------------------------------------------

    @property
    def ranks(self) -> pd.DataFrame:
        """The traces of the session, one row each (a rank has one per recording cycle).

        Columns: ``session``, ``rank`` (unique within a session where it says so itself; else what the
        trace or its name says), ``role`` (prefill, decode, ...), ``instance`` (replica), ``host``,
        ``cycle`` (from 0), ``stage``; ``state`` ("ok", "damaged", "staged": recorded but not packed yet,
        "missing"), ``error`` (why it is not ok); ``format``, ``what`` ("trace", or "merged", "frontend",
        "capture" for what is not one rank's work), ``writer``, ``path``, ``pid``, ``device``,
        ``world_size``; ``start_unix_ns`` and ``stop_unix_ns`` (the rank's own clock), ``cut_at_start``
        and ``cut_at_stop`` (requests in flight at the boundaries). Missing values are what nothing says.
        """
        if self._ranks is None:
            import pandas as pd

            columns = (*KEY_COLUMNS, *_MORE_COLUMNS)
            data = {
                column: pd.Series(
                    [getattr(f, column) for f in self._files], dtype=_DTYPES.get(column, object)
                )
                for column in columns
            }
            self._ranks = pd.DataFrame(data)
        return self._ranks.copy()

    def select(self, **wanted: Any) -> Session:
        """Return the session of those traces that have the given value (or one of a list) per column.

        Examples
        --------
        ``session.select(role="prefill")``, ``session.select(rank=[0, 1], state="ok")``.

        Raises
        ------
        OptionError
            For a name that is no column of :attr:`ranks`.
        """
        return self._part(self._rows(wanted))

    def _part(self, rows: Sequence[int]) -> Session:
        part = Session([self._files[row] for row in rows], options=self._options, engine=self.engine)
        part.meta = {**self.meta, "warnings": list(self.meta["warnings"])}
        return part

    def _rows(self, wanted: dict[str, Any]) -> list[int]:
        known = (*KEY_COLUMNS, *_MORE_COLUMNS)
        for name in wanted:
            if name not in known:
                raise OptionError(name, wanted[name], f"columns to choose by are {', '.join(known)}")

        def fits(file: RankFile) -> bool:
            for name, value in wanted.items():
                has = getattr(file, name)
                several = isinstance(value, (list, tuple, set, frozenset, range))
                if not (has in value if several else has == value):
                    return False
            return True

        return [row for row, file in enumerate(self._files) if fits(file)]

    # -- traces --------------------------------------------------------------------------------------

    def trace(self, rank: int | None = None, *, row: int | None = None, **wanted: Any) -> Trace:
        """Read one rank's trace.

        Parameters
        ----------
        rank
            The rank's number.
        row
            Row of :attr:`ranks`, instead of everything else.
        **wanted
            What tells the trace from others: ``role``, ``host``, ``instance``, ``session``, ``cycle``,
            ``stage`` or any other column of :attr:`ranks`.

        Raises
        ------
        KeyError
            When no trace is so, or several are; the message lists them.
        TraceFormatError
            When the trace is missing, or nothing of it can be read.
        """
        if row is not None:
            if not -len(self) <= row < len(self):
                raise _NoSingleTrace(f"row {row} of {len(self)}")
            return self._load(row % len(self))
        if rank is not None:
            wanted = {"rank": rank, **wanted}
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

    def __getitem__(self, key: int | tuple[int, int]) -> Trace:
        """Read the trace of a rank, or of (rank, cycle)."""
        if isinstance(key, tuple):
            rank, cycle = key
            return self.trace(rank, cycle=cycle)
        return self.trace(key)

    def _load(self, row: int) -> Trace:
        trace = self._live.get(row)
        if trace is None:
            trace = self._files[row].load(self._options)
            self._live[row] = trace
        return trace

    def traces(self) -> Iterator[tuple[RankFile, Trace]]:
        """Read the traces one after the other (missing ones, and what is not one rank's work, are left out).

        Yields
        ------
        (RankFile, Trace)
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

    def _readable(self) -> list[int]:
        rows = [r for r, f in enumerate(self._files) if f.what in ("trace", "partial")]
        rows = rows or list(range(len(self._files)))
        return [r for r in rows if self._files[r].state != "missing"]

    def _unreadable(self, row: int, error: str) -> None:
        """Note that a trace could not be read."""
        from dataclasses import replace

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

    def check(self) -> pd.DataFrame:
        """Read every file to its end, archives against inventories; return the updated :attr:`ranks`."""
        from dataclasses import replace

        from torchtrt_viz.loaders.health import archive_damage, document_damage

        checked = []
        for file in self._files:
            damage = None
            if file.archive is not None:
                damage = archive_damage(file.archive)
            elif file.format == "kineto" and file.source is not None:
                damage = document_damage(file.source, whole=True)
            if damage is not None and file.state == "ok":
                file = replace(file, state="damaged", error=damage)
                self.meta["warnings"].append(Repair("damaged_rank", damage, path=file.path))
            checked.append(file)
        self._files = tuple(checked)
        self._ranks = None
        return self.ranks

    # -- frames over ranks ---------------------------------------------------------------------------

    def map(self, function: Callable[..., pd.DataFrame], **options: Any) -> pd.DataFrame:
        """Call ``function(trace, **options)`` for every rank and put the frames it returns under each other.

        With ``engine="dask"`` each rank is one task on the current ``distributed`` client (or dask's default
        scheduler): the trace is read, reduced and forgotten where the task runs, and only the frames travel.

        Returns
        -------
        pandas.DataFrame
            The columns of :data:`KEY_COLUMNS` (``session``, ``rank``, ``role``, ``instance``, ``host``,
            ``cycle``, ``stage``), then the function's. ``attrs["skipped"]`` lists (path, error) of the
            traces that could not be read.
        """
        return self.map_all([(function, options)])[0]

    def map_all(
        self, work: Work, *, progress: Callable[[int, int], None] | None = None
    ) -> list[pd.DataFrame]:
        """Do the same for several functions, reading every trace once.

        Parameters
        ----------
        work
            (function, options) for each frame that is wanted.
        progress
            Called with (ranks done, ranks in all) after each rank.

        Returns
        -------
        list of pandas.DataFrame
            For each function what :meth:`map` returns.
        """
        from torchtrt_viz.analysis.session_tasks import run_here, run_tasks

        rows = self._readable()
        if self.engine == "dask":
            results = run_tasks([self._files[r] for r in rows], self._options, work)
        else:
            results = (run_here(self._load, row, work) for row in rows)
        read: list[int] = []
        columns: list[list[pd.DataFrame]] = [[] for _ in work]
        skipped = []
        for done, (row, (frames, error)) in enumerate(zip(rows, results, strict=True), start=1):
            if frames is None:
                skipped.append((self._files[row].path, error))
                self._unreadable(row, error or "unreadable")
            else:
                read.append(row)
                for into, frame in zip(columns, frames, strict=True):
                    into.append(frame)
            if progress is not None:
                progress(done, len(rows))
        if not read:
            raise TorchTrtVizError("no rank of this session can be read: session.ranks says why")
        out = [self._keyed(read, frames) for frames in columns]
        for frame in out:
            frame.attrs = {"skipped": list(skipped)}
        return out

    def _keyed(self, rows: Sequence[int], frames: list[pd.DataFrame]) -> pd.DataFrame:
        """Put the ranks' frames under each other, with the columns that say whose a row is."""
        import pandas as pd

        lengths = [len(frame) for frame in frames]
        out = pd.concat(frames, ignore_index=True)
        for position, column in enumerate(KEY_COLUMNS):
            dtype = _DTYPES.get(column, object)
            values = pd.Series([getattr(self._files[row], column) for row in rows], dtype=dtype)
            out.insert(position, column, values.repeat(lengths).reset_index(drop=True))
        return out

    def overview(self, progress: Callable[[int, int], None] | None = None) -> Overview:
        """All tables over ranks at once: see :func:`torchtrt_viz.analysis.session_overview.overview`."""
        from torchtrt_viz.analysis.session_overview import overview

        made = overview(self, progress)
        self._overview = made
        return made.copy()

    def explain(self, *, top: int = 6) -> pd.DataFrame:
        """What stands out over the ranks: see :mod:`torchtrt_viz.analysis.session_findings`.

        Tables that were computed before (by :meth:`overview`, :meth:`to_html`) are not computed again.
        """
        return (self._overview or self.overview()).explain(top=top)

    def to_html(self, path: str | PathLike[str], **options: Any) -> None:
        """Write a report that opens offline: see `torchtrt_viz.report.session_html.write_session_html`."""
        from torchtrt_viz.report.session_html import write_session_html

        write_session_html(self, path, **options)

    def operators(self, *, per_rank: bool = False, **options: Any) -> pd.DataFrame:
        """Operators over ranks: see :func:`torchtrt_viz.analysis.session_operators.session_operators`."""
        from torchtrt_viz.analysis.session_operators import session_operators

        return session_operators(self, per_rank=per_rank, **options)

    def steps(self) -> pd.DataFrame:
        """Steps of every rank: see :func:`torchtrt_viz.analysis.session_steps.session_steps`."""
        from torchtrt_viz.analysis.session_steps import session_steps

        return session_steps(self)

    def collectives(self) -> pd.DataFrame:
        """Collectives over ranks: see :func:`torchtrt_viz.analysis.session_steps.session_collectives`."""
        from torchtrt_viz.analysis.session_steps import session_collectives

        return session_collectives(self)

    def stragglers(self) -> pd.DataFrame:
        """Ranks behind the others: see :func:`torchtrt_viz.analysis.session_steps.stragglers`."""
        from torchtrt_viz.analysis.session_steps import stragglers

        return stragglers(self)

    def request_events(self) -> pd.DataFrame:
        """Annotated work on requests: see :func:`torchtrt_viz.analysis.session_requests.request_events`."""
        from torchtrt_viz.analysis.session_requests import request_events

        return request_events(self)

    def requests(self) -> pd.DataFrame:
        """Requests over prefill and decode: see :func:`torchtrt_viz.analysis.session_requests.requests`."""
        from torchtrt_viz.analysis.session_requests import requests

        return requests(self)

    def summary(self) -> pd.DataFrame:
        """Totals of each rank: its ``trace.summary()``, under each other with the rank's columns."""
        return self.map(_summary)


def _summary(trace: Trace) -> pd.DataFrame:
    return trace.summary()
