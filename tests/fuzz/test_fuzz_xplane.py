"""Mutated XPlanes: the loader gives a trace or a TraceFormatError, in bounded memory.

The coverage-guided harness is capture_ext/tests/fuzz/xplane.cpp; its first lines have the command for a long
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
from xplane_writer import Plane, xspace

INPUTS = os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "60")

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


def mutate(data):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 40])):
        at = rng.randrange(len(out))
        what = rng.randrange(5)
        if what == 0:
            out[at] = rng.randrange(256)
        elif what == 1:
            out[at : at + 1] = b"\\xff" * 9 + b"\\x01"
        elif what == 2:
            del out[at : at + rng.randrange(1, 9)]
            out = out or bytearray(b"\\x0a")
        elif what == 3:
            other = rng.randrange(len(out))
            out[at:at] = out[other : other + rng.randrange(60)]
        else:
            del out[max(at, 4) :]
    return bytes(out)


loaded = refused = 0
for _ in range(int(sys.argv[2])):
    data = mutate(rng.choice(seeds))
    try:
        trace = tv.Trace.of(read_source(Source("fuzz.xplane.pb", data=data), LoadOptions(), "xplane"))
        trace.args.read(range(0, len(trace.spans), 1 + len(trace.spans) // 50))
        trace.instant_args.read(range(min(len(trace.instants), 50)))
        trace.kernels(by=("operator", "module"))
        trace.operators()
        assert (trace.spans["dur_ns"] >= 0).all()
        found = trace.meta["accounting"]
        assert found["in_file"] == found["read"] + sum(found["left_out"].values())
        rows = sum(len(frame) for frame in (trace.instants, trace.counters))
        modeled = (trace.spans["kind"] == "operator") & (trace.spans["domain"] == "gpu")
        assert rows + len(trace.spans) - int(modeled.sum()) == found["read"]
        loaded += 1
    except TraceFormatError as error:
        assert error.offset is not None, error
        refused += 1
print(loaded, refused)
"""


def seeds() -> list[bytes]:
    """Return small files of every construct."""
    host = Plane("/host:CPU", stats={"process_id": 4})
    host.line(
        "python",
        [
            host.event("step", 0, 9_000_000, {"step_num": 1}),
            host.event("$a.py:1 f", 10_000, 5_000_000, {"_p": 5, "_pt": 2}),
            host.event("hipModuleLaunchKernel", 20_000, 1_000_000, {"correlation_id": 9}),
        ],
        timestamp_ns=50,
    )
    device = Plane("/device:GPU:0", stats={"core_count": 7, "clock": 2.5})
    device.kind("%while", "while", {"hlo_category": "while"})
    device.line(
        "Stream #1",
        [
            device.event(
                "k", 1_500_250, 900, {"correlation_id": 9, "name": "ref:jit(f)/a", "hlo_module": "m"}
            ),
            device.event(
                "k", 2_500_250, 900, {"kernel_details": "regs:3 grid:1,2,3 block:4,5,6", "hlo_op": "b"}
            ),
            device.event("MemcpyH2D", 4_000_000, 900, {"memcpy_details": "kind:H2D size:88", "blob": b"xyz"}),
        ],
        timestamp_ns=60,
    )
    core = Plane("/device:TPU:1")
    core.kind("%while", "while", {"hlo_category": "while"})
    core.line("XLA Ops", [core.event("%while", 0, 5_000), core.event("add", None, 700, occurrences=5)])
    core.line("_counters_", [core.event("power", 10, 0, {"counter_value": 1 << 63})])
    core.line("Steps", [core.event("1", 0, 5_000)])
    environment = Plane("Task Environment", stats={"profile_start_time": 10**18})
    return [
        xspace([host, device, environment], hosts=["vm"]),
        xspace([core, Plane("other").line("x", [core.event("%while", 0, 1)])], errors=["e"], warnings=["w"]),
    ]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", ["one", "two"])
def test_mutated_xplanes_load_or_are_refused(tmp_path: Path, seed: str) -> None:
    paths = []
    for number, content in enumerate(seeds()):
        paths.append(tmp_path / f"{number}.xplane.pb")
        paths[-1].write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", LOOP, seed, INPUTS, *map(str, paths)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    loaded, refused = map(int, done.stdout.split())
    assert loaded > 10
    assert loaded + refused == int(INPUTS)


@pytest.mark.fuzz
@pytest.mark.slow
def test_coverage_guided_for_a_short_while(root: Path, tmp_path: Path) -> None:
    compiler = shutil.which("clang++-14") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("clang++ with libFuzzer is not installed")
    source = root / "capture_ext"
    harness = tmp_path / "fuzz_xplane"
    build = subprocess.run(
        [
            compiler,
            *("-std=c++20", "-O1", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"),
            *("-I", str(source), str(source / "tests" / "fuzz" / "xplane.cpp")),
            *map(str, sorted((source / "formats" / "xplane").glob("*.cpp"))),
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
    corpus.mkdir()
    for number, seed in enumerate(seeds()):
        (corpus / f"{number}.xplane.pb").write_bytes(seed)
    found = tmp_path / "found"
    found.mkdir()
    done = subprocess.run(
        [
            str(harness),
            *("-runs=10000", "-max_len=65536", "-timeout=60", "-rss_limit_mb=1024"),
            f"-artifact_prefix={tmp_path}/",
            *(str(found), str(corpus)),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done" in done.stderr
