"""Tracks, kinds, counters, steps and meta of trace-event files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from trace_events import complete, load_events, load_text, warned

from torchtrt_viz.formats.kineto.reader import sniff


def meta_event(what: str, pid: Any, tid: Any, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


@pytest.mark.parametrize(
    ("category", "kind", "domain"),
    [
        ("cpu_op", "operator", "host"),
        ("Operator", "operator", "host"),
        ("kernel", "kernel", "gpu"),
        ("Kernel", "kernel", "gpu"),
        ("gpu_memcpy", "memcpy", "gpu"),
        ("Memcpy", "memcpy", "gpu"),
        ("gpu_memset", "memset", "gpu"),
        ("user_annotation", "annotation", "host"),
        ("gpu_user_annotation", "annotation", "gpu"),
        ("cuda_runtime", "runtime", "host"),
        ("cuda_driver", "runtime", "host"),
        ("Runtime", "runtime", "host"),
        ("xpu_runtime", "runtime", "host"),
        ("mtia_runtime", "runtime", "host"),
        ("mtia_ccp_events", "kernel", "gpu"),
        ("privateuse1_driver", "runtime", "host"),
        ("python_function", "python", "host"),
        ("cuda_sync", "other", "host"),
        ("overhead", "other", "host"),
        ("never heard of", "other", "host"),
    ],
)
def test_categories(category: str, kind: str, domain: str, tmp_path: Path) -> None:
    trace = load_events(tmp_path, [complete("x", 1, 1, cat=category)])
    assert trace.spans["kind"].astype(object).tolist() == [kind]
    assert trace.spans["domain"].astype(object).tolist() == [domain]
    assert trace.tracks["domain"].astype(object).tolist() == [domain]
    assert trace.meta["categories"] == {category: 1}


@pytest.mark.parametrize("category", ["never heard of", "collective_comm", None])
def test_unknown_work_on_a_stream_of_a_device_is_the_devices(category: str | None, tmp_path: Path) -> None:
    event = complete("x", 1, 1, args={"device": 3, "stream": 7})
    del event["cat"]
    trace = load_events(tmp_path, [event if category is None else {**event, "cat": category}])
    assert trace.spans["domain"].astype(object).tolist() == ["gpu"]
    assert trace.tracks["device"].tolist() == [3]


@pytest.mark.parametrize(
    ("name", "category", "kind"),
    [
        ("ProfilerStep#12", "user_annotation", "step"),
        ("gloo:all_reduce", "user_annotation", "communication"),
        ("nccl:all_reduce", "user_annotation", "annotation"),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "kernel",
            "communication",
        ),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "kernel", "communication"),
        ("void vllm::cross_device_reduce_1stage<half, 8>(RankData*)", "kernel", "communication"),
        ("void add<float>(ncclThing*)", "kernel", "kernel"),
        ("ncclDevKernel_x", "cpu_op", "operator"),
    ],
)
def test_names_that_tell_the_kind(name: str, category: str, kind: str, tmp_path: Path) -> None:
    trace = load_events(tmp_path, [complete(name, 1, 1, cat=category)])
    assert trace.spans["kind"].astype(object).tolist() == [kind]


def test_host_and_device_work_under_one_id_is_kept_apart(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            complete("kernel", 0, 10, cat="kernel", pid=0, tid=7),
            complete("Stream Sync", 2, 5, cat="cuda_sync", pid=0, tid=7),
        ],
    )
    assert trace.spans["track"].tolist() == [0, 1]
    assert trace.spans["parent"].tolist() == [-1, -1]
    assert trace.tracks["label"].tolist() == ["stream 7", "thread 7 (host)"]
    assert trace.tracks["type"].astype(object).tolist() == ["stream", "thread"]


def test_labels_and_order_from_metadata_wherever_it_stands(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            meta_event("thread_name", 1, 1, name="main"),
            complete("a", 1, 1),
            complete("b", 1, 1, tid=2),
            complete("c", 1, 1, cat="kernel", pid=2, tid=9, args={"device": 2, "stream": 9}),
            meta_event("thread_name", 1, 1, name="main again"),
            meta_event("process_name", 1, 0, name="python"),
            meta_event("process_labels", 1, 0, labels="CPU"),
            meta_event("process_sort_index", 2, 0, sort_index=-1),
            meta_event("thread_sort_index", 1, 2, sort_index=-5),
            meta_event("thread_name", 2, 9, name="stream 9 "),
            meta_event("thread_name", 1, 77, name="has no events"),
        ],
    )
    assert trace.tracks["label"].tolist() == ["main again", "thread 2", "GPU 2 stream 9"]
    assert trace.tracks.sort_values("sort_index")["label"].tolist() == [
        "GPU 2 stream 9",
        "thread 2",
        "main again",
    ]
    assert trace.meta["processes"] == {1: {"name": "python", "labels": "CPU"}}


def test_ids_as_numbers_and_as_text_are_one_thread(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            complete("a", 1, 5, pid="1", tid="0x7f"),
            complete("b", 2, 1, pid=1, tid="0x7f"),
            complete("c", 1, 1, pid=18446744073709551615, tid=-5),
            complete("d", 1, 1, pid=None),
        ],
    )
    assert trace.spans["track"].tolist() == [0, 0, 1, 2]
    assert trace.tracks["process"].fillna("none").tolist() == ["1", "18446744073709551615", "none"]
    assert trace.tracks["thread"].tolist() == ["0x7f", "-5", "1"]


def test_counters(tmp_path: Path) -> None:
    def counter(name: str, ts: int, args: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"ph": "C", "name": name, "pid": 1, "ts": ts, "args": args, **more}

    trace = load_events(
        tmp_path,
        [
            counter("one", 1, {"value": 1.5}),
            counter("two", 2, {"a": 1, "b": "2", "text": "x"}),
            {"args": {"value": 7}, "name": "one", "ts": 3, "ph": "C", "pid": 1},
            counter("one", 4, {"": 3}, id=5),
            counter("nothing", 5, {"text": "x"}),
            complete("op", 1, 1, args={"a": 1}),
        ],
    )
    counters = trace.counters
    assert counters["name"].astype(object).tolist() == ["one", "two/a", "two/b", "one", "one[5]"]
    assert counters["value"].tolist() == [1.5, 1.0, 2.0, 7.0, 3.0]
    assert counters["ts_ns"].tolist() == [1000, 2000, 2000, 3000, 4000]
    assert counters["unit"].isna().all()
    assert set(trace.tracks["type"].astype(object)[counters["track"]]) == {"counter"}
    assert warned(trace) == {"counter_without_value": 1}


def test_memory_events(tmp_path: Path) -> None:
    def memory(ts: int, kind: int, number: int, allocated: int) -> dict[str, Any]:
        args = {
            "Total Allocated": allocated,
            "Total Reserved": 2 * allocated,
            "Device Type": kind,
            "Device Id": number,
        }
        return {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 1,
            "tid": 1,
            "ts": ts,
            "args": args,
        }

    trace = load_events(tmp_path, [memory(1, 0, -1, 100), memory(2, 1, 0, 10**12), memory(3, 99, 4, 5)])
    assert trace.instants["kind"].astype(object).tolist() == ["memory"] * 3
    assert trace.instants["domain"].astype(object).tolist() == ["host"] * 3
    got = list(zip(trace.counters["name"].astype(object), trace.counters["value"], strict=True))
    assert got == [
        ("allocated memory/cpu", 100.0),
        ("reserved memory/cpu", 200.0),
        ("allocated memory/cuda:0", 1e12),
        ("reserved memory/cuda:0", 2e12),
        ("allocated memory/device type 99:4", 5.0),
        ("reserved memory/device type 99:4", 10.0),
    ]
    assert set(trace.counters["unit"].astype(object)) == {"B"}


def test_steps(tmp_path: Path) -> None:
    kernel = {"cat": "kernel", "pid": 0, "tid": 7}
    trace = load_events(
        tmp_path,
        [
            complete("before", 0, 1),
            complete("ProfilerStep#4", 10, 10, cat="user_annotation", args={"External id": 1}),
            complete("in 4", 10, 1, args={"External id": 2}),
            complete("launch", 12, 1, cat="cuda_runtime", args={"correlation": 5}),
            complete("ProfilerStep#5", 20, 10, cat="user_annotation"),
            complete("in 5", 20, 30),
            complete("other thread in 5", 22, 2, tid=2),
            complete("other thread across", 18, 5, tid=2),
            complete("other process", 22, 2, pid=9),
            complete("kernel of 4", 40, 5, **kernel, args={"correlation": 5}),
            complete("kernel of nothing", 50, 5, **kernel, args={"correlation": 6}),
            complete(
                "annotation of 4", 40, 9, cat="gpu_user_annotation", pid=0, tid=7, args={"External id": 2}
            ),
            complete("after", 60, 1),
        ],
    )
    steps = dict(zip(trace.spans["name"].astype(object), trace.spans["iteration"].fillna(-1), strict=True))
    assert steps == {
        "before": -1,
        "ProfilerStep#4": 4,
        "in 4": 4,
        "launch": 4,
        "ProfilerStep#5": 5,
        "in 5": 5,
        "other thread in 5": 5,
        "other thread across": -1,
        "other process": -1,
        "kernel of 4": 4,
        "kernel of nothing": -1,
        "annotation of 4": 4,
        "after": -1,
    }


def test_self_time_by_hand(tmp_path: Path) -> None:
    trace = load_events(
        tmp_path,
        [
            complete("a", 0, 100),
            complete("b", 10, 30),
            complete("c", 15, 10),
            complete("d", 50, 20),
            complete("e", 70, 5),
        ],
    )
    assert trace.spans["self_ns"].tolist() == [45000, 20000, 10000, 20000, 5000]
    assert trace.spans["depth"].tolist() == [0, 1, 2, 1, 1]
    assert trace.spans["parent"].tolist() == [-1, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("file", "top", "rank"),
    [
        ("trace.json", {"distributedInfo": {"rank": 3}}, 3),
        ("rank7.1796035957089938289.pt.trace.json", {"distributedInfo": {"rank": 3}}, 3),
        ("rank7.1796035957089938289.pt.trace.json", {}, 7),
        ("trace.json", {}, -1),
        ("trace.json", {"distributedInfo": {"rank": "5"}}, 5),
        ("trace.json", {"distributedInfo": {"rank": -1}}, -1),
        ("trace.json", {"distributedInfo": {"rank": 1e30}}, -1),
        ("trace.json", {"distributedInfo": [1]}, -1),
    ],
)
def test_rank(file: str, top: dict[str, Any], rank: int, tmp_path: Path) -> None:
    import json

    import torchtrt_viz as tv

    path = tmp_path / file
    path.write_text(json.dumps({**top, "traceEvents": [complete("a", 1, 1)]}))
    trace = tv.load(path)
    assert trace.meta["rank"] == (None if rank < 0 else rank)
    assert trace.spans["rank"].fillna(-1).tolist() == [rank]
    assert trace.tracks["rank"].fillna(-1).tolist() == [rank]


def test_known_top_level_values(tmp_path: Path) -> None:
    trace = load_text(
        tmp_path,
        '{"schemaVersion": 1, "cupti_version": 18, "with_stack": 1, "synthetic": 1, "host_name": "vm", '
        '"TOKEN": "x", "deviceProperties": [{"id": 1, "name": "GPU", "bw": inf}], '
        '"baseTimeNanoseconds": "1700000000000000000", "displayTimeUnit": "ms", "traceEvents": []}',
    )
    assert trace.meta["versions"] == {"schemaVersion": 1, "cupti_version": 18}
    assert trace.meta["with_stack"] is True
    assert trace.meta["synthetic"] is True
    assert trace.meta["host_name"] == "vm"
    assert trace.meta["base_ns"] == 1700000000000000000
    assert trace.meta["devices"] == {1: {"id": 1, "name": "GPU", "bw": float("inf")}}
    assert "TOKEN" not in trace.meta


def test_columns_are_those_of_the_schema(tmp_path: Path) -> None:
    from torchtrt_viz.model import schema

    trace = load_events(tmp_path, [complete("a", 1, 1)])
    for frame, columns in (
        (trace.spans, schema.SPANS),
        (trace.instants, schema.INSTANTS),
        (trace.tracks, schema.TRACKS),
    ):
        assert list(frame.columns) == columns.names
    assert trace.spans["start_ns"].dtype == "int64"
    assert isinstance(trace.spans["name"].dtype, pd.CategoricalDtype)


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b'{"traceEvents": []}', True),
        (b'\xef\xbb\xbf \n{"schemaVersion": 1, "traceEvents": [', True),
        (b'[{"ph": "X", "name": "x"', True),
        (b'[\n\n {"name": "x", "ph": "X"', True),
        (b'{"schemaVersion": 1, "deviceProperties": [' + b'{"id": 0},' * 10000, True),
        (b'{"hello": [1, 2, 3]}', False),
        (b'[{"name": "layer", "timeMs": 1}]', False),
        (b"[]", False),
        (b"", False),
        (b"\x08\x00\x00\x00ED00", False),
        (b'"traceEvents": [', False),
    ],
)
def test_sniffing(head: bytes, known: bool) -> None:
    assert sniff(head, "x.json") is known


def test_top_level_keys_that_are_passed_over_are_accounted_for(tmp_path: Path) -> None:
    text = (
        '{"mine": {"a": "}"}, "schemaVersion": 1, "n": 12 , "traceEvents": '
        '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}], "samples": [{"sf": 1}], '
        '"systemTraceEvents": ""}'
    )
    trace = load_text(tmp_path, text)
    assert trace.meta["accounting"]["keys_passed_over"] == {
        "mine": len('{"a": "}"}'),
        "n": 2,
        "samples": len('[{"sf": 1}]'),
        "systemTraceEvents": 2,
    }
    assert [w.message for w in trace.meta["warnings"] if w.code == "unread_key"] == [
        "'samples' holds records of another form (11 bytes), not read"
    ]
