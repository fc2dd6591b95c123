"""Analyses of one Kineto trace after loading, this project and HolisticTraceAnalysis side by side.

    python benchmarks/ingest/generate.py trace.json --size 100MB
    python benchmarks/analysis.py trace.json --hta-python /path/to/python/with/hta [--rounds 3]

Each side loads the file once per round in a process of its own and times every analysis in CPU seconds
(user and system). Printed are medians over the rounds, the ratio of the analysis alone and of loading and
analysing together (from the file to the answer), and the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

OURS = """
import json, sys, time
import torchtrt_viz as tv
from torchtrt_viz import analysis as a
begin = time.process_time()
trace = tv.load(sys.argv[1])
out = {"load": time.process_time() - begin}
runs = {
    "temporal breakdown": lambda: a.temporal_breakdown(trace),
    "idle breakdown": lambda: a.idle_causes(trace),
    "overlap": lambda: a.overlap(trace),
    "kernel breakdown": lambda: (a.kernel_types(trace), a.kernels(trace)),
    "launch stats": lambda: a.launch_delays(trace),
    "queue length": lambda: a.queue_summary(trace),
    "copy bandwidth": lambda: a.copy_bandwidth(trace),
    "operators": lambda: trace.operators(),
    "operators by shape": lambda: trace.operators(by="shape"),
    "operator roofline": lambda: a.operator_roofline(trace),
    "call tree": lambda: a.call_tree(trace),
    "critical path": lambda: a.critical_path(trace),
    "memory": lambda: a.memory_peaks(trace),
    "variability": lambda: a.variability(trace),
    "host and gpu": lambda: trace.host_gpu(),
    "questions": lambda: trace.questions(),
    "explain": lambda: trace.explain(),
}
for name, run in runs.items():
    begin = time.process_time()
    run()
    out[name] = time.process_time() - begin
print(json.dumps(out))
"""

HTA = """
import json, logging, sys, time, warnings
logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")
from hta.trace_analysis import TraceAnalysis
begin = time.process_time()
trace = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/")
out = {"load": time.process_time() - begin}
runs = {
    "temporal breakdown": lambda: trace.get_temporal_breakdown(visualize=False),
    "idle breakdown": lambda: trace.get_idle_time_breakdown(ranks=[0], visualize=False),
    "overlap": lambda: trace.get_comm_comp_overlap(visualize=False),
    "kernel breakdown": lambda: trace.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True),
    "launch stats": lambda: trace.get_cuda_kernel_launch_stats(ranks=[0], visualize=False),
    "queue length": lambda: trace.get_queue_length_summary([0]),
    "copy bandwidth": lambda: trace.get_memory_bw_time_series([0]),
}
for name, run in runs.items():
    begin = time.process_time()
    try:
        run()
    except Exception as error:
        print(f"{name}: {error!r}", file=sys.stderr)
        continue
    out[name] = time.process_time() - begin
print(json.dumps(out))
"""


def _run(python: str, code: str, trace: Path, path: str) -> dict[str, float]:
    done = subprocess.run(
        [python, "-c", code, str(trace)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", type=Path)
    parser.add_argument(
        "--hta-python", help="a Python that has HolisticTraceAnalysis and pandas 2 (it fails with pandas 3)"
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    root = str(Path(__file__).resolve().parents[1])
    trace = options.trace.resolve()
    ours: list[dict[str, float]] = []
    peer: list[dict[str, float]] = []
    for _ in range(options.rounds):
        ours.append(_run(sys.executable, OURS, trace, root))
        if options.hta_python:
            peer.append(_run(options.hta_python, HTA, trace, ""))
    print(
        f"{trace.name}: {trace.stat().st_size / 1e6:.0f} MB, {options.rounds} rounds, medians of CPU seconds"
    )
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"{'':22} {'torchtrt_viz':>12} {'HTA':>9} {'ratio':>8} {'with loading':>13}")
    load = statistics.median(found["load"] for found in ours)
    peer_load = statistics.median(found["load"] for found in peer) if peer else 0.0
    for name in ours[0]:
        mine = statistics.median(found[name] for found in ours)
        theirs = [found[name] for found in peer if name in found]
        if not theirs:
            print(f"{name:22} {mine:12.3f}")
            continue
        other = statistics.median(theirs)
        whole = "" if name == "load" else f"{(peer_load + other) / (load + mine):12.0f}x"
        print(f"{name:22} {mine:12.3f} {other:9.2f} {other / mine:7.0f}x {whole}")


if __name__ == "__main__":
    main()
