"""What is written reads back as it was, whole or not at all, and holds nothing that was not asked for."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz._native import native
from torchtrt_viz.errors import OptionError
from torchtrt_viz.files import load
from torchtrt_viz.formats.perfetto.writer import write_perfetto
from torchtrt_viz.model import schema
from torchtrt_viz.trace import Trace

KEYS = ["track", "timing", "start_ns", "dur_ns", "depth", "name", "correlation", "iteration"]


def comparable(trace: Trace) -> pd.DataFrame:
    """Spans as plain values in an order of their own; a parent is its name and start."""
    spans = trace.spans
    frame = pd.DataFrame({name: spans[name].astype(object) for name in spans.columns})
    parent = spans["parent"].to_numpy()
    frame["parent"] = [
        None if p < 0 else (spans["name"].iloc[p], spans["start_ns"].iloc[p], spans["dur_ns"].iloc[p])
        for p in parent
    ]
    frame = frame.astype(object).where(frame.notna(), None)
    order = sorted(range(len(frame)), key=lambda i: [str(frame[k].iloc[i]) for k in KEYS])
    return frame.iloc[order].reset_index(drop=True)


def assert_equal(a: Trace, b: Trace) -> None:
    left, right = comparable(a), comparable(b)
    for name in left.columns:
        assert left[name].tolist() == right[name].tolist(), name
    for name in schema.TRACKS.names:
        ours = a.tracks[name].astype(object).where(a.tracks[name].notna(), None).tolist()
        assert ours == b.tracks[name].astype(object).where(b.tracks[name].notna(), None).tolist(), name
    for frame, keys in (
        ("counters", ["ts_ns", "value", "name", "unit", "track"]),
        ("instants", ["ts_ns", "name", "state"]),
    ):
        rows = [sorted(map(str, getattr(t, frame)[keys].astype(object).to_numpy().tolist())) for t in (a, b)]
        assert rows[0] == rows[1], frame
    assert a.meta["base_ns"] == b.meta["base_ns"]
    assert a.meta["clock"] == b.meta["clock"]


def random_trace(seed: int) -> Trace:
    rng = np.random.default_rng(seed)
    b = Builder()
    tracks = [
        b.track("main", process="10", thread="11", rank=3),
        b.track("main", process="10", thread="12", rank=3),
        b.track("no process"),
        b.stream(7),
        b.stream(7, device=1),
        b.track("engine", "engine", "gpu"),
        b.track("delegate calls", "delegate", process="10"),
    ]
    kinds = [k for k in schema.KINDS if k != "memory"]
    for i in range(300):
        at = int(rng.integers(-5_000, 20_000))
        b.span(
            f"name {int(rng.integers(40))}" + ('\x00\x1b"\\é中' if i % 50 == 0 else ""),
            at,
            int(rng.choice([0, 1, 5, 100, 2_000])),
            int(rng.choice(tracks)),
            str(rng.choice(kinds)),
            correlation=int(rng.choice([-1, -1, 7, 2**40, -5])),
            external_id=int(rng.choice([-1, 3])),
            iteration=int(rng.choice([-1, 0, 9])),
            run_id=str(rng.choice(["a", "b"])) if i % 3 == 0 else None,
            rank=3,
            timing="modeled" if i % 9 == 0 else "measured",
        )
    for i in range(30):
        b.span(f"sum {i}", None, i * 10, tracks[5], "layer", run_id="a", rank=3)
    for i in range(40):
        b.counter(
            f"c{i % 3}", i * 7 - 50, float(rng.normal()), int(rng.choice(tracks)), "W" if i % 3 else None
        )
        b.instant(f"i{i}", i * 11, int(rng.choice(tracks)))
    return b.build(base_ns=1_700_000_000_123_456_789 if seed % 2 else None, clock="a clock", rank=3)


@pytest.mark.parametrize("seed", range(8))
def test_round_trip(tmp_path, seed):
    trace = random_trace(seed)
    path = write_perfetto(trace, tmp_path / "t.pftrace")
    back = load(path)
    assert back.meta["format"] == "perfetto"
    assert back.meta["warnings"] == []
    assert back.meta["rank"] == 3
    assert_equal(trace, back)


ETDUMPS = ("cnn_xnnpack_debug", "mv2q_xnnpack", "two_prefill_decode", "noprefix", "probe_layers")
KINETO = ("a100_alexnet_cuda_sync", "mi250_rocm62_minitoy", "mi210_gpu_only")


@pytest.mark.parametrize(
    "name", [*(f"etdump/{n}.etdp" for n in ETDUMPS), *(f"kineto/{n}.json.gz" for n in KINETO)]
)
def test_round_trip_of_real_traces(tmp_path, corpus, name):
    """Trees that the file records, modeled times and overlapping kernels come back as they were."""
    trace = load(corpus / name)
    back = load(write_perfetto(trace, tmp_path / "t.pftrace"))
    assert back.meta["warnings"] == []
    keys = ["name", "kind", "domain", "timing", "track", "start_ns", "dur_ns", "self_ns", "depth"]
    keys += ["correlation", "external_id", "iteration", "rank"]
    rows = [sorted(map(str, t.spans[keys].astype(object).to_numpy().tolist())) for t in (trace, back)]
    assert rows[0] == rows[1]
    parents = []
    for t in (trace, back):
        of = t.spans["parent"].to_numpy()
        named = t.spans["name"].astype(object).to_numpy()
        parents.append(
            sorted((str(n), "" if p < 0 else str(named[p])) for n, p in zip(named, of, strict=True))
        )
    assert parents[0] == parents[1]


def test_unfinished_slices_come_back_as_such(tmp_path):
    b = Builder()
    host = b.track("main", thread="1")
    b.span("outer", 0, 100, host)
    trace = b.build()
    trace.instants = schema.INSTANTS.frame(
        {
            "name": ["open"],
            "kind": "operator",
            "domain": "host",
            "track": [host],
            "ts_ns": [10],
            "state": ["unfinished"],
        },
        1,
    )
    back = load(write_perfetto(trace, tmp_path / "t.pftrace"))
    assert list(back.spans["name"]) == ["outer"]
    assert list(back.spans["dur_ns"]) == [100]
    assert list(back.instants["state"]) == ["unfinished"]
    assert list(back.instants["track"]) == [0]


def test_flows_come_back(tmp_path):
    b = Builder()
    host, stream = b.track("main", thread="1"), b.stream(7)
    launches = [b.span(f"l{i}", 10 * i, 5, host) for i in range(4)]
    kernels = [b.span(f"k{i}", 10 * i + 3, 50, stream, "kernel") for i in range(4)]
    for launch, kernel in zip(launches, kernels, strict=True):
        b.flow("ac2g", launch, kernel)
    b.flow("one to many", launches[0], kernels[3])
    trace = b.build()
    back = load(write_perfetto(trace, tmp_path / "t.pftrace"))

    def pairs(t: Trace) -> list[tuple[str, str]]:
        names = list(t.spans["name"])
        return sorted((names[s], names[e]) for s, e in t.flows[["source", "target"]].to_numpy())

    assert pairs(back) == pairs(trace)


def test_arguments_are_written_only_when_asked(tmp_path):
    b = Builder()
    host = b.track("main", thread="1")
    engine = b.track("engine", "engine", "gpu")
    secret = "hf_SECRET_TOKEN"
    details = {"env": secret, "shape": [1, 2], "deep": {"a": 2**63, "b": None, "c": -1.5}, "np": np.int64(4)}
    b.span("op", 0, 10, host, args=details)
    b.span("layer", None, 10, engine, "layer", args={"note": secret})
    trace = b.build(environment={"TOKEN": secret}, sources=["/home/somebody/secret/t.json"])
    for name in ("t.pftrace", "t.json"):
        data = write_perfetto(trace, tmp_path / name).read_bytes()
        assert secret.encode() not in data
        assert b"somebody" not in data
        assert secret.encode() in write_perfetto(trace, tmp_path / name, args=True).read_bytes()
    back = load(write_perfetto(trace, tmp_path / "t.pftrace", args=True))
    assert back.args[0] == {
        "env": secret,
        "shape": [1, 2],
        "deep": {"a": 2**63, "b": "", "c": -1.5},
        "np": 4,
    }
    assert back.args[1] == {"note": secret}


def test_lanes_hold_spans_that_nest():
    rng = np.random.default_rng(0)
    track = rng.integers(0, 3, 500).astype(np.int32)
    start = rng.integers(0, 2_000, 500)
    dur = rng.integers(0, 300, 500)
    lanes = native("perfetto").assign_lanes(track, start, dur)
    for t in range(3):
        for lane in range(lanes[track == t].max() + 1):
            rows = np.flatnonzero((track == t) & (lanes == lane))
            for i in rows:
                for j in rows:
                    cut = start[i] < start[j] < start[i] + dur[i] < start[j] + dur[j]
                    assert not cut
    nested = native("perfetto").assign_lanes(
        np.zeros(3, np.int32), np.array([0, 10, 20], np.int64), np.array([100, 50, 5], np.int64)
    )
    assert list(nested) == [0, 0, 0]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t.pftrace"
    path.write_bytes(b"old")
    from torchtrt_viz.formats.perfetto import protobuf_writer as perfetto_protobuf

    def fail(*args: object, **options: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(perfetto_protobuf, "write_protobuf", fail)
    with pytest.raises(OSError, match="disk full"):
        write_perfetto(random_trace(0), path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["t.pftrace"]


def test_formats(tmp_path):
    trace = random_trace(1)
    json.loads(write_perfetto(trace, tmp_path / "a.json").read_text())
    json.loads(write_perfetto(trace, tmp_path / "a.bin", format="json").read_text())
    assert write_perfetto(trace, tmp_path / "b").read_bytes()[0] == 0x0A
    with pytest.raises(OptionError, match="protobuf, json"):
        write_perfetto(trace, tmp_path / "c", format="xml")
    trace.to_perfetto(tmp_path / "d.pftrace")
    assert (tmp_path / "d.pftrace").stat().st_size > 1000


def test_json_keeps_nanoseconds_and_says_what_is_not_drawn(tmp_path):
    trace = random_trace(1)
    document = json.loads(write_perfetto(trace, tmp_path / "a.json").read_text())
    events = [e for e in document["traceEvents"] if e["ph"] == "X"]
    placed = trace.spans[trace.spans["timing"] != "aggregate"]
    assert [round(e["ts"] * 1000) for e in events] == placed["start_ns"].tolist()
    assert [round(e["dur"] * 1000) for e in events] == placed["dur_ns"].tolist()
    assert [e["name"] for e in events] == list(placed["name"])
    said = document["otherData"]["not_on_the_time_axis"]
    assert len(said["records"]) == 30
    assert document["baseTimeNanoseconds"] == trace.meta["base_ns"]
    # overlapping spans of one track have thread ids of their own: Perfetto drops them otherwise
    busy: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for e in events:
        for begin, end in busy.setdefault((e["pid"], e["tid"]), []):
            assert not begin < e["ts"] < end < e["ts"] + e["dur"]
            assert not e["ts"] < begin < e["ts"] + e["dur"] < end
        busy[(e["pid"], e["tid"])].append((e["ts"], e["ts"] + e["dur"]))
    pids = {e["pid"] for e in events if e["cat"] == "kernel"}
    names = {e["pid"]: e["args"]["name"] for e in document["traceEvents"] if e["name"] == "process_name"}
    assert all("GPU" in names[pid] or "Host" in names[pid] for pid in pids)


def test_an_edited_metadata_block_is_not_believed(tmp_path):
    trace = random_trace(2)
    path = write_perfetto(trace, tmp_path / "t.pftrace")
    data = path.read_bytes()
    for old, new in (
        (b'"version":1', b'"version":9'),
        (b'"tracks":[{', b'"tracks":[9,'),
        (b'"dur_ns":10,', b'"dur_ns":-1,'),
    ):
        assert old in data
        path.write_bytes(data.replace(old, new, 1))
        back = load(path)
        # without it the trace is one of anybody's: slices are there, on tracks told by their descriptors
        assert len(back.spans) == (trace.spans["timing"] != "aggregate").sum()
        assert set(back.tracks["domain"]) == {"host", "gpu"}


def test_an_empty_trace(tmp_path):
    trace = Builder().build()
    back = load(write_perfetto(trace, tmp_path / "t.pftrace"))
    assert len(back.spans) == 0
    assert json.loads(write_perfetto(trace, tmp_path / "t.json").read_text())["traceEvents"] == []
