"""Frames go to parquet, Arrow, polars and duckdb and back; traces and sessions are pickled and copied."""

from __future__ import annotations

import copy
import io
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_session import write_small_session
from timeline_traces import model_trace
from trace_builder import Builder

import torchtrt_viz as tv
from torchtrt_viz import analysis
from torchtrt_viz.analysis.catalogue import FRAMES, TABLES
from torchtrt_viz.model import schema
from torchtrt_viz.model.merge import merge
from torchtrt_viz.model.optional_ints import filled, optional_ints
from torchtrt_viz.model.schema import EVENTS
from torchtrt_viz.trace import Trace

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
# Not of one trace, or of options that are not known here.
OTHERS = (
    *("compare", "compare_structure", "structure_summary", "regressions", "series", "series_values"),
    *("engine_diff", "kernel_metrics", "collective_skew"),
)
OF_ONE_TRACE = [name for name in analysis.__all__ if name in FRAMES and name not in OTHERS]


def parquet(frame: pd.DataFrame) -> pd.DataFrame:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra test)")
    held = io.BytesIO()
    frame.to_parquet(held)
    return pd.read_parquet(held)


def arrow(frame: pd.DataFrame) -> pd.DataFrame:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra test)")
    return pa.Table.from_pandas(frame).to_pandas()


def polars(frame: pd.DataFrame) -> pd.DataFrame:
    pl = pytest.importorskip("polars", reason="polars is not installed (extra test)")
    return pl.from_pandas(frame).to_pandas()


def duckdb(frame: pd.DataFrame) -> pd.DataFrame:
    db = pytest.importorskip("duckdb", reason="duckdb is not installed (extra test)")
    return db.connect().execute("select * from frame").df()


WAYS: list[Callable[[pd.DataFrame], pd.DataFrame]] = [parquet, arrow, polars, duckdb]


def plain(value: Any) -> Any:
    """A cell as Python has it; mappings without the keys that Arrow adds."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if plain(each) is not None}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in value]
    return None if pd.isna(value) else value


def cells(column: pd.Series) -> list[Any]:
    return [plain(value) for value in column.astype(object)]


def full() -> Trace:
    """One event of every sort, with and without each thing that may be missing."""
    b = Builder()
    main, stream = b.track("main", process="10", thread="7", rank=2), b.stream(5)
    bare = b.track("bare")
    b.span("step", 1_000, 500, main, "step", iteration=3, rank=2)
    b.span("launch", 1_100, 50, main, "runtime", correlation=9, external_id=4, rank=2)
    b.span("kernel", 1_200, 80, stream, "kernel", correlation=9)
    b.span("sum", None, 70, bare, "layer", run_id="engine")
    b.flow("ac2g", 1, 2, 9)
    b.flow("ac2g", -1, 2)
    b.instant("mark", 1_300, main)
    b.counter("memory", 1_250, 3.5, main, "B")
    b.counter("load", 1_260, float("nan"), bare)
    return b.build()


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    names = ("demo_capture", "trex")
    empty = Trace(spans=schema.SPANS.frame({}), tracks=schema.TRACKS.frame({}))
    return {"full": full(), "model": model_trace(2, 2), "empty": empty} | {
        n: tv.load(SAMPLES / n) for n in names
    }


@pytest.fixture(scope="module")
def frames(traces: dict[str, Trace]) -> list[tuple[str, pd.DataFrame]]:
    """Every frame of every trace, made once."""
    out = []
    for trace in traces.values():
        out += [(documented.name, getattr(trace, documented.name)) for documented in EVENTS]
        out += [(name, getattr(analysis, name)(trace)) for name in OF_ONE_TRACE]
    return out


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_frame_comes_back(
    frames: list[tuple[str, pd.DataFrame]], way: Callable[[pd.DataFrame], pd.DataFrame]
) -> None:
    for name, frame in frames:
        back = way(frame)
        assert list(back.columns) == list(frame.columns), name
        for column in frame:
            if (name, column) == ("questions", "values") and way is duckdb:
                continue  # mappings become text there
            assert cells(back[column]) == cells(frame[column]), (name, column)


# -- missing -------------------------------------------------------------------------------------------


def test_missing_numbers_are_missing_and_parent_is_minus_one() -> None:
    trace = full()
    spans = trace.spans
    assert spans["correlation"].isna().tolist() == [True, False, False, True]
    assert spans["external_id"].dropna().tolist() == [4]
    assert spans["iteration"].dropna().tolist() == [3]
    assert spans["rank"].dropna().tolist() == [2, 2]
    assert spans["parent"].tolist() == [-1, 0, -1, -1]
    assert trace.flows["source"].isna().tolist() == [False, True]
    assert trace.flows["id"].isna().tolist() == [False, True]
    for documented in EVENTS:
        for column in documented.columns:
            values = getattr(trace, documented.name)[column.name]
            if str(values.dtype) in ("Int64", "Int32"):
                assert not (values == -1).any(), (documented.name, column.name)
    assert "-1" in schema.SPANS["parent"].meaning


def test_nullable_columns_are_made_around_the_array() -> None:
    values = np.array([5, -1, 7])
    column = pd.Series(optional_ints(values), copy=False)
    assert np.shares_memory(column.array._data, values)
    assert filled(column).tolist() == [5, -1, 7]
    column[0] = pd.NA
    assert filled(column).tolist() == [-1, -1, 7]
    assert filled(pd.Series([3, -1])).tolist() == [3, -1], "a frame of an earlier version"
    assert filled(pd.Series([3, None], dtype="Int32")).dtype == np.int64


def test_frames_of_an_earlier_version_work() -> None:
    """int64 with -1, as parquet files of before hold it: the same answers."""
    trace = full()
    now = trace.kernels(by="operator")
    old = trace.spans[schema.SPANS.stored].copy()
    for column in schema.SPANS.columns:
        if column.optional:
            old[column.name] = filled(old[column.name])
    flows = trace.flows.copy()
    for name in ("source", "target", "id"):
        flows[name] = filled(flows[name])
    before = Trace(spans=old, tracks=trace.tracks, flows=flows, instants=trace.instants)
    assert before.kernels(by="operator").equals(now)
    assert before.select(np.arange(3)).flows["source"].isna().tolist() == [False, True]


# -- empty ---------------------------------------------------------------------------------------------


def dtypes(frame: pd.DataFrame) -> dict[str, str]:
    return frame.dtypes.astype(str).to_dict()


def documented_dtypes(trace: Trace) -> None:
    for documented in EVENTS:
        frame = getattr(trace, documented.name)
        assert list(frame.columns) == documented.names
        for column in documented.columns:
            nullable = column.name in ("start_ns", "t_ns") and str(frame[column.name].dtype) == "Int64"
            assert column.fits(frame[column.name].dtype) or nullable, (documented.name, column.name)
    for name in OF_ONE_TRACE:
        frame = getattr(analysis, name)(trace)
        for column in FRAMES[name].columns:
            assert column.fits(frame[column.name].dtype), (name, column.name)


def test_empty_frames_keep_their_dtypes() -> None:
    nothing = Trace(spans=schema.SPANS.frame({}), tracks=schema.TRACKS.frame({}))
    documented_dtypes(nothing)
    some = full()
    documented_dtypes(some.select(np.zeros(4, bool)))
    documented_dtypes(some.select([]))
    documented_dtypes(Trace.of(merge([nothing, nothing], align="start")))
    documented_dtypes(Trace.of(merge([some, nothing], align="start")))
    documented_dtypes(some.select(some.spans["kind"] == "memcpy"))


def test_a_session_of_no_rank_keeps_its_dtypes(tmp_path: Path) -> None:
    session = tv.load(write_small_session(tmp_path))
    none = session.select(rank=99)
    assert len(none) == 0
    assert dtypes(none.ranks) == dtypes(session.ranks)


# -- where and when ------------------------------------------------------------------------------------


def test_spans_say_where_they_ran_and_when() -> None:
    trace = full()
    spans = trace.spans
    assert list(spans.columns) == schema.SPANS.names
    assert spans["process"].astype(object).where(spans["process"].notna(), None).tolist() == [
        "10",
        "10",
        None,
        None,
    ]
    assert spans["thread"].astype(object).where(spans["thread"].notna(), None).tolist() == [
        "7",
        "7",
        None,
        None,
    ]
    assert spans["stream"].dropna().tolist() == ["5"]
    assert spans["device"].dropna().tolist() == [0]
    assert spans["t_ns"].isna().tolist() == [False, False, False, True]
    assert spans["t_ns"].dropna().tolist() == [0, 100, 200]
    assert trace.spans is spans, "made once"
    assert spans.groupby("stream", observed=True)["dur_ns"].sum().to_dict() == {"5": 80}


def test_names_of_processes_are_shown(tmp_path: Path) -> None:
    """JAX and others name what runs where by processes: the name is in the frames and on the timeline."""
    events = [
        {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "name": "process_name", "pid": 4, "args": {"name": "trainer <b>"}},
        {"ph": "X", "name": "work", "pid": 4, "tid": 1, "ts": 1, "dur": 2},
        {"ph": "X", "name": "fusion", "pid": 3, "tid": 2, "ts": 2, "dur": 2},
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = tv.load(path)
    assert trace.tracks["process_name"].tolist() == ["trainer <b>", "/device:GPU:0"]
    assert trace.spans["process"].tolist() == ["trainer <b> 4", "/device:GPU:0 3"]
    service = trace.timeline().service
    opened, _ = service.answer({"op": "open"})
    assert "trainer <b> 4" in [track["group"] for track in opened["tracks"]]
    detail, _ = service.answer({"op": "detail", "row": 0})
    assert ["process", "trainer <b> 4"] in detail["fields"]


# -- pickle and copy -----------------------------------------------------------------------------------


def again(thing: Any) -> list[Any]:
    return [pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing)]


@pytest.mark.parametrize("name", ["eager.pt.trace.json", "demo_capture", "trex", "package", "perfetto"])
def test_traces_are_pickled_and_copied(name: str) -> None:
    trace = tv.load(SAMPLES / name)
    for other in again(trace):
        assert type(other) is Trace
        for documented in EVENTS:
            pd.testing.assert_frame_equal(getattr(other, documented.name), getattr(trace, documented.name))
        rows = range(min(5, len(trace.spans)))
        assert [other.args[row] for row in rows] == [trace.args[row] for row in rows]
        assert other.meta["format"] == trace.meta["format"]
        assert other.operators().equals(trace.operators())


def test_what_has_no_path_is_carried(tmp_path: Path) -> None:
    """Bytes go with the pickle, also those of a protobuf, which is decoded again where it arrives."""
    data = (SAMPLES / "eager.pt.trace.json").read_bytes()
    first = tv.load(data)
    second = tv.load(first.to_perfetto(tmp_path / "t.pftrace", args=True).read_bytes())
    for trace in (first, second):
        row = next(row for row in range(len(trace.spans)) if trace.args[row])
        (tmp_path / "pickle").write_bytes(pickle.dumps(trace))
        program = (
            "import pickle, sys; trace = pickle.load(open(sys.argv[1], 'rb'));"
            "print(repr(trace.args[int(sys.argv[2])]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "pickle"), str(row)],
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == repr(trace.args[row])


def test_a_file_that_changed_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    trace = tv.load(full().to_perfetto(path, args=True))
    other = pickle.loads(pickle.dumps(trace))
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(tv.TraceFormatError, match="changed"):
        other.args[0]


def test_sessions_are_pickled_and_copied(tmp_path: Path) -> None:
    session = tv.load(write_small_session(tmp_path))
    held = session[0]
    assert len(held.spans)
    for other in again(session):
        assert type(other) is type(session)
        assert other.ranks.equals(session.ranks)
        assert other[1].spans["name"].tolist() == session[1].spans["name"].tolist()
        assert other.meta["sources"] == session.meta["sources"]


def test_tables_of_a_copied_selection() -> None:
    part = full().select([1, 2])
    for other in again(part):
        for name in TABLES:
            pd.testing.assert_frame_equal(getattr(other, name)(), getattr(part, name)())
