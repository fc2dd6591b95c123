"""Collectives, their skew over ranks, and copies of traces worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.device.communication import bus_factor, collectives, kind_of
from torchtrt_viz.analysis.device.transfers import copies, copy_bandwidth, direction_of
from torchtrt_viz.analysis.session.skew import skew_of
from torchtrt_viz.trace import Trace

_REDUCE = {
    "Collective name": "allreduce",
    "In msg nelems": 1000,
    "Out msg nelems": 1000,
    "Group size": 4,
    "dtype": "Float",
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1, 2, 3]",
}


def _rank(*durations: int) -> Trace:
    b = Builder()
    stream = b.stream(9)
    for number, dur in enumerate(durations):
        b.span("ncclDevKernel_AllReduce", 10_000 * number, dur, stream, "kernel", args=_REDUCE)
    return b.build()


def test_a_single_rank_gives_a_lower_bound_of_the_bandwidth() -> None:
    table = collectives(_rank(2000, 500))
    assert table["collective"].tolist() == ["all_reduce"] * 2
    assert table["message_bytes"].to_list() == [4000, 4000]
    assert table["sequence"].tolist() == [0, 1]
    assert table["algorithm_gbps"].to_list() == pytest.approx([2.0, 8.0])
    assert table["bus_gbps"].to_list() == pytest.approx([3.0, 12.0])


def test_parameters_may_stand_with_the_host_event() -> None:
    b = Builder()
    main, stream = b.track("main"), b.stream(9)
    gather = {"Collective name": "_allgather_base", "Out msg nelems": 4000, "Process Group Ranks": [0, 1]}
    b.span("record_param_comms", 0, 50, main, args=_REDUCE | gather)
    b.span("cudaLaunchKernelExC", 10, 5, main, "runtime", correlation=3)
    b.span("ncclDevKernel_AllGather_RING_LL", 100, 1000, stream, "kernel", correlation=3)
    row = collectives(b.build()).iloc[0]
    assert row["collective"] == "all_gather"
    assert row["message_bytes"] == 16_000, "the gathered output is the message"
    assert row["group_ranks"] == "[0,1]"


def test_what_is_not_recorded_is_missing() -> None:
    b = Builder()
    b.span("ncclDevKernel_Generic", 0, 10, b.stream(9), "kernel")
    row = collectives(b.build()).iloc[0]
    assert row["collective"] == "unknown"
    assert row["message_bytes"] is pd.NA
    assert row["algorithm_gbps"] is pd.NA
    assert bus_factor("all_reduce", 1) is None
    assert kind_of("reduce_scatter_tensor_coalesced", "") == "reduce_scatter"
    assert kind_of(None, "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t") == "send_recv"


def test_waiting_is_told_from_transfer_without_comparing_clocks() -> None:
    tables = [
        collectives(_rank(*durations)).assign(rank=rank)
        for rank, durations in enumerate([(1000, 400), (700, 400), (400, 900)])
    ]
    table = skew_of(pd.concat(tables, ignore_index=True))
    first = table.iloc[0]
    assert first["transfer_ns"] == 400
    assert first["last_rank"] == 2
    assert first["first_rank"] == 0
    assert first["max_wait_ns"] == 600
    assert first["mean_wait_ns"] == pytest.approx((600 + 300 + 0) / 3)
    assert first["missing_ranks"] == 1
    assert first["algorithm_gbps"] == pytest.approx(10.0)
    assert first["bus_gbps"] == pytest.approx(15.0)
    assert table["first_rank"][1] == 2
    assert len(skew_of(tables[0])) == 0, "one rank has nobody to wait for"


def _copies() -> Trace:
    b = Builder()
    one, two = b.stream(7), b.stream(9)
    b.span("Memcpy HtoD (Pinned -> Device)", 0, 100, one, "memcpy", args={"bytes": 1000})
    b.span("Memcpy HtoD (Pinned -> Device)", 50, 100, two, "memcpy", args={"bytes": 3000})
    b.span("Memcpy DtoH (Device -> Pageable)", 300, 10, one, "memcpy", args={})
    b.span("Memset (Device)", 400, 10, one, "memset", args={"bytes": 5})
    return b.build()


def test_copies_by_direction() -> None:
    table = copies(_copies()).set_index("direction")
    row = table.loc["host to device"]
    assert (row["calls"], row["bytes"], row["total_ns"], row["busy_ns"]) == (2, 4000, 200, 150)
    assert row["gbps"] == pytest.approx(20.0)
    assert table.loc["device to host", "bytes"] is pd.NA
    assert table.loc["device to host", "gbps"] is pd.NA
    assert table.loc["fill", "bytes"] == 5
    assert direction_of("Memcpy PtoP (Device -> Device)") == "peer to peer"
    assert direction_of("dma") == "unknown"


def test_a_size_may_stand_with_the_call() -> None:
    b = Builder()
    main, one = b.track("main"), b.stream(0)
    b.span("hipMemcpyWithStream", 0, 10, main, "runtime", correlation=1, args={"size": "2560"})
    b.span("CopyHostToDevice", 20, 10, one, "memcpy", correlation=1)
    assert copies(b.build())["bytes"].to_list() == [2560]


def test_bandwidth_over_time_adds_what_overlaps_and_returns_to_zero() -> None:
    table = copy_bandwidth(_copies())
    up = table[table["direction"] == "host to device"]
    assert up["ts_ns"].tolist() == [0, 50, 100, 150]
    assert up["gbps"].tolist() == pytest.approx([10.0, 40.0, 30.0, 0.0])
    assert up["gbps"].iloc[-1] == 0
    assert "device to host" not in set(table["direction"]), "a copy without a size has no bandwidth"
