"""Engine analyses on TensorRT's own files: sums, multiply-adds and shares from the raw documents."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest

import torchtrt_viz as tv
from torchtrt_viz.analysis import engine_diff, engine_lint, engine_roofline, plan_graph, reformats
from torchtrt_viz.trace import Trace


def _traces(folder: Path) -> list[Trace]:
    found = tv.load(folder)
    return [found] if isinstance(found, Trace) else [trace for _, trace in found.traces()]


@pytest.fixture(scope="module")
def resnets(corpus: Path) -> list[Trace]:
    return _traces(corpus / "trex" / "trex_samples" / "examples" / "pytorch" / "resnet")


def _documents(trace: Trace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    files = trace.meta["engines"][0].files
    graph = json.loads(Path(files["graph"]).read_text(), strict=False)["Layers"]
    profile = [row for row in json.loads(Path(files["profile"]).read_text()) if "name" in row]
    return graph, profile


def test_layer_times_and_shares_are_those_of_the_files(resnets: list[Trace]) -> None:
    assert len(resnets) == 5
    for trace in resnets:
        _, profile = _documents(trace)
        table = trace.layers(sort=None, untimed=False)
        assert table["pct"].sum() == pytest.approx(100)
        assert len(table) == len(profile)
        raw = {row["name"]: row["timeMs"] for row in profile}
        for row in table.itertuples(index=False):
            assert row.total_ns == pytest.approx(raw[row.name] * 1e6, abs=1)
        by_type = table.groupby("type", dropna=False)["pct"].sum()
        assert by_type.sum() == pytest.approx(100)


def test_multiply_adds_are_those_of_the_shapes_in_the_file(resnets: list[Trace]) -> None:
    for trace in resnets:
        graph, _ = _documents(trace)
        table = engine_roofline(trace, sort=None)
        assert len(table) == len(graph)
        total = 0
        for layer in graph:
            if layer.get("ParameterType") == "ConvActPool":
                layer = layer | {key[4:]: value for key, value in layer.items() if key.startswith("Conv")}
            if layer.get("ParameterType") != "Convolution":
                continue
            x = layer["Inputs"][0]["Dimensions"]
            pads = zip(
                layer["PrePadding"],
                layer["PostPadding"],
                layer["Kernel"],
                layer["Stride"],
                x[2:],
                strict=True,
            )
            space = [(size + a + b - k) // s + 1 for a, b, k, s, size in pads]
            total += x[0] * layer["OutMaps"] * prod(space) * x[1] // layer["Groups"] * prod(layer["Kernel"])
        assert table["macs"].sum() == total
        # ResNet-18 at 224 x 224 needs 1.81 G multiply-adds per image
        assert total / 32 == pytest.approx(1.814e9, rel=0.01)


def test_no_layer_is_faster_than_its_device(resnets: list[Trace]) -> None:
    for trace in resnets:
        table = engine_roofline(trace)
        known = table["efficiency_pct"].dropna()
        assert len(known) > 10
        assert (table["roof_tflops"].dropna() > 0).all()
        assert (known <= 100).all()


def test_conversions_are_the_reformat_layers_of_the_file(resnets: list[Trace]) -> None:
    for trace in resnets:
        graph, _ = _documents(trace)
        table = reformats(trace)
        real = [layer["Name"] for layer in graph if layer["LayerType"] == "Reformat"]
        assert set(real) <= set(table["name"])
        origin = {layer["Name"]: layer.get("Origin") for layer in graph}
        for row in table[table["origin"].notna()].itertuples(index=False):
            assert origin[row.name] == row.origin


def test_an_int8_engine_against_a_float_one(resnets: list[Trace]) -> None:
    by_name = {Path(t.meta["engines"][0].files["graph"]).name: t for t in resnets}
    qat = next(t for name, t in by_name.items() if name.startswith("resnet-qat.onnx"))
    residual = next(t for name, t in by_name.items() if name.startswith("resnet-qat-residual.onnx"))
    table = engine_diff(qat, residual)
    total_a = float(qat.layers(untimed=False)["mean_ns"].sum())
    total_b = float(residual.layers(untimed=False)["mean_ns"].sum())
    assert table["delta_ns"].sum() == pytest.approx(total_b - total_a)
    conv = table[table["a"].fillna("").str.startswith("layer2.1.conv1.weight")]
    assert conv["b"].iloc[0].startswith("layer2.1.conv1.weight")
    again = engine_diff(qat, qat)
    assert set(again["status"]) == {"same"}
    assert again["speedup"].dropna().eq(1.0).all()


def test_lint_finds_the_conversions_of_the_quantised_engine(resnets: list[Trace]) -> None:
    for trace in resnets:
        table = engine_lint(trace)
        graph, _ = _documents(trace)
        names = {layer["Name"] for layer in graph}
        assert set(table["layer"]) - {""} <= names
        for row in table[table["rule"] == "conversion"].itertuples(index=False):
            layer = next(layer for layer in graph if layer["Name"] == row.layer)
            assert layer["LayerType"] == "Reformat"


def test_graphs_hold_every_layer_and_every_read_tensor(corpus: Path) -> None:
    seen = 0
    for folder in sorted((corpus / "trex" / "trex_samples").rglob("*")):
        if not folder.is_dir() or not list(folder.glob("*.graph.json")):
            continue
        for trace in _traces(folder):
            info = trace.meta["engines"][0]
            graph = plan_graph(trace)
            inside = graph.nodes[graph.nodes["kind"] == "layer"]
            assert len(inside) == len(info.layers)
            reads = sum(len(inputs or ()) for inputs in info.layers["inputs"])
            to_layers = graph.edges["target"].isin(inside["node"])
            assert to_layers.sum() == reads
            down = graph.edges[(graph.edges["source"] >= 0) & ~graph.edges["back"]]
            rank = graph.nodes["rank"].to_numpy()
            assert (rank[down["source"]] < rank[down["target"]]).all()
            places = graph.nodes.groupby("rank")["x"]
            assert places.nunique().eq(places.size()).all(), "no two nodes in one place"
            seen += 1
    assert seen >= 8
