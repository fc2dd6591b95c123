"""What the metadata files beside an engine record: options, device, and the summary of the timed run.

``profile.metadata.json`` and ``build.metadata.json`` are made from trtexec's log by TREx's parser, which cuts
values at their second colon; ``metadata.json`` lists the machine's devices.
"""

from __future__ import annotations

import math
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.log_lines.statistics import HEADS, SCALARS
from torchtrt_viz.formats.io.json_values import list_of
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.model.repair import Repair

__all__ = ["performance", "read_device", "read_metadata", "statistics"]

_FIRST = ("min", "max", "mean", "median")


def statistics(values: list[Any], percentiles: list[str] | None = None) -> dict[str, float]:
    """Name the figures of one summary line.

    trtexec prints min, max, mean, median, and the percentiles that it was asked for: 99 by default, since
    TensorRT 8.5 also 90 and 95. ``percentiles`` names them where the options are recorded. With fewer figures
    than four there is no telling the mean from the median: only the first two have names.
    """
    if len(values) < len(_FIRST):
        return _named([*_FIRST[:2], "_3"], values)
    rest = len(values) - len(_FIRST)
    if percentiles is None or len(percentiles) != rest:
        percentiles = {1: ["99"], 3: ["90", "95", "99"]}.get(rest, [f"_{i + 1}" for i in range(max(rest, 0))])
    return _named([*_FIRST, *(f"p{p}" for p in percentiles)], values)


def _named(names: list[str], values: list[Any]) -> dict[str, float]:
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
        if plain in HEADS and isinstance(value, list):
            out[HEADS[plain]] = statistics(value, percentiles)
        elif plain in SCALARS and isinstance(value, (int, float)):
            out[SCALARS[plain]] = float(value)
        else:
            out[key] = value
    return out


def read_metadata(value: object, name: str, options: LoadOptions) -> dict[str, dict[str, Any]]:
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
    wrong = 0
    for section, content in value.items():
        if not isinstance(content, dict):
            wrong += 1
            continue
        if section == "performance_summary":
            out["performance"] = performance(content)
        elif section == "device_information":
            out["device"] = content
        else:
            out[section] = content
    _left_out(wrong, "sections that are no mappings", name, options)
    return out


def _left_out(count: int, what: str, name: str, options: LoadOptions) -> None:
    if count:
        options.repaired(Repair("left_out", f"{what} were left out", name, count=count))


def read_device(value: object, name: str, options: LoadOptions) -> list[dict[str, Any]]:
    """Read ``metadata.json``: one mapping per device of the machine.

    Raises
    ------
    TraceFormatError
        When it is neither a list nor a mapping.
    """
    devices = list_of(value, "device properties", name, "a list of mappings", single=True)
    out = [device for device in devices if isinstance(device, dict)]
    _left_out(len(devices) - len(out), "devices that are no mappings", name, options)
    return out
