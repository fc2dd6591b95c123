"""Mutated Perfetto traces: the loader gives a trace or a TraceFormatError, in bounded memory.

The coverage-guided harness is capture_ext/tests/fuzz/perfetto.cpp; its first lines have the command for a
long run. TORCHTRT_VIZ_FUZZ_INPUTS makes the runs of this file longer; one that hangs runs
into the limit of every test (--timeout).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

INPUTS = os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "400")

LOOP = """
import random, resource, sys
sys.path.insert(0, sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
from perfetto_seeds import seeds
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source

rng = random.Random(sys.argv[1])
seeds = list(seeds().values())
EDGES = [0, 1, 2, 5, 6, 8, 0x0A, 0x12, 0x40, 0x5A, 0x62, 0x7F, 0x80, 0xFF]


def mutate(data):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        if len(out) < 4:
            break
        at = rng.randrange(len(out))
        what = rng.randrange(6)
        if what == 0:
            out[at] = rng.randrange(256)
        elif what == 1:
            out[at] = rng.choice(EDGES)
        elif what == 2:
            out[at:at] = bytes([0xFF] * rng.randrange(1, 11))
        elif what == 3:
            del out[at : at + rng.randrange(1, 20)]
        elif what == 4:
            other = rng.choice(seeds)
            begin = rng.randrange(len(other))
            out[at:at] = other[begin : begin + rng.randrange(1, 80)]
        else:
            out += rng.choice(seeds)
    return bytes(out)


loaded = refused = 0
for _ in range(int(sys.argv[3])):
    data = mutate(rng.choice(seeds))
    try:
        trace = read_source(Source("fuzz.pftrace", data=data), LoadOptions(), "perfetto")
        trace.args.read()
        trace.instant_args.read()
        assert (trace.spans["dur_ns"] >= 0).all()
        assert trace.spans["track"].between(0, max(len(trace.tracks) - 1, 0)).all()
        assert not trace.spans["name"].isna().any()
        counted = trace.meta["accounting"]
        others = sum(counted["left_out"].values()) + sum(counted["unread"].values())
        assert counted["in_file"] == counted["read"] + others == trace.meta["packets"]
        assert len(trace.spans) + len(trace.instants) + len(trace.counters) or trace.meta["warnings"]
        loaded += 1
    except TraceFormatError as error:
        assert error.offset is not None, error
        refused += 1
print(loaded, refused)
"""


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", ["one", "two"])
def test_mutated_traces_load_or_are_refused(seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOP, seed, str(Path(__file__).parent), INPUTS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    loaded, refused = done.stdout.split()
    assert int(loaded) > 20
    assert int(refused) + int(loaded) > 50


@pytest.mark.fuzz
@pytest.mark.slow
def test_coverage_guided_for_a_short_while(root: Path, tmp_path: Path) -> None:
    compiler = shutil.which("clang++-14") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("clang++ with libFuzzer is not installed")
    source = root / "capture_ext"
    harness = tmp_path / "fuzz_perfetto"
    flags = ["-std=c++20", "-O1", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    files = [
        source / "tests" / "fuzz" / "perfetto.cpp",
        *sorted((source / "formats" / "perfetto").glob("*.cpp")),
        *sorted((source / "formats" / "io").glob("*.cpp")),
    ]
    build = subprocess.run(
        [compiler, *flags, "-I", str(source), *map(str, files), "-o", str(harness)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    if build.returncode != 0 and "cannot find" in build.stderr and "libclang_rt" in build.stderr:
        pytest.skip("the compiler has no sanitizer runtime")
    assert build.returncode == 0, build.stderr[-3000:]
    seeds, found = tmp_path / "seeds", tmp_path / "found"
    subprocess.run(
        [sys.executable, str(Path(__file__).with_name("perfetto_seeds.py")), str(seeds)], check=True
    )
    found.mkdir()
    limits = [
        "-runs=10000",
        "-max_len=8192",
        "-timeout=60",
        "-rss_limit_mb=1024",
        "-print_final_stats=1",
        f"-dict={source}/tests/fuzz/perfetto.dict",
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
