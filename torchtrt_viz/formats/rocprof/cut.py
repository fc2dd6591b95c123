"""A JSON document that stops in the middle, cut behind its last whole record and closed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["closed"]

_QUOTE, _ESCAPE = ord('"'), ord("\\")
_OPEN, _CLOSE = (ord("{"), ord("[")), (ord("}"), ord("]"))
_PARTNER = {ord("{"): b"}", ord("["): b"]"}
_BLOCK = 1 << 24
_DEEPEST = 512
#: The root, the list of processes, and the process: what is open of these is closed, never cut away.
_FRAME = 3


def closed(data: bytes) -> tuple[bytes, int] | None:
    """Return the document up to its last whole record, with all brackets closed, and where it was cut.

    None where it holds nothing to keep, or does not end inside of its brackets.
    """
    stack, end = _open_brackets(data)
    if stack is None or not stack:
        return None
    # the outermost record that is not whole: an object in a list below the process
    cut, kept = end, len(stack)
    for at in range(_FRAME, len(stack)):
        if data[stack[at]] == _OPEN[0] and data[stack[at - 1]] == _OPEN[1]:
            cut, kept = stack[at], at
            break
    if kept < _FRAME:
        return None
    text = data[:cut].rstrip(b" \t\r\n").rstrip(b",")
    return text + b"".join(_PARTNER[data[place]] for place in reversed(stack[:kept])), cut


def _open_brackets(data: bytes) -> tuple[list[int] | None, int]:
    """Return the places of the brackets that are open at the end, and behind the last one that was closed.

    None where brackets do not match, or are nested too deep.
    """
    stack: list[int] = []
    end = 0
    inside = escaped = False
    whole = np.frombuffer(data, np.uint8)
    for begin in range(0, len(whole), _BLOCK):
        block = whole[begin : begin + _BLOCK]
        text, inside, escaped = _in_strings(block, inside, escaped)
        at = np.flatnonzero(~text & np.isin(block, (*_OPEN, *_CLOSE)))
        if not len(at):
            continue
        opens = np.isin(block[at], _OPEN)
        depth = np.cumsum(np.where(opens, 1, -1))
        lowest = np.minimum.accumulate(depth[::-1])[::-1]
        down = -int(min(0, depth.min()))
        if down > len(stack):
            return None, 0
        del stack[len(stack) - down :]
        # open to the end of the block: nothing behind it goes below its depth
        staying = opens & (lowest >= depth) & (depth > -down)
        stack += (begin + at[staying]).tolist()
        if len(stack) > _DEEPEST:
            return None, 0
        shut = at[~opens]
        if len(shut):
            end = begin + int(shut[-1]) + 1
    return stack, end


def _in_strings(
    block: NDArray[np.uint8], inside: bool, escaped: bool
) -> tuple[NDArray[np.bool_], bool, bool]:
    """Say which bytes are in strings (or end one), whether the block ends in one, and behind an escape."""
    slashes = np.flatnonzero(block == _ESCAPE)
    quotes = block == _QUOTE
    if escaped and len(block):
        quotes[0] = False
        slashes = slashes[slashes > 0]
    trailing = False
    if len(slashes):
        # of a run of escapes every second one stands for itself
        first = np.concatenate([[True], np.diff(slashes) > 1])
        run = np.maximum.accumulate(np.where(first, np.arange(len(slashes)), 0))
        odd = (np.arange(len(slashes)) - run) % 2 == 0
        hit = slashes[odd] + 1
        trailing = bool(len(hit)) and int(hit[-1]) == len(block)
        quotes[hit[hit < len(block)]] = False
    text = (np.cumsum(quotes) + int(inside)) % 2 == 1
    return text, bool(text[-1]) if len(text) else inside, trailing
