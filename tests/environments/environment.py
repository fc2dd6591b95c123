"""One virtual environment: made, filled by pip, measured, and used to run commands with a log each."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from pip_log import fetched

LIMIT_S = 1800
# Variables that would let something else in than what the environment holds.
_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV")


class CommandFailed(Exception):
    """A command failed; the message has the end of its log."""


def run(command: Sequence[str | Path], log: Path, environ: dict[str, str], cwd: Path) -> str:
    """Run a command, return what it printed (both streams, also in ``log``), raise `CommandFailed`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as stream:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=stream,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environ,
            cwd=cwd,
            start_new_session=True,
        )
        try:
            status: int | str = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            status = f"none after {LIMIT_S} s"
        finally:
            _end_what_is_left(process)
    text = log.read_text(errors="replace")
    if status != 0:
        tail = "\n".join("    " + line for line in text.splitlines()[-25:])
        raise CommandFailed(f"exit status {status}; the end of {log}:\n{tail}")
    return text


def _end_what_is_left(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def cpu_seconds() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Environment:
    """A new virtual environment in ``folder``; logs go into ``logs``."""

    def __init__(self, folder: Path, logs: Path, python: str, *, cache: bool) -> None:
        if (folder / "pyvenv.cfg").exists():
            shutil.rmtree(folder)
        self.folder = folder
        self.logs = logs
        self.files: dict[str, float] = {}
        self.wall_s = 0.0
        self._cache = cache
        self._count = 0
        self.environ = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
        self.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = self.environ["PIP_NO_INPUT"] = "1"
        self._run([python, "-m", "venv", folder], "venv")
        self.environ["PATH"] = f"{self.bin}{os.pathsep}{self.environ.get('PATH', os.defpath)}"

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        return self.bin / "python"

    def _run(self, command: Sequence[str | Path], name: str, cwd: Path | None = None) -> str:
        self._count += 1
        begin = time.monotonic()
        try:
            log = self.logs / f"{self._count:02d}-{name}.log"
            return run(command, log, self.environ, cwd or self.folder.parent)
        finally:
            self.wall_s += time.monotonic() - begin

    def install(self, *arguments: str, own: Path | None = None) -> None:
        """Let pip install; ``own`` is the wheel under test, which is not counted as fetched."""
        options = [] if self._cache else ["--no-cache-dir"]
        log = self._run([self.python, "-m", "pip", "install", *options, *arguments], "install")
        self.files |= fetched(log, own)

    def pip(self, *arguments: str, fail: bool = True) -> str:
        """Run another command of pip and return what it printed; ``fail=False`` takes any exit status."""
        try:
            return self._run([self.python, "-m", "pip", *arguments], f"pip-{arguments[0]}")
        except CommandFailed:
            if fail:
                raise
            return (self.logs / f"{self._count:02d}-pip-{arguments[0]}.log").read_text()

    def versions(self) -> dict[str, str]:
        """Installed packages and their versions."""
        listed = self.pip("list", "--format", "json")
        packages = json.loads(listed[listed.index("[") : listed.rindex("]") + 1])
        return {item["name"].replace("_", "-").lower(): item["version"] for item in packages}

    def call(self, *command: str | Path, name: str, cwd: Path | None = None) -> str:
        """Run a program of the environment."""
        first, *rest = command
        return self._run([self.bin / first, *rest], name, cwd)

    def megabytes(self) -> float:
        """Size of the environment on the disk."""
        files = (path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink())
        return sum(path.stat().st_size for path in files) / 1e6
