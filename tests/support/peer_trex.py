"""What TREx says about engines, as JSON: run by an interpreter that has its environment.

    git clone https://github.com/NVIDIA/TensorRT && git -C TensorRT checkout b8b46f21
    python -m venv peers && peers/bin/pip install "pandas<3" "numpy<2"
    peers/bin/pip install --no-deps TensorRT/tools/experimental/trt-engine-explorer
    peers/bin/python tests/support/peer_trex.py ../shared/corpus > tests/integration/peer_values/trex.json

(the last commit that has it; 82d1dca8 removed it). It stands alone. Times are in the milliseconds that TREx
gives. The numbers are those that its engine report card draws: latency and count by layer type and by
precision, sizes of activations and weights, and the convolutions as matrix products.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any


def _grouped(frame: Any, key: str) -> dict[str, list[float]]:
    """Return layers, mean time and share by the values of a column."""
    out = {}
    for value, part in frame.groupby(key):
        out[str(value)] = [
            len(part),
            float(part["latency.avg_time"].sum()),
            float(part["latency.pct_time"].sum()),
        ]
    return out


def values(graph: Path, profile: Path) -> dict[str, Any]:
    """Return what TREx says about one engine."""
    from trex import EnginePlan

    try:
        plan = EnginePlan(str(graph), str(profile))
    except Exception as error:
        return {"failed": type(error).__name__}
    frame = plan.df
    found: dict[str, Any] = {
        "layers": len(frame),
        "time": float(plan.total_runtime),
        "pct": float(frame["latency.pct_time"].sum()),
        "weights": int(plan.total_weights_size),
        "activations": int(plan.total_act_size),
        "types": _grouped(frame, "type"),
        "precisions": _grouped(frame, "precision"),
    }
    try:
        convolutions = plan.get_layers_by_type("Convolution")
        names = ["attr.macs", "attr.M", "attr.N", "attr.K", "attr.arithmetic_intensity"]
        found["convolutions"] = [
            [row["Name"], *(row[name] for name in names)] for row in convolutions.to_dict("records")
        ]
    except Exception as error:
        found["convolutions"] = {"failed": type(error).__name__}
    return found


def main() -> None:
    """Print the values of every engine with a graph and a profile in the folder named on the command line."""
    warnings.filterwarnings("ignore")
    root = Path(sys.argv[1]).resolve()
    found: dict[str, Any] = {"TREx": "0.2.1", "files": {}}
    with contextlib.redirect_stdout(io.StringIO()):
        for graph in sorted(root.glob("trex/**/*.graph.json")):
            profile = Path(str(graph).replace(".graph.json", ".profile.json"))
            if profile.exists():
                found["files"][graph.relative_to(root).as_posix()] = values(graph, profile)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
