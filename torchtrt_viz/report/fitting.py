"""A table as lines of text in a given width: which columns stay, and how wide each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchtrt_viz.analysis.catalogue import TABLES, Table
from torchtrt_viz.report.columns import MISSING, Shown, one_line, show

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Fitted", "clipped", "fitted"]

_GAP = 2
_LEAST_TEXT = 10  # narrower than this, a name says nothing
_WIDEST_TEXT = 48
_WIDEST_NUMBER = 18  # what is longer has words for a unit, which may be shortened
_PROSE = ("note", "meaning", "why", "explanation", "error", "role")  # the beginning says most
_TITLE = 12  # titles are broken into lines of about this


@dataclass(frozen=True)
class Fitted:
    """Lines of a table.

    Attributes
    ----------
    head, rows
        Lines of the titles, and a line for each row.
    left_out
        Titles of columns that did not fit.
    empty
        Titles of columns left out for having no value.
    """

    head: list[str]
    rows: list[str]
    left_out: list[str]
    empty: list[str]


def fitted(
    frame: pd.DataFrame,
    width: int | None,
    *,
    table: str = "",
    entry: Table | None = None,
    columns: Sequence[str] = (),
) -> Fitted:
    """Lay a table out in ``width`` characters; None: everything, however wide.

    Parameters
    ----------
    table
        Name of its schema, for titles and units.
    entry
        Its entry in the registry, where it is not that of ``table``: which columns stay longest.
    columns
        Columns in the order of their worth, where the registry does not list the table.
    """
    # where there is little room, a hash would take that of the words; all of the width keeps keys to copy
    shown = show(frame, table, readable=width is not None)
    cells = [[one_line(text) for text in column.texts] for column in shown]
    for number, column in enumerate(shown):
        if column.keys is not None and column.column != "name":  # an engine, without what it covers
            cells[number] = [text.partition(" (")[0] for text in cells[number]]
    needs = [max([_title_width(c.title), *map(len, texts)]) for c, texts in zip(shown, cells, strict=True)]
    if width is None:
        kept, widths = set(range(len(shown))), needs
        empty: list[int] = []
    else:
        empty = [n for n, texts in enumerate(cells) if texts and all(text == MISSING for text in texts)]
        entry = entry or TABLES.get(table)
        kept, widths = _choose(shown, needs, empty, _order(shown, entry, columns), width)
    order = [n for n in range(len(shown)) if n in kept]
    titles = [_broken(shown[n].title, widths[n]) for n in order]
    height = max(map(len, titles), default=0)
    padded = [[""] * (height - len(lines)) + lines for lines in titles]
    return Fitted(
        head=[_line(shown, order, widths, [lines[k] for lines in padded]) for k in range(height)],
        rows=[
            _line(shown, order, widths, [_clip(shown[n], cells[n][row], widths[n]) for n in order])
            for row in range(len(frame))
        ],
        left_out=[shown[n].title for n in range(len(shown)) if n not in kept and n not in empty],
        empty=[shown[n].title for n in empty if n not in kept],
    )


def clipped(text: str, width: int) -> str:
    """Shorten a long name in its middle: kernels differ at both ends."""
    if len(text) <= width:
        return text
    tail = width // 3
    return f"{text[: max(0, width - tail - 1)]}…{text[len(text) - tail :]}"[:width]


def _clip(column: Shown, text: str, width: int) -> str:
    if column.column in _PROSE and len(text) > width:
        return f"{text[: width - 1].rstrip()}…"
    return clipped(text, width)


def _order(shown: list[Shown], entry: Table | None, columns: Sequence[str]) -> list[int]:
    """Return the positions of columns, those that matter most first."""
    named = [*(() if entry is None else (*entry.essential, *entry.brief)), *columns]
    place = {name: number for number, name in reversed(list(enumerate(named)))}
    return sorted(range(len(shown)), key=lambda n: (place.get(shown[n].column, len(named)), n))


def _choose(
    shown: list[Shown], needs: list[int], empty: list[int], order: list[int], width: int
) -> tuple[set[int], list[int]]:
    """Return which columns stay, and the width of each.

    Columns enter in order while all fit with their texts at their least; then texts get what is left.
    """
    flexible = [not c.numeric or need > _WIDEST_NUMBER for c, need in zip(shown, needs, strict=True)]
    least = [min(need, _least(shown[n])) if flexible[n] else need for n, need in enumerate(needs)]
    kept: set[int] = set()
    used = -_GAP
    for n in order:
        if n in empty:
            continue
        # the names of the first columns get room before others come in
        first = not kept and flexible[n]
        needed = min(needs[n], max(least[n], min(28, width // 3))) if first else least[n]
        if kept and used + needed + _GAP > width:
            continue
        kept.add(n)
        least[n] = needed
        used += needed + _GAP
    spare = width - used
    widths = list(least)
    for n in (n for n in order if n in kept and flexible[n]):
        more = max(0, min(spare, min(needs[n], _WIDEST_TEXT) - widths[n]))
        widths[n] += more
        spare -= more
    for n in (n for n in order if n in kept and flexible[n]):  # a last text may fill the line
        more = max(0, min(spare, needs[n] - widths[n]))
        widths[n] += more
        spare -= more
    return kept, [min(w, width) for w in widths]


def _least(column: Shown) -> int:
    return max(_LEAST_TEXT, _title_width(column.title))


def _title_width(title: str) -> int:
    return max(map(len, _broken(title, _TITLE)), default=0)


def _broken(title: str, width: int) -> list[str]:
    """Break a title at its blanks into lines of about ``width`` characters."""
    lines: list[str] = []
    for word in title.split():
        if lines and len(lines[-1]) + 1 + len(word) <= max(width, _TITLE):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _line(shown: list[Shown], order: list[int], widths: list[int], texts: list[str]) -> str:
    padded = (
        text.rjust(widths[n]) if shown[n].numeric else text.ljust(widths[n])
        for n, text in zip(order, texts, strict=True)
    )
    return (" " * _GAP).join(padded).rstrip()
