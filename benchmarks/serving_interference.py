"""What a profile costs an engine that goes on serving: at the stop, and while archives are made.

::

    python benchmarks/serving_interference.py [--megabytes 200] [--seconds 4] [--rounds 3] [--realtime]

1. A recording with shapes, stacks and memory of the given size is made with a real torch profiler. How much
   longer does ``stop_profile`` take than torch's own stop and export?
2. A decode loop of small torch operators runs beside nothing, beside this package's pipeline (parse in a
process of
   its own, compress and verify in a thread), and beside ``json.load`` of the same file in a thread, in
   turns. How long do its steps take?

``--realtime`` (needs root) keeps other programs of a busy machine off the two cores: the loop and the
pipeline's thread run under SCHED_FIFO, each on a core of its own, and nothing else gets to run there
meanwhile. Without it, run on a machine with at least one free core.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from torchtrt_viz.serving import LocalProfiler, ProfileConfig, RankIdentity, Settings
from torchtrt_viz.serving.artifacts.pipeline import ArtifactPipeline, status_of, write_rank_meta
from torchtrt_viz.serving.artifacts.staging import Job

EVENTS_PER_MEGABYTE = 370
LAYERS = 24


class Decoder:
    """One token of a small model: about a hundred torch calls."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.weights = [torch.randn(64, 64) * 0.1 for _ in range(LAYERS)]
        self.x = torch.randn(8, 64)

    @torch.inference_mode()
    def step(self) -> None:
        x = self.x
        for weight in self.weights:
            x = torch.nn.functional.layer_norm(x + torch.relu(x @ weight), (64,))
        self.x = x


def realtime(core: int) -> None:
    """Keep the calling thread on a core, before everything else that wants it."""
    thread = threading.get_native_id()
    os.sched_setaffinity(thread, {core})
    os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(10))


def normal() -> None:
    thread = threading.get_native_id()
    os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
    os.sched_setaffinity(thread, range(os.cpu_count() or 1))


def record(folder: Path, megabytes: int, settings: Settings) -> tuple[Path, float, float, float]:
    """Make a recording; return it with the seconds of our stop, of torch's stop and of torch's export."""
    held: list[Path] = []
    release = threading.Event()

    def keep(stage: str, job: Job) -> None:
        if stage == "parse":
            copy = folder / "trace.json"
            os.link(job.raw, copy)
            held.append(copy)
            release.set()
            raise RuntimeError("only the recording is wanted")

    profiling = LocalProfiler(settings=settings, on_stage=keep)
    profiling.attach()
    options = dict.fromkeys(("record_shapes", "with_stack", "profile_memory"), True)
    profiling.start_profile(ProfileConfig(folder / "profiles", **options), window=True)
    x = torch.randn(8, 8)
    for _ in range(megabytes * EVENTS_PER_MEGABYTE // 2):
        x = x + x
        x = x * 0.5
    begin = time.perf_counter()
    status = profiling.stop_profile()
    took = time.perf_counter() - begin
    (artifact,) = status.artifacts
    release.wait(60)
    profiling.close(60)
    return held[0], took, artifact.stop_s or 0.0, artifact.export_s or 0.0


def loop(decoder: Decoder, until: Callable[[], bool]) -> np.ndarray:
    """Run steps until told; return their durations in milliseconds."""
    took = []
    while not until():
        begin = time.perf_counter()
        decoder.step()
        took.append(time.perf_counter() - begin)
    return np.asarray(took[5:]) * 1e3


def beside_nothing(decoder: Decoder, seconds: float) -> np.ndarray:
    end = time.monotonic() + seconds
    return loop(decoder, lambda: time.monotonic() > end)


def beside_pipeline(decoder: Decoder, raw: Path, folder: Path, settings: Settings, fifo: bool) -> np.ndarray:
    session = folder / "session"
    session.mkdir()
    job = Job.create(
        session / ".staging",
        session,
        "session",
        RankIdentity(host="bench"),
        0,
        "window",
        ProfileConfig(folder, record_shapes=True, with_stack=True, profile_memory=True),
        time.time_ns(),
    )
    os.link(raw, job.raw)
    write_rank_meta(job)
    pipeline = ArtifactPipeline(
        settings, on_stage=lambda stage, _: realtime(1) if fifo and stage == "queued" else None
    )
    status = status_of(job)
    pipeline.submit(job, status)
    took = loop(decoder, lambda: status.done)
    assert status.state == "published", status.error
    print(f"      parse {status.parse_s:.1f} s, pack {status.pack_s:.1f} s, verify {status.verify_s:.1f} s")
    pipeline.close(10)
    shutil.rmtree(session)
    return took


def beside_json(decoder: Decoder, raw: Path, fifo: bool) -> np.ndarray:
    def parse() -> None:
        if fifo:
            realtime(1)
        with raw.open() as stream:
            json.load(stream)

    thread = threading.Thread(target=parse)
    thread.start()
    took = loop(decoder, lambda: not thread.is_alive())
    thread.join()
    return took


def report(name: str, runs: list[np.ndarray], base: tuple[float, float] | None) -> tuple[float, float]:
    p50 = statistics.median(float(np.percentile(r, 50)) for r in runs)
    p99 = statistics.median(float(np.percentile(r, 99)) for r in runs)
    worst = max(float(r.max()) for r in runs)
    rate = statistics.median(len(r) / (r.sum() / 1e3) for r in runs)
    grown = "" if base is None else f"   p50 {p50 / base[0] - 1:+7.1%}   p99 {p99 / base[1] - 1:+7.1%}"
    print(
        f"{name:28s} p50 {p50:7.3f} ms   p99 {p99:8.3f} ms   max {worst:9.1f} ms   {rate:6.0f} steps/s{grown}"
    )
    return p50, p99


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--realtime", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, ",
        end="",
    )
    print(f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}, realtime {args.realtime}")
    folder = Path(tempfile.mkdtemp(prefix="serving_interference-"))
    settings = Settings(spare_staging=())
    try:
        if args.realtime:
            realtime(0)
        raw, ours, stop_s, export_s = record(folder, args.megabytes, settings)
        print(f"recording: {raw.stat().st_size / 1e6:.0f} MB")
        native = f"torch's stop {stop_s * 1e3:.1f} + export {export_s * 1e3:.1f}"
        print(f"stop_profile {ours * 1e3:.1f} ms = {native} + ours {(ours - stop_s - export_s) * 1e3:.2f} ms")
        decoder = Decoder()
        nothing, pipeline, parsed = [], [], []
        beside_nothing(decoder, 1.0)
        for _ in range(args.rounds):
            nothing.append(beside_nothing(decoder, args.seconds))
            pipeline.append(beside_pipeline(decoder, raw, folder, settings, args.realtime))
            nothing.append(beside_nothing(decoder, args.seconds))
        parsed.append(beside_json(decoder, raw, args.realtime))
        base = report("nothing", nothing, None)
        report("pipeline of this package", pipeline, base)
        report("json.load in a thread", parsed, base)
    finally:
        if args.realtime:
            normal()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
