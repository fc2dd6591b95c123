"""Pages of metrics beside traces: no rank of a job, but something to join to the kernels of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchtrt_viz.formats.io.foreign_file import Foreign
from torchtrt_viz.loading.identify import Identified

__all__ = ["pages_aside"]

_PAGE = Foreign(
    "a page of Nsight Compute, which measured kernels by themselves",
    "Join it to the kernels of the trace: trace.kernel_metrics(path)",
)


def pages_aside(found: Sequence[Identified]) -> list[Identified]:
    """Take pages for no traces where there is one; by themselves they are."""
    others = any(
        entry.kind in ("trace", "rank archive", "lost trace") and entry.format != "ncu" for entry in found
    )
    return [
        replace(entry, kind="other", foreign=_PAGE)
        if others and entry.kind == "trace" and entry.format == "ncu"
        else entry
        for entry in found
    ]
