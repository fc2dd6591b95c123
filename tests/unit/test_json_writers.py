"""Trace-event files in every writer's dialect, made here: which side a span was on, and what counts once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from json_writers import DIALECTS, merged, named, span

import torchtrt_viz as tv
from torchtrt_viz import analysis
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.kineto.ids import separate_ids
from torchtrt_viz.formats.producers.rules import rank_numbers
from torchtrt_viz.loading.reading import read_source


def loaded(folder: Path, data: bytes, name: str = "trace.json") -> tv.Trace:
    path = folder / name
    path.write_bytes(data)
    trace = tv.load(path)
    assert isinstance(trace, tv.Trace)
    return trace


@pytest.mark.parametrize("writer", DIALECTS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_host_and_device_of_every_writer(writer: str, pack, tmp_path: Path) -> None:
    data, kernel = DIALECTS[writer]
    spans = loaded(tmp_path, pack(data)).spans
    counted = spans[spans["timing"] == "measured"]
    gpu = counted[counted["domain"] == "gpu"]
    assert list(zip(gpu["name"], gpu["dur_ns"] // 1000, strict=True)) == ([kernel] if kernel else [])
    assert gpu["kind"].isin(["kernel"]).all()
    outermost = counted[(counted["domain"] == "host") & (counted["parent"] < 0)]
    assert outermost["dur_ns"].tolist() == [30_000]
    assert outermost["start_ns"].tolist() == [100_000]


@pytest.mark.parametrize("writer", [name for name, (_, kernel) in DIALECTS.items() if kernel])
def test_a_kernel_counts_once_in_every_analysis(writer: str, tmp_path: Path) -> None:
    trace = loaded(tmp_path, DIALECTS[writer][0])
    (row,) = trace.kernels().itertuples()
    assert (row.calls, row.total_ns) == (1, 10_000)
    (row,) = analysis.temporal_breakdown(trace).itertuples()
    assert row.busy_ns == 10_000


@pytest.mark.parametrize(
    ("marks", "numbers"),
    [
        (("TP00-DP00-PP00-EP00", "TP00-DP01-PP00-EP00"), [0, 1]),  # the number that differs
        (("TP01-DP00-PP00-EP00", "TP00-DP00-PP00-EP00"), [1, 0]),
        (("rank 3", "rank 5"), [3, 5]),
        (("TP00-DP00", "TP00-DP01", "TP01-DP00", "TP01-DP01"), [0, 1, 2, 3]),  # no number is each one's own
        (("rank of a", "rank of b"), [0, 1]),
    ],
)
def test_ranks_merged_into_one_file_keep_their_ids_apart(
    marks: tuple[str, ...], numbers: list[int], tmp_path: Path
) -> None:
    assert [rank_numbers(marks)[mark] for mark in marks] == numbers
    path = tmp_path / "merged.json"
    path.write_bytes(merged(*marks))
    trace = read_source(Source(path), LoadOptions())
    found = trace.meta["merged_ranks"]
    assert {one.mark: one.rank for one in found} == dict(zip(marks, numbers, strict=True))
    assert [one.rank for one in found] == sorted(numbers)
    spans = trace.spans
    launches = spans[spans["name"] == "cudaLaunchKernel"]["correlation"]
    assert launches.is_unique
    assert len(launches) == len(marks)
    by_lane = {lane: one for one in found for lane in one.lanes}
    kernels = spans[spans["domain"] == "gpu"]
    for kernel in kernels.itertuples():
        one = by_lane[kernel.track]
        assert kernel.name == f"gemm of {one.mark}"
        assert kernel.correlation == 5 + one.shift["correlation"]
        assert kernel.external_id == 7 + one.shift["external_id"]
    assert sorted(kernels["correlation"]) == sorted(launches)
    delays = analysis.launch_delays(trace)
    assert delays["delay_ns"].tolist() == [25_000] * len(marks)  # from the launch's end at 115 to 140


def test_device_work_that_could_be_either_process_loses_its_link(tmp_path: Path) -> None:
    events = [
        event
        for process in (1, 2)
        for event in (
            *named(process, f"worker {process}"),
            span(
                "cudaLaunchKernel", process, 1, 10 * process, 2, cat="cuda_runtime", args={"correlation": 5}
            ),
        )
    ]
    events.append(span("gemm", 0, 7, 90, 10, cat="kernel", args={"correlation": 5, "device": 0, "stream": 7}))
    events.append(
        span("other", 0, 7, 100, 10, cat="kernel", args={"correlation": 8, "device": 0, "stream": 7})
    )
    trace = loaded(tmp_path, json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
    spans = trace.spans.set_index("name")
    assert pd.isna(spans.loc["gemm", "correlation"])
    assert spans.loc["other", "correlation"] == 8
    assert spans.loc["cudaLaunchKernel", "correlation"].is_unique
    assert any("process" in str(warning) for warning in trace.meta["warnings"])


def test_one_process_keeps_its_ids() -> None:
    spans = {
        "correlation": np.array([5, 5]),
        "external_id": np.array([-1, -1]),
        "kind": np.array([0, 0]),
        "track": np.array([0, 1]),
    }
    lanes = [("thread", "1", "1", None, None), ("stream", "0", "7", None, 0)]
    found = separate_ids(spans, lanes)
    assert (found.ids, found.rows, found.ranks) == (0, 0, [])
    assert spans["correlation"].tolist() == [5, 5]
