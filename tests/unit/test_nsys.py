"""Exports of Nsight Systems of several ages become traces: who launched what, where, under which names."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nsys_writer import AGES, NsysExport, global_tid, two_processes

import torchtrt_viz as tv
from torchtrt_viz.errors import OptionError
from torchtrt_viz.formats.nsys.vocabulary import describes, is_export

THREAD = global_tid(100, 100)
PLACE = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": global_tid(100)}


def load(export: NsysExport, folder: Path, **options: Any) -> tv.Trace:
    trace = tv.load(export.write(folder / "run.sqlite"), **options)
    assert isinstance(trace, tv.Trace)
    return trace


def call(
    export: NsysExport, start: int, name: str, correlation: int, thread: int = THREAD, dur: int = 10
) -> None:
    export.add(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        start=start,
        end=start + dur,
        eventClass=0,
        globalTid=thread,
        correlationId=correlation,
        nameId=name,
    )


def kernel(export: NsysExport, start: int, correlation: int, dur: int = 100, **more: Any) -> None:
    export.add(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        **{
            "start": start,
            "end": start + dur,
            "correlationId": correlation,
            "demangledName": "gemm()",
            **PLACE,
            **more,
        },
    )


def marked(
    export: NsysExport, start: int, end: int | None, text: str | None, event: int = 59, **more: Any
) -> None:
    values = {
        "start": start,
        "end": end,
        "eventType": event,
        "text": text,
        "globalTid": THREAD,
        "domainId": 0,
    }
    export.add("NVTX_EVENTS", **{**values, **more})


def to_parquet(database: Path, folder: Path) -> Path:
    """Write each table as the tool's parquetdir has it, without the reader under test."""
    folder.mkdir()
    connection = sqlite3.connect(database)
    types = {"INTEGER": pa.int64(), "TEXT": pa.string(), "REAL": pa.float64()}
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        arrays = {
            column[1]: pa.array([row[at] for row in rows], types[column[2]])
            for at, column in enumerate(columns)
        }
        pq.write_table(pa.table(arrays), folder / f"{table}.parquet", row_group_size=2)
    connection.close()
    return folder


@pytest.mark.parametrize("age", AGES[1:])
def test_processes_with_the_same_ids_are_kept_apart(age: str, tmp_path: Path) -> None:
    trace = load(two_processes(age), tmp_path)
    delays = tv.analysis.launch_delays(trace)
    named = delays.assign(kernel=trace.spans["name"].to_numpy()[delays["row"]]).set_index("kernel")
    # the kernel of each process begins 930 ns after the end of its own call
    assert named.loc["gemm<0>(float*)", "delay_ns"] == 1000 - 70
    assert named.loc["gemm<1>(float*)", "delay_ns"] == 1000 - 70
    assert len(delays) == 4
    spans = trace.spans
    work = spans[spans["domain"] == "gpu"]
    assert work["correlation"].nunique() == 4
    assert work.groupby("process", observed=True)["dur_ns"].sum().to_dict() == {
        "worker0 100": 1100,
        "worker1 200": 1101,
    }
    assert trace.tracks["label"].tolist() == [
        *("main0", "main1", "GPU 0 stream 7", "GPU 1 stream 7"),
    ]
    assert trace.meta["base_ns"] == 1_700_000_000_000_000_000


def test_an_export_that_does_not_say_the_process_of_kernels(tmp_path: Path) -> None:
    alone = load(two_processes("2020", pids=[100]), tmp_path)
    assert len(tv.analysis.launch_delays(alone)) == 2
    both = load(two_processes("2020"), tmp_path)
    assert len(tv.analysis.launch_delays(both)) == 0
    found = {warning.code: warning.count for warning in both.meta["warnings"]}
    assert found["ambiguous_id"] == 4


@pytest.mark.parametrize("age", AGES)
def test_names_are_those_of_other_tools(age: str, tmp_path: Path) -> None:
    spans = load(two_processes(age, pids=[100]), tmp_path).spans
    assert dict(zip(spans["name"], spans["kind"], strict=True)) == {
        "step": "annotation",
        "aten::mm": "operator",
        "cudaLaunchKernel": "runtime",
        "cudaMemcpyAsync": "runtime",
        "gemm<0>(float*)": "kernel",
        "Memcpy HtoD (Pinned -> Device)": "memcpy",
    }
    assert set(spans.loc[spans["domain"] == "gpu", "kind"]) == {"kernel", "memcpy"}


def test_operators_of_torch_have_shapes_and_device_time(tmp_path: Path) -> None:
    trace = load(two_processes(), tmp_path)
    table = trace.operators(by="shape")
    assert table[["name", "shape", "calls", "device_total_ns"]].to_dict("records") == [
        {"name": "aten::mm", "shape": "[[2,3],[3,4]]", "calls": 2, "device_total_ns": 2201}
    ]
    assert trace.args[0] == {}
    assert trace.args[1] == {
        "text": "aten::mm, seq = 7, op_id = 12, sizes = [[2, 3], [3, 4]]",
        "Sequence number": 7,
        "op_id": 12,
        "Input Dims": [[2, 3], [3, 4]],
    }


def test_a_kernel_has_the_details_that_torch_records_too(tmp_path: Path) -> None:
    trace = load(two_processes("2023", pids=[100]), tmp_path)
    row = int((trace.spans["kind"] == "kernel").to_numpy().nonzero()[0][0])
    assert trace.args[row] == {
        "grid": [8, 2, 1],
        "block": [128, 1, 1],
        "shared memory": 1040,
        "device": 0,
        "context": 1,
        "stream": 7,
        "correlation": 5,
        "demangled name": "gemm<0>(float*)",
        "short name": "gemm",
        "registers per thread": 32,
        "staticSharedMemory": 16,
        "dynamicSharedMemory": 1024,
    }
    copies = tv.analysis.copies(trace)
    assert copies[["direction", "bytes", "total_ns"]].to_dict("records") == [
        {"direction": "host to device", "bytes": 4096, "total_ns": 100}
    ]


def test_streams_of_several_contexts_are_told_apart(tmp_path: Path) -> None:
    export = NsysExport()
    process = {"globalPid": global_tid(0, machine=0)}
    call(export, 0, "cudaLaunchKernel_v7000", 1, thread=global_tid(0, 7, machine=0))
    for context in (1, 2):
        kernel(export, 100 * context, context, contextId=context, **process)
    trace = load(export, tmp_path)
    assert trace.tracks["label"].tolist() == [
        "thread 7",
        "GPU 0 stream 7 (context 1)",
        "GPU 0 stream 7 (context 2)",
    ]
    assert trace.spans["stream"].dropna().tolist() == ["1/7", "2/7"]


def test_devices_are_the_machines(tmp_path: Path) -> None:
    export = two_processes()
    for number in (0, 1):
        export.add(
            "TARGET_INFO_GPU", id=number, name="NVIDIA H100 80GB HBM3", totalMemory=10**11, smCount=132
        )
    trace = load(export, tmp_path)
    assert trace.kernels(by="device")[["device", "calls"]].to_dict("records") == [
        {"device": 1, "calls": 1},
        {"device": 0, "calls": 1},
        {"device": 0, "calls": 1},
        {"device": 1, "calls": 1},
    ]
    assert trace.meta["devices"][1]["numSms"] == 132
    assert tv.analysis.operator_roofline(trace).attrs is not None


def test_a_graph_is_one_launch_whether_its_nodes_are_recorded_or_not(tmp_path: Path) -> None:
    export = NsysExport()
    call(export, 10, "cudaGraphLaunch_v10000", 5)
    call(export, 40, "cudaGraphLaunch_v10000", 6)
    for at in (100, 250, 400):  # the nodes of the first launch, on two streams
        kernel(export, at, 5, graphNodeId=at, streamId=7 if at < 300 else 8)
    for correlation, start in ((5, 100), (6, 1000)):
        export.add(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
            start=start,
            end=start + 400,
            correlationId=correlation,
            graphId=3,
            graphExecId=4,
            **PLACE,
        )
    trace = load(export, tmp_path)
    table = tv.analysis.graph_launches(trace)
    assert table[["kernels", "device_sum_ns", "device_span_ns"]].to_dict("records") == [
        {"kernels": 3, "device_sum_ns": 300, "device_span_ns": 400},
        {"kernels": 1, "device_sum_ns": 400, "device_span_ns": 400},
    ]
    kernels = trace.kernels().set_index("name")
    assert kernels["total_ns"].to_dict() == {"CUDA graph 3": 400, "gemm()": 300}
    whole = trace.spans[trace.spans["name"] == "CUDA graph 3"]
    assert whole["kind"].tolist() == ["annotation", "kernel"]
    assert trace.args[int(whole.index[1])]["graphExecId"] == 4
    node = trace.spans.index[trace.spans["kind"] == "kernel"][0]
    assert trace.args[int(node)]["graph node id"] == 100
    assert tv.analysis.launch_stats(trace)["calls"].sum() == 2
    assert trace.graphs()[["kernels", "gpu_ns"]].to_dict("records") == [
        {"kernels": 3, "gpu_ns": 300},
        {"kernels": 1, "gpu_ns": 400},
    ]


def test_making_graphs_is_marked(tmp_path: Path) -> None:
    export = two_processes()
    export.add(
        "CUDA_GRAPH_NODE_EVENTS",
        start=77,
        end=77,
        globalTid=THREAD,
        nameId="cudaLaunchKernel_v7000",
        graphNodeId=9,
    )
    trace = load(export, tmp_path)
    assert trace.instants[["name", "ts_ns"]].to_dict("records") == [{"name": "cudaLaunchKernel", "ts_ns": 77}]
    assert trace.instant_args[0]["graph node id"] == 9


# -- NVTX --------------------------------------------------------------------------------------------------


def test_ranges_are_projected_onto_the_device(tmp_path: Path) -> None:
    export = NsysExport()
    marked(export, 0, 1000, "outer")
    marked(export, 10, 100, "inner")
    marked(export, 200, 300, "idle")
    marked(export, 0, 1000, "elsewhere", globalTid=global_tid(100, 101))
    call(export, 20, "cudaLaunchKernel_v7000", 1)
    call(export, 50, "cudaLaunchKernel_v7000", 2)
    call(export, 500, "cudaGraphLaunch_v10000", 3)
    call(export, 600, "cudaLaunchKernel_v7000", 4, thread=global_tid(100, 101))
    kernel(export, 2000, 1, 100)
    kernel(export, 2050, 2, 100, streamId=8)
    kernel(export, 3000, 3, 10)
    kernel(export, 3020, 3, 10)
    kernel(export, 4000, 4, 7)
    trace = load(export, tmp_path)
    table = trace.nvtx(project="gpu").set_index("name")
    shown = ["launches", "pieces", "device_start_ns", "device_span_ns", "device_busy_ns", "device_sum_ns"]
    assert table[shown].astype(int).to_dict("index") == {
        "outer": dict(zip(shown, (3, 4, 2000, 1030, 170, 220), strict=True)),
        "inner": dict(zip(shown, (2, 2, 2000, 150, 150, 200), strict=True)),
        "elsewhere": dict(zip(shown, (1, 1, 4000, 7, 7, 7), strict=True)),
    }
    host = trace.nvtx()
    assert host["name"].tolist() == ["outer", "elsewhere", "inner", "idle"]
    assert host.set_index("name")["parent"]["idle"] == table["row"]["outer"]
    assert pd.isna(host.set_index("name")["device_start_ns"]["idle"])
    assert host.set_index("name")["pieces"]["idle"] == 0
    with pytest.raises(OptionError, match="project"):
        trace.nvtx(project="cpu")


def test_domains_categories_and_payloads(tmp_path: Path) -> None:
    export = NsysExport()
    marked(export, 0, None, "NCCL", event=75, domainId=1)
    marked(export, 0, None, "phases", event=33, domainId=1, category=4)
    marked(
        export, 5, 50, None, textId="ncclAllReduce", domainId=1, category=4, color=0xFF00FF00, uint64Value=77
    )
    marked(export, 60, 80, "mine", jsonText='{"batch": 8}')
    marked(export, 90, 95, "no name of a domain", domainId=9)
    trace = load(export, tmp_path)
    table = trace.nvtx()
    assert table["name"].tolist() == ["ncclAllReduce", "mine", "no name of a domain"]
    assert [None if pd.isna(name) else name for name in table["domain"]] == ["NCCL", None, "domain 9"]
    assert trace.nvtx(domain="NCCL")["name"].tolist() == ["ncclAllReduce"]
    assert trace.nvtx(domain="")["name"].tolist() == ["mine"]
    assert trace.args[0] == {"domain": "NCCL", "category": "phases", "color": "#ff00ff00", "payload": 77}
    assert trace.args[1] == {"payload": {"batch": 8}}
    assert trace.meta["accounting"]["left_out"] == {}


def test_ranges_that_end_on_another_thread_lie_on_a_row_of_their_own(tmp_path: Path) -> None:
    export = NsysExport()
    marked(export, 0, None, "jobs", event=75, domainId=2)
    marked(export, 0, 100, "first", event=60, domainId=2, endGlobalTid=global_tid(100, 101), rangeId=1)
    marked(export, 50, 150, "second", event=60, domainId=2, rangeId=2)
    marked(export, 10, 20, "pushed")
    call(export, 120, "cudaLaunchKernel_v7000", 1, thread=global_tid(100, 101))
    kernel(export, 500, 1)
    trace = load(export, tmp_path)
    labels = trace.tracks["label"].to_numpy()[trace.spans["track"]]
    assert dict(zip(trace.spans["name"], labels, strict=True)) == {
        "first": "NVTX ranges of jobs",
        "second": "NVTX ranges of jobs",
        "pushed": "thread 100",
        "cudaLaunchKernel": "thread 101",
        "gemm()": "GPU 0 stream 7",
    }
    assert trace.spans["parent"].eq(-1).all()
    assert trace.nvtx(project="gpu")["name"].tolist() == ["second"]


def test_marks_and_open_ranges_are_points(tmp_path: Path) -> None:
    export = two_processes(pids=[100])
    marked(export, 30, None, "a mark", event=34)
    marked(export, 40, None, "never popped")
    marked(export, 50, 45, "backwards")
    trace = load(export, tmp_path)
    assert trace.instants[["name", "state", "ts_ns"]].to_dict("records") == [
        {"name": "never popped", "state": "unfinished", "ts_ns": 40},
        {"name": "backwards", "state": "invalid", "ts_ns": 50},
        {"name": "a mark", "state": "instant", "ts_ns": 30},
    ]
    codes = {warning.code: warning.count for warning in trace.meta["warnings"]}
    assert codes == {"missing_duration": 1, "invalid_duration": 1}
    with pytest.raises(tv.TraceFormatError, match="end before they start"):
        load(export, tmp_path, strict=True)


def test_labels_of_users_are_no_operators(tmp_path: Path) -> None:
    export = NsysExport()
    marked(export, 0, 10, "## forward ##, op_id = 3")
    marked(export, 20, 30, "AddmmBackward0, op_id = 4")
    marked(
        export, 40, 50, None, textId="autograd::engine::evaluate_function: MmBackward0, seq = 9, op_id = 5"
    )
    marked(export, 60, 70, "aten::mm")
    marked(export, 80, 90, "ProfilerStep#7")
    spans = load(export, tmp_path).spans
    assert dict(zip(spans["name"], spans["kind"], strict=True)) == {
        "## forward ##": "annotation",
        "AddmmBackward0": "operator",
        "autograd::engine::evaluate_function: MmBackward0": "operator",
        "aten::mm": "annotation",
        "ProfilerStep#7": "step",
    }


# -- the rest ----------------------------------------------------------------------------------------------


def test_what_recording_cost_is_in_no_sum(tmp_path: Path) -> None:
    export = two_processes(pids=[100])
    before = load(export, tmp_path).host_gpu()
    export.add(
        "PROFILER_OVERHEAD", start=5, end=5000, globalTid=THREAD, nameId="Buffer flush", overheadType=3
    )
    trace = load(export, tmp_path)
    assert trace.spans.set_index("name")["timing"]["Buffer flush"] == "modeled"
    pd.testing.assert_frame_equal(trace.host_gpu(), before)


def test_what_the_host_waits_for_is_host_time(tmp_path: Path) -> None:
    export = two_processes(pids=[100])
    wait = {**PLACE, "start": 4000, "end": 4200, "correlationId": 9, "syncType": 3}
    export.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **wait)
    spans = load(export, tmp_path).spans
    row = spans[spans["name"] == "Stream sync"].iloc[0]
    assert (row["domain"], row["kind"], row["dur_ns"]) == ("host", "other", 200)


def test_metrics_are_counters(tmp_path: Path) -> None:
    export = two_processes(pids=[100])
    kind = 0x100000001
    for metric, name in ((1, "SM Active [Throughput %]"), (2, "GPC Clock Frequency [MHz]")):
        export.add("TARGET_INFO_GPU_METRICS", typeId=kind, metricId=metric, metricName=name)
        export.add("GPU_METRICS", timestamp=100 * metric, typeId=kind, metricId=metric, value=40 + metric)
    trace = load(export, tmp_path)
    assert trace.counters[["name", "ts_ns", "value", "unit"]].to_dict("records") == [
        {"name": "SM Active [Throughput %]", "ts_ns": 100, "value": 41.0, "unit": "%"},
        {"name": "GPC Clock Frequency [MHz]", "ts_ns": 200, "value": 42.0, "unit": "MHz"},
    ]
    assert trace.tracks["label"].iloc[-1] == "metrics of GPU 1"


def test_allocations_are_memory_over_time(tmp_path: Path) -> None:
    export = two_processes(pids=[100])
    call(export, 5, "cudaMalloc_v3020", 60)
    changes = [
        (6, 0x10, 100, 2, 0, 60),
        (7, 0x20, 50, 2, 0, None),
        (8, 0x30, 7, 1, 0, None),  # pinned memory of the host
        (9, 0x10, 100, 2, 1, None),
        (10, 0x99, 5000, 2, 1, None),  # allocated before the recording began
        (11, 0x10, 30, 2, 0, None),
    ]
    for at, address, size, kind, operation, correlation in changes:
        export.add(
            "CUDA_GPU_MEMORY_USAGE_EVENTS",
            start=at,
            globalPid=global_tid(100),
            deviceId=0,
            address=address,
            bytes=size,
            memKind=kind,
            memoryOperationType=operation,
            correlationId=correlation,
        )
    trace = load(export, tmp_path)
    table = trace.memory()
    on_device = table[table["device"] == "cuda:0"]
    assert on_device["ts_ns"].tolist() == [6, 7, 9, 10, 11]
    assert on_device["allocated_bytes"].tolist() == [100, 150, 50, 50, 80]
    assert table[table["device"] == "cpu"]["allocated_bytes"].tolist() == [7]
    labels = trace.tracks["label"].to_numpy()[trace.instants["track"]]
    assert labels.tolist() == ["main0", *["memory of unknown threads"] * 5]
    assert trace.instant_args[3] == {
        "Bytes": -100,
        "Addr": 0x10,
        "Device Type": 1,
        "Device Id": 0,
        "memory kind": "Device",
    }
    by_operator = tv.analysis.memory_by_operator(trace)
    assert by_operator["allocated_bytes"].sum() == 187


def test_warnings_of_the_tool_are_ours(tmp_path: Path) -> None:
    export = two_processes(pids=[100])
    for severity, text in (
        (1, "Profiling has started."),
        (2, "Events were dropped."),
        (2, "Events were dropped."),
    ):
        export.add("DIAGNOSTIC_EVENT", timestamp=1, severity=severity, text=text)
    trace = load(export, tmp_path)
    (warning,) = trace.meta["warnings"]
    assert warning.code == "diagnostic"
    assert "Events were dropped." in warning.message
    assert warning.count == 2
    assert len(trace.meta["diagnostics"]) == 3


@pytest.mark.parametrize("age", AGES)
def test_every_row_is_accounted_for(age: str, tmp_path: Path) -> None:
    export = two_processes(age)
    marked(export, 1, None, "unknown", event=66)
    for cpu in range(5):
        export.add("SCHED_EVENTS", start=cpu, cpu=cpu, isSchedIn=1, globalTid=THREAD)
    path = export.write(tmp_path / "run.sqlite")
    connection = sqlite3.connect(path)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
    connection.close()
    trace = tv.load(path)
    found = trace.meta["accounting"]
    assert found["in_file"] == sum(rows.values())
    assert found["in_file"] == found["read"] + sum(found["left_out"].values()) + sum(found["unread"].values())
    assert found["left_out"] == {"nvtx_event_of_type_66": 1}
    assert found["unread"] == ({} if age == "2020" else {"SCHED_EVENTS": 5})
    assert found["bookkeeping"] == {name: count for name, count in rows.items() if describes(name)}
    assert found["rows"]["spans"] == len(trace.spans)


def test_the_environment_of_the_program_stays_out(tmp_path: Path) -> None:
    export = two_processes(pids=[100])
    export.add("TARGET_INFO_SYSTEM_ENV", name="DeviceEnvironment", value="HF_TOKEN=hf_secret;PATH=/bin")
    export.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node7")
    export.add("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value="2026.2.1.210")
    export.add("META_DATA_EXPORT", name="EXPORT_USER", value="somebody")
    meta = load(export, tmp_path).meta
    assert meta["host_name"] == "node7"
    assert meta["versions"] == {"nsight_systems": "2026.2.1.210"}
    assert "secret" not in str(meta)
    assert "somebody" not in str(meta)


def test_a_folder_of_parquet_tables_gives_the_same(tmp_path: Path) -> None:
    export = two_processes()
    marked(export, 5, 6, None, textId="aten::add, op_id = 3")
    marked(export, 1, None, "d", event=75, domainId=3)
    marked(export, 7, 9, "of it", domainId=3)
    database = export.write(tmp_path / "run.sqlite")
    folder = to_parquet(database, tmp_path / "run_pqtdir")
    expected = tv.load(database)
    for given in (folder, folder / "NVTX_EVENTS.parquet"):
        trace = tv.load(given)
        for name in ("spans", "tracks", "instants", "counters", "flows"):
            pd.testing.assert_frame_equal(getattr(trace, name), getattr(expected, name))
        assert trace.args.read() == expected.args.read()
        assert trace.meta["accounting"] == expected.meta["accounting"]
        assert trace.meta["sources"] == [str(folder)]
        pd.testing.assert_frame_equal(trace.nvtx(), expected.nvtx())
    session = tv.load([database, folder])
    assert len(session.ranks) == 2


def test_a_damaged_parquet_table_is_left_out(tmp_path: Path) -> None:
    folder = to_parquet(two_processes().write(tmp_path / "run.sqlite"), tmp_path / "run_pqtdir")
    (folder / "CUPTI_ACTIVITY_KIND_MEMCPY.parquet").write_bytes(b"PAR1 and no more")
    trace = tv.load(folder)
    assert "damaged_table" in [warning.code for warning in trace.meta["warnings"]]
    assert "memcpy" not in set(trace.spans["kind"])
    with pytest.raises(tv.TraceFormatError, match="left out"):
        tv.load(folder, strict=True)


def test_compressed_exports_and_archives_are_read(tmp_path: Path) -> None:
    path = two_processes().write(tmp_path / "run.sqlite")
    expected = tv.load(path)
    packed = tmp_path / "packed.sqlite.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for trace in (tv.load(packed), tv.load(path.read_bytes())):
        pd.testing.assert_frame_equal(trace.spans, expected.spans)
        assert trace.args.read([1, 4]) == expected.args.read([1, 4])


def test_a_truncated_export_keeps_what_is_whole(tmp_path: Path) -> None:
    path = two_processes(pids=range(100, 140)).write(tmp_path / "run.sqlite", page_size=512)
    whole = tv.load(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 4])
    trace = tv.load(path)
    assert 0 < len(trace.spans) < len(whole.spans)
    assert "truncated" in [warning.code for warning in trace.meta["warnings"]]
    with pytest.raises(tv.TraceFormatError):
        tv.load(path, strict=True)


def test_what_is_no_export_is_named(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE people (name TEXT)")
    connection.commit()
    with pytest.raises(tv.TraceFormatError, match="no export of Nsight Systems"):
        tv.load(path)
    with pytest.raises(tv.TraceFormatError, match="tables people"):
        tv.load(path, format="nsys")
    connection.execute("CREATE TABLE StringTable (v TEXT)")
    connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (v TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(tv.TraceFormatError, match="nvprof"):
        tv.load(path, format="nsys")


def test_an_export_without_events_is_an_error(tmp_path: Path) -> None:
    export = NsysExport()
    export.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=5)
    export.add("SCHED_EVENTS", start=1, cpu=1, isSchedIn=1, globalTid=THREAD)
    with pytest.raises(tv.TraceFormatError, match=r"no event that is read.*SCHED_EVENTS 1"):
        load(export, tmp_path)


def test_tables_tell_an_export() -> None:
    assert is_export(["StringIds", "CUPTI_ACTIVITY_KIND_KERNEL"])
    assert is_export(["TARGET_INFO_SYSTEM_ENV"], complete=False)
    assert not is_export(["TARGET_INFO_SYSTEM_ENV"])
    assert not is_export(["StringIds", "people"])


@pytest.mark.parametrize(
    ("ending", "command"),
    [
        ("nsys-rep", "nsys export --type sqlite --output my.run.sqlite my.run.nsys-rep"),
        ("qdrep", "nsys export --type sqlite --output my.run.sqlite my.run.qdrep"),
        ("qdstrm", "QdstrmImporter -i my.run.qdstrm; nsys export --type sqlite"),
    ],
)
def test_a_report_says_how_to_export_it(tmp_path: Path, ending: str, command: str) -> None:
    path = tmp_path / f"my.run.{ending}"
    path.write_bytes(b"\x01\x02\x03\x04" * 9)
    with pytest.raises(tv.TraceFormatError) as raised:
        tv.load(path)
    assert command in str(raised.value)
