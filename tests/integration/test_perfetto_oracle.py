"""The reader and the writer against Perfetto's own trace processor."""

from __future__ import annotations

from pathlib import Path

import pytest
from perfetto_messages import (
    BEGIN,
    END,
    annotation,
    event,
    mark,
)
from perfetto_oracle import ask, engine_folder, problems
from perfetto_traces import some_gpu_trace, some_trace
from trace_builder import Builder

from torchtrt_viz.files import load
from torchtrt_viz.formats.perfetto.writer import write_perfetto
from torchtrt_viz.trace import Trace

SLICES = (
    "select ts, dur, ifnull(name, '') as name, ifnull(category, '') as category from slice "
    "order by ts, dur, name"
)
COUNTERS = (
    "select ts, value, t.name as name from counter c join counter_track t on c.track_id = t.id "
    "order by ts, name"
)
FLOWS = (
    "select a.name as source, b.name as target from flow f join slice a on f.slice_out = a.id "
    "join slice b on f.slice_in = b.id order by source, target"
)


@pytest.fixture(autouse=True)
def _engine() -> Path:
    return engine_folder()


def ours(trace: Trace, zero: int) -> list[dict]:
    """Slices and instants as the trace processor lists them: instants are slices of duration 0."""
    rows = [
        {"ts": start + zero, "dur": dur, "name": name}
        for start, dur, name in zip(
            trace.spans["start_ns"].tolist(), trace.spans["dur_ns"].tolist(), trace.spans["name"], strict=True
        )
    ]
    rows += [
        {"ts": ts + zero, "dur": -1 if state == "unfinished" else 0, "name": name}
        for ts, name, state in zip(
            trace.instants["ts_ns"].tolist(), trace.instants["name"], trace.instants["state"], strict=True
        )
    ]
    return sorted(rows, key=lambda r: (r["ts"], r["dur"], r["name"]))


@pytest.mark.parametrize("seed", range(6))
def test_the_reader_agrees_with_the_trace_processor(tmp_path, seed):
    path = tmp_path / "t.pftrace"
    path.write_bytes(some_trace(seed))
    trace = load(path)
    slices, counters, flows = ask(path, SLICES, COUNTERS, FLOWS)
    assert slices
    zero = min(row["ts"] for row in (*slices, *counters))
    assert ours(trace, zero) == [{k: row[k] for k in ("ts", "dur", "name")} for row in slices]
    found = sorted(
        zip(trace.counters["ts_ns"] + zero, trace.counters["name"], trace.counters["value"], strict=True)
    )
    assert found == [(row["ts"], row["name"], row["value"]) for row in counters]
    names = list(trace.spans["name"])
    pairs = sorted((names[s], names[t]) for s, t in trace.flows[["source", "target"]].to_numpy())
    assert pairs == [(row["source"], row["target"]) for row in flows]
    assert len(flows) >= 2
    assert trace.meta["base_ns"] == 1_700_000_000_000_000_000 + zero - 1_000_000


@pytest.mark.parametrize("seed", range(3))
def test_work_of_gpus_agrees_with_the_trace_processor(tmp_path, seed):
    path = tmp_path / "t.pftrace"
    path.write_bytes(some_gpu_trace(seed))
    trace = load(path)
    slices, counts, memory = ask(
        path,
        SLICES,
        "select ts, value, t.name as name from counter c join gpu_counter_track t on c.track_id = t.id "
        "order by name, ts",
        "select ts, value from counter c join track t on c.track_id = t.id where t.name = 'GPU Memory' "
        "order by ts",
    )
    zero = min(row["ts"] for row in (*slices, *counts, *memory))
    assert ours(trace, zero) == [{k: row[k] for k in ("ts", "dur", "name")} for row in slices]
    assert len(slices) > 30
    # the trace processor puts each value where the sample before it is, since it is that of the time between
    found = trace.counters.sort_values(["name", "ts_ns"], kind="stable")
    moved = []
    for name, rows in found[found["name"] != "GPU memory"].groupby("name", observed=True):
        values = [*rows["value"].tolist()[1:], 0.0]
        moved += [(ts + zero, name, value) for ts, value in zip(rows["ts_ns"], values, strict=True)]
    moved.sort(key=lambda row: (row[1], row[0]))
    assert moved == [(row["ts"], row["name"], row["value"]) for row in counts]
    sizes = trace.counters[trace.counters["name"] == "GPU memory"]
    assert list(zip(sizes["ts_ns"] + zero, sizes["value"], strict=True)) == [
        (row["ts"], row["value"]) for row in memory
    ]


def test_arguments_agree_with_the_trace_processor(tmp_path):
    path = tmp_path / "t.pftrace"
    body = (
        annotation("count", 7)
        + annotation("ratio", 0.25)
        + annotation("name", 'a"b\\c é中')
        + annotation("list", [3, 4])
        + annotation("tree", {"leaf": {"deep": True}})
    )
    path.write_bytes(mark(10, event(BEGIN, "a", track=1, extra=body)) + mark(20, event(END, track=1)))
    (rows,) = ask(path, "select key, int_value, real_value, string_value from args order by key")
    theirs = {
        row["key"]: next(
            (row[k] for k in ("int_value", "real_value", "string_value") if row[k] is not None), None
        )
        for row in rows
    }
    args = load(path).args[0]
    assert theirs["debug.count"] == args["count"] == 7
    assert theirs["debug.ratio"] == args["ratio"] == 0.25
    assert theirs["debug.name"] == args["name"] == 'a"b\\c é中'
    assert [theirs["debug.list[0]"], theirs["debug.list[1]"]] == args["list"]
    assert bool(theirs["debug.tree.leaf.deep"]) is args["tree"]["leaf"]["deep"] is True


def written() -> Trace:
    """A trace with what exports have to get right."""
    b = Builder()
    host = b.track('main <thread> & "co"', process="42", thread="7")
    helper = b.track("helper", process="42", thread="8")
    stream = b.stream(7)
    other = b.stream(13)
    engine = b.track("engine layers", "engine", "gpu")
    outer = b.span('forward "q" \\ é中 <x>&', 1_000, 90_000, host, external_id=5)
    launches = [
        b.span(f"launch {i}", 2_000 + 1_000 * i, 500, host, "runtime", correlation=i) for i in range(1, 6)
    ]
    kernels = [
        # kernels that overlap on one stream, as programmatic dependent launch makes them
        b.span("kernel<int>", 10_000 + 2_000 * i, 3_000, stream if i < 4 else other, "kernel", correlation=i)
        for i in range(1, 6)
    ]
    b.span("copy", 30_000, 10, other, "memcpy")
    b.span("zero", 40_000, 0, helper)
    b.span("after zero", 40_000, 10, helper)
    b.span("layer a", None, 77_000, engine, "layer", run_id="eng")
    b.span("layer b", None, 0, engine, "layer", run_id="eng")
    for launch, kernel in zip(launches, kernels, strict=True):
        b.flow("ac2g", launch, kernel)
    b.flow("back", kernels[0], outer)  # leads back in time: the format has no such arrow
    b.counter("mem", 1_500, 3.5, host, "bytes")
    b.counter("mem", 2_500, -1.0, host, "bytes")
    b.counter("mem", 2_500, 7.0, helper)
    b.instant("mark", 3_000, host)
    return b.build(base_ns=1_700_000_000_000_000_000)


@pytest.mark.parametrize("name", ["t.pftrace", "t.json"])
def test_the_trace_processor_opens_what_is_written(tmp_path, name):
    trace = written()
    path = write_perfetto(trace, tmp_path / name)
    assert problems(path) == {}
    slices, counters, flows, processes, threads = ask(
        path,
        SLICES,
        COUNTERS,
        FLOWS,
        "select name from process where pid > 0 order by name",
        "select t.name as track, count(*) as slices, group_concat(distinct s.category) as categories "
        "from slice s join track t on s.track_id = t.id group by s.track_id",
    )
    placed = trace.spans[trace.spans["timing"] == "measured"]
    shift = 1_000 if name == "t.pftrace" else 0
    expected = sorted(
        [(s - shift, d, n) for s, d, n in placed[["start_ns", "dur_ns", "name"]].to_numpy().tolist()]
        + [(3_000 - shift, 0, "mark")]
    )
    assert sorted((row["ts"], row["dur"], row["name"]) for row in slices) == expected
    assert [(row["ts"] + shift, row["value"]) for row in counters] == [
        (1_500, 3.5),
        (2_500, -1.0),
        (2_500, 7.0),
    ]
    assert len([f for f in flows if f["target"] == "kernel<int>"]) == 5
    assert [row["name"] for row in processes] == ["GPU", "GPU 0", "Host (process 42)"] or [
        row["name"] for row in processes
    ] == ["GPU 0", "Host (process 42)"]
    gpu = ("kernel", "memcpy")
    for row in threads:
        kinds = {c.split(",")[0].removeprefix("gpu_") for c in (row["categories"] or "").split(",") if c}
        kinds -= {"gpu", "host"}
        assert kinds <= set(gpu) or not kinds & set(gpu), row


def test_sums_over_calls_are_metadata_and_no_slices(tmp_path):
    path = write_perfetto(written(), tmp_path / "t.pftrace")
    (slices, metadata) = ask(
        path,
        "select name from slice where name like 'layer%'",
        "select str_value from metadata where name = 'cr-torchtrt_viz'",
    )
    assert slices == []
    assert "layer a" in metadata[0]["str_value"]
    assert "no place on a time axis" in metadata[0]["str_value"]


def test_unix_time_reaches_the_trace_processor(tmp_path):
    path = write_perfetto(written(), tmp_path / "t.pftrace")
    (rows,) = ask(path, "select ts, clock_value from clock_snapshot where clock_name = 'REALTIME'")
    assert rows == [{"ts": 0, "clock_value": "1700000000000001000"}]


def test_real_traces_pass_through(tmp_path, corpus):
    """Every kernel of a real trace reaches the trace processor, overlapping ones too."""
    kineto = sorted((corpus / "kineto").glob("*.json.gz"))
    checked = 0
    for source in kineto:
        if not source.name.startswith(("b200", "a100_alexnet", "mi250")):
            continue
        trace = load(source)
        kernels = trace.spans[trace.spans["kind"] == "kernel"]
        path = write_perfetto(trace, tmp_path / "t.pftrace")
        assert problems(path) == {}
        (rows,) = ask(
            path, "select count(*) as n, sum(dur) as total from slice where category = 'kernel,gpu'"
        )
        assert (rows[0]["n"], rows[0]["total"]) == (len(kernels), int(kernels["dur_ns"].sum())), source.name
        (rows,) = ask(path, "select count(*) as n from slice where dur >= 0")
        placed = (trace.spans["timing"] != "aggregate").sum()
        assert rows[0]["n"] == placed + (trace.instants["state"] != "unfinished").sum()
        checked += 1
    assert checked >= 2
