"""Analyses of one Kineto trace: this package, HolisticTraceAnalysis and TraceLens side by side.

    python benchmarks/analysis.py [TRACE] [--size 100MB] [--peers-python PYTHON ...] [--rounds 3]

Without a trace one of ``--size`` is generated. The peers need environments of their own (pandas 2): name
their interpreters, or one in TORCHTRT_VIZ_PEERS_PYTHON; ``tests/support/peer_hta.py`` and
``peer_tracelens.py`` say how they are made. Everything runs in processes of its own, one after another, in
rounds. All times are CPU seconds (user and system), medians over the rounds; imports happen before the clock
starts.

- *alone*: the analysis after loading. Ours is the first call on a trace just loaded, of which nothing is
  kept; *again* is a second call. A peer's is the faster of two calls.
- *to answer*: from the file to the answer, loading and analysing together.

Peers are ended, with the reason, beyond ``--seconds`` or ``--memory``.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import apart

HERE = Path(__file__).resolve()

OURS = """
import json, sys, time
import pandas, numpy
import torchtrt_viz as tv
import torchtrt_viz.formats.kineto.reader
from torchtrt_viz import analysis as a
runs = {
    "temporal breakdown": lambda t: a.temporal_breakdown(t),
    "idle breakdown": lambda t: a.idle_causes(t),
    "overlap": lambda t: a.overlap(t),
    "kernel breakdown": lambda t: (a.kernel_types(t), a.kernels(t)),
    "launch stats": lambda t: a.launch_delays(t),
    "queue length": lambda t: a.queue_summary(t),
    "copy bandwidth": lambda t: a.copy_bandwidth(t),
    "operators": lambda t: t.operators(),
    "operators by shape": lambda t: t.operators(by="shape"),
    "collectives": lambda t: a.collectives(t),
    "operator roofline": lambda t: a.operator_roofline(t),
    "call tree": lambda t: a.call_tree(t),
    "critical path": lambda t: a.critical_path(t),
    "memory": lambda t: a.memory_peaks(t),
    "variability": lambda t: a.variability(t),
    "host and gpu": lambda t: t.host_gpu(),
    "questions": lambda t: t.questions(),
    "explain": lambda t: t.explain(),
}
trace = tv.load(sys.argv[1])
for run in runs.values():  # imports of what each needs
    run(trace)
loads, out = [], {}
for name, run in runs.items():
    begin = time.process_time()
    trace = tv.load(sys.argv[1])
    loads.append(time.process_time() - begin)
    begin = time.process_time()
    run(trace)
    out[name] = time.process_time() - begin
    begin = time.process_time()
    run(trace)
    out[name + ", again"] = time.process_time() - begin
out["load"] = sorted(loads)[len(loads) // 2]
print(json.dumps(out))
"""

#: What a peer's program begins and ends with; between them it fills `runs` from its own loading.
_BEGIN = """
import json, logging, sys, time, warnings
logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")
say, sys.stdout = sys.stdout, sys.stderr
out = {}
def timed(name, run):
    times = []
    for _ in range(2):
        begin = time.process_time()
        try:
            run()
        except Exception as error:
            print(f"{name}: {error!r}", file=sys.stderr)
            return
        times.append(time.process_time() - begin)
    out[name] = min(times)
"""
_END = """
print(json.dumps(out), file=say)
"""

PEERS = {
    "HTA": (
        "hta",
        """
from hta.trace_analysis import TraceAnalysis
begin = time.process_time()
trace = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/")
out["load"] = time.process_time() - begin
timed("temporal breakdown", lambda: trace.get_temporal_breakdown(visualize=False))
timed("idle breakdown", lambda: trace.get_idle_time_breakdown(ranks=[0], visualize=False))
timed("overlap", lambda: trace.get_comm_comp_overlap(visualize=False))
timed("kernel breakdown",
      lambda: trace.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True, num_kernels=10**9))
timed("launch stats", lambda: trace.get_cuda_kernel_launch_stats(ranks=[0], visualize=False))
timed("queue length", lambda: trace.get_queue_length_summary([0]))
timed("copy bandwidth", lambda: trace.get_memory_bw_time_series([0]))
""",
    ),
    "TraceLens": (
        "TraceLens",
        """
from TraceLens import TreePerfAnalyzer
from TraceLens.NcclAnalyser.nccl_analyser import NcclAnalyser
begin = time.process_time()
analyzer = TreePerfAnalyzer.from_file(sys.argv[1], include_unlinked_kernels=True)
out["load"] = time.process_time() - begin
timed("temporal breakdown", lambda: analyzer.get_df_gpu_timeline())
timed("operators",
      lambda: analyzer.get_df_kernel_launchers_summary(analyzer.get_df_kernel_launchers()))
del analyzer
begin = time.process_time()
analyser = NcclAnalyser([sys.argv[1]], 1)
out["load, collectives"] = time.process_time() - begin
timed("collectives", lambda: analyser.build_df_long())
""",
    ),
}


def _medians(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    good = [found for found in rounds if "failed" not in found]
    if not good:
        return rounds[-1]
    return {name: statistics.median(found[name] for found in good if name in found) for name in good[0]}


def _interpreters(pythons: list[str]) -> dict[str, str]:
    """Return the interpreter of each peer that can be run."""
    out = {}
    for name, (module, _) in PEERS.items():
        python = next((p for p in [*pythons, sys.executable] if apart.has(p, module)), None)
        if python is None:
            print(f"{name}: no interpreter that has it (--peers-python)")
        else:
            out[name] = python
    return out


def measure(trace: Path, pythons: list[str], rounds: int, seconds: float, memory: float) -> None:
    """Measure all on one trace and print the table."""
    root = str(HERE.parents[1])
    peers = _interpreters(pythons)
    ours: list[dict[str, Any]] = []
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in peers}
    for _ in range(rounds):
        ours.append(apart.run([sys.executable, "-c", OURS, str(trace)], path=root))
        if "failed" in ours[-1]:
            sys.exit(f"torchtrt_viz: {ours[-1]['failed']}")
        for name, python in peers.items():
            if found[name] and "failed" in found[name][-1]:
                continue
            code = _BEGIN + PEERS[name][1] + _END
            command = [python, "-c", code, str(trace)]
            found[name].append(apart.run(command, seconds=seconds, memory=memory))
    mine = _medians(ours)
    theirs = {name: _medians(runs) for name, runs in found.items()}
    _print(trace, rounds, mine, theirs)


def _print(trace: Path, rounds: int, mine: dict[str, Any], theirs: dict[str, dict[str, Any]]) -> None:
    print(f"{trace.name}: {trace.stat().st_size / 1e6:.0f} MB, medians of {rounds} rounds, CPU seconds")
    machine = platform.processor() or platform.machine()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{machine}, {os.cpu_count()} CPUs, load {load}, Python {platform.python_version()}")
    for name, found in list(theirs.items()):
        if "failed" in found:
            print(f"{name}: {found['failed']}")
            del theirs[name]
    loads = "".join(f", {name} {found['load']:.2f}" for name, found in theirs.items())
    ratios = "".join(f", {found['load'] / mine['load']:.0f}x {name}" for name, found in theirs.items())
    print(f"load: ours {mine['load']:.3f}{loads}{ratios}\n")
    head = f"{'':20}{'alone':>9}{'again':>9}{'to answer':>11}"
    for name in theirs:
        head += f" |{name + ' alone':>16}{'ratio':>7}{'to answer':>11}{'ratio':>7}"
    print(head)
    for name in [key for key in mine if key != "load" and not key.endswith(", again")]:
        whole = mine["load"] + mine[name]
        line = f"{name:20}{mine[name]:9.4f}{mine[name + ', again']:9.4f}{whole:11.3f}"
        for found in theirs.values():
            if name not in found:
                line += " |" + " " * 41
                continue
            other = found.get(f"load, {name}", found["load"]) + found[name]
            line += f" |{found[name]:16.3f}{found[name] / mine[name]:6.0f}x"
            line += f"{other:11.2f}{other / whole:6.0f}x"
        print(line.rstrip())


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sys.path.insert(0, str(HERE.parent / "ingest"))
    from generate import generate, parse_size

    parser.add_argument("trace", type=Path, nargs="?")
    parser.add_argument("--size", default="100MB", type=parse_size, help="of the trace that is generated")
    parser.add_argument("--peers-python", nargs="+", help="interpreters that have the peers and pandas 2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=apart.DEFAULT_SECONDS, help="wall time of a peer")
    parser.add_argument("--memory", type=parse_size, default=int(apart.DEFAULT_MEMORY), help="of a peer")
    options = parser.parse_args()
    pythons = apart.peers_pythons(options.peers_python)
    with tempfile.TemporaryDirectory() as folder:
        trace = options.trace
        if trace is None:
            trace = Path(folder) / "generated.json"
            generate(trace, options.size)
        measure(trace.resolve(), pythons, options.rounds, options.seconds, options.memory)


if __name__ == "__main__":
    main()
