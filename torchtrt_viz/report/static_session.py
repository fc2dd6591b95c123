"""A session as a notebook's output without a kernel: plain markup with inline styles, and text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.analysis.catalogue import SESSION_TABLES, shown_in
from torchtrt_viz.report.hangs_section import hangs_table
from torchtrt_viz.report.markup import escape
from torchtrt_viz.report.session_facts import not_here, not_whole, session_facts
from torchtrt_viz.report.session_tables import operators_table, plain, stragglers_table
from torchtrt_viz.report.static_html import SYNTHETIC, table_html
from torchtrt_viz.report.strips import strips_of_ranks

if TYPE_CHECKING:
    from torchtrt_viz.analysis.session.rank_overview import Overview
    from torchtrt_viz.model.session_data import SessionData

__all__ = ["session_static_html"]

_MOST_STRIPS = 12
_RANK_COLUMNS = ("session", "rank", "role", "instance", "host", "cycle", "stage", "state", "format")


def session_static_html(session: SessionData, made: Overview | None, *, rows: int = 10) -> str:
    """Return a summary that survives every viewer's sanitiser.

    Parameters
    ----------
    made
        The tables over ranks, where they are computed: then the summary shows what stands out, the ranks'
        strips and the operators; else what the session holds.
    rows
        Rows per table.
    """
    known = " · ".join(f"{escape(label)} {escape(text)}" for label, text in session_facts(session))
    parts = [f'<div style="font-size:13px"><b>{escape(repr(session).strip("<>"))}</b><div>{known}</div>']
    if made is not None and made.totals["synthetic"].any():
        parts.append(SYNTHETIC)
    parts.append(_health(session, rows))
    if made is None:
        ranks = session.ranks
        frame = plain(ranks[[c for c in _RANK_COLUMNS if c in ranks]])
        parts.append(table_html(frame, "session.ranks", heading="Ranks", rows=rows))
        parts.append("<div>session.overview() reads the ranks; this summary then shows what they hold.</div>")
    else:
        found = "".join(f"<li>{escape(text)}</li>" for text in made.explain()["finding"])
        if found:
            parts.append(f'<ul style="margin:6px 0 0">{found}</ul>')
        parts.append(
            f'<div style="margin-top:8px;font-size:12px">{strips_of_ranks(made.strips, _MOST_STRIPS)}</div>'
        )
        more = len(made.totals) - _MOST_STRIPS
        if more > 0:
            parts.append(f"<div>{more:,} more recordings are not drawn</div>")
        ready = {"stragglers": stragglers_table, "operators": operators_table, "hangs": hangs_table}
        for name, table in shown_in("picture", SESSION_TABLES).items():
            frame = getattr(made, name)
            frame = ready[name](frame) if name in ready else frame
            if len(frame):
                parts.append(table_html(plain(frame), table.schema.name, heading=table.title, rows=rows))
    parts.append("</div>")
    return "".join(parts)


def _health(session: SessionData, rows: int) -> str:
    bad, absent = not_whole(session), not_here(session)
    words = [escape(absent)] if absent else []
    if len(bad):
        words.insert(0, f"{len(bad):,} of {len(session):,} recordings are not whole")
    if not words:
        return ""
    frame = table_html(bad, "session.ranks", rows=rows) if len(bad) else ""
    told = "<br>".join(words)
    return (
        f'<div style="border-left:4px solid #b3005e;padding-left:8px;margin:6px 0"><b>{told}</b>{frame}</div>'
    )
