"""Device work of which a profile holds sums over all executions, and no times: a tree of calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.cache import kept
from torchtrt_viz.analysis.core.device_work import DEVICE_KINDS, device_work
from torchtrt_viz.analysis.core.masks import among
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["DeviceSums", "device_sums"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_INPUTS = {"spans": ("timing", "domain", "kind", "parent", "self_ns")}


@dataclass(frozen=True)
class DeviceSums:
    """Sums, each array with an entry per span.

    Attributes
    ----------
    rows
        Whether the span is a node of the tree.
    work
        Whether it stands for executions of a kernel, a copy, a fill or a collective.
    own
        Time of these executions, ns; 0 elsewhere.
    calls
        How many they are; -1 where the profile does not say.
    """

    rows: Mask
    work: Mask
    own: Ints
    calls: Ints


def device_sums(trace: TraceData) -> DeviceSums | None:
    """Return the sums of a trace that holds nothing finer of its devices; None for any other trace."""
    spans = trace.spans
    rows = among(spans["timing"], ("aggregate",)) & among(spans["domain"], ("gpu",))
    work = rows & among(spans["kind"], DEVICE_KINDS)
    if not work.any() or len(device_work(trace)):
        return None
    return kept(trace, "device_sums", _INPUTS, lambda: _sums(trace, rows, work))


def _sums(trace: TraceData, rows: Mask, work: Mask) -> DeviceSums:
    calls = np.full(len(rows), -1, np.int64)
    at = np.flatnonzero(work)
    codes, values = trace.args.values(at, "count")
    table = np.array([*map(_count, values), -1], np.int64)
    calls[at] = table[codes]
    own = np.where(work, trace.spans["self_ns"].to_numpy(), 0)
    for part in (calls, own):
        part.flags.writeable = False  # several analyses look at the same
    return DeviceSums(rows, work, own, calls)


def _count(value: Any) -> int:
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1 << 62
    return int(value) if known else -1
