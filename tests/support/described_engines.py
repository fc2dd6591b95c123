"""Traces that describe an engine: layers with the tensors that they read and write, and times."""

from __future__ import annotations

import numpy as np
import pandas as pd
from trace_builder import Builder

from torchtrt_viz.formats.engine.info import BINDINGS, LAYERS, EngineInfo, Tensor
from torchtrt_viz.trace import Trace


def objects(values: list) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def engine(
    layers: list[dict], outputs: tuple[str, ...] = (), b: Builder | None = None, name: str = "net"
) -> Trace:
    """Return a trace that describes an engine; each layer has a name, what it reads, writes and takes."""
    b = b or Builder()
    track = b.track(name, "engine", "gpu")
    spans = [
        -1 if one.get("ns") is None else b.span(one["name"], None, one["ns"], track, "layer", run_id=name)
        for one in layers
    ]
    frame = LAYERS.frame(
        {
            "name": [one["name"] for one in layers],
            "type": [one.get("type", "Convolution") for one in layers],
            "role": ["compute"] * len(layers),
            "precision": [one.get("precision", "FP16") for one in layers],
            "inputs": objects([tuple(map(_tensor, one["reads"])) for one in layers]),
            "outputs": objects([tuple(map(_tensor, one["writes"])) for one in layers]),
            "span": np.array(spans),
            "count": pd.array([1] * len(layers), dtype="Int64"),
            "weights_bytes": pd.array([one.get("weights", pd.NA) for one in layers], dtype="Int64"),
        },
        len(layers),
    )
    borders = [("x", "input"), *((name, "output") for name in outputs)]
    bindings = BINDINGS.frame(
        {"name": [n for n, _ in borders], "direction": [d for _, d in borders]}, len(borders)
    )
    return b.build(engines=[EngineInfo(name, name, frame, bindings)])


def _tensor(name: str) -> Tensor:
    return Tensor(
        name, (1, 64, 56, 56), "FP16", "Channel major FP16 format where channel % 8 == 0", None, 401_408
    )


def chain(count: int) -> list[dict]:
    """Residual blocks: every third layer reads what the third before it wrote, as well."""
    out = []
    for number in range(count):
        reads = [f"t{number - 1}" if number else "x"]
        if number % 3 == 0 and number >= 3:
            reads.append(f"t{number - 3}")
        out.append(
            {"name": f"layer_{number}", "reads": reads, "writes": [f"t{number}"], "ns": 1_000 + number % 7}
        )
    return out
