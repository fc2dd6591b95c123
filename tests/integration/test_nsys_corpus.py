"""Real exports of Nsight Systems: what SQL says of each table is what the frames say."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from shared_files import SHARED

import torchtrt_viz as tv
from torchtrt_viz import analysis
from torchtrt_viz.report.html import write_html

FILES = sorted((SHARED / "corpus" / "nsys").glob("*.sqlite")) or [None]
PREFIX = "CUPTI_ACTIVITY_KIND_"

#: Table -> the spans that it becomes.
SPANS = {
    f"{PREFIX}KERNEL": "kind in ('kernel', 'communication') and domain == 'gpu' "
    "and not name.str.startswith('CUDA graph')",
    f"{PREFIX}MEMCPY": "kind == 'memcpy'",
    f"{PREFIX}MEMSET": "kind == 'memset'",
    f"{PREFIX}GRAPH_TRACE": "name.str.startswith('CUDA graph')",
    f"{PREFIX}RUNTIME": "kind == 'runtime'",
    f"{PREFIX}SYNCHRONIZATION": "name.str.endswith(' sync')",
    "NVTX_EVENTS": "kind in ('operator', 'annotation', 'step') and domain == 'host'",
}


@pytest.fixture(params=FILES, ids=lambda path: "none" if path is None else path.stem)
def export(request: pytest.FixtureRequest, corpus: Path) -> Path:
    path = request.param
    assert path is not None
    return path


@pytest.fixture
def sql(export: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"file:{export}?mode=ro&immutable=1", uri=True)
    yield connection
    connection.close()


def tables(sql: sqlite3.Connection) -> set[str]:
    return {name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_counts_and_nanoseconds_are_those_of_sql(export: Path, sql: sqlite3.Connection) -> None:
    trace = tv.load(export)
    spans = trace.spans.astype({"name": str, "kind": str, "domain": str})
    for table, which in SPANS.items():
        found = spans.query(which)
        count, total, first = 0, 0, None
        if table in tables(sql):
            count, total, first = sql.execute(
                f'SELECT count(*), sum("end" - "start"), min("start") FROM {table} WHERE "end" IS NOT NULL'
            ).fetchone()
        assert (len(found), found["dur_ns"].sum()) == (count, total or 0), table
        assert not count or found["start_ns"].min() == first
    rows = sum(sql.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in tables(sql))
    accounting = trace.meta["accounting"]
    assert accounting["in_file"] == rows
    assert rows == accounting["read"] + sum(accounting["left_out"].values()) + sum(
        accounting["unread"].values()
    )


def test_every_launch_is_one_of_its_own_process(export: Path, sql: sqlite3.Connection) -> None:
    trace = tv.load(export)
    expected = pieces = 0
    for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"):
        if PREFIX + kind in tables(sql):
            query = f"""
                SELECT count(*) FROM {PREFIX}{kind} AS work JOIN {PREFIX}RUNTIME AS call
                ON call.correlationId = work.correlationId
                AND call.globalTid / 0x1000000 = work.globalPid / 0x1000000"""
            expected += sql.execute(query).fetchone()[0]
            pieces += sql.execute(f"SELECT count(*) FROM {PREFIX}{kind}").fetchone()[0]
    delays = analysis.launch_delays(trace)
    assert delays["pieces"].sum() == expected
    assert (delays["queued_ns"] >= 0).all()
    assert delays["host_row"].is_unique
    assert trace.kernels()["calls"].sum() == pieces


def test_names_are_those_of_sql(export: Path, sql: sqlite3.Connection) -> None:
    trace = tv.load(export)
    query = f"""
        SELECT value, count(*), sum("end" - "start") FROM {PREFIX}KERNEL JOIN StringIds ON id = demangledName
        GROUP BY value"""
    kernels = trace.kernels(sort=None).set_index("name")
    for name, count, total in sql.execute(query):
        assert (kernels.loc[name, "calls"], kernels.loc[name, "total_ns"]) == (count, total)
    calls = trace.operators(kinds=["runtime"]).set_index("name")["calls"]
    query = f"SELECT value, count(*) FROM {PREFIX}RUNTIME JOIN StringIds ON id = nameId GROUP BY value"
    for name, count in sql.execute(query):
        plain, _, version = name.rpartition("_v")  # cudaLaunchKernel_v7000, but cuMemAlloc_v2
        assert calls[plain if len(version) > 3 and version.isdigit() else name] >= count


def test_ranges_on_the_device_are_those_of_sql(export: Path, sql: sqlite3.Connection) -> None:
    if "NVTX_EVENTS" not in tables(sql):
        assert len(tv.load(export).nvtx()) == 0
        return
    work = " UNION ALL ".join(
        f'SELECT "start", "end", correlationId, globalPid FROM {PREFIX}{kind}'
        for kind in ("KERNEL", "MEMCPY", "MEMSET")
    )
    query = f"""
        SELECT nvtx."start", nvtx.globalTid & 0xFFFFFF, count(*), min(work."start"), max(work."end"),
               sum(work."end" - work."start"), count(DISTINCT call.correlationId)
        FROM NVTX_EVENTS AS nvtx
        JOIN {PREFIX}RUNTIME AS call
          ON call.globalTid = nvtx.globalTid AND call."start" >= nvtx."start" AND call."start" < nvtx."end"
        JOIN ({work}) AS work
          ON work.correlationId = call.correlationId
          AND work.globalPid / 0x1000000 = call.globalTid / 0x1000000
        WHERE nvtx."start" % 7 = 0
        GROUP BY nvtx.rowid"""
    expected = {(start, str(thread)): tuple(values) for start, thread, *values in sql.execute(query)}
    trace = tv.load(export)
    table = trace.nvtx(project="gpu")
    table = table[table["start_ns"] % 7 == 0]
    threads = trace.spans["thread"].to_numpy()[table["row"]]
    ends = table["device_start_ns"] + table["device_span_ns"]
    columns = (table["pieces"], table["device_start_ns"], ends, table["device_sum_ns"], table["launches"])
    found = {
        (start, thread): tuple(map(int, values))
        for start, thread, *values in zip(table["start_ns"], threads, *columns, strict=True)
    }
    assert len(expected) > 100
    assert found == expected


def test_every_analysis_and_view_takes_it(export: Path, tmp_path: Path) -> None:
    trace = tv.load(export)
    assert len(trace.questions()) == 6
    assert "finding" in trace.explain()
    for name in ("temporal_breakdown", "overlap", "idle_causes", "queue_length", "copies", "critical_path"):
        assert getattr(analysis, name)(trace) is not None
    assert analysis.compare(trace, trace) is not None
    page = tmp_path / "page.html"
    write_html(trace, page)
    assert page.stat().st_size > 10_000


def test_the_environment_stays_out_of_the_trace(export: Path) -> None:
    trace = tv.load(export)
    text = str(trace.meta)
    for word in ("MODAL_TASK_ID", "NV_CUDNN", "HF_API_KEY", "rich-wsl", "LD_LIBRARY_PATH"):
        assert word not in text
