"""What the tables and categories of rocprofiler-sdk mean, in JSON and in databases alike.

Sources: ``generateJSON.cpp`` and ``generateRocpd.cpp`` of rocprofiler-sdk, its ``rocpd_tables.sql`` (versions
3 and 4), and the categories of ROCm Systems Profiler.
"""

from __future__ import annotations

import re

from torchtrt_viz.formats.producers.categories import CATEGORIES
from torchtrt_viz.model.schema import DOMAINS, KINDS

__all__ = [
    "DESCRIBING_LISTS",
    "FIRST_KEY",
    "GPU",
    "HOST",
    "crosses_threads",
    "is_mark",
    "is_rocpd",
    "kind_of_category",
    "kind_of_list",
    "table_of",
]

HOST, GPU = DOMAINS.index("host"), DOMAINS.index("gpu")

#: How a result file of rocprofv3 begins.
FIRST_KEY = re.compile(rb'\s*\{\s*"rocprofiler-sdk-tool"\s*:')

#: Lists of a process that describe the recording, and hold no events.
DESCRIBING_LISTS = ("agents", "counters", "code_objects", "kernel_symbols", "host_functions", "summary")

_LISTS = {
    **dict.fromkeys(("hip_api", "hsa_api", "rccl_api", "rocdecode_api", "rocjpeg_api"), "runtime"),
    **dict.fromkeys(("memory_allocation", "scratch_memory"), "memory"),
    "marker_api": "annotation",
    "kernel_dispatch": "kernel",
    "memory_copy": "memcpy",
}
_CALLS = re.compile(r"(hip|hsa|rccl|rocdecode|rocjpeg)_\w*api(_ext)?$")
_MORE = {
    "mpi": "communication",
    "ucx": "communication",
    "shmem": "communication",
    "python": "python",
    "user": "annotation",
    "causal": "annotation",
    "rocm_rocm_smi": "other",
}

_BASES = (
    *(f"info_{name}" for name in ("node", "process", "thread", "agent", "queue", "stream", "pmc")),
    *("info_code_object", "info_kernel_symbol", "info_category", "info_address_range", "info_source_code"),
    *("info_pc", "metadata", "string", "track", "timestamp", "event", "arg", "line_info", "call_stack"),
    *("pmc_event", "region", "sample", "kernel_dispatch", "memory_copy", "memory_allocate"),
)
_TABLE = re.compile(
    rf"(?P<base>rocpd_(?:{'|'.join(sorted(_BASES, key=len, reverse=True))}))(?P<run>_[0-9a-fA-F_]{{8,64}})?"
)
#: What rocpd has and the older rpd has not.
_TELLING = re.compile(r"rocpd_(info_\w+|kernel_dispatch|region|memory_copy|memory_allocate|metadata)")


def table_of(name: str) -> tuple[str, str] | None:
    """Return the table that a name means, and the run at its end ("" none); None for other tables."""
    found = _TABLE.fullmatch(name)
    return None if found is None else (found["base"].removeprefix("rocpd_"), found["run"] or "")


def is_rocpd(tables: list[str]) -> bool:
    """Whether a database with these tables is a rocpd database."""
    return any(_TELLING.match(name) is not None for name in tables if name.startswith("rocpd_"))


def kind_of_list(name: str) -> str:
    """Return the kind of the records of a list of a result file."""
    return _LISTS.get(name, "other")


def kind_of_category(category: str) -> str:
    """Return the kind of a region of this category ("HIP_RUNTIME_API", "rocm_hip_api", "mpi", ...)."""
    name = category.lower()
    if name.startswith("marker") or name.startswith("rocm_marker"):
        return "annotation"
    if _CALLS.match(name.removeprefix("rocm_")):
        return "runtime"
    if name in CATEGORIES:
        return KINDS[CATEGORIES[name][0]]
    return _MORE.get(name, "other")


def is_mark(operation: str) -> bool:
    """Whether an operation of markers is a point in time."""
    return operation.startswith("roctxMark")


def crosses_threads(operation: str) -> bool:
    """Whether a range of this operation may end on another thread than it began on."""
    return operation.startswith(("roctxRangeStart", "roctxProcessRange"))
