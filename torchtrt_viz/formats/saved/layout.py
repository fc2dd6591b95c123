"""Where the parts of a saved trace or session lie, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.model.schema import EVENTS, FrameSchema

__all__ = [
    "ARGS",
    "CATEGORIES",
    "FRAMES",
    "NUMBERED",
    "RANKS",
    "SESSION",
    "TABLES",
    "TRACE",
    "TRACES",
    "Locate",
    "beside",
    "in_dataset",
    "in_folder",
    "partition_of",
    "within_dataset",
]

TRACE = "saved_trace.json"
"""Document of a saved trace."""

SESSION = "saved_session.json"
"""Document of a saved session."""

FRAMES: dict[str, FrameSchema] = {schema.name: schema for schema in EVENTS}
"""The frames of a trace, by name."""

NUMBERED = ("spans", "tracks", "instants")
"""Frames whose rows other tables refer to: their files begin with the column ``row``."""

ARGS = ("args", "instant_args")
"""Tables of events' details."""

CATEGORIES = "categories"
RANKS = "ranks"
TRACES = "traces"

TABLES = (*FRAMES, *ARGS)
"""Tables that queries see."""

Locate = Callable[[str], "Source | None"]
"""Returns the file of a table, None when it is not there."""

_PARTITION = re.compile(
    r"rank=(?:\d{1,10}|__HIVE_DEFAULT_PARTITION__)/cycle=(?:\d{1,10}|__HIVE_DEFAULT_PARTITION__)/recording=\d{1,10}"
)
_MISSING = "__HIVE_DEFAULT_PARTITION__"


def partition_of(rank: int | None, cycle: int | None, recording: int) -> str:
    """Return the folders of a recording below each table's; what is missing is written as Hive does it."""
    number = [_MISSING if each is None or each < 0 else str(each) for each in (rank, cycle)]
    return f"rank={number[0]}/cycle={number[1]}/recording={recording}"


def in_folder(folder: Path, table: str) -> Path:
    """Return the file of a table of a saved trace."""
    return folder / f"{table}.parquet"


def in_dataset(root: Path, table: str, partition: str) -> Path:
    """Return the file of a table of one recording of a saved session."""
    return root / table / partition / f"{table}.parquet"


def beside(document: Source) -> Locate:
    """Return what finds the tables of a saved trace, which lie beside its document."""
    return lambda table: document.beside(f"{table}.parquet")


def within_dataset(document: Source) -> Locate | None:
    """Return what finds the tables of a recording of a saved session, on disk; None for another document.

    Raises
    ------
    TraceFormatError
        When the session is not whole.
    """
    if not document.on_disk or document.filename != TRACE:
        return None
    partition = "/".join(document.path.absolute().parts[-4:-1])
    parents = document.path.absolute().parents
    if not _PARTITION.fullmatch(partition) or len(parents) < 5 or parents[3].name != TRACES:
        return None
    root = parents[4]
    if not (root / SESSION).is_file():
        raise TraceFormatError(
            "a recording of a session that was not saved to its end",
            path=document.name,
            expected=f"{SESSION} in {root}",
            found="no such file",
            hint="Save the session again: session.save(path) goes on where it was stopped",
        )

    def locate(table: str) -> Source | None:
        path = in_dataset(root, table, partition)
        return Source(path) if path.is_file() else None

    return locate
