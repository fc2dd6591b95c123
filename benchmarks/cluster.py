"""Sessions of up to a thousand simulated ranks on a local Dask cluster: time and memory over ranks.

::

    python benchmarks/cluster.py [--ranks 100 250 500 1000] [--svg benchmarks/cluster.svg]
    python benchmarks/cluster.py --check        # fails unless memory is bounded and frames equal

For each number of ranks, a fresh process opens the session's folder with ``load(folder, engine="dask")`` on
a cluster of two worker processes of one thread and computes every table over ranks (``session.overview()``:
operators, steps, collectives and their skew, stragglers, roles, requests). Noted are wall time, CPU seconds
of all processes together, and the highest resident memory that the system noted for each process (VmHWM).
The client's process also runs the scheduler. Then the same is computed again while one worker is killed in
the middle, and must give the same tables.

The folders hold synthetic recordings that took the way of real ones into them: see ``cluster_ranks.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

MEMORY_LIMIT = 10**9
WORKERS = 2


def peak_bytes(pid: int | str = "self") -> int:
    """Return the most memory that a process has had resident: its own, not its children's."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def worker_cost() -> tuple[int, float, int]:
    """Process, its CPU seconds, and its peak memory."""
    return os.getpid(), time.process_time(), peak_bytes()


def equal(a: Any, b: Any) -> bool:
    """Whether two overviews are equal in every table."""
    import pandas as pd

    for field in fields(a):
        pd.testing.assert_frame_equal(getattr(a, field.name), getattr(b, field.name))
    return True


class KillOnce:
    """Progress that kills a worker when half of the ranks are done."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.killed_at: int | None = None

    def __call__(self, done: int, total: int) -> None:
        if self.killed_at is None and done >= total // 2:
            os.kill(self.pid, signal.SIGKILL)
            self.killed_at = done


def measure(folder: Path, kill: bool) -> dict[str, Any]:
    """Open and reduce one session on a fresh cluster of this process."""
    import distributed

    import torchtrt_viz as tv

    with (
        distributed.LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=MEMORY_LIMIT,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        ready = list(client.run(worker_cost).values())
        wall, cpu = time.perf_counter(), time.process_time()
        session = tv.load(folder, engine="dask")
        opened = time.perf_counter() - wall
        overview = session.overview()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        after = list(client.run(worker_cost).values())
        peaks = {pid: peak for pid, _, peak in after}
        out: dict[str, Any] = {
            "ranks": len(session),
            "wall_s": wall,
            "open_s": opened,
            "client_cpu_s": cpu,
            "workers_cpu_s": sum(c for _, c, _ in after) - sum(c for _, c, _ in ready),
            "client_peak": peak_bytes(),
            "straggler": int(overview.stragglers["rank"].iloc[0]),
            "rows": {field.name: len(getattr(overview, field.name)) for field in fields(overview)},
        }
        if kill:
            victim = KillOnce(after[0][0])
            again = tv.load(folder, engine="dask").overview(victim)
            out["killed_at"] = victim.killed_at
            out["equal_after_kill"] = equal(overview, again)
            out["client_peak"] = peak_bytes()
            peaks.update((pid, peak) for pid, _, peak in client.run(worker_cost).values())
        out["worker_peaks"] = list(peaks.values())
    return out


def run_apart(folder: Path, kill: bool) -> dict[str, Any]:
    """Measure in a process of its own, so that peaks are those of this number of ranks."""
    command = [sys.executable, __file__, "--one", str(folder), *(["--kill"] if kill else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring {folder} failed:\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def slope(results: list[dict[str, Any]], key: str) -> tuple[float, float, float]:
    """Fit key = fixed + each * ranks; return fixed, each and the largest relative deviation from it."""
    import numpy as np

    ranks = np.array([r["ranks"] for r in results], float)
    values = np.array([r[key] for r in results], float)
    each, fixed = np.polyfit(ranks, values, 1)
    return float(fixed), float(each), float(np.abs(values / (fixed + each * ranks) - 1).max())


def violations(results: list[dict[str, Any]]) -> list[str]:
    """List what the measured sessions do not hold, on a machine of any load."""
    out = []
    for result in results:
        for name, peak in (
            ("client", result["client_peak"]),
            *((f"worker {i}", p) for i, p in enumerate(result["worker_peaks"])),
        ):
            if peak >= MEMORY_LIMIT:
                out.append(f"{result['ranks']} ranks: {name} took {peak / 1e6:.0f} MB")
        if result.get("equal_after_kill") is False or ("killed_at" in result and not result["killed_at"]):
            out.append(f"{result['ranks']} ranks: no worker was killed")
    return out


def growth(results: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the CPU seconds of one more rank: up to the session in the middle, and up to the largest."""
    first, middle, last = results[0], results[len(results) // 2], results[-1]
    early, late = (
        (one["cpu_s"] - first["cpu_s"]) / (one["ranks"] - first["ranks"]) for one in (middle, last)
    )
    return early, late


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[100, 250, 500, 1000])
    parser.add_argument("--svg", type=Path, help="write the plot to this file")
    parser.add_argument("--check", action="store_true", help="exit status 1 when a bound is not held")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kill", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(options.one, options.kill)))
        return 0

    from cluster_plot import plot
    from cluster_ranks import part_of_session, write_session

    results = []
    with tempfile.TemporaryDirectory(prefix="cluster-") as root:
        most = max(options.ranks)
        whole = Path(root) / "whole"
        begin = time.process_time()
        records = write_session(whole, most)
        stored = sum(c.bytes or 0 for record in records for c in record.cycles)
        print(
            f"{most} ranks of {stored / most / 1e3:.0f} kB made in {time.process_time() - begin:.0f} CPU s; "
            f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
            f"Python {platform.python_version()}"
        )
        print("ranks   wall s  CPU s (client + workers)  peak MB: client with scheduler, workers")
        for ranks in sorted(options.ranks):
            folder = whole
            if ranks < most:
                folder = Path(root) / f"first-{ranks}"
                part_of_session(whole, records, folder, ranks)
            result = run_apart(folder, kill=True)
            result["cpu_s"] = result["client_cpu_s"] + result["workers_cpu_s"]
            results.append(result)
            peaks = ", ".join(f"{p / 1e6:.0f}" for p in result["worker_peaks"])
            print(
                f"{ranks:5d} {result['wall_s']:8.1f} {result['cpu_s']:6.1f} ({result['client_cpu_s']:.1f} + "
                f"{result['workers_cpu_s']:.1f})  {result['client_peak'] / 1e6:.0f}; {peaks}; a worker "
                f"killed after {result['killed_at']} ranks, equal tables: {result['equal_after_kill']}",
                flush=True,
            )
    if len(results) > 1:
        for key in ("wall_s", "cpu_s"):
            fixed, each, off = slope(results, key)
            print(f"{key}: {fixed:.1f} s + {1e3 * each:.1f} ms a rank, within {100 * off:.0f} %")
    if len(results) > 2:
        early, late = growth(results)
        print(f"one more rank takes {1e3 * early:.1f} ms at first and {1e3 * late:.1f} ms over all")
    if options.svg:
        plot(results, options.svg)
        print(f"wrote {options.svg}")
    found = violations(results)
    for line in found:
        print(f"NOT HELD: {line}")
    return 1 if options.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
