"""Tables and facts as HTML. Every text is escaped: names come from files that cannot be trusted."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torchtrt_viz.report.columns import Shown, one_line, show, title

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["escape", "facts", "table"]


# Columns of ids: broken over lines, they could not be read.
_LONG = 40  # characters of a cell
_ENGINES = frozenset({"engine", "delegate"})
_KEYS = frozenset({"session", "role", "instance", "host", "request", "transfer", "file"})


def escape(text: object) -> str:
    """Return text as HTML that shows exactly this text."""
    return html.escape(one_line(text), quote=True)


def table(
    frame: pd.DataFrame,
    name: str,
    *,
    limit: int = 500,
    searchable: bool = True,
    links: Mapping[str, Sequence[str | None]] | None = None,
) -> str:
    """Return a sortable table; names lead to their spans in the page's timeline.

    Columns without a single value are named below the table instead of being shown. ``links`` gives, for a
    column of texts, the address that each cell leads to.
    """
    empty = [str(column) for column in frame.columns if frame[column].isna().all()]
    columns = [
        column for column in show(frame, name, limit=limit, readable=True) if column.column not in empty
    ]
    head = "".join(
        f'<th scope="col" class="{"n" if column.numeric else "t"}" title="{escape(column.column)}">'
        f"{escape(column.title)}</th>"
        for column in columns
    )
    rows = range(min(len(frame), limit))
    addresses = links or {}
    body = "".join(
        "<tr>"
        + "".join(_cell(column, row, searchable, addresses.get(column.column)) for column in columns)
        + "</tr>"
        for row in rows
    )
    notes = []
    if len(frame) > limit:
        notes.append(f"{len(frame) - limit:,} more rows are not shown (of {len(frame):,}).")
    if empty:
        notes.append(f"Not collected: {', '.join(title(column, name) for column in empty)}.")
    note = f'<p class="note">{escape(" ".join(notes))}</p>' if notes else ""
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{note}"
    )


def _cell(column: Shown, row: int, searchable: bool, links: Sequence[str | None] | None = None) -> str:
    text = escape(column.texts[row])
    value = column.values[row]
    if column.numeric:
        at = "" if value is None else f' data-v="{value:.17g}"'
        if column.kind == "percent" and value is not None:
            width = max(0.0, min(100.0, value))
            return f'<td class="n bar"{at}><i style="width:{width:.1f}%"></i><span>{text}</span></td>'
        return f'<td class="n"{at}>{text}</td>'
    key = text if column.keys is None else escape(column.keys[row])
    about = f' title="{key}"' if key != text or len(key) > _LONG else ""
    if column.kind == "name" and searchable:
        button = f'<button class="name clip" type="button" data-name="{key}"{about}>{text}</button>'
        return f'<td class="t namecell">{button}</td>'
    if column.kind == "name" and links is None:  # as wide, so that names are not broken at will
        return f'<td class="t namecell"><span class="clip"{about}>{text}</span></td>'
    if links is None:
        if column.column in _ENGINES:  # the same in many rows: a line each, the whole name in the tooltip
            return f'<td class="t key engine" title="{key}">{text}</td>'
        if column.column in _KEYS:
            return f'<td class="t key"{about}>{text}</td>'
        if len(text) > _LONG:  # else one row could be as high as a page
            return f'<td class="t long"><span class="clip" title="{key}">{text}</span></td>'
        return f'<td class="t"{about}>{text}</td>'
    address = links[row]
    if address is not None:
        text = f'<a href="{html.escape(address, quote=True)}">{text}</a>'
    return f'<td class="t file">{text}</td>'


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Return label and value pairs as a definition list."""
    inner = "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in rows)
    return f'<dl class="facts">{inner}</dl>'
