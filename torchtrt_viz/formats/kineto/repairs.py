"""In words: what was mended, left out or could not be known in a trace-event file."""

from __future__ import annotations

from collections.abc import Mapping

from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.model.repair import Repair

__all__ = ["report"]

#: Damage: strict loading refuses it.
_DAMAGE = {
    "truncated": "the file stops inside an event; whole events before it were kept",
    "unclosed": "the end of the document is missing",
    "trailing_comma": "commas without an event behind them were passed over",
    "missing_comma": "commas between events were missing",
    "damaged_event": "events with unescaped quotes, stray or missing commas were mended",
    "lost_event": "events that could not be mended were left out",
    "not_an_event": "elements of the list of events that are no events were left out",
    "control_character": "raw control characters inside strings were read as they stand",
    "invalid_utf8": "bytes that are not UTF-8 were replaced by U+FFFD",
    "invalid_escape": "names with unknown escapes keep their text, backslashes included",
    "lone_surrogate": "halves of surrogate pairs in names were replaced by U+FFFD",
    "byte_order_mark": "the byte order mark was passed over",
    "repeated_events_key": "the file has several lists of events; all were read",
    "damaged_header": "what stands around the list of events is damaged",
    "trailing_data": "what follows the end of the document was ignored",
    "missing_time": "events without a usable time were left out",
    "missing_duration": "events without a duration are instants, state unfinished",
    "invalid_duration": "events whose duration is negative or no usable number are instants, state invalid",
    "end_without_begin": "ends that match no begin were left out",
    "begin_without_end": "begins that match no end are instants, state unfinished",
    "counter_without_value": "counter events without a number were left out",
}

#: What the format allows, and a reader of numbers should know all the same.
_OBSERVED = {
    "unknown_phase": "events of phases that hold no time (objects, memory dumps, ...) were left out",
    "not_finished": "events had not finished when the recording stopped: their durations end there",
    "overlap": "spans overlap another one of their track without lying inside it: they are siblings",
    "zero_time": "events were recorded at time 0 for no time: their real times are unknown",
}


def report(notes: Mapping[str, tuple[int, int]], path: str, options: LoadOptions) -> None:
    """Record what the decoder noted: (how often, byte offset of the first) by code.

    Raises
    ------
    TraceFormatError
        For damage, when ``options.strict`` is set.
    """
    for code, message in _DAMAGE.items():
        if code in notes:
            count, offset = notes[code]
            options.repaired(Repair(code, message, path, offset, count))
    for code, message in _OBSERVED.items():
        if code in notes:
            count, offset = notes[code]
            place = None if code == "overlap" else offset
            options.warnings.append(Repair(code, message, path, place, count))
