"""One rank with a real torch profiler: schedules, windows, threads, errors, limits."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from staged_jobs import quick

import torchtrt_viz as tv
from torchtrt_viz.errors import CaptureError, OptionError

torch = pytest.importorskip("torch")

from torchtrt_viz.runtime.torch_profiler import (  # noqa: E402
    TorchRecording,
    profiler_active,
    warm_up,
)
from torchtrt_viz.serving import (  # noqa: E402
    ControlTimeoutError,
    LocalProfiler,
    ProfileActiveError,
    ProfileConfig,
    RankIdentity,
    WrongThreadError,
    recover,
)


@pytest.fixture(autouse=True)
def _no_profiler_is_left() -> Iterator[None]:
    assert not profiler_active()
    yield
    assert not profiler_active()


@pytest.fixture
def profiling(tmp_path) -> Iterator[LocalProfiler]:
    local = LocalProfiler(
        RankIdentity.here(role="decode"),
        quick(control_timeout_s=120, spare_staging=(tmp_path / "spare",), annotations=True),
    )
    local.attach()
    yield local
    assert local.close(60)


def work(times: int = 1) -> None:
    x = torch.ones(8, 8)
    for _ in range(times):
        x = x @ x * 0.1


def steps(profiling: LocalProfiler, count: int, worked: bool = True) -> None:
    for _ in range(count):
        with profiling.engine_step() as step:
            if worked:
                work()
            step.worked = worked


def names_in(archive: str) -> set[str]:
    with tarfile.open(archive) as tar:
        events = json.loads(tar.extractfile("raw/trace.json").read())["traceEvents"]
    return {e["name"] for e in events}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(tv.__file__).parents[1])}


def _python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        timeout=120,
        env=_environment(),
    )


# -- schedules -------------------------------------------------------------------------------------------


def test_schedule_counts_steps_and_ends_by_itself(profiling, tmp_path):
    config = ProfileConfig(tmp_path, wait=1, warmup=1, active=2, repeat=2)
    status = profiling.start_profile(config)
    assert (status.collection.state, status.collection.mode, status.collection.phase) == (
        "recording",
        "steps",
        "wait",
    )
    phases = []
    for _ in range(8):
        phases.append(profiling.profile_status().collection.phase)
        steps(profiling, 1)
    assert phases == ["wait", "warmup", "active", "active", "wait", "warmup", "active", "active"]
    collection = profiling.profile_status().collection
    assert (collection.state, collection.ended_by, collection.steps, collection.cycles) == (
        "idle",
        "schedule",
        8,
        2,
    )
    steps(profiling, 3)
    assert profiling.profile_status().collection.steps == 8
    found = profiling.wait_for_profile_artifacts(60)
    assert [(a.state, a.cycle) for a in found] == [("published", 0), ("published", 1)]
    assert {n for n in names_in(found[0].archive) if n.startswith("Profiler")} == {
        "ProfilerStep#2",
        "ProfilerStep#3",
    }
    assert {n for n in names_in(found[1].archive) if n.startswith("Profiler")} == {
        "ProfilerStep#6",
        "ProfilerStep#7",
    }
    assert profiling.profile_status().artifact_state == "ready"


def test_idle_polling_is_not_a_step(profiling, tmp_path):
    profiling.start_profile(ProfileConfig(tmp_path, active=2))
    steps(profiling, 50, worked=False)
    assert profiling.profile_status().collection.steps == 0
    steps(profiling, 3)
    assert profiling.profile_status().collection.state == "idle"


def test_stop_in_a_cycle_keeps_the_part_and_stop_before_it_records_nothing(profiling, tmp_path):
    profiling.start_profile(ProfileConfig(tmp_path, active=50))
    steps(profiling, 3)
    assert profiling.stop_profile().collection.cycles == 1
    assert [a.state for a in profiling.wait_for_profile_artifacts(60)] == ["published"]
    profiling.start_profile(ProfileConfig(tmp_path, wait=5))
    steps(profiling, 2)
    collection = profiling.stop_profile().collection
    assert collection.cycles == 0
    assert any("nothing was recorded" in w for w in collection.warnings)
    assert profiling.profiler.pipeline.wait(60)

    def state() -> str:
        manifest = json.loads((tmp_path / collection.session_id / "manifest.json").read_text())
        return manifest["ranks"][0]["state"]

    eventually(lambda: state() == "nothing_recorded")
    assert not (tmp_path / collection.session_id / ".staging").exists()


def test_repeat_zero_goes_on_until_stopped(profiling, tmp_path):
    profiling.start_profile(ProfileConfig(tmp_path, warmup=0, active=1, repeat=0))
    steps(profiling, 4)
    assert profiling.profile_status().collection.state == "recording"
    profiling.stop_profile()
    found = profiling.wait_for_profile_artifacts(60)
    assert [a.cycle for a in found] == [0, 1, 2, 3, 4]  # the last one is what ran since the fourth step
    assert {a.state for a in found} == {"published"}


# -- windows ---------------------------------------------------------------------------------------------


def test_window_records_from_start_to_stop_with_ids(profiling, tmp_path):
    profiling.request_begins("r0")
    profiling.start_profile(ProfileConfig(tmp_path, record_shapes=True), window=True)
    with profiling.annotate("decode", request=["r0", "r 1]"], tokens=2):
        work()
    profiling.request_ends("r0")
    profiling.request_begins("r2")
    begin = time.time_ns()
    status = profiling.stop_profile()
    assert status.collection.cut_at_start == ["r0"]
    assert status.collection.cut_at_stop == ["r2"]
    assert status.collection.start_unix_ns < begin <= status.collection.stop_unix_ns
    (artifact,) = profiling.wait_for_profile_artifacts(60)
    assert "decode[request=r0,r_1_ tokens=2]" in names_in(artifact.archive)
    session = tv.load(tmp_path / status.collection.session_id)
    row = session.ranks.iloc[0]
    assert (row["cut_at_start"], row["cut_at_stop"], row["role"]) == (("r0",), ("r2",), "decode")
    requests = session.requests().set_index("request")
    assert requests.loc["r0", "cut"]
    assert requests.loc["r0", "batched"]
    with tarfile.open(artifact.archive) as tar:
        raw = json.loads(tar.extractfile("raw/trace.json").read())
    assert (raw["session_id"], raw["role"]) == (status.collection.session_id, "decode")
    assert profiling.annotate("decode", request="x") is profiling.annotate("prefill")  # nothing while idle


def test_window_stops_by_itself_before_it_exhausts_anything(tmp_path):
    for settings, reason in (
        (quick(max_window_s=0.05), "window_limit"),
        (quick(min_available_memory=0.999), "memory_limit"),
    ):
        local = LocalProfiler(settings=settings)
        local.start_profile(ProfileConfig(tmp_path), window=True)
        time.sleep(0.06)
        steps(local, 1)
        collection = local.profile_status().collection
        assert (collection.state, collection.ended_by, collection.cycles) == ("idle", reason, 1)
        assert local.close(60)
        assert [a.state for a in local.profile_status().artifacts] == ["published"]


# -- what must not happen ----------------------------------------------------------------------------------


def test_nothing_is_made_while_disabled(profiling, tmp_path):
    steps(profiling, 20)
    assert profiling.profile_status().collection.session_id is None
    assert profiling.stop_profile().collection.state == "idle"
    assert list(tmp_path.iterdir()) == []
    assert profiling.profiler.pipeline._thread is None


def test_second_session_is_refused_and_the_first_goes_on(profiling, tmp_path):
    first = profiling.start_profile(ProfileConfig(tmp_path / "a"), window=True)
    with pytest.raises(ProfileActiveError, match=first.collection.session_id):
        profiling.start_profile(ProfileConfig(tmp_path / "b"), window=True)
    assert not (tmp_path / "b").exists()
    work()
    profiling.stop_profile()
    (artifact,) = profiling.wait_for_profile_artifacts(60)
    assert "aten::matmul" in names_in(artifact.archive)


def test_a_foreign_torch_profiler_is_not_robbed(profiling, tmp_path):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        work()
        with pytest.raises(ProfileActiveError, match="not started through this package"):
            profiling.start_profile(ProfileConfig(tmp_path), window=True)
        work()
    assert sum(e.count for e in theirs.key_averages() if e.key == "aten::matmul") == 2
    assert list(tmp_path.iterdir()) == []


def test_unsupported_activities_start_nothing(profiling, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("CUDA is supported here")
    with pytest.raises(OptionError, match="here torch supports cpu"):
        profiling.start_profile(ProfileConfig(tmp_path, activities=("cpu", "cuda")))
    with pytest.raises(OptionError, match="records from start"):
        profiling.start_profile(ProfileConfig(tmp_path, active=3), window=True)
    assert list(tmp_path.iterdir()) == []
    assert profiling.profile_status().collection.state == "idle"


def test_stop_twice_is_harmless(profiling, tmp_path):
    profiling.start_profile(ProfileConfig(tmp_path), window=True)
    work()
    first = profiling.stop_profile().collection
    second = profiling.stop_profile().collection
    assert first == second
    assert [a.state for a in profiling.wait_for_profile_artifacts(60)] == ["published"]


def test_stop_of_another_session_stops_nothing(profiling, tmp_path):
    profiling.start_profile(ProfileConfig(tmp_path), window=True)
    assert profiling.profiler.stop("20200101-000000-00000000").state == "recording"
    assert profiling.profiler.recording
    profiling.stop_profile()


def test_start_while_stopping_is_refused(profiling, tmp_path):
    errors: list[BaseException] = []
    profiling.start_profile(ProfileConfig(tmp_path), window=True)
    native = profiling.profiler._recording._native
    export = native.export

    def start_meanwhile(path: Path) -> str | None:
        for call in (
            lambda: profiling.start_profile(ProfileConfig(tmp_path), window=True),
            lambda: profiling.profiler.start(ProfileConfig(tmp_path)),
        ):
            try:
                call()
            except ProfileActiveError as error:
                errors.append(error)
        return export(path)

    native.export = start_meanwhile
    profiling.stop_profile()
    assert len(errors) == 2
    assert "is stopping" in str(errors[0])
    assert [a.state for a in profiling.wait_for_profile_artifacts(60)] == ["published"]


def test_exception_in_the_step_is_the_engines_and_the_recording_is_kept(profiling, tmp_path):
    class EngineFault(Exception):
        pass

    profiling.start_profile(ProfileConfig(tmp_path, warmup=0, active=50))
    steps(profiling, 2)
    fault = EngineFault("out of blocks")

    def failing_step() -> None:
        with profiling.engine_step():
            work()
            raise fault

    with pytest.raises(EngineFault) as caught:
        failing_step()
    assert caught.value is fault
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    collection = profiling.profile_status().collection
    assert (collection.state, collection.ended_by, collection.cycles, collection.error) == (
        "idle",
        "error",
        1,
        None,
    )
    assert [a.state for a in profiling.wait_for_profile_artifacts(60)] == ["published"]
    assert profiling.start_profile(ProfileConfig(tmp_path), window=True).collection.state == "recording"
    profiling.stop_profile()


def test_error_of_the_export_is_told_and_never_reaches_the_engine(profiling, tmp_path):
    profiling.start_profile(ProfileConfig(tmp_path, warmup=0, active=1, repeat=3))
    recording = profiling.profiler._recording

    def broken(path: Path) -> str | None:
        raise RuntimeError("no")

    recording._native.export = broken
    steps(profiling, 3)
    status = profiling.profile_status()
    assert (status.collection.state, status.collection.cycles, status.collection.cycles_ended) == (
        "idle",
        0,
        3,
    )
    assert "torch could not export the trace: no" in status.collection.error
    assert [(a.state, a.stage) for a in status.artifacts] == [("failed", "export")] * 3
    assert status.artifact_state == "failed"


def test_interrupt_during_an_export_is_raised_after_it(profiling, tmp_path):
    profiling.start_profile(ProfileConfig(tmp_path, warmup=0, active=1))

    def interrupted(path: Path) -> str | None:
        raise KeyboardInterrupt

    profiling.profiler._recording._native.export = interrupted
    with pytest.raises(KeyboardInterrupt):
        steps(profiling, 1)
    work()
    profiling.stop_profile()
    assert profiling.profile_status().collection.state == "idle"


def test_ranges_open_over_the_end_of_their_session_do_not_crash_the_next(tmp_path):
    """Torch would write their end into freed memory."""
    code = f"""
import gc, torch
from torchtrt_viz.serving import LocalProfiler, ProfileConfig, Settings
local = LocalProfiler(settings=Settings(annotations=True, spare_staging=(), niceness=0))
config = ProfileConfig({str(tmp_path)!r})
for _ in range(2):
    local.start_profile(config, window=True)
    ranges = [local.annotate("decode", request=i) for i in range(60)]
    for r in ranges:
        r.__enter__()
        torch.ones(3) + 1
    local.stop_profile()
    local.start_profile(config, window=True)
    torch.ones(3) + 1
    for r in reversed(ranges):
        r.__exit__(None, None, None)
    local.stop_profile()
    gc.collect()
print(sum(a.state == "published" for a in local.wait_for_profile_artifacts(100)))
"""
    done = _python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4"]


def test_transfers_in_flight_at_the_end_of_a_recording_do_not_crash(tmp_path):
    """Torch would write their end into freed memory; begun inside unrecorded() they have none."""
    code = f"""
import gc, os, sys, torch
import torch.distributed as dist
from torchtrt_viz.serving import LocalProfiler, ProfileConfig, Settings, unrecorded
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=2)
local = LocalProfiler(settings=Settings(annotations=True, spare_staging=(), niceness=0))
local.attach()
for k in range(3):
    data = torch.ones(1000)
    if rank == 1:
        dist.recv(data, src=0, tag=k)
        continue
    local.start_profile(ProfileConfig({str(tmp_path / "p")!r}), window=True)
    with local.annotate("kv_send", request=k), unrecorded():
        work = dist.isend(data, dst=1, tag=k)
    torch.ones(3) + 1
    local.stop_profile()
    work.wait()
    gc.collect()
if rank == 0:
    found = local.wait_for_profile_artifacts(100)
    print(sum(a.state == "published" for a in found))
"""
    other = subprocess.Popen([sys.executable, "-c", code, "1"], env=_environment())
    done = _python(code, "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3"]
    assert other.wait(60) == 0
    session = tv.load(next((tmp_path / "p").iterdir()))
    assert session[0].spans["name"].astype(str).str.startswith("kv_send[").sum() == 1


# -- threads ---------------------------------------------------------------------------------------------


def test_other_threads_calls_run_on_the_engines_thread(profiling, tmp_path):
    results: dict[str, object] = {}
    stepped = threading.Event()

    def control() -> None:
        try:
            results["start"] = profiling.start_profile(ProfileConfig(tmp_path), window=True).collection.state
            for _ in range(2):  # the second step began after the start
                stepped.clear()
                stepped.wait()
            results["stop"] = profiling.stop_profile().collection.cycles
        except BaseException as error:
            results["error"] = error

    thread = threading.Thread(target=control, daemon=True)
    thread.start()
    while thread.is_alive():
        steps(profiling, 1)
        stepped.set()
        profiling.poll()
    assert results == {"start": "recording", "stop": 1}
    (artifact,) = profiling.wait_for_profile_artifacts(60)
    assert "aten::matmul" in names_in(artifact.archive)


def test_engine_thread_that_does_not_look_is_a_timeout_and_the_call_is_void(tmp_path):
    local = LocalProfiler(settings=quick(control_timeout_s=0.1))
    local.attach()
    caught: list[BaseException] = []

    def control() -> None:
        try:
            local.start_profile(ProfileConfig(tmp_path), window=True)
        except ControlTimeoutError as error:
            caught.append(error)

    thread = threading.Thread(target=control)
    thread.start()
    thread.join()
    assert "has to call poll()" in str(caught[0])
    local.poll()
    assert local.profile_status().collection.state == "idle"
    assert local.close()


def test_native_profiler_refuses_another_thread():
    warm_up()
    native = TorchRecording("a test", ("cpu",))
    native.start()
    caught: list[BaseException] = []

    def stop() -> None:
        try:
            native.stop()
        except WrongThreadError as error:
            caught.append(error)

    thread = threading.Thread(target=stop)
    thread.start()
    thread.join()
    assert len(caught) == 1
    native.stop()
    native.stop()


# -- disks -----------------------------------------------------------------------------------------------


def _tmpfs(folder: Path, size: str) -> None:
    folder.mkdir()
    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root to mount a small tmpfs")
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True
    ).returncode:
        pytest.skip("a tmpfs cannot be mounted here")


def _fill(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(b"\0" * 4096)


def test_too_little_space_at_the_start_starts_nothing(profiling, tmp_path):
    disk = tmp_path / "disk"
    _tmpfs(disk, "2m")
    try:
        with pytest.raises(CaptureError, match="MiB free"):
            profiling.start_profile(ProfileConfig(disk), window=True)
        assert list(disk.iterdir()) == []
        assert profiling.profile_status().collection.state == "idle"
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_disk_that_fills_while_recording_costs_nothing(tmp_path):
    """The export goes to the spare disk; the archive follows when there is space."""
    disk, spare = tmp_path / "disk", tmp_path / "spare"
    _tmpfs(disk, "3m")
    settings = quick(min_free_bytes=1 << 20, spare_staging=(spare,))
    local = LocalProfiler(settings=settings)
    try:
        started = local.start_profile(ProfileConfig(disk), window=True)
        work(50)
        _fill(disk)
        status = local.stop_profile()
        assert any("short of space" in w for w in status.collection.warnings)
        local.wait_for_profile_artifacts(60)
        (artifact,) = local.profile_status().artifacts
        assert (artifact.state, artifact.stage) == ("failed", "pack")
        assert artifact.staging.startswith(str(spare))
        (disk / "ballast").unlink()
        assert local.close(60)
        (finished,) = recover(disk, settings=settings)
        assert finished.state == "published"
        session = tv.load(disk / started.collection.session_id)
        assert "aten::matmul" in set(session[0].operators()["name"])
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_export_onto_a_full_disk_is_noticed_though_torch_says_nothing(tmp_path):
    disk = tmp_path / "disk"
    _tmpfs(disk, "3m")
    local = LocalProfiler(settings=quick(min_free_bytes=1 << 20))
    try:
        local.start_profile(ProfileConfig(disk), window=True)
        work(200)
        _fill(disk)
        status = local.stop_profile()
        (artifact,) = status.artifacts
        assert (artifact.state, artifact.stage) == ("failed", "export")
        assert "is the disk full" in artifact.error
        assert "is the disk full" in status.collection.error
        assert status.artifact_state == "failed"
        local.close(10)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


# -- shared functions --------------------------------------------------------------------------------------


def test_the_four_functions_of_a_program_that_just_ends(tmp_path):
    """A program that forgets to wait: what it recorded is packed before it ends."""
    code = f"""
import torch
from torchtrt_viz.serving import ProfileConfig, engine_step, start_profile, profile_status
start_profile(ProfileConfig({str(tmp_path)!r}, warmup=0, active=3))
for _ in range(2):
    with engine_step():
        torch.ones(4) + 1
assert profile_status().collection.state == "recording"
"""
    done = _python(code)
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.iterdir()
    session = tv.load(folder)
    assert session.ranks["state"].tolist() == ["ok"]
    assert session.meta["manifests"][0].state == "complete"


# -- processes that share a session without a coordinator --------------------------------------------------


PROCESS = """
import sys
import torch
from torchtrt_viz.serving import LocalProfiler, ProfileConfig, RankIdentity

rank = int(sys.argv[1])
profiling = LocalProfiler(RankIdentity(rank=rank, world_size=3, host="h", pid=100 + rank))
profiling.start_profile(ProfileConfig(sys.argv[2]), window=True, session_id="shared")
torch.ones(3) + 1
profiling.stop_profile()
assert profiling.close(120)
"""


def test_independent_processes_complete_a_session_together(tmp_path):
    def record(rank: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", PROCESS, str(rank), str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True)

    for rank in (0, 2):
        assert record(rank).returncode == 0
    manifest = json.loads((tmp_path / "shared" / "manifest.json").read_text())
    assert [(r["rank"], r["state"], r["pid"]) for r in manifest["ranks"]] == [
        (0, "collected", 100),
        (1, "expected", None),
        (2, "collected", 102),
    ]
    assert (manifest["state"], manifest["incomplete_ranks"]) == ("collecting", [1])
    assert record(1).returncode == 0
    manifest = json.loads((tmp_path / "shared" / "manifest.json").read_text())
    assert (manifest["state"], manifest["incomplete_ranks"]) == ("complete", [])
    session = tv.load(tmp_path / "shared")
    assert session.ranks["state"].tolist() == ["ok", "ok", "ok"]


def test_two_processes_cannot_be_one_rank(tmp_path):
    first, second = (LocalProfiler(RankIdentity(rank=0, host="h", pid=pid), quick()) for pid in (100, 101))
    first.start_profile(ProfileConfig(tmp_path), window=True, session_id="mine")
    first.stop_profile()
    first.wait_for_profile_artifacts()
    with pytest.raises(OptionError, match=r"process 100 on h has recorded rank 0 of this session"):
        second.start_profile(ProfileConfig(tmp_path), window=True, session_id="mine")
    assert not second.profiler.recording
    assert first.close(60)
    assert second.close(60)
    ranks = json.loads((tmp_path / "mine" / "manifest.json").read_text())["ranks"]
    assert [(r["pid"], r["state"]) for r in ranks] == [(100, "collected")]


def test_steps_are_ranges_with_number_and_kind_and_idle_ones_are_none(tmp_path):
    profiling = LocalProfiler(settings=quick())
    profiling.attach()
    profiling.start_profile(ProfileConfig(tmp_path, warmup=0, active=6), session_id="steps")
    for kind in ("prefill", None, "decode", None, "mixed"):
        with profiling.engine_step() as step:
            torch.ones(8) + 1
            if kind is None:
                step.worked = False
            else:
                step.kind = kind
    with profiling.engine_step("decode"):
        torch.ones(8) + 1
    profiling.stop_profile()
    assert profiling.profile_status().collection.steps == 4
    assert profiling.close(60)
    table = tv.load(tmp_path / "steps").steps()
    assert list(zip(table["step"], table["step_kind"], strict=True)) == [
        (0, "prefill"),
        (1, "decode"),
        (2, "mixed"),
        (3, "decode"),
    ]


@pytest.mark.parametrize(
    "name", ["back\\slash", 'quo"te', "line\nbreak", "tab\there", "esc\x1b[31m", "plain name é"]
)
def test_folders_whose_names_torch_would_mangle(tmp_path, name):
    profiling = LocalProfiler(settings=quick())
    profiling.start_profile(ProfileConfig(tmp_path / name), window=True, session_id="s")
    torch.ones(3) + 1
    profiling.stop_profile()
    assert [a.state for a in profiling.wait_for_profile_artifacts()] == ["published"]
    assert profiling.close(60)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert "aten::add" in set(tv.load(tmp_path / name / "s").operators()["name"])


def test_a_clock_that_was_set_back_is_noted(tmp_path, monkeypatch):
    profiling = LocalProfiler(settings=quick())
    profiling.start_profile(ProfileConfig(tmp_path), window=True)
    now = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: now() - 3600 * 10**9)
    profiling.stop_profile()
    monkeypatch.undo()
    (warning,) = [w for w in profiling.profile_status().collection.warnings if "clock" in w]
    assert warning.startswith("this machine's clock was set back by 3")
    assert profiling.close(60)
