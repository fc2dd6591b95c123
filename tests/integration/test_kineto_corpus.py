"""Every real trace equals an independent slow reading of it, value by value."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from shared_files import SHARED
from slow_kineto import SlowTrace, hta_rounded, read_slowly

import torchtrt_viz as tv
from torchtrt_viz.trace import Trace

CORPUS = SHARED / "corpus"
FILES = sorted(
    path.relative_to(CORPUS).as_posix()
    for folder in ("kineto", "ranks")
    for path in (CORPUS / folder).rglob("*.json*")
    if ".meta." not in path.name and path.stat().st_size
)

# By hand, from what the producers say of their categories.
MEANING = {
    "cpu_op": ("operator", "host"),
    "Operator": ("operator", "host"),
    "user_annotation": ("annotation", "host"),
    "gpu_user_annotation": ("annotation", "gpu"),
    "kernel": ("kernel", "gpu"),
    "Kernel": ("kernel", "gpu"),
    "gpu_memcpy": ("memcpy", "gpu"),
    "Memcpy": ("memcpy", "gpu"),
    "gpu_memset": ("memset", "gpu"),
    "Memset": ("memset", "gpu"),
    "cuda_runtime": ("runtime", "host"),
    "cuda_driver": ("runtime", "host"),
    "Runtime": ("runtime", "host"),
    "python_function": ("python", "host"),
    "overhead": ("other", "host"),
    "cuda_sync": ("other", "host"),
    "Trace": ("other", "host"),
}


@dataclass
class Pair:
    """A file as loaded, and as read slowly."""

    name: str
    trace: Trace
    slow: SlowTrace


def pair_of(name: str) -> Pair:
    trace = tv.load(CORPUS / name)
    assert isinstance(trace, Trace)
    return Pair(name, trace, read_slowly(CORPUS / name))


@pytest.fixture(scope="module", params=FILES)
def pair(request: pytest.FixtureRequest, corpus: Path) -> Pair:
    """Each file once, for all tests."""
    return pair_of(request.param)


def same(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def expected_meaning(name: str, category: str) -> tuple[str, str]:
    kind, domain = MEANING[category]
    if kind == "annotation" and name.startswith("ProfilerStep#"):
        kind = "step"
    if kind == "annotation" and name.startswith("gloo:"):
        kind = "communication"
    if kind == "kernel" and "nccl" in name.partition("(")[0]:
        kind = "communication"
    return kind, domain


def test_the_corpus_is_there(corpus: Path) -> None:
    assert len(FILES) >= 24


def said(identity: Any) -> str | None:
    """A process or thread as text, as frames have it."""
    return None if pd.isna(identity) else str(identity)


def test_spans_equal(pair: Pair) -> None:
    spans, expected = pair.trace.spans, pair.slow.spans
    assert len(spans) == len(expected)
    assert spans["name"].astype(object).tolist() == [row[0] for row in expected]
    for column, index in (("start_ns", 1), ("dur_ns", 2), ("correlation", 3), ("external_id", 4)):
        values = spans[column].fillna(-1).to_numpy()  # the slow reader's "none"
        wanted = np.array([row[index] for row in expected], dtype=np.int64)
        assert np.array_equal(values, wanted), column
    meanings = [expected_meaning(row[0], row[7]) for row in expected]
    assert spans["kind"].astype(object).tolist() == [kind for kind, _ in meanings]
    assert spans["domain"].astype(object).tolist() == [domain for _, domain in meanings]
    tracks = pair.trace.tracks
    processes, threads = tracks["process"].tolist(), tracks["thread"].tolist()
    placed = [(said(processes[t]), said(threads[t])) for t in spans["track"]]
    assert placed == [(said(row[5]), said(row[6])) for row in expected]
    assert (
        tracks["domain"].astype(object).to_numpy()[spans["track"]] == spans["domain"].astype(object)
    ).all()


def test_arguments_equal(pair: Pair) -> None:
    trace, expected = pair.trace, pair.slow
    for args, wanted in (
        (trace.args, [row[-1] for row in expected.spans]),
        (trace.instant_args, [row[-1] for row in expected.instants]),
    ):
        assert [same(value) for value in args.read()] == [same(value) for value in wanted]


def test_single_rows_of_arguments(pair: Pair) -> None:
    trace, expected = pair.trace, pair.slow
    last = len(expected.spans) - 1
    rows = [last, 0, last // 2, 0]
    assert [same(value) for value in trace.args.read(rows)] == [same(expected.spans[r][-1]) for r in rows]


def test_instants_equal(pair: Pair) -> None:
    trace, expected = pair.trace, pair.slow.instants
    instants = trace.instants
    assert instants["name"].astype(object).tolist() == [row[0] for row in expected]
    assert instants["ts_ns"].tolist() == [row[1] for row in expected]
    assert set(instants["state"].astype(object)) <= {"instant"}
    memory = instants["kind"].astype(object) == "memory"
    assert memory.tolist() == [row[0] == "[memory]" for row in expected]


def test_allocator_totals_are_counters(pair: Pair) -> None:
    counters = pair.trace.counters
    wanted: list[tuple[str, int, float]] = []
    for label, ts, _, _, args in pair.slow.instants:
        if label == "[memory]":
            device = {0: "cpu", 1: f"cuda:{args['Device Id']}"}[args["Device Type"]]
            wanted.append((f"allocated memory/{device}", ts, float(args["Total Allocated"])))
            wanted.append((f"reserved memory/{device}", ts, float(args["Total Reserved"])))
    got = zip(counters["name"].astype(object), counters["ts_ns"], counters["value"], strict=True)
    assert list(got) == wanted
    assert set(counters["unit"].astype(object)) <= {"B"}


def test_flows_lead_where_their_points_lie(pair: Pair) -> None:
    trace, points = pair.trace, pair.slow.flows
    flows, spans = trace.flows, trace.spans
    ends = [p for p in points if p[0] == "f"]
    started = {(p[1], p[2]) for p in points if p[0] == "s"}
    ended = {(p[1], p[2]) for p in ends}
    # One row an end, and one for each start that nothing ends.
    assert len(flows) == len(ends) + len(started - ended)
    assert int(flows["source"].isna().sum()) == sum((p[1], p[2]) not in started for p in ends)
    place: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    for phase, category, identifier, ts, process, thread in points:
        place.setdefault((category, identifier), []).append((phase, ts, process, thread))
    tracks = trace.tracks
    process_of, thread_of = tracks["process"].tolist(), tracks["thread"].tolist()
    track, start, duration = spans["track"].tolist(), spans["start_ns"].tolist(), spans["dur_ns"].tolist()
    for row in flows.itertuples(index=False):
        mine = place[row.name, row.id]
        for phase, span in (("s", row.source), ("f", row.target)):
            if pd.isna(span):
                continue
            where = [p for p in mine if p[0] == phase]
            inside = [
                (said(process_of[track[span]]), said(thread_of[track[span]])) == (said(p[2]), said(p[3]))
                and start[span] <= p[1] <= start[span] + duration[span]
                for p in where
            ]
            assert any(inside), row
    # A launch and what it starts share the profiler's correlation, which the flow's id is.
    both = flows[(flows["source"] >= 0) & (flows["target"] >= 0) & (flows["name"] == "ac2g")]
    correlation = spans["correlation"].fillna(-1).to_numpy()
    if len(both) and pair.name != "kineto/a100_alexnet_cuda_sync.json.gz":
        assert (correlation[both["source"]] == both["id"]).all()
        assert (correlation[both["target"]] == both["id"]).all()


def test_meta(pair: Pair) -> None:
    trace, header = pair.trace, pair.slow.header
    assert trace.meta["format"] == "kineto"
    assert trace.meta["sources"] == [str(CORPUS / pair.name)]
    if header:
        assert trace.meta["base_ns"] == header.get("baseTimeNanoseconds", 0)
        assert trace.meta.get("distributedInfo") == header.get("distributedInfo")
        assert trace.meta.get("deviceProperties") == header.get("deviceProperties")
        rank = header.get("distributedInfo", {}).get("rank")
        assert rank is None or (trace.spans["rank"] == rank).all()
    named = {
        (e["pid"], e["tid"]): e["args"]["name"].strip()
        for e in pair.slow.metadata
        if e["name"] == "thread_name"
    }
    for row in trace.tracks.itertuples():
        if (row.process, row.thread) in named:
            assert named[row.process, row.thread] in row.label


def kernel_times(name: str) -> tuple[int, int, float]:
    """Return exact kernel time in ns: as loaded, from the decimals of the file; and as HTA rounds it."""
    pair = pair_of(name)
    category = np.array([row[7] for row in pair.slow.spans])
    ours = int(pair.trace.spans["dur_ns"].to_numpy()[(category == "kernel") | (category == "Kernel")].sum())
    exact = sum(round(float(duration) * 1000) for _, duration in pair.slow.kernels)
    rounded = float(sum(hta_rounded(*times)[1] for times in pair.slow.kernels)) * 1000
    return ours, exact, rounded


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("kineto/b200_eager_pystacks_rank0_of8.json.gz", 0.069),
        ("kineto/mi210_gpu_only.json.gz", 0.105),
        ("kineto/mi250_rocm62_minitoy.json.gz", 0.134),
        ("kineto/mi300x_resnet_train_fwdbwd_pystacks.json.gz", 0.031),
        ("kineto/a100_ddp_nccl_fwdbwd.json.gz", 0.016),
        ("kineto/a100_triton_cuda_driver.json.gz", 0.43),
    ],
)
def test_kernel_time_is_exact_where_rounding_to_microseconds_loses_it(
    name: str, lost: float, corpus: Path
) -> None:
    ours, exact, rounded = kernel_times(name)
    assert ours == exact
    assert 1 - rounded / exact == pytest.approx(lost, abs=0.001 + lost * 0.02)


def test_overlapping_kernels_are_kept_where_a_strict_stack_drops_them(corpus: Path) -> None:
    name = "kineto/b200_eager_pystacks_rank0_of8.json.gz"
    trace = tv.load(CORPUS / name)
    spans = trace.spans
    gpu = spans[spans["domain"] == "gpu"].sort_values(["start_ns", "dur_ns"], ascending=[True, False])
    # A trace processor that needs slices to nest drops one that begins inside another and ends after it.
    kept, kept_ns = 0, 0
    stack: list[int] = []
    for start, duration, kind in zip(gpu["start_ns"], gpu["dur_ns"], gpu["kind"], strict=True):
        end = start + duration
        while stack and stack[-1] <= start:
            stack.pop()
        if stack and end > stack[-1]:
            continue
        stack.append(end)
        if kind in ("kernel", "communication"):
            kept, kept_ns = kept + 1, kept_ns + duration
    kernels = gpu[gpu["kind"].isin(["kernel", "communication"])]
    assert len(kernels) == 768
    assert kept == 768 - 38
    assert round(kernels["dur_ns"].sum() / 1000) == 10863
    assert round(kept_ns / 1000) == 8821
    warned = {w.code: w.count for w in trace.meta["warnings"]}
    assert warned["overlap"] >= 38


def test_steps_number_host_and_device_work(corpus: Path) -> None:
    name = "kineto/a100_ddp_nccl_fwdbwd.json.gz"
    spans = tv.load(CORPUS / name).spans
    steps = spans[(spans["kind"] == "step") & (spans["domain"] == "host")]
    numbers = {
        int(n.rpartition("#")[2]): (s, s + d)
        for n, s, d in zip(steps["name"], steps["start_ns"], steps["dur_ns"], strict=True)
    }
    assert set(numbers) == {4, 5, 6}
    host = spans[(spans["domain"] == "host") & (spans["track"] == steps["track"].iloc[0])]
    for start, iteration in zip(host["start_ns"], host["iteration"], strict=True):
        inside = [n for n, (begin, end) in numbers.items() if begin <= start < end]
        assert iteration == inside[0] if inside else pd.isna(iteration)
    launched = {
        c: i
        for c, i, d in zip(spans["correlation"], spans["iteration"], spans["domain"], strict=True)
        if d == "host" and not pd.isna(c)
    }
    kernels = spans[(spans["domain"] == "gpu") & (spans["correlation"] >= 0)]
    assert (kernels["iteration"] == kernels["correlation"].map(launched)).all()
    assert kernels["iteration"].notna().all()


def test_environment_of_a_trace_goes_nowhere(tmp_path: Path) -> None:
    secret = "hf_notASecretButLooksLikeOne"
    path = tmp_path / "trace.json"
    path.write_text(
        json.dumps(
            {
                "schemaVersion": 1,
                "metadata": {"env": {"TOKEN": secret}},
                "TOKEN": secret,
                "traceEvents": [{"ph": "X", "name": "op", "ts": 1, "dur": 1, "pid": 1, "tid": 1}],
                "environment": [secret],
            }
        )
    )
    trace = tv.load(path)
    assert secret not in repr(trace.meta)
    assert "metadata" not in trace.meta
    assert math.isclose(len(trace.spans), 1)


def test_every_event_is_accounted_for(pair: Pair) -> None:
    """What is in the list is read or left out; what was read became rows (a walk over the raw list)."""
    if "/broken/" in pair.name:
        pytest.skip("its end is lost, so that nothing else can read it")
    opened = gzip.open if pair.name.endswith(".gz") else open
    with opened(CORPUS / pair.name, "rb") as stream:
        raw = json.load(stream)
    events = raw["traceEvents"] if isinstance(raw, dict) else raw
    phases = Counter(str(event.get("ph")) for event in events)
    accounting = pair.trace.meta["accounting"]
    left = sum(accounting["left_out"].values()) + sum(accounting["unread"].values())
    assert accounting["in_file"] == len(events) == accounting["read"] + left
    counted = accounting["events"]
    assert counted["complete"] + counted["left_out"] >= phases["X"]
    assert counted["metadata"] == phases["M"]
    assert counted["flows"] == phases["s"] + phases["t"] + phases["f"]
    assert accounting["rows"]["spans"] == len(pair.trace.spans)
    assert accounting["span_ns"] == int(pair.trace.spans["dur_ns"].sum())
    assert not [w for w in pair.trace.meta["warnings"] if w.code == "implausible_time"]
