"""Saved traces and sessions: how fast they are written and read, and how soon a thousand ranks answer.

::

    python benchmarks/saved.py [--size 100MB]                  # one trace: beside its JSON and pandas alone
    python benchmarks/saved.py --ranks 1000 [--workers 2]      # a session, saved on a cluster, then asked

The trace is the realistic one of ``ingest/generate.py``. CPU seconds of this process, medians over rounds;
MB are those of the JSON. The session is that of ``cluster_ranks.py`` (synthetic, labelled so): its ranks are
written by the workers of a local cluster, then asked in a process of its own, by SQL and by the tables of the
session, which are compared with each other.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "ingest"))

BY_ROLE = (
    "SELECT role, name, count(DISTINCT rank) AS ranks, sum(self_ns) AS self_ns FROM spans "
    "WHERE kind = 'operator' GROUP BY ALL ORDER BY self_ns DESC"
)
SLOWEST = (
    "SELECT rank, sum(dur_ns) AS busy FROM spans WHERE kind = 'kernel' GROUP BY rank "
    "ORDER BY busy DESC LIMIT 20"
)
BY_KIND = "SELECT kind, sum(dur_ns) FROM spans GROUP BY kind"
ONE_RANK = "SELECT name, sum(dur_ns) AS ns FROM spans WHERE rank = 13 AND kind = 'kernel' GROUP BY name"


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    before = time.process_time()
    out = work()
    return time.process_time() - before, out


def one_trace(size: int, rounds: int) -> None:
    """Measure one trace."""
    import pandas as pd
    from generate import generate

    import torchtrt_viz as tv

    with tempfile.TemporaryDirectory(prefix="saved-") as root:
        source = Path(root) / "trace.json"
        generate(source, size)
        megabytes = source.stat().st_size / 1e6
        tv.load(source).save(Path(root) / "warm")
        taken: dict[str, list[float]] = {}
        for number in range(rounds):
            folder = Path(root) / f"run-{number}"

            def note(what: str, work: Callable[[], Any]) -> Any:
                seconds, out = cpu(work)
                taken.setdefault(what, []).append(seconds)
                return out

            trace = note("load the JSON", lambda: tv.load(source))
            note("save", lambda trace=trace, folder=folder: trace.save(folder))
            back = note("load what was saved", lambda folder=folder: tv.load(folder))
            plain = Path(root) / "spans.parquet"
            spans = back.spans
            note("pandas: spans.to_parquet", lambda spans=spans, plain=plain: spans.to_parquet(plain))
            note("pandas: read_parquet of it", lambda plain=plain: pd.read_parquet(plain))
            note("operators() of what was saved", lambda back=back: back.operators())
            note("sql: time by kind", lambda back=back: back.sql(BY_KIND))
            if number == 0:
                sizes = {each.name: each.stat().st_size for each in folder.iterdir()}
                rows = len(spans)
        total = sum(sizes.values())
        print(
            f"{megabytes:.0f} MB of JSON, {rows:,} spans; saved {total / 1e6:.1f} MB "
            f"(spans {sizes['spans.parquet'] / 1e6:.1f}, details {sizes['args.parquet'] / 1e6:.1f}; "
            f"pandas alone, spans only {plain.stat().st_size / 1e6:.1f})"
        )
        for what, seconds in taken.items():
            middle = statistics.median(seconds)
            print(f"{what:32} {middle:7.3f} CPU s  {megabytes / middle:8.0f} MB/s")


def peak_bytes() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def save_on_workers(source: Path, target: Path, workers: int) -> dict[str, float]:
    """Save a session on a local cluster."""
    import distributed

    import torchtrt_viz as tv

    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = sum(client.run(time.process_time).values())
        wall, here = time.perf_counter(), time.process_time()
        tv.load(source, engine="dask").save(target)
        wall, here = time.perf_counter() - wall, time.process_time() - here
        return {
            "save_wall_s": wall,
            "save_cpu_s": here + sum(client.run(time.process_time).values()) - before,
            "save_worker_peak": max(client.run(peak_bytes).values()),
        }


def ask(folder: Path) -> dict[str, Any]:
    """Ask a saved session, in this process alone."""
    import torchtrt_viz as tv

    out: dict[str, Any] = {}

    def note(what: str, work: Callable[[], Any]) -> Any:
        wall = time.perf_counter()
        seconds, found = cpu(work)
        out[what] = {"cpu_s": seconds, "wall_s": time.perf_counter() - wall}
        return found

    session = note("load", lambda: tv.load(folder))
    by_role = note("sql: operators by role", lambda: session.sql(BY_ROLE))
    slowest = note("sql: slowest ranks", lambda: session.sql(SLOWEST))
    note("sql: kernels of one rank", lambda: session.sql(ONE_RANK))
    note("session[13]", lambda: session[13])
    tables = note("session.operators()", session.operators)
    note("session.overview()", session.overview)
    note("session.explain()", session.explain)
    part = session.select(rank=list(range(0, len(session), 10)))
    note("operators() of a tenth", part.operators)
    out["rows"] = {"by_role": len(by_role), "slowest": slowest["rank"].tolist()[:5], "operators": len(tables)}
    summed = by_role.groupby("name")["self_ns"].sum().astype("int64").sort_index()
    agrees = tables.groupby("name", observed=True)["self_ns"].sum().astype("int64").sort_index()
    out["sql_equals_operators"] = summed.to_dict() == agrees.to_dict()
    out["peak"] = peak_bytes()
    return out


def many_ranks(ranks: int, workers: int, kept: Path | None) -> None:
    """Measure a session, each part in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="saved-") as root:
        source = kept or Path(root) / "session"
        if not source.exists():
            from cluster_ranks import write_session

            write_session(source, ranks)
        target = Path(root) / "dataset"
        stored = sum(each.stat().st_size for each in source.rglob("*") if each.is_file())
        saved = apart("--save", str(source), str(target), str(workers))
        written = sum(each.stat().st_size for each in target.rglob("*") if each.is_file())
        print(
            f"{ranks} ranks, {stored / 1e6:.0f} MB of archives: saved by {workers} workers in "
            f"{saved['save_cpu_s']:.1f} CPU s ({saved['save_wall_s']:.1f} s), {written / 1e6:.0f} MB, "
            f"peak of a worker {saved['save_worker_peak'] / 1e6:.0f} MB"
        )
        found = apart("--ask", str(target))
        for what, taken in found.items():
            if isinstance(taken, dict) and "cpu_s" in taken:
                print(f"{what:28} {taken['cpu_s']:7.2f} CPU s  {taken['wall_s']:7.2f} s")
        print(f"peak {found['peak'] / 1e6:.0f} MB; sql equals operators(): {found['sql_equals_operators']}")
        print(f"slowest ranks: {found['rows']['slowest']}")
        shutil.rmtree(target)


def apart(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> int:
    from generate import parse_size

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=parse_size, default="100MB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, help="measure a session of so many ranks instead")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--session", type=Path, help="where the session is made and kept, or lies already")
    parser.add_argument("--save", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--ask", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.save:
        source, target, workers = options.save
        print(json.dumps(save_on_workers(Path(source), Path(target), int(workers))))
    elif options.ask:
        print(json.dumps(ask(options.ask)))
    else:
        cores = os.cpu_count()
        print(f"{platform.processor() or platform.machine()}, {cores} cores, {platform.python_version()}")
        if options.ranks:
            many_ranks(options.ranks, options.workers, options.session)
        else:
            one_trace(options.size, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
