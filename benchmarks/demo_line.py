"""What the README's demo command takes, by parts: `python benchmarks/demo_line.py`, on Debian, as root.

The command is read from the README and run in a new clone of this checkout's last commit, with an empty
cache of pip. Its `apt-get` installs only what the machine lacks; the table says how many packages that
were. pip's own parts are told from what it prints; CPU time is known for whole commands only.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET_S = 240
# (what begins, how pip announces it); a part lasts until the next one begins
PARTS = (
    ("download and resolve", re.compile(r"^(?:Processing|Looking in) ")),
    ("install build requirements", re.compile(r"Installing build dependencies: started")),
    ("download and resolve", re.compile(r"Installing build dependencies: finished")),
    ("compile", re.compile(r"Building wheel for torchtrt.viz .*: started")),
    ("unpack", re.compile(r"^Installing collected packages")),
)
DOWNLOADED = re.compile(r"^\s*Downloading \S+ \(([\d.]+) (bytes|kB|MB|GB)\)")
LOCAL = re.compile(r"^\s*Processing (/\S+\.whl)")
MEGABYTES = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}


def demo_command(readme: Path) -> list[str]:
    found = re.search(r"<!-- demo command -->\s*```bash\n(.+?)\n```", readme.read_text(), re.DOTALL)
    assert found is not None, f"{readme} has no demo command"
    return [part.strip() for part in found[1].split("&&")]


class Run:
    """The commands of the line, and the wall time of each part."""

    def __init__(self, folder: Path, log: Path) -> None:
        self.clone = folder / "clone"
        self.environ = {
            **{key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")},
            "PIP_CACHE_DIR": str(folder / "cache"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "DEBIAN_FRONTEND": "noninteractive",
        }
        self.log = log.open("w")
        self.rows: list[tuple[str, float, float | None, str]] = []
        subprocess.run(["git", "clone", "-q", str(ROOT), str(self.clone)], check=True)

    def command(self, command: str) -> None:
        """Run one command; raise SystemExit with the end of its output when it fails."""
        before, begin = os.times(), time.monotonic()
        marks: list[tuple[str, float]] = []
        lines: list[str] = []
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.clone,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        for line in process.stdout:
            self.log.write(line)
            self.log.flush()
            lines.append(line)
            if "pip install" in command:
                new = next((part for part, mark in PARTS if mark.search(line)), None)
                if new is not None and (not marks or marks[-1][0] != new):
                    marks.append((new, time.monotonic()))
        if process.wait():
            raise SystemExit(f"failed with {process.returncode}: {command}\n{''.join(lines[-25:])}")
        end, after = time.monotonic(), os.times()
        cpu = sum(after[2:4]) - sum(before[2:4])
        self.rows.append((command.split(" -o ")[0], end - begin, cpu, _note(command, lines)))
        parts: dict[str, float] = {}
        for (part, start), (_, stop) in zip(marks, [*marks[1:], ("", end)], strict=True):
            parts[part] = parts.get(part, 0.0) + stop - start
        self.rows.extend((f"... {part}", seconds, None, "") for part, seconds in parts.items())


def _note(command: str, lines: list[str]) -> str:
    if "pip install" in command:
        sizes = [DOWNLOADED.match(line) for line in lines]
        fetched = sum(float(size[1]) * MEGABYTES[size[2]] for size in sizes if size is not None)
        local = {found[1] for line in lines if (found := LOCAL.match(line)) and Path(found[1]).is_file()}
        on_disk = sum(Path(path).stat().st_size for path in local) / 1e6
        return f"{fetched:.0f} MB downloaded" + (f", {on_disk:.0f} MB from local files" if local else "")
    new = next((line for line in lines if "newly installed" in line), "")
    return new.strip()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="where it runs (default: a temporary folder, removed)")
    parser.add_argument("--no-apt", action="store_true", help="leave the apt-get commands out")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="torchtrt-viz-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "demo_line.log"
    run = Run(folder, log)
    commands = demo_command(run.clone / "README.md")
    if options.no_apt:
        commands = [command for command in commands if not command.startswith("apt-get")]
    begin, load = time.monotonic(), os.getloadavg()[0]
    for command in commands:
        print(f"+ {command}", flush=True)
        run.command(command)
    whole = time.monotonic() - begin
    print(f"\n{'part':60} {'wall s':>7} {'CPU s':>7}")
    for name, wall, cpu, note in run.rows:
        print(f"{name[:60]:60} {wall:7.1f} {'' if cpu is None else format(cpu, '.1f'):>7}  {note}")
    print(f"{'whole line':60} {whole:7.1f}          target {TARGET_S} s on two cores")
    print(f"{os.cpu_count()} cores; load average {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    if options.folder is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
