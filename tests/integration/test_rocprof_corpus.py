"""A real recording of rocprofv3: counts and times are those of a plain walk of its JSON."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from shared_files import shared_file

import torchtrt_viz as tv
from torchtrt_viz.report.html import write_html


@pytest.fixture(scope="module")
def path() -> Path:
    return shared_file("corpus/writers/rocprofv3_908_results.json.gz")


@pytest.fixture(scope="module")
def process(path: Path) -> dict[str, Any]:
    with gzip.open(path) as file:
        (found,) = json.load(file)["rocprofiler-sdk-tool"]
    return dict(found)


@pytest.fixture(scope="module")
def trace(path: Path) -> tv.Trace:
    found = tv.load(path)
    assert isinstance(found, tv.Trace)
    return found


def test_counts_and_times_by_kernel_and_queue(trace: tv.Trace, process: dict[str, Any]) -> None:
    names = {
        symbol["kernel_id"]: symbol["formatted_kernel_name"].removesuffix(".kd")
        for symbol in process["kernel_symbols"]
    }
    calls: Counter[tuple[str, str]] = Counter()
    times: defaultdict[tuple[str, str], int] = defaultdict(int)
    for record in process["buffer_records"]["kernel_dispatch"]:
        info = record["dispatch_info"]
        key = names[info["kernel_id"]], f"GPU 0 queue {info['queue_id']['handle']}"
        calls[key] += 1
        times[key] += record["end_timestamp"] - record["start_timestamp"]
    table = trace.kernels(by="stream")
    keys = list(zip(table["name"], table["stream"], strict=True))
    assert dict(zip(keys, table["calls"], strict=True)) == calls
    assert dict(zip(keys, table["total_ns"], strict=True)) == times
    assert sum(calls.values()) == 43_915


def test_everything_is_accounted_for(trace: tv.Trace, process: dict[str, Any]) -> None:
    found = trace.meta["accounting"]
    lists = [*process["buffer_records"].values(), *process["callback_records"].values()]
    lists += [process[name] for name in ("agents", "counters", "code_objects", "kernel_symbols")]
    lists += [process[name] for name in ("host_functions", "summary")]
    assert found["in_file"] == found["read"] == sum(map(len, lists))
    assert found["rows"]["spans"] == 43_915
    assert not trace.meta["warnings"]
    gpus = [agent for agent in process["agents"] if agent["type"] == 2]
    assert [device["name"] for device in trace.meta["deviceProperties"]] == [
        agent["product_name"] for agent in gpus
    ]


def test_details_are_those_of_the_record(trace: tv.Trace, process: dict[str, Any]) -> None:
    records = process["buffer_records"]["kernel_dispatch"]
    for row in (0, 1, 999, 43_914):
        info, found = records[row]["dispatch_info"], trace.args[row]
        assert found["grid_size"] == list(info["grid_size"].values())
        assert found["workgroup_size"] == list(info["workgroup_size"].values())
        assert found["stream"] == records[row]["stream_id"]["handle"]
        assert trace.spans["correlation"].iloc[row] == records[row]["correlation_id"]["internal"]


def test_tables_and_the_page_take_it(trace: tv.Trace, tmp_path: Path) -> None:
    assert len(trace.questions()) == 6
    assert trace.operators().empty
    assert set(trace.kernels(top=1)["class"]) == {"communication"}
    assert trace.summary().set_index("item")["value"]["pieces of work"] == 43_915
    page = tmp_path / "page.html"
    write_html(trace, page)
    assert "ncclDevKernel_Generic_1" in page.read_text()
