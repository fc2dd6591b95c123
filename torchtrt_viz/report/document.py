"""The page around a report's sections: one HTML file that loads nothing from outside.

Its content security policy forbids every request and allows only its one script, named by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchtrt_viz.charts.palette import style as picture_style
from torchtrt_viz.report.markup import escape, table
from torchtrt_viz.scene import assets

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["document", "table_section", "timeline"]


def document(*, title: str, header: str, nav: Sequence[tuple[str, str]], sections: Sequence[str]) -> str:
    """Return the page.

    Parameters
    ----------
    title
        Text of the window's title.
    header
        Markup above everything: heading, facts, warnings.
    nav
        (id, words) of the sections to lead to.
    sections
        Markup of the sections in order.
    """
    script = assets.module("report")
    if "</script" in script.lower():
        raise AssertionError("the page's script would end itself")
    return _PAGE.format(
        title=escape(title),
        hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=assets.style("timeline", "report", "verdict") + picture_style(),
        header=header,
        nav="".join(f'<a href="#{escape(name)}">{escape(words)}</a>' for name, words in nav),
        sections="\n".join(sections),
        script=script,
    )


def timeline(data: str, left_out: str, height: int | None, words: str = "") -> str:
    """Return the section of the interactive timeline; ``words`` say what is in it."""
    about = f'<p class="note">{escape(words)}</p>' if words else ""
    note = f'<p class="note">This page leaves out: {escape(left_out)}.</p>' if left_out else ""
    return (
        f'<section id="timeline"><h2>Timeline</h2>{about}{note}'
        f'<div id="tv-timeline" data-height="{height or ""}">reading the timeline…</div>'
        "<noscript>The timeline needs JavaScript; the tables below do not.</noscript></section>"
        f'<script type="text/plain" id="tv-data">{data}</script>'
    )


def table_section(
    name: str,
    heading: str,
    text: str,
    frame: pd.DataFrame,
    max_rows: int,
    titles: str | None = None,
    above: str = "",
) -> str:
    """Return a section with a table that sorts, and filters where it is long.

    ``titles`` names the table whose column titles are used, where it is not ``name``; ``above`` is markup
    that stands over the table.
    """
    find = (
        '<input class="filter" type="search" placeholder="filter rows" aria-label="filter rows">'
        if len(frame) > 8
        else ""
    )
    return (
        f'<section id="{name}"><h2>{escape(heading)}</h2><p class="note">{escape(text)}</p>{above}{find}'
        f"{table(frame, titles or name, limit=max_rows)}</section>"
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-{hash}'; \
style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header><button id="theme" type="button">light / dark</button>{header}<nav>{nav}</nav></header>
<main>
{sections}
</main>
<script type="module">{script}</script>
</body>
</html>
"""
