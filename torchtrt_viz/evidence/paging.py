"""A document within a number of bytes: what does not fit is left for the next one, which a cursor names."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from torchtrt_viz.errors import OptionError
from torchtrt_viz.evidence.envelope import Evidence, Sheet
from torchtrt_viz.evidence.values import Bound, dumps

__all__ = ["SMALLEST", "document"]

SMALLEST = 8192
"""Bytes; less does not hold the frame of a document."""

_TEXTS = (2000, 600, 200, 80)  # longest texts that are tried, until something fits
_ROWS = 256  # converted at a time
_ROOM = 512  # for the cursor and the closing brackets


def document(
    found: Evidence, *, budget: int | None = None, cursor: str | None = None, text_limit: int | None = None
) -> bytes:
    """Return the document as JSON.

    Without a budget it holds everything. With one it holds whole rows of the tables in their order, as many
    as fit; ``budget.cursor`` then names what follows. Long texts are cut in their middle then, and warnings
    and the meanings of columns are left out where they take too much room.

    Raises
    ------
    OptionError
        For a budget below `SMALLEST`, and a cursor that is none, or is of other files or arguments.
    """
    if budget is None and cursor is None:
        return dumps(_whole(found, text_limit), indent=True)
    if budget is not None and budget < SMALLEST:
        raise OptionError("budget", budget, f"at least {SMALLEST} bytes")
    begin = (0, 0) if cursor is None else _begin(cursor, found)
    if budget is None:
        return dumps(_page(found, None, begin, text_limit), indent=True)
    for limit in sorted({*_TEXTS, text_limit or _TEXTS[0]}, reverse=True):
        if limit > (text_limit or limit):
            continue
        made = _page(found, budget, begin, limit)
        if made is not None:
            written = dumps(made)
            if len(written) <= budget:
                return written
    raise OptionError("budget", budget, "more bytes: not even one row fits")


def _whole(found: Evidence, text_limit: int | None) -> dict[str, Any]:
    made = _page(found, None, (0, 0), text_limit)
    assert made is not None
    return made


def _page(
    found: Evidence, budget: int | None, begin: tuple[int, int], text_limit: int | None
) -> dict[str, Any] | None:
    """Return the document from a table's row on; None where no row fits."""
    bound = Bound(text_limit)
    made = found.shell(bound)
    left_out = _trim(made, budget, later=begin != (0, 0))
    room = None if budget is None else budget - _size(made) - _ROOM
    if room is not None and room < 0:
        return None
    first, row = begin
    reached: tuple[int, int] | None = None
    rows_left = 0
    for number in range(first, len(found.tables)):
        sheet = found.tables[number]
        start = row if number == first else 0
        if reached is not None:
            rows_left += len(sheet.frame)
            continue
        head = sheet.head()
        if any(other.name == sheet.name for other in found.tables[first:number]):
            for column in head["columns"]:  # said before
                column["meaning"] = None
        for key in ("title", "coverage"):
            head[key] = None if head[key] is None else bound.text(head[key])
        head["first_row"] = start
        stop, room = _fill(sheet, head, start, room, bound)
        if stop is None or (stop == start and len(sheet.frame) > start):
            if not any(len(table["rows"]) for table in made["tables"]) and number == first:
                return None
            reached, rows_left = (number, start), len(sheet.frame) - start
            continue
        made["tables"].append(head)
        if stop < len(sheet.frame):
            reached, rows_left = (number, stop), len(sheet.frame) - stop
    made["budget"] = {
        "bytes": budget,
        "complete": reached is None and begin == (0, 0) and not left_out and not bound.cut,
        "cursor": None if reached is None else _cursor(reached, found),
        "rows_left": rows_left,
        "texts_cut": bound.cut,
        "left_out": left_out,
    }
    return made


def _trim(made: dict[str, Any], budget: int | None, *, later: bool) -> dict[str, int]:
    """Leave out what may not take the room of the tables; return how many of what."""
    out: dict[str, int] = {}
    if budget is None:
        return out
    for key, share in (("warnings", 0 if later else 8), ("files", 0 if later else 8)):
        entries = made[key]
        while entries and (not share or _size(entries) > budget // share):
            keep = len(entries) // 2 if share else 0
            out[key] = out.get(key, 0) + len(entries) - keep
            del entries[keep:]
    for source in made["sources"]:
        several = source.get("files")
        if several and _size(several) > budget // 16:
            out["files of sources"] = len(several) - 1
            del several[1:]
    return out


def _fill(
    sheet: Sheet, head: dict[str, Any], start: int, room: int | None, bound: Bound
) -> tuple[int | None, int | None]:
    """Add rows to a table while they fit; return the row after the last, None where its head does not fit."""
    total = len(sheet.frame)
    if room is None:
        head["row_ids"], head["rows"] = sheet.rows(start, total, bound)
        return total, None
    if _size(head) + 1 > room // 2:
        for column in head["columns"]:
            column["meaning"] = None
    room -= _size(head) + 1
    if room < 0:
        return None, 0
    at = start
    while at < total:
        ids, rows = sheet.rows(at, min(at + _ROWS, total), bound)
        for label, values in zip(ids, rows, strict=True):
            room -= _size(label) + _size(values) + 2
            if room < 0:
                return at, 0
            head["row_ids"].append(label)
            head["rows"].append(values)
            at += 1
    return at, room


def _size(value: Any) -> int:
    return len(dumps(value))


# -- cursors -----------------------------------------------------------------------------------------------


def _mark(found: Evidence) -> str:
    """Return what tells this document from that of other arguments, or of files that have changed since."""
    shell = found.shell(Bound())
    said = dumps([shell["command"], shell["arguments"], [s.get("expression") for s in shell["sources"]]])
    shapes = dumps([[sheet.name, *sheet.frame.shape] for sheet in found.tables])
    return hashlib.blake2b(said + shapes, digest_size=6).hexdigest()


def _cursor(at: tuple[int, int], found: Evidence) -> str:
    return base64.urlsafe_b64encode(f"{at[0]}.{at[1]}.{_mark(found)}".encode()).decode().rstrip("=")


def _begin(cursor: str, found: Evidence) -> tuple[int, int]:
    wanted = "the cursor of an earlier answer to the same question, about files that have not changed"
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        table, row, mark = text.split(".")
        at = int(table), int(row)
    except (ValueError, binascii.Error) as error:
        raise OptionError("cursor", cursor[:40], wanted) from error
    if mark != _mark(found) or not 0 <= at[0] < len(found.tables) or at[1] < 0:
        raise OptionError("cursor", cursor[:40], wanted)
    return at
