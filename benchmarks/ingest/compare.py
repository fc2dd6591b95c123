"""Load the same Kineto file with this package and with others, side by side, and print the ratios.

    python benchmarks/ingest/compare.py [FILE ...] [--size 100MB] [--rounds 5] [--only NAME ...]
                                        [--peers-python PYTHON ...] [--seconds 600] [--memory 18GB]

Without a file a trace of ``--size`` is generated first. Every load runs in a process of its own, one after
another in rounds, so that all meet the same machine; imports happen before the clock starts. Printed are
medians of CPU seconds (user and system, all threads), megabytes of JSON per CPU second, how many times slower
each is, and peak memory above that after the imports. Peers that are not installed are named and left out:
``pip install HolisticTraceAnalysis msgspec polars orjson``; TraceLens from its repository. Those that need
pandas 2 are run by the first interpreter of ``--peers-python`` (or of the environment variable
TORCHTRT_VIZ_PEERS_PYTHON) that has them. What takes longer or more memory than allowed is ended, and the
reason stands in its row.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import apart
from peers import LOADERS, PREPARE

_OURS = "torchtrt_viz"
_PACKAGES = ("pandas", "numpy", "msgspec", "polars", "orjson", "HolisticTraceAnalysis", "TraceLens", "isal")


def _measure(name: str, path: str) -> dict[str, Any]:
    """Load once, in this process."""
    import logging

    logging.disable(logging.CRITICAL)
    try:
        for module in PREPARE[name]:
            importlib.import_module(module)
    except ImportError as error:
        return {"missing": str(error)}
    before = _peak_mb()
    cpu, wall = time.process_time(), time.perf_counter()
    events, kernels = LOADERS[name](path)
    return {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "peak_mb": _peak_mb() - before,
        "events": events,
        "kernel_us": kernels,
    }


def _peak_mb() -> float:
    """Peak memory of this process; ru_maxrss would be that of the starting process, if that was larger."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def _interpreter(name: str, pythons: list[str]) -> tuple[str, str | None]:
    """Return the interpreter that runs a loader, and what its PYTHONPATH is: none for one of the peers'."""
    module = PREPARE[name][-1].partition(".")[0]
    if name != _OURS:
        others = module in ("hta", "TraceLens")  # they want pandas 2
        for python in [*pythons, sys.executable] if others else [sys.executable, *pythons]:
            if python != sys.executable and apart.has(python, module):
                return python, None
            if python == sys.executable and importlib.util.find_spec(module):
                break
    return sys.executable, os.environ.get("PYTHONPATH")


def compare(
    path: Path, rounds: int, names: list[str], pythons: list[str], seconds: float, memory: float
) -> dict[str, dict[str, Any]]:
    """Return medians by loader."""
    by = {name: _interpreter(name, pythons) for name in names}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            if runs[name] and "cpu" not in runs[name][-1]:
                continue
            python, places = by[name]
            command = [python, __file__, "--one", name, str(path)]
            limits = {} if name == _OURS else {"seconds": seconds, "memory": memory}
            runs[name].append(apart.run(command, path=places, **limits))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    out: dict[str, dict[str, Any]] = {}
    for name, measured in runs.items():
        good = [run for run in measured if "cpu" in run]
        if not good:
            out[name] = measured[-1]
            continue
        out[name] = {
            **good[0],
            "cpu": statistics.median(run["cpu"] for run in good),
            "wall": statistics.median(run["wall"] for run in good),
            "peak_mb": statistics.median(run["peak_mb"] for run in good),
        }
    return out


def _versions() -> str:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def _machine() -> str:
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{os.cpu_count()} x {model}, load {load}; Python {platform.python_version()}"


def report(path: Path, size: int, results: dict[str, dict[str, Any]]) -> str:
    """Return the table of one file."""
    ours = results[_OURS]["cpu"]
    lines = [
        f"{path.name}: {size / 1e6:.0f} MB of JSON",
        f"{'':24}{'CPU s':>9}{'MB/CPU s':>10}{'x slower':>10}{'peak MB':>9}{'rows':>11}{'kernels us':>14}",
    ]
    for name, found in results.items():
        if "cpu" not in found:
            lines.append(f"{name:24}  {found.get('missing') or found.get('failed')}")
            continue
        kernels = "" if found["kernel_us"] is None else f"{found['kernel_us']:.3f}"
        lines.append(
            f"{name:24}{found['cpu']:9.3f}{size / 1e6 / found['cpu']:10.0f}{found['cpu'] / ours:10.1f}"
            f"{found['peak_mb']:9.0f}{found['events']:11}{kernels:>14}"
        )
    return "\n".join(lines)


def _json_size(path: Path) -> int:
    from torchtrt_viz.formats.io.source import Source

    source = Source(path)
    return sum(map(len, source.blocks())) if source.compressed else source.stored_bytes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--size", default="100MB")
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--only", nargs="+", choices=list(LOADERS), help="these loaders, and ours")
    parser.add_argument("--peers-python", nargs="+", help="interpreters that have the peers and pandas 2")
    parser.add_argument("--seconds", type=float, default=apart.DEFAULT_SECONDS, help="wall time of one load")
    parser.add_argument("--memory", default=f"{apart.DEFAULT_MEMORY / 1e9:.0f}GB", help="of one load")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measure(*options.one)))
        return
    from generate import generate, parse_size

    pythons = apart.peers_pythons(options.peers_python)
    memory = parse_size(options.memory)
    with tempfile.TemporaryDirectory() as folder:
        files = options.files
        if not files:
            files = [Path(folder) / "generated.json"]
            generate(files[0], parse_size(options.size))
        print(f"{_machine()}\n{_versions()}\nmedians of {options.rounds} rounds\n")
        for path in files:
            packed = path.suffix == ".gz"
            names = [n for n in LOADERS if packed or "decompress" not in n]
            if options.only:
                names = [n for n in names if n == _OURS or n in options.only]
            found = compare(path, options.rounds, names, pythons, options.seconds, memory)
            print(report(path, _json_size(path), found), end="\n\n")


if __name__ == "__main__":
    main()
