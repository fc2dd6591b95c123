"""CPU time of `import torchtrt_viz`, alone and with what loading needs: `python benchmarks/import_time.py`.

Each figure is the median of fresh interpreters, which run in turn. The bare import's target is 0.1 CPU s.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

TARGET_S = 0.1
RUNS = 9
STEPS = {
    "import torchtrt_viz": "import torchtrt_viz",
    "... and what load() imports": "import torchtrt_viz as tv; tv.load; import torchtrt_viz.loading.load",
    "import pandas": "import pandas",
}


def cpu_seconds(statement: str) -> float:
    code = f"import time; a = time.process_time(); {statement}; print(time.process_time() - a)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    found: dict[str, list[float]] = {name: [] for name in STEPS}
    for _ in range(RUNS):
        for name, statement in STEPS.items():
            found[name].append(cpu_seconds(statement))
    medians = {name: statistics.median(values) for name, values in found.items()}
    for name, median in medians.items():
        print(f"{name:30} {1e3 * median:7.1f} ms CPU (min {1e3 * min(found[name]):.1f})")
    bare = medians["import torchtrt_viz"]
    print(f"the bare import takes {100 * bare / TARGET_S:.0f} % of its {TARGET_S} CPU s")


if __name__ == "__main__":
    main()
