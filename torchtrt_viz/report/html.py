"""A report in one file that opens offline: verdict, timeline, charts, tables, what was repaired.

The page fetches nothing; its content security policy forbids it and allows only the page's own script, named
by its hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from torchtrt_viz.analysis.answers.judgement import judge
from torchtrt_viz.analysis.catalogue import shown_in
from torchtrt_viz.analysis.table_order import table_order
from torchtrt_viz.errors import OptionError
from torchtrt_viz.formats.io.whole_file import write_atomically
from torchtrt_viz.model.trace_data import TraceData
from torchtrt_viz.report.answers import answers_section
from torchtrt_viz.report.chart_sections import chart_sections
from torchtrt_viz.report.columns import duration
from torchtrt_viz.report.document import document, table_section, timeline
from torchtrt_viz.report.graph_tables import gpu_first, launches
from torchtrt_viz.report.markup import escape, facts
from torchtrt_viz.report.meta import known_facts, warnings_of
from torchtrt_viz.report.payload import DEFAULT_MAX_SPANS, payload
from torchtrt_viz.report.verdict.html import verdict_section
from torchtrt_viz.scene.scene import Scene

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TABLES", "page", "write_html"]

TABLES = shown_in("report")
"""The tables of the page, in its order."""


def page(
    trace: TraceData,
    *,
    title: str | None = None,
    tables: Sequence[str] | None = None,
    charts: Sequence[str] | None = None,
    max_spans: int = DEFAULT_MAX_SPANS,
    max_rows: int = 500,
    height: int | None = None,
) -> str:
    """Return the report as the text of one HTML page; the parameters are those of `write_html`."""
    tables = table_order(trace, "report") if tables is None else tables
    unknown = [name for name in tables if name not in TABLES]
    if unknown:
        raise OptionError("tables", unknown, f"any of {', '.join(TABLES)}")
    if max_spans < 1_000:
        raise OptionError("max_spans", max_spans, "at least 1000")
    known = known_facts(trace)
    heading = title or next((text for label, text in known if label == "file"), "Trace report")
    scene = Scene.of(trace)
    data = payload(scene, max_spans=max_spans)
    pictures = chart_sections(trace, charts, tables)
    sections = [
        verdict_section(judge(trace), scene),
        timeline(data.text, data.left_out, height),
        *(markup for _, _, markup in pictures),
    ]
    shown_tables: set[str] = set()
    for name in tables:
        frame = TABLES[name](trace)
        if name == "summary":
            frame = _without_folders(frame)
        elif name == "host_gpu" and frame["ns"].isna().all():
            continue  # a record of sums has no time of which these are parts
        elif name == "graphs":
            frame = launches(frame)
        elif name == "operators":
            frame = gpu_first(frame)
        if name == "questions":
            answers = answers_section(frame, shown_tables)
            if answers:
                sections.append(answers)
        elif len(frame):
            shown = TABLES[name]
            shown_tables.add(name)
            note = " ".join(filter(None, (shown.note, frame.attrs.get("coverage"))))
            sections.append(table_section(name, shown.title, note, frame, max_rows))
    return document(
        title=heading,
        header=_header(trace, heading, known) + _warnings(trace),
        nav=[("verdict", "Verdict")]
        + [(name, words) for name, words, _ in pictures]
        + [
            (name, TABLES[name].title)
            for name in tables
            if any(f'id="{name}"' in section for section in sections)
        ],
        sections=sections,
    )


def write_html(
    trace: TraceData,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    tables: Sequence[str] | None = None,
    charts: Sequence[str] | None = None,
    max_spans: int = DEFAULT_MAX_SPANS,
    max_rows: int = 500,
    height: int | None = None,
) -> Path:
    """Write a report that opens from disk, without a network or a kernel: timeline, charts, tables, warnings.

    Parameters
    ----------
    path
        File to write; it appears whole or not at all.
    title
        Heading; the file name of the trace by default.
    tables
        Which tables to include and in which order, some of `TABLES`; None: all, the one
        that explains most of the trace first. Those without rows are left
        out.
    charts
        Which charts to include and in which order, some of `torchtrt_viz.charts.registry.CHARTS`; None: all
        that have something to show.
    max_spans
        Events that the timeline keeps one by one. In a longer trace the shortest spans are merged into blocks
        that say so, and the page says how many.
    max_rows
        Rows per table; the page says how many there are.
    height
        Largest height of the timeline's lanes in pixels; by default it follows the window.

    Returns
    -------
    Path
        The file written.

    Notes
    -----
    Of the trace's metadata only a fixed list goes into the page (format, file names without folders, clock,
    versions), and of the events' arguments only what says what was computed: never an environment.
    """
    text = page(
        trace,
        title=title,
        tables=tables,
        charts=charts,
        max_spans=max_spans,
        max_rows=max_rows,
        height=height,
    )
    return write_atomically(path, text)


def _header(trace: TraceData, heading: str, known: list[tuple[str, str]]) -> str:
    length = trace.duration_ns
    rows = [*known, ("spans", f"{len(trace.spans):,}"), ("tracks", f"{len(trace.tracks):,}")]
    if length is not None:
        rows.append(("length", duration(length)))
    badge = '<strong class="synthetic">SYNTHETIC DATA</strong>' if trace.meta.get("synthetic") else ""
    return f"<h1>{escape(heading)}</h1>{badge}{facts(rows)}"


def _warnings(trace: TraceData) -> str:
    found = warnings_of(trace)
    if not found:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in found)
    count = len(trace.meta["warnings"])
    return (
        f'<details class="warnings"><summary>{count} {"warning" if count == 1 else "warnings"} '
        f"from loading</summary><ul>{items}</ul></details>"
    )


def _without_folders(summary: pd.DataFrame) -> pd.DataFrame:
    frame = summary.copy()
    source = (frame["item"] == "source").to_numpy()
    frame["note"] = [
        PurePath(note).name if here else note for note, here in zip(frame["note"], source, strict=True)
    ]
    return frame
