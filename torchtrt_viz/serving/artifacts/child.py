"""Work on a job's files in a lean process of low priority, watched by the job's thread.

Steps that hold the interpreter for long (making tables, reading an archive back) run there, so that the
engine's threads never wait for them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from torchtrt_viz.errors import CaptureError
from torchtrt_viz.serving.artifacts.slots import parse_slot
from torchtrt_viz.serving.contract.settings import Settings

__all__ = ["ask"]

_MAIN = Path(__file__).with_name("child_main.py")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_STDERR_SHOWN = 2000


def ask(step: str, path: str, settings: Settings, doing: str) -> dict[str, Any]:
    """Run a step in another process; return its answer.

    Parameters
    ----------
    step
        Name of a step of ``child_main.py``.
    path
        The file or folder it works on.
    doing
        What messages call the step.

    Raises
    ------
    CaptureError
        When the step failed, or the process died or took too long. The files are untouched.
    """
    with parse_slot(settings.parallel_parses, settings.parse_timeout_s):
        return _run(step, path, settings, doing)


def _memory_limit(settings: Settings) -> int:
    if settings.parse_memory_bytes is not None:
        return settings.parse_memory_bytes
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _run(step: str, path: str, settings: Settings, doing: str) -> dict[str, Any]:
    root = str(Path(__file__).resolve().parents[3])
    request = {
        "step": step,
        "path": path,
        "doing": doing,
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
            f"{doing} took more than {settings.parse_timeout_s:g} s and was given up"
        ) from error
    except OSError as error:
        raise CaptureError(f"the process for {doing} could not be started: {error}") from error
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise CaptureError(f"the process for {doing} was ended by {name} (out of memory?)")
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        said = done.stderr.decode(errors="replace")[-_STDERR_SHOWN:].strip()
        raise CaptureError(f"the process for {doing} failed with status {done.returncode}: {said}") from error
    if "error" in answer:
        raise CaptureError(str(answer["error"]))
    return answer
