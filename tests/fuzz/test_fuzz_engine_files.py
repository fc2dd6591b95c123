"""Mutated files about engines: the loaders give a trace or a TraceFormatError, in bounded memory.

``TORCHTRT_VIZ_FUZZ_INPUTS=100000 python -m pytest tests/fuzz/test_fuzz_engine_files.py`` tries as many inputs
per seed and reports what it did with ``-s``; one that hangs runs into the limit of every test
(``--timeout``). The coverage-guided harness of the native reader is capture_ext/tests/fuzz/engine.cpp; its
first lines have the command for a long run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from native_build import simdjson_sources

INPUTS = os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "250")

LOOP = """
import random, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.file_set import group_sets, is_set_member, read_set
from torchtrt_viz.formats.engine.parts import read_parts
from torchtrt_viz.formats.engine.trace import trace_of_parts
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source

rng = random.Random(sys.argv[1])
seeds = [(Path(name).name, Path(name).read_bytes()) for name in sys.argv[3:]]
kinds = ["graph", "profile", "engine_trace", "readings", "timing", "metadata", "device", "phase", "log", None]
PIECES = [
    b'"', b"\\\\", b"{", b"}", b"[", b"]", b",", b":", b"-nan", b"1e999", b"null", b"-1", b"9" * 20,
    b"{}", b"[]", b"\\x1e", b"\\xff", b"\\xef\\xbb\\xbf", b'"Layers":', b'"Name":', b'"timeMs":',
    b'"count":', b"\\x00", b"PWN(", b"{ForeignNode[", b" + ", b"_myl1_2", b"\\n",
    b"=== Profile (3 iterations ) ===\\n", b"[profile 3]",
    b'"args": {"call": 1, "engine_id": "e", "layer": "a"}', b'"Dimensions": [1, -1]', b"true",
    b"/a/b/c", b"\\\\ud800",
]


def mutate(data):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(out) + 1)
        what = rng.randrange(6)
        if what == 0 and out:
            out[min(at, len(out) - 1)] = rng.randrange(256)
        elif what == 1:
            out[at:at] = rng.choice(PIECES)
        elif what == 2:
            del out[at : at + rng.randrange(1, 40)]
        elif what == 3:
            del out[at:]
        elif what == 4:
            other = rng.choice(seeds)[1]
            begin = rng.randrange(len(other) + 1)
            out[at:at] = other[begin : begin + rng.randrange(1, 200)]
        else:
            out[at:at] = rng.choice(PIECES) * rng.choice([2, 10, 500])
    return bytes(out)


def check(trace):
    assert (trace.spans["dur_ns"] >= 0).all()
    rows = range(min(len(trace.spans), 20))
    trace.args.read(rows)
    for engine in trace.meta["engines"]:
        layers = engine.layers
        assert layers["span"].max() < len(trace.spans) if len(layers) else True
        share = layers["percentage"].sum()
        assert layers["percentage"].isna().all() or abs(float(share) - 100) < 1e-6, share
        for column in ("in_bytes", "out_bytes", "weights_bytes"):
            assert (layers[column].dropna() >= 0).all()
        engine.sums()
        engine.modules()
        repr(engine)


loaded = refused = 0
for _ in range(int(sys.argv[2])):
    try:
        if rng.random() < 0.7:
            name, data = rng.choice(seeds)
            source = Source(name, data=mutate(data))
            options = LoadOptions()
            check(trace_of_parts(read_parts(source, options, rng.choice(kinds)), options, [name]))
        else:
            picked = [rng.choice(seeds) for _ in range(rng.randrange(1, 5))]
            sources = [Source(f"set/{i}_{name}", data=mutate(data)) for i, (name, data) in enumerate(picked)]
            members = [s for s in sources if is_set_member(s)]
            for group in group_sets(members).values():
                check(read_set(group, LoadOptions()))
        loaded += 1
    except TraceFormatError as error:
        assert error.path and str(error), error
        refused += 1
print(loaded, refused)
"""


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", ["one", "two"])
def test_mutated_files_load_or_are_refused(cases: Path, corpus: Path, seed: str) -> None:
    seeds = [str(p) for p in sorted((cases / "trex").iterdir()) if p.stat().st_size < 20_000]
    logs = corpus / "trex" / "nvidia_cookbook"
    run = next((corpus / "trex" / "fuzzylabs_torchtrt_traces").glob("alexnet/*/iter_0"))
    seeds += [str(p) for folder in (logs, run) for p in sorted(folder.iterdir()) if p.stat().st_size < 25_000]
    done = subprocess.run(
        [sys.executable, "-c", LOOP, seed, INPUTS, *seeds],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    loaded, refused = done.stdout.split()
    print(f"{loaded} loaded, {refused} refused")
    assert int(loaded) > 20
    assert int(refused) > 5


@pytest.mark.fuzz
@pytest.mark.slow
def test_coverage_guided_for_a_short_while(root: Path, cases: Path, tmp_path: Path) -> None:
    compiler = shutil.which("clang++-14") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("clang++ with libFuzzer is not installed")
    source, harness = root / "capture_ext", tmp_path / "fuzz_engine"
    flags = ["-std=c++20", "-O1", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    files = [
        source / "tests" / "fuzz" / "engine.cpp",
        *sorted((source / "formats" / "engine").glob("*.cpp")),
        *sorted((source / "formats" / "io").glob("*.cpp")),
    ]
    build = subprocess.run(
        [compiler, *flags, "-I", str(source), *map(str, files), *simdjson_sources(), "-o", str(harness)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    if build.returncode != 0 and "libclang_rt" in build.stderr:
        pytest.skip("the compiler has no sanitizer runtime")
    assert build.returncode == 0, build.stderr[-3000:]
    seeds, found = tmp_path / "seeds", tmp_path / "found"
    seeds.mkdir()
    found.mkdir()
    for path in (cases / "trex").glob("*.graph.json"):
        if path.stat().st_size < 20_000:
            shutil.copy(path, seeds)
    limits = [
        "-runs=10000",
        "-max_len=8192",
        "-timeout=60",
        "-rss_limit_mb=1024",
        "-print_final_stats=1",
    ]
    done = subprocess.run(
        [str(harness), *limits, f"-artifact_prefix={tmp_path}/", str(found), str(seeds)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    executed = next(line for line in done.stderr.splitlines() if "number_of_executed_units" in line)
    assert int(executed.split()[-1]) > 1000
