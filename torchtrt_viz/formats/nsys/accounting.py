"""What became of every row of every table of an export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.formats.nsys.vocabulary import describes
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    from torchtrt_viz.formats.nsys.events import Events
    from torchtrt_viz.formats.nsys.export import Export

__all__ = ["accounting_of", "unread_tables"]

_MOST_NAMED = 12


def accounting_of(
    export: Export,
    read: Mapping[str, tuple[int, int]],
    events: Events,
    rows: Mapping[str, int],
    span_ns: Any,
) -> dict[str, Any]:
    """Return ``trace.meta["accounting"]``.

    ``in_file`` is the number of rows of all tables (as far as their pages could be read), which equals
    ``read``, the sum of ``left_out`` and the sum of ``unread``. ``tables`` has the part of ``read`` by table;
    ``bookkeeping`` the part that describes the recording and becomes no row.

    Parameters
    ----------
    read
        Table of events -> (rows, rows lost to damage).
    rows
        Frame -> number of its rows.
    """
    described: dict[str, int] = {}
    unread: dict[str, int] = {}
    lost = sum(lost for _, lost in read.values())
    for table in export.tables:
        if table in read:
            continue
        found = export.read(table, {})
        lost += found.lost
        if found.count:
            (described if describes(table) else unread)[table] = found.count
    left_out = dict(events.left_out)
    if lost:
        left_out["damaged_row"] = lost
    used = sum(count for count, _ in read.values()) - sum(events.left_out.values())
    bookkeeping = sum(described.values())
    return {
        "unit": "rows",
        "in_file": used + bookkeeping + sum(left_out.values()) + sum(unread.values()),
        "read": used + bookkeeping,
        "repaired": 0,
        "left_out": left_out,
        "unread": unread,
        "bookkeeping": described,
        "tables": {table: count for table, (count, _) in read.items()},
        "rows": dict(rows),
        "span_ns": int(np.sum(span_ns, dtype=np.float64)),
    }


def unread_tables(accounting: Mapping[str, Any], closed: list[str], path: str) -> list[Repair]:
    """Say which tables hold events that are not read, or cannot be."""
    out = []
    unread = sorted(accounting["unread"].items(), key=lambda item: (-item[1], item[0]))
    if unread:
        words = ", ".join(f"{name} {count}" for name, count in unread[:_MOST_NAMED])
        if len(unread) > _MOST_NAMED:
            words += f", and {len(unread) - _MOST_NAMED} more"
        number = sum(count for _, count in unread)
        out.append(Repair("unread_tables", f"tables that are not read: {words}", path, count=number))
    if closed:
        words = ", ".join(closed[:_MOST_NAMED])
        text = f"tables that cannot be read (without row ids, virtual, or of a damaged definition): {words}"
        out.append(Repair("closed_tables", text, path, count=len(closed)))
    return out
