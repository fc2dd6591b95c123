"""What became of every packet of a Perfetto trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from torchtrt_viz.formats.perfetto.packet_kinds import BOOKKEEPING, EVENT_TYPES, kind_of

__all__ = ["accounting_of", "unread_in_words"]

_LEGACY = "legacy_event of phase"

Counts = Mapping[Any, tuple[int, int]]


def accounting_of(found: Mapping[str, Any], rows: Mapping[str, int], spans_dur_ns: Any) -> dict[str, Any]:
    """Return ``trace.meta["accounting"]``.

    ``in_file`` is the number of whole packets, those inside compressed packets in their place. It equals
    ``read``, the sum of ``left_out`` and the sum of ``unread``. ``bookkeeping`` is the part of ``read`` that
    describes the recording and becomes no row. ``bytes`` is the same in bytes, and what stands outside of
    packets. ``rows`` says what the packets became: a begin and its end are one span.

    Parameters
    ----------
    found
        The decoder's counts: (packets, bytes) by field or problem.
    rows
        Frame -> number of its rows.
    spans_dur_ns
        Durations of the spans.
    """
    read, unread = found["read"], found["unread"]
    bookkeeping = {
        **{field: count for field, count in read.items() if field in BOOKKEEPING},
        **{field: count for field, count in unread.items() if field in BOOKKEEPING},
    }
    left_out = dict(found["left_out"])
    lost_ends = found["lost_ends"]
    if lost_ends[0]:
        left_out["end_without_begin"] = lost_ends
    named = _unread(found)
    read_packets, read_bytes = _total(read)
    extra = [count for field, count in unread.items() if field in BOOKKEEPING]
    read_packets += sum(count[0] for count in extra) - lost_ends[0]
    read_bytes += sum(count[1] for count in extra) - lost_ends[1]
    left_packets, left_bytes = _total(left_out)
    unread_packets, unread_bytes = _total(named)
    outside = _total(found["other_fields"])[1]
    return {
        "unit": "packets",
        "in_file": read_packets + left_packets + unread_packets,
        "read": read_packets,
        "repaired": 0,
        "left_out": {code: count[0] for code, count in left_out.items()},
        "unread": {name: count[0] for name, count in named.items()},
        "bookkeeping": {kind_of(field): count[0] for field, count in bookkeeping.items()},
        "packets": {kind_of(field): count[0] for field, count in read.items()},
        "bytes": {
            "in_file": found["bytes"],
            "read": read_bytes,
            "left_out": left_bytes,
            "unread": unread_bytes,
            "outside_packets": outside,
            "cut": found["cut_bytes"],
        },
        "rows": dict(rows),
        "span_ns": int(np.sum(spans_dur_ns, dtype=np.float64)),
    }


def _total(counts: Counts) -> tuple[int, int]:
    return sum(count[0] for count in counts.values()), sum(count[1] for count in counts.values())


def _unread(found: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Name what holds data and was not read."""
    return {
        **{kind_of(field): count for field, count in found["unread"].items() if field not in BOOKKEEPING},
        **{
            f"track_event of type {number} ({EVENT_TYPES.get(number, 'unknown')})": count
            for number, count in found["unread_events"].items()
        },
        **{f"{_LEGACY} {phase}": count for phase, count in found["unread_phases"].items()},
    }


def unread_in_words(accounting: Mapping[str, Any], most: int = 12) -> tuple[str, int]:
    """Return the kinds of packet that were not read, each with its number, and their sum.

    Legacy events of phases that are not read have a warning of their own.
    """
    found = [(name, number) for name, number in accounting["unread"].items() if not name.startswith(_LEGACY)]
    unread = sorted(found, key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{name} {number}" for name, number in unread[:most])
    if len(unread) > most:
        words += f", and {len(unread) - most} more kinds"
    return words, sum(number for _, number in unread)
