"""The six answers, short: the words of each on one line, what is missing and its table on demand."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchtrt_viz.analysis.catalogue import TABLES
from torchtrt_viz.report.columns import one_line
from torchtrt_viz.report.markup import escape

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["answers_html", "answers_section", "answers_text", "relevant", "table_of"]

_SHORT = 200
_TABLE = re.compile(r"^trace\.(\w+)\(")


def relevant(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out what asks about delegates and engines where a trace has none.

    Of the questions only the one about the model's source lines is of use then, when it has an answer.
    """
    first = frame.iloc[0]
    if first["measured"] != "no" and first["values"].get("delegates", 1) != 0:
        return frame
    last = frame.iloc[[-1]]
    return last[last["measured"] != "no"]


def table_of(source: str) -> str | None:
    """Return the name of the table behind an answer; None where it is no table of the trace."""
    found = _TABLE.match(source)
    return found[1] if found and found[1] in TABLES else None


def _short(text: str) -> str:
    line = one_line(text)
    if len(line) <= _SHORT:
        return line
    cut = line[:_SHORT]
    return cut[: max(cut.rfind(" "), _SHORT // 2)].rstrip(",;: ") + " …"


def _notes(answer: dict[Any, Any]) -> list[str]:
    found = [("measured", f"{answer['measured']}, by {answer['source']}")]
    found += [("missing", answer["missing"]), ("to measure it", answer["how"])]
    return [f"{label}: {one_line(text)}" for label, text in found if text]


def answers_section(frame: pd.DataFrame, shown: set[str]) -> str:
    """Return the section of a page; ``shown`` names the sections that links can lead to."""
    items = []
    for answer in relevant(frame).to_dict("records"):
        name = table_of(str(answer["source"]))
        link = f'<p><a href="#{name}">{escape(TABLES[name].title)}</a></p>' if name in shown else ""
        items.append(_details(answer, link, 'class="note"', f'class="answer {escape(answer["measured"])}"'))
    if not items:
        return ""
    entry = TABLES["questions"]
    return (
        f'<section id="questions"><h2>{escape(entry.title)}</h2><p class="note">{escape(entry.note)}</p>'
        f'<div class="answers">{"".join(items)}</div></section>'
    )


def answers_html(frame: pd.DataFrame, table: Callable[[str], str]) -> str:
    """Return the answers for a notebook, in plain elements; ``table`` gives the markup of a table."""
    quiet = 'style="margin:2px 0;opacity:0.8"'
    items = []
    for answer in frame.to_dict("records"):
        name = table_of(str(answer["source"]))
        items.append(_details(answer, "" if name is None else table(name), quiet, 'style="margin:4px 0"'))
    return f'<div style="font-size:13px;text-align:left;max-width:1100px">{"".join(items)}</div>'


def _details(answer: dict[Any, Any], behind: str, quiet: str, around: str) -> str:
    full, short = one_line(answer["answer"]), _short(answer["answer"])
    rest = full[len(short) - 2 :].lstrip(",;: ") if short.endswith(" …") else ""
    more = f"<p>… {escape(rest)}</p>" if rest else ""
    notes = "".join(f"<p {quiet}>{escape(note)}</p>" for note in _notes(answer))
    return (
        f"<details {around}><summary><b>{escape(answer['question'])}</b><br>{escape(short)}</summary>"
        f"{more}{notes}{behind}</details>"
    )


def answers_text(frame: pd.DataFrame, width: int = 100) -> str:
    """Return the answers as lines of text."""
    lines = []
    for number, answer in enumerate(frame.to_dict("records"), start=1):
        lines += _wrapped(f"{number}. {one_line(answer['question'])}", "", width)
        lines += _wrapped(one_line(answer["answer"]), "   ", width)
        for note in _notes(answer):
            lines += _wrapped(note, "   ", width)
    return "\n".join(lines)


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent="   ") or [""]
