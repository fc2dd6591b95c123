"""What capturing costs: an event, a layer record, an engine that is off, the demo's forward at each level.

    python benchmarks/capture_cost.py                  # builds the native benchmark first, about two minutes
    python benchmarks/capture_cost.py --native FILE    # with a capture_bench that is built already
    python benchmarks/capture_cost.py --no-native      # the demo's forward alone

Native figures are CPU time of one thread, medians over 31 rounds of many calls; `off` is the difference to
the same engine without the feature, in a library of its own as the real one is. The demo's forward runs at
the four levels in turn, round after round, each round a few runs, so that whatever else the machine does
meets all levels alike; its figures are medians of the process's CPU time and of wall time, and ratios to
level off. The runtime's own tracer (ETDumpGen) stands beside ours.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEVELS = ("off", "delegate", "phases", "layers")
BUDGETS = {"off": 2.0, "phase event": 500.0, "layer record": 100.0}


def build(folder: Path) -> Path:
    """Configure and build ``capture_bench`` in a folder, with the tools beside this Python."""
    tools = {
        name: str(found) if (found := Path(sys.executable).with_name(name)).exists() else shutil.which(name)
        for name in ("cmake", "ninja")
    }
    if None in tools.values():
        sys.exit("cmake and ninja are needed to build the benchmark: pip install cmake ninja pysimdjson")
    configure = [
        tools["cmake"],
        *("-S", str(ROOT / "capture_ext"), "-B", str(folder), "-G", "Ninja"),
        f"-DCMAKE_MAKE_PROGRAM={tools['ninja']}",
        f"-DPython_EXECUTABLE={sys.executable}",
        "-DTORCHTRT_VIZ_TESTS=ON",
        "-DTORCHTRT_VIZ_PYTHON=OFF",
    ]
    for command in (
        configure,
        [tools["cmake"], "--build", str(folder), "--target", "capture_bench", "-j2"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
    return folder / "tests" / "capture_bench"


def native_costs(binary: Path, runs: int) -> dict[str, float]:
    """Run the benchmark a few times; return the median of each figure, in ns."""
    rounds = [
        json.loads(subprocess.run([binary], check=True, capture_output=True).stdout) for _ in range(runs)
    ]
    return {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}


def report_native(costs: dict[str, float]) -> None:
    """Print what one of each costs, beside its budget."""
    rows = [
        ("off", costs["off_call"] - costs["bare_call"], "a call of an engine at level off"),
        ("delegate event", costs["delegate_call"] - costs["off_call"], "with its metadata"),
        ("phase event", (costs["phases_call"] - costs["delegate_call"]) / 6, "measured and logged"),
        ("layer record", costs["layer_record"], "measured by the host engine"),
        ("layer event", costs["layer_event"], "from the record to the event log"),
        ("clock", costs["clock"], "one reading"),
    ]
    print(f"{'':16}{'ns':>8}{'budget':>9}")
    for name, ns, what in rows:
        budget = f"{BUDGETS[name]:.0f}" if name in BUDGETS else ""
        print(f"{name:16}{ns:8.1f}{budget:>9}  {what}")
    stock = (costs["etdumpgen_phases_call"] - costs["off_call"]) / 7
    ours = (costs["phases_call"] - costs["off_call"]) / 7
    print(f"an event in our log {ours:.0f} ns, in ETDumpGen {stock:.0f} ns: {stock / ours:.2f} x\n")


def demo_costs(rounds: int, runs: int) -> dict[str, dict[str, float]]:
    """Return medians of CPU and wall µs of one forward, by level."""
    from torchtrt_viz.captures import Program
    from torchtrt_viz.examples.demo import demo_module, export_demo

    _, inputs = demo_module()
    cpu: dict[str, list[float]] = {level: [] for level in LEVELS}
    wall: dict[str, list[float]] = {level: [] for level in LEVELS}
    with tempfile.TemporaryDirectory() as folder:
        path = export_demo(Path(folder) / "demo.pte").path
        programs = {level: Program(path, level=level) for level in LEVELS}
        arrays = [x.numpy() for x in inputs]
        for program in programs.values():
            for _ in range(20):
                program.run(*arrays)
        for turn in range(rounds):
            for level in LEVELS[turn % len(LEVELS) :] + LEVELS[: turn % len(LEVELS)]:
                program = programs[level]
                program.clear()
                begin, begin_cpu = time.perf_counter_ns(), time.process_time_ns()
                for _ in range(runs):
                    program.run(*arrays)
                cpu[level].append((time.process_time_ns() - begin_cpu) / runs / 1e3)
                wall[level].append((time.perf_counter_ns() - begin) / runs / 1e3)
        for program in programs.values():
            program.close()
    return {
        level: {"cpu": statistics.median(cpu[level]), "wall": statistics.median(wall[level])}
        for level in LEVELS
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--native", type=Path, help="a capture_bench that is built already")
    parser.add_argument("--no-native", action="store_true", help="leave the native figures out")
    parser.add_argument("--rounds", type=int, default=60, help="rounds over the levels (default 60)")
    parser.add_argument(
        "--runs", type=int, default=20, help="runs of the demo a level and round (default 20)"
    )
    arguments = parser.parse_args()

    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    if arguments.native is not None:
        report_native(native_costs(arguments.native, 5))
    elif not arguments.no_native:
        with tempfile.TemporaryDirectory() as folder:
            report_native(native_costs(build(Path(folder)), 5))

    costs = demo_costs(arguments.rounds, arguments.runs)
    print(f"{'demo forward':16}{'CPU µs':>8}{'x off':>8}{'wall µs':>9}{'x off':>8}")
    for level, cost in costs.items():
        ratios = [cost[key] / costs["off"][key] for key in ("cpu", "wall")]
        print(f"{level:16}{cost['cpu']:8.1f}{ratios[0]:8.3f}{cost['wall']:9.1f}{ratios[1]:8.3f}")


if __name__ == "__main__":
    main()
