"""Places for parsers on one machine: counted over threads and processes, and never lost with a killed one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from fake_clock import FakeClock

from torchtrt_viz.serving.artifacts import slots as module
from torchtrt_viz.serving.artifacts.slots import parse_slot

HOLDER = """
import os, sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from torchtrt_viz.serving.artifacts.slots import parse_slot
with parse_slot(1, 60):
    if sys.argv[2] == "fork" and os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(60)
        os._exit(0)
    if sys.argv[2] == "alone":
        print(0, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "time", FakeClock())  # who waits in vain gives up at once
    return tmp_path


def _free(slots: int) -> bool:
    """Whether a place is free: another thread looks, as locks do not keep a process from itself."""
    before = set(_held())
    found: list[bool] = []

    def look() -> None:
        with parse_slot(slots, 1.0):
            found.append(set(_held()) != before)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


def _held() -> set[str]:
    return set(module._mine)


def test_threads_of_one_process_share_the_places() -> None:
    with parse_slot(2, 60):
        assert _free(2)
        assert not _free(1)
        with parse_slot(2, 60):
            assert not _free(2)
    assert _free(1)


@pytest.mark.parametrize("how", ["alone", "fork"])
def test_a_killed_process_gives_its_place_back(own_folder: Path, how: str) -> None:
    """Also while a child that it forked lives on."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(own_folder), how], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        try:
            assert not _free(1)
            holder.kill()
            holder.wait()
            assert _free(1)
        finally:
            if child:
                os.kill(child, signal.SIGKILL)


def test_without_a_place_it_goes_on_after_the_timeout() -> None:
    with parse_slot(1, 60), parse_slot(1, 0.1):
        assert not _free(1)
