"""Saved traces: everything comes back equal, and nothing half-written or hostile comes back at all."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saved_checks import same_frame, same_trace, same_value
from timeline_traces import model_trace
from trace_builder import Builder

import torchtrt_viz as tv
from torchtrt_viz.errors import OptionError, OutputError, TraceFormatError
from torchtrt_viz.formats.saved import tables, writer
from torchtrt_viz.formats.saved.plain import NotPlain, dumps, from_plain, loads, texts_of, to_plain
from torchtrt_viz.model import schema
from torchtrt_viz.model.arrow_frames import column_from_arrow, to_arrow
from torchtrt_viz.model.schema import EVENTS
from torchtrt_viz.trace import Trace

TABLES = (*(one.name for one in EVENTS), "args", "instant_args", "categories")


def full() -> Trace:
    """One event of every sort, with and without each thing that may be missing."""
    b = Builder()
    main, stream = b.track("main <b>", process="10", thread="7", rank=2), b.stream(5)
    bare = b.track("bare")
    b.span("step", 1_000, 500, main, "step", iteration=3, rank=2, args={"a": [1, 2.5, None], "b": {"c": "ü"}})
    b.span("launch", 1_100, 50, main, "runtime", correlation=9, external_id=4, rank=2)
    b.span("kernel", 1_200, 80, stream, "kernel", correlation=9, args={"grid": (1, 2, 3), "x": math.nan})
    b.span("sum", None, 70, bare, "layer", run_id="engine", args={"big": 2**70, "$odd": b"\x00", 3: "int"})
    b.flow("ac2g", 1, 2, 9)
    b.flow("ac2g", -1, 2)
    b.instant("mark", 1_300, main, why="x")
    b.counter("memory", 1_250, 3.5, main, "B")
    b.counter("load", 1_260, float("nan"), bare)
    frame = pd.DataFrame({"run": [1, 2], "of": pd.Categorical(["x", None]), "t": [(1,), None]})
    repair = tv.Repair("code", "message", "file", 3, 2)
    return b.build(warnings=[repair], runs={"frame": frame, 7: (1, None)}, when=math.inf, missing=pd.NA)


def empty() -> Trace:
    return Trace(spans=schema.SPANS.frame({}), tracks=schema.TRACKS.frame({}))


def one() -> Trace:
    b = Builder()
    b.span("only", 5, 1, b.track("t"))
    return b.build()


@pytest.mark.parametrize("make", [full, empty, one, lambda: model_trace(2, 2)])
def test_everything_comes_back(make: Callable[[], Trace], tmp_path: Path) -> None:
    trace = make()
    folder = trace.save(tmp_path / "run")
    back = tv.load(folder)
    same_trace(trace, back)
    same_trace(trace, tv.load(folder / "saved_trace.json"))
    same_trace(back, tv.load(back.save(tmp_path / "again")))
    for name in ("operators", "kernels", "summary", "questions", "explain"):
        same_frame(getattr(trace, name)(), getattr(back, name)(), name)
    assert back.args.values(np.arange(len(back.spans)), "a")[1] == ([[1, 2.5, None]] if make is full else [])


def test_a_saved_trace_is_found_among_others_and_in_a_zip(tmp_path: Path) -> None:
    folder = full().save(tmp_path / "runs" / "rank2") if (tmp_path / "runs").mkdir() is None else None
    assert folder is not None
    same_trace(full(), tv.load(folder))
    only = tv.load(tmp_path / "runs")
    assert isinstance(only, Trace)
    assert only.meta["rank"] == 2, "the folder's name says it"
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"rank2/{file.name}")
    packed = tv.load(tmp_path / "run.zip")
    same_frame(full().spans, packed.spans, "spans")
    assert packed.args.read() == only.args.read() or math.isnan(packed.args[2]["x"])
    (tmp_path / "many").mkdir()
    for rank in range(2):
        b = Builder()
        b.span(f"work {rank}", 0, 5, b.track("t"))
        b.build(rank=rank).save(tmp_path / "many" / f"part {rank}")
    session = tv.load(tmp_path / "many")
    assert session.ranks["rank"].tolist() == [0, 1]
    assert session[1].spans["name"].tolist() == ["work 1"]
    assert session.meta["warnings"] == []


def test_columns_say_what_they_are(tmp_path: Path) -> None:
    folder = full().save(tmp_path / "run")
    fields = pq.read_schema(folder / "spans.parquet")
    assert fields.field("dur_ns").metadata[b"unit"] == b"ns"
    assert fields.field("parent").metadata[b"meaning"].decode() == schema.SPANS["parent"].meaning
    frame = pd.read_parquet(folder / "spans.parquet")
    assert list(frame.columns) == ["row", *schema.SPANS.names]
    assert frame["correlation"].dtype == "Int64"
    assert frame["kind"].dtype == "category"
    assert frame["stream"].dropna().tolist() == ["5"]


def test_polars_and_duckdb_read_it(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed (extra test)")
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed (extra test)")
    folder = full().save(tmp_path / "run")
    by_polars = polars.scan_parquet(folder / "spans.parquet").group_by("kind").agg(polars.col("dur_ns").sum())
    expected = {"step": 500, "runtime": 50, "kernel": 80, "layer": 70}
    assert dict(by_polars.collect().rows()) == expected
    rows = duckdb.sql(
        f"SELECT kind, sum(dur_ns)::BIGINT FROM '{folder}/spans.parquet' GROUP BY kind"
    ).fetchall()
    assert dict(rows) == expected
    joined = (
        f"SELECT name, args->>'$.why' FROM '{folder}/instants.parquet' JOIN '{folder}/instant_args.parquet' "
    )
    assert duckdb.sql(joined + "USING (row)").fetchall() == [("mark", "x")]


# -- what is there stays, and nothing half-written is there -----------------------------------------------


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    folder = one().save(tmp_path / "run")
    with pytest.raises(OutputError, match="force=True"):
        full().save(folder)
    same_trace(one(), tv.load(folder))
    same_trace(full(), tv.load(full().save(folder, force=True)))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(OutputError, match="is not replaced"):
        one().save(tmp_path / "mine", force=True)
    with pytest.raises(OutputError, match="folder does not exist"):
        one().save(tmp_path / "nowhere" / "run")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine", "run"], "no temporary folder is left"


@pytest.mark.parametrize("broken", ["write_table", "write_details", "put_in_place"])
def test_a_failure_leaves_nothing(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, broken, fail)
    with pytest.raises(OutputError, match="No space left"):
        full().save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_kept_is_named(tmp_path: Path) -> None:
    trace = one()
    trace.meta["note"] = {"made by": object()}
    with pytest.raises(OutputError, match=r"meta\['note'\]\['made by'\] is a builtins.object"):
        trace.save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


# -- versions ----------------------------------------------------------------------------------------------


def edited(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    path = folder / "saved_trace.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return folder


def test_later_versions_are_refused_with_the_remedy(tmp_path: Path) -> None:
    folder = edited(one().save(tmp_path / "run"), lambda document: document.update(version=2))
    with pytest.raises(TraceFormatError, match=r"later version.*version 2.*pip install -U torchtrt-viz"):
        tv.load(folder)
    for version in (0, "1", None, True):
        edited(folder, lambda document, version=version: document.update(version=version))
        with pytest.raises(TraceFormatError, match="version"):
            tv.load(folder)


def test_what_later_versions_add_is_passed_over(tmp_path: Path) -> None:
    folder = full().save(tmp_path / "run")
    (folder / "new.parquet").write_bytes(b"new")
    table = pq.read_table(folder / "spans.parquet")
    pq.write_table(table.append_column("new", pa.array(range(len(table)))), folder / "spans.parquet")
    edited(folder, lambda document: document.update(new={"a": 1}))
    same_trace(full(), tv.load(folder))


# -- damage ------------------------------------------------------------------------------------------------


def read_all(folder: Path) -> None:
    trace = tv.load(folder)
    trace.args.read()
    trace.instant_args.read()


@pytest.mark.parametrize("table", [*TABLES, "meta-0"])
def test_a_missing_or_damaged_table_is_named(table: str, tmp_path: Path) -> None:
    folder = full().save(tmp_path / "run")
    path = folder / f"{table}.parquet"
    data = path.read_bytes()
    path.unlink()
    with pytest.raises(TraceFormatError, match=f"table {table} .*missing.*Copy the whole folder again"):
        tv.load(folder)
    for broken in (data[: len(data) // 2], data[4:], b"", data[:200] + bytes(len(data) - 212) + data[-12:]):
        path.write_bytes(broken)
        with pytest.raises(TraceFormatError, match=f"{table}.*(damaged|bound)") as caught:
            read_all(folder)
        assert caught.value.path == str(path)


def replaced(folder: Path, table: str, column: str, change: Callable[[list[Any]], list[Any]]) -> None:
    path = folder / f"{table}.parquet"
    found = pq.read_table(path)
    place = found.schema.get_field_index(column)
    values = change(found[column].to_pylist())
    pq.write_table(found.set_column(place, column, pa.array(values, found.schema.field(column).type)), path)


@pytest.mark.parametrize(
    ("table", "column", "value", "said"),
    [
        ("spans", "parent", 4, "parent of 4 in row 0"),
        ("spans", "parent", -2, "parent of -2 in row 0"),
        ("spans", "parent", 0, "parents that enclose"),
        ("spans", "parent", 1, "parents that enclose"),
        ("spans", "track", 3, "track of 3 in row 0"),
        ("spans", "dur_ns", -1, "dur_ns of -1"),
        ("spans", "depth", -1, "depth of -1"),
        ("spans", "dur_ns", 2**63 - 5, "an int64 holds"),
        ("spans", "kind", "nonsense", "'nonsense', which is none of the 15 categories"),
        ("spans", "name", "unheard of", "none of the 4 categories"),
        ("spans", "row", 1, "rows out of order"),
        ("instants", "track", 9, "track of 9"),
        ("counters", "track", -5, "track of -5"),
        ("flows", "target", 99, "target of 99"),
        ("flows", "source", -3, "source of -3"),
        ("spans", "dur_ns", None, "missing"),
        ("args", "row", 77, "rows out of order"),
        ("categories", "code", 5, "code 5"),
    ],
)
def test_numbers_that_cannot_be_are_refused(
    table: str, column: str, value: Any, said: str, tmp_path: Path
) -> None:
    folder = full().save(tmp_path / "run")
    replaced(folder, table, column, lambda values: [value, *values[1:]])
    with pytest.raises(TraceFormatError, match=said) as caught:
        tv.load(folder).args.read()
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("table", ["args", "instant_args", "categories", "tracks"])
def test_text_that_is_no_utf8_is_refused(table: str, tmp_path: Path) -> None:
    folder = full().save(tmp_path / "run")
    path = folder / f"{table}.parquet"
    found = pq.read_table(path)
    name = {"categories": "value", "tracks": "label"}.get(table, "args")
    binary = pa.array([b"\xff\xfe" for _ in range(len(found))], pa.binary())
    wrong = pa.StringArray.from_buffers(len(binary), *binary.buffers()[1:])
    place = found.schema.get_field_index(name)
    pq.write_table(found.set_column(place, name, wrong), path)
    with pytest.raises(TraceFormatError, match=f"{table}.*damaged"):
        read_all(folder)


def test_types_and_rows_are_those_of_the_document(tmp_path: Path) -> None:
    folder = full().save(tmp_path / "run")
    path = folder / "spans.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("dur_ns")
    wrong = table.set_column(place, "dur_ns", table["dur_ns"].cast(pa.float64()))
    for bad, said in (
        (wrong, "values of type double, not int64"),
        (table.slice(1), "3 rows"),
        (table.drop_columns(["parent"]), "no column 'parent'"),
        (table.set_column(1, "name", pa.array([1, 2, 3, 4])), "not text"),
    ):
        pq.write_table(bad, path)
        with pytest.raises(TraceFormatError, match=said):
            tv.load(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("frames"), "frames"),
        (lambda d: d["frames"].pop("flows"), "flows"),
        (lambda d: d["frames"]["spans"].update(rows=-1), "rows"),
        (lambda d: d["frames"]["spans"].update(rows=True), "rows"),
        (lambda d: d["frames"]["spans"]["columns"].pop(), "without"),
        (lambda d: d["frames"]["spans"]["columns"].append(["x", "datetime64"]), "dtype of a column"),
        (lambda d: d["frames"]["spans"]["columns"][0].__setitem__(1, "int64"), "dtype int64"),
        (lambda d: d["details"].update(args=10**6), "rows"),
        (lambda d: d.update(meta=[]), "meta"),
        (lambda d: d["meta"].update(warnings=["x"]), "warnings"),
        (lambda d: d["meta"].update(x={"$record": ["os.system", {}]}), "record"),
        (lambda d: d["meta"].update(x={"$call": "print"}), "stands for no value"),
        (lambda d: d["meta"].update(x={"$frame": {"name": "../spans"}}), "name of a table"),
        (
            lambda d: d["meta"].update(x={"$record": ["Repair", {"code": 1, "message": ""}]}),
            "code of a Repair",
        ),
        (lambda d: d["meta"].update(sources=None), "sources"),
    ],
)
def test_a_damaged_document_is_refused(
    change: Callable[[dict[str, Any]], object], said: str, tmp_path: Path
) -> None:
    folder = edited(full().save(tmp_path / "run"), change)
    with pytest.raises(TraceFormatError, match=said) as caught:
        tv.load(folder)
    assert caught.value.path == str(folder / "saved_trace.json")


def test_a_document_that_is_no_json_is_refused(tmp_path: Path) -> None:
    folder = one().save(tmp_path / "run")
    path = folder / "saved_trace.json"
    text = path.read_text()
    deep = '{"format": "torchtrt_viz.saved_trace", "version": 1, "meta": ' + "[" * 200_000
    for bad in (text[: len(text) // 2], deep, text.replace('"version": 1', '"version": NaN')):
        path.write_text(bad)
        with pytest.raises(TraceFormatError, match="not JSON"):
            tv.load(folder)


def test_a_table_that_expands_without_bound_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = Builder()
    track = b.track("t")
    for _ in range(20_000):
        b.span("same", 0, 0, track)
    folder = b.build().save(tmp_path / "run")
    assert len(tv.load(folder).spans) == 20_000, "a small table may be as regular as it likes"
    monkeypatch.setattr(tables, "_FREE_BYTES", 1 << 16)
    monkeypatch.setattr(tables, "_MAX_EXPANSION", 50)
    with pytest.raises(TraceFormatError, match=r"expands without bound.*20000 rows in [0-9]+ bytes"):
        tv.load(folder)


def test_details_of_a_changed_file_are_not_read(tmp_path: Path) -> None:
    folder = full().save(tmp_path / "run")
    back = tv.load(folder)
    assert back.args[0]["b"] == {"c": "ü"}
    shutil.copy(folder / "instant_args.parquet", folder / "args.parquet")
    with pytest.raises(TraceFormatError, match="changed since"):
        back.args[0]


# -- random values -------------------------------------------------------------------------------------------

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.just(pd.NA),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(
            st.text(max_size=4) | st.sampled_from(["$map", "$x"]) | st.integers(), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_any_value_comes_back(value: Any) -> None:
    same_value(value, loads(dumps(value)), "value")
    same_value(value, from_plain(json.loads(json.dumps(to_plain(value)))), "value")
    mapping = {"key": value}
    same_value(mapping, loads(texts_of([mapping])[0]), "mapping")


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v))
)
def test_any_json_is_a_value_or_refused(value: Any) -> None:
    try:
        loads(json.dumps(value))
    except NotPlain:
        assert '"$' in json.dumps(value)


def columns(rows: int) -> st.SearchStrategy[dict[str, Any]]:
    def series(values: st.SearchStrategy[Any], dtype: Any) -> st.SearchStrategy[pd.Series]:
        return st.lists(values, min_size=rows, max_size=rows).map(lambda v: pd.Series(v, dtype=dtype))

    texts = st.text(max_size=5)
    return st.fixed_dictionaries(
        {},
        optional={
            "int64": series(st.integers(-(2**63), 2**63 - 1), "int64"),
            "int32": series(st.integers(-(2**31), 2**31 - 1), "int32"),
            "uint64": series(st.integers(0, 2**64 - 1), "uint64"),
            "Int64": series(st.none() | st.integers(-(2**63), 2**63 - 1), "Int64"),
            "UInt8": series(st.none() | st.integers(0, 255), "UInt8"),
            "Float64": series(st.none() | st.floats(allow_nan=False), "Float64"),
            "float64": series(st.floats(), "float64"),
            "bool": series(st.booleans(), "bool"),
            "boolean": series(st.none() | st.booleans(), "boolean"),
            "string": series(st.none() | texts, "string"),
            "str": series(st.none() | texts, "str"),
            "object": series(st.none() | st.text(st.characters(codec=None), max_size=5), object),
            "any": series(PLAIN, object),
            "category": series(st.none() | texts, "category"),
        },
    )


@settings(max_examples=60)
@given(st.integers(0, 6).flatmap(lambda rows: st.tuples(st.just(rows), columns(rows))), st.booleans())
def test_any_frame_comes_back(made: tuple[int, dict[str, Any]], encoded: bool) -> None:
    rows, data = made
    frame = pd.DataFrame(data, index=pd.RangeIndex(rows))
    if "category" in frame and not len(frame["category"].cat.categories):
        frame = frame.drop(columns="category")  # pandas says nothing of the type of no categories
    table, stored = to_arrow(frame, dumps=dumps)
    out = {
        name: column_from_arrow(
            table[name].dictionary_encode() if encoded and how.dtype == "category" else table[name],
            how,
            loads=loads,
        )
        for name, how in stored.items()
    }
    same_frame(frame, pd.DataFrame(out, index=pd.RangeIndex(rows)), "frame")


EVENT = st.tuples(
    st.text(max_size=6),
    st.none() | st.integers(0, 10**12),
    st.integers(0, 10**9),
    st.sampled_from(schema.KINDS),
    st.none() | st.integers(0, 2**40),
    st.none() | st.text(min_size=1, max_size=3),
    st.dictionaries(st.text(max_size=3), PLAIN, max_size=2),
)


@settings(max_examples=25)
@given(st.lists(EVENT, max_size=8))
def test_any_trace_comes_back(tmp_path_factory: pytest.TempPathFactory, events: list[Any]) -> None:
    b = Builder()
    track = b.track("t", process=None, thread="1")
    for name, start, dur, kind, correlation, run, args in events:
        b.span(name, start, dur, track, kind, correlation=correlation, run_id=run, args=args)
    trace = b.build()
    same_trace(trace, tv.load(trace.save(tmp_path_factory.mktemp("any") / "run")))


def test_unknown_formats_are_still_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="saved"):
        tv.load(one().save(tmp_path / "run"), format="parquet")
