"""Frames on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["console", "heading", "print_frame", "print_warnings"]


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


def print_frame(frame: pd.DataFrame, *, limit: int = 20, columns: list[str] | None = None) -> None:
    """Print up to ``limit`` rows; names from files are shown as text, never as markup."""
    import pandas as pd

    shown = frame if columns is None else frame[[c for c in columns if c in frame.columns]]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in shown.columns:
        numeric = pd.api.types.is_numeric_dtype(shown[name])
        table.add_column(Text(str(name)), justify="right" if numeric else "left", overflow="fold", max_width=90)
    for row in shown.head(limit).itertuples(index=False, name=None):
        table.add_row(*[Text(_cell(value)) for value in row])
    console().print(table)
    if len(frame) > limit:
        console().print(Text(f"... {len(frame) - limit} more rows (--limit)", style="dim"))


def print_warnings(warnings: list[object]) -> None:
    """Print what a loader repaired or could not know."""
    for warning in warnings:
        console().print(Text(f"warning: {warning}", style="yellow"))
