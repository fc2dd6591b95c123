"""Does to a recording what torch.profiler does not survive by itself, and prints what became of it.

``python profiler_failures.py USER FOLDER FAILURE...`` prints one line of JSON per failure. A user is one of
the ways in which this package records with torch.profiler; the test runs every failure against each.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

import torchtrt_viz as tv
from torchtrt_viz.errors import CaptureError

Outcome = dict[str, Any]


class Capture:
    """``torchtrt_viz.profile()``."""

    def __init__(self, folder: Path) -> None:
        tempfile.tempdir = str(folder)

    def start(self) -> None:
        self.capture = tv.profile(level="phases", activities="cpu").start()

    def stop(self) -> None:
        self.capture.stop()

    @property
    def running(self) -> bool:
        return self.capture.state == "running"

    def problem(self) -> str:
        return "; ".join(self.capture.problems)

    def recorded(self) -> set[str]:
        return set(self.capture.trace.spans["name"].astype(str))

    def place(self) -> str:
        return self.capture._artifacts().name


# The archives of sessions are made in processes of their own, and tested elsewhere; it takes seconds each.
LEAVE_STAGED = not any(name.startswith("exit") for name in sys.argv)


def _leave_staged(stage: str, job: Any) -> None:
    raise RuntimeError("the test reads what is staged")


class Window:
    """A session from start to stop of an engine in this process."""

    window = True

    def __init__(self, folder: Path) -> None:
        from torchtrt_viz.serving import LocalProfiler, ProfileConfig, Settings

        self.folder = folder
        settings = Settings(control_timeout_s=0.5, spare_staging=(), niceness=0, min_free_bytes=0)
        self.local = LocalProfiler(settings=settings, on_stage=_leave_staged if LEAVE_STAGED else None)
        self.local.attach()
        self.config = ProfileConfig(folder)

    def start(self) -> None:
        self.status = self.local.start_profile(self.config, window=self.window)
        self.steps(2)

    def steps(self, count: int) -> None:
        for _ in range(count):
            with self.local.engine_step():
                torch.ones(3).mul(2)

    def stop(self) -> None:
        self.status = self.local.stop_profile()

    @property
    def running(self) -> bool:
        return self.local.profile_status().collection.state == "recording"

    def problem(self) -> str:
        return self.local.profile_status().collection.error or ""

    def recorded(self) -> set[str]:
        session = self.local.profile_status().collection.session_id
        found = [a for a in self.local.wait_for_profile_artifacts(100) if a.session_id == session]
        paths = [Path(str(artifact.staging)) / "raw" / "trace.json" for artifact in found]
        return {event["name"] for path in paths for event in json.loads(path.read_text())["traceEvents"]}

    def place(self) -> str:
        return str(self.folder / str(self.status.collection.session_id))


class Steps(Window):
    """A session by a schedule of steps, in its recorded steps."""

    window = False

    def __init__(self, folder: Path) -> None:
        from torchtrt_viz.serving import ProfileConfig

        super().__init__(folder)
        self.config = ProfileConfig(folder, warmup=1, active=50)


USERS: dict[str, Callable[[Path], Any]] = {"capture": Capture, "window": Window, "steps": Steps}


# -- other people's profilers ----------------------------------------------------------------------------


def theirs(**options: Any) -> profile:
    return profile(activities=[ProfilerActivity.CPU], **options)


def names(profiler: profile, folder: Path) -> set[str]:
    path = folder / "theirs.json"
    path.unlink(missing_ok=True)
    profiler.export_chrome_trace(str(path))
    return {event["name"] for event in json.loads(path.read_text())["traceEvents"]}


class Elsewhere:
    """Another thread, which runs what it is given."""

    def __init__(self) -> None:
        self._todo: queue.Queue[Callable[[], Any] | None] = queue.Queue()
        self._done: queue.Queue[Any] = queue.Queue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (function := self._todo.get()) is not None:
            try:
                self._done.put(function())
            except Exception as error:
                self._done.put(error)

    def __call__(self, function: Callable[[], Any]) -> Any:
        self._todo.put(function)
        return self._done.get()

    def end(self) -> None:
        self._todo.put(None)
        self.thread.join()


def refused(function: Callable[[], Any]) -> str:
    try:
        function()
    except CaptureError as error:
        return f"{type(error).__name__}: {error}"
    return ""


# -- failures --------------------------------------------------------------------------------------------


def second_start(user: Any, folder: Path) -> Outcome:
    user.start()
    said = [refused(user.start if not isinstance(user, Capture) else tv.profile(activities="cpu").start)]
    other = Window(folder / "other") if isinstance(user, Capture) else Capture(folder / "other")
    (folder / "other").mkdir(exist_ok=True)
    said.append(refused(other.start))
    torch.ones(3).add(1)
    user.stop()
    return {"said": said, "recorded": user.recorded()}


def theirs_inside(user: Any, folder: Path) -> Outcome:
    user.start()
    with theirs() as other:
        torch.ones(3).add(1)
    user.stop()
    return {"theirs": names(other, folder)}


def theirs_inside_still_running(user: Any, folder: Path) -> Outcome:
    user.start()
    other = theirs()
    other.start()
    user.stop()
    problem = user.problem()
    said = refused(user.start)
    torch.ones(3).add(1)
    other.stop()
    return {"theirs": names(other, folder), "problem": problem, "said": [said]}


def theirs_inside_seen_while_it_runs(user: Any, folder: Path) -> Outcome:
    """The engine goes on with its steps before anybody stops the session."""
    user.start()
    with theirs():
        torch.ones(3).add(1)
        user.steps(2)
    user.steps(2)
    running = user.running
    user.stop()
    return {"running": running, "ended_by": user.status.collection.ended_by}


def theirs_on_another_thread(user: Any, folder: Path) -> Outcome:
    elsewhere, other = Elsewhere(), theirs()
    user.start()
    elsewhere(other.start)
    elsewhere(lambda: torch.ones(3).add(1))
    elsewhere(other.stop)
    user.stop()
    return {"theirs": names(other, folder)}


def theirs_on_another_thread_still_running(user: Any, folder: Path) -> Outcome:
    elsewhere, other = Elsewhere(), theirs()
    user.start()
    elsewhere(other.start)
    user.stop()
    problem = user.problem()
    said = refused(user.start)
    elsewhere(lambda: torch.ones(3).add(1))
    elsewhere(other.stop)
    return {"theirs": names(other, folder), "problem": problem, "said": [said]}


def theirs_warming_up_inside(user: Any, folder: Path) -> Outcome:
    other = theirs(schedule=schedule(wait=0, warmup=1, active=1, repeat=1))
    user.start()
    other.start()
    user.stop()
    problem = user.problem()
    said = refused(user.start)
    other.step()
    torch.ones(3).add(1)
    other.step()
    return {"theirs": names(other, folder), "problem": problem, "said": [said]}


def theirs_stopped_again_inside(user: Any, folder: Path) -> Outcome:
    other = theirs()
    other.start()
    other.stop()
    user.start()
    other.stop()
    user.stop()
    return {}


def theirs_before(user: Any, folder: Path) -> Outcome:
    with theirs() as other:
        torch.ones(3).add(1)
        said = refused(user.start)
        torch.ones(3).div(1)
    return {"theirs": names(other, folder), "said": [said], "problem": ""}


def theirs_warming_up_before(user: Any, folder: Path) -> Outcome:
    other = theirs(schedule=schedule(wait=0, warmup=1, active=1, repeat=1))
    other.start()
    said = refused(user.start)
    other.step()
    torch.ones(3).add(1)
    other.step()
    return {"theirs": names(other, folder), "said": [said], "problem": ""}


def stopped_twice(user: Any, folder: Path) -> Outcome:
    user.start()
    torch.ones(3).add(1)
    user.stop()
    user.stop()
    return {"recorded": user.recorded()}


def stopped_on_another_thread(user: Any, folder: Path) -> Outcome:
    user.start()
    said = Elsewhere()(lambda: refused(user.stop))
    running = user.running
    torch.ones(3).add(1)
    user.stop()
    return {"said": [said], "running": running, "recorded": user.recorded()}


def stepped_on_another_thread(user: Any, folder: Path) -> Outcome:
    user.start()
    before = user.local.profile_status().collection.steps
    said = Elsewhere()(lambda: refused(user.local.profiler.advance))
    counted = user.local.profile_status().collection.steps - before
    torch.ones(3).add(1)
    user.steps(1)
    user.stop()
    return {"said": [said], "counted": counted, "recorded": user.recorded()}


def started_on_a_thread_that_ended(user: Any, folder: Path) -> Outcome:
    elsewhere = Elsewhere()
    if not isinstance(user, Capture):
        elsewhere(user.local.attach)
    elsewhere(user.start)
    elsewhere.end()
    if not isinstance(user, Capture):
        user.local.attach()
    user.stop()
    return {}


@contextlib.contextmanager
def broken_export(error: BaseException) -> Iterator[None]:
    original = profile.export_chrome_trace

    def fail(self: profile, path: str, *more: Any) -> None:
        raise error

    profile.export_chrome_trace = fail
    try:
        yield
    finally:
        profile.export_chrome_trace = original


def exception_in_the_callback(user: Any, folder: Path) -> Outcome:
    user.start()
    with broken_export(ValueError("made to fail")):
        user.stop()
    return {}


def interrupt_in_the_callback(user: Any, folder: Path) -> Outcome:
    user.start()
    raised = ""
    with broken_export(KeyboardInterrupt()):
        try:
            user.stop()
        except KeyboardInterrupt:
            raised = "KeyboardInterrupt"
    user.stop()
    return {"said": [raised]}


def missing_folder(user: Any, folder: Path) -> Outcome:
    user.start()
    torch.ones(3).add(1)
    # in one go: a session's manifest may be written at the same time
    os.rename(user.place(), folder / f"gone-{time.monotonic_ns()}")
    user.stop()
    return {}


def full_disk(user: Any, folder: Path) -> Outcome:
    """A limit on the size of files makes the system refuse to write on, as a full disk does."""
    user.start()
    for _ in range(2000):
        torch.ones(3).add(1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, before[1]))
    try:
        user.stop()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return {}


def files_under(place: str) -> set[str]:
    """Without those of a write that goes on: a thread may write a session's manifest at any time."""
    return {str(path) for path in Path(place).rglob("*") if not path.name.startswith(".")}


def fork_while_recording(user: Any, folder: Path) -> Outcome:
    user.start()
    torch.ones(3).add(1)
    place = user.place()
    before = files_under(place)
    child = os.fork()
    if child == 0:
        # all that Python does when a process ends; torch's own end hangs in a fork after any profiler's use
        signal.alarm(60)
        code = 1
        try:
            torch.ones(3).div(1)
            user.stop()
            user.start()  # a fork may record for itself
            torch.ones(3).sub(1)
            user.stop()
            assert "aten::sub" in user.recorded(), user.problem()
            del user
            atexit._run_exitfuncs()
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    after = files_under(place)
    torch.ones(3).add(1)
    user.stop()
    return {"child": code, "untouched": before <= after, "recorded": user.recorded()}


# -- schedules only ----------------------------------------------------------------------------------------


def scheduled(user: Any, **numbers: int) -> None:
    from torchtrt_viz.serving import ProfileConfig

    user.local.start_profile(ProfileConfig(user.folder, **numbers))


def theirs_in_the_wait(user: Any, folder: Path) -> Outcome:
    """Nothing of the session is in torch then, so that both record."""
    scheduled(user, wait=3, warmup=1, active=2)
    with theirs() as other:
        user.steps(1)
        torch.ones(3).add(1)
    user.steps(5)
    return {"theirs": names(other, folder), "recorded": user.recorded()}


def theirs_when_the_wait_is_over(user: Any, folder: Path) -> Outcome:
    scheduled(user, wait=1, warmup=1, active=2)
    with theirs() as other:
        user.steps(3)
        torch.ones(3).add(1)
    user.stop()
    return {"theirs": names(other, folder)}


def theirs_in_the_warmup(user: Any, folder: Path) -> Outcome:
    scheduled(user, wait=0, warmup=2, active=2)
    with theirs() as other:
        torch.ones(3).add(1)
    user.steps(4)
    user.stop()
    return {"theirs": names(other, folder)}


def theirs_in_the_second_cycle(user: Any, folder: Path) -> Outcome:
    scheduled(user, wait=0, warmup=1, active=2, repeat=2)
    user.steps(4)
    with theirs():
        torch.ones(3).add(1)
    user.steps(4)
    user.stop()
    return {"recorded": user.recorded(), "cycles": user.status.collection.cycles}


# -- the end of the process --------------------------------------------------------------------------------


def exit_while_recording(user: Any, folder: Path) -> Outcome:
    user.start()
    torch.ones(3).add(1)
    return {}


def exit_with_a_lost_recording(user: Any, folder: Path) -> Outcome:
    elsewhere, other = Elsewhere(), theirs()
    user.start()
    elsewhere(other.start)
    elsewhere(other.stop)
    return {}


def exit_while_another_thread_records(user: Any, folder: Path) -> Outcome:
    elsewhere = Elsewhere()
    if not isinstance(user, Capture):
        elsewhere(user.local.attach)
    elsewhere(user.start)
    return {}


def exit_after_the_recording_thread(user: Any, folder: Path) -> Outcome:
    elsewhere = Elsewhere()
    if not isinstance(user, Capture):
        elsewhere(user.local.attach)
    elsewhere(user.start)
    elsewhere.end()
    return {}


def main() -> None:
    folder = Path(sys.argv[2])
    user = USERS[sys.argv[1]](folder)
    for name in sys.argv[3:]:
        outcome = globals()[name](user, folder)
        if not name.startswith("exit"):
            outcome.setdefault("problem", user.problem())
            user.start()
            torch.ones(3).sub(1)
            user.stop()
            outcome["again"] = "aten::sub" in user.recorded()
        print(json.dumps({"failure": name, **outcome}, default=sorted), flush=True)


if __name__ == "__main__":
    main()
