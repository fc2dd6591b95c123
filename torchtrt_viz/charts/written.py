"""How values and names are written in every view."""

from __future__ import annotations

import html
import math
import re

__all__ = ["byte_size", "duration", "escaped", "number", "one_line", "shortened", "trimmed"]

# Control and direction characters.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069]")


def one_line(text: object) -> str:
    """Return text on one line, with a dot for control and direction characters."""
    return " ".join(_UNSEEN.sub("·", str(text)).split())


def escaped(text: object) -> str:
    """Return text as markup that shows exactly this text, on one line."""
    return html.escape(one_line(text), quote=True)


def shortened(text: object, limit: int) -> str:
    """Return text of at most ``limit`` characters; what is too long loses its middle, not its end."""
    line = one_line(text)
    if len(line) <= limit:
        return line
    front = (limit - 1) // 2
    return f"{line[:front]}…{line[len(line) - (limit - 1 - front) :]}"


def duration(ns: float) -> str:
    """Return a duration with four significant digits: 950 ns, 12.35 µs, 1.204 ms, 2.5 s."""
    if ns < 0:
        return "-" + duration(-ns)
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{trimmed(f'{ns / size:.4g}')} {unit}"
    return f"{trimmed(f'{ns:.4g}')} ns"


def number(value: float) -> str:
    """Return a number with up to five significant digits, without an exponent where it can be avoided."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1e-3 <= abs(value) < 1e7:
        return trimmed(f"{value:,.{max(0, 4 - math.floor(math.log10(abs(value))))}f}")
    return f"{value:.4g}"


def byte_size(value: float) -> str:
    """Return a number of bytes with a binary unit."""
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(value) >= size:
            return f"{trimmed(f'{value / size:.4g}')} {unit}"
    return f"{int(value)} B"


def trimmed(text: str) -> str:
    """Return a written number without zeros at its end."""
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
