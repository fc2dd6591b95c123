"""What numbers in the tables mean: by the export's own ENUM tables, else as CUPTI has numbered them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchtrt_viz.formats.nsys.export import Export, Table

__all__ = ["copy_names", "event_types", "labels"]

#: What exports without ENUM tables (before 2021) mean.
_DEFAULTS: dict[str, dict[int, str]] = {
    "ENUM_CUDA_MEM_KIND": {
        0: "Pageable",
        1: "Pinned",
        2: "Device",
        3: "Array",
        4: "Managed",
        5: "Device Static",
        6: "Managed Static",
    },
    "ENUM_CUPTI_SYNC_TYPE": {
        1: "Event sync",
        2: "Stream wait sync",
        3: "Stream sync",
        4: "Context sync",
    },
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": {0: "Allocation", 1: "Deallocation"},
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": {1: "Info", 2: "Warning", 3: "Error"},
}
_COPIES = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "HtoD, unified memory",
    12: "DtoH, unified memory",
    13: "DtoD, unified memory",
}
_WAY = re.compile(r"(UVM_)?([A-Z])TO([A-Z])$")

_EVENT_TYPES = {
    "NvtxCategory": 33,
    "NvtxMark": 34,
    "NvtxThread": 39,
    "NvtxPushPopRange": 59,
    "NvtxStartEndRange": 60,
    "NvtxtMark": 65,
    "NvtxtPushPopRange": 70,
    "NvtxtStartEndRange": 71,
    "NvtxDomainCreate": 75,
    "NvtxDomainDestroy": 76,
    "NvtxNameCudaDevice": 97,
    "NvtxNameCudaContext": 98,
    "NvtxNameCudaStream": 99,
}


def labels(export: Export, table: str) -> Mapping[int, str]:
    """Return number -> label of one ENUM table."""
    return _read(export, table, "label") or _DEFAULTS.get(table, {})


def copy_names(export: Export) -> Mapping[int, str]:
    """Return the number of a kind of copy -> which way it goes, as "HtoD"."""
    out = dict(_COPIES)
    for number, name in _read(export, "ENUM_CUDA_MEMCPY_OPER", "name").items():
        way = _WAY.search(name)
        if way is not None:
            out[number] = f"{way[2]}to{way[3]}" + (", unified memory" if way[1] else "")
    return out


def event_types(export: Export) -> Mapping[str, int]:
    """Return the name of a type of NVTX event -> its number."""
    said = {name: number for number, name in _read(export, "ENUM_NSYS_EVENT_TYPE", "name").items()}
    return {name: said.get(name, number) for name, number in _EVENT_TYPES.items()}


def _read(export: Export, table: str, column: str) -> dict[int, str]:
    if table not in export.tables:
        return {}
    found = Table(export, table, {"id": "integer", column: "text"})
    ids, texts = found.integers("id"), found.take(column)
    if texts is None:
        return {}
    known = texts.texts or []
    return {
        number: known[code]
        for number, code in zip(ids.tolist(), texts.values.tolist(), strict=True)
        if code >= 0
    }
