"""Spans of ``trtexec --exportTimes``: what ran on which stream, with copies and without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError


def inference(start: float, *, compute: float = 5.0, copy: float = 0.1) -> dict[str, float]:
    """Return one inference as trtexec writes it: copy in, compute, copy out, without gaps; in ms."""
    begin = start + copy
    end = begin + compute
    return {
        "startEnqMs": start,
        "endEnqMs": start + 0.01,
        "startH2dMs": start,
        "endH2dMs": begin,
        "startComputeMs": begin,
        "endComputeMs": end,
        "startD2hMs": end,
        "endD2hMs": end + copy,
        "h2dMs": copy,
        "computeMs": compute,
        "d2hMs": copy,
        "latencyMs": compute + 2 * copy,
    }


def spans_of(tmp_path: Path, records: list[dict[str, Any]]) -> tuple[Any, Any]:
    path = tmp_path / "a.timing.json"
    path.write_text(json.dumps(records))
    trace = tv.load(path)
    return trace, trace.spans[trace.spans["domain"] == "gpu"]


def streams(trace: Any, name: str) -> list[str]:
    used = trace.spans["track"][trace.spans["name"] == name]
    return trace.tracks["label"].iloc[sorted(set(used))].tolist()


def test_copies_of_the_next_inference_run_beside_the_computation(tmp_path: Path) -> None:
    # every 5 ms, so that the copy out of one and the copy in of the next lie within a computation
    trace, gpu = spans_of(tmp_path, [inference(5.0 * i) for i in range(20)])
    assert gpu["parent"].tolist() == [-1] * 60
    assert gpu["self_ns"].tolist() == gpu["dur_ns"].tolist()
    assert gpu["kind"].astype(str).value_counts().to_dict() == {"memcpy": 40, "phase": 20}
    assert [streams(trace, name) for name in ("H2D", "GPU compute", "D2H")] == [
        ["a H2D"],
        ["a GPU compute"],
        ["a D2H"],
    ]


def test_inferences_of_several_streams_have_a_track_each(tmp_path: Path) -> None:
    trace, gpu = spans_of(tmp_path, [inference(2.5 * i) for i in range(20)])
    assert streams(trace, "GPU compute") == ["a GPU compute", "a GPU compute (2)"]
    assert gpu["self_ns"].tolist() == gpu["dur_ns"].tolist()
    compute = gpu[gpu["name"] == "GPU compute"]
    assert sorted(compute["iteration"]) == list(range(20))
    for _, lane in compute.groupby("track"):
        begin, end = lane["start_ns"].to_numpy(), (lane["start_ns"] + lane["dur_ns"]).to_numpy()
        assert (begin[1:] >= end[:-1] - 1_000).all()
    flows = trace.flows
    for flow in flows.itertuples():
        assert trace.spans["iteration"][flow.source] == trace.spans["iteration"][flow.target]
    assert len(flows) == 20


def test_rounded_times_make_no_second_stream(tmp_path: Path) -> None:
    """Six digits: at 3 s an inference begins up to 1 us before the one before has ended."""
    records = [inference(3_000 + 5.1 * i, copy=0.0) for i in range(10)]
    for record in records:
        record["computeMs"] = 5.1004
    trace, _ = spans_of(tmp_path, records)
    assert streams(trace, "GPU compute") == ["a GPU compute"]


def test_without_data_transfers_there_are_no_copies(tmp_path: Path) -> None:
    """``--noDataTransfers``, the default of late: the file has the columns, and zeros."""
    _, gpu = spans_of(tmp_path, [inference(6.0 * i, copy=0.0) for i in range(5)])
    assert set(gpu["name"]) == {"GPU compute"}
    assert int(gpu["dur_ns"].sum()) == 25_000_000


def test_records_without_columns_of_copies(tmp_path: Path) -> None:
    records = [{key: value for key, value in inference(6.0 * i).items() if "2" not in key} for i in range(5)]
    trace, gpu = spans_of(tmp_path, records)
    assert set(gpu["name"]) == {"GPU compute"}
    assert trace.meta["warnings"] == []


def test_one_way_copies(tmp_path: Path) -> None:
    records = [{**inference(6.0 * i), "d2hMs": 0, "startD2hMs": 0, "endD2hMs": 0} for i in range(5)]
    _, gpu = spans_of(tmp_path, records)
    assert gpu["name"].astype(str).value_counts().to_dict() == {"H2D": 5, "GPU compute": 5}


def test_times_that_are_no_numbers_are_missing(tmp_path: Path) -> None:
    records = [inference(6.0 * i) for i in range(3)]
    records[1]["computeMs"] = records[1]["startComputeMs"] = "?"  # type: ignore[assignment]
    trace, gpu = spans_of(tmp_path, records)
    compute = gpu[gpu["name"] == "GPU compute"]
    assert compute["iteration"].tolist() == [0, 2]
    assert np.isnan(trace.meta["engines"][0].timing["computeMs"].iloc[1])
    assert [(w.code, w.count) for w in trace.meta["warnings"]] == [("no_time", 2)]


def test_records_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.timing.json"
    for text in ('[{"startEnqMs": null, "foo": 1}]', '[{"name": "x", "dimensions": "1x3"}]'):
        path.write_text(text)
        with pytest.raises(TraceFormatError, match="no timed inferences"):
            tv.load(path, format="trex")
