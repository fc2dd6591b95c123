"""Values of documents that others wrote: what they should be, or None; lists, or an error that says so."""

from __future__ import annotations

from typing import Any

from torchtrt_viz.errors import TraceFormatError

__all__ = ["finite", "list_of", "text", "whole"]


def text(value: object) -> str | None:
    """Return a text, None for anything else."""
    return value if isinstance(value, str) else None


def whole(value: object, least: int, below: int) -> int | None:
    """Return a whole number from ``least`` up to, not including, ``below``; None for anything else."""
    # true and false are int to Python, and no numbers in JSON
    return value if type(value) is int and least <= value < below else None


def finite(value: object, below: float) -> float | None:
    """Return a number whose size is less than ``below``, None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < below:
        return float(value)  # nan fails the comparison
    return None


def list_of(
    value: object, what: str, name: str, expected: str, *, single: bool = False, hint: str | None = None
) -> list[Any]:
    """Return a document that has to be a list.

    Parameters
    ----------
    what
        What it is a list of, for the message: "layer times".
    name
        The file, for the message.
    expected
        Such a list, for the message.
    single
        Take a mapping as the only entry.

    Raises
    ------
    TraceFormatError
        When it is none.
    """
    if single and isinstance(value, dict):
        return [value]
    if not isinstance(value, list):
        raise TraceFormatError(
            f"no {what} in it", path=name, expected=expected, found=type(value).__name__, hint=hint
        )
    return value
