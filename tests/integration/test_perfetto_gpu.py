"""Work and counters of GPUs in Perfetto traces: packets of their own, besides track events."""

from __future__ import annotations

import pandas as pd
from perfetto_gpu import (
    COUNTERS,
    KERNELS,
    context,
    counter_spec,
    counters,
    interned_gpu,
    specification,
    stage,
)
from perfetto_messages import (
    BEGIN,
    END,
    annotation,
    event,
    field,
    interned,
    mark,
    message,
    packet,
    snapshot,
    thread,
)

from torchtrt_viz.files import load
from torchtrt_viz.trace import Trace


def codes(trace: Trace) -> dict[str, int]:
    return {w.code: w.count for w in trace.meta["warnings"]}


def known(values: pd.Series) -> list:
    return [None if pd.isna(value) else value for value in values]


def work(trace: Trace) -> list[tuple]:
    spans = trace.spans[trace.spans["domain"] == "gpu"]
    labels = trace.tracks["label"].to_numpy()[spans["track"]]
    return list(zip(spans["name"], spans["kind"], spans["start_ns"], spans["dur_ns"], labels, strict=True))


NAMES = interned_gpu(
    context(1, 42), specification(1, "Compute Queue"), specification(2, "gemm"), specification(3, "softmax")
)


def test_the_case_of_render_stages(cases):
    trace = load(cases / "outside/perfetto_unread_packets_silent/perfetto_gpu_render_stages.pftrace")
    spans = trace.spans
    gpu = spans[spans["domain"] == "gpu"]
    assert (len(gpu), int(gpu["dur_ns"].sum())) == (3, 1300)
    assert list(gpu["name"]) == ["gemm", "softmax", "gemm"]
    assert set(trace.tracks["type"].iloc[gpu["track"].unique()]) == {"stream"}
    assert len(spans[spans["domain"] == "host"]) == 3
    assert trace.meta["warnings"] == []


def test_stages_are_spans_of_their_queue(read):
    details = field(6, message({1: "shader", 2: "main"}))
    trace = read(
        NAMES
        + stage(100, 50, event=7, queue=1, stage=2, context=1, gpu=3, submission=9)
        + packet({8: 160, 53: message({1: 8, 2: 20, 13: 1, 14: 3}) + details, 13: 2})
    )
    assert work(trace) == [
        ("gemm", "kernel", 0, 50, "GPU 3 Compute Queue"),
        ("softmax", "kernel", 60, 20, "Compute Queue"),
    ]
    tracks = trace.tracks
    assert list(tracks["device"]) == [3, pd.NA]  # a GPU that nobody numbers has no number
    assert known(tracks["process"]) == ["42", None]
    first, second = trace.args[0], trace.args[1]
    assert {k: first[k] for k in ("event_id", "submission_id", "context_id", "hw_queue_id", "stage")} == {
        "event_id": 7,
        "submission_id": 9,
        "context_id": 1,
        "hw_queue_id": 1,
        "stage": "gemm",
    }
    assert first["api"] == "CUDA"
    assert first["render_stage_category"] == "compute"
    assert second["shader"] == "main"
    assert trace.spans["correlation"].isna().all()  # nothing submitted them that the file knows
    assert codes(trace) == {}


def test_one_id_of_two_sequences_is_two_names(read):
    other = interned_gpu(specification(1, "queue2"), specification(2, "copy"), sequence=2)
    trace = read(
        NAMES
        + other
        + stage(100, 10, event=1, queue=1, stage=2)
        + stage(100, 10, event=2, queue=1, stage=2, sequence=2)
    )
    assert work(trace) == [
        ("gemm", "kernel", 0, 10, "Compute Queue"),
        ("copy", "kernel", 0, 10, "queue2"),
    ]


def test_names_are_forgotten_with_the_state_of_the_sequence(read):
    cleared = interned_gpu(specification(1, "Queue B"))
    trace = read(
        NAMES
        + stage(100, 10, event=1, queue=1, stage=2)
        + cleared
        + stage(200, 10, event=2, queue=1, stage=2)
    )
    assert work(trace) == [
        ("gemm", "kernel", 0, 10, "Compute Queue"),
        ("GPU stage 2", "kernel", 100, 10, "Queue B"),
    ]
    assert codes(trace) == {"missing_string": 1}
    lost = read(packet({42: 1}, 1) + stage(5, 1, event=1, queue=1, stage=2) + NAMES)
    assert len(lost.spans) == 0
    assert codes(lost)["missing_state"] == 1
    assert lost.meta["accounting"]["left_out"] == {"missing_state": 1}


def test_specifications_of_2019(read):
    lists = b"".join(field(2, message({1: name})) for name in ("queue 0", "queue 1"))
    lists += b"".join(field(3, message({1: name, 2: "said"})) for name in ("binning", "render"))
    lists += field(1, message({1: 5, 2: 77}))
    trace = read(
        packet({8: 0, 53: field(7, lists)}, 4)
        + stage(10, 5, event=0, old_queue=1, old_stage=0, sequence=5, flags=0)
        + stage(20, 5, event=1, old_queue=0, old_stage=1, sequence=4, flags=0)
        + stage(30, 5, event=2, old_queue=6, old_stage=9, sequence=4, flags=0)
    )
    assert [row[0] for row in work(trace)] == ["binning", "render", "GPU stage 9"]
    assert [row[4] for row in work(trace)] == ["queue 1", "queue 0", "GPU queue 6"]
    assert trace.args[0]["description"] == "said"
    assert set(trace.tracks["process"]) == {"77"}
    assert codes(trace) == {"missing_string": 2}
    assert trace.meta["accounting"]["in_file"] == 4


def test_a_stage_without_a_duration_is_a_point_in_time(read):
    trace = read(NAMES + stage(10, None, event=1, queue=1, stage=2) + stage(20, 0, event=2, queue=1, stage=3))
    assert list(trace.spans["name"]) == ["softmax"]
    assert list(trace.instants["name"]) == ["gemm"]
    assert list(trace.instants["domain"]) == ["gpu"]


def test_copies_and_collectives_are_told_by_their_names(read):
    names = [specification(10 + i, name) for i, name in enumerate(("Memcpy HtoD", "Memset", "ncclKernel"))]
    trace = read(
        NAMES
        + interned_gpu(*names, flags=0)
        + b"".join(stage(10 * i, 5, event=i, queue=1, stage=10 + i) for i in range(3))
    )
    assert [row[1] for row in work(trace)] == ["memcpy", "memset", "communication"]


def test_kernels_have_names_and_launches(read):
    kernel = field(
        KERNELS,
        message({1: 5, 2: "_Z4gemmv", 3: "gemm()", 4: "sm_90", 5: message({2: "registers", 4: 64})}),
    )
    launch = message(
        {1: message({1: 8, 2: 4, 3: 1}), 2: message({1: 256}), 3: message({2: "shared", 3: 49152})}
    )
    trace = read(
        NAMES
        + interned_gpu(kernel, flags=0)
        + stage(10, 5, event=1, queue=1, stage=3, kernel=5, launch=launch)
        + stage(20, 5, event=2, queue=1, stage=3, kernel=5, name="own name")
        + interned({2: {9: "by number"}}, flags=0)
        + stage(30, 5, event=3, queue=1, stage=3, name_iid=9)
    )
    assert [row[0] for row in work(trace)] == ["gemm()", "own name", "by number"]
    args = trace.args[0]
    assert (args["grid"], args["block"]) == ([8, 4, 1], [256, 1, 1])
    assert (args["kernel_name"], args["arch"]) == ("_Z4gemmv", "sm_90")
    assert (args["registers"], args["shared"], args["stage"]) == (64, 49152, "softmax")


def test_calls_and_the_work_that_they_submitted(read):
    """TrackEvent.gpu_correlation names the work by its event id; a wait leads the other way."""
    submits = field(3000, field(1, 1) + field(1, 2))
    waits = field(3000, field(2, 2))
    trace = read(
        NAMES
        + thread(9, 0, 42, 43, "main")
        + mark(10, event(BEGIN, "launch", track=9, extra=submits), sequence=2)
        + mark(20, event(END, track=9), sequence=2)
        + stage(100, 50, event=1, queue=1, stage=2)
        + stage(160, 50, event=2, queue=1, stage=3, waits=[1])
        + mark(200, event(BEGIN, "wait", track=9, extra=waits), sequence=2)
        + mark(220, event(END, track=9), sequence=2)
    )
    names = list(trace.spans["name"])
    assert names == ["launch", "gemm", "softmax", "wait"]
    found = sorted((names[a], names[b]) for a, b in trace.flows[["source", "target"]].to_numpy())
    assert found == [("gemm", "softmax"), ("launch", "gemm"), ("launch", "softmax"), ("softmax", "wait")]
    assert trace.spans["correlation"].fillna(-1).tolist() == [1, 1, 1, -1]


def test_work_of_one_id_in_two_sequences_belongs_to_no_call(read):
    trace = read(
        NAMES
        + interned_gpu(specification(1, "q"), specification(2, "k"), sequence=3)
        + mark(10, event(BEGIN, "launch", track=9, extra=field(3000, field(1, 1))), sequence=2)
        + mark(20, event(END, track=9), sequence=2)
        + stage(100, 50, event=1, queue=1, stage=2)
        + stage(100, 50, event=1, queue=1, stage=2, sequence=3)
    )
    assert len(trace.flows) == 0
    assert trace.spans["correlation"].isna().all()


def test_submissions_of_vulkan(read):
    named = packet({65: field(1, message({1: 42, 3: 24, 4: 500, 5: "swap chain"}))}, 1)
    submit = packet(
        {8: 10, 65: field(2, message({1: 30, 2: 42, 3: 43, 4: 6, 6: 9}))},
        1,
    )
    trace = read(
        NAMES
        + named
        + submit
        + stage(100, 50, event=1, queue=1, stage=2, context=1, submission=9, target=500)
        + stage(160, 50, event=2, queue=1, stage=3, context=1, submission=9)
        + stage(220, 50, event=3, queue=1, stage=3, context=1, submission=8)
    )
    assert list(trace.spans["name"]) == ["vkQueueSubmit", "gemm", "softmax", "softmax"]
    assert trace.spans["kind"].iloc[0] == "runtime"
    assert trace.spans["domain"].iloc[0] == "host"
    assert trace.spans["correlation"].fillna(-1).tolist() == [9, 9, 9, -1]
    assert [(int(a), int(b)) for a, b in trace.flows[["source", "target"]].to_numpy()] == [(0, 1), (0, 2)]
    assert trace.args[1]["render_target_name"] == "swap chain"
    assert codes(trace) == {}


def test_counters_with_global_numbers(read):
    """Units: numerator, then denominators (GpuCounterDescriptor.MeasureUnit)."""
    described = (
        counter_spec(1, "utilisation", [37])
        + counter_spec(2, "reads", [9], [22])
        + counter_spec(3, "clock", [15])
        + counter_spec(4, "triangles", [27], [21, 21])
        + counter_spec(5, "plain", [0])
        + counter_spec(6, "memory", [7])
    )
    trace = read(
        counters(5, {}, descriptor=described, gpu=1)
        + counters(10, {1: 55, 2: 1.5, 3: 1200}, gpu=1)
        + counters(20, {4: 7, 5: 1, 6: 1 << 40}, sequence=2)
        + counters(30, {99: 3})
    )
    frame = trace.counters
    assert list(zip(frame["name"], frame["value"], known(frame["unit"]), strict=True)) == [
        ("utilisation", 55.0, "%"),
        ("reads", 1.5, "MB/s"),
        ("clock", 1200.0, "MHz"),
        ("triangles", 7.0, "triangle/ms/ms"),
        ("plain", 1.0, None),
        ("memory", float(1 << 40), "bytes"),
        ("GPU counter 99", 3.0, None),
    ]
    assert list(frame["ts_ns"]) == [0, 0, 0, 10, 10, 10, 20]
    tracks = trace.tracks.iloc[frame["track"]]
    assert set(tracks["domain"]) == {"gpu"}
    assert set(tracks["type"]) == {"counter"}
    assert list(tracks["device"]) == [1, 1, 1, 1, 1, 1, pd.NA]
    assert codes(trace) == {"missing_string": 1}


def test_counters_with_numbers_of_their_sequence(read):
    def table(iid: int, name: str, gpu: int, sequence: int) -> bytes:
        body = message({1: iid, 2: counter_spec(1, name, [29]), 3: gpu})
        return interned_gpu(field(COUNTERS, body), sequence=sequence)

    trace = read(
        table(1, "power A", 0, 1)
        + table(1, "power B", 1, 2)
        + counters(10, {1: 100}, iid=1, gpu=7)
        + counters(10, {1: 200}, iid=1, sequence=2)
    )
    frame = trace.counters
    assert list(zip(frame["name"], frame["value"], frame["unit"], strict=True)) == [
        ("power A", 100.0, "W"),
        ("power B", 200.0, "W"),
    ]
    assert list(trace.tracks["device"]) == [0, 1]  # the descriptor's GPU goes before the event's


def test_memory_frequency_and_log(read):
    trace = read(
        packet({8: 10, 71: message({1: 0, 2: 0, 3: 1000})})
        + packet({8: 10, 71: message({1: 0, 2: 42, 3: 600})})
        + packet({8: 20, 129: message({1: 1, 2: 1_500_000})})
        + packet({8: 30, 63: message({1: 5, 2: "driver", 3: "hang"})})
    )
    frame = trace.counters
    assert list(zip(frame["name"], frame["value"], frame["unit"], strict=True)) == [
        ("GPU memory", 1000.0, "bytes"),
        ("GPU memory", 600.0, "bytes"),
        ("GPU frequency", 1.5e6, "kHz"),
    ]
    assert known(trace.tracks["process"].iloc[frame["track"]]) == [None, "42", None]
    assert list(trace.instants["name"]) == ["hang"]
    assert trace.instant_args[0] == {"severity": "error", "tag": "driver"}
    assert codes(trace) == {}


def test_times_of_work_on_another_clock(read):
    trace = read(
        snapshot({6: 1_000_000, 128: 5_000_000})
        + NAMES
        + mark(1_000_000, event(BEGIN, "host", track=1), sequence=2)
        + mark(1_000_500, event(END, track=1), sequence=2)
        + packet({8: 5_000_100, 58: 128, 13: 2, 53: message({1: 1, 2: 40, 13: 1, 14: 2})})
    )
    assert work(trace) == [("gemm", "kernel", 100, 40, "Compute Queue")]
    lost = read(
        NAMES
        + mark(1_000_000, event(BEGIN, "host", track=1), sequence=2)
        + mark(1_000_500, event(END, track=1), sequence=2)
        + packet({8: 5_000_100, 58: 128, 13: 2, 53: message({1: 1, 2: 40, 13: 1, 14: 2})})
        + counters(7, {1: 2})
    )
    assert work(lost) == []
    assert codes(lost)["other_clock"] == 1
    assert lost.meta["accounting"]["left_out"] == {"other_clock": 1}
    packets = {kind: count for kind, count in lost.meta["accounting"]["packets"].items() if count}
    assert packets == {"no data": 1, "track_event": 2, "gpu_counter_event": 1}


def test_the_clock_of_the_defaults_of_a_sequence(read):
    trace = read(
        snapshot({6: 1_000, 64: 10}, c64=(10, False))
        + packet({12: b"", 59: message({58: 64}), 13: 1})
        + interned_gpu(specification(1, "q"), specification(2, "k"), flags=0)
        + stage(13, 5, event=1, queue=1, stage=2)
        + packet({8: 1_000, 60: message({1: 9, 2: "t"})}, 2)
        + mark(1_000, event(BEGIN, "host", track=9), sequence=2)
        + mark(1_010, event(END, track=9), sequence=2)
    )
    assert work(trace) == [("k", "kernel", 30, 5, "q")]  # 3 ticks of 10 ns behind the snapshot


def test_durations_that_do_not_fit_are_left_out(read):
    trace = read(
        NAMES + stage(10, 2**63, event=1, queue=1, stage=2) + stage(20, 5, event=2, queue=1, stage=2)
    )
    assert [row[3] for row in work(trace)] == [5]
    assert codes(trace) == {"no_time": 1}


def test_tracks_that_are_said_to_be_of_a_gpu(read):
    described = packet({60: message({1: 1, 2: "timeline", 3000: message({1: 2})})})
    child = packet({60: message({1: 2, 2: "ranges", 5: 1})})
    trace = read(
        described
        + child
        + mark(10, event(BEGIN, "range", track=2, extra=annotation("x", 1)))
        + mark(20, event(END, track=2))
    )
    assert list(trace.spans["domain"]) == ["gpu"]
    assert list(trace.tracks["device"]) == [2]
    assert codes(trace) == {}
