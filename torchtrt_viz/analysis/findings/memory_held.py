"""Memory that is held without use, or that grows from beginning to end."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from torchtrt_viz.analysis.core.humanize import size
from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.device.memory_use import memory_peaks
from torchtrt_viz.analysis.findings.finding import Evidence, Finding, pct
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["memory_use"]

_UNUSED = 0.3  # of what the allocator holds at the peak
_LEAST = 64 * 2**20  # bytes


def memory_use(trace: TraceData) -> Iterator[Finding]:
    """Memory held without use at each device's peak."""
    for row in records(memory_peaks(trace)):
        if pd.isna(row.unused_at_peak_bytes) or pd.isna(row.peak_reserved_bytes):
            continue
        held = int(row.peak_allocated_bytes) + int(row.unused_at_peak_bytes)
        unused = int(row.unused_at_peak_bytes)
        if held < _LEAST or unused < _UNUSED * held:
            continue
        at = int(row.peak_at_ns)
        yield Finding(
            f"At the peak of {row.device} ({size(row.peak_allocated_bytes)} in use) the allocator held "
            f"{size(unused)} more, {pct(unused / held)} of all that it held.",
            0.0,
            unused / held,
            f"the memory held on {row.device}",
            "gpu" if str(row.device).startswith("cuda") else "host",
            "analysis.memory_peaks(trace)",
            "expandable segments, fewer sizes of tensors, or freeing before the peak",
            placed=False,
            kind="memory",
            head=f"{size(unused)} of memory held unused at the peak of {row.device}",
            basis="it is about memory, not time",
            evidence=Evidence(window=(at - 1, at + 1)),
            frame="trace.analysis.memory_peaks()",
        )
