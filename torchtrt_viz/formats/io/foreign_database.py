"""SQLite databases of other tools: what they are, told by the names of their tables."""

from __future__ import annotations

from collections.abc import Sequence

from torchtrt_viz.formats.io.foreign_file import Foreign

__all__ = ["OTHER", "ROCPD", "RPD", "database_of"]

ROCPD = Foreign(
    "a rocpd database (SQLite) of rocprofv3",
    "It is not read: convert it (rocpd convert -i FILE --output-format pftrace), or record with "
    "rocprofv3 --output-format pftrace",
)
RPD = Foreign(
    "an rpd database (SQLite) of rocmProfileData",
    "It is not read: convert it to trace-event JSON (rpd2tracing.py FILE.rpd FILE.json)",
)
OTHER = Foreign(
    "an SQLite database, and no export of Nsight Systems",
    "Export the recording as a trace with the tool that wrote the database",
)
_NVPROF = Foreign(
    "a database (SQLite) of nvprof",
    "It is not read: convert it to trace-event JSON (nvprof2json FILE > FILE.json)",
)


def database_of(tables: Sequence[str]) -> Foreign | None:
    """Return what a database with these tables is; None where their names do not tell."""
    if any(name.startswith("rocpd_") for name in tables):
        # rocprofv3 ends its tables in an identifier of the run, and lists agents in rocpd_info_...
        return ROCPD if any(name.startswith("rocpd_info_") for name in tables) else RPD
    nvprof = "StringTable" in tables and any(name.startswith("CUPTI_ACTIVITY_KIND_") for name in tables)
    return _NVPROF if nvprof else None
