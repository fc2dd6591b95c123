"""SQL over traces and saved sessions: the frames' own numbers, and nothing but reading."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest
from small_session import write_small_session
from trace_builder import Builder

import torchtrt_viz as tv
from torchtrt_viz.errors import MissingDependencyError, OptionError, TorchTrtVizError
from torchtrt_viz.session import Session
from torchtrt_viz.trace import Trace

pytest.importorskip("duckdb", reason="duckdb is not installed (extra sql)")


@pytest.fixture(scope="module")
def trace() -> Trace:
    b = Builder()
    main, stream = b.track("main", thread="7"), b.stream(5)
    b.span("launch", 0, 50, main, "runtime", correlation=9, args={"grid": [2, 3], "why": "x"})
    b.span("kernel", 20, 80, stream, "kernel", correlation=9)
    b.span("kernel", 120, 2**62, stream, "kernel")
    b.span("kernel", 120, 2**62, stream, "kernel")
    b.flow("ac2g", 0, 1, 9)
    b.instant("mark", 3, main, note=1)
    b.counter("memory", 1, 2.5, main, "B")
    return b.build()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    root = tmp_path_factory.mktemp("sql")
    return tv.load(tv.load(write_small_session(root)).save(root / "dataset"))


def test_frames_are_tables(trace: Trace, tmp_path: Path) -> None:
    for asked in (trace, tv.load(trace.save(tmp_path / "run"))):
        for name in ("spans", "tracks", "instants", "counters", "flows"):
            frame = getattr(asked, name)
            found = asked.sql(f"SELECT * FROM {name}")
            numbered = ["row"] if name in ("spans", "tracks", "instants") else []
            assert list(found.columns) == [*numbered, *frame.columns]
            assert len(found) == len(frame)
        launched = asked.sql(
            "SELECT k.name, l.name AS call, t.label FROM flows f JOIN spans l ON l.row = f.source "
            "JOIN spans k ON k.row = f.target JOIN tracks t ON t.row = k.track"
        )
        assert launched.to_dict("records") == [{"name": "kernel", "call": "launch", "label": "stream 5"}]
        details = asked.sql("SELECT name, args->>'why' AS why FROM spans JOIN args USING (row)")
        assert details.to_dict("records") == [{"name": "launch", "why": "x"}]
        assert asked.sql("SELECT args FROM instant_args")["args"].tolist() == ['{"note":1}']


def test_numbers_stay_whole_and_missing_is_missing(trace: Trace) -> None:
    sums = trace.sql("SELECT name, sum(dur_ns) AS total, max(correlation) AS id FROM spans GROUP BY name")
    found = sums.set_index("name")
    assert found["total"]["kernel"] == 2**63 + 80, "beyond 64 bits"
    assert found["total"]["launch"] == 50
    assert trace.sql("SELECT sum(depth) AS d FROM spans")["d"].dtype == "int64"
    ids = trace.sql("SELECT correlation, device, start_ns < 50 AS early FROM spans ORDER BY row")
    assert ids.dtypes.astype(str).to_dict() == {"correlation": "Int64", "device": "Int32", "early": "bool"}
    assert ids["correlation"].isna().tolist() == [False, False, True, True]
    assert trace.sql("SELECT * FROM spans WHERE false").empty


def test_parameters(trace: Trace) -> None:
    assert trace.sql("SELECT count(*) AS n FROM spans WHERE kind = ?", ["kernel"])["n"].tolist() == [3]
    named = trace.sql("SELECT count(*) AS n FROM spans WHERE dur_ns > $least", {"least": 60})
    assert named["n"].tolist() == [3]
    hostile = trace.sql("SELECT count(*) AS n FROM spans WHERE name = ?", ["x' OR '1'='1"])
    assert hostile["n"].tolist() == [0]


def test_a_session_is_asked_at_once(session: Session) -> None:
    found = session.sql(
        "SELECT role, rank, name, sum(dur_ns) AS total FROM spans WHERE kind = 'operator' GROUP BY ALL"
    )
    expected = (
        session.operators(per_rank=True).groupby(["role", "rank", "name"], observed=True)["total_ns"].sum()
    )
    pd.testing.assert_series_equal(
        found.set_index(["role", "rank", "name"])["total"].sort_index().astype("int64"),
        expected.sort_index(),
        check_names=False,
        check_index_type=False,
    )
    keys = ["session", "rank", "role", "instance", "host", "cycle", "stage"]
    assert list(session.sql("SELECT * FROM counters").columns)[:7] == keys
    assert session.sql("SELECT rank FROM ranks ORDER BY rank")["rank"].tolist() == [0, 1, 2, 3]
    part = session.select(role="decode")
    assert part.sql("SELECT DISTINCT rank FROM spans ORDER BY rank")["rank"].tolist() == [2, 3]
    assert session.select(rank=99).sql("SELECT count(*) AS n FROM spans")["n"].tolist() == [0]


def test_a_session_that_is_not_saved_says_so(tmp_path: Path) -> None:
    with pytest.raises(TorchTrtVizError, match=r"session.save\(path\), then load\(path\)"):
        tv.load(write_small_session(tmp_path)).sql("SELECT 1")


@pytest.mark.parametrize(
    "query",
    [
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/out.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA database_list",
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW spans AS SELECT 1",
        "DROP VIEW spans",
        "INSERT INTO spans SELECT * FROM spans",
        "EXPORT DATABASE '{folder}/out'",
        "CALL pragma_version()",
        "SELECT 1; COPY (SELECT 1) TO '{folder}/out.csv'",
        "",
        "-- nothing",
    ],
)
def test_only_statements_that_read_are_run(
    query: str, trace: Trace, session: Session, tmp_path: Path
) -> None:
    for folder in (tmp_path, session.dataset):
        for asked in (trace, session):
            with pytest.raises(OptionError, match="one statement that reads"):
                asked.sql(query.format(folder=folder))
    assert list(tmp_path.iterdir()) == []
    assert not list(Path(session.dataset or "").glob("out*"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_blob('{dataset}/../{name}')",
        "SELECT * FROM read_csv('https://example.com/x.csv')",
        "FROM query('COPY (SELECT 1) TO ''{folder}/x''')",
        "SELECT * FROM secret_of_the_program",
    ],
)
def test_no_file_and_no_variable_is_seen(query: str, trace: Trace, session: Session, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    secret_of_the_program = pd.DataFrame({"a": [1]})
    assert len(secret_of_the_program)
    text = query.format(secret=secret, folder=tmp_path, dataset=session.dataset, name=secret.name)
    for asked in (trace, session):
        with pytest.raises(TorchTrtVizError, match="DuckDB refuses the query"):
            asked.sql(text)
    assert [each.name for each in tmp_path.iterdir()] == ["secret.csv"]


def test_a_query_can_be_stopped(trace: Trace) -> None:
    endless = "SELECT count(*) FROM range(1000000000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11"
    with pytest.raises(TorchTrtVizError, match="took longer than"):
        trace.sql(endless, timeout=0.05)
    with pytest.raises(OptionError, match="seconds above 0"):
        trace.sql("SELECT 1", timeout=0)


def test_mistakes_are_duckdbs_words(trace: Trace) -> None:
    with pytest.raises(TorchTrtVizError, match=r"(?s)refuses the query.*nosuch"):
        trace.sql("SELECT nosuch FROM spans")
    with pytest.raises(TorchTrtVizError, match=r"(?s)refuses the query.*syntax"):
        trace.sql("SELEC 1")


def test_without_duckdb_the_remedy_is_said(
    trace: Trace, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for asked in (trace, session):
        with pytest.raises(MissingDependencyError, match=r"pip install 'torchtrt-viz\[sql\]'"):
            asked.sql("SELECT 1")
