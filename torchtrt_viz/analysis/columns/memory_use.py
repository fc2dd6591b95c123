"""Columns of the tables about memory."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.sorts import amount, count, ns, text
from torchtrt_viz.model.schema import FrameSchema

__all__ = ["MEMORY", "MEMORY_BY_OPERATOR", "MEMORY_PEAKS"]

_DEVICE = text("device", "cpu, cuda:0, ...; for an ExecuTorch program the name of its allocator")

MEMORY = FrameSchema(
    "memory",
    (
        ns("ts_ns", "time of the change, on the trace's base"),
        _DEVICE,
        amount("allocated_bytes", "in use from this time on", "int64"),
        amount(
            "reserved_bytes", "held by the caching allocator, in use or not; NA where that is not recorded"
        ),
        amount(
            "delta_bytes", "change of allocated_bytes since the device's row before; NA for its first row"
        ),
    ),
    "one row per change of the memory in use, by device, then time",
)

MEMORY_PEAKS = FrameSchema(
    "memory_peaks",
    (
        _DEVICE,
        amount("peak_allocated_bytes", "most in use", "int64"),
        ns("peak_at_ns", "when that was first reached, on the trace's base"),
        amount("peak_reserved_bytes", "most held by the caching allocator; NA where that is not recorded"),
        amount(
            "unused_at_peak_bytes", "held but not in use at the peak (cache and fragmentation); NA as above"
        ),
        amount("first_bytes", "in use at the beginning", "int64"),
        amount("last_bytes", "in use at the end", "int64"),
        count("events", "allocations and releases recorded"),
    ),
    "one row per device: most memory in use",
)

MEMORY_BY_OPERATOR = FrameSchema(
    "memory_by_operator",
    (
        text("device", "cpu, or cuda:0, ..."),
        text("operator", "operator on the same thread at that time; missing: none was running"),
        count("allocations", "number of allocations"),
        amount("allocated_bytes", "their bytes", "int64"),
        count("releases", "number of releases"),
        amount("released_bytes", "their bytes", "int64"),
        amount(
            "net_bytes",
            "allocated_bytes - released_bytes: what outlives the operator, if positive",
            "int64",
        ),
    ),
    "one row per device and innermost operator that allocated or released",
)
