"""Run a measurement in a process of its own, within limits of time and memory, maybe elsewhere installed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

__all__ = ["DEFAULT_MEMORY", "DEFAULT_SECONDS", "has", "peers_pythons", "run"]

DEFAULT_SECONDS = 600.0
DEFAULT_MEMORY = 18e9  # bytes


def peers_pythons(options: list[str] | None) -> list[str]:
    """Return the interpreters that may have other libraries: those named, else the environment's one."""
    return options or [p for p in [os.environ.get("TORCHTRT_VIZ_PEERS_PYTHON")] if p]


def has(python: str, module: str) -> bool:
    """Say whether an interpreter can import a module."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], env=_environment(None), check=False).returncode == 0


def _environment(path: str | None) -> dict[str, str]:
    out = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return out if path is None else {**out, "PYTHONPATH": path}


def run(
    command: list[str],
    *,
    path: str | None = None,
    seconds: float = DEFAULT_SECONDS,
    memory: float = DEFAULT_MEMORY,
) -> dict[str, Any]:
    """Return the JSON that the last line of a command's output holds, or ``{"failed": reason}``.

    Parameters
    ----------
    path
        PYTHONPATH of the process; None for none, as a library in its own environment needs it.
    seconds, memory
        Wall time and resident bytes after which the process is ended; the reason says which.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors, env=_environment(path))
        reason = _watch(process, seconds, memory)
        out.seek(0)
        errors.seek(0)
        lines = out.read().decode("utf-8", "replace").strip().splitlines()
        complaint = errors.read().decode("utf-8", "replace").strip().splitlines()
    if reason is not None:
        return {"failed": reason}
    if process.returncode or not lines:
        return {"failed": complaint[-1] if complaint else f"status {process.returncode}"}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def _watch(process: subprocess.Popen[bytes], seconds: float, memory: float) -> str | None:
    """Wait for a process; return why it was ended, None when it ended itself."""
    limit = time.monotonic() + seconds
    while process.poll() is None:
        used = _resident(process.pid)
        reason = None
        if used > memory:
            reason = f"ended: more than {memory / 1e9:.3g} GB of memory"
        elif time.monotonic() > limit:
            reason = f"ended: not done after {seconds:.0f} s, {used / 1e9:.1f} GB of memory"
        if reason is not None:
            process.kill()
            process.wait()
            return reason
        time.sleep(0.05)
    return None


def _resident(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    found = next((line for line in lines if line.startswith("VmRSS")), "VmRSS: 0 kB")
    return int(found.split()[1]) * 1024
