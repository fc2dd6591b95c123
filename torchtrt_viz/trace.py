"""`Trace`: one capture of one process, as plain pandas frames.

Analyses, reports and widgets import pandas, numpy and more: methods import them when they are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtrt_viz.analysis.columns.answers import EXPLAIN, QUESTIONS, SUMMARY, VERDICT
from torchtrt_viz.analysis.columns.by_name import HOST_GPU, KERNELS, OPERATORS
from torchtrt_viz.analysis.columns.device import KERNEL_METRICS, NVTX
from torchtrt_viz.analysis.columns.engines import DELEGATES, LAYERS, PHASES
from torchtrt_viz.analysis.columns.graph_table import GRAPHS
from torchtrt_viz.analysis.columns.hangs import RECORDED
from torchtrt_viz.analysis.columns.memory_use import MEMORY
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.places import add_places
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.select import select
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.analysis.bound import BoundAnalyses
    from torchtrt_viz.widgets.explore import Explorer
    from torchtrt_viz.widgets.timeline import Timeline

__all__ = ["Repair", "Trace"]


class Trace(TraceData):
    """One capture of one process (rank): its events as frames, tables about them, and views.

    Made by :func:`torchtrt_viz.load`, by a capture, or from frames.

    Attributes
    ----------
    spans, tracks, instants, counters, flows : pandas.DataFrame
        The events; ``torchtrt_viz.schema.table("spans").describe()`` documents every column, and so on.
    args, instant_args : Args
        Per-event details of spans and instants, built on demand.
    meta : dict
        ``format``, ``sources`` (files), ``base_ns`` (Unix time in ns of ``start_ns == 0``, or None when it
        is unknown), ``clock`` (what the base is and how clocks were aligned, in words), ``rank``,
        ``versions``, ``synthetic`` (True for made-up data), ``warnings`` (list of `Repair`), and what else
        the format records.

    Examples
    --------
    >>> trace.spans["kind"].value_counts().head(3).to_dict()
    {'runtime': 244, 'kernel': 240, 'operator': 216}
    >>> trace.operators(top=3)["name"].tolist()
    ['aten::linear', 'aten::add', 'aten::scaled_dot_product_attention']
    """

    @property
    def spans(self) -> pd.DataFrame:
        """The events with a duration; where each ran (``process`` to ``t_ns``) is added when first asked for.

        Examples
        --------
        >>> trace.spans.groupby("stream", observed=True)["dur_ns"].count().to_dict()
        {'7': 240, '20': 20}
        """
        frame: pd.DataFrame = self.__dict__["spans"]
        add_places(frame, self.tracks)
        return frame

    @spans.setter
    def spans(self, frame: pd.DataFrame) -> None:
        self.__dict__["spans"] = frame

    def _repr_html_(self) -> str:
        # slow to import: it needs pandas
        from torchtrt_viz.report.static_html import static_html

        return static_html(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show a static picture: no widget beside it, which would hide it where no kernel runs."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def select(self, mask: Any) -> Trace:
        """Return a trace of some of the spans, with their links.

        Links to spans that are left out become -1; tracks, instants and counters stay.

        Parameters
        ----------
        mask
            A boolean array or Series over ``spans``, or the numbers of rows.

        Raises
        ------
        ValueError
            For a boolean array of another length than ``spans``.

        Examples
        --------
        >>> trace.select(trace.spans["domain"] == "gpu").spans["domain"].unique().tolist()
        ['gpu']
        """
        return Trace.of(select(self, mask))

    # -- keeping -------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write everything that the trace holds as Parquet, which `load` reads back equal.

        A folder is made, with a Parquet file per frame (``spans``, ``tracks``, ``instants``, ``counters``,
        ``flows``, ``args``, ``instant_args``) for pandas, DuckDB, polars and others, and a document with meta
        data, accounting and warnings. Details of events are read from the source for that: nothing is needed
        of it afterwards. The folder appears whole or not at all.

        Parameters
        ----------
        path
            Folder to make.
        force
            Replace a saved trace or session of that name.

        Returns
        -------
        pathlib.Path
            The folder.

        Raises
        ------
        OutputError
            When something is there, the folder cannot be written, or ``meta`` holds what is no plain value.

        Examples
        --------
        >>> trace.save(folder / "run").name
        'run'
        """
        # slow to import: it needs pyarrow
        from torchtrt_viz.formats.saved.writer import save_trace

        return save_trace(self, path, force=force)

    def sql(
        self,
        query: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        progress: bool = False,
    ) -> pd.DataFrame:
        """Run a query in SQL (DuckDB's) over the frames.

        Tables are ``spans``, ``tracks``, ``instants``, ``counters``, ``flows``, ``args`` and
        ``instant_args``. The first three begin with ``row``, the number that ``spans.track``,
        ``spans.parent``, ``flows.source`` and ``args.row`` refer to; ``args.args`` is the details as JSON.
        Queries read these tables and nothing else: other statements, files and extensions are refused.

        Parameters
        ----------
        query
            One SELECT statement.
        parameters
            Values for ``?`` in it, or by name for ``$name``.
        timeout
            Seconds after which it is stopped; None: never.
        progress
            Show a progress bar when it takes long.

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
            When DuckDB refuses the query, or it takes longer than ``timeout``.

        Examples
        --------
        >>> trace.sql("SELECT count(*) AS n FROM spans WHERE kind = 'kernel'")["n"].tolist()
        [240]
        """
        # slow to import: it needs pyarrow
        from torchtrt_viz.analysis.sql.queries import trace_sql

        return trace_sql(self, query, parameters, timeout=timeout, progress=progress)

    # -- tables --------------------------------------------------------------------------------------

    @returns(QUESTIONS)
    def questions(self) -> pd.DataFrame:
        """Answer the six questions that a capture of a deployed model has to answer.

        Returns
        -------
        pandas.DataFrame
            One row per question; shown as short answers with their tables behind.

        Examples
        --------
        >>> trace.questions()[["question", "measured"]].loc[0].tolist()
        ['Which TensorRT and other delegate regions ran?', 'partly']
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.answers.six_questions import questions
        from torchtrt_viz.report.answer_frames import AnswersFrame

        return AnswersFrame.of(questions(self), self)

    @returns(EXPLAIN)
    def explain(self, *, top: int = 3, min_pct: float = 3.0) -> pd.DataFrame:
        """Say in sentences what matters most.

        Parameters
        ----------
        top
            How many findings.
        min_pct
            Findings with less at stake are not worth a sentence, percent.

        Returns
        -------
        pandas.DataFrame
            One row per finding; none when nothing stands out.

        Raises
        ------
        OptionError
            For a ``top`` below 1.

        Examples
        --------
        >>> trace.explain(top=1)["domain"].tolist()
        ['host']
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.answers.findings import explain

        return explain(self, top=top, min_pct=min_pct)

    @returns(VERDICT)
    def verdict(self, *, top: int = 7) -> pd.DataFrame:
        """Say where the time of the capture went, and what could make it shorter.

        Parameters
        ----------
        top
            How many findings at most.

        Returns
        -------
        pandas.DataFrame
            One row per finding, the most time that could be saved first; shown as a page in a notebook.

        Raises
        ------
        OptionError
            For a ``top`` below 1.

        Examples
        --------
        >>> trace.verdict(top=1)["domain"].tolist()
        ['gpu']
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.answers.judgement import judge
        from torchtrt_viz.report.answer_frames import VerdictFrame
        from torchtrt_viz.report.verdict.words import verdict_words

        judged = judge(self, top=top)
        return VerdictFrame.of(judged.frame(), verdict_words(judged))

    @property
    def analysis(self) -> BoundAnalyses:
        """Every function of `torchtrt_viz.analysis` as a method: called with this trace, options by name.

        Examples
        --------
        >>> gaps = trace.analysis.idle_gaps(level="device")
        >>> "cause" in gaps
        True
        """
        # slow to import: the analyses need pandas
        from torchtrt_viz.analysis.bound import BoundAnalyses

        return BoundAnalyses(self)

    @returns(SUMMARY)
    def summary(self) -> pd.DataFrame:
        """Totals of the capture, host and GPU apart.

        Returns
        -------
        pandas.DataFrame
            One row per total.

        Examples
        --------
        >>> trace.summary()["section"].unique().tolist()
        ['capture', 'host', 'gpu', 'delegates', 'engines', 'warnings']
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.answers.capture_summary import summary

        return summary(self)

    @returns(HOST_GPU)
    def host_gpu(self) -> pd.DataFrame:
        """Host time and GPU time side by side, each the length of a union of intervals.

        Rows describe overlapping views of one time axis and must not be added to each other.

        Returns
        -------
        pandas.DataFrame
            One row per view.

        Examples
        --------
        >>> trace.host_gpu()["domain"].unique().tolist()
        ['both', 'host', 'gpu']
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.device.host_gpu_time import host_gpu

        return host_gpu(self)

    @returns(OPERATORS)
    def operators(
        self,
        *,
        by: str | Sequence[str] = (),
        kinds: Iterable[str] = ("operator",),
        sort: str | None = "self_ns",
        top: int | None = None,
    ) -> pd.DataFrame:
        """Host operators by name.

        Parameters
        ----------
        by
            What else tells rows apart, one or several of shape, dtype, values, op_type, module, source,
            stack, track, iteration, run_id, kind, and of ONNX Runtime node and provider. Shapes, modules and
            stacks are read from the events' details, which takes longer.
        kinds
            Kinds of host spans to count (``annotation``, ``runtime``, ``python``, ... as well as
            ``operator``).
        sort
            Column to sort by, numbers largest first; None keeps the order of the names' codes.
        top
            At most so many rows.

        Returns
        -------
        pandas.DataFrame
            One row per operator, those that only graphs ran included; an empty frame where there is none.

        Raises
        ------
        OptionError
            For a ``by``, ``kinds`` or ``sort`` that there is not, and a ``top`` below 1.

        Examples
        --------
        >>> trace.operators(top=2)[["name", "calls"]].to_dict("records")
        [{'name': 'aten::linear', 'calls': 96}, {'name': 'aten::add', 'calls': 48}]
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.device.operator_tables import operators

        return operators(self, by=by, kinds=kinds, sort=sort, top=top)

    @returns(KERNELS)
    def kernels(
        self, *, by: str | Sequence[str] = (), sort: str | None = "total_ns", top: int | None = None
    ) -> pd.DataFrame:
        """Device work by name: kernels, copies, fills and collectives.

        Parameters
        ----------
        by
            What else tells rows apart: device, stream (the track's label), operator (the innermost operator
            that launched the work), shape, dtype, module, source (of that operator), match (how work of
            graphs was matched with their capture), iteration.
        sort, top
            As in :meth:`operators`.

        Returns
        -------
        pandas.DataFrame
            One row per name; an empty frame where no device work was recorded.

        Raises
        ------
        OptionError
            For a ``by`` or ``sort`` that there is not, and a ``top`` below 1.

        Examples
        --------
        >>> trace.kernels(by="operator", top=1)[["name", "operator"]].to_dict("records")
        [{'name': 'ampere_sgemm_128x64_tn', 'operator': 'aten::linear'}]
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.device.operator_tables import kernels

        return kernels(self, by=by, sort=sort, top=top)

    @returns(GRAPHS)
    def graphs(self, *, sort: str | None = None, top: int | None = None) -> pd.DataFrame:
        """Launches of CUDA (or HIP) graphs: what each cost, and what is known of its kernels.

        Parameters
        ----------
        sort, top
            As in :meth:`operators`; by default in the order of the launches.

        Returns
        -------
        pandas.DataFrame
            One row per launch, with its host time once, whatever it ran.

        Raises
        ------
        OptionError
            For a ``sort`` that is no column, and a ``top`` below 1.

        Examples
        --------
        >>> len(trace.graphs())
        0
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.device.graph_table import graphs

        return graphs(self, sort=sort, top=top)

    @returns(DELEGATES)
    def delegates(self, *, sort: str | None = "host_total_ns", top: int | None = None) -> pd.DataFrame:
        """Delegate instances: which ran, how often, and what their calls cost the host.

        Parameters
        ----------
        sort, top
            As in :meth:`operators`.

        Returns
        -------
        pandas.DataFrame
            One row per instance.

        Raises
        ------
        OptionError
            For a ``sort`` that is no column, and a ``top`` below 1.

        Examples
        --------
        >>> trace.delegates()[["delegate", "calls"]].to_dict("records")
        [{'delegate': 'head_0', 'calls': 4}]
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.engine.delegate_calls import delegates

        return delegates(self, sort=sort, top=top)

    @returns(PHASES)
    def phases(self, *, rest: bool = True, sort: str | None = None, top: int | None = None) -> pd.DataFrame:
        """Host time inside delegate calls by phase.

        Parameters
        ----------
        rest
            Add a row per delegate for the time of its calls that no phase covers, so that shares sum to 100.
        sort, top
            As in :meth:`operators`; by default in the order in which delegates and their phases first ran.

        Returns
        -------
        pandas.DataFrame
            One row per delegate and phase. Phases outside a delegate's call, and delegates without phases,
            have none.

        Raises
        ------
        OptionError
            For a ``sort`` that is no column, and a ``top`` below 1.

        Examples
        --------
        >>> trace.phases(rest=False)["phase"].tolist()
        ['torchtrt.input_binding', 'torchtrt.enqueue_host', 'torchtrt.output_staging', 'torchtrt.synchronize']
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.engine.delegate_calls import phases

        return phases(self, rest=rest, sort=sort, top=top)

    @returns(LAYERS)
    def layers(
        self,
        *,
        engine: str | None = None,
        untimed: bool = True,
        sort: str | None = "total_ns",
        top: int | None = None,
    ) -> pd.DataFrame:
        """Layers of engines, with their times and everything that the files say of them.

        Parameters
        ----------
        engine
            Only this engine (a value of column ``engine``); no row where the trace does not have it.
        untimed
            Also list layers that the engine's description names but nobody timed; their times are NA.
        sort, top
            As in :meth:`operators`; ``sort=None`` keeps the engine's order.

        Returns
        -------
        pandas.DataFrame
            One row per layer.

        Raises
        ------
        OptionError
            For a ``sort`` that is no column, and a ``top`` below 1.

        Examples
        --------
        >>> trace.layers(top=1)[["name", "domain"]].to_dict("records")
        [{'name': 'layer_sum_4', 'domain': 'gpu'}]
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.engine.layer_table import layers

        return layers(self, engine=engine, untimed=untimed, sort=sort, top=top)

    @returns(MEMORY)
    def memory(self) -> pd.DataFrame:
        """Memory over time, as a step function per device.

        Returns
        -------
        pandas.DataFrame
            One row per change, by device, then time; none when the capture did not record memory
            (torch.profiler's ``profile_memory=True``).

        Examples
        --------
        >>> len(trace.memory())
        0
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.device.memory_use import memory

        return memory(self)

    @returns(NVTX)
    def nvtx(
        self,
        *,
        project: str = "host",
        domain: str | None = None,
        kinds: Iterable[str] | None = None,
        sort: str | None = None,
        top: int | None = None,
    ) -> pd.DataFrame:
        """Ranges that the program or a library named (NVTX, roctx, ``record_function``), on host and device.

        Parameters
        ----------
        project
            ``host``: every range, by its start; ``gpu``: those that launched device work of the trace, by
            the start of the first piece.
        domain
            Only ranges of this NVTX domain; "" is the default one.
        kinds
            Kinds of host spans that count as ranges; None: annotations, steps and communication, and of
            recordings of Nsight Systems and rocprofv3 the operators too, which are such ranges there.
        sort, top
            As in :meth:`operators`; None for ``sort`` keeps the order of ``project``.

        Returns
        -------
        pandas.DataFrame
            One row per range. Work counts for a range when the call that launched it began inside the range
            on the same thread (of ranges that may end on another thread: in the same process).

        Raises
        ------
        OptionError
            For a ``project``, kind or ``sort`` that there is not, and a ``top`` below 1.

        Examples
        --------
        >>> trace.nvtx(project="gpu", top=1)[["name", "launches"]].to_dict("records")
        [{'name': 'ProfilerStep#0', 'launches': 60}]
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.device.named_ranges import nvtx

        return nvtx(self, project=project, domain=domain, kinds=kinds, sort=sort, top=top)

    @returns(KERNEL_METRICS)
    def kernel_metrics(
        self,
        page: str | PathLike[str] | TraceData | None = None,
        *,
        metrics: Iterable[str] | None = None,
        sort: str | None = None,
        top: int | None = None,
    ) -> pd.DataFrame:
        """What Nsight Compute measured of single kernels, joined to the kernels of this trace by name.

        Parameters
        ----------
        page
            A page of Nsight Compute as CSV (``ncu --csv --page raw``), or one that was loaded; None: this
            trace is one.
        metrics
            Only metrics of these names; None: all.
        sort, top
            As in :meth:`operators`; by default in the order of the page.

        Returns
        -------
        pandas.DataFrame
            One row per metric of a kernel. Names are compared without spaces, casts of template arguments
            and parameters; kernels that several launches fit are joined in their order where as many were
            profiled, and to none otherwise.

        Raises
        ------
        TraceFormatError
            For a file that is no page.
        OptionError
            For a ``page`` that is another trace, a ``sort`` that is no column, and a ``top`` below 1.

        Examples
        --------
        >>> trace.kernel_metrics().empty
        True
        """
        # slow to import: they need pandas
        from torchtrt_viz.analysis.device.profiled_kernels import kernel_metrics
        from torchtrt_viz.formats import format_module
        from torchtrt_viz.formats.io.options import LoadOptions
        from torchtrt_viz.formats.io.source import Source

        if page is not None and not isinstance(page, TraceData):
            page = format_module("ncu").read(Source(page), LoadOptions())
        return kernel_metrics(self, page, metrics=metrics, sort=sort, top=top)

    @returns(RECORDED)
    def recorded_collectives(self) -> pd.DataFrame:
        """What a Flight Recorder's dump says of each collective, send and receive.

        Returns
        -------
        pandas.DataFrame
            One row per entry, the latest first; none for a trace that is no such dump.

        Examples
        --------
        >>> len(trace.recorded_collectives())
        0
        """
        # slow to import: it needs pandas
        from torchtrt_viz.analysis.hangs.entries import recorded_collectives

        return recorded_collectives(self)

    # -- views ---------------------------------------------------------------------------------------

    def timeline(
        self,
        *,
        height: int = 420,
        theme: str = "auto",
        color_by: str = "name",
        whole_limit: int = 300_000,
    ) -> Timeline:
        """Return the interactive timeline widget, to be shown in a notebook.

        Parameters
        ----------
        height
            Height of the lanes in pixels, 60 to 10000; fewer lanes take less.
        theme
            "auto" follows the notebook, or "light", "dark".
        color_by
            "name" gives every name its colour, "kind" every kind of work.
        whole_limit
            Traces of up to so many events are sent to the browser whole, which then zooms without the kernel;
            larger ones stay in the kernel, which sends what the screen can show.

        Raises
        ------
        OptionError
            For a value that cannot be.
        MissingDependencyError
            Without anywidget (extra: lab).

        Examples
        --------
        >>> trace.timeline(height=300)
        <Timeline of 839 events on 5 tracks>
        """
        # slow to import: it needs anywidget
        from torchtrt_viz.widgets.timeline import Timeline

        return Timeline(self, height=height, theme=theme, color_by=color_by, whole_limit=whole_limit)

    def explore(
        self,
        *,
        height: int = 360,
        theme: str = "auto",
        color_by: str = "name",
        whole_limit: int = 300_000,
    ) -> Explorer:
        """Return the timeline and the tables, linked: rows chosen below mark their spans above.

        Parameters
        ----------
        height, theme, color_by, whole_limit
            Of the timeline, as in :meth:`timeline`.

        Raises
        ------
        OptionError
            For a value that cannot be.
        MissingDependencyError
            Without anywidget and ipywidgets (extra: lab).

        Examples
        --------
        >>> sorted(trace.explore().tables)
        ['delegates', 'kernels', 'layers', 'operators', 'phases']
        """
        # slow to import: it needs anywidget
        from torchtrt_viz.widgets.explore import Explorer

        return Explorer(self, height=height, theme=theme, color_by=color_by, whole_limit=whole_limit)

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        title: str | None = None,
        tables: Sequence[str] | None = None,
        charts: Sequence[str] | None = None,
        max_spans: int = 1_000_000,
        max_rows: int = 500,
        height: int | None = None,
    ) -> Path:
        """Write a report that opens from disk, without a network or a kernel: timeline, charts, tables.

        Parameters
        ----------
        path
            File to write; it appears whole or not at all.
        title
            Heading; the file name of the trace by default.
        tables
            Which tables to include, in this order, such as ``["operators", "layers"]``; None: all that have
            rows.
        charts
            Which charts to include, in this order, such as ``["plan", "roofline"]``; None: all that have
            something to show.
        max_spans
            Events that the timeline keeps one by one. In a longer trace the shortest spans are merged into
            blocks that say so.
        max_rows
            Rows per table; the page says how many there are.
        height
            Most height of the timeline's lanes in pixels; by default what suits the window.

        Returns
        -------
        pathlib.Path
            The file written.

        Raises
        ------
        OptionError
            For a table or a chart that there is not, or ``max_spans`` below 1000.
        OutputError
            When the file cannot be written.

        Examples
        --------
        >>> trace.to_html(folder / "report.html", title="Run 12").name
        'report.html'
        """
        # slow to import with all that it needs
        from torchtrt_viz.report.html import write_html

        return write_html(
            self,
            path,
            title=title,
            tables=tables,
            charts=charts,
            max_spans=max_spans,
            max_rows=max_rows,
            height=height,
        )

    def save_chart(
        self,
        name: str,
        path: str | PathLike[str],
        *,
        engine: str | None = None,
        theme: str = "auto",
        width: int = 1000,
    ) -> Path:
        """Write a chart as an SVG file, without a browser; ``tv.widgets.charts`` shows the same in notebooks.

        Parameters
        ----------
        name
            layers, layer_types, plan, delegate_phases, kernels, gpu_time, idle, critical_path, launch_delay,
            longest_delays, graph_launches, collectives, roofline, flame_gpu, flame or memory.
        path
            File to write; it appears whole or not at all. A chart of which nothing was recorded says why.
        engine
            Only this engine, for layers, layer_types and plan.
        theme
            "light", "dark", or "auto", which follows the viewer's setting.
        width
            Of the picture in pixels, 320 to 20000; an engine's graph is as wide as it needs to be.

        Returns
        -------
        pathlib.Path
            The file written.

        Raises
        ------
        OptionError
            For a chart, an engine, a theme or a width that there is not.
        OutputError
            When the file cannot be written.

        Examples
        --------
        >>> trace.save_chart("roofline", folder / "roofline.svg").name
        'roofline.svg'
        """
        # slow to import: it needs pandas
        from torchtrt_viz.report.chart_file import write_chart

        return write_chart(self, name, path, engine=engine, theme=theme, width=width)

    def to_perfetto(
        self, path: str | PathLike[str], *, format: str | None = None, args: bool = False
    ) -> Path:
        """Write a Perfetto trace, which ``ui.perfetto.dev`` shows and `load` reads back.

        Parameters
        ----------
        path
            File to write; it appears whole or not at all.
        format
            "protobuf", or "json" (the trace-event format, which other tools read too: larger, and slower to
            load). By default "json" for names that end in .json, else "protobuf".
        args
            Write the details of every span as well. They are read from the source for that, and may hold what
            is not to be handed on.

        Returns
        -------
        pathlib.Path
            The file written.

        Raises
        ------
        OptionError
            For an unknown format.
        OutputError
            When the file cannot be written.

        Examples
        --------
        >>> trace.to_perfetto(folder / "run.pftrace").name
        'run.pftrace'
        """
        # slow to import with all that it needs
        from torchtrt_viz.formats.perfetto.writer import write_perfetto

        return write_perfetto(self, path, format=format, args=args)
