"""How far a session is read, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["reading_ranks"]


@contextmanager
def reading_ranks(total: int) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr how many ranks are read; nothing where it is no terminal."""
    # slow to import
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("reading ranks"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("ranks", total=total)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)
