"""A real XPlane of JAX on an AMD GPU, against a plain walk of the file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from raw_xplane import RawPlane, raw_planes

import torchtrt_viz as tv


@pytest.fixture(scope="module")
def path(corpus: Path) -> Path:
    return corpus / "writers" / "jax_cpu_or_gpu.xplane.pb"


@pytest.fixture(scope="module")
def raw(path: Path) -> list[RawPlane]:
    return raw_planes(path)


@pytest.fixture(scope="module")
def trace(path: Path) -> tv.Trace:
    loaded = tv.load(path)
    assert isinstance(loaded, tv.Trace)
    return loaded


def test_every_event_is_a_span(trace: tv.Trace, raw: list[RawPlane]) -> None:
    wanted = Counter(
        (name, (start + 500) // 1000, (start + duration + 500) // 1000)
        for plane in raw
        for _, name, start, duration, _ in plane.events()
    )
    spans = trace.spans[trace.spans["timing"] == "measured"]
    end = spans["start_ns"] + spans["dur_ns"]
    assert Counter(zip(spans["name"].astype(str), spans["start_ns"], end, strict=True)) == wanted
    found = trace.meta["accounting"]
    assert found["in_file"] == found["read"] == sum(wanted.values()) == 1992
    assert found["span_ps"] == sum(event[3] for plane in raw for event in plane.events())
    assert found["planes"] == {plane.name: sum(len(line.events) for line in plane.lines) for plane in raw}


def test_device_work(trace: tv.Trace, raw: list[RawPlane]) -> None:
    work = [event for plane in raw if plane.name.startswith("/device:GPU") for event in plane.events()]
    kernels = trace.kernels()
    assert kernels["calls"].sum() == len(work) == 150
    assert kernels["total_ns"].sum() == sum(duration for *_, duration, _ in work) // 1000 == 12_133_585
    ids = Counter(
        stats["correlation_id"]
        for plane in raw
        if plane.name == "/host:CPU"
        for _, name, *_, stats in plane.events()
        if name.startswith("hip") and "correlation_id" in stats
    )
    launched = sum(stats["correlation_id"] in ids for *_, stats in work)
    assert kernels["launch_rows"].sum() == launched == 150


def test_operators_are_the_paths_that_kernels_state(trace: tv.Trace, raw: list[RawPlane]) -> None:
    wanted: Counter[str] = Counter()
    for plane in raw:
        if plane.name.startswith("/device:GPU"):
            for *_, duration, stats in plane.events():
                path = stats.get("name") or stats.get("hlo_op") or ""
                wanted[path] += duration // 1000
    found = trace.operators()
    assert dict(zip(found["name"], found["device_self_ns"], strict=True)) == dict(wanted)
    assert found.attrs["device_unexplained_ns"] == 0
    assert found["calls"].sum() == 0
