"""Pages of Nsight Compute as CSV, in the forms that its versions of 2020 to 2026 print."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["DETAILS", "KERNEL", "OLD", "RAW", "SUMMARY", "details", "raw", "said"]

_WHERE = ("Process ID", "Process Name", "Host Name", "Kernel Name")
KERNEL = ("ID", *_WHERE, "Context", "Stream", "Block Size", "Grid Size", "Device", "CC")
_METRIC = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
_RULE = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
DETAILS = (*KERNEL, *_METRIC, *_RULE)
OLD = ("ID", *_WHERE, "Kernel Time", "Context", "Stream", *_METRIC)
RAW = KERNEL
SUMMARY = (*_WHERE, "Context", "Stream", "Block Size", "Grid Size", "Device", "CC", "Invocations")
SUMMARY += ("Section Name", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average")


def line(fields: Sequence[str]) -> str:
    """A record: every field in quotes, quotes within it doubled."""
    return ",".join('"' + field.replace('"', '""') + '"' for field in fields) + "\n"


def said(
    number: int, name: str, grid: str = "(8, 1, 1)", block: str = "(256, 1, 1)", **more: str
) -> tuple[str, ...]:
    """The columns that say which kernel it is."""
    process, device, stream = more.get("process", "77"), more.get("device", "0"), more.get("stream", "7")
    return (str(number), process, "app", "127.0.0.1", name, "1", stream, block, grid, device, "9.0")


def details(kernels: Sequence[tuple[tuple[str, ...], Sequence[tuple[str, str, str, str]]]]) -> str:
    """The details page: a row a metric (section, name, unit, value), then a rule."""
    out = line(DETAILS)
    for kernel, metrics in kernels:
        for metric in metrics:
            out += line((*kernel, *metric, "", "", "", "", ""))
        rule = ("SOLBottleneck", "OPT", 'Memory is "heavily" used,\nsee the analysis', "global", "12")
        out += line((*kernel, "SpeedOfLight", "", "", "", *rule))
    return out


def raw(metrics: Sequence[tuple[str, str]], kernels: Sequence[tuple[tuple[str, ...], Sequence[str]]]) -> str:
    """The raw page: a row of units, then a row a kernel."""
    out = line((*RAW, *(name for name, _ in metrics)))
    out += line(("",) * len(RAW) + tuple(unit for _, unit in metrics))
    return out + "".join(line((*kernel, *values)) for kernel, values in kernels)
