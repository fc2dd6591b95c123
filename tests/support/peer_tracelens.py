r"""What TraceLens says about Kineto files, as JSON: run by an interpreter that has it.

    python -m venv peers && peers/bin/pip install "pandas<3" tqdm openpyxl orjson PyYAML tabulate matplotlib
    peers/bin/pip install --no-deps "git+https://github.com/AMD-AGI/TraceLens@COMMIT"
    peers/bin/python tests/support/peer_tracelens.py ../shared/corpus \\
        > tests/integration/peer_values/tracelens.json

with the commit that is named below. It stands alone. Times are in the microseconds that the library gives.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMMIT = "171dd74721ca1ec45709e5805b68ae1f65e27811"
TOP = 5  # operators, those with most device time


def _attempt(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:
        return {"failed": type(error).__name__}


def _timeline(analyzer: Any) -> dict[str, float]:
    table = analyzer.get_df_gpu_timeline()
    return {row["type"]: row["time ms"] * 1000 for row in table.to_dict("records")}


def _operators(analyzer: Any) -> dict[str, Any]:
    launchers = analyzer.get_df_kernel_launchers()
    if launchers.empty:
        return {"names": 0, "calls": 0, "kernel_us": 0.0, "top": []}
    table = analyzer.get_df_kernel_launchers_summary(launchers)
    table = table.sort_values(["total_direct_kernel_time_sum", "name"], ascending=[False, True])
    return {
        "names": len(table),
        "calls": int(table["Count"].sum()),
        "kernel_us": float(table["total_direct_kernel_time_sum"].sum()),
        "top": [
            [row["name"], int(row["Count"]), float(row["total_direct_kernel_time_sum"])]
            for row in table.head(TOP).to_dict("records")
        ],
    }


def _collectives(path: Path) -> list[list[Any]]:
    from TraceLens.NcclAnalyser.nccl_analyser import NcclAnalyser

    table = NcclAnalyser([str(path)], 1).build_df_long()
    if table.empty:
        return []
    out: dict[tuple[Any, ...], list[float]] = {}
    table = table.astype(object).where(table.notna(), None)
    for row in table.to_dict("records"):
        size = row["In msg size (MB)"]
        group = None if row["Group size"] in (None, "") else int(row["Group size"])
        key = (row["Collective name"], row["dtype"], group)
        found = out.setdefault(key, [0, 0.0, 0.0])
        found[0] += 1
        found[1] += row["dur"]
        found[2] += float(size or 0)
    return [[*key, *numbers] for key, numbers in sorted(out.items(), key=str)]


def values(path: Path) -> dict[str, Any]:
    """Return what the library says about one file; where it raises, the type of what it raises."""
    from TraceLens import TreePerfAnalyzer

    try:
        analyzer = TreePerfAnalyzer.from_file(str(path), include_unlinked_kernels=True)
    except Exception as error:
        return {"failed": type(error).__name__}
    return {
        "timeline": _attempt(lambda: _timeline(analyzer)),
        "operators": _attempt(lambda: _operators(analyzer)),
        "collectives": _attempt(lambda: _collectives(path)),
    }


def main() -> None:
    """Print the values of all Kineto files in the folder named on the command line."""
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    found: dict[str, Any] = {"TraceLens": COMMIT, "files": {}}
    with contextlib.redirect_stdout(io.StringIO()):
        root = Path(sys.argv[1]).resolve()
        for path in sorted(root.glob("kineto/*.json*")):
            found["files"][path.relative_to(root).as_posix()] = values(path)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
