"""What became of every event of an XSpace, and how much rounding changed its times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["accounting_of", "exact_sum"]


def exact_sum(values: NDArray[np.int64]) -> int:
    """Sum 64-bit integers without overflow."""
    high, low = values >> 32, values & 0xFFFFFFFF
    return (int(high.sum()) << 32) + int(low.sum())


def accounting_of(
    space: Mapping[str, Any],
    rows: Mapping[str, int],
    dur_ns: NDArray[np.int64],
    dur_ps: NDArray[np.int64],
    planes: Mapping[str, int],
) -> dict[str, Any]:
    """Return ``trace.meta["accounting"]``.

    ``in_file`` is the number of events; it equals ``read`` and what was left out. ``bytes`` has those of the
    file, of its planes, and those that damage made unreadable. ``span_ps`` is the sum of the spans' durations
    as the file gives them, ``span_ns`` that of the frame, and ``rounded_ps`` how much less or more that is.

    Parameters
    ----------
    dur_ns, dur_ps
        Durations of the spans that events became, rounded and as recorded.
    planes
        Name of each plane -> its events.
    """
    left_out = int(space["problems"].get("damaged_event", (0, 0))[0])
    read = len(space["events"]["kind"])
    span_ps, span_ns = exact_sum(dur_ps), exact_sum(dur_ns)
    return {
        "unit": "events",
        "in_file": read + left_out,
        "read": read,
        "repaired": 0,
        "left_out": {"damaged_event": left_out} if left_out else {},
        "unread": {},
        "planes": dict(planes),
        "bytes": {
            "in_file": space["bytes"],
            "planes": space["plane_bytes"],
            "lost": space["lost_bytes"],
            "descriptions": int(space["kinds"]["bytes"].sum()),
        },
        "rows": dict(rows),
        "span_ps": span_ps,
        "span_ns": span_ns,
        "rounded_ps": span_ns * 1000 - span_ps,
    }
