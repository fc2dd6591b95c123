"""The parsing step of a job: a lean process of low priority, watched by the job's thread."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from torchtrt_viz.errors import CaptureError
from torchtrt_viz.serving.settings import Settings
from torchtrt_viz.serving.slots import parse_slot
from torchtrt_viz.serving.staging import Job

__all__ = ["parse"]

_MAIN = Path(__file__).with_name("parse_main.py")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_STDERR_SHOWN = 2000


def parse(job: Job, settings: Settings) -> dict[str, Any]:
    """Make the job's tables in another process; return what that process says about them.

    Raises
    ------
    CaptureError
        When the trace cannot be parsed, or the process died or took too long. The exported trace is
        untouched.
    """
    with parse_slot(settings.parallel_parses, settings.parse_timeout_s):
        return _run(job, settings)


def _memory_limit(settings: Settings) -> int:
    if settings.parse_memory_bytes is not None:
        return settings.parse_memory_bytes
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _run(job: Job, settings: Settings) -> dict[str, Any]:
    root = str(Path(__file__).resolve().parents[2])
    request = {
        "folder": str(job.folder),
        "sys_path": [root, *(p for p in sys.path if p and p != root)],
        "niceness": settings.niceness,
        "memory_bytes": _memory_limit(settings),
        "parent": os.getpid(),
    }
    environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1")}
    try:
        done = subprocess.run(
            [sys.executable or "python3", "-I", str(_MAIN)],
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=settings.parse_timeout_s,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CaptureError(
            f"parsing took more than {settings.parse_timeout_s:g} s and was given up"
        ) from error
    except OSError as error:
        raise CaptureError(f"the parsing process could not be started: {error}") from error
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise CaptureError(f"the parsing process was ended by {name} (out of memory?)")
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        said = done.stderr.decode(errors="replace")[-_STDERR_SHOWN:].strip()
        raise CaptureError(f"the parsing process failed with status {done.returncode}: {said}") from error
    if "error" in answer:
        raise CaptureError(str(answer["error"]))
    return answer
