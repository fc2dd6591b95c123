"""Mutated ETDumps: the loader gives a trace or a TraceFormatError, in bounded memory.

The coverage-guided harness is capture_ext/tests/fuzz/etdump.cpp; its first lines have the command for a long
run. TORCHTRT_VIZ_FUZZ_INPUTS makes the runs of this file longer; one that hangs runs into the limit of
every test (--timeout).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from etdump_writer import Scalar, allocation, debug, etdump, profile, run, tensor
from shared_files import SHARED

INPUTS = os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "500")

LOOP = """
import random, resource, sys
from pathlib import Path

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source

seeds = [Path(name).read_bytes() for name in sys.argv[3:]]
rng = random.Random(sys.argv[1])
NUMBERS = [0, 1, 4, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC]


def mutate(data):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 40])):
        if len(out) < 16:
            break
        at = rng.randrange(len(out))
        what = rng.randrange(6)
        if what == 0:
            out[at] = rng.randrange(256)
        elif what == 1:
            at &= ~3
            out[at : at + 4] = rng.choice(NUMBERS).to_bytes(4, "little")
        elif what == 2:
            at &= ~3
            value = int.from_bytes(out[at : at + 4], "little") + rng.choice([-8, -4, -1, 1, 4, 8, 64])
            out[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")
        elif what == 3:
            del out[at:]
        elif what == 4:
            other = rng.choice(seeds)
            begin = rng.randrange(len(other))
            piece = other[begin : begin + rng.randrange(1, 64)]
            out[at : at + len(piece)] = piece
        else:
            other = rng.randrange(len(out))
            out[at : at + 16], out[other : other + 16] = out[other : other + 16], out[at : at + 16]
    return bytes(out)


loaded = refused = 0
for _ in range(int(sys.argv[2])):
    data = mutate(rng.choice(seeds))
    try:
        trace = read_source(Source("fuzz.etdp", data=data), LoadOptions(), "etdump")
        rows = range(0, len(trace.spans), 1 + len(trace.spans) // 50)
        trace.args.read(rows)
        trace.instant_args.read(range(min(len(trace.instants), 50)))
        assert (trace.spans["dur_ns"] >= 0).all()
        loaded += 1
    except TraceFormatError as error:
        assert error.offset is not None, error
        refused += 1
print(loaded, refused)
"""


@pytest.fixture
def seeds(tmp_path: Path, request: pytest.FixtureRequest) -> list[str]:
    events = [
        profile("native_call_add.out", 10, 20, instruction=1),
        profile("OPERATOR_CALL", 9, 21, instruction=1),
        profile(None, 31, 32, identifier="torchtrt.enqueue_host", instruction=2),
        profile(None, 31, 32, number=4, instruction=2, metadata=b'{"name": "conv", "timing": "laid_out"}'),
        profile(
            None,
            30,
            33,
            identifier="torchtrt.delegate",
            instruction=2,
            metadata=b'{"method": "forward"}',
        ),
        profile("DELEGATE_CALL", 29, 34, instruction=2),
        debug({0: Scalar("<b", 5), 1: tensor(6, [2, 3], [3, 1], 64)}, instruction=1),
        allocation(1, 4096),
        profile("Method::execute", 1, 40, chain=-1, instruction=0),
    ]
    made = tmp_path / "made.etdp"
    made.write_bytes(etdump([run(events, allocators=["a"]), run(events[:4]), run([])]))
    paths = [str(made)]
    folder = SHARED / "corpus" / "etdump"
    if folder.is_dir():
        paths += [str(p) for p in sorted(folder.glob("*.etdp")) if 0 < p.stat().st_size < 70_000]
    return paths


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", ["one", "two"])
def test_mutated_dumps_load_or_are_refused(seeds: list[str], seed: str) -> None:
    done = subprocess.run([sys.executable, "-c", LOOP, seed, INPUTS, *seeds], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    loaded, refused = done.stdout.split()
    assert int(loaded) > 50
    assert int(refused) > 50


RECORDS = """
import random, sys
from pathlib import Path

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.etdump.etrecord import read_etrecord

rng = random.Random(5)
seed = Path(sys.argv[1]).read_bytes()
path = Path(sys.argv[2])
read = refused = 0
for _ in range(2_000):
    out = bytearray(seed)
    for _ in range(rng.choice([1, 2, 8, 30])):
        near_end = len(out) - rng.randrange(1, min(900, len(out)))
        at = rng.randrange(len(out)) if rng.random() < 0.5 else near_end
        if rng.random() < 0.5:
            out[at] = rng.randrange(256)
        else:
            out[at : at + 4] = rng.randrange(1 << 32).to_bytes(4, "little")
    path.write_bytes(bytes(out))
    try:
        read_etrecord(path)
        read += 1
    except TraceFormatError:
        refused += 1
print(read, refused)
"""


@pytest.mark.fuzz
def test_mutated_records_are_read_or_refused(tmp_path: Path) -> None:
    seed = tmp_path / "seed.etrecord"
    with zipfile.ZipFile(seed, "w") as archive:
        node = {"name": "a", "target": "x.ops.aten.add.Tensor", "metadata": {"debug_handle": "[1, 2]"}}
        graph = {"graph_module": {"graph": {"nodes": [node, node]}}}
        archive.writestr("ETRECORD_V0", "")
        archive.writestr("edge_dialect_exported_program/forward", json.dumps(graph))
        archive.writestr("debug_handle_map", '{"forward": {"0": [1, 2], "1": 2}}')
        delegates = {"forward": {"0": {"name": "X", "delegate_map": {"a": [1]}}}}
        archive.writestr("delegate_map", json.dumps(delegates), zipfile.ZIP_DEFLATED)
    done = subprocess.run(
        [sys.executable, "-c", RECORDS, str(seed), str(tmp_path / "mutated.etrecord")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    read, refused = map(int, done.stdout.split())
    assert read > 50
    assert refused > 50


@pytest.mark.fuzz
@pytest.mark.slow
def test_coverage_guided_for_a_short_while(root: Path, seeds: list[str], tmp_path: Path) -> None:
    compiler = shutil.which("clang++-14") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("clang++ with libFuzzer is not installed")
    source = root / "capture_ext"
    harness = tmp_path / "fuzz_etdump"
    build = subprocess.run(
        [
            compiler,
            *("-std=c++20", "-O1", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"),
            *("-I", str(source), str(source / "tests" / "fuzz" / "etdump.cpp")),
            *map(str, sorted((source / "formats" / "etdump").glob("*.cpp"))),
            *("-o", str(harness)),
        ],
        capture_output=True,
        text=True,
        timeout=200,
    )
    if build.returncode != 0 and "cannot find" in build.stderr and "libclang_rt" in build.stderr:
        pytest.skip("the compiler has no sanitizer runtime")
    assert build.returncode == 0, build.stderr[-3000:]
    corpus = tmp_path / "seeds"
    corpus.mkdir()
    for path in seeds:
        shutil.copy(path, corpus)
    found = tmp_path / "found"
    found.mkdir()
    done = subprocess.run(
        [
            str(harness),
            *("-runs=10000", "-max_len=65536", "-timeout=60", "-rss_limit_mb=1024"),
            f"-artifact_prefix={tmp_path}/",
            str(found),
            str(corpus),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done" in done.stderr
