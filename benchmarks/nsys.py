"""An export of Nsight Systems into frames: `torchtrt_viz.load` beside pandas.read_sql and nsys-ai.

    python benchmarks/nsys.py --size 1GB
    python benchmarks/nsys.py --size 100MB --peers-python /path/of/an/environment/with/nsys-ai/bin/python

The file is synthetic: the rows of a real export (``../shared/corpus/nsys``; else of a small made-up one)
again and again, each time later and with launches of their own. Each reading runs in a process of its own;
CPU seconds are user plus system without the imports, medians over the rounds; memory is the highest resident
size above that after the imports, and beside it what the frames hold. pandas reads the same tables (kernels,
copies, fills, waits, runtime calls, NVTX, strings) whole with one read_sql a table and joins nothing; nsys-ai
opens the file and lists all its kernels.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
from pathlib import Path

from apart import DEFAULT_SECONDS, has, peers_pythons, run

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))
SHARED = Path(os.environ.get("TORCHTRT_VIZ_SHARED", ROOT.parent / "shared"))

MEASURE = """
import gc, json, resource, sys, threading, warnings
warnings.filterwarnings("ignore")
path = sys.argv[1]
{imports}

def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

def status(key):
    line = next(line for line in open("/proc/self/status") if line.startswith(key))
    return int(line.split()[1]) / 1024

gc.collect()
open("/proc/self/clear_refs", "w").write("5")  # the highest resident size counts from here
before, begin = status("VmRSS"), cpu()
{read}
end = cpu()
peak = status("VmHWM") - before
{held}
print(json.dumps({{"cpu": end - begin, "peak": peak, "frames": held, "rows": rows}}))
"""

_FRAMES = """
tables = [t for (t,) in connection.execute("select name from sqlite_master where type = 'table'")]
wanted = [t for t in tables if t in (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "StringIds")]
"""

READERS = {
    "torchtrt_viz": (
        "import pandas, torchtrt_viz\nimport torchtrt_viz.formats.nsys.frames, torchtrt_viz.loading.load",
        "trace = torchtrt_viz.load(path)",
        "from torchtrt_viz.model.places import without_places\n"
        "frames = without_places(trace.spans), trace.instants, trace.counters, trace.tracks\n"
        "held = sum(int(f.memory_usage(deep=True).sum()) for f in frames) / 2**20\n"
        "rows = len(trace.spans)",
    ),
    "pandas.read_sql": (
        "import sqlite3, pandas",
        "connection = sqlite3.connect(f'file:{path}?mode=ro&immutable=1', uri=True)\n"
        + _FRAMES
        + "frames = [pandas.read_sql(f'select * from {t}', connection) for t in wanted]",
        "held = sum(int(f.memory_usage().sum()) for f in frames) / 2**20\nrows = sum(map(len, frames))",
    ),
    "nsys-ai": (
        "from nsys_ai.profile import Profile",
        "profile = Profile(path)\n"
        "kernels = [k for gpu in profile.meta.devices for k in profile.kernels(gpu)]",
        "held, rows = 0, len(kernels)",
    ),
}

#: Columns that move on with each repetition.
_TIMES = ("start", "end", "timestamp")


def multiply(source: Path, target: Path, size: float) -> int:
    """Write the rows of an export again and again until the file has ``size`` bytes; return how often."""
    original = sqlite3.connect(f"file:{source}?mode=ro&immutable=1", uri=True)
    connection = sqlite3.connect(target)
    connection.execute("PRAGMA journal_mode=OFF")
    connection.execute("PRAGMA synchronous=OFF")
    original.backup(connection)
    connection.execute("ATTACH DATABASE ? AS original", (f"file:{source}?mode=ro&immutable=1",))
    tables = [name for (name,) in original.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {t: [row[1] for row in original.execute(f'PRAGMA table_info("{t}")')] for t in tables}
    repeated = [t for t in tables if "start" in columns[t] and ("end" in columns[t])]
    last = max(original.execute(f'SELECT max("end") FROM {t}').fetchone()[0] or 0 for t in repeated)
    first = min(original.execute(f'SELECT min("start") FROM {t}').fetchone()[0] or last for t in repeated)
    ids = [t for t in repeated if "correlationId" in columns[t]]
    largest = max(original.execute(f"SELECT max(correlationId) FROM {t}").fetchone()[0] or 0 for t in ids)
    times = max(1, round(size / source.stat().st_size))
    for table in repeated:
        moved = ", ".join(
            f'"{name}" + n * {last - first + 1000}'
            if name in _TIMES
            else f'"{name}" + n * {largest + 1}'
            if name == "correlationId"
            else f'"{name}"'
            for name in columns[table]
        )
        connection.execute(
            "WITH RECURSIVE counted(n) AS "
            f"(SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {times - 1}) "
            f"INSERT INTO main.{table} SELECT {moved} FROM counted, original.{table}"
        )
        connection.commit()
    connection.close()
    return times


def _size(text: str) -> float:
    units = {"GB": 1e9, "MB": 1e6, "kB": 1e3}
    return float(text[:-2]) * units[text[-2:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--size", default="100MB")
    parser.add_argument("--file", type=Path, help="the export whose rows are repeated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS)
    parser.add_argument("--peers-python", action="append", help="interpreter that has nsys-ai")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = options.file or SHARED / "corpus" / "nsys" / "mfu_2gpu_before.sqlite"
        if not source.is_file():
            from nsys_writer import two_processes

            source = two_processes(pids=range(100, 110)).write(Path(folder) / "small.sqlite")
        target = Path(folder) / "large.sqlite"
        times = multiply(source, target, _size(options.size))
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
        print(f"{source.name} {times} times, {target.stat().st_size / 1e6:.0f} MB")
        print(f"{'reader':<16} {'CPU s':>8} {'ratio':>6} {'peak MB':>8} {'frames MB':>10} {'rows':>10}")
        ours = None
        for name, (imports, read, held) in READERS.items():
            module = {"nsys-ai": "nsys_ai"}.get(name)
            pythons = [sys.executable, *peers_pythons(options.peers_python)]
            python = next((p for p in pythons if module is None or has(p, module)), None)
            if python is None:
                print(f"{name:<16} not installed")
                continue
            command = [python, "-c", MEASURE.format(imports=imports, read=read, held=held), str(target)]
            path = os.environ.get("PYTHONPATH") if python == sys.executable else None
            found = [run(command, path=path, seconds=options.seconds) for _ in range(options.rounds)]
            if any("failed" in each for each in found):
                print(f"{name:<16} {next(each['failed'] for each in found if 'failed' in each)}")
                continue
            cpu = statistics.median(each["cpu"] for each in found)
            ours = ours or cpu
            peak = max(each["peak"] for each in found)
            print(
                f"{name:<16} {cpu:>8.2f} {cpu / ours:>6.1f} {peak:>8.0f} {found[0]['frames']:>10.0f} "
                f"{found[0]['rows']:>10}",
                flush=True,
            )


if __name__ == "__main__":
    main()
