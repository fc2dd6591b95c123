"""What became of every event of an ETDump."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.etdump.dump import LAYER_ROLES, Timed

if TYPE_CHECKING:
    from torchtrt_viz._native import etdump as native_etdump

__all__ = ["accounting_of"]


def accounting_of(
    dump: native_etdump.Dump, size: int, found: Timed, foreign: NDArray[np.int64]
) -> dict[str, Any]:
    """Return ``trace.meta["accounting"]`` of a dump of ``size`` bytes.

    ``in_file`` counts the entries of the runs' lists of events, and objects that are damaged (a run that is
    takes its events with it); it equals ``read`` and what was left out. ``repaired`` is part of ``read``:
    names and times that were mended. ``span_ns`` sums the durations of the runtime's clock, ``ticks`` those
    of others; ``unread_bytes`` lie behind the dump.
    """
    profiles, invalid = len(dump["events"]["run"]), len(found.invalid)
    allocations, debugs = len(dump["allocations"]["run"]), len(dump["debugs"]["run"])
    read = profiles + allocations + debugs
    damaged = int(dump["damage_count"])
    own = np.ones(len(found.events), bool)
    own[foreign] = False
    delegates = found.events.role >= LAYER_ROLES
    return {
        "unit": "events",
        "in_file": read + damaged,
        "read": read,
        "repaired": len(dump["invalid_text"]) + invalid,
        "left_out": {"damaged": damaged} if damaged else {},
        "unread": {},
        "unread_bytes": int(dump["trailing_bytes"]),
        "bytes": size,
        "events": {
            "runtime": int((~delegates).sum()),
            "delegate": int(delegates.sum()),
            "invalid": invalid,
            "other_clock": len(foreign),
            "allocations": allocations,
            "debug": debugs,
        },
        "rows": {"spans": len(found.events), "instants": invalid + allocations + debugs},
        "span_ns": int(np.sum(found.events.dur[own], dtype=np.float64)),
        "ticks": int(np.sum(found.events.dur[foreign], dtype=np.float64)),
    }
