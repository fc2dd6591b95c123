"""Saved traces among other files: whose each is, and which files are only its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.kineto.rank_header import RankHeader
from torchtrt_viz.formats.saved.document import TRACE_FORMAT, read_document
from torchtrt_viz.formats.saved.layout import SESSION, TRACE, within_dataset
from torchtrt_viz.loading.walk import File

__all__ = ["saved_header", "without_tables"]

_DEEPEST = 5  # table, rank, cycle, recording
_MAX_TEXT = 256


def without_tables(files: Sequence[File]) -> Sequence[File]:
    """Leave out the tables of saved traces and sessions: their documents stand for them."""
    roots = {file.source.folder for file in files if file.source.filename in (TRACE, SESSION)}
    if not roots:
        return files
    return [
        file for file in files if not file.source.filename.endswith(".parquet") or not _below(file, roots)
    ]


def _below(file: File, roots: set[str]) -> bool:
    folder = file.source.folder
    for _ in range(_DEEPEST):
        if folder in roots:
            return True
        folder = folder.rpartition("/")[0]
    return False


def saved_header(source: Source) -> RankHeader:
    """Return what a saved trace says about its rank.

    Raises
    ------
    TraceFormatError
        When its document is damaged, or the session that it is of is not whole.
    """
    said = read_document(source, TRACE_FORMAT)
    within_dataset(source)  # of a session that was not saved to its end nothing is read

    def text(name: str) -> str | None:
        value = said.get(name)
        return value[:_MAX_TEXT] if isinstance(value, str) and value else None

    rank: Any = said.get("rank")
    return RankHeader(
        rank=rank if type(rank) is int and 0 <= rank < 1 << 31 else None,
        role=text("role"),
        instance=text("instance"),
        session=text("session"),
        host=text("host"),
    )
