"""A made-up trace of which the truth was counted while it was written."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import torchtrt_viz as tv
from torchtrt_viz.trace import Trace

KIND = {
    "X:cpu_op": "operator",
    "X:cuda_runtime": "runtime",
    "X:cuda_driver": "runtime",
    "X:kernel": "kernel",
    "X:gpu_memcpy": "memcpy",
    "X:gpu_memset": "memset",
    "X:python_function": "python",
    "X:user_annotation": "annotation",
    "X:gpu_user_annotation": "annotation",
    "X:Trace": "other",
}


@pytest.fixture(scope="module")
def made(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    sys.path.insert(0, str(root / "benchmarks" / "ingest"))
    try:
        from generate import generate
    finally:
        sys.path.pop(0)
    path = tmp_path_factory.mktemp("generated") / "trace.json"
    return path, generate(path, 6_000_000, seed=7, rank=2)


@pytest.fixture(scope="module")
def trace(made: tuple[Path, dict[str, Any]]) -> Trace:
    loaded = tv.load(made[0])
    assert isinstance(loaded, Trace)
    return loaded


def test_sums_are_exact(made: tuple[Path, dict[str, Any]], trace: Trace) -> None:
    truth = made[1]
    expected: dict[str, list[int]] = {}
    for category, (count, duration) in truth["categories"].items():
        if category.startswith("X:"):
            entry = expected.setdefault(KIND[category], [0, 0])
            entry[0] += count
            entry[1] += duration
    spans = trace.spans
    kinds = spans["kind"].astype(object).replace({"communication": "kernel", "step": "annotation"})
    sums = spans["dur_ns"].groupby(kinds).agg(["size", "sum"])
    assert {kind: [int(row["size"]), int(row["sum"])] for kind, row in sums.iterrows()} == expected
    assert (
        len(trace.instants)
        == truth["categories"]["X:Trace"][0] * 2 + truth["categories"]["i:cpu_instant_event"][0]
    )
    assert trace.meta["events"] == truth["events"]


def test_it_says_that_it_is_made_up(trace: Trace) -> None:
    assert trace.meta["synthetic"] is True
    assert trace.meta["rank"] == 2


def test_flows(made: tuple[Path, dict[str, Any]], trace: Trace) -> None:
    counts = {name: entry[0] for name, entry in made[1]["categories"].items()}
    flows = trace.flows
    assert len(flows) == counts["f:ac2g"] + counts["f:fwdbwd"]
    assert (flows["target"] >= 0).all()
    without_start = counts["f:ac2g"] - counts["s:ac2g"]
    assert int(flows["source"].isna().sum()) == without_start
    pairs = flows[(flows["name"] == "ac2g") & (flows["source"] >= 0)]
    correlation = trace.spans["correlation"].fillna(-1).to_numpy()
    assert (correlation[pairs["source"]] == correlation[pairs["target"]]).all()


def test_overlaps_are_counted(made: tuple[Path, dict[str, Any]], trace: Trace) -> None:
    (warning,) = trace.meta["warnings"]
    assert (warning.code, warning.count) == ("overlap", made[1]["overlaps"])


def test_every_span_of_a_step_has_its_number(made: tuple[Path, dict[str, Any]], trace: Trace) -> None:
    spans = trace.spans
    launches = spans[spans["kind"] == "runtime"]
    assert launches["iteration"].notna().all()
    assert set(spans["iteration"].dropna()) == set(range(made[1]["steps"]))


def test_gzip_gives_the_same(made: tuple[Path, dict[str, Any]], trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(made[0].read_bytes(), 1))
    other = tv.load(path)
    assert isinstance(other, Trace)
    for name in ("spans", "tracks", "instants", "counters", "flows"):
        pd.testing.assert_frame_equal(getattr(other, name), getattr(trace, name))
    rows = [5, len(trace.spans) - 1, 1000]
    assert other.args.read(rows) == trace.args.read(rows)


def test_memory_is_that_of_the_frames(made: tuple[Path, dict[str, Any]]) -> None:
    import subprocess

    program = f"""
import sys
import torchtrt_viz as tv, pandas
import torchtrt_viz.formats.kineto.reader

def peak_bytes():
    # not ru_maxrss, which a child process inherits from the one that started it
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

before = peak_bytes()
trace = tv.load({str(made[0])!r})
peak = peak_bytes() - before
kept = (trace.spans, trace.instants, trace.counters, trace.flows)
frames = sum(frame.memory_usage(deep=True).sum() for frame in kept)
assert peak < 1.2 * frames + (64 << 20), (peak, frames)
assert not {{"torch", "plotly", "IPython"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
