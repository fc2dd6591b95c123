"""Frames on a terminal."""

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
    return plain if plain.is_terminal else Console(width=160)


def heading(text: str) -> None:
    """Print a section's heading."""
    console().print(Text(f"\n{text}", style="bold"))


def _cell(value: object) -> str:
    import pandas as pd

    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (hasattr(value, "dtype") and value.dtype.kind in "iu"):
        return f"{int(value):,}"  # type: ignore[call-overload]
    if isinstance(value, float) or (hasattr(value, "dtype") and value.dtype.kind == "f"):
        return f"{float(value):,.3f}"  # type: ignore[arg-type]
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
    frame: pd.DataFrame, *, limit: int | None = 20, columns: list[str] | None = None, width: int | None = 64
) -> None:
    """Print up to ``limit`` rows; names from files are shown as text, never as markup.

    Text longer than ``width`` is shortened in its middle (None: never).
    """
    import pandas as pd

    shown = frame if columns is None else frame[[c for c in columns if c in frame.columns]]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in shown.columns:
        numeric = pd.api.types.is_numeric_dtype(shown[name])
        table.add_column(
            Text(str(name)), justify="right" if numeric else "left", overflow="fold", max_width=90
        )
    for row in shown.head(limit if limit is not None else len(shown)).itertuples(index=False, name=None):
        texts = [_cell(value) for value in row]
        table.add_row(*[Text(text if width is None else _clip(text, width)) for text in texts])
    console().print(table)
    if limit is not None and len(frame) > limit:
        console().print(Text(f"... {len(frame) - limit} more rows (--limit)", style="dim"))


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
