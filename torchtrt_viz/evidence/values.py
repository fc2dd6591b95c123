"""Values of frames as strict JSON, and texts within a bound.

Missing values are null. Integers are written whole, beyond 2^53 too: a reader that makes doubles of them
loses digits. JSON has no infinity; it is the text "Infinity" or "-Infinity". Characters that nobody sees, or
that turn the direction of writing, are written as escapes, which any reader of JSON turns back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

__all__ = ["Bound", "dumps", "plain"]

_DEEPEST = 8
# C1 controls, soft hyphen, zero-width and direction characters, line separators, byte order mark, tags and
# variation selectors: nobody sees them in a terminal or a prompt. orjson escapes those below the blank.
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff]"
)


class Bound:
    """The longest text that a document may hold, and how many were cut for it.

    Attributes
    ----------
    limit
        Characters; None: any.
    cut
        Texts that were longer.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.cut = 0

    def text(self, value: str) -> str:
        """Return the text, its middle left out where it is too long: names differ at both ends."""
        value = value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
        if self.limit is None or len(value) <= self.limit:
            return value
        self.cut += 1
        left = len(value) - self.limit
        tail = self.limit // 3
        return f"{value[: self.limit - tail]} (... {left} characters ...) {value[len(value) - tail :]}"


def plain(value: Any, bound: Bound, depth: int = 0) -> Any:
    """Return a value of a frame, or of ``trace.meta``, as JSON has it."""
    if isinstance(value, str):
        return bound.text(str(value))  # numpy and enums have strings, integers and floats of their own
    if value is None or isinstance(value, bool):
        return value
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas' own; comparing them raises
        return None
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else str(int(value))
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        if depth >= _DEEPEST:
            return bound.text(str(value))
        return {bound.text(str(key)): plain(part, bound, depth + 1) for key, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        if depth >= _DEEPEST:
            return bound.text(str(value))
        return [plain(part, bound, depth + 1) for part in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bound.text(bytes(value).hex())
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:  # a number of numpy
        return plain(value.item(), bound, depth)
    return bound.text(str(value))


def dumps(document: Any, *, indent: bool = False) -> bytes:
    """Return a document of plain values as UTF-8; what cannot be seen in it is escaped."""
    written = orjson.dumps(document, option=orjson.OPT_INDENT_2 if indent else 0).decode()
    return _UNSEEN.sub(_escape, written).encode()


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
