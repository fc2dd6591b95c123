"""What HolisticTraceAnalysis says about Kineto files, as JSON: run by an interpreter that has that library.

    python -m venv peers && peers/bin/pip install HolisticTraceAnalysis==0.5.0 "pandas<3"
    peers/bin/python tests/support/peer_hta.py ../shared/corpus > tests/integration/peer_values/hta.json

It stands alone, because that library cannot share an environment with pandas 3. Times are in the microseconds
that the library gives.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import logging
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

KERNELS = 3  # of each type, those with the largest sums


def _rank(path: Path) -> int:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return int((json.loads(raw, strict=False).get("distributedInfo") or {}).get("rank", 0))


def _analyses(trace: Any, rank: int) -> dict[str, Callable[[], Any]]:
    def temporal() -> list[float]:
        (row,) = trace.get_temporal_breakdown(visualize=False).to_dict("records")
        names = ("idle_time(us)", "compute_time(us)", "non_compute_time(us)", "kernel_time(us)")
        return [float(row[name]) for name in names]

    def idle() -> dict[str, dict[str, float]]:
        table = trace.get_idle_time_breakdown(ranks=[rank], visualize=False)[0]
        out: dict[str, dict[str, float]] = {}
        for row in table.to_dict("records"):
            out.setdefault(str(row["stream"]), {})[row["idle_category"]] = float(row["idle_time"])
        return out

    def overlap() -> float | None:
        (row,) = trace.get_comm_comp_overlap(visualize=False).to_dict("records")
        share = float(row["comp_comm_overlap_pctg"])
        return None if share != share else share

    def breakdown() -> Any:
        return trace.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True, num_kernels=10**9)

    def types() -> dict[str, float]:
        return {row["kernel_type"]: float(row["sum"]) for row in breakdown()[0].to_dict("records")}

    def kernels() -> dict[str, Any]:
        out = {}
        for kind, part in breakdown()[1].groupby("kernel_type"):
            top = part.sort_values(["sum (us)", "name"], ascending=[False, True]).head(KERNELS)
            numbers = ["sum (us)", "max (us)", "min (us)", "mean (us)", "stddev"]
            out[kind] = {
                "names": len(part),
                "sum": float(part["sum (us)"].sum()),
                "top": [[row["name"], *(float(row[n]) for n in numbers)] for row in top.to_dict("records")],
            }
        return out

    def launches() -> list[float]:
        table = trace.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False)[rank]
        sums = [table["cpu_duration"].sum(), table["gpu_duration"].sum(), table["launch_delay"].sum()]
        return [len(table), *map(float, sums)]

    return {
        "temporal": temporal,
        "idle": idle,
        "overlap": overlap,
        "types": types,
        "kernels": kernels,
        "launches": launches,
    }


def values(path: Path) -> dict[str, Any]:
    """Return what the library says about one file; where it raises, the type of what it raises."""
    from hta.trace_analysis import TraceAnalysis

    try:
        rank = _rank(path)
        trace = TraceAnalysis(trace_files={rank: str(path)}, trace_dir="/")
    except Exception as error:
        return {"failed": type(error).__name__}
    out: dict[str, Any] = {}
    for name, run in _analyses(trace, rank).items():
        try:
            out[name] = run()
        except Exception as error:
            out[name] = {"failed": type(error).__name__}
    return out


def main() -> None:
    """Print the values of all Kineto files in the folder named on the command line."""
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    found: dict[str, Any] = {
        "HolisticTraceAnalysis": version("HolisticTraceAnalysis"),
        "pandas": version("pandas"),
        "files": {},
    }
    with contextlib.redirect_stdout(io.StringIO()):
        root = Path(sys.argv[1]).resolve()
        for path in sorted([*root.glob("kineto/*.json*"), *root.glob("ranks/*/*.json.gz")]):
            found["files"][path.relative_to(root).as_posix()] = values(path)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
