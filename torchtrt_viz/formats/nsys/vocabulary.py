"""What the tables of an export are: events, descriptions of the recording, and what is passed over.

Tables and columns are known by their names, never by the version of the schema: exports of 2020 to 2026
differ in which of them they have. ``nsys export`` writes tables lazily, so that any may be absent.
"""

from __future__ import annotations

import re

__all__ = ["HOST_CALLS", "OVERHEADS", "describes", "is_export", "table_of_file"]

#: Tables of calls on host threads -> (kind of the spans, whether they start work of a device).
HOST_CALLS: dict[str, tuple[str, bool]] = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("runtime", True),
    "CUPTI_ACTIVITY_KIND_DRIVER": ("runtime", True),
    "CUDNN_EVENTS": ("other", False),
    "CUBLAS_EVENTS": ("other", False),
    "CUSPARSE_EVENTS": ("other", False),
    "MPI_COLLECTIVES_EVENTS": ("communication", False),
    "MPI_P2P_EVENTS": ("communication", False),
    "MPI_START_WAIT_EVENTS": ("communication", False),
    "MPI_OTHER_EVENTS": ("other", False),
    "OSRT_API": ("other", False),
}

#: Tables of what recording itself cost.
OVERHEADS = ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD")

_DESCRIBES = re.compile(
    r"ENUM_|META_DATA_|TARGET_INFO_|EXPORT_|ANALYSIS_(FILE|DETAILS)$|NVTX_PAYLOAD_|sqlite_"
    r"|(StringIds|ThreadNames|PROCESSES|ProcessStreams|UnwindMethodType)$"
)
_TABLES = re.compile(
    r"CUPTI_ACTIVITY_KIND_\w+|NVTX_(EVENTS|PAYLOAD_\w+)|TARGET_INFO_\w+|META_DATA_(CAPTURE|EXPORT)"
    r"|ENUM_(NSYS|CUDA|CUPTI)_\w+|OSRT_\w+|CUDNN_EVENTS|CUBLAS_EVENTS|GPU_METRICS|GENERIC_EVENTS"
    r"|GENERIC_EVENT_\w+|CUDA_(GRAPH|GPU|UM|CALLCHAINS|DEV)\w*|SCHED_EVENTS|COMPOSITE_EVENTS"
    r"|SAMPLING_CALLCHAINS|StringIds|ThreadNames|DIAGNOSTIC_EVENT|PROFILER_OVERHEAD|ANALYSIS_DETAILS"
    r"|MPI_\w+_EVENTS|EXPORT_META_DATA"
)
#: Tables that only this tool writes.
_TELLING = re.compile(
    r"TARGET_INFO_(SYSTEM_ENV|SESSION_START_TIME)|META_DATA_(CAPTURE|EXPORT)|ANALYSIS_DETAILS|NVTX_EVENTS"
    r"|ENUM_NSYS_\w+|EXPORT_META_DATA"
)


def describes(table: str) -> bool:
    """Whether a table describes the recording, and holds no events."""
    return _DESCRIBES.match(table) is not None


def is_export(tables: list[str], *, complete: bool = True) -> bool:
    """Whether a database with these tables is an export of Nsight Systems.

    Parameters
    ----------
    complete
        Whether these are all of its tables.
    """
    known = [name for name in tables if _TABLES.fullmatch(name)]
    if any(_TELLING.fullmatch(name) for name in known):
        return not complete or any(not describes(name) for name in known)
    return "StringIds" in known and any(not describes(name) for name in known)


def table_of_file(filename: str) -> str | None:
    """Return the table that a Parquet file of this name holds; None for a file of something else."""
    stem, dot, ending = filename.rpartition(".")
    return stem if dot and ending == "parquet" and _TABLES.fullmatch(stem) else None
