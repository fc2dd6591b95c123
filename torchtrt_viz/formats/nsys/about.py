"""What an export says about the recording, outside its events.

Only what is listed here is read: ``TARGET_INFO_SYSTEM_ENV`` holds the environment of the profiled program,
tokens among it, which never gets into a trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from torchtrt_viz.formats.nsys.enums import labels
from torchtrt_viz.formats.nsys.export import Export, Table
from torchtrt_viz.model.repair import Repair

__all__ = ["DIAGNOSTICS", "described", "diagnostics"]

DIAGNOSTICS = "DIAGNOSTIC_EVENT"

_ENVIRONMENT = {
    "Hostname": "host_name",
    "NvDriverVersion": "nvidia_driver",
    "CudaDriverVersion": "cuda_driver_version",
    "OsDescription": "os",
    "CpuDescription": "cpu",
}
_EXPORT = {
    "EXPORT_PRODUCT_VERSION": "nsight_systems",
    "EXPORT_SCHEMA_VERSION": "nsys_schema",
}
#: Column of TARGET_INFO_GPU -> what CUDA, and so torch.profiler, calls it.
_DEVICE = {
    "id": "id",
    "name": "name",
    "totalMemory": "totalGlobalMem",
    "memoryBandwidth": "memoryBandwidth",
    "clockRate": "clockRate",
    "smCount": "numSms",
    "chipName": "chipName",
    "computeMajor": "computeMajor",
    "computeMinor": "computeMinor",
    "threadsPerWarp": "warpSize",
    "maxThreadsPerBlock": "maxThreadsPerBlock",
    "maxRegistersPerBlock": "regsPerBlock",
    "maxShmemPerBlock": "sharedMemPerBlock",
    "maxShmemPerSm": "sharedMemPerMultiprocessor",
    "l2CacheSize": "l2CacheSize",
}
_LONGEST_TEXT = 1000
_MOST_MESSAGES = 1000
_MOST_SHOWN = 20
_TROUBLE = ("Warning", "Error", "Fatal")


def described(export: Export) -> dict[str, Any]:
    """Return the part of ``trace.meta`` that the export itself gives."""
    environment = _pairs(export, "TARGET_INFO_SYSTEM_ENV", tuple(_ENVIRONMENT))
    exported = {
        **_pairs(export, "EXPORT_META_DATA", tuple(_EXPORT)),  # its name before 2023
        **_pairs(export, "META_DATA_EXPORT", tuple(_EXPORT)),
    }
    versions = {_EXPORT[name]: value for name, value in exported.items()}
    versions |= {
        key: environment[name]
        for name, key in _ENVIRONMENT.items()
        if name in environment and key not in ("host_name",)
    }
    meta: dict[str, Any] = {"versions": versions}
    if "Hostname" in environment:
        meta["host_name"] = environment["Hostname"]
    devices = _devices(export)
    if devices:
        meta["deviceProperties"] = devices
        meta["devices"] = {device["id"]: device for device in devices if isinstance(device.get("id"), int)}
    start = _first(export, "TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)).get("utcEpochNs")
    if isinstance(start, int) and 0 < start < 2**62:
        meta["base_ns"] = start
    window = _first(export, "ANALYSIS_DETAILS", ("duration",)).get("duration")
    if isinstance(window, int) and window > 0:
        meta["session_ns"] = window
    return meta


def diagnostics(export: Export, path: str) -> tuple[list[dict[str, Any]], list[Repair], int, int]:
    """Return what the tool said about its recording, what of it is a warning, rows, and lost rows."""
    if DIAGNOSTICS not in export.tables:
        return [], [], 0, 0
    table = Table(export, DIAGNOSTICS, {"timestamp": "integer", "severity": "integer", "text": "text"})
    names = labels(export, "ENUM_DIAGNOSTIC_SEVERITY_LEVEL")
    severity, at, texts = table.integers("severity"), table.integers("timestamp"), table.take("text")
    known = [] if texts is None else (texts.texts or [])
    codes = np.full(table.count, -1, np.int32) if texts is None else texts.values
    messages = [
        {
            "severity": names.get(level, str(level)),
            "text": known[code][:_LONGEST_TEXT] if code >= 0 else "",
            "ts_ns": time,
        }
        for level, code, time in zip(
            severity[:_MOST_MESSAGES].tolist(),
            codes[:_MOST_MESSAGES].tolist(),
            at[:_MOST_MESSAGES].tolist(),
            strict=True,
        )
    ]
    trouble: dict[str, int] = {}
    for message in messages:
        said = " ".join(str(message["text"]).split())
        if message["severity"] in _TROUBLE and said:
            text = f"Nsight Systems says ({str(message['severity']).lower()}): {said}"
            trouble[text] = trouble.get(text, 0) + 1
    repairs = [
        Repair("diagnostic", text, path, count=count) for text, count in list(trouble.items())[:_MOST_SHOWN]
    ]
    return messages, repairs, table.count, table.lost


def _pairs(export: Export, table: str, wanted: tuple[str, ...]) -> dict[str, str]:
    """Return the values of some names of a table of names and values."""
    if table not in export.tables:
        return {}
    found = Table(export, table, {"name": "text"})
    names = found.take("name")
    if names is None:
        return {}
    texts = names.texts or []
    rows = [row for row, code in enumerate(names.values.tolist()) if code >= 0 and texts[code] in wanted]
    out: dict[str, str] = {}
    if rows:
        for row in export.pick(table, ("name", "value"), np.array(rows, np.int64)):
            value = row.get("value")
            if isinstance(value, (str, int, float)) and str(value).strip():
                out[str(row["name"])] = str(value)[:_LONGEST_TEXT]
    return out


def _first(export: Export, table: str, columns: tuple[str, ...]) -> Mapping[str, Any]:
    if table not in export.tables or not export.read(table, {}).count:
        return {}
    return export.pick(table, columns, np.zeros(1, np.int64))[0]


def _devices(export: Export) -> list[dict[str, Any]]:
    if "TARGET_INFO_GPU" not in export.tables:
        return []
    count = min(export.read("TARGET_INFO_GPU", {}).count, 4096)
    rows = export.pick("TARGET_INFO_GPU", tuple(_DEVICE), np.arange(count, dtype=np.int64))
    return [{_DEVICE[column]: value for column, value in row.items()} for row in rows]
