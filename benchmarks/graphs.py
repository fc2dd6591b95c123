"""What joining graphs with their captures costs: loading a replay alone, and with its captures.

    python benchmarks/graphs.py                  # 400 launches of 361 kernels, 8 captures, about a minute
    python benchmarks/graphs.py --steps 2000

Each reading runs in a process of its own. CPU seconds are user plus system of that process, after the
imports; medians over the runs, peak memory with the imports. The traces are synthetic
(`ingest/graph_pair.py`).
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "ingest"))

MEASURE = """
import json, resource, sys
import torchtrt_viz as tv, torchtrt_viz.graphs.join
folder, joined = sys.argv[1], sys.argv[2] == "joined"

def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

begin = cpu()
trace = tv.load(folder, graphs=None if joined else False)
if not joined and not isinstance(trace, tv.Trace):
    trace = trace.trace(what="trace")
loaded = cpu()
trace.operators()
end = cpu()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
graphs = trace.graphs()
counts = [int(graphs[name].sum()) for name in ("kernels", "exact")]
print("RESULT" + json.dumps([loaded - begin, end - loaded, peak, *counts]))
"""


def measure(folder: Path, how: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder), how], capture_output=True, text=True, check=True
    )
    found: list[float] = json.loads(done.stdout.partition("RESULT")[2])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=40)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    from graph_pair import generate

    with tempfile.TemporaryDirectory() as scratch:
        sizes = [8, 16, 24, 32, 40, 48, 56, 64]
        folder = generate(Path(scratch), layers=given.layers, steps=given.steps, sizes=sizes)
        stored = sum(path.stat().st_size for path in folder.glob("*.json")) / 1e6
        captured = sum(path.stat().st_size for path in (folder / "capture_traces").iterdir()) / 1e6
        print(f"{platform.machine()}, Python {platform.python_version()}")
        print(f"replay {stored:.1f} MB, {len(sizes)} captures {captured:.1f} MB (gzip)")
        medians = {}
        for how in ("alone", "joined"):
            runs = [measure(folder, how) for _ in range(given.rounds)]
            load, table, peak, kernels, exact = (
                statistics.median(column) for column in zip(*runs, strict=True)
            )
            medians[how] = load
            print(
                f"{how:>7}: load {load:.3f} s, operators {table:.3f} s, peak {peak:.0f} MB, "
                f"{exact:,.0f} of {kernels:,.0f} kernels matched"
            )
        print(f"joined / alone: {medians['joined'] / medians['alone']:.2f}")


if __name__ == "__main__":
    main()
