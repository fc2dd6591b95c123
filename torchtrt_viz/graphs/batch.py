"""Sizes of batches and modes as engines write them into names: of captures, and of steps that replay them."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["captured_as", "captured_in_file", "fits", "replayed"]

_CAPTURE = re.compile(r"capture_(?P<batch>\d{1,7})_(?P<mode>[A-Za-z]\w*)")
_CAPTURE_FILE = re.compile(r"(?:^|[_-])bs_?(?P<batch>\d{1,7})(?=[_.-])")
#: vLLM: the tokens of requests in prefill and in decode; with roofline annotations their sum stands first.
_TOKENS = re.compile(r"execute_(?:(?P<all>\d{1,7})_)?context_\d+\((?P<context>\d{0,7})[^)]*\)")
_GENERATION = re.compile(r"generation_\d+\((?P<generation>\d{0,7})[^)]*\)")
_DECODE = re.compile(r"\bbs=(?P<batch>\d{1,7})\b")


def captured_as(name: str) -> tuple[int, str] | None:
    """Return batch size and mode as a capture's range states them (``capture_32_FULL``), None for another."""
    found = _CAPTURE.fullmatch(name)
    return None if found is None else (int(found["batch"]), found["mode"])


def captured_in_file(name: str) -> int | None:
    """Return the batch size out of a file's name (``bs_32_rank0.json.gz``); None where it has none."""
    found = _CAPTURE_FILE.search(name)
    return None if found is None else int(found["batch"])


def replayed(name: str) -> int | None:
    """Return the batch size (tokens of a step) that an engine's range states; None where it states none."""
    decode = _DECODE.search(name)
    if decode is not None:
        return int(decode["batch"])
    tokens = _TOKENS.search(name)
    if tokens is None:
        return None
    if tokens["all"]:
        return int(tokens["all"])
    generation = _GENERATION.search(name)
    counts = (tokens["context"], generation["generation"] if generation else "")
    return sum(int(count) for count in counts if count) or None


def fits(captured: int, step: int, sizes: Collection[int]) -> bool:
    """Whether a graph of batch size ``captured`` serves a step of ``step``.

    A graph serves steps up to its size, and an engine takes the smallest that does. Which it has is told by
    the captures that are there (``sizes``); a single one serves a smaller step only where it is the next of
    the sizes that engines capture: 1, 2, 4 and multiples of 8, beyond 256 of 16.
    """
    if captured == step:
        return True
    if captured < step or any(step <= size < captured for size in sizes):
        return False
    return len(set(sizes)) > 1 or captured in _next_sizes(step)


def _next_sizes(step: int) -> set[int]:
    usual = next((size for size in (1, 2, 4) if size >= step), -(-step // 8) * 8)
    return {usual, -(-step // 16) * 16} if step > 256 else {usual}
