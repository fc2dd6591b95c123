"""SQLite databases of other tools: what they are, told by the names of their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchtrt_viz.formats.io.foreign_file import Foreign

__all__ = ["OTHER", "ROCPD", "RPD", "database_of", "described"]

_MOST_NAMED = 8

ROCPD = Foreign(
    "a rocpd database (SQLite) of rocprofv3",
    'Load it without format=, or with format="rocprof"',
)
RPD = Foreign(
    "an rpd database (SQLite) of rocmProfileData",
    "It is not read: convert it to trace-event JSON (rpd2tracing.py FILE.rpd FILE.json)",
)
OTHER = Foreign(
    "an SQLite database, and no export of Nsight Systems or rocprofv3",
    "Export the recording as a trace with the tool that wrote the database",
)
_NVPROF = Foreign(
    "a database (SQLite) of nvprof",
    "It is not read: convert it to trace-event JSON (nvprof2json FILE > FILE.json)",
)


def database_of(tables: Sequence[str]) -> Foreign | None:
    """Return what a database with these tables is; None where their names do not tell."""
    if any(name.startswith("rocpd_") for name in tables):
        return RPD if {"rocpd_api", "rocpd_op"} & set(tables) else ROCPD
    nvprof = "StringTable" in tables and any(name.startswith("CUPTI_ACTIVITY_KIND_") for name in tables)
    return _NVPROF if nvprof else None


def described(tables: Sequence[str]) -> Foreign:
    """Return what a database with these tables is, by the names of its tables where they do not tell."""
    foreign = database_of(tables)
    if foreign is not None:
        return foreign
    named = ", ".join(tables[:_MOST_NAMED]) + (", ..." if len(tables) > _MOST_NAMED else "")
    held = f"the tables {named}" if tables else "no table"
    return replace(OTHER, what=f"an SQLite database with {held}")
