"""Mutated trees of Proton and pages of Nsight Compute: a trace or a TraceFormatError, nothing unaccounted.

TORCHTRT_VIZ_FUZZ_INPUTS makes the runs longer (20000 inputs take some ten minutes); one that hangs runs into
the limit of every test (--timeout).
"""

from __future__ import annotations

import json
import os
import random

import pytest
from ncu_pages import details, raw, said
from proton_trees import document, kernel, random_tree, scope

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.model.trace_data import TraceData

INPUTS = int(os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "60"))
WORDS = (b'"', b",", b"{", b"}", b"[", b"]", b"null", b"-1", b"1e400", b"NaN", b"\n", b"\xff", b"9" * 40)
WORDS += (b'"frame"', b'"metrics"', b'"children":', b'"time (ns)":', b'"count":', b"==ERROR== x\n", b"(1, 2")


def mutate(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 30])):
        at, what = rng.randrange(len(out)), rng.randrange(5)
        if what == 0:
            out[at] = rng.randrange(256)
        elif what == 1:
            out[at:at] = rng.choice(WORDS)
        elif what == 2:
            del out[at : at + rng.randrange(1, 40)]
            out = out or bytearray(b"[")
        elif what == 3:
            other = rng.randrange(len(out))
            out[at:at] = out[other : other + rng.randrange(200)]
        else:
            del out[max(at, 1) :]
    return bytes(out)


def check(data: bytes, format: str) -> bool:
    """Read, ask every table, and hold the accounting to its word; False for a refusal."""
    try:
        loaded = read_source(Source(f"fuzz.{format}", data=data), LoadOptions(), format)
    except TraceFormatError:
        return False
    assert isinstance(loaded, TraceData)
    trace = tv.Trace.of(loaded)
    found = trace.meta["accounting"]
    assert found["in_file"] == found["read"] + sum(found["left_out"].values())
    assert (trace.spans["dur_ns"] >= 0).all()
    summed = trace.kernels(by="operator")["total_ns"].sum()
    assert summed == trace.kernels()["total_ns"].sum() <= found["span_ns"]
    assert tv.analysis.call_tree(trace, value="gpu")["self_ns"].sum() == summed
    attrs = trace.operators().attrs
    assert trace.operators()["device_self_ns"].sum() + (attrs["device_unexplained_ns"] or 0) == summed
    trace.kernel_metrics()
    trace.args.read()
    return True


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", ["one", "two"])
def test_mutated_trees_of_proton(seed: str) -> None:
    rng = random.Random(seed)
    own = scope("__proton_launch_metadata", kernel("sum", 9))
    seeds = [document(scope("s", own, kernel("k", 10, 2, kernel("l", 5)))), document(random_tree(rng))]
    texts = [json.dumps(each, indent=indent).encode() for each in seeds for indent in (None, 1)]
    loaded = sum(check(mutate(rng, rng.choice(texts)), "proton") for _ in range(INPUTS))
    assert loaded


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", ["one", "two"])
def test_mutated_pages_of_nsight_compute(seed: str) -> None:
    rng = random.Random(seed)
    names = [("gpu__time_duration.sum", "ns"), ("dram__bytes.sum", "Mbyte")]
    texts = [
        raw(names, [(said(at, f"k{at}<4>(int)"), ["1,234", "5.5"]) for at in range(5)]).encode(),
        details(
            [(said(at, "k"), [("SOL", "Duration", "us", "2.5"), ("SOL", "x", "%", "")]) for at in range(3)]
        ).encode(),
    ]
    texts.append(b'==PROF== Profiling "k" - 0: 0%....100% - 3 passes\n' + texts[0])
    loaded = sum(check(mutate(rng, rng.choice(texts)), "ncu") for _ in range(INPUTS))
    assert loaded
