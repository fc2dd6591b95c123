"""Memory over time, peaks and owners of traces worked out by hand."""

from __future__ import annotations

import pandas as pd
from trace_builder import Builder

from torchtrt_viz.analysis.device.memory_use import memory, memory_by_operator, memory_peaks
from torchtrt_viz.trace import Trace


def _trace() -> Trace:
    b = Builder()
    main, counters = b.track("main"), b.track("counters", "counter")
    b.span("aten::linear", 0, 100, main)
    b.span("aten::addmm", 20, 50, main)
    total = 1000
    for ts, amount, device in ((10, 400, 0), (30, 600, 0), (50, -600, 0), (200, -100, 0), (40, 64, -1)):
        if device == 0:
            total += amount
            b.counter("allocated memory/cuda:0", ts, total, counters, "B")
            b.counter("reserved memory/cuda:0", ts, 4096, counters, "B")
        else:
            b.counter("allocated memory/cpu", ts, 64, counters, "B")
        details = {"Bytes": amount, "Device Type": 0 if device < 0 else 1, "Device Id": device}
        b.instant("[memory]", ts, main, "memory", **details)
    return b.build()


def test_memory_is_a_step_function_per_device() -> None:
    table = memory(_trace())
    cuda = table[table["device"] == "cuda:0"]
    assert cuda["ts_ns"].tolist() == [10, 30, 50, 200]
    assert cuda["allocated_bytes"].tolist() == [1400, 2000, 1400, 1300]
    assert cuda["delta_bytes"].to_list() == [pd.NA, 600, -600, -100]
    assert cuda["reserved_bytes"].to_list() == [4096] * 4
    cpu = table[table["device"] == "cpu"]
    assert cpu["reserved_bytes"].to_list() == [pd.NA]
    assert cpu["delta_bytes"].to_list() == [pd.NA]


def test_peaks() -> None:
    row = memory_peaks(_trace()).set_index("device").loc["cuda:0"]
    assert row["peak_allocated_bytes"] == 2000
    assert row["peak_at_ns"] == 30
    assert row["peak_reserved_bytes"] == 4096
    assert row["unused_at_peak_bytes"] == 2096
    assert (row["first_bytes"], row["last_bytes"]) == (1400, 1300)
    assert row["events"] == 4
    assert memory_peaks(_trace()).set_index("device").loc["cpu", "unused_at_peak_bytes"] is pd.NA


def test_allocations_belong_to_the_innermost_operator() -> None:
    table = memory_by_operator(_trace())
    rows = {
        (r.device, "" if pd.isna(r.operator) else r.operator): (r.allocated_bytes, r.released_bytes)
        for r in table.itertuples(index=False)
    }
    assert rows == {
        ("cuda:0", "aten::linear"): (400, 0),
        ("cuda:0", "aten::addmm"): (600, 600),
        ("cuda:0", ""): (0, 100),
        ("cpu", "aten::addmm"): (64, 0),
    }
    assert table["net_bytes"].sum() == 400 + 64 - 100


def test_events_at_one_time_share_their_operator() -> None:
    b = Builder()
    main = b.track("main")
    b.span("aten::empty", 0, 10, main)
    for _ in range(5):
        b.instant("[memory]", 5, main, "memory", Bytes=8, **{"Device Type": 0, "Device Id": -1})
    table = memory_by_operator(b.build())
    assert table[["operator", "allocations"]].to_numpy().tolist() == [["aten::empty", 5]]


def test_allocators_of_a_program() -> None:
    b = Builder()
    b.track("main")
    found = pd.DataFrame({"allocator": ["method", "temp", "method"], "bytes": [10, 5, 7], "ts_ns": [1, 2, 3]})
    table = memory(b.build(etdump={"allocations": found}))
    assert table[["device", "ts_ns", "allocated_bytes"]].to_numpy().tolist() == [
        ["method", 1, 10],
        ["method", 3, 17],
        ["temp", 2, 5],
    ]


def test_nothing_recorded() -> None:
    b = Builder()
    b.track("main")
    for table in (memory(b.build()), memory_peaks(b.build()), memory_by_operator(b.build())):
        assert len(table) == 0
        assert len(table.columns) >= 5
