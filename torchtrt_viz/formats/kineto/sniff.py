"""Whether a file is trace-event JSON, told by how it begins."""

from __future__ import annotations

import re

__all__ = ["begins_merged", "is_kineto_header", "looks_like_trace_events"]

_SPACE = b" \t\r\n"
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:')
_PHASE = re.compile(rb'"ph"\s*:\s*"')
# Keys that stand before the events in the files of one writer or another.
_KNOWN_KEY = re.compile(
    rb'"(?:schemaVersion|deviceProperties|distributedInfo|displayTimeUnit|traceName|trace_id|record_shapes|with_stack'
    rb'|profile_memory|baseTimeNanoseconds|otherData|systemTraceEvents|stackFrames|samples)"\s*:'
)
_KINETO_HEADER = re.compile(rb'\s*\{\s*"schemaVersion"\s*:\s*\d+\s*,')
_WHOLE_HEAD = 1 << 16
# What tools that merge the traces of several ranks put before process ids, and into names of processes.
_MERGED_ID = re.compile(
    rb'"pid"\s*:\s*"(\[[^"\]]{0,80}(?:[Rr]ank|TP|DP|PP|EP)[ _-]?\d[^"\]]{0,80}\]|[Rr]ank[ _-]?\d)'
)
_MERGED_NAME = re.compile(rb'"name"\s*:\s*"\[?([Rr]ank[ _:-]?\d{1,9})(?![0-9A-Za-z])')


def is_kineto_header(head: bytes) -> bool:
    """Tell whether a file begins as Kineto begins its files, which no other writer does."""
    return _KINETO_HEADER.match(head) is not None and _EVENTS_KEY.search(head) is not None


def looks_like_trace_events(head: bytes) -> bool:
    """Tell whether the first bytes of a file begin an object with trace events, or a list of them."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)
    if text.startswith(b"["):
        inner = text[1:].lstrip(_SPACE)
        return inner.startswith(b"{") and _PHASE.search(inner) is not None
    if not text.startswith(b"{"):
        return False
    if _EVENTS_KEY.search(text):
        return True
    # Everything that was read lies before the events: long properties of devices or process groups.
    return len(head) >= _WHOLE_HEAD and _KNOWN_KEY.search(text) is not None


def begins_merged(head: bytes) -> bool:
    """Tell whether the first bytes of a trace-event file are of several ranks merged into one file."""
    if _MERGED_ID.search(head) is not None:
        return True
    return b"process_name" in head and len({found[1] for found in _MERGED_NAME.finditer(head)}) > 1
