"""Names without what a recorder or a build adds to them, and what is another in the next run."""

from __future__ import annotations

import re

__all__ = ["CONTENT_HASH", "lasting_name"]

CONTENT_HASH = re.compile(r"\b[0-9a-f]{16}-(?=.)")
"""A stable engine id is its content's hash, then its place: method and delegate index."""

#: Of a step, of a call (NVTX ranges of torch's emit_nvtx), of the memory at which an object of Python lies.
_RUNNING = re.compile(r"(?<=ProfilerStep)#\d+$|, (?:seq|op_id) = \d+|(?<= at 0x)[0-9a-fA-F]+")


def lasting_name(name: str) -> str:
    """Return a name without the numbers that are of one run."""
    return _RUNNING.sub("", name)
