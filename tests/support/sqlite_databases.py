"""Small databases for tests: written by sqlite3 itself, with what its file format allows."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["database", "seeds"]


def database(
    path: Path,
    tables: dict[str, tuple[str, Sequence[Sequence[Any]]]],
    *,
    page_size: int = 4096,
    encoding: str = "UTF-8",
    delete_every: int = 0,
    after: Sequence[str] = (),
) -> Path:
    """Write a database: name of the table -> (columns as SQL declares them, rows).

    Parameters
    ----------
    delete_every
        Delete each so-manieth row again, and leave its room to the free list.
    after
        Statements that are executed last.
    """
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA page_size={page_size}")
    connection.execute(f"PRAGMA encoding='{encoding}'")
    connection.execute("PRAGMA auto_vacuum=0")
    for name, (columns, rows) in tables.items():
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
        if rows:
            connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(rows[0]))})', rows)
        if delete_every:
            connection.execute(f'DELETE FROM "{name}" WHERE rowid % {delete_every} = 0')
    for statement in after:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def seeds(folder: Path) -> list[Path]:
    """Write databases of every kind of page and value."""
    folder.mkdir(exist_ok=True)
    values = [(i, i / 3, f"text {i % 5}, op_id = {i}", b"\x00\xff" * (i % 4), None) for i in range(120)]
    long = [(i, "long " * (i * 40), None if i % 2 else b"z" * i * 30) for i in range(12)]
    tables = {
        "a": ("id INTEGER PRIMARY KEY, r REAL, t TEXT, b BLOB, n", values),
        "long": ("i INTEGER, t TEXT, b BLOB", long),
        "empty": ("x, y", []),
    }
    more = (
        "CREATE INDEX by_t ON a(t)",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE long ADD COLUMN later DEFAULT 5",
    )
    return [
        database(folder / "plain.db", tables, page_size=512),
        database(folder / "deleted.db", tables, page_size=1024, delete_every=3, after=more),
        database(folder / "utf16.db", tables, encoding="UTF-16le"),
        database(folder / "empty.db", {}, after=("CREATE TABLE w (k TEXT PRIMARY KEY) WITHOUT ROWID",)),
    ]
