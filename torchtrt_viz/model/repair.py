"""What a loader mended, left out or could not know."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Repair"]


@dataclass(frozen=True)
class Repair:
    """Something that a loader mended, left out or could not know.

    Attributes
    ----------
    code
        Short stable name of the kind of repair ("truncated", "invalid_duration", "wrong_etrecord", ...).
    message
        One sentence for a reader.
    path
        File, or ``archive!member``.
    offset
        Byte offset in the uncompressed content, None where it has no single place.
    count
        How often it was done.
    """

    code: str
    message: str
    path: str | None = None
    offset: int | None = None
    count: int = 1

    def __str__(self) -> str:
        place = "" if self.path is None else f"{self.path}: "
        at = "" if self.offset is None else f" (byte {self.offset})"
        times = "" if self.count == 1 else f" [{self.count} times]"
        return f"{place}{self.message}{at}{times}"
