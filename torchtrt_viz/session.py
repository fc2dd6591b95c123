"""`Session`: the traces of many ranks, each loaded when it is asked for.

Analyses and reports import much: methods import them when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from torchtrt_viz.analysis.columns import sessions
from torchtrt_viz.analysis.columns.hangs import HANGS, POSITIONS
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.rank_tasks import RankTrace
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.session_data import ANY, KEY_COLUMNS, Numbers, SessionData, Texts
from torchtrt_viz.model.trace_data import TraceData
from torchtrt_viz.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.analysis.session.rank_overview import Overview
    from torchtrt_viz.loading.rank_files import RankFile
    from torchtrt_viz.loading.saved import SavedRankFile
    from torchtrt_viz.report.session_scene import Align

__all__ = ["KEY_COLUMNS", "Session"]

_READ_TO_SHOW = 8 << 20


class Session(SessionData):
    """The traces of many ranks, and tables over them.

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

    Examples
    --------
    >>> session.ranks["role"].tolist()
    ['prefill', 'prefill', 'decode', 'decode']
    >>> session[2].meta["rank"]
    2
    """

    @classmethod
    def present(cls) -> Callable[[TraceData], TraceData]:
        """Return what makes a `Trace` of the frames that were read."""
        return Trace.of

    @property
    @returns(sessions.RANKS)
    def ranks(self) -> pd.DataFrame:
        """The recordings of the session, one row each (a rank has one per recording cycle).

        Missing values are what nothing says.

        Examples
        --------
        >>> session.ranks["state"].value_counts().to_dict()
        {'ok': 4}
        """
        return super().ranks

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
    ) -> Trace:
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
        found = super().trace(
            rank,
            row=row,
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
        return cast(Trace, found)

    def __getitem__(self, key: int | tuple[int, int]) -> Trace:
        """Read the trace of a rank, or of (rank, cycle)."""
        return cast(Trace, super().__getitem__(key))

    def traces(self) -> Iterator[tuple[RankTrace, Trace]]:
        """Read the traces one after the other; missing ones, and what is not one rank's work, are left out.

        Yields
        ------
        (RankTrace, Trace)
            What the session knows about the trace, and the trace. One that turns out to be unreadable is
            left out, with a warning in ``meta["warnings"]``.

        Examples
        --------
        >>> [file.rank for file, trace in session.traces()]
        [0, 1, 2, 3]
        """
        return cast("Iterator[tuple[RankTrace, Trace]]", super().traces())

    def _repr_html_(self) -> str:
        """Show a static summary; a small session is read for it, a large one only when it has been before."""
        # slow to import with all that it needs
        from torchtrt_viz.report.static_session import session_static_html

        if "overview" not in self.computed and self.engine is None and self._stored_bytes() < _READ_TO_SHOW:
            try:
                self.overview()
            except TorchTrtVizError:
                return session_static_html(self, None)
        return session_static_html(self, self.computed.get("overview"))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show a static picture: no widget beside it, which would hide it where no kernel runs."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _stored_bytes(self) -> int:
        """Size of the recordings as they are stored."""
        stored = {
            file.path: file.archive or file.source for file in cast("tuple[RankFile, ...]", self._files)
        }
        try:
            return sum((source.stored_bytes or 0) for source in stored.values() if source is not None)
        except OSError:  # a recording has gone since
            return _READ_TO_SHOW

    @returns(sessions.RANKS)
    def check(self) -> pd.DataFrame:
        """Read every file to its end, archives against their inventories, and note what is damaged.

        Returns
        -------
        pandas.DataFrame
            The updated :attr:`ranks`.

        Examples
        --------
        >>> session.check()["state"].unique().tolist()
        ['ok']
        """
        # slow to import with all that it needs
        from torchtrt_viz.formats.session.health import archive_damage, document_damage

        checked: list[RankFile] = []
        for file in cast("tuple[RankFile, ...]", self._files):
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

    # -- keeping -------------------------------------------------------------------------------------

    def save(
        self,
        path: str | PathLike[str],
        *,
        force: bool = False,
        tables: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> Path:
        """Write all recordings as one dataset of Parquet, which `load` reads back as this session.

        Each table is a folder, partitioned by ``rank``, ``cycle`` and ``recording`` (row of :attr:`ranks`)
        for DuckDB, polars, pandas and others. One recording is held at a time; a session of
        ``load(..., engine="dask")`` writes each in a task of the current client, where ``path`` has to be a
        folder that all its machines share. The folder gets its name when all is written. When saving was
        stopped, the same call goes on where it was. Recordings that cannot be read are noted as they are.

        Parameters
        ----------
        path
            Folder to make.
        force
            Replace a saved trace or session of that name.
        tables
            Work out what :meth:`overview`, :meth:`operators` and other tables need of each rank, and keep it
            with the dataset: they then answer at once, where all ranks are asked and the package's version is
            the same.
        progress
            Called with (recordings done, recordings in all).

        Returns
        -------
        pathlib.Path
            The folder.

        Raises
        ------
        OutputError
            When something is there, or the folder cannot be written.

        Examples
        --------
        >>> session.save(folder / "dataset").name
        'dataset'
        """
        # slow to import: it needs pyarrow
        from torchtrt_viz.formats.saved.session_writer import save_session

        target = save_session(
            path,
            [(row, file) for row, file in enumerate(self._files) if file.state != "missing"],
            load=self._load,
            options=self._options,
            described=lambda: (self.ranks, self._files, self.meta),
            unreadable=self._unreadable,
            tasks=self.engine == "dask",
            force=force,
            progress=progress,
        )
        if tables:
            self._keep_tables(target)
        return target

    def _keep_tables(self, folder: Path) -> None:
        """Work out the tables of all ranks of what was saved, and keep them with it."""
        # slow to import with all that they need
        from torchtrt_viz.analysis.session.rank_overview import RANK_WORK
        from torchtrt_viz.formats.saved.rank_tables import keep_tables
        from torchtrt_viz.loading.load import load_data

        saved = Session.of(cast(SessionData, load_data(folder, engine=self.engine)))
        try:
            rows, frames, skipped = saved.rank_frames(RANK_WORK)
        except TorchTrtVizError:  # no rank can be read: nothing can be kept
            return
        keep_tables(folder, RANK_WORK, rows, frames, skipped)

    def sql(
        self,
        query: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        progress: bool = False,
    ) -> pd.DataFrame:
        """Run a query in SQL (DuckDB's) over all recordings of a saved session.

        Tables are those of `Trace.sql`, beginning with the columns of :data:`KEY_COLUMNS` and ``recording``
        (the row of :attr:`ranks`), and ``ranks``. A selection of a session sees its own recordings.

        Parameters
        ----------
        query, parameters, timeout, progress
            As in `Trace.sql`.

        Returns
        -------
        pandas.DataFrame
            The rows; integers that may be missing are nullable.

        Raises
        ------
        MissingDependencyError
            Without duckdb (extra: sql).
        OptionError
            For anything but one statement that reads.
        TorchTrtVizError
            When the session was not saved, DuckDB refuses the query, or it takes longer than ``timeout``.

        Examples
        --------
        >>> saved = tv.load(session.save(folder / "tables"))
        >>> saved.sql("SELECT count(DISTINCT rank) AS n FROM spans WHERE role = 'decode'")["n"].tolist()
        [2]
        """
        if self.dataset is None:
            raise TorchTrtVizError(
                "queries run over a saved session: session.save(path), then load(path).sql(...); one rank's "
                "trace can be asked at once: session[rank].sql(...)"
            )
        # slow to import: it needs pyarrow
        from torchtrt_viz.analysis.sql.queries import session_sql

        recordings = [cast("SavedRankFile", file).recording for file in self._files]
        return session_sql(
            self.dataset, recordings, self.ranks, query, parameters, timeout=timeout, progress=progress
        )

    # -- tables over ranks ---------------------------------------------------------------------------

    def overview(self, progress: Callable[[int, int], None] | None = None) -> Overview:
        """Compute all tables over ranks; every trace is read once.

        The session keeps them, so that reports and :meth:`explain` need not read the ranks again.

        Parameters
        ----------
        progress
            Called with (ranks done, ranks in all) after each rank.

        Returns
        -------
        Overview
            Tables ``ranks``, ``totals``, ``roles``, ``by_role``, ``operators``, ``steps``, ``collectives``,
            ``skew``, ``stragglers``, ``requests``, ``strips``, ``hangs``, ``positions``;
            `torchtrt_viz.schema` documents each as ``session.<name>`` (``skew`` as ``collective_skew``).

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.overview().roles[["role", "ranks"]].to_dict("records")
        [{'role': 'prefill', 'ranks': 2}, {'role': 'decode', 'ranks': 2}]
        """
        # slow to import: it needs orjson
        from torchtrt_viz.analysis.session.rank_overview import overview

        return overview(self, progress)

    @returns(sessions.VERDICT)
    def verdict(self, *, top: int = 7) -> pd.DataFrame:
        """Say how busy the ranks were, what holds them up, and what that could save.

        Tables that were computed before (by :meth:`overview`, :meth:`to_html`) are not computed again.

        Parameters
        ----------
        top
            How many findings at most.

        Returns
        -------
        pandas.DataFrame
            One row per finding, shown as a page in a notebook.

        Raises
        ------
        OptionError
            For a ``top`` below 1.
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.verdict(top=1)["kind"].tolist()
        ['late rank']
        """
        # slow to import: they need pandas
        from torchtrt_viz.analysis.session.session_judgement import session_verdict
        from torchtrt_viz.report.answer_frames import VerdictFrame
        from torchtrt_viz.report.verdict.session_words import session_words

        made = self.computed.get("overview") or self.overview()
        return VerdictFrame.of(session_verdict(made, top=top), session_words(made, top=top))

    @returns(sessions.EXPLAIN)
    def explain(self, *, top: int = 6) -> pd.DataFrame:
        """Say in sentences what stands out over the ranks.

        Tables that were computed before (by :meth:`overview`, :meth:`to_html`) are not computed again.

        Parameters
        ----------
        top
            Largest number of findings.

        Returns
        -------
        pandas.DataFrame
            One row per finding.

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.explain(top=1)["source"].tolist()
        ['stragglers']
        """
        return (self.computed.get("overview") or self.overview()).explain(top=top)

    @returns(sessions.OPERATORS_OVER_RANKS)
    def operators(
        self,
        *,
        per_rank: bool = False,
        by: str | Sequence[str] = (),
        kinds: Iterable[str] = ("operator",),
        sort: str | None = "self_ns",
        top: int | None = None,
    ) -> pd.DataFrame:
        """Host operators over all ranks.

        Parameters
        ----------
        per_rank
            Return every rank's own table (``trace.operators()`` after the columns that name the rank) instead
            of the sums: the schema's ``session.operators(per_rank=True)``.
        by, kinds
            What else tells rows apart, and kinds of host spans to count, as in `Trace.operators`.
        sort, top
            Column to sort by (largest first), and at most so many rows.

        Returns
        -------
        pandas.DataFrame
            One row per operator, and role where there are several.

        Raises
        ------
        OptionError
            For a ``by``, ``kinds`` or ``sort`` that there is not.
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.operators(top=1)[["role", "name", "ranks"]].to_dict("records")
        [{'role': 'decode', 'name': 'aten::addmm', 'ranks': 2}]
        """
        # slow to import: it needs orjson
        from torchtrt_viz.analysis.session.rank_operators import session_operators

        return session_operators(self, per_rank=per_rank, by=by, kinds=kinds, sort=sort, top=top)

    @returns(sessions.STEPS)
    def steps(self) -> pd.DataFrame:
        """Duration of each step on each rank, beside the median rank's.

        Returns
        -------
        pandas.DataFrame
            One row per rank and step.

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.steps().query("step == 0")["rank"].tolist()
        [0, 1, 2, 3]
        """
        # slow to import with all that it needs
        from torchtrt_viz.analysis.session.rank_steps import session_steps

        return session_steps(self)

    @returns(sessions.COLLECTIVES)
    def collectives(self) -> pd.DataFrame:
        """Collectives over ranks: for whom the others waited. No clocks are compared.

        Returns
        -------
        pandas.DataFrame
            One row per collective that the ranks of a group recorded equally often.

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.collectives()["last_rank"].tolist()
        [1, 1, 3, 3]
        """
        # slow to import with all that it needs
        from torchtrt_viz.analysis.session.rank_steps import session_collectives

        return session_collectives(self)

    @returns(sessions.STRAGGLERS)
    def stragglers(self) -> pd.DataFrame:
        """Ranks by how much the others wait for them, or how far they are behind.

        Where ranks meet in collectives, a slow rank makes every rank's steps equally long: whom the others
        wait for shows in the collectives only. Ranks that work apart are told by their steps.

        Returns
        -------
        pandas.DataFrame
            One row per rank, the one that others wait for most first.

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.stragglers()["rank"].tolist()
        [1, 3, 0, 2]
        """
        # slow to import with all that it needs
        from torchtrt_viz.analysis.session.rank_steps import stragglers

        return stragglers(self)

    @returns(HANGS)
    def hangs(self) -> pd.DataFrame:
        """Collectives in which ranks wait or disagree, out of the dumps of their Flight Recorders.

        Ranks are compared by the numbers of their collectives, and no clocks are: each dump begins where the
        rank's ring buffer does, and only what several of them have is compared. :meth:`explain` begins with
        the first rows.

        Returns
        -------
        pandas.DataFrame
            One row per collective, causes before what follows from them; none where no rank waits for
            another, and in a session without dumps.

        Examples
        --------
        >>> len(session.hangs())
        0
        """
        # slow to import with all that it needs
        from torchtrt_viz.analysis.hangs.session_tables import session_hangs

        return session_hangs(self)

    @returns(POSITIONS)
    def positions(self) -> pd.DataFrame:
        """The last collective that each rank called in each of its groups, out of Flight Recorders' dumps.

        Returns
        -------
        pandas.DataFrame
            One row per process group and rank with a dump.

        Examples
        --------
        >>> len(session.positions())
        0
        """
        # slow to import with all that it needs
        from torchtrt_viz.analysis.hangs.session_tables import session_positions

        return session_positions(self)

    @returns(sessions.REQUEST_EVENTS)
    def request_events(self) -> pd.DataFrame:
        """Annotated work on requests, of all ranks.

        Returns
        -------
        pandas.DataFrame
            One row per request and annotated range.

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.request_events()["phase"].unique().tolist()
        ['prefill', 'kv_send', 'decode', 'kv_recv']
        """
        # slow to import with all that it needs
        from torchtrt_viz.analysis.session.request_flow import request_events

        return request_events(self)

    @returns(sessions.REQUESTS)
    def requests(self) -> pd.DataFrame:
        """Requests over prefill and decode: what each rank spent on them, joined by their ids.

        Returns
        -------
        pandas.DataFrame
            One row per request.

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.requests()[["request", "prefill_rank", "decode_rank"]].head(1).to_dict("records")
        [{'request': 'r0', 'prefill_rank': 0, 'decode_rank': 2}]
        """
        # slow to import with all that it needs
        from torchtrt_viz.analysis.session.request_flow import requests

        return requests(self)

    @returns(sessions.RANK_SUMMARY)
    def summary(self) -> pd.DataFrame:
        """Totals of each rank: its ``trace.summary()``, under each other with the rank's columns.

        Returns
        -------
        pandas.DataFrame
            One row per rank and total.

        Raises
        ------
        TorchTrtVizError
            When no rank can be read.

        Examples
        --------
        >>> session.summary()["rank"].unique().tolist()
        [0, 1, 2, 3]
        """
        return self.map(_summary)

    # -- views ---------------------------------------------------------------------------------------

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        title: str | None = None,
        ranks: Sequence[int] | None = None,
        timelines: int = 8,
        align: Align = None,
        max_spans: int = 1_000_000,
        max_rows: int = 500,
        height: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Path:
        """Write a report that opens from disk, without a network or a kernel.

        Every trace is read once for the tables, and a few again for the timeline. A session whose recordings
        are all damaged has a page, too: it says so.

        Parameters
        ----------
        path
            File to write; it appears whole or not at all. Links lead from it to the recordings when they lie
            in its folder, below it, or in the folder beside it.
        title
            Heading; the session's id by default.
        ranks
            Numbers of the ranks that the timeline shows. By default up to ``timelines`` recordings: of every
            role the slowest and the fastest in turn.
        timelines
            See ``ranks``; at most 64, and 0 leaves the timeline out.
        align
            How recordings are placed beside each other: None (those of one host by its clock, others begin
            at 0 each), "start", "clock" (by wall clocks as they are), or nanoseconds to add by host.
        max_spans, max_rows, height
            As in `Trace.to_html`.
        progress
            Called with (ranks read, ranks in all).

        Returns
        -------
        pathlib.Path
            The file written.

        Raises
        ------
        OptionError
            For a rank that there is not, and numbers out of range.
        OutputError
            When the file cannot be written.

        Examples
        --------
        >>> session.to_html(folder / "session.html", ranks=[0, 3]).name
        'session.html'
        """
        # slow to import: it needs orjson
        from torchtrt_viz.report.session_html import write_session_html

        return write_session_html(
            self,
            path,
            title=title,
            ranks=ranks,
            timelines=timelines,
            align=align,
            max_spans=max_spans,
            max_rows=max_rows,
            height=height,
            progress=progress,
        )


def _summary(trace: Trace) -> pd.DataFrame:
    return trace.summary()
