"""Mutated databases: the loader gives a trace or a TraceFormatError, in bounded memory.

The coverage-guided harness is capture_ext/tests/fuzz/sqlite.cpp; its first lines have the command for a long
run. TORCHTRT_VIZ_FUZZ_INPUTS makes the runs of this file longer; one that hangs runs into the limit of every
test (--timeout).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nsys_writer import AGES, two_processes
from sqlite_databases import seeds

INPUTS = os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "300")

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
WORDS = [0, 1, 2, 5, 13, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF]


def mutate(data):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 40])):
        at = rng.randrange(len(out))
        what = rng.randrange(6)
        if what == 0:
            out[at] = rng.randrange(256)
        elif what == 1:
            out[at : at + 4] = rng.choice(WORDS).to_bytes(4, "big")
        elif what == 2:
            out[at : at + 9] = b"\\xff" * 9
        elif what == 3 and len(out) > 1000:
            del out[at:]
            out += bytes(max(0, 100 - len(out)))
        elif what == 4:
            page = 512 * rng.randrange(len(out) // 512 or 1)
            other = 512 * rng.randrange(len(out) // 512 or 1)
            out[page : page + 512] = out[other : other + 512]
        else:
            page = 512 * rng.randrange(len(out) // 512 or 1)
            out[page + rng.randrange(16) : page + 16] = rng.randbytes(2)
    return bytes(out)


loaded = refused = 0
for _ in range(int(sys.argv[2])):
    data = mutate(rng.choice(seeds))
    try:
        trace = tv.Trace.of(read_source(Source("fuzz.sqlite", data=data), LoadOptions(), "nsys"))
        rows = range(0, len(trace.spans), 1 + len(trace.spans) // 50)
        trace.args.read(rows)
        trace.instant_args.read(range(min(len(trace.instants), 50)))
        trace.kernels()
        trace.nvtx()
        assert (trace.spans["dur_ns"] >= 0).all()
        found = trace.meta["accounting"]
        others = sum(found["left_out"].values()) + sum(found["unread"].values())
        assert found["in_file"] == found["read"] + others
        loaded += 1
    except TraceFormatError as error:
        assert error.offset is not None, error
        refused += 1
print(loaded, refused)
"""


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", ["one", "two"])
def test_mutated_exports_load_or_are_refused(tmp_path: Path, seed: str) -> None:
    paths = [
        str(two_processes(age, pids=range(100, 106)).write(tmp_path / f"{age}.sqlite", page_size=512))
        for age in AGES
    ]
    done = subprocess.run([sys.executable, "-c", LOOP, seed, INPUTS, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    loaded, refused = map(int, done.stdout.split())
    assert loaded > 50
    assert refused > 5


@pytest.mark.fuzz
@pytest.mark.slow
def test_coverage_guided_for_a_short_while(root: Path, tmp_path: Path) -> None:
    compiler = shutil.which("clang++-14") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("clang++ with libFuzzer is not installed")
    source = root / "capture_ext"
    harness = tmp_path / "fuzz_sqlite"
    build = subprocess.run(
        [
            compiler,
            *("-std=c++20", "-O1", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"),
            *("-I", str(source), str(source / "tests" / "fuzz" / "sqlite.cpp")),
            *map(str, sorted((source / "formats" / "sqlite").glob("*.cpp"))),
            *(str(source / "formats" / "io" / "interner.cpp"), "-o", str(harness)),
        ],
        capture_output=True,
        text=True,
        timeout=200,
    )
    if build.returncode != 0 and "cannot find" in build.stderr and "libclang_rt" in build.stderr:
        pytest.skip("the compiler has no sanitizer runtime")
    assert build.returncode == 0, build.stderr[-3000:]
    corpus = tmp_path / "seeds"
    seeds(corpus)
    two_processes().write(corpus / "export.sqlite", page_size=512)
    found = tmp_path / "found"
    found.mkdir()
    done = subprocess.run(
        [
            str(harness),
            *("-runs=10000", "-max_len=65536", "-timeout=60", "-rss_limit_mb=1024"),
            *(f"-dict={source}/tests/fuzz/sqlite.dict", f"-artifact_prefix={tmp_path}/"),
            *(str(found), str(corpus)),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done" in done.stderr
