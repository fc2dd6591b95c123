"""Layer information and times of a large engine into frames, beside json.load of the same two files.

    python benchmarks/engine_files.py --layers 11329

Prints the best CPU time of several rounds of each: what else the machine does only ever adds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torchtrt_viz as tv


def written(folder: Path, count: int) -> list[Path]:
    """Write a set as trtexec does, with the attributes of detailed layer information."""
    side = [{"Name": "t", "Location": "Device", "Dimensions": [1, 64, 56, 56], "Format/Datatype": "Half"}]
    kept = {
        "LayerType": "Conv",
        "Inputs": side,
        "Outputs": side,
        "Kernel": [3, 3],
        "Stride": [1, 1],
        "Weights": {"Type": "Half", "Count": 9},
        "HasBias": 1,
        "Groups": 1,
    }
    names = [f"/block{i // 100}/conv{i}/Conv + /block{i // 100}/relu{i}/Relu" for i in range(count)]
    times = {"timeMs": 1.5, "averageMs": 0.5, "medianMs": 0.5, "percentage": 0.01}
    graph, profile = folder / "x.graph.json", folder / "x.profile.json"
    graph.write_text(json.dumps({"Layers": [{"Name": n, **kept} for n in names], "Bindings": ["t"]}))
    profile.write_text(json.dumps([{"count": 3}, *({"name": n, **times} for n in names)]))
    return [graph, profile]


def best(function: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        begin = time.process_time()
        function()
        taken.append(time.process_time() - begin)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--layers", type=int, default=11_329)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = written(Path(folder), options.layers)
        tv.load(paths[0])  # imports
        ours = best(lambda: tv.load(Path(folder)), options.rounds)
        plain = best(lambda: [json.loads(path.read_text()) for path in paths], options.rounds)
    print(f"{options.layers} layers: {ours:.3f} s, json.load {plain:.3f} s, ratio {ours / plain:.2f}")


if __name__ == "__main__":
    main()
