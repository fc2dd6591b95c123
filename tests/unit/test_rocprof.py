"""Recordings of rocprofv3, one recording in its forms: JSON, and rocpd databases of schema 3 and 4."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from rocprof_writer import FORMS, GPUS, Process, tool_data, write, write_database, write_json

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.rocprof.cut import closed
from torchtrt_viz.formats.rocprof.vocabulary import is_rocpd, kind_of_category, table_of

DATABASES = FORMS[1:]
TIMES = "JOIN `rocpd_timestamp{0}` s ON s.id = start_id JOIN `rocpd_timestamp{0}` e ON e.id = end_id"


def recorded(pid: int = 908, shift: int = 0) -> Process:
    """Return a process: a range, a launch with a kernel, a copy, an allocation and its release."""
    process, thread = Process(pid), pid + 1
    process.marker("step <b>", 100 + shift, 2000 + shift, 1, thread)
    process.call("hipMalloc", 20 + shift, 90 + shift, 7, thread)
    process.call("hipLaunchKernel", 200 + shift, 260 + shift, 4, thread, args=[("grid", "2")])
    process.call("hipMemcpyAsync", 270 + shift, 290 + shift, 6, thread)
    process.kernel("gemm<float>(float*)", 300 + shift, 800 + shift, 4, thread, stream=5)
    process.copy(True, 310 + shift, 360 + shift, 6, thread, stream=5)
    process.memory(False, 30 + shift, 80 + shift, 0x1000, 500, id=8, tid=thread)
    process.memory(True, 1600 + shift, 1650 + shift, 0x1000, id=9, tid=thread)
    return process


def load(form: str, folder: Path, *processes: Process, **options: Any) -> tv.Trace:
    trace = tv.load(write(form, folder, processes), **options)
    assert isinstance(trace, tv.Trace)
    check_accounting(trace)
    return trace


def check_accounting(trace: tv.Trace) -> None:
    found = trace.meta["accounting"]
    assert found["in_file"] == found["read"] + sum(found["left_out"].values()) + sum(found["unread"].values())
    assert found["read"] == sum(found["tables"].values()) + sum(found["bookkeeping"].values())
    assert sum(found["table_ns"].values()) == found["span_ns"] == int(trace.spans["dur_ns"].sum())


# -- one recording in every form ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_each_sort_of_record_becomes_what_it_is(form: str, tmp_path: Path) -> None:
    trace = load(form, tmp_path, recorded())
    labels = trace.tracks["label"].to_numpy()[trace.spans["track"]]
    spans = trace.spans.assign(label=labels).sort_values(["start_ns", "name"])
    shown = spans[["name", "kind", "domain", "start_ns", "dur_ns", "label"]]
    assert [tuple(row) for row in shown.itertuples(index=False)] == [
        ("hipMalloc", "runtime", "host", 20, 70, "thread 909"),
        ("MEMORY_ALLOCATION_ALLOCATE", "memory", "host", 30, 50, "thread 909"),
        ("step <b>", "annotation", "host", 100, 1900, "thread 909"),
        ("hipLaunchKernel", "runtime", "host", 200, 60, "thread 909"),
        ("hipMemcpyAsync", "runtime", "host", 270, 20, "thread 909"),
        ("gemm<float>(float*)", "kernel", "gpu", 300, 500, "GPU 0 queue 16"),
        ("MEMORY_COPY_HOST_TO_DEVICE", "memcpy", "gpu", 310, 50, "GPU 0 copies of stream 5"),
        ("MEMORY_ALLOCATION_FREE", "memory", "host", 1600, 50, "thread 909"),
    ]
    assert set(spans["process"]) == {"train.py 908"}
    assert trace.meta["processes"] == {908: {"name": "train.py", "labels": ""}}
    assert trace.meta["host_name"] == "node1"
    assert trace.meta["devices"][1] == {
        "id": 1,
        "name": "AMD Instinct MI300X",
        "totalGlobalMem": 1 << 30,
        "numSms": 304,
        **({"gcnArchName": "gfx942"} if form == "json" else {}),
    }
    assert "secret" not in str(trace.meta)
    assert "TOKEN" not in str(trace.meta)
    assert not trace.meta["warnings"]


@pytest.mark.parametrize("form", FORMS)
def test_work_is_joined_to_its_launch_in_its_own_process(form: str, tmp_path: Path) -> None:
    # the same ids in both; the second process launches its kernel 100 ns later than the first
    other = recorded(1000, 50)
    other.kernels[0].update(start=450, end=451)
    trace = load(form, tmp_path, recorded(), other)
    stats = tv.analysis.launch_stats(trace).set_index("launched_by")
    assert stats["calls"].to_dict() == {"hipLaunchKernel": 2, "hipMemcpyAsync": 2}
    # from the launches' ends (260, 310) to the kernels' starts (300, 450)
    assert stats.loc["hipLaunchKernel", "delay_max_ns"] == 140
    assert stats["early"].sum() == 0
    ranges = trace.nvtx(project="gpu").set_index("start_ns")
    assert ranges["launches"].to_dict() == {100: 2, 150: 2}
    assert ranges["device_sum_ns"].to_dict() == {100: 550, 150: 51}
    assert trace.spans["correlation"].nunique() == 2 * 6
    assert sorted(trace.tracks["process"].dropna().unique()) == ["1000", "908"]


@pytest.mark.parametrize("form", FORMS)
def test_tables_and_sentences_work(form: str, tmp_path: Path) -> None:
    trace = load(form, tmp_path, recorded())
    kernels = trace.kernels(by="device")
    assert kernels[["name", "device", "calls", "total_ns"]].to_dict("records") == [
        {"name": "gemm<float>(float*)", "device": 0, "calls": 1, "total_ns": 500},
        {"name": "MEMORY_COPY_HOST_TO_DEVICE", "device": 0, "calls": 1, "total_ns": 50},
    ]
    copies = tv.analysis.copies(trace)
    assert copies[["direction", "bytes", "total_ns"]].to_dict("records") == [
        {"direction": "host to device", "bytes": 4096, "total_ns": 50}
    ]
    assert trace.memory()[["ts_ns", "device", "allocated_bytes"]].to_dict("records") == [
        {"ts_ns": 80, "device": "hip:0", "allocated_bytes": 500},
        {"ts_ns": 1650, "device": "hip:0", "allocated_bytes": 0},
    ]
    assert len(trace.questions()) == 6
    assert trace.summary().set_index("item")["value"]["runtime calls"] == 3
    assert len(trace.operators()) == 0
    trace.explain()
    trace.host_gpu()


@pytest.mark.parametrize("form", FORMS)
def test_details_of_kernels_and_calls(form: str, tmp_path: Path) -> None:
    trace = load(form, tmp_path, recorded())
    row = {name: at for at, name in trace.spans["name"].items()}
    kernel = trace.args[row["gemm<float>(float*)"]]
    # the profiler counts threads, 512 x 2; HIP counts blocks, of 256 threads
    assert kernel["grid"] == [2, 2, 1]
    assert (kernel["block"], kernel["grid_size"]) == ([256, 1, 1], [512, 2, 1])
    assert (kernel["group_segment_size"], kernel["correlation"], kernel["dispatch_id"]) == (64, 4, 1)
    assert trace.args[row["MEMORY_COPY_HOST_TO_DEVICE"]]["bytes"] == 4096
    (argument,) = trace.args[row["hipLaunchKernel"]]["args"]
    assert (argument["name"], argument["value"]) == ("grid", "2")
    assert trace.args[row["MEMORY_ALLOCATION_ALLOCATE"]]["address"] == 0x1000
    for again in (pickle.loads(pickle.dumps(trace)), copy.deepcopy(trace)):
        assert again.args[row["gemm<float>(float*)"]] == kernel
        (found,) = again.args[row["hipLaunchKernel"]]["args"]
        assert found == argument


@pytest.mark.parametrize("form", FORMS)
def test_marks_are_points_and_ranges_of_processes_lie_beside_threads(form: str, tmp_path: Path) -> None:
    process = recorded()
    process.marker("here", 150, 150, 2, 909, "roctxMarkA")
    process.marker("first", 160, 900, 3, 909, "roctxProcessRangeA")
    process.marker("second", 170, 1500, 5, 910, "roctxProcessRangeA")
    process.marker("ProfilerStep#3", 210, 230, 10, 909)
    trace = load(form, tmp_path, process)
    assert trace.instants[["name", "ts_ns", "state", "kind"]].to_dict("records") == [
        {"name": "here", "ts_ns": 150, "state": "instant", "kind": "annotation"}
    ]
    labels = dict(
        zip(trace.spans["name"], trace.tracks["label"].to_numpy()[trace.spans["track"]], strict=True)
    )
    assert labels["first"] == labels["second"] == "roctx ranges (start to end)"
    assert labels["step <b>"] == "thread 909"
    kinds = dict(zip(trace.spans["name"], trace.spans["kind"], strict=True))
    assert kinds["ProfilerStep#3"] == "step"
    launched = trace.nvtx(project="gpu").set_index("name")["launches"].to_dict()
    assert launched == {"step <b>": 2, "first": 2, "second": 2}


@pytest.mark.parametrize("form", FORMS)
def test_ranges_of_torch_are_operators(form: str, tmp_path: Path) -> None:
    process = recorded()
    process.marker("aten::mm, seq = 7, op_id = 12, sizes = [[2, 3], [3, 4]]", 195, 265, 20, 909)
    process.marker("aten::mm, op_id = 13", 1000, 1010, 21, 909)
    process.marker("## mine ##, op_id = 3", 1020, 1030, 22, 909)
    trace = load(form, tmp_path, process)
    kinds = dict(zip(trace.spans["name"], trace.spans["kind"], strict=True))
    assert (kinds["aten::mm"], kinds["## mine ##"]) == ("operator", "annotation")
    table = trace.operators(by="shape")
    assert table["shape"].isna().tolist() == [True, False]
    assert table["shape"].iloc[1] == "[[2,3],[3,4]]"
    assert table[["name", "calls", "total_ns", "device_total_ns"]].to_dict("records") == [
        {"name": "aten::mm", "calls": 1, "total_ns": 10, "device_total_ns": 0},
        {"name": "aten::mm", "calls": 1, "total_ns": 70, "device_total_ns": 500},
    ]
    row = int(trace.spans.index[trace.spans["start_ns"] == 195][0])
    assert trace.args[row]["text"] == "aten::mm, seq = 7, op_id = 12, sizes = [[2, 3], [3, 4]]"
    assert (trace.args[row]["Sequence number"], trace.args[row]["op_id"]) == (7, 12)
    assert "aten::mm" in set(trace.nvtx(project="gpu")["name"])


@pytest.mark.parametrize("form", FORMS)
def test_counters_lie_at_the_end_of_their_dispatch(form: str, tmp_path: Path) -> None:
    process = recorded()
    process.kernel("second", 900, 950, 0, 909, gpu=1)
    for kernel, value in ((0, 42.5), (1, 7)):
        process.counter(kernel, "SQ_WAVES", value)
    process.counter(1, "GRBM_COUNT", 1e18)
    trace = load(form, tmp_path, process)
    values = trace.counters[~trace.counters["name"].str.startswith("allocated")]
    assert sorted(zip(values["name"], values["ts_ns"], values["value"], strict=True)) == [
        ("GRBM_COUNT", 950, 1e18),
        ("SQ_WAVES", 800, 42.5),
        ("SQ_WAVES", 950, 7.0),
    ]
    labels = trace.tracks["label"].to_numpy()[values["track"]]
    assert sorted(labels) == ["counters of GPU 0", "counters of GPU 1", "counters of GPU 1"]


@pytest.mark.parametrize("form", FORMS)
def test_a_graph_is_one_launch(form: str, tmp_path: Path) -> None:
    process = Process()
    process.call("hipGraphLaunch", 0, 40, 5, 908)
    for at in (100, 300, 500):
        process.kernel("node", at, at + 50, 5, 908, queue=at // 200)
    trace = load(form, tmp_path, process)
    assert trace.graphs()[["kernels", "gpu_ns"]].to_dict("records") == [{"kernels": 3, "gpu_ns": 150}]
    assert tv.analysis.launch_stats(trace)["calls"].tolist() == [1]


@pytest.mark.parametrize("form", FORMS)
def test_times_that_cannot_be_are_marked(form: str, tmp_path: Path) -> None:
    process = recorded()
    process.kernel("backwards", 900, 800, 0, 909)
    process.kernel("never timed", 0, 0, 0, 909)
    trace = load(form, tmp_path, process)
    assert sorted(zip(trace.instants["name"], trace.instants["state"], strict=True)) == [
        ("backwards", "invalid"),
        ("never timed", "invalid"),
    ]
    assert {warning.code: warning.count for warning in trace.meta["warnings"]} == {"invalid_duration": 2}
    with pytest.raises(TraceFormatError, match="end before they start"):
        tv.load(write(form, tmp_path, [process]), strict=True)


def test_scratch_memory_is_no_allocation_of_the_program(tmp_path: Path) -> None:
    for form in FORMS:
        process = recorded()
        process.memory(False, 1700, 1710, 0x5000, 64, gpu=1, scratch=True, tid=909)
        process.memory(False, 1720, 1730, 0x6000, 10, gpu=None, tid=909)
        trace = load(form, tmp_path, process)
        row = trace.spans[trace.spans["name"] == "SCRATCH_MEMORY_ALLOC"].iloc[0]
        assert trace.tracks["label"].iloc[row["track"]] == "scratch memory"
        assert set(trace.memory()["device"]) == {"hip:0", "cpu"}


def test_forms_of_one_recording_beside_each_other_count_once(tmp_path: Path) -> None:
    for pid in (908, 1000):
        write_json(tmp_path / f"{pid}_results.json", [recorded(pid)])
        write_database(tmp_path / f"{pid}_results.db", [recorded(pid)])
    session = tv.load(tmp_path)
    assert isinstance(session, tv.Session)
    assert sorted(Path(str(path)).name for path in session.ranks["path"]) == [
        "1000_results.db",
        "908_results.db",
    ]
    notes = [note for note in session.meta["warnings"] if note.code == "same_recording"]
    assert sorted(Path(str(note.path)).name for note in notes) == ["1000_results.json", "908_results.json"]


# -- JSON --------------------------------------------------------------------------------------------------


def test_json_is_told_by_its_content_plain_or_compressed(tmp_path: Path) -> None:
    path = write_json(tmp_path / "anything", [recorded()])
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert len(tv.load(path).spans) == len(tv.load(packed).spans) == 8
    assert tv.load(path).meta["format"] == "rocprof"


def test_counters_alone_are_dispatches(tmp_path: Path) -> None:
    process = recorded()
    process.counter(0, "SQ_WAVES", 3)
    data = tool_data(process)
    data["buffer_records"] = {"kernel_dispatch": []}
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [data]}))
    trace = tv.load(path)
    check_accounting(trace)
    assert trace.spans[["name", "dur_ns"]].to_dict("records") == [
        {"name": "gemm<float>(float*)", "dur_ns": 500}
    ]
    assert trace.counters["value"].tolist() == [3.0]
    # older versions do not say when
    for side in ("start", "end"):
        del data["callback_records"]["counter_collection"][0]["dispatch_data"][f"{side}_timestamp"]
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [data]}))
    with pytest.raises(TraceFormatError, match="no event"):
        tv.load(path)


def test_lists_of_other_kinds_are_read_where_they_can_be_and_counted_where_not(tmp_path: Path) -> None:
    data = tool_data(recorded())
    record = {"kind": 99, "operation": 1, "thread_id": 909, "start_timestamp": 5, "end_timestamp": 9}
    data["buffer_records"] |= {
        "future_api": [{**record, "correlation_id": {"internal": 77}}],
        "pc_sample_stochastic": [{"timestamp": 5}] * 3,
        "empty": [],
    }
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [data]}))
    trace = tv.load(path)
    check_accounting(trace)
    assert trace.meta["accounting"]["unread"] == {"pc_sample_stochastic": 3}
    assert "future_api 1" in set(trace.spans["name"])
    assert [warning.code for warning in trace.meta["warnings"]] == ["unread_tables"]


@pytest.mark.parametrize("where", range(40))
def test_a_document_that_stops_keeps_its_whole_records(where: int, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    whole = json.dumps({"rocprofiler-sdk-tool": [tool_data(recorded()), tool_data(recorded(1000))]}).encode()
    at = len(whole) * (where + 1) // 42
    path.write_bytes(whole[:at])
    records = [text.count(b'"start_timestamp"') for text in (whole[:at], whole)]
    try:
        trace = tv.load(path)
    except TraceFormatError as error:
        refused = error
    else:
        refused = None
    if refused is not None:  # nothing that was timed is whole yet
        assert refused.offset is not None
        assert records[0] <= 1
        return
    check_accounting(trace)
    (warning,) = (found for found in trace.meta["warnings"] if found.code == "truncated")
    assert warning.offset is not None
    assert warning.offset <= at
    assert records[0] - 1 <= len(trace.spans) <= records[0] < records[1]
    with pytest.raises(TraceFormatError):
        tv.load(path, strict=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a": [{"b": [{"c": 1}, {"c": 2', b'{"a": [{"b": [{"c": 1}]}]}'),
        (b'{"a": [{"b": [{"c": 1}, {"c": "}]\\"', b'{"a": [{"b": [{"c": 1}]}]}'),
        (b'{"a": [{"b": [{"c": [{"d": 1}, {', b'{"a": [{"b": []}]}'),
        (
            b'{"a": [{"b": {"c": "\\\\", "d": [1, {"e": 2}, {"f',
            b'{"a": [{"b": {"c": "\\\\", "d": [1, {"e": 2}]}}]}',
        ),
    ],
)
def test_cutting(text: bytes, expected: bytes) -> None:
    found = closed(text)
    assert found is not None
    assert found[0] == expected
    assert json.loads(found[0])


@pytest.mark.parametrize("text", [b"", b"{}", b"}", b"[[[", b'{"a"', b"{" * 9000, b'{"a": [{"b"', b"]" * 100])
def test_what_cannot_be_cut(text: bytes) -> None:
    found = closed(text)
    if found is not None:
        with pytest.raises(ValueError, match=r"JSON|Expecting|delimiter|property|Extra"):
            json.loads(found[0] + b"!")


HOSTILE: list[Any] = [
    None,
    True,
    -1,
    1e308,
    2**70,
    -(2**70),
    "",
    "<script>",
    [],
    {},
    [[]],
    [None],
    {"handle": None},
]


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_any_value_may_be_anything(value: Any, tmp_path: Path) -> None:
    """Put a value in the place of every other value of the document, one at a time."""
    process = recorded()
    process.counter(0, "SQ_WAVES", 3)
    data = {"rocprofiler-sdk-tool": [tool_data(process)]}
    path = tmp_path / "r.json"
    loaded = 0
    for place in _places(data)[:: 7 if value is not None else 3]:
        changed = copy.deepcopy(data)
        holder: Any = changed
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = value
        path.write_text(json.dumps(changed))
        try:
            trace = tv.load(path)
        except TraceFormatError:
            continue
        check_accounting(trace)
        assert (trace.spans["dur_ns"] >= 0).all()
        trace.args.read(range(len(trace.spans)))
        loaded += 1
    assert loaded > 20


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values inside a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    out: list[tuple[Any, ...]] = [path] if path else []
    for key, each in inside:
        if key != "operations":
            out += _places(each, (*path, key))
    return out


def test_json_that_is_none_says_where(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    begin = b'{"rocprofiler-sdk-tool": '
    for text, match in (
        (begin + b"5}", "not a result of rocprofv3"),
        (begin + b'[{"metadata": {"pid": 1}, }]}', "damaged"),
        (begin + b"[" * 5000, "damaged"),
        (begin + b"[{}]}", "holds no event"),
        (begin + b"[]}", "holds no event"),
        (begin + b"[1, null]}", "holds no event"),
        (begin, "damaged"),
    ):
        path.write_bytes(text)
        with pytest.raises(TraceFormatError, match=match) as caught:
            tv.load(path)
        assert caught.value.hint
        assert caught.value.offset is not None


def test_names_that_are_not_utf8_and_numbers_that_json_lacks(tmp_path: Path) -> None:
    process = recorded()
    process.counter(0, "SQ_WAVES", 3)
    path = write_json(tmp_path / "r.json", [process])
    path.write_bytes(
        path.read_bytes().replace(b"gemm<float>", b"gemm<\xff>").replace(b'"value": 3', b'"value": NaN')
    )
    trace = tv.load(path)
    assert "gemm<�>(float*)" in set(trace.spans["name"])
    path.write_text(path.read_text("utf-8", "replace").replace("gemm<", "\\\\\\ud800 \\ud83d\\ude00<"))
    assert "\\� \U0001f600<�>(float*)" in set(tv.load(path).spans["name"])
    assert {"invalid_utf8"} <= {warning.code for warning in trace.meta["warnings"]}
    assert not trace.counters["name"].eq("SQ_WAVES").any()


# -- databases ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", DATABASES)
def test_counts_and_times_are_those_of_sql(schema: str, tmp_path: Path) -> None:
    path = write_database(tmp_path / "r.db", [recorded(), recorded(1000, 30)], schema)
    trace = tv.load(path)
    check_accounting(trace)
    connection = sqlite3.connect(path)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {name: connection.execute(f"SELECT count(*) FROM `{name}`").fetchone()[0] for name in tables}
    found = trace.meta["accounting"]
    assert found["in_file"] == sum(rows.values())
    for table in ("kernel_dispatch", "memory_copy", "region", "memory_allocate"):
        number = total = 0
        for name in tables:
            if name.startswith(f"rocpd_{table}_"):
                run = name.removeprefix(f"rocpd_{table}")
                own = '"end" - start' if schema == "3" else "e.value - s.value"
                joins = "" if schema == "3" else TIMES.format(run)
                some = connection.execute(f"SELECT count(*), sum({own}) FROM `{name}` {joins}").fetchone()
                number, total = number + some[0], total + some[1]
        assert found["tables"][f"rocpd_{table}"] == number
        assert found["table_ns"][f"rocpd_{table}"] == total
    connection.close()
    assert trace.meta["versions"]["rocpd_schema"] == ("3" if schema == "3" else "4.0.0")


@pytest.mark.parametrize("schema", DATABASES)
def test_a_column_or_a_table_may_be_missing(schema: str, tmp_path: Path) -> None:
    path = write_database(tmp_path / "whole.db", [recorded()], schema)
    connection = sqlite3.connect(path)
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if name.startswith("rocpd_")
    ]
    columns = [
        (table, column)
        for table in tables
        for (_, column, *_) in connection.execute(f"PRAGMA table_info(`{table}`)")
        if column != "id"
    ]
    connection.close()
    whole = path.read_bytes()
    changes = [f"DROP TABLE `{table}`" for table in tables]
    changes += [f'ALTER TABLE `{table}` DROP COLUMN "{column}"' for table, column in columns[::5]]
    changes += [f"UPDATE `{table}` SET \"{column}\" = 'x' || x'ff'" for table, column in columns[2::11]]
    for change in changes:
        if "rocpd_timestamp" in change:
            continue  # without its times a recording of schema 4 holds nothing
        connection = sqlite3.connect(":memory:")
        connection.deserialize(whole)
        for (view,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
            connection.execute(f"DROP VIEW `{view}`")
        connection.execute(change)
        connection.commit()
        trace = tv.load(connection.serialize())
        connection.close()
        assert isinstance(trace, tv.Trace)
        check_accounting(trace)
        trace.args.read(range(len(trace.spans)))


def test_a_database_cut_short_keeps_what_is_there(tmp_path: Path) -> None:
    process = recorded()
    for at in range(2000):
        process.kernel("small", 3000 + 10 * at, 3005 + 10 * at, 0, 909)
    path = write_database(tmp_path / "r.db", [process])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 9 // 10 // 4096 * 4096])
    trace = tv.load(path)
    check_accounting(trace)
    assert 100 < len(trace.spans) < 2008
    assert "truncated" in {warning.code for warning in trace.meta["warnings"]}
    with pytest.raises(TraceFormatError):
        tv.load(path, strict=True)


def test_nothing_in_a_database_is_executed_and_nothing_written(tmp_path: Path) -> None:
    path = write_database(tmp_path / "r.db", [recorded()])
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE witness (n)")
    table = next(
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if name.startswith("rocpd_kernel_dispatch")
    )
    connection.execute(
        f"CREATE TRIGGER t AFTER INSERT ON `{table}` BEGIN INSERT INTO witness VALUES (1); END"
    )
    connection.execute(
        "CREATE VIEW endless AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT n FROM r"
    )
    connection.execute("INSERT INTO witness VALUES (7)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    path.chmod(0o444)
    trace = tv.load(path)
    check_accounting(trace)
    assert trace.meta["accounting"]["unread"] == {"witness": 1}
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["r.db"]


def test_a_database_of_one_process_without_runs_in_its_names(tmp_path: Path) -> None:
    path = write_database(tmp_path / "r.db", [recorded()])
    connection = sqlite3.connect(path)
    for name, kind in connection.execute("SELECT name, type FROM sqlite_master").fetchall():
        if kind == "view":
            connection.execute(f"DROP VIEW `{name}`")
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        known = table_of(name)
        if known is not None:
            connection.execute(f"ALTER TABLE `{name}` RENAME TO rocpd_{known[0]}")
    connection.commit()
    connection.close()
    assert len(tv.load(path).spans) == 8


def test_other_databases_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE rocpd_api (id, pid, start, end)")
    connection.execute("CREATE TABLE rocpd_op (id, start, end)")
    connection.commit()
    connection.close()
    with pytest.raises(TraceFormatError, match="rpd database"):
        tv.load(path)
    with pytest.raises(TraceFormatError, match="not a rocpd database"):
        tv.load(path, format="rocprof")
    rocpd = write_database(tmp_path / "b.db", [recorded()])
    with pytest.raises(TraceFormatError, match="format="):
        tv.load(rocpd, format="nsys")
    assert tv.load(rocpd).meta["format"] == "rocprof"


def test_names_of_tables_and_categories() -> None:
    run = "_0198a000_7b21_7c3d_8e4f_a1b2c3d4e5f6"
    assert table_of(f"rocpd_info_pc{run}") == ("info_pc", run)
    assert table_of(f"rocpd_info_pmc{run}") == ("info_pmc", run)
    assert table_of("rocpd_region") == ("region", "")
    assert table_of("rocpd_api") is None
    assert is_rocpd(["a", f"rocpd_kernel_dispatch{run}"])
    assert not is_rocpd(["rocpd_api", "rocpd_op", "rocpd_string"])
    expected = {
        "HIP_RUNTIME_API_EXT": "runtime",
        "HSA_AMD_EXT_API": "runtime",
        "RCCL_API": "runtime",
        "rocm_hip_api": "runtime",
        "MARKER_CORE_RANGE_API": "annotation",
        "rocm_marker_api": "annotation",
        "mpi": "communication",
        "user": "annotation",
        "OMPT": "other",
        "": "other",
    }
    assert {category: kind_of_category(category) for category in expected} == expected


def test_the_writer_numbers_gpus_as_the_tool_does() -> None:
    assert [agent["logical_node_type_id"] for agent in tool_data(Process())["agents"][1:]] == list(
        range(len(GPUS))
    )
