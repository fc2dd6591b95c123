"""What control costs an engine's step: with nothing active, and beside a store that is slow, stopped or dead.

::

    python benchmarks/serving_control.py [--steps 20000]

A step is ``with profiler.engine_step(): ...`` and ``worker.poll()``, without any work in it. The store is a
process of its own, which is stopped (SIGSTOP) and killed while the steps go on. The last lines are a report
of one change, on a worker that has recorded 10 and 10,000 cycles.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch.distributed as dist

from torchtrt_viz.serving import (
    ProfileConfig,
    ProfileWorker,
    RankIdentity,
    RankProfiler,
    Settings,
    StoreWorker,
)
from torchtrt_viz.serving.artifacts.pipeline import status_of
from torchtrt_viz.serving.artifacts.staging import Job
from torchtrt_viz.serving.control.messages import message

SERVER = (
    "import sys, torch.distributed as dist; "
    "store = dist.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False); "
    "print(store.port, flush=True); sys.stdin.read()"
)


def measure(name: str, step: Callable[[], object], steps: int) -> None:
    """Print percentiles of a step's wall time."""
    times = np.empty(steps)
    for number in range(steps):
        begin = time.perf_counter_ns()
        step()
        times[number] = time.perf_counter_ns() - begin
    p50, p99, p999 = np.percentile(times, [50, 99, 99.9]) / 1e3
    print(f"{name:46} p50 {p50:8.2f}   p99 {p99:8.2f}   p99.9 {p999:9.2f} us")


def steps_beside_a_store(steps: int) -> None:
    """Measure steps while the store's process is well, stopped and gone."""
    profiler = RankProfiler()
    profiler.attach()

    def idle() -> None:
        with profiler.engine_step():
            pass

    measure("nothing active, no coordinator", idle, steps)
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=600))
        worker = StoreWorker(store, "0", profiler)

        def step() -> None:
            with profiler.engine_step():
                pass
            worker.poll()

        measure("nothing active, a store that answers", step, steps)
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(0.5)
        measure("nothing active, a store that is stopped", step, steps)
        server.kill()
        server.wait()
        time.sleep(3)
        measure("nothing active, a store that is dead", step, steps)
        worker.close(10)


def reports(cycles: int, folder: Path) -> None:
    """Measure the report of one change beside so many that are told already."""
    profiler = RankProfiler(settings=Settings())
    sent: list[dict[str, Any]] = []
    worker = ProfileWorker(profiler, sent.append)
    config = ProfileConfig(folder)
    profiler._status.session_id = "s"
    jobs = [
        Job(folder, folder, f"{n:08x}", "s", RankIdentity(), n, "steps", config.to_dict(), 0)
        for n in range(cycles)
    ]
    pipeline = profiler.pipeline
    for job in jobs:
        status = status_of(job)
        status.state = "published"
        pipeline._statuses[job.job_id], pipeline._jobs[job.job_id] = status, job
        pipeline._tell(job, status)
    worker.handle(message("profile_status", "s"))

    def one() -> None:
        pipeline._tell(jobs[-1], pipeline._statuses[jobs[-1].job_id])
        worker.poll()

    measure(f"poll after one change of {cycles:,} cycles", one, 300)
    assert len(sent[-1]["artifacts"]) == 1


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, {options.steps} steps each")
    steps_beside_a_store(options.steps)
    with tempfile.TemporaryDirectory() as folder:
        for cycles in (10, 10_000):
            reports(cycles, Path(folder))


if __name__ == "__main__":
    main()
