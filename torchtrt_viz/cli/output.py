"""Print frames on a terminal, or where a terminal's output is sent to."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from torchtrt_viz.report.columns import one_line
from torchtrt_viz.report.fitting import fitted

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.analysis.catalogue import Table

__all__ = [
    "RANK_COLUMNS",
    "console",
    "heading",
    "print_frame",
    "print_questions",
    "print_text",
    "print_warnings",
]

_PIPE = 200

RANK_COLUMNS = ("rank", "role", "state", "error", "path", "cycle", "host", "format")
"""Columns of a session's ranks by their worth, where not all fit."""


class _Output(Console):
    """A console that leaves it to the command line to end when the reader of its output has gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(stream: TextIO | None = None) -> Console:
    """Console on stdout: as wide as the terminal, as COLUMNS says, else wide enough for a table."""
    plain = _Output(file=stream or sys.stdout)
    if plain.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return plain
    return _Output(file=stream or sys.stdout, width=_PIPE)


def heading(text: str) -> None:
    """Print a section's heading."""
    out = console()
    out.print()
    out.print(Text(one_line(text), style="bold"))


def print_frame(
    frame: pd.DataFrame,
    *,
    table: str = "",
    entry: Table | None = None,
    limit: int | None = 20,
    columns: Sequence[str] = (),
    wide: bool = False,
) -> None:
    """Print up to ``limit`` rows; names from files are shown as text, never as markup or control characters.

    What does not fit is left out and named below, columns that the registry does not call essential or
    brief first; long texts are shortened in their middle.

    Parameters
    ----------
    table
        Name of the frame's schema ("operators"), for titles and units.
    entry
        Its entry in the registry, where ``table`` does not name it.
    columns
        For a table that is in no registry: its columns by their worth.
    wide
        Everything, however wide.
    """
    out = console()
    head = frame if limit is None else frame.head(limit)
    lines = fitted(head, None if wide else out.width, table=table, entry=entry, columns=columns)
    for line in lines.head:
        _print(out, line, "bold")
    for line in lines.rows:
        _print(out, line)
    if lines.left_out:
        print_text(f"no room for: {', '.join(lines.left_out)}", style="dim")
    if lines.empty:
        print_text(f"not collected: {', '.join(lines.empty)}", style="dim")
    if limit is not None and len(frame) > limit:
        out.print(Text(f"... {len(frame) - limit:,} more rows", style="dim"))


def _print(out: Console, line: str, style: str = "") -> None:
    out.print(Text(line, style=style), soft_wrap=True)


def print_text(text: object, first: str = "", rest: str | None = None, style: str = "") -> None:
    """Print prose, broken at its blanks; ``first`` and ``rest`` begin its first line and the others."""
    out = console()
    lines = textwrap.wrap(
        one_line(text),
        out.width,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_on_hyphens=False,
    )
    for line in lines:
        _print(out, line, style)


def print_questions(questions: pd.DataFrame) -> None:
    """Print the six questions as paragraphs: the answer, what is missing, how to measure it."""
    for number, row in enumerate(questions.to_dict("records"), start=1):
        print_text(row["question"], f"{number}. ", "   ", "bold")
        print_text(row["answer"], "   ")
        print_text(f"measured: {row['measured']}; from {row['source']}", "   ", style="dim")
        if row["missing"]:
            print_text(f"not measured: {row['missing']}", "   ", style="yellow")
        if row["how"]:
            print_text(f"to measure it: {row['how']}", "   ", style="dim")


def print_warnings(warnings: list[object]) -> None:
    """Print what a loader repaired or could not know."""
    for warning in warnings:
        print_text(warning, "warning: ", "  ", "yellow")
