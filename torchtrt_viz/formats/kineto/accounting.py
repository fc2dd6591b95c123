"""What became of every event of a trace-event file, and who wrote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from torchtrt_viz.formats.producers.rules import Place

__all__ = ["accounting_of", "producers_of", "unread_data"]

#: Top-level keys that hold events in a form of their own (Trace Event Format); a value has more than 2 bytes.
_DATA_KEYS = ("samples", "systemTraceEvents", "powerTraceAsString")
_EMPTY_BYTES = 2

_REPAIRED = ("damaged_event",)
_LEFT_OUT = ("lost_event", "not_an_event")


def accounting_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``trace.meta["accounting"]`` of what the decoder found.

    ``in_file`` is the number of elements in the lists of events; it equals ``read`` and what was left out.
    ``keys_passed_over`` are top-level keys beside it with the bytes of their values: descriptions, and data
    of other forms. ``repaired`` is part of ``read``. ``rows`` says what the events became: a begin and its
    end are one span.
    """
    counts, notes = found["counts"], found["notes"]

    def noted(*codes: str) -> int:
        return sum(int(notes[code][0]) for code in codes if code in notes)

    left_out = {code: int(notes[code][0]) for code in _LEFT_OUT if code in notes}
    unread = int(counts["left_out"])
    ends = noted("end_without_begin")
    if ends:
        left_out["end_without_begin"] = ends
    if unread:
        left_out["no_usable_time_or_unknown_phase"] = unread
    spans, instants = found["spans"], found["instants"]
    return {
        "unit": "events",
        "in_file": int(found["events"]) + noted(*_LEFT_OUT),
        "read": int(found["events"]) - unread - ends,
        "repaired": noted(*_REPAIRED),
        "left_out": left_out,
        "unread": {},
        "keys_passed_over": _bytes_by_key(found),
        "events": {name: int(number) for name, number in counts.items()},
        "rows": {
            "spans": len(spans["track"]),
            "instants": len(instants["track"]),
            "counters": len(found["counters"]["code"]),
            "flows": len(found["flows"]["id"]),
        },
        "span_ns": int(np.sum(spans["dur_ns"], dtype=np.float64)),
    }


def _bytes_by_key(found: Mapping[str, Any]) -> dict[str, int]:
    """Return top-level keys that are not read, with the bytes of their values."""
    out: Counter[str] = Counter()
    for key, size in found["skipped_keys"]:
        out[key] += size
    return dict(out)


def unread_data(found: Mapping[str, Any]) -> dict[str, int]:
    """Return the keys that hold events and are not read, with the bytes of their values."""
    skipped = _bytes_by_key(found)
    return {key: skipped[key] for key in _DATA_KEYS if skipped.get(key, 0) > _EMPTY_BYTES}


def producers_of(places: Sequence[Place | None], placed: int, derived: int) -> dict[str, Any]:
    """Return who names rows in this file, and what their names decided."""
    rows = Counter(place.producer for place in places if place is not None)
    return {"rows": dict(rows), "placed_by_name": placed, "derived": derived}
