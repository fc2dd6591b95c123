"""The reader of SQLite databases gives what sqlite3 gives, and takes no harm from what it would refuse."""

from __future__ import annotations

import gzip
import sqlite3
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlite_databases import database

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.sqlite.database import Database

ROWS = [(1, 10), (2, 20), (3, 30)]


def rows_of(opened: Database, table: str) -> list[tuple[Any, ...]]:
    """All rows, each value with the type that it has in the file."""
    columns = list(opened.tables[table].columns)
    count = opened.read(table, {}).count
    found = opened.pick(table, columns, np.arange(count, dtype=np.int64))
    return [tuple(row.get(name) for name in columns) for row in found]


def told_by_sqlite3(path: Path, table: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f'SELECT * FROM "{table}"').fetchall()
    finally:
        connection.close()


def opened(path: Path) -> Database:
    return Database(Source(path))


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, -1, 127, 128, -129, 2**23, -(2**31), 2**47, -(2**47) - 1, 2**63 - 1]),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    st.binary(max_size=20),
    st.integers(0, 40_000).map(lambda size: "x" * size),
    st.integers(0, 3_000).map(lambda size: b"\xff" * size),
)


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=60),
    page_size=st.sampled_from([512, 1024, 4096, 65536]),
    encoding=st.sampled_from(["UTF-8", "UTF-16le", "UTF-16be"]),
    delete_every=st.sampled_from([0, 2, 3]),
)
def test_rows_are_those_that_sqlite3_reads(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[Any, ...]],
    page_size: int,
    encoding: str,
    delete_every: int,
) -> None:
    path = tmp_path_factory.getbasetemp() / "generated.db"
    tables = {"t": ("a, b INTEGER, c TEXT", rows), "other": ("x INTEGER PRIMARY KEY, y REAL", ROWS)}
    database(path, tables, page_size=page_size, encoding=encoding, delete_every=delete_every)
    found = opened(path)
    for table in tables:
        assert rows_of(found, table) == told_by_sqlite3(path, table)
    assert found.damages == {}


def test_a_large_table_has_pages_of_pages(tmp_path: Path) -> None:
    rows = [(i * 7 % 1000, i / 8, f"name {i % 13}") for i in range(20_000)]
    path = database(tmp_path / "a.db", {"t": ("i INTEGER, r REAL, t TEXT", rows)}, page_size=512)
    read = opened(path).read("t", {"i": "integer", "r": "real", "t": "text", "absent": "integer"})
    assert read.count == len(rows)
    assert list(read.columns) == ["i", "r", "t"]
    assert read.columns["i"].values.tolist() == [row[0] for row in rows]
    assert read.columns["r"].values.tolist() == [row[1] for row in rows]
    text = read.columns["t"]
    assert [text.texts[code] for code in text.values] == [row[2] for row in rows]
    assert len(text.texts) == 13


def test_values_of_another_type_are_missing_and_counted(tmp_path: Path) -> None:
    values = [(1,), (None,), (2.5,), ("three",), (b"4",)]
    read = opened(database(tmp_path / "a.db", {"t": ("v", values)})).read("t", {"v": "integer"})
    assert read.columns["v"].filled(-9).tolist() == [1, -9, -9, -9, -9]
    assert read.columns["v"].misfits == 3
    read = opened(tmp_path / "a.db").read("t", {"v": "real"})
    assert read.columns["v"].values.tolist()[:3] == [1.0, pytest.approx(np.nan, nan_ok=True), 2.5]
    read = opened(tmp_path / "a.db").read("t", {"v": "text"})
    assert [code >= 0 for code in read.columns["v"].values] == [False, False, False, True, False]


def test_texts_are_cut_before_marks(tmp_path: Path) -> None:
    texts = [("mm, seq = 1",), ("mm, op_id = 2",), ("a, b",), (None,), ("mm",)]
    found = opened(database(tmp_path / "a.db", {"t": ("v TEXT", texts)}))
    column = found.read("t", {"v": "text"}, (", seq = ", ", op_id = ")).columns["v"]
    assert [None if code < 0 else column.texts[code] for code in column.values] == [
        "mm",
        "mm",
        "a, b",
        None,
        "mm",
    ]
    assert column.cut.tolist() == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("columns", "names", "first"),
    [
        ("id INTEGER PRIMARY KEY, v", ["id", "v"], 7),
        ('"id" integer primary key asc, v', ["id", "v"], 7),
        ("id INTEGER, v, PRIMARY KEY (id)", ["id", "v"], 7),
        ("id INTEGER, v, CONSTRAINT k PRIMARY KEY (id, v)", ["id", "v"], 7),
        ("id INT PRIMARY KEY, v", ["id", "v"], 7),
        ("id INTEGER PRIMARY KEY DESC, v", ["id", "v"], 7),
        ("[the id] INTEGER -- a comment, with a comma\n, `v``s` TEXT /* , */", ["the id", "v`s"], 7),
        ("start INTEGER NOT NULL, end DECIMAL(10, 2) DEFAULT (1 + 2) CHECK (end > 0)", ["start", "end"], 7),
        ('\'a\' VARCHAR(5), "b ""c""" UNSIGNED BIG INT', ["a", 'b "c"'], 7),
        ("g AS (v * 2), v, h INTEGER GENERATED ALWAYS AS (v + 1) STORED", ["v", "h"], 7),
    ],
)
def test_columns_are_found_in_their_definition(
    tmp_path: Path, columns: str, names: list[str], first: int
) -> None:
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE t ({columns})")
    given = ", ".join(f'"{name}"'.replace('b "c"', 'b ""c""') for name in names if name != "h")
    values = [(first, 8)[: 1 if "h" in names else 2]]
    connection.executemany(f"INSERT INTO t ({given}) VALUES ({', '.join('?' * len(values[0]))})", values)
    connection.commit()
    told = connection.execute("SELECT * FROM t").fetchall()
    connection.close()
    found = opened(path)
    assert list(found.tables["t"].columns) == names
    stored = [row[-len(names) :] if "h" in names else row for row in told]
    assert rows_of(found, "t") == stored


def test_a_column_that_came_later_is_missing_in_earlier_rows(tmp_path: Path) -> None:
    after = ("ALTER TABLE t ADD COLUMN late INTEGER", "INSERT INTO t VALUES (4, 40, 5)")
    path = database(tmp_path / "a.db", {"t": ("a, b", ROWS)}, after=after)
    assert opened(path).read("t", {"late": "integer"}).columns["late"].filled().tolist() == [-1, -1, -1, 5]


def test_a_default_of_a_later_column_is_not_applied_and_counted(tmp_path: Path) -> None:
    path = database(tmp_path / "a.db", {"t": ("a", [(1,)])}, after=("ALTER TABLE t ADD COLUMN b DEFAULT 5",))
    assert opened(path).read("t", {"b": "integer"}).columns["b"].misfits == 1


def test_what_is_no_table_of_rows_is_closed(tmp_path: Path) -> None:
    after = (
        "CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID",
        "CREATE VIEW seen AS SELECT * FROM t",
        "CREATE INDEX i ON t(a)",
    )
    found = opened(database(tmp_path / "a.db", {"t": ("a, b", ROWS)}, after=after))
    assert {name: table.readable for name, table in found.tables.items()} == {"t": True, "w": False}


def test_nothing_in_the_file_is_executed(tmp_path: Path) -> None:
    after = (
        "CREATE TABLE log (v)",
        "CREATE TRIGGER on_read AFTER INSERT ON t BEGIN INSERT INTO log VALUES (1); END",
    )
    path = database(tmp_path / "a.db", {"t": ("a, b", ROWS)}, after=after)
    before = path.read_bytes()
    assert rows_of(opened(path), "t") == ROWS
    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.db"]


def test_a_compressed_database_is_read_in_memory(tmp_path: Path) -> None:
    path = database(tmp_path / "a.db", {"t": ("a, b", ROWS)})
    packed = tmp_path / "a.db.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert rows_of(opened(packed), "t") == ROWS


def test_a_log_beside_the_database_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (a, b)")
    connection.execute("PRAGMA wal_checkpoint")
    connection.executemany("INSERT INTO t VALUES (?, ?)", ROWS)
    connection.commit()
    options = LoadOptions(strict=True)
    found = opened(path)  # while the log has not been taken over yet
    found.report(options)
    assert rows_of(found, "t") == []
    assert [warning.code for warning in options.warnings] == ["database_log"]
    connection.close()


# -- damage ------------------------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path) -> bytearray:
    rows = [(i, f"text {i}") for i in range(3000)]
    return bytearray(
        database(tmp_path / "a.db", {"t": ("i INTEGER, t TEXT", rows)}, page_size=1024).read_bytes()
    )


def root_of(data: bytes) -> int:
    """Offset of the first page of the table, which holds pages of pages."""
    at = 1024 * (struct.unpack_from(">B", data, 1024)[0] == 5)
    assert data[at] == 5
    return at


def read_damaged(data: bytes, path: Path) -> tuple[list[tuple[Any, ...]], LoadOptions]:
    path.write_bytes(data)
    found = opened(path)
    found.read("t", dict.fromkeys(found.tables["t"].columns, "any"))
    rows = rows_of(found, "t")
    options = LoadOptions()
    found.report(options)
    with pytest.raises(TraceFormatError) as raised:
        found.report(LoadOptions(strict=True))
    assert raised.value.offset is not None
    return rows, options


def test_of_a_truncated_database_the_whole_pages_are_read(large: bytearray, tmp_path: Path) -> None:
    rows, options = read_damaged(large[: len(large) * 2 // 3 + 100], tmp_path / "b.db")
    assert 1000 < len(rows) < 3000
    assert rows == [(i, f"text {i}") for i in range(len(rows))]
    assert "truncated" in [warning.code for warning in options.warnings]


def test_pages_in_a_circle_are_read_once(large: bytearray, tmp_path: Path) -> None:
    root = root_of(large)
    first = struct.unpack_from(">H", large, root + 12)[0]
    struct.pack_into(">I", large, root + first, root // 1024 + 1)  # the first child is the page itself
    rows, options = read_damaged(large, tmp_path / "b.db")
    assert len(rows) < 3000
    assert [warning.code for warning in options.warnings] == ["database_revisited"]


def test_a_row_that_claims_more_than_there_is_is_left_out(large: bytearray, tmp_path: Path) -> None:
    leaf = next(at for at in range(root_of(large) + 1024, len(large), 1024) if large[at] == 13)
    cell = leaf + struct.unpack_from(">H", large, leaf + 8)[0]
    large[cell : cell + 3] = b"\xff\xff\x7f"
    rows, options = read_damaged(large, tmp_path / "b.db")
    assert len(rows) == 2999
    assert [warning.code for warning in options.warnings] == ["database_cell"]
    assert options.warnings[0].offset == cell


def test_rows_that_lie_over_one_another_end_their_page(large: bytearray, tmp_path: Path) -> None:
    leaf = next(at for at in range(root_of(large) + 1024, len(large), 1024) if large[at] == 13)
    count = struct.unpack_from(">H", large, leaf + 3)[0]
    lowest = min(struct.unpack_from(f">{count}H", large, leaf + 8))
    room = (lowest - 8) // 2
    struct.pack_into(">H", large, leaf + 3, room)
    struct.pack_into(f">{room}H", large, leaf + 8, *([lowest] * room))
    rows, _ = read_damaged(large, tmp_path / "b.db")
    assert len(rows) < 3000 - count + 1024 // 8


def test_a_missing_rest_of_a_long_row_leaves_its_value_out(tmp_path: Path) -> None:
    path = database(
        tmp_path / "a.db", {"t": ("i INTEGER, t TEXT", [(1, "x" * 5000), (2, "y")])}, page_size=1024
    )
    data = path.read_bytes()
    rows, options = read_damaged(data[:-1024], tmp_path / "b.db")
    assert rows == [(1, None), (2, "y")]
    assert {warning.code for warning in options.warnings} == {"truncated", "database_overflow"}


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"SQLite format 3\0", "stops before its first page"),
        (b"SQLite format 4\0" + bytes(500), "not an SQLite database"),
        (b"SQLite format 3\0\x10\x01" + bytes(4096), "size of the database's pages"),
        (b"SQLite format 3\0\x10\0\1\1\xff" + bytes(4096), "list of tables is damaged"),
        (b"SQLite format 3\0\x10\0" + bytes(38) + b"\0\0\0\x09" + bytes(4096), "encoding"),
    ],
)
def test_what_is_no_database_is_refused(data: bytes, what: str) -> None:
    with pytest.raises(TraceFormatError, match=what) as raised:
        Database(Source("a.db", data=data))
    assert raised.value.offset is not None
    assert raised.value.hint


def test_a_copy_elsewhere_reads_the_file_again(tmp_path: Path) -> None:
    import pickle

    path = database(tmp_path / "a.db", {"t": ("a, b", ROWS)})
    copy = pickle.loads(pickle.dumps(opened(path)))
    assert rows_of(copy, "t") == ROWS
    copy = pickle.loads(pickle.dumps(copy))
    path.write_bytes(path.read_bytes() + bytes(4096))
    with pytest.raises(TraceFormatError, match="changed"):
        rows_of(copy, "t")
