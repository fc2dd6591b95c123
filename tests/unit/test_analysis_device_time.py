"""Host against GPU, temporal breakdown, idle causes, launches and queues of a trace worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.device.host_gpu_time import host_gpu
from torchtrt_viz.analysis.device.idle import idle_causes, idle_gaps
from torchtrt_viz.analysis.device.launch import graph_launches, launch_delays, launch_stats
from torchtrt_viz.analysis.device.queues import blocked_on_full_queue, queue_length, queue_summary
from torchtrt_viz.analysis.device.temporal import kernel_types, overlap, temporal_breakdown
from torchtrt_viz.errors import OptionError
from torchtrt_viz.trace import Trace


def _trace() -> Trace:
    """Build two streams on device 0.

    Stream 7: a [100, 200), b [200, 300), c [400, 450), copy [500, 520).
    Stream 9: nccl [250, 420). Launches: a at 10, b at 20, c at 350, nccl at 240; the copy's is not recorded.
    """
    b = Builder()
    main, one, two = b.track("main"), b.stream(7), b.stream(9)
    b.span("forward", 0, 600, main)
    for correlation, at in ((1, 10), (2, 20), (3, 350), (4, 240)):
        b.span("cudaLaunchKernel", at, 5, main, "runtime", correlation=correlation)
    b.span("cudaDeviceSynchronize", 450, 60, main, "runtime", correlation=9)
    b.span("a", 100, 100, one, "kernel", correlation=1)
    b.span("b", 200, 100, one, "kernel", correlation=2)
    b.span("c", 400, 50, one, "kernel", correlation=3)
    b.span("Memcpy DtoH (Device -> Pageable)", 500, 20, one, "memcpy")
    b.span("ncclDevKernel_AllReduce", 250, 170, two, "kernel", correlation=4)
    b.span("nccl:all_reduce", 249, 172, two, "annotation")
    return b.build()


def test_temporal_breakdown_divides_the_span_without_remainder() -> None:
    row = temporal_breakdown(_trace()).iloc[0]
    assert row["device"] == 0
    assert row["span_ns"] == 420
    assert row["busy_ns"] == (450 - 100) + 20
    assert row["idle_ns"] == 50
    assert row["compute_ns"] == 100 + 100 + 50
    assert row["communication_ns"] == 170
    assert row["overlapped_communication_ns"] == 50 + 20
    assert row["exposed_communication_ns"] == 100
    assert row["copy_ns"] == row["exposed_copy_ns"] == 20
    assert row["non_compute_ns"] == 120
    total = row["compute_ns"] + row["exposed_communication_ns"] + row["exposed_copy_ns"] + row["idle_ns"]
    assert total == row["span_ns"]
    shares = ("compute_pct", "exposed_communication_pct", "exposed_copy_pct", "idle_pct")
    assert sum(row[name] for name in shares) == pytest.approx(100)
    assert row["kernels"] == 5


def test_overlap_is_a_share_of_communication() -> None:
    row = overlap(_trace()).iloc[0]
    assert (row["communication_ns"], row["overlapped_ns"], row["exposed_ns"]) == (170, 70, 100)
    assert row["overlap_pct"] == pytest.approx(100 * 70 / 170)


def test_kernel_types_share_busy_time_without_overlap() -> None:
    table = kernel_types(_trace())
    assert dict(zip(table["classes"], table["ns"], strict=True)) == {
        "compute": 150 + 30,
        "compute + communication": 50 + 20,
        "communication": 100,
        "copy": 20,
    }
    assert table["pct"].sum() == pytest.approx(100)


def test_idle_gaps_and_their_causes() -> None:
    gaps = idle_gaps(_trace(), kernel_wait_ns=60)
    found = {(r.stream, r.start_ns): (r.dur_ns, r.cause) for r in gaps.itertuples(index=False)}
    assert found == {
        ("stream 7", 300): (100, "host wait"),  # c was launched at 350, after the gap began
        ("stream 7", 450): (50, "unknown"),  # no launch of the copy
    }
    device = idle_gaps(_trace(), level="device")
    assert device[["start_ns", "dur_ns", "cause"]].to_numpy().tolist() == [[450, 50, "unknown"]]


def test_gaps_before_work_launched_in_time_are_kernel_wait_or_other() -> None:
    b = Builder()
    main, one = b.track("main"), b.stream(7)
    for correlation in (1, 2, 3):
        b.span("cudaLaunchKernel", correlation, 1, main, "runtime", correlation=correlation)
    b.span("a", 100, 50, one, "kernel", correlation=1)
    b.span("b", 160, 50, one, "kernel", correlation=2)
    b.span("overlaps b", 170, 10, one, "kernel")
    b.span("c", 500, 50, one, "kernel", correlation=3)
    table = idle_causes(b.build(), kernel_wait_ns=100).set_index("cause")
    assert table.loc["kernel wait", "idle_ns"] == 10
    assert table.loc["other", "idle_ns"] == 500 - 210, "the gap starts where the longest kernel ended"
    assert table["idle_pct"].sum() == pytest.approx(100)
    assert table["gaps"].tolist() == [1, 1]


def test_launch_delays() -> None:
    delays = launch_delays(_trace()).set_index("name")
    assert delays.loc["a", "delay_ns"] == 100 - 15
    assert delays.loc["a", "queued_ns"] == 90
    assert delays.loc["c", "delay_ns"] == 400 - 355
    assert delays.loc["c", "host_ns"] == 5
    assert delays.loc["c", "device_ns"] == 50
    assert len(delays) == 4
    stats = launch_stats(_trace()).iloc[0]
    assert stats["launched_by"] == "cudaLaunchKernel"
    assert stats["calls"] == 4
    assert stats["delay_median_ns"] == (45 + 85) / 2
    assert stats["delay_max_ns"] == 200 - 25
    assert stats["short"] == 0
    assert launch_stats(_trace(), by="class", sort="class")["class"].tolist() == ["communication", "compute"]
    with pytest.raises(OptionError, match="launched_by"):
        launch_stats(_trace(), by="colour")


def test_queue_length_is_a_step_function_per_stream() -> None:
    series = queue_length(_trace())
    one = series[series["stream"] == "stream 7"]
    assert one[["ts_ns", "length"]].to_numpy().tolist() == [
        [10, 1],
        [20, 2],
        [100, 1],
        [200, 0],
        [350, 1],
        [400, 0],
    ]
    summary = queue_summary(_trace()).set_index("stream").loc["stream 7"]
    assert summary["launches"] == 3
    assert summary["max"] == 2
    assert summary["mean"] == pytest.approx((10 * 1 + 80 * 2 + 100 * 1 + 150 * 0 + 50 * 1) / 390)
    assert summary["empty_pct"] == pytest.approx(100 * 150 / 390)
    assert summary["median"] == 1
    full = blocked_on_full_queue(_trace(), limit=2).set_index("stream")
    assert full.loc["stream 7", "full_ns"] == 80
    assert full.loc["stream 7", "full_pct"] == pytest.approx(100 * 80 / 600)
    assert full.loc["stream 9", "full_ns"] == 0


def test_a_queue_is_never_shorter_than_empty() -> None:
    b = Builder()
    main, one = b.track("main"), b.stream(7)
    b.span("cudaLaunchKernel", 100, 5, main, "runtime", correlation=1)
    b.span("early", 90, 50, one, "kernel", correlation=1)
    assert queue_length(b.build())["length"].tolist() == [0]
    assert launch_stats(b.build())["early"].tolist() == [1]


def test_graph_launches_are_one_row_each() -> None:
    b = Builder()
    main, one, two = b.track("main"), b.stream(7), b.stream(9)
    b.span("cudaGraphLaunch", 0, 10, main, "runtime", correlation=5)
    b.span("cudaGraphLaunch", 500, 10, main, "runtime", correlation=6)
    b.span("k", 100, 50, one, "kernel", correlation=5)
    b.span("k", 120, 50, two, "kernel", correlation=5)
    b.span("k", 200, 10, one, "kernel", correlation=5)
    table = graph_launches(b.build())
    first, second = table.iloc[0], table.iloc[1]
    assert first["kernels"] == 3
    assert first["device_start_ns"] == 100
    assert first["device_span_ns"] == 110
    assert first["device_busy_ns"] == 80
    assert first["device_sum_ns"] == 110
    assert first["delay_ns"] == 90
    assert second["kernels"] == 0
    assert second["device_span_ns"] is pd.NA
    lengths = queue_length(b.build())
    assert lengths["length"].max() == 1, "a graph waits in the queue as one launch"


def test_host_and_gpu_side_by_side() -> None:
    table = host_gpu(_trace()).set_index("measure")
    assert table.loc["window", "ns"] == 600
    assert table.loc["host busy", "ns"] == 600
    assert table.loc["launch overhead", "ns"] == 20
    assert table.loc["launch overhead", "spans"] == 4
    assert table.loc["host waiting", "ns"] == 60
    assert table.loc["gpu busy", "ns"] == 370
    assert table.loc["gpu idle", "ns"] == 50
    assert table.loc["gpu busy, host waiting", "ns"] == 510 - 500
    assert table.loc["gpu idle, host busy", "ns"] == 0
    assert table.loc["gpu idle, host idle", "ns"] == 0
    assert table.loc["engine enqueue", "ns"] is pd.NA
    assert table.loc["gpu busy", "pct"] == pytest.approx(100 * 370 / 600)


def test_a_trace_without_device_work_has_no_zeroes() -> None:
    b = Builder()
    b.span("add", 0, 10, b.track("main"))
    trace = b.build()
    table = host_gpu(trace).set_index("measure")
    assert table.loc["gpu busy", "ns"] is pd.NA
    assert table.loc["host waiting", "ns"] is pd.NA
    for empty in (
        temporal_breakdown(trace),
        overlap(trace),
        kernel_types(trace),
        idle_gaps(trace),
        idle_causes(trace),
        launch_delays(trace),
        launch_stats(trace),
        queue_length(trace),
        queue_summary(trace),
        blocked_on_full_queue(trace),
        graph_launches(trace),
    ):
        assert len(empty) == 0
        assert len(empty.columns) > 2


def test_two_devices_are_kept_apart() -> None:
    b = Builder()
    b.track("main")
    b.span("k", 0, 10, b.stream(7, device=0), "kernel")
    b.span("k", 50, 10, b.stream(7, device=1), "kernel")
    table = temporal_breakdown(b.build())
    assert table["device"].tolist() == [0, 1]
    assert table["span_ns"].tolist() == [10, 10]
    assert temporal_breakdown(b.build(), per_device=False)["idle_ns"].tolist() == [40]


@pytest.mark.parametrize(
    "name",
    [
        "ncclKernel_AllReduce_RING",
        "void ncclDevKernel_AllGather(ncclDevKernelArgs)",
        "ncclDevFunc_Reduce",
        "rcclGenericKernel<1>",
        "mscclpp_put",
        "nvshmem_quiet",
        "oneShotAllReduceKernel",
        "twoShotAllReduceKernel",
        "vllm::cross_device_reduce_1stage<float>",
        "allreduce_kernel",
        "(anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>",
        "allreduce_fusion_kernel",
        "lamport_kernel",
        "quickreduce_twoshot",
        "multimem_all_gather",
    ],
)
def test_kernels_of_collectives_are_known_by_name_in_any_case(name: str) -> None:
    for spelling in (name, name.upper(), name.lower()):
        b = Builder()
        b.span(spelling, 0, 10, b.stream(7), "kernel")
        b.span("reduce_kernel<512, 1>", 20, 10, 0, "kernel")
        row = temporal_breakdown(b.build()).iloc[0]
        assert (row["communication_ns"], row["compute_ns"]) == (10, 10)
