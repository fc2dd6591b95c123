"""How much of every loader, writer and analysis the tests reach without the reference files.

::

    python tests/support/coverage_without_shared.py [arguments of pytest]

runs the tests as in a clone that has no ../shared beside it, prints the modules of `ROOMS` with the share of
their lines that ran, the least first, and fails when a test fails or a module is below `LEAST`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "torchtrt_viz"
ROOMS = ("formats", "loading", "analysis")
LEAST = 80.0
# Captures, serving and exports take minutes and reach no line of these rooms that the others do not.
ABOUT = (
    *(
        "analysis",
        "catalogue",
        "etdump",
        "flight",
        "graphs",
        "hangs",
        "kineto",
        "nsys",
        "perfetto",
        "proton",
        "sample",
    ),
    *("session", "sqlite", "sums", "torchtrt", "trex", "trtexec", "xplane"),
)

SETTINGS = """
[run]
data_file = {data}
include =
    {include}
[report]
exclude_also = if TYPE_CHECKING:
"""


def default_tests() -> list[str]:
    integration = (ROOT / "tests" / "integration").glob("test_*.py")
    return ["tests/unit", *sorted(str(path) for path in integration if path.stem.split("_")[1] in ABOUT)]


def shares(folder: Path) -> dict[str, float]:
    """Return the percentage of lines that ran, by module."""
    report = folder / "report.json"
    settings = f"--rcfile={folder / 'settings'}"
    command = [sys.executable, "-m", "coverage", "json", settings, "-q", "-o", str(report)]
    subprocess.run(command, check=True)
    found = json.loads(report.read_text())["files"]
    ran = {Path(name).resolve(): one["summary"]["percent_covered"] for name, one in found.items()}
    modules = (path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))
    return {str(path.relative_to(ROOT)): ran.get(path, 0.0) for path in modules}


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        include = "\n    ".join(str(PACKAGE / room / "*") for room in ROOMS)
        (folder / "settings").write_text(SETTINGS.format(data=folder / "data", include=include))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "TORCHTRT_VIZ_SHARED": str(folder / "absent"),
        }
        coverage = [sys.executable, "-m", "coverage", "run", f"--rcfile={folder / 'settings'}"]
        tests = ["-m", "pytest", "-q", "-m", "not slow", *(arguments or default_tests())]
        failed = subprocess.run([*coverage, *tests], cwd=ROOT, env=environment).returncode
        found = sorted(shares(folder).items(), key=lambda item: item[1])
    for name, share in found:
        print(f"{share:6.1f} %  {name}")
    low = [name for name, share in found if share < LEAST]
    print(f"{len(found)} modules, {len(low)} of them below {LEAST:.0f} %")
    return int(bool(failed or low))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
