"""A million events of an ETDump become frames within the budget of memory (time: benchmarks/etdump.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from etdump_writer import profile, tiled

LOAD = """
import json, sys
import pandas
import torchtrt_viz as tv
trace = tv.load(sys.argv[1])
# not ru_maxrss, which a child process inherits from the one that started it
peak_kib = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
spans = trace.spans
print(json.dumps({
    "peak_mb": peak_kib / 1024,
    "spans": len(spans),
    "runs": int(spans["iteration"].max()) + 1,
    "self": int(spans["self_ns"].sum()),
    "methods": int(spans.loc[spans["kind"] == "method", "dur_ns"].sum()),
    "last": int(spans["start_ns"].max()),
}))
"""


def test_a_million_events(tmp_path: Path) -> None:
    events = []
    for instruction in range(6):
        at = 2_000 + 10_000 * instruction
        for part, name in enumerate(("torchtrt.input_binding", "torchtrt.enqueue_host")):
            begin = at + 101 + 4_000 * part
            events.append(profile(None, begin, begin + 3_001, identifier=name, instruction=instruction))
        events.append(
            profile(
                None,
                at + 57,
                at + 8_503,
                identifier="torchtrt.delegate",
                instruction=instruction,
                metadata=b'{"method":"forward","engine":"e","engine_runtime":"host"}',
            )
        )
        events.append(profile("DELEGATE_CALL", at, at + 9_001, instruction=instruction))
    events.append(profile("Method::execute", 1_000, 70_000, chain=-1, instruction=0))
    assert len(events) == 25
    path = tmp_path / "million.etdp"
    path.write_bytes(tiled(events, 40_000, 100_000))
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True, timeout=120
    )
    found = json.loads(done.stdout)
    assert found["spans"] == 1_000_000
    assert found["runs"] == 40_000
    assert found["methods"] == found["self"] == 40_000 * 69_000
    assert found["last"] == 39_999 * 100_000 + 2_000 + 50_000 + 101 + 4_000
    assert found["peak_mb"] < 600
