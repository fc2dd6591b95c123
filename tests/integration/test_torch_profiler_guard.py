"""What torch.profiler does not survive by itself, done to a capture and to serving's sessions.

Each failure runs in a process of its user, since a crash is what torch answers most of them with, and several
run one after the other there: a recording that follows has to work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import torchtrt_viz as tv

pytest.importorskip("torch", reason="needs torch")

SCRIPT = Path(__file__).parents[1] / "support" / "profiler_failures.py"
USERS = ("capture", "window", "steps")
SERVING = ("window", "steps")

SURVIVED = (
    "second_start",
    "theirs_inside",
    "theirs_inside_still_running",
    "theirs_on_another_thread",
    "theirs_on_another_thread_still_running",
    "theirs_warming_up_inside",
    "theirs_stopped_again_inside",
    "theirs_before",
    "theirs_warming_up_before",
    "stopped_twice",
    "stopped_on_another_thread",
    "exception_in_the_callback",
    "interrupt_in_the_callback",
    "missing_folder",
    "full_disk",
    "fork_while_recording",
    "started_on_a_thread_that_ended",
)
STEPS_ONLY = (
    "stepped_on_another_thread",
    "theirs_in_the_wait",
    "theirs_when_the_wait_is_over",
    "theirs_in_the_warmup",
    "theirs_in_the_second_cycle",
)


def run(user: str, folder: Path, *failures: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    source = str(Path(tv.__file__).parents[1])
    return subprocess.run(
        [sys.executable, str(SCRIPT), user, str(folder), *failures],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONPATH": source},
    )


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What became of a failure: of one user all run in one process, and after a crash the rest in another."""

    @cache
    def outcomes(user: str) -> dict[str, Any]:
        left = [*SURVIVED]
        left += {"window": ["theirs_inside_seen_while_it_runs"], "steps": [*STEPS_ONLY]}.get(user, [])
        if user == "steps":
            left.append("theirs_inside_seen_while_it_runs")
        found: dict[str, Any] = {}
        while left:
            done = run(user, tmp_path_factory.mktemp("guard") / user, *left)
            lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"failure"')]
            found.update((line["failure"], line) for line in lines)
            if done.returncode == 0:
                break
            if len(lines) == len(left):
                pytest.fail(f"the process of {user} ended with {done.returncode}: {done.stderr[-3000:]}")
            found[left[len(lines)]] = f"ended with {done.returncode}: {done.stderr[-3000:]}"
            left = left[len(lines) + 1 :]
        return found

    def of(user: str, failure: str) -> dict[str, Any]:
        result = outcomes(user)[failure]
        assert isinstance(result, dict), f"{failure}, {user}: {result}"
        assert result["again"], f"{failure}, {user}: the next recording is empty"
        return result

    return of


@pytest.mark.parametrize("user", USERS)
def test_a_second_start_is_refused_and_the_first_goes_on(outcome, user):
    found = outcome(user, "second_start")
    for said in found["said"]:
        assert said.startswith(("CaptureActiveError", "ProfileActiveError"))
    assert "aten::add" in found["recorded"]
    assert found["problem"] == ""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("where", ["theirs_inside", "theirs_on_another_thread"])
def test_another_profiler_inside_takes_the_session_and_the_loss_is_told(outcome, user, where):
    found = outcome(user, where)
    assert "another torch.profiler session was started and stopped inside" in found["problem"]
    assert "aten::add" in found["theirs"]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    "where",
    [
        "theirs_inside_still_running",
        "theirs_on_another_thread_still_running",
        "theirs_warming_up_inside",
    ],
)
def test_another_profiler_that_goes_on_keeps_the_session(outcome, user, where):
    found = outcome(user, where)
    assert "another torch.profiler session was started inside" in found["problem"]
    (said,) = found["said"]
    assert "not started through this package" in said
    assert "aten::add" in found["theirs"]


@pytest.mark.parametrize("user", SERVING)
def test_a_session_that_lost_its_recording_ends_at_the_engines_next_step(outcome, user):
    found = outcome(user, "theirs_inside_seen_while_it_runs")
    assert not found["running"]
    assert found["ended_by"] == "lost"
    assert "another torch.profiler session was started" in found["problem"]


@pytest.mark.parametrize("user", USERS)
def test_a_second_stop_of_another_profiler_is_told(outcome, user):
    found = outcome(user, "theirs_stopped_again_inside")
    assert "another torch.profiler session was stopped inside" in found["problem"]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("when", ["theirs_before", "theirs_warming_up_before"])
def test_a_profiler_that_runs_already_is_not_robbed(outcome, user, when):
    found = outcome(user, when)
    (said,) = found["said"]
    assert said.startswith("CaptureActiveError" if user == "capture" else "ProfileActiveError")
    assert "not started through this package" in said
    assert "aten::add" in found["theirs"]


@pytest.mark.parametrize("user", USERS)
def test_a_second_stop_does_nothing(outcome, user):
    found = outcome(user, "stopped_twice")
    assert found["problem"] == ""
    assert "aten::add" in found["recorded"]


@pytest.mark.parametrize("user", USERS)
def test_a_stop_on_another_thread_is_refused_and_loses_nothing(outcome, user):
    found = outcome(user, "stopped_on_another_thread")
    (said,) = found["said"]
    # serving asks the engine's thread to do it, which does not look in time here
    assert said.startswith("WrongThreadError" if user == "capture" else "ControlTimeoutError")
    assert found["running"]
    assert "aten::add" in found["recorded"]
    assert found["problem"] == ""


def test_a_step_on_another_thread_is_refused_and_loses_nothing(outcome):
    found = outcome("steps", "stepped_on_another_thread")
    (said,) = found["said"]
    assert said.startswith("WrongThreadError")
    assert found["counted"] == 0
    assert "aten::add" in found["recorded"]


@pytest.mark.parametrize("user", USERS)
def test_the_end_of_the_recording_thread_is_told(outcome, user):
    found = outcome(user, "started_on_a_thread_that_ended")
    assert "the thread that it was recorded on has ended" in found["problem"]


@pytest.mark.parametrize("user", USERS)
def test_an_exception_in_the_callback_is_told(outcome, user):
    found = outcome(user, "exception_in_the_callback")
    assert "torch could not export the trace: made to fail" in found["problem"]


@pytest.mark.parametrize("user", USERS)
def test_an_interrupt_in_the_callback_is_raised_when_torch_is_safe(outcome, user):
    found = outcome(user, "interrupt_in_the_callback")
    assert found["said"] == ["KeyboardInterrupt"]
    assert "the export was interrupted by KeyboardInterrupt" in found["problem"]


@pytest.mark.parametrize("user", USERS)
def test_an_export_into_a_missing_folder_is_told(outcome, user):
    assert "no file was written" in outcome(user, "missing_folder")["problem"]


@pytest.mark.parametrize("user", USERS)
def test_an_export_that_the_disk_does_not_take_is_told(outcome, user):
    assert "is the disk full" in outcome(user, "full_disk")["problem"]


@pytest.mark.parametrize("user", USERS)
def test_a_fork_ends_without_touching_the_recording(outcome, user):
    found = outcome(user, "fork_while_recording")
    assert found["child"] == 0
    assert found["untouched"]
    assert "aten::add" in found["recorded"]
    assert "aten::div" not in found["recorded"]
    assert found["problem"] == ""


# -- schedules -------------------------------------------------------------------------------------------


def test_another_profiler_in_the_wait_disturbs_nobody(outcome):
    found = outcome("steps", "theirs_in_the_wait")
    assert found["problem"] == ""
    assert "ProfilerStep#5" in found["recorded"]
    assert "aten::add" in found["theirs"]


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("theirs_when_the_wait_is_over", "was running when this one was to begin"),
        ("theirs_in_the_warmup", "was started and stopped inside"),
    ],
)
def test_another_profiler_around_the_warmup_costs_the_session_only(outcome, when, why):
    found = outcome("steps", when)
    assert why in found["problem"]
    assert "aten::add" in found["theirs"]


def test_cycles_before_the_loss_are_kept(outcome):
    found = outcome("steps", "theirs_in_the_second_cycle")
    assert found["cycles"] == 1
    assert "ProfilerStep#2" in found["recorded"]
    assert "another torch.profiler session was started and stopped inside" in found["problem"]


# -- the end of the process ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "how"),
    [
        *((user, "exit_while_recording") for user in USERS),
        *((user, "exit_with_a_lost_recording") for user in ("capture", "window")),
        *((user, "exit_while_another_thread_records") for user in ("capture", "window")),
        *((user, "exit_after_the_recording_thread") for user in ("capture", "window")),
    ],
)
def test_the_process_may_end_while_it_records(tmp_path, user, how):
    done = run(user, tmp_path / "run", how)
    assert done.returncode == 0, done.stderr[-3000:]
    if how == "exit_while_recording" and user != "capture":  # a local profiler is closed in time
        session = tv.load(next(path for path in (tmp_path / "run").iterdir() if path.is_dir()))
        assert "aten::add" in set(session[0].operators()["name"])
    elif how != "exit_with_a_lost_recording":
        assert "the process ends while" in done.stderr
        assert "what torch recorded is lost" in done.stderr
