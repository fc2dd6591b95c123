"""CPU time until the first answer in a new process: `python benchmarks/startup.py`.

The command line's help, the bare import, and the first `load()` of small files of three formats, from the
start of the interpreter to its end. Each figure is the least of fresh processes, which run in turn, after
one of each that warms the file system's caches. `pandas` is imported alone for comparison: loading cannot
take less.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass, field
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
LOAD = "import sys, torchtrt_viz as tv; assert len(tv.load(sys.argv[1]).spans)"


@dataclass
class Step:
    command: list[str]
    target_s: float | None = None
    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)

    def run(self) -> None:
        before, begin = os.times(), time.perf_counter()
        subprocess.run(self.command, stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        self.wall_s.append(time.perf_counter() - begin)
        self.cpu_s.append(sum(after[2:4]) - sum(before[2:4]))


def steps() -> dict[str, Step]:
    python = sys.executable
    script = Path(sysconfig.get_path("scripts")) / "trtprofile"
    help_ = [str(script)] if script.is_file() else [python, "-m", "torchtrt_viz"]
    load = [python, "-c", LOAD]
    return {
        "python -c pass": Step([python, "-c", "pass"]),
        "trtprofile --help": Step([*help_, "--help"], 0.15),
        "import torchtrt_viz": Step([python, "-c", "import torchtrt_viz"], 0.1),
        "import pandas": Step([python, "-c", "import pandas"]),
        "load() of trace-event JSON": Step([*load, str(SAMPLES / "eager.pt.trace.json")], 1.0),
        "load() of an ETDump": Step([*load, str(SAMPLES / "demo_capture" / "demo.etdp")], 1.0),
        "load() of a TREX set": Step([*load, str(SAMPLES / "trex")], 1.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="processes for each figure (default: 7)")
    runs = parser.parse_args().runs
    found = steps()
    for step in found.values():
        step.run()
        step.cpu_s.clear()
        step.wall_s.clear()
    for _ in range(runs):
        for step in found.values():
            step.run()
    print(f"{'':28} {'CPU s':>6} {'wall s':>7}   target")
    for name, step in found.items():
        target = "" if step.target_s is None else f"{step.target_s:6.2f} CPU s"
        print(f"{name:28} {min(step.cpu_s):6.2f} {min(step.wall_s):7.2f}   {target}")


if __name__ == "__main__":
    main()
