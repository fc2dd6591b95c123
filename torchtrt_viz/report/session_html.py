"""The report of a session in one file that opens offline: ranks, what stands out, tables, timeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from torchtrt_viz.analysis.catalogue import SESSION_TABLES, shown_in
from torchtrt_viz.analysis.session.imbalance import collective_totals, step_imbalance
from torchtrt_viz.analysis.session.rank_overview import overview
from torchtrt_viz.charts.figure import markup
from torchtrt_viz.charts.ranks import rank_steps, waited_for
from torchtrt_viz.errors import OptionError, TorchTrtVizError
from torchtrt_viz.formats.io.whole_file import write_atomically
from torchtrt_viz.report.document import document, table_section, timeline
from torchtrt_viz.report.hangs_section import hangs_table, positions_table, stacks
from torchtrt_viz.report.markup import escape, facts, table
from torchtrt_viz.report.payload import DEFAULT_MAX_SPANS, payload
from torchtrt_viz.report.session_facts import (
    artifact_link,
    file_name,
    not_here,
    not_whole,
    session_facts,
    session_name,
    without_folders,
)
from torchtrt_viz.report.session_scene import Align, choose_rows, session_scene
from torchtrt_viz.report.session_tables import (
    operators_table,
    plain,
    ranks_table,
    role_columns,
    skew_table,
    stragglers_table,
)
from torchtrt_viz.report.strips import strips_of_ranks
from torchtrt_viz.report.verdict.html import verdict_markup
from torchtrt_viz.report.verdict.session_words import session_words

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.analysis.session.rank_overview import Overview
    from torchtrt_viz.model.session_data import SessionData
    from torchtrt_viz.report.verdict.words import FindingWords
    from torchtrt_viz.scene.scene import Scene

__all__ = ["SECTIONS", "session_page", "write_session_html"]

DEFAULT_TIMELINES = 8
_MOST_TIMELINES = 64
_MOST_STRIPS = 64
_MOST_BAD = 200

SECTIONS = shown_in("report", SESSION_TABLES)
"""The tables of the page, in its order."""


def session_page(
    session: SessionData,
    *,
    title: str | None = None,
    ranks: Sequence[int] | None = None,
    timelines: int = DEFAULT_TIMELINES,
    align: Align = None,
    max_spans: int = DEFAULT_MAX_SPANS,
    max_rows: int = 500,
    height: int | None = None,
    path: str | PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Return the report as the text of one page; the parameters are those of `write_session_html`.

    ``path`` is where the page will lie: links to recordings are relative to it, and left out without it.
    """
    if not 0 <= timelines <= _MOST_TIMELINES:
        raise OptionError("timelines", timelines, f"0 to {_MOST_TIMELINES}")
    if max_spans < 1_000:
        raise OptionError("max_spans", max_spans, "at least 1000")
    rows = None if ranks is None else _rows_of(session, ranks)
    try:
        made = overview(session, progress)
    except TorchTrtVizError:
        if len(session) and not (session.ranks["state"] == "ok").any():
            made = None  # the user needs the page even if it only reports damage
        else:
            raise
    heading = title or session_name(session)
    sections: list[tuple[str, str, str]] = []
    if made is not None:
        if rows is None:
            rows = choose_rows(session, made.stragglers, timelines)
        scene, placed = session_scene(session, rows, align) if rows else (None, "")
        drawn = (
            ""
            if scene is None
            else _timeline(
                session, scene, placed, ranks is None and len(rows) >= timelines, max_spans, height
            )
        )
        sections += [
            ("findings", "Verdict", _findings(made, scene)),
            ("ranks", "Ranks", _ranks(session, made, max_rows, path)),
            ("timeline", "Timeline", drawn),
        ]
        for name, frame in _frames(made).items():
            if len(frame):
                section = SECTIONS[name]
                heading_, words = section.title, section.note
                if name == "roles" and made.roles["role"].isna().all():
                    heading_, words = "All ranks together", words.removeprefix("Prefill against decode. ")
                titles = (section.shown or section.schema).name
                more = stacks(made.hangs) if name == "hangs" else _picture(name, made)
                body = table_section(name, heading_, words, frame, max_rows, titles, more)
                sections.append((name, heading_, body))
    shown = [(name, words, body) for name, words, body in sections if body]
    synthetic = made is not None and bool(made.totals["synthetic"].any())
    badge = '<strong class="synthetic">SYNTHETIC DATA</strong>' if synthetic else ""
    return document(
        title=heading,
        header=f"<h1>{escape(heading)}</h1>{badge}{facts(session_facts(session))}"
        f"{_health(session, path)}{_warnings(session)}",
        nav=[(name, words) for name, words, _ in shown],
        sections=[body for _, _, body in shown],
    )


def write_session_html(
    session: SessionData,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    ranks: Sequence[int] | None = None,
    timelines: int = DEFAULT_TIMELINES,
    align: Align = None,
    max_spans: int = DEFAULT_MAX_SPANS,
    max_rows: int = 500,
    height: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write a session's report: one page that opens from disk, without a network or a kernel.

    Every trace is read once for the tables, and a few again for the timeline.

    Parameters
    ----------
    path
        File to write; it appears whole or not at all. Links lead from it to the recordings when they lie in
        its folder, below it, or in the folder beside it.
    title
        Heading; the session's id by default.
    ranks
        Numbers of the ranks that the timeline shows. By default up to ``timelines`` recordings (8): of every
        role the slowest and the fastest in turn.
    timelines
        See ``ranks``; at most 64, and 0 leaves the timeline out.
    align
        How recordings are placed beside each other: None (those of one host by its clock, others begin at 0
        each), "start", "clock" (by wall clocks as they are), or nanoseconds to add by host.
    max_spans, max_rows, height
        As of :func:`torchtrt_viz.report.html.write_html`.
    progress
        Called with (ranks read, ranks in all).

    Returns
    -------
    Path
        The file written.

    Notes
    -----
    Of metadata only a fixed list goes into the page: see :mod:`torchtrt_viz.report.session_facts`. A session
    whose recordings are all damaged gets a page too, which says so.
    """
    text = session_page(
        session,
        title=title,
        ranks=ranks,
        timelines=timelines,
        align=align,
        max_spans=max_spans,
        max_rows=max_rows,
        height=height,
        path=path,
        progress=progress,
    )
    return write_atomically(path, text)


def _rows_of(session: SessionData, ranks: Sequence[int]) -> list[int]:
    """Return the rows of the recordings of these ranks."""
    table_ = session.ranks
    known = {int(rank) for rank in table_["rank"].dropna()}
    unknown = [rank for rank in ranks if rank not in known]
    if unknown:
        shown = ", ".join(map(str, sorted(known)[:12])) + (", ..." if len(known) > 12 else "")
        raise OptionError("ranks", unknown, f"ranks of the session: {shown or 'none has a number'}")
    wanted = set(ranks)
    rows = [
        row
        for row, (rank, state) in enumerate(zip(table_["rank"].tolist(), table_["state"], strict=True))
        if rank in wanted and state != "missing"
    ]
    if len(rows) > _MOST_TIMELINES:
        raise OptionError("ranks", f"{len(rows)} recordings", f"at most {_MOST_TIMELINES}")
    return rows


def _health(session: SessionData, page: str | PathLike[str] | None) -> str:
    """Say at the top whether every recording is present and undamaged."""
    bad, absent = not_whole(session), not_here(session)
    if not len(bad) and not absent:
        count = len(session)
        words = "The recording is whole." if count == 1 else f"All {count:,} recordings are here and whole."
        return f'<p class="health ok">{words}</p>'
    parts = []
    if len(bad):
        counts = bad["state"].value_counts()
        told = ", ".join(f"{count:,} {escape(state)}" for state, count in counts.items())
        parts.append(
            f"<strong>{len(bad):,} of {len(session):,} recordings are not whole: {told}.</strong> "
            "What is missing is in no table below; of damaged ones, what could be read."
        )
    if absent:
        parts.append(f"<strong>{escape(absent)}.</strong>")
    rows = table(bad.dropna(axis=1, how="all"), "session.ranks", limit=_MOST_BAD, searchable=False)
    return f'<div class="health bad">{"<br>".join(parts)}{rows if len(bad) else ""}</div>'


def _warnings(session: SessionData) -> str:
    """Return the warnings of loading the folder, except those about damaged or missing ranks."""
    found = [w for w in session.meta["warnings"] if w.code not in ("missing_rank", "damaged_rank")]
    if not found:
        return ""
    sources = [str(source) for source in session.meta["sources"]]
    items = "".join(
        f"<li>{escape(without_folders(str(w), [str(w.path or ''), *sources]))}</li>" for w in found[:100]
    )
    more = f"<li>{len(found) - 100:,} more</li>" if len(found) > 100 else ""
    word = "warning" if len(found) == 1 else "warnings"
    return (
        f'<details class="warnings"><summary>{len(found)} {word} from opening the session</summary>'
        f"<ul>{items}{more}</ul></details>"
    )


def _findings(made: Overview, scene: Scene | None) -> str:
    words = session_words(made)
    drawn = set() if scene is None else set(scene.names)
    return verdict_markup(words, [_request(made, finding, drawn) for finding in words.findings], "findings")


def _request(made: Overview, finding: FindingWords, drawn: set[str]) -> str | None:
    """Return what the timeline marks for a finding, in JSON: collectives, or the operator; None: nothing."""
    names: list[str] = []
    if finding.table == "stragglers" and len(made.collectives):
        names = [str(name) for name in made.collectives["name"].dropna().unique()]
    elif finding.table == "operators":
        names = [
            str(name) for name in made.operators["name"].unique() if finding.head.startswith(f"{name} lies ")
        ]
    names = [name for name in names if name in drawn]
    return json.dumps({"names": names}, separators=(",", ":")) if names else None


def _ranks(session: SessionData, made: Overview, max_rows: int, page: str | PathLike[str] | None) -> str:
    """Return the strips of the ranks, their numbers, and where their recordings lie."""
    count = made.strips.drop_duplicates(["session", "rank", "role", "instance", "host", "cycle", "stage"])
    more = len(count) - _MOST_STRIPS
    left = f" The first {_MOST_STRIPS} of {len(count):,} are drawn." if more > 0 else ""
    frame = ranks_table(session, made)
    links: dict[str, list[str | None]] = {"recording": [artifact_link(p, page) for p in frame["recording"]]}
    frame["recording"] = [file_name(p) for p in frame["recording"]]
    lead = "" if any(links["recording"]) else " The page lies apart from them: no links."
    words = (
        "Busy share over each recording's own length, from its first event: strips of different ranks have "
        "no common clock. HOST: any thread in an operator, a runtime call or a delegate; GPU: any stream "
        f"with work.{left}"
    )
    note = (
        "Totals of each recording. Host time of operators is summed over threads; GPU figures are unions "
        f"over a device's streams.{lead}"
    )
    body = table(frame, "session.totals", limit=max_rows, searchable=False, links=links)
    find = (
        '<input class="filter" type="search" placeholder="filter rows" aria-label="filter rows">'
        if len(frame) > 8
        else ""
    )
    strips = (
        f'<p class="note">{escape(words)}</p>'
        f'<div class="strips">{strips_of_ranks(made.strips, _MOST_STRIPS)}</div>'
    )
    return (
        f'<section id="ranks"><h2>Ranks</h2>{strips if len(made.strips) else ""}'
        f'<p class="note">{escape(note)}</p>{find}{body}</section>'
    )


def _timeline(
    session: SessionData,
    scene: Scene,
    note: str,
    chosen: bool,
    max_spans: int,
    height: int | None,
) -> str:
    data = payload(scene, max_spans=max_spans)
    whole, shown = len(session), len(scene.parts)
    which = f"{shown:,} of {whole:,} recordings" if shown < whole else f"all {whole:,} recordings"
    how = "" if not chosen or shown == whole else ": of every role the slowest and the fastest"
    told = f"Shows {which}{how}. {note[:1].upper()}{note[1:]}{'.' if note else ''}"
    return timeline(data.text, data.left_out, height, told)


def _picture(name: str, made: Overview) -> str:
    """Return the chart of a section, empty where it has none."""
    if name == "stragglers":
        one = waited_for(made.stragglers)
    elif name == "steps":
        one = rank_steps(made.steps)
    else:
        return ""
    if one.body is None:
        return ""
    return f'<h3>{escape(one.title)}</h3><p class="note">{escape(one.says)}</p>{markup(one)}'


def _frames(made: Overview) -> dict[str, pd.DataFrame]:
    """Return the tables in the order of the page, without columns that are the same in every row."""
    frames = {
        "hangs": hangs_table(made.hangs),
        "positions": positions_table(made.positions),
        "roles": made.roles,
        "by_role": role_columns(made.by_role),
        "operators": operators_table(made.operators),
        "stragglers": stragglers_table(made.stragglers),
        "steps": step_imbalance(made.steps),
        "collectives": collective_totals(made.collectives),
        "skew": skew_table(made.skew),
        "requests": made.requests,
    }
    if not (made.ranks["role"].notna().any()):
        del frames["by_role"]
    if not made.ranks["what"].ne("dump").any():
        del frames["roles"]
    return {name: plain(frames[name]) for name in SECTIONS if name in frames}
