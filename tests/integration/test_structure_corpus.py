"""Real files compared by their structure: nothing is counted twice or lost, whatever the other file is."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain_sums import Recorded, union
from raw_kineto import device_events, events

import torchtrt_viz as tv
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.trace import Trace

LARGE = 1_000_000  # bytes; a few of these are enough


def _traces(corpus: Path) -> dict[str, Trace]:
    out: dict[str, Trace] = {}
    paths = [
        *sorted((corpus / "kineto").glob("*.json*")),
        *sorted((corpus / "etdump").glob("*.etdp"))[:12],
        *sorted((corpus / "graphs").iterdir()),
        *sorted((corpus / "nsys").glob("*.sqlite"))[:2],
        *sorted((corpus / "writers").glob("*.json")),
    ]
    for path in paths:
        if path.is_file() and path.stat().st_size > LARGE and "resnet_train" not in path.name:
            continue
        try:
            found = tv.load(path)
        except tv.errors.TorchTrtVizError:
            continue  # meant to be refused: other tests say which
        if isinstance(found, Trace):
            out[path.name] = found
    return out


@pytest.fixture(scope="module")
def traces(corpus: Path) -> dict[str, Trace]:
    return _traces(corpus)


def _whole(name: str, table, a: Trace, b: Trace) -> None:
    for side, trace in zip("ab", (a, b), strict=True):
        assert int(table[f"{side}_gpu_ns"].sum()) == int(device_work(trace).dur.sum()), name
        assert int(table[f"{side}_host_ns"].sum()) == int(host_nesting(trace).self_ns.sum()), name


def test_every_file_is_itself(traces: dict[str, Trace]) -> None:
    assert len(traces) > 20
    for name, trace in traces.items():
        table = tv.compare_structure(trace, trace)
        _whole(name, table, trace, trace)
        assert set(table["change"]) == {"same"}, name
        assert table.attrs["outcome"] in ("same structure", "nothing to align"), name
        assert table.attrs["gpu_aligned_pct"] in (None, 100.0), name
        assert table.attrs["host_aligned_pct"] in (None, 100.0), name


def test_every_file_beside_another_one(traces: dict[str, Trace]) -> None:
    """Sums hold for programs that have nothing to do with each other, and swapping mirrors the outcome."""
    names = list(traces)
    for at, name in enumerate(names):
        other = names[(at * 5 + 3) % len(names)]
        a, b = traces[name], traces[other]
        table, mirrored = tv.compare_structure(a, b), tv.compare_structure(b, a)
        _whole(f"{name} and {other}", table, a, b)
        for key in ("gpu_aligned_pct", "host_aligned_pct", "outcome"):
            assert table.attrs[key] == mirrored.attrs[key], (name, other)
        assert sorted(table["a_name"].dropna()) == sorted(mirrored["b_name"].dropna()), (name, other)


def test_the_sums_are_those_of_the_file(corpus: Path, traces: dict[str, Trace]) -> None:
    """By a reader of its own: durations of kernels, copies and fills; by plain loops: time on the threads."""
    for name in ("mi250_rocm62_minitoy.json.gz", "multirank_sampled_rank-0.json.gz"):
        trace = traces[name]
        table = tv.compare_structure(trace, trace)
        raw = device_events(events(corpus / "kineto" / name))
        recorded = Recorded(trace)
        assert int(table["b_gpu_ns"].sum()) == recorded.work_ns == sum(event["dur"] for event in raw)
        assert int(table["b_host_ns"].sum()) == sum(map(union, recorded.host.values()))


def test_replayed_graphs_are_compared_by_what_was_recovered(traces: dict[str, Trace]) -> None:
    """A decode step as one graph, and the same model's prefill and decode in pieces."""
    table = tv.compare_structure(traces["vllm_decode_full"], traces["vllm_prefilldecode_piecewise"])
    assert table.attrs["gpu_aligned_pct"] > 50
    operators = table[(table["kind"] == "operator") & table["a_gpu_total_ns"].notna()]
    assert len(operators) > 5, "operators that only graphs ran"
    assert operators["a_host_ns"].isna().any()


def test_two_ranks_of_a_job_have_one_structure(traces: dict[str, Trace]) -> None:
    a, b = traces["multirank_sampled_rank-0.json.gz"], traces["multirank_sampled_rank-1.json.gz"]
    table = tv.compare_structure(a, b)
    assert table.attrs["outcome"] == "changed"
    assert table.attrs["host_aligned_pct"] > 90
