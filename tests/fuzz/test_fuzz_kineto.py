"""Mutated trace-event files: never a crash, never a hang, never more memory than the input accounts for."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from native_build import simdjson_sources
from trace_events import complete, decode

import torchtrt_viz as tv
from torchtrt_viz import TraceFormatError
from torchtrt_viz.trace import Trace

INPUTS = int(os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "1500"))
# Where an event is damaged, how much can be told of it depends on what is at hand of the text behind it.
DAMAGE = {"damaged_event", "lost_event", "not_an_event", "truncated", "damaged_header", "missing_comma"}
PIECES = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\x00",
    b"\x01",
    b"\xff",
    b"\xed\xa0\x80",
    b"NaN",
    b"-inf",
    b"null",
    b"1e999999999",
    b"99999999999999999999999",
    b"\\ud83d",
    b'"traceEvents":[',
    b'},{"ph":"X"',
    b'{"ph":"B","ts":1}',
    b'{"ph":"E","ts":0}',
    b'{"ph":"b","id":1,"ts":1}',
    b'"args":{"correlation":-9223372036854775808}',
    b"[" * 300,
    b"\xef\xbb\xbf",
]


def seeds(cases: Path, corpus: Path) -> list[bytes]:
    """Hard cases, and the beginnings of real files of several writers."""
    out = [
        path.read_bytes() for path in sorted(cases.rglob("kineto*/*.json")) if path.stat().st_size < 10_000
    ]
    for path in sorted((corpus / "kineto").glob("*.gz")):
        with gzip.open(path) as stream:
            out.append(stream.read(6000))
    out.append(
        json.dumps(
            {"traceEvents": [complete(f"n{i}", i, 3, args={"External id": i}) for i in range(20)]}
        ).encode()
    )
    return out


def mutated(random_: random.Random, content: bytes) -> bytes:
    out = bytearray(content)
    for _ in range(random_.randint(1, 6)):
        at = random_.randint(0, len(out))
        match random_.randint(0, 4):
            case 0:
                out[at:at] = random_.choice(PIECES)
            case 1:
                del out[at : at + random_.randint(1, 40)]
            case 2 if out:
                out[at % len(out)] = random_.randrange(256)
            case 3:
                end = at + random_.randint(1, 200)
                out[at:at] = out[at:end] * random_.randint(1, 3)
            case _:
                del out[at:]
    return bytes(out)


def check(trace: Trace) -> None:
    """Invariants that hold for every input."""
    spans, flows = trace.spans, trace.flows
    n = len(spans)
    assert (spans["dur_ns"] >= 0).all()
    assert (spans["self_ns"] >= 0).all()
    assert (spans["self_ns"] <= spans["dur_ns"]).all()
    assert ((spans["parent"] >= -1) & (spans["parent"] < n)).all()
    assert ((spans["track"] >= 0) & (spans["track"] < len(trace.tracks))).all()
    assert (
        (flows["source"] >= -1) & (flows["source"] < n) & (flows["target"] >= -1) & (flows["target"] < n)
    ).all()
    assert len(trace.args.read()) == n
    assert len(trace.instant_args.read()) == len(trace.instants)


@pytest.mark.fuzz
def test_mutations(cases: Path, corpus: Path, tmp_path: Path) -> None:
    random_ = random.Random(20)
    pool = seeds(cases, corpus)
    path = tmp_path / "input.json"
    for _ in range(INPUTS):
        content = mutated(random_, random_.choice(pool))
        path.write_bytes(content)
        try:
            trace = tv.load(path, format="kineto")
        except TraceFormatError:
            continue
        assert isinstance(trace, Trace)
        check(trace)
        small = decode(content, window=random_.choice([64, 100, 1000]), block=random_.choice([1, 50, 4096]))
        if not DAMAGE & (small["notes"].keys() | decode(content)["notes"].keys()):
            assert small["spans"]["start_ns"].tolist() == trace.spans["start_ns"].tolist(), content


@pytest.mark.fuzz
@pytest.mark.slow
def test_coverage_guided_with_sanitizers(root: Path, cases: Path, corpus: Path, tmp_path: Path) -> None:
    """The harness of capture_ext/tests/fuzz/kineto.cpp, whose head has the command for a long run."""
    compiler = shutil.which("clang++-14") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no clang++ for libFuzzer")
    room = root / "capture_ext"
    program = tmp_path / "fuzz_kineto"
    sources = [
        room / "tests/fuzz/kineto.cpp",
        *(room / "formats/kineto").glob("*.cpp"),
        *(room / "formats/io").glob("*.cpp"),
        room / "columns/nesting.cpp",
    ]
    flags = ["-std=c++20", "-O1", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    built = subprocess.run(
        [compiler, *flags, f"-I{room}", *map(str, sources), *simdjson_sources(), "-o", str(program)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert built.returncode == 0, built.stderr[-3000:]
    folder = tmp_path / "seeds"
    folder.mkdir()
    for i, content in enumerate(seeds(cases, corpus)):
        (folder / str(i)).write_bytes(bytes([32, 64]) + content)
    limits = ["-max_len=20000", "-timeout=60", "-rss_limit_mb=1024", "-runs=10000"]
    run = subprocess.run(
        [str(program), *limits, f"-dict={room}/tests/fuzz/kineto.dict", str(folder)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr[-3000:]
