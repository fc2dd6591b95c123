"""What devices can do at best: the roofs of a roofline."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["DEVICES", "Device", "device_of", "find_device"]


@dataclass(frozen=True)
class Device:
    """The limits of one device, as its maker states them (dense, without sparsity).

    Attributes
    ----------
    name
        Name.
    bandwidth_gbps
        Memory bandwidth, 10^9 byte/s.
    tflops
        Arithmetic per precision, 10^12 operations/s: keys fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4.
        ``fp32`` is without tensor cores, ``tf32`` what fp32 matrix products reach with them.
    """

    name: str
    bandwidth_gbps: float
    tflops: Mapping[str, float] = field(default_factory=dict)

    def peak(self, precision: str) -> float | None:
        """Return the arithmetic limit for a precision, 10^12 operations/s; None where it is not stated."""
        value = self.tflops.get(precision)
        return None if value is None else float(value)


def _gpu(name: str, bandwidth: float, **tflops: float) -> Device:
    return Device(name, bandwidth, tflops)


DEVICES: tuple[tuple[re.Pattern[str], Device], ...] = tuple(
    (re.compile(pattern, re.I), device)
    for pattern, device in (
        (
            r"\bB200\b",
            _gpu(
                "NVIDIA B200",
                8000,
                fp64=37,
                fp32=75,
                tf32=1125,
                fp16=2250,
                bf16=2250,
                fp8=4500,
                int8=4500,
                fp4=9000,
            ),
        ),
        (
            r"\bH200\b",
            _gpu(
                "NVIDIA H200 SXM",
                4800,
                fp64=34,
                fp32=67,
                tf32=494.7,
                fp16=989.4,
                bf16=989.4,
                fp8=1978.9,
                int8=1978.9,
            ),
        ),
        (
            r"\bH100.*PCIe",
            _gpu(
                "NVIDIA H100 PCIe",
                2039,
                fp64=26,
                fp32=51,
                tf32=378,
                fp16=756,
                bf16=756,
                fp8=1513,
                int8=1513,
            ),
        ),
        (
            r"\bH100\b",
            _gpu(
                "NVIDIA H100 SXM",
                3352,
                fp64=34,
                fp32=67,
                tf32=494.7,
                fp16=989.4,
                bf16=989.4,
                fp8=1978.9,
                int8=1978.9,
            ),
        ),
        (
            r"\bA100.*80GB PCIe",
            _gpu(
                "NVIDIA A100 80GB PCIe",
                1935,
                fp64=9.7,
                fp32=19.5,
                tf32=156,
                fp16=312,
                bf16=312,
                int8=624,
            ),
        ),
        (
            r"\bA100.*80GB",
            _gpu("NVIDIA A100 80GB", 2039, fp64=9.7, fp32=19.5, tf32=156, fp16=312, bf16=312, int8=624),
        ),
        (
            r"\bA100\b",
            _gpu("NVIDIA A100 40GB", 1555, fp64=9.7, fp32=19.5, tf32=156, fp16=312, bf16=312, int8=624),
        ),
        (
            r"\bL40S\b",
            _gpu("NVIDIA L40S", 864, fp32=91.6, tf32=183, fp16=362, bf16=362, fp8=733, int8=733),
        ),
        (r"\bL4\b", _gpu("NVIDIA L4", 300, fp32=30.3, tf32=60, fp16=121, bf16=121, fp8=242, int8=242)),
        (r"\bV100\b", _gpu("NVIDIA V100 SXM2", 900, fp64=7.8, fp32=15.7, fp16=125)),
        (r"\bT4\b", _gpu("NVIDIA T4", 320, fp32=8.1, fp16=65, int8=130)),
        (
            r"RTX 4090",
            _gpu(
                "NVIDIA GeForce RTX 4090",
                1008,
                fp32=82.6,
                tf32=82.6,
                fp16=165.2,
                bf16=165.2,
                fp8=330.3,
                int8=660.6,
            ),
        ),
        (
            r"MI300X",
            _gpu(
                "AMD Instinct MI300X",
                5300,
                fp64=163.4,
                fp32=163.4,
                tf32=653.7,
                fp16=1307.4,
                bf16=1307.4,
                fp8=2614.9,
                int8=2614.9,
            ),
        ),
        (
            r"MI250",
            _gpu("AMD Instinct MI250X", 3277, fp64=95.7, fp32=95.7, fp16=383, bf16=383, int8=383),
        ),
        (r"MI210", _gpu("AMD Instinct MI210", 1638, fp64=45.3, fp32=45.3, fp16=181, bf16=181, int8=181)),
    )
)


_NAMES = ("name", "Name", "Selected Device")


def find_device(device: Device | str) -> Device:
    """Return a device by its name, or the given one.

    Raises
    ------
    OptionError
        When no known device has that name.
    """
    if isinstance(device, Device):
        return device
    for pattern, known in DEVICES:
        if pattern.search(device):
            return known
    names = ", ".join(known.name for _, known in DEVICES)
    raise OptionError(
        "device", device, f"one of {names}, or a torchtrt_viz.analysis.device.device_specs.Device of your own"
    )


def device_of(trace: TraceData) -> Device | None:
    """Return the known device that a trace names, None when it names none or several kinds."""
    found = set()
    for properties in _recorded(trace):
        name = str(next((properties[key] for key in _NAMES if key in properties), ""))
        for pattern, known in DEVICES:
            if name and pattern.search(name):
                found.add(known.name)
                device = known
                break
    return device if len(found) == 1 else None


def _recorded(trace: TraceData) -> list[Mapping[str, Any]]:
    values: list[Any] = []
    for key in ("deviceProperties", "device_properties", "devices"):
        value = trace.meta.get(key)
        values += value if isinstance(value, list) else [value]
    for info in trace.meta.get("engines") or ():
        values.append(info.device)
    return [value for value in values if isinstance(value, Mapping)]
