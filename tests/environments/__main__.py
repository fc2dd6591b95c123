"""Install the built wheel as people do, and check it there: `python3 tests/environments`.

Four new environments: the package alone, everything, another release of torch, beside vLLM. The wheel is
built once, or given with `--wheel`. Environments are removed after their checks unless `--keep` is given;
logs stay where something failed. CONTRIBUTING.md says what to expect.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from environment import CommandFailed, Environment, cpu_seconds
from pip_log import fetched
from plans import PLANS, Subject

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Row:
    """A line of the table at the end."""

    name: str
    install_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    fetched_mb: float = 0.0
    installed_mb: float = 0.0
    result: str = ""


def say(text: str) -> None:
    print(text, flush=True)


def build(folder: Path, python: str, *, cache: bool) -> tuple[Path, Row]:
    """Build the wheel in an environment that pip makes for it."""
    say("wheel: building")
    begin, cpu = time.monotonic(), cpu_seconds()
    builder = Environment(folder / "builder", folder / "logs" / "wheel", python, cache=cache)
    out = folder / "wheel"
    options = ["-v", "--no-deps", "-w", str(out), *([] if cache else ["--no-cache-dir"])]
    said = builder.pip("wheel", *options, str(ROOT))
    shutil.rmtree(builder.folder)
    (wheel,) = out.glob("torchtrt_viz-*.whl")
    megabytes = sum(fetched(said).values())
    row = Row("wheel", 0, time.monotonic() - begin, cpu_seconds() - cpu, megabytes)
    return wheel, row


def check(name: str, subject: Subject, folder: Path, python: str, *, cache: bool, keep: bool) -> Row:
    """Make one environment, run its checks, and return its line of the table."""
    plan, row = PLANS[name], Row(name)
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < plan.needs_gb:
        row.result = f"not tried: needs {plan.needs_gb:g} GB of disk, {free_gb:.1f} are free in {folder}"
        say(f"{name}: {row.result}")
        return row
    say(f"{name}: {plan.what}")
    begin, cpu = time.monotonic(), cpu_seconds()
    place = folder / name
    failed: list[str] = []
    work = folder / "work" / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    environment = Environment(place, folder / "logs" / name, python, cache=cache)
    try:
        plan.make(environment, subject)
    except CommandFailed as error:
        failed.append("installation")
        say(f"  installation FAILED: {error}")
    else:
        row.install_s = environment.wall_s
        row.installed_mb = environment.megabytes()
        say(f"  installed in {row.install_s:.0f} s: {row.installed_mb:.0f} MB")
        for title, action in plan.checks:
            start = time.monotonic()
            try:
                found = action(environment, subject, work)
                say(f"  {title}: ok ({time.monotonic() - start:.0f} s){': ' + found if found else ''}")
            except CommandFailed as error:
                failed.append(title)
                say(f"  {title} FAILED: {error}")
    row.fetched_mb = sum(environment.files.values())
    row.wall_s, row.cpu_s = time.monotonic() - begin, cpu_seconds() - cpu
    row.result = f"failed: {', '.join(failed)}" if failed else f"ok, {len(plan.checks)} checks"
    if not keep:
        shutil.rmtree(place)
    return row


def table(rows: list[Row]) -> str:
    lines = ["| environment | install s | wall s | CPU s | to download MB | installed MB | result |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        numbers = (row.install_s, row.wall_s, row.cpu_s, row.fetched_mb, row.installed_mb)
        cells = [f"{number:,.0f}" if number else "" for number in numbers]
        lines.append(f"| {' | '.join([row.name, *cells, row.result])} |")
    return "\n".join(lines)


def test_tools() -> dict[str, str]:
    """The requirements of the package's own `test` extra, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["optional-dependencies"]["test"]
    return {re.split(r"[^\w.-]", requirement)[0]: requirement for requirement in wanted}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = "; ".join(f"{name}: {plan.what}, {plan.needs_gb:g} GB of disk" for name, plan in PLANS.items())
    parser.add_argument("--only", action="append", choices=list(PLANS), help=f"one environment ({what})")
    parser.add_argument("--wheel", type=Path, help="check this wheel instead of building one")
    parser.add_argument("--python", default=sys.executable, help="the interpreter (default: this one)")
    parser.add_argument("--torch", default="2.14", metavar="X.Y", help="the other release (default: 2.14)")
    parser.add_argument(
        "--folder", type=Path, help="where environments and logs go (default: a temporary one)"
    )
    parser.add_argument("--keep", action="store_true", help="leave the environments in the folder")
    parser.add_argument("--no-cache", action="store_true", help="download everything, as a new machine would")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    probe = [options.python, "-c", "import platform; print(platform.python_version())"]
    try:
        version = subprocess.run(probe, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"--python {options.python} is no Python that runs: {error}", file=sys.stderr)
        return 2
    if options.wheel and not options.wheel.is_file():
        print(f"--wheel {options.wheel} does not exist; without the option one is built", file=sys.stderr)
        return 2
    temporary = options.folder is None
    folder = Path(tempfile.mkdtemp(prefix="torchtrt-viz-environments-")) if temporary else options.folder
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    cache = not options.no_cache
    say(f"Python {version}; environments and logs in {folder}")
    rows: list[Row] = []
    if options.wheel:
        wheel = options.wheel.resolve()
        rows.append(Row("wheel", result="given"))
    else:
        try:
            wheel, row = build(folder, options.python, cache=cache)
        except CommandFailed as error:
            say(f"the wheel does not build: {error}")
            return 1
        rows.append(row)
    megabytes = wheel.stat().st_size / 1e6
    rows[0].result = f"{wheel.name}, {megabytes:.2f} MB"
    say(f"wheel: {rows[0].result}")
    subject = Subject(wheel, ROOT, options.torch, test_tools())
    for name in options.only or PLANS:
        rows.append(check(name, subject, folder, options.python, cache=cache, keep=options.keep))
    say(f"\n{table(rows)}")
    failed = any(row.name in PLANS and not row.result.startswith("ok") for row in rows)
    if failed:
        say(f"\nlogs: {folder / 'logs'}")
    elif temporary and not options.keep:
        shutil.rmtree(folder)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
