"""What the metadata files beside an engine record: options, device, and the summary of the timed run.

``profile.metadata.json`` and ``build.metadata.json`` are made from trtexec's log by TREx's parser, which cuts
values at their second colon; ``metadata.json`` lists the machine's devices.
"""

from __future__ import annotations

import math
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.json_values import list_of

__all__ = ["performance", "read_device", "read_metadata", "statistics"]

#: Key of the summary -> name here.
_STATISTICS = {
    "latency": "latency_ms",
    "end-to-end host latency": "end_to_end_ms",
    "enqueue time": "enqueue_ms",
    "h2d latency": "h2d_ms",
    "gpu compute time": "gpu_compute_ms",
    "gpu compute": "gpu_compute_ms",
    "d2h latency": "d2h_ms",
}
_SCALARS = {
    "throughput": "throughput_qps",
    "total host walltime": "host_walltime_s",
    "total gpu compute time": "gpu_compute_s",
}
_FIRST = ("min", "max", "mean", "median")


def statistics(values: list[Any], percentiles: list[str] | None = None) -> dict[str, float]:
    """Name the figures of one summary line.

    trtexec prints min, max, mean, median, and the percentiles that it was asked for: 99 by default, since
    TensorRT 8.5 also 90 and 95. ``percentiles`` names them where the options are recorded.
    """
    rest = len(values) - len(_FIRST)
    if percentiles is None or len(percentiles) != rest:
        percentiles = {1: ["99"], 3: ["90", "95", "99"]}.get(rest, [f"_{i + 1}" for i in range(max(rest, 0))])
    names = [*_FIRST, *(f"p{p}" for p in percentiles)]
    return {
        name: float(value)
        for name, value in zip(names, values, strict=False)
        if isinstance(value, (int, float)) and math.isfinite(value)
    }


def performance(summary: dict[str, Any], percentiles: list[str] | None = None) -> dict[str, Any]:
    """Bring a performance summary into the shape of ``EngineInfo.performance``."""
    out: dict[str, Any] = {}
    for key, value in summary.items():
        plain = key.strip().lower()
        if plain in _STATISTICS and isinstance(value, list):
            out[_STATISTICS[plain]] = statistics(value, percentiles)
        elif plain in _SCALARS and isinstance(value, (int, float)):
            out[_SCALARS[plain]] = float(value)
        else:
            out[key] = value
    return out


def read_metadata(value: object, name: str) -> dict[str, dict[str, Any]]:
    """Read ``profile.metadata.json`` or ``build.metadata.json``: section -> mapping.

    Sections are ``performance`` (of `performance`), ``inference_options``, ``build_options``,
    ``model_options`` and ``device``; only those that the file has.

    Raises
    ------
    TraceFormatError
        When it is no mapping of mappings.
    """
    if not isinstance(value, dict):
        raise TraceFormatError(
            "no metadata in it",
            path=name,
            expected='{"performance_summary": {...}, ...} or {"build_options": {...}, ...}',
            found=type(value).__name__,
        )
    out: dict[str, dict[str, Any]] = {}
    for section, content in value.items():
        if not isinstance(content, dict):
            continue
        if section == "performance_summary":
            out["performance"] = performance(content)
        elif section == "device_information":
            out["device"] = content
        else:
            out[section] = content
    return out


def read_device(value: object, name: str) -> list[dict[str, Any]]:
    """Read ``metadata.json``: one mapping per device of the machine.

    Raises
    ------
    TraceFormatError
        When it is neither a list nor a mapping.
    """
    devices = list_of(value, "device properties", name, "a list of mappings", single=True)
    return [device for device in devices if isinstance(device, dict)]
