"""Print frames on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["console", "heading", "print_frame", "print_questions", "print_warnings"]


def console() -> Console:
    """Console on stdout; wide enough for a table when the output is not a terminal."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=200)


def heading(text: str) -> None:
    """Print a section's heading."""
    console().print(Text(f"\n{text}", style="bold"))


def _cell(value: object) -> str:
    import pandas as pd

    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    kind = value.dtype.kind if hasattr(value, "dtype") else ""
    if isinstance(value, int) or kind in ("i", "u"):
        return f"{int(value):,}"  # type: ignore[call-overload]
    if isinstance(value, float) or kind == "f":
        number = float(value)  # type: ignore[arg-type]
        return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:,.2f}"
    if isinstance(value, (list, tuple, set)):
        return ", ".join(str(v) for v in value)
    return str(value)


def _clip(text: str, width: int) -> str:
    """Shorten a long name in its middle: kernels differ at both ends."""
    if len(text) <= width:
        return text
    tail = width // 3
    return f"{text[: width - tail - 1]}…{text[-tail:]}"


def print_frame(
    frame: pd.DataFrame,
    *,
    limit: int | None = 20,
    columns: list[str] | None = None,
    width: int | None = 48,
) -> None:
    """Print up to ``limit`` rows; names from files are shown as text, never as markup.

    Text longer than ``width`` is shortened in its middle, and columns that do not fit beside the others are
    named below instead of being squeezed (``width=None``: everything, however wide).
    """
    import pandas as pd

    out = console()
    shown = frame if columns is None else frame[[c for c in columns if c in frame.columns]]
    head = shown if limit is None else shown.head(limit)
    cells = [
        [text if width is None else _clip(text, width) for text in map(_cell, row)]
        for row in head.itertuples(index=False, name=None)
    ]
    names = [str(name) for name in shown.columns]
    kept: list[int] = []
    used = 0
    for position, name in enumerate(names):
        needs = 2 + max([len(name), *(len(row[position]) for row in cells)])
        if width is None or not kept or used + needs <= out.width:
            kept.append(position)
            used += needs
    table = Table(box=None, pad_edge=False, header_style="bold")
    for position in kept:
        numeric = pd.api.types.is_numeric_dtype(shown.iloc[:, position])
        table.add_column(Text(names[position]), justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*[Text(row[position]) for position in kept])
    out.print(table)
    left_out = [name for position, name in enumerate(names) if position not in kept]
    if left_out:
        out.print(Text(f"columns that do not fit: {', '.join(left_out)}", style="dim"))
    if limit is not None and len(frame) > limit:
        out.print(Text(f"... {len(frame) - limit} more rows", style="dim"))


def print_questions(questions: pd.DataFrame) -> None:
    """Print the six questions as paragraphs: the answer, what is missing, how to measure it."""
    out = console()
    for number, row in enumerate(questions.to_dict("records"), start=1):
        out.print(Text(f"{number}. {row['question']}", style="bold"))
        out.print(Text(f"   {row['answer']}"))
        out.print(Text(f"   measured: {row['measured']}; from {row['source']}", style="dim"))
        if row["missing"]:
            out.print(Text(f"   not measured: {row['missing']}", style="yellow"))
        if row["how"]:
            out.print(Text(f"   to measure it: {row['how']}", style="dim"))


def print_warnings(warnings: list[object]) -> None:
    """Print what a loader repaired or could not know."""
    for warning in warnings:
        console().print(Text(f"warning: {warning}", style="yellow"))
