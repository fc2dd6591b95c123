"""ETDump into frames: `torchtrt_viz.load` beside executorch's own Inspector, on the same files.

    python benchmarks/etdump.py                      # 10^4 and 10^5 events, about a minute
    python benchmarks/etdump.py --events 1000000     # Inspector alone takes two minutes and 2.2 GB

Each reading runs in a process of its own. CPU seconds are user plus system of that process and of what it
starts (Inspector runs flatc), without its imports; medians over the runs, the ratio is of those. Peak memory
is of the largest process, imports included. The files are synthetic: a program of three TensorRTBackend
calls with phases and layers and two kernels, the same run repeated, written by
tests/support/etdump_writer.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

MEASURE = """
import json, logging, resource, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
path = sys.argv[1]
{imports}

def cpu():
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in both)

begin = cpu()
{read}
end = cpu()
peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print("RESULT" + json.dumps([end - begin, begin, peak / 1024, rows]))
"""

READERS = {
    "torchtrt_viz": ("import pandas, torchtrt_viz", "rows = len(torchtrt_viz.load(path).spans)"),
    "Inspector": (
        "from executorch.devtools import Inspector",
        "inspector = Inspector(etdump_path=path)\n"
        "frame = inspector.to_dataframe()\n"
        "rows = sum(len(e.perf_data.raw) for b in inspector.event_blocks for e in b.events)",
    ),
}


def one_run() -> list[object]:
    """Return the events of one execution, as a program with three engines and two kernels logs them."""
    from etdump_writer import Table, profile

    events: list[object] = []
    at = 10_000
    for instruction in range(5):
        begin = at
        if instruction % 2:
            events.append(profile("native_call_add.out", begin, begin + 5_003, instruction=instruction))
            events.append(profile("OPERATOR_CALL", begin - 100, begin + 5_303, instruction=instruction))
            at += 7_000
            continue

        def log(name: str, start: int, end: int, facts: dict[str, object] | None = None) -> Table:
            metadata = None if facts is None else json.dumps(facts).encode()
            return profile(None, start, end, identifier=name, instruction=instruction, metadata=metadata)  # noqa: B023

        for name, length in (("input_binding", 5_013), ("shape_inference", 3_007), ("output_binding", 4_011)):
            events.append(log(f"torchtrt.{name}", at, at + length))
            at += length + 97
        enqueue = at
        for layer in range(3):
            facts = {"name": f"conv_{layer}", "op": "conv2d", "timing": "measured", "domain": "host"}
            events.append(log(f"layer_{layer:04}", at + 51, at + 951, facts))
            at += 1_003
        events.append(log("torchtrt.enqueue_host", enqueue, at))
        facts = {
            "schema": 1,
            "method": "forward",
            "engine": f"1f_forward_{instruction}",
            "engine_runtime": "host",
        }
        events.append(log("torchtrt.delegate", begin - 100, at + 100, {**facts, "call": 0}))
        events.append(profile("DELEGATE_CALL", begin - 200, at + 200, instruction=instruction))
        at += 1_000
    events.append(profile("Method::execute", 5_000, at, chain=-1, instruction=0))
    return events


def write(path: Path, events: int) -> int:
    """Write a dump of about ``events`` events; return how many."""
    from etdump_writer import tiled

    run = one_run()
    runs = max(1, round(events / len(run)))
    path.write_bytes(tiled(run, runs, 200_000))  # type: ignore[arg-type]
    return runs * len(run)


def measure(reader: str, path: Path) -> tuple[float, float, float, int]:
    """Return CPU seconds of reading, CPU seconds of imports, peak MB, events read."""
    imports, read = READERS[reader]
    code = MEASURE.format(imports=imports, read=read)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, cwd=path.parent
    )
    if done.returncode:
        raise SystemExit(f"{reader} failed on {path}:\n{done.stderr[-2000:]}")
    reading, importing, peak, rows = json.loads(done.stdout.split("RESULT", 1)[1])
    return reading, importing, peak, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--events", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--runs", type=int, default=5, help="runs of torchtrt_viz (Inspector: up to 3)")
    parser.add_argument("--alone", action="store_true", help="leave Inspector out")
    options = parser.parse_args()
    peers = ["torchtrt_viz"]
    if not options.alone and find_spec("executorch") is not None:
        peers.append("Inspector")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{'events':>9} {'MB':>7} {'reader':<13} {'CPU s':>8} {'imports':>8} {'peak MB':>8} {'read':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for events in options.events:
            path = Path(folder) / f"{events}.etdp"
            written = write(path, events)
            medians = {}
            for reader in peers:
                runs = (
                    options.runs
                    if reader == "torchtrt_viz"
                    else min(3, options.runs, max(1, 300_000 // events))
                )
                found = [measure(reader, path) for _ in range(runs)]
                medians[reader] = statistics.median(run[0] for run in found)
                importing = statistics.median(run[1] for run in found)
                peak = max(run[2] for run in found)
                print(
                    f"{written:>9} {path.stat().st_size / 1e6:>7.1f} {reader:<13} {medians[reader]:>8.3f} "
                    f"{importing:>8.2f} {peak:>8.0f} {found[0][3]:>9}",
                    flush=True,
                )
            if len(medians) == 2:
                print(f"{'':>17} ratio {medians['Inspector'] / medians['torchtrt_viz']:.0f}", flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
