"""What an XSpace says about its recording, outside its events."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.xplane.stats import Stats

__all__ = ["clock_of", "described", "processes_of"]

# Nanoseconds since the epoch in the years 2001 to 2096: no clock since boot reaches them.
_EPOCH_NS = (10**18, 4 * 10**18)
_DEVICE = re.compile(r"/device:[A-Z]+:(\d{1,9})$")
_VERSION = re.compile(r"\w+_version$")
#: Statistic of a device's plane -> (what CUDA, and so torch.profiler, calls it; factor to its unit).
_PROPERTIES = {
    "core_count": ("numSms", 1),
    "clock_rate": ("clockRate", 1),
    "memory_bandwidth": ("memoryBandwidth", 1),
    "memory_size": ("totalGlobalMem", 1),
    "compute_cap_major": ("computeMajor", 1),
    "compute_cap_minor": ("computeMinor", 1),
    "device_vendor": ("vendor", 1),
    "gpu_device_name": ("name", 1),
    "device_type_string": ("name", 1),
}
_PEAKS = re.compile(r"peak_\w+_per_second$")


def described(space: Mapping[str, Any], planes: Stats, names: Sequence[str]) -> dict[str, Any]:
    """Return the part of ``trace.meta`` that the file itself gives."""
    versions: dict[str, Any] = {}
    devices: list[dict[str, Any]] = []
    for row, name in enumerate(names):
        found = planes.at(row)
        versions |= {key: value for key, value in found.items() if _VERSION.match(key)}
        device = _DEVICE.match(name)
        if device is not None:
            properties = {_PROPERTIES[key][0]: value for key, value in found.items() if key in _PROPERTIES}
            properties |= {key: value for key, value in found.items() if _PEAKS.match(key)}
            devices.append({"id": int(device[1]), **properties})
    meta: dict[str, Any] = {"versions": versions}
    if devices:
        meta["deviceProperties"] = devices
        meta["devices"] = {device["id"]: device for device in devices}
    hosts = [host for host in space["hosts"] if host]
    if len(hosts) == 1:
        meta["host_name"] = hosts[0][:1000]
    elif hosts:
        meta["host_names"] = [host[:1000] for host in hosts[:1000]]
    return meta


def processes_of(space: Mapping[str, Any], planes: Stats, names: Sequence[str]) -> list[str | None]:
    """Return the process of each plane: its number where the plane states it, else the plane's name."""
    out: list[str | None] = []
    for row, name in enumerate(names):
        stated = planes.at(row).get("process_id")
        out.append(str(stated) if isinstance(stated, int) else name or None)
    return out


def clock_of(planes: Stats, timestamps: NDArray[np.int64]) -> tuple[int | None, str]:
    """Return (Unix ns of ``start_ns`` 0 or None, what the clock is, in words)."""
    latest = int(timestamps.max()) if len(timestamps) else 0
    if _EPOCH_NS[0] <= latest < _EPOCH_NS[1]:
        return 0, "nanoseconds since the Unix epoch, as the lines of the XPlane give them"
    starts = [planes.at(row).get("profile_start_time") for row in range(len(planes))]
    start = next((each for each in starts if isinstance(each, int) and 0 < each < 2**62), None)
    if start is None:
        return None, "nanoseconds of the profiler's own clock; the file names no base"
    return start, "nanoseconds since the profile's start, which the file gives as profile_start_time"
