"""The numbers of TREx's engine report card on every engine that it can load, and where TREx is wrong.

Its values are kept in ``peer_values/trex.json``; what it leaves out or gets wrong is worked out here from the
engine's own documents.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import other_tools
import pandas as pd
import pytest

import torchtrt_viz as tv
from torchtrt_viz.analysis import engine_roofline
from torchtrt_viz.trace import Trace

TREX = other_tools.recorded("trex")

BYTES = {"Float": 4, "FP32": 4, "Half": 2, "FP16": 2, "Int8": 1, "Int32": 4}

#: Layers that TREx drops from the graph. Of these the first take time on the device.
TIMED, UNTIMED = {"shape_call"}, {"NoOp", "Constant"}


@pytest.fixture(params=sorted(TREX["files"]), scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@lru_cache(maxsize=1)
def _loaded(graph: Path) -> tuple[Trace, list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return the engine, the layers of its graph file and the records of its profile."""
    profile = Path(str(graph).replace(".graph.json", ".profile.json"))
    trace = tv.load([graph, profile])
    assert isinstance(trace, Trace)
    layers = json.loads(graph.read_text(), strict=False)["Layers"]
    records = {record["name"]: record for record in json.loads(profile.read_text()) if "name" in record}
    return trace, layers, records


def _kept(table: pd.DataFrame) -> pd.DataFrame:
    return table[~table["type"].isin(TIMED | UNTIMED)]


def test_layers_and_latency(corpus: Path, name: str) -> None:
    found, (trace, _, records) = TREX["files"][name], _loaded(corpus / name)
    table = trace.layers(sort=None)
    kept = _kept(table)
    assert len(kept) == found["layers"]
    assert kept["mean_ns"].sum() / 1e6 == pytest.approx(found["time"], rel=1e-5)
    # what it drops is what its shares lack; ours have all of it
    lost = sum(records[row]["averageMs"] for row in table.loc[table["type"].isin(TIMED), "name"])
    assert table["mean_ns"].sum() / 1e6 == pytest.approx(found["time"] + lost, rel=1e-5)
    assert table["pct"].sum() == pytest.approx(100)
    whole = found["time"] + lost
    assert found["pct"] == pytest.approx(100 * found["time"] / whole, abs=0.01)


def test_it_loses_the_time_of_shape_calls(corpus: Path) -> None:
    lost = {
        Path(name).parent.name: found["pct"] for name, found in TREX["files"].items() if found["pct"] < 99.9
    }
    assert lost == {"alexnet": pytest.approx(99.61, abs=0.01), "mobilenet_v2": pytest.approx(99.75, abs=0.01)}
    for name, found in TREX["files"].items():
        if found["pct"] < 99.9:
            table = _loaded(corpus / name)[0].layers(sort=None)
            assert table.loc[table["type"] == "shape_call", "total_ns"].sum() > 0


def _by(labels: pd.Series, table: pd.DataFrame) -> dict[str, tuple[int, float, float]]:
    out = {}
    for label, part in table.groupby(labels.to_numpy()):
        out[str(label)] = (len(part), part["mean_ns"].fillna(0).sum() / 1e6, part["pct"].fillna(0).sum())
    return out


@pytest.mark.parametrize("what", ["types", "precisions"])
def test_latency_by_type_and_by_precision(corpus: Path, name: str, what: str) -> None:
    found, (trace, layers, _) = TREX["files"][name], _loaded(corpus / name)
    kept = _kept(trace.layers(sort=None))
    kinds = {layer["Name"]: layer.get("ParameterType", layer["LayerType"]) for layer in layers}
    labels = kept["name"].map(kinds) if what == "types" else kept["precision"]
    ours = _by(labels, kept)
    assert set(ours) == set(found[what])
    for label, (count, time, share) in found[what].items():
        assert ours[label][0] == count
        assert ours[label][1] == pytest.approx(time, rel=1e-5)
        # its shares are those of the file, which count the shape calls in the whole as well
        assert ours[label][2] == pytest.approx(share, rel=1e-4, abs=1e-3)


def _constant(layer: dict[str, Any], key: str) -> int:
    constant = layer.get(key)
    if not isinstance(constant, dict) or not constant["Count"]:
        return 0
    return int(constant["Count"]) * BYTES[constant["Type"]]


def test_sizes(corpus: Path, name: str) -> None:
    """Activations are equal. It leaves out biases, and all weights of convolutions fused with a pooling."""
    found, (trace, layers, _) = TREX["files"][name], _loaded(corpus / name)
    table = trace.layers(sort=None)
    kept = _kept(table)
    assert sum(_constant(layer, "Weights") for layer in layers) == found["weights"]
    lost = sum(_constant(layer, key) for layer in layers for key in ("Bias", "ConvWeights", "ConvBias"))
    assert table["weights_bytes"].sum() == found["weights"] + lost
    assert (kept["in_bytes"].sum() + kept["out_bytes"].sum()) == found["activations"]


def test_it_counts_no_weights_of_a_convolution_fused_with_a_pooling(corpus: Path) -> None:
    fused = 0
    for name in TREX["files"]:
        trace, layers, _ = _loaded(corpus / name)
        sizes = trace.layers(sort=None).set_index("name")["weights_bytes"]
        for layer in layers:
            if layer["LayerType"] == "ConvActPool":
                # 64 filters of 7 x 7 over 3 channels in int8, and a bias of float32 for each
                assert sizes[layer["Name"]] == 64 * 7 * 7 * 3 + 64 * 4
                fused += 1
    assert fused == 2


def test_convolutions(corpus: Path, name: str) -> None:
    """Multiply-adds are equal. It gives them per byte as operations per byte, which are twice as many.

    Its bytes are those of the first input and output and of weights as wide as the input, without biases and
    without the input that a fused addition reads; as a matrix product it takes all input channels for each
    group.
    """
    found, (trace, layers, _) = TREX["files"][name], _loaded(corpus / name)
    by_name = {layer["Name"]: layer for layer in layers}
    ours = engine_roofline(trace, sort=None).set_index("name")
    described = trace.layers(sort=None).set_index("name")
    seen: dict[str, int] = defaultdict(int)
    for layer, macs, m, n, k, intensity in found["convolutions"]:
        row, raw = ours.loc[layer], by_name[layer]
        assert row["macs"] == macs
        assert m * n * k == macs * raw["Groups"]
        assert row["intensity"] == pytest.approx(2 * row["macs"] / row["bytes"])
        size = described.loc[layer]
        assert row["bytes"] == size["in_bytes"] + size["out_bytes"] + (size["weights_bytes"] or 0)
        if len(raw["Inputs"]) == 1:
            # the same bytes as TREx's
            same = row["bytes"] - _constant(raw, "Bias")
            seen["one input"] += 1
            assert macs / same == pytest.approx(intensity)
        else:
            seen["more inputs"] += 1
            assert macs / row["bytes"] < intensity
    assert seen["one input"] > 0


@pytest.mark.slow
def test_trex_itself_says_so(corpus: Path) -> None:
    now = other_tools.ask("trex", corpus, "trex")
    for file, found in TREX["files"].items():
        assert now["files"][file] == found, file
