"""XPlanes: every event at its place, with values worked out by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xplane_writer import Plane, blob, xspace

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError

STARTED = 1_700_000_000_000_000_000


def load(tmp_path: Path, content: bytes, **options: Any) -> tv.Trace:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(content)
    loaded = tv.load(path, **options)
    assert isinstance(loaded, tv.Trace)
    return loaded


def environment() -> Plane:
    return Plane("Task Environment", stats={"profile_start_time": STARTED, "profile_stop_time": STARTED + 9})


def host(process: int = 77) -> Plane:
    """A step with a Python frame, an operator of XLA on the CPU, and a launch; then a thread of XLA."""
    plane = Plane("/host:CPU", stats={"process_id": process})
    plane.line(
        "python",
        [
            plane.event("train", 0, 9_000_000, {"step_num": 4}),
            plane.event("$model.py:12 f", 500_000, 8_000_000),
            plane.event(
                "cuLaunchKernel", 1_000_000, 2_000_000, {"correlation_id": 31, "hlo_op": "ref:fusion.1"}
            ),
            plane.event("PjitFunction(f)", 20_000_000, 1_000_000),
        ],
        id=5,
        timestamp_ns=100,
    )
    plane.line(
        "tf_XLAEigen/1",
        [
            plane.event("dot.3", 0, 700_000, {"hlo_op": "dot.3", "_pt": 2, "_p": 9}),
            plane.event("take up", 800_000, 100_000, {"_ct": 2, "_c": 9}),
        ],
        id=6,
        timestamp_ns=100,
    )
    return plane


def gpu(device: int = 0) -> Plane:
    plane = Plane(
        f"/device:GPU:{device}",
        id=device + 1,
        stats={"core_count": 132, "memory_bandwidth": 4_000_000_000_000, "device_vendor": "Nvidia"},
    )
    details = "regs:40 static_shared:16 dynamic_shared:0 grid:7,2,1 block:128,1,1 occ_pct:50"
    op = {"hlo_module": "ref:jit_f", "name": "ref:jit(f)/dot_general"}
    plane.line(
        "Stream #13(Kernel,MemcpyD2H)",
        [
            plane.event(
                "loop_fusion", 3_000_000, 1_000_000, {"kernel_details": details, "correlation_id": 31} | op
            ),
            plane.event("loop_fusion", 4_500_000, 500_000, {"kernel_details": details} | op),
            plane.event("other", 5_000_000, 250_000, {"hlo_op": "ref:copy.2", "tf_op": "XlaModule:"}),
            plane.event(
                "MemcpyD2H", 6_000_000, 300_000, {"memcpy_details": "kind:D2H size:4096 dest:0 async:1"}
            ),
            plane.event("ncclDevKernel_AllReduce_Sum", 7_000_000, 100_000, {"tf_op": "jit(f)/psum:"}),
        ],
        id=13,
        timestamp_ns=100,
    )
    plane.line("Steps", [plane.event("4", 0, 8_000_000)], id=100, timestamp_ns=100)
    plane.line("XLA Modules", [plane.event("jit_f(3)", 0, 8_000_000)], id=101, timestamp_ns=100)
    return plane


def rows(trace: tv.Trace, **wanted: Any) -> Any:
    spans = trace.spans
    for key, value in wanted.items():
        spans = spans[spans[key] == value]
    return spans


def test_host_threads(tmp_path: Path) -> None:
    trace = load(tmp_path, xspace([host(), environment()], hosts=["vm-3"]))
    found = trace.spans[["name", "kind", "start_ns", "dur_ns", "depth", "iteration"]].astype(object)
    none = None
    assert found.where(found.notna(), none).values.tolist() == [
        ["train", "step", 100, 9000, 0, 4],
        ["$model.py:12 f", "python", 600, 8000, 1, 4],
        ["cuLaunchKernel", "runtime", 1100, 2000, 2, 4],
        ["PjitFunction(f)", "annotation", 20100, 1000, 0, none],
        ["dot.3", "operator", 100, 700, 0, none],
        ["take up", "annotation", 900, 100, 0, none],
    ]
    assert set(trace.spans["domain"]) == {"host"}
    assert trace.tracks["process"].tolist() == ["77", "77"]
    assert trace.tracks["label"].tolist() == ["python", "tf_XLAEigen/1"]
    assert trace.meta["base_ns"] == STARTED
    assert trace.meta["host_name"] == "vm-3"
    assert trace.flows[["name", "source", "target", "id"]].values.tolist() == [["handed over", 4, 5, 9]]
    assert trace.operators()[["name", "calls", "total_ns"]].values.tolist() == [["dot.3", 1, 700]]


def test_streams_of_a_gpu(tmp_path: Path) -> None:
    trace = load(tmp_path, xspace([host(), gpu(3), environment()]))
    work = rows(trace, domain="gpu", timing="measured")
    assert work[["name", "kind", "start_ns", "dur_ns", "device", "stream"]].values.tolist() == [
        ["loop_fusion", "kernel", 3100, 1000, 3, "13"],
        ["loop_fusion", "kernel", 4600, 500, 3, "13"],
        ["other", "kernel", 5100, 250, 3, "13"],
        ["MemcpyD2H", "memcpy", 6100, 300, 3, "13"],
        ["ncclDevKernel_AllReduce_Sum", "communication", 7100, 100, 3, "13"],
    ]
    # steps and modules repeat what streams hold
    assert set(rows(trace, domain="gpu", kind="annotation")["timing"]) == {"modeled"}
    assert trace.kernels()["total_ns"].sum() == 2150
    assert trace.kernels().set_index("name")["launch_rows"]["loop_fusion"] == 1
    first = trace.args[int(work.index[0])]
    assert first["grid"] == [7, 2, 1]
    assert first["block"] == [128, 1, 1]
    assert first["registers per thread"] == 40
    assert first["module"] == "jit_f"
    assert trace.args[int(work.index[3])]["bytes"] == 4096
    codes, values = trace.args.values(work.index.to_numpy(), "grid")
    assert [values[code] if code >= 0 else None for code in codes] == [[7, 2, 1], [7, 2, 1], None, None, None]
    assert trace.meta["devices"][3]["numSms"] == 132


def test_operators_that_the_device_names(tmp_path: Path) -> None:
    """Two kernels in a row of one path are one call; an operator without a path is named after HLO's."""
    trace = load(tmp_path, xspace([host(), gpu(), environment()]))
    stated = rows(trace, kind="operator", domain="gpu")
    assert stated[["name", "timing", "start_ns", "dur_ns", "self_ns"]].values.tolist() == [
        ["jit(f)/dot_general", "modeled", 3100, 2000, 1500],
        ["copy.2", "modeled", 5100, 250, 250],
        ["jit(f)/psum", "modeled", 7100, 100, 100],
    ]
    found = trace.operators().set_index("name")
    assert found.loc["jit(f)/dot_general", ["calls", "total_ns", "device_self_ns"]].tolist() == [0, 0, 1500]
    assert found.loc["dot.3", "calls"] == 1
    assert found.attrs["device_ns"] == 2150
    assert found.attrs["device_unexplained_ns"] == 300  # the copy names no operator
    by = trace.kernels(by=("operator", "module")).set_index("name")
    assert by.loc["other", "operator"] == "copy.2"
    assert by.loc["loop_fusion", "module"] == "jit_f"
    assert trace.operators()["graph_calls"].isna().all()
    tree = tv.analysis.call_tree(trace, value="gpu").set_index("name")
    assert tree["self_ns"].to_dict() == {
        **{
            "ProfilerStep": 0,
            "$model.py:12 f": 0,
            "cuLaunchKernel": 0,
            "PjitFunction(f)": 0,
            "dot.3": 0,
            "take up": 0,
        },
        **{"jit(f)/dot_general": 1500, "copy.2": 250, "jit(f)/psum": 100},
    }
    assert tree.loc[["ProfilerStep", "cuLaunchKernel"], "total_ns"].tolist() == [1500, 1500]
    assert tree.loc["copy.2", "parent"] == -1  # nothing says what launched it
    assert "module paths for 1 of 4 operators (such as jit_f)" in trace.questions()["answer"].iloc[5]


def test_lines_of_a_tpu(tmp_path: Path) -> None:
    """Operators lie within a loop on one line, and their names are whole instructions."""
    plane = Plane("/device:TPU:2")
    long_name = "%fusion.5 = f32[8,128]{1,0} fusion(f32[8,128] %p), kind=kLoop"
    plane.kind(long_name, "fusion.5", {"flops": 2048, "bytes_accessed": 8192, "hlo_category": "loop fusion"})
    plane.kind("%while.1", "while.1", {"hlo_category": "while"})
    plane.line(
        "XLA Ops",
        [
            plane.event("%while.1", 0, 10_000_000),
            plane.event(long_name, 1_000_250, 2_000_500, {"tf_op": "jit(g)/while/body/mul:"}),
            plane.event(long_name, 4_000_000, 1_000_499, {"tf_op": "jit(g)/while/body/mul:"}),
        ],
        timestamp_ns=STARTED,
    )
    plane.line("Framework Ops", [plane.event("mul", 0, 10_000_000)], id=2, timestamp_ns=STARTED)
    plane.line(
        "_counters_", [plane.event("hbm", 5_000_000, 0, {"counter_value": 7.5})], id=3, timestamp_ns=STARTED
    )
    trace = load(tmp_path, xspace([plane]))
    assert trace.meta["base_ns"] == 0
    measured = rows(trace, timing="measured")
    assert measured[["name", "kind", "start_ns", "dur_ns"]].values.tolist() == [
        ["while.1", "annotation", STARTED, 10_000],
        ["fusion.5", "kernel", STARTED + 1000, 2001],  # from 1000.25 to 3000.75
        ["fusion.5", "kernel", STARTED + 4000, 1000],
    ]
    assert trace.kernels()["total_ns"].tolist() == [3001]
    details = trace.args[int(measured.index[1])]
    assert details["flops"] == 2048
    assert details["long_name"] == long_name
    assert details["duration_ps"] == 2_000_500
    assert trace.counters[["name", "ts_ns", "value"]].values.tolist() == [["hbm", STARTED + 5000, 7.5]]
    found = trace.meta["accounting"]
    assert (found["in_file"], found["read"]) == (5, 5)
    assert found["span_ps"] == 10_000_000 + 2_000_500 + 1_000_499 + 10_000_000
    assert found["rounded_ps"] == found["span_ns"] * 1000 - found["span_ps"] == 1


def test_sums_over_occurrences_have_no_place_in_time(tmp_path: Path) -> None:
    plane = Plane("/device:GPU:0")
    plane.line(
        "XLA Ops", [plane.event("dot", None, 5_000_400, occurrences=3), plane.event("dot", 2_000_000, 1)]
    )
    trace = load(tmp_path, xspace([plane]))
    total = rows(trace, timing="aggregate")
    assert total["start_ns"].isna().all()
    assert total["dur_ns"].tolist() == [5000]
    assert trace.args[int(total.index[0])]["occurrences"] == 3


def test_lines_of_one_id_are_one_timeline(tmp_path: Path) -> None:
    plane = Plane("/host:CPU")
    plane.line("a", [plane.event("x", 0, 5000)], id=-3).line("a", [plane.event("x", 9000, 5000)], id=-3)
    plane.line("b", [plane.event("x", 0, 5000)], id=4, display="shown").line("empty", [], id=8)
    trace = load(tmp_path, xspace([plane]))
    assert trace.spans["track"].tolist() == [0, 0, 1]
    assert trace.tracks["label"].tolist() == ["a", "shown"]


def test_a_plane_of_an_unknown_kind_is_named(tmp_path: Path) -> None:
    plane = Plane("/device:CUSTOM:Megascale Trace")
    plane.line("x", [plane.event("send", 0, 1000)])
    trace = load(tmp_path, xspace([host(), plane], errors=["lost 3 events"], warnings=["slow"]))
    assert rows(trace, name="send")["domain"].isna().all()
    said = {w.code: w.message for w in trace.meta["warnings"]}
    assert "Megascale Trace" in said["domain_unsaid"]
    assert [w.message for w in trace.meta["warnings"] if w.code == "diagnostic"] == [
        "the profiler says of its recording (error): lost 3 events",
        "the profiler says of its recording (warning): slow",
    ]


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    for planes in ([Plane("/host:metadata")], [Plane("/device:GPU:0").line("Stream #1", []), environment()]):
        with pytest.raises(TraceFormatError, match="holds no event") as caught:
            load(tmp_path, xspace(planes, errors=["CUPTI could not be initialised"]))
        assert planes[0].name in str(caught.value)
        assert "CUPTI could not" in str(caught.value)


def test_times_that_cannot_be_are_instants(tmp_path: Path) -> None:
    plane = Plane("/host:CPU")
    worst = (1 << 63) - 1
    plane.line(
        "a", [plane.event("fine", 1, 0), plane.event("negative", 0, -5), plane.event("far", worst, worst)]
    )
    trace = load(tmp_path, xspace([plane]))
    assert trace.spans["name"].tolist() == ["fine"]
    assert trace.instants[["name", "state"]].values.tolist() == [["negative", "invalid"], ["far", "invalid"]]
    assert trace.instant_args[0]["duration_ps"] == -5
    assert [w.code for w in trace.meta["warnings"]] == ["invalid_duration"]
    with pytest.raises(TraceFormatError):
        load(tmp_path, xspace([plane]), strict=True)


def test_every_cut_keeps_what_precedes_it(tmp_path: Path) -> None:
    whole = xspace([host(), gpu(), environment()])
    complete = load(tmp_path, whole).meta["accounting"]["in_file"]
    known = 0
    for size in range(8, len(whole), 29):
        try:
            trace = load(tmp_path, whole[:size])
        except TraceFormatError:
            continue
        found = trace.meta["accounting"]
        assert known <= found["read"] <= complete
        known = found["read"]
        assert found["in_file"] == found["read"] + sum(found["left_out"].values())
        assert found["bytes"]["in_file"] == size
        with pytest.raises(TraceFormatError):
            load(tmp_path, whole[:size], strict=True)
    assert known == complete


def test_damage_inside(tmp_path: Path) -> None:
    """An event that does not read, a statistic that does not, and a description that is missing."""
    plane = Plane("/host:CPU")
    good = plane.event("good", 0, 1000)
    lost = b"\x08\x63" + plane.event("good", 5000, 1000)[2:]  # of kind 99
    plane.line("a", [good, b"\x08\x01\x17", good + blob(4, b"\xff"), lost])
    trace = load(tmp_path, xspace([plane]))
    assert trace.spans["name"].tolist() == ["good", "good", "event 99 (its name is not in the file)"]
    assert trace.meta["accounting"]["left_out"] == {"damaged_event": 1}
    codes = [w.code for w in trace.meta["warnings"]]
    assert sorted(codes) == ["damaged_event", "damaged_stat", "missing_string"]


def test_compressed_and_by_content_alone(tmp_path: Path) -> None:
    content = xspace([host(), gpu(), environment()])
    (tmp_path / "whatever.bin").write_bytes(gzip.compress(content))
    trace = tv.load(tmp_path / "whatever.bin")
    assert trace.meta["format"] == "xplane"
    assert trace.meta["accounting"]["in_file"] == 13
    exotic = Plane("my own plane").line("a", [b"\x08\x01"])
    (tmp_path / "own.xplane.pb").write_bytes(xspace([exotic]))
    assert len(tv.load(tmp_path / "own.xplane.pb").spans) == 1


def events(spans: list[tuple[str, int, int]]) -> bytes:
    """The same recording as trace events."""
    head: list[dict[str, Any]] = [
        {"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}},
        {"ph": "M", "pid": 701, "tid": 5, "name": "thread_name", "args": {"name": "python"}},
    ]
    head += [
        {"ph": "X", "pid": 701, "tid": 5, "name": name, "ts": start / 1000, "dur": dur / 1000}
        for name, start, dur in spans
    ]
    return gzip.compress(json.dumps({"displayTimeUnit": "ns", "traceEvents": head}).encode())


def test_a_folder_of_jax_holds_one_recording(tmp_path: Path) -> None:
    folder = tmp_path / "log" / "plugins" / "profile" / "2026_01_02_03_04_05"
    folder.mkdir(parents=True)
    content = xspace([host(), environment()])
    again = events([("train", 100, 9000)])
    (folder / "vm-1.xplane.pb").write_bytes(content)
    (folder / "vm-1.trace.json.gz").write_bytes(again)
    (folder / "perfetto_trace.json.gz").write_bytes(events([("train", 100, 9001)]))
    for path in (tmp_path, folder):
        trace = tv.load(path)
        assert isinstance(trace, tv.Trace)
        assert trace.meta["sources"] == [str(folder / "vm-1.xplane.pb")]
        assert len(trace.spans) == 6
        said = {Path(w.path).name: w.code for w in trace.meta["warnings"] if w.path}
        assert said == {"vm-1.trace.json.gz": "same_recording", "perfetto_trace.json.gz": "same_recording"}
    # of a cut one the whole trace-event file counts
    (folder / "vm-1.xplane.pb").write_bytes(content[:-9])
    trace = tv.load(tmp_path)
    assert isinstance(trace, tv.Trace)
    assert trace.meta["sources"] == [str(folder / "vm-1.trace.json.gz")]
    # and another host's is another recording
    (folder / "vm-1.xplane.pb").write_bytes(content)
    (folder / "vm-2.xplane.pb").write_bytes(xspace([host(78), environment()]))
    session = tv.load(tmp_path)
    assert sorted(session.ranks["host"]) == ["vm-1", "vm-2"]


def test_hostile_numbers_of_descriptions(tmp_path: Path) -> None:
    """Ids are the file's own choice: any number, twice the same, none at all."""
    plane = Plane("/host:CPU")
    plane.line("a", [plane.event("x", 0, 1000)])
    entry = b"\x08" + b"\xff" * 9 + b"\x01" + blob(2, blob(2, b"minus one"))
    body = plane.encoded() + blob(4, entry) + blob(4, b"\x08\x01" + blob(2, blob(2, b"again")))
    trace = load(tmp_path, blob(1, body))
    assert trace.spans["name"].tolist() == ["again"]  # of equal keys the last counts, as protobuf says
    assert np.array_equal(trace.spans["dur_ns"], [1])
