"""The graph of an engine: where nodes and lines lie, what is folded, and what its picture says."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pandas as pd
import pytest
from described_engines import chain, engine
from trace_builder import Builder

from torchtrt_viz.analysis import layer_types, plan_graph
from torchtrt_viz.analysis.engine.plan_layout import Layout, lay_out
from torchtrt_viz.charts import figure
from torchtrt_viz.charts.chart import Node
from torchtrt_viz.charts.plan import folds_of
from torchtrt_viz.charts.plan_svg import HEIGHT, WIDTH
from torchtrt_viz.charts.registry import chart

SHARE = 0.5
"""Of a node's width: what is nearer to its middle than this runs through it."""


def crossed(layout: Layout, edges: list[tuple[int, int, str]]) -> list[tuple[int, int]]:
    """Return which edges pass through which nodes."""
    rows: dict[int, list[int]] = {}
    for node, rank in enumerate(layout.rank):
        rows.setdefault(rank, []).append(node)
    return [
        (number, node)
        for number, (source, _, _) in enumerate(edges)
        for step, x in enumerate(layout.via[number])
        for node in rows.get(layout.rank[source] + 1 + step, [])
        if abs(layout.x[node] - x) < SHARE
    ]


@pytest.mark.parametrize("count", [10, 100, 1_000])
def test_nodes_and_lines_keep_apart(count: int) -> None:
    edges = [(number - 1, number, f"t{number - 1}") for number in range(1, count)]
    edges += [(number - 3, number, f"t{number - 3}") for number in range(3, count, 3)]
    edges += [(0, number, "t0") for number in range(5, count, 5)]  # one tensor that many read
    layout = lay_out(count, edges)
    assert all(layout.rank[source] < layout.rank[target] for source, target, _ in edges)
    rows: dict[int, list[float]] = {}
    for rank, x in zip(layout.rank, layout.x, strict=True):
        rows.setdefault(rank, []).append(x)
    for places in rows.values():
        assert all(b - a >= 1 - 1e-3 for a, b in pairwise(sorted(places)))
    for (source, target, _), via in zip(edges, layout.via, strict=True):
        assert len(via) == layout.rank[target] - layout.rank[source] - 1
    assert crossed(layout, edges) == []


def test_readers_of_one_tensor_share_its_line() -> None:
    edges = [(0, 1, "a"), (1, 2, "b"), (2, 3, "c"), (3, 4, "d"), (0, 3, "a"), (0, 4, "a")]
    layout = lay_out(5, edges)
    assert layout.via[5][: len(layout.via[4])] == layout.via[4]


def test_an_input_stands_above_its_first_reader() -> None:
    layout = lay_out(5, [(0, 2, "x"), (2, 3, "a"), (3, 4, "b"), (1, 4, "mask")])
    assert layout.rank == [0, 2, 1, 2, 3]


def test_lines_that_would_be_too_many_are_straight() -> None:
    count = 600
    edges = [(number, number + 1, f"t{number}") for number in range(count - 1)]
    edges += [(number, count - 1, f"t{number}") for number in range(0, count - 2, 2)]
    layout = lay_out(count, edges)
    assert sum(map(len, layout.via)) <= 20_000
    assert any(layout.via)
    assert not all(layout.via[count - 1 :])


def test_an_edge_says_its_tensor() -> None:
    graph = plan_graph(engine(chain(4), outputs=("t3",)))
    first = graph.edges.iloc[0]
    assert (first["tensor"], first["shape"], first["dtype"]) == ("x", "1x64x56x56", "FP16")
    made = chart(engine(chain(4), outputs=("t3",)), "plan")
    assert made.body.edges[0].about == "1x64x56x56 FP16 channel last %8"
    assert "392 KiB" in made.body.edges[0].says
    assert [node.kind for node in made.body.nodes][:2] == ["input", "Convolution"]


def test_small_layers_are_folded_and_large_ones_are_not() -> None:
    layers = chain(300)
    layers[150]["ns"] = 1_000_000
    made = chart(engine(layers), "plan")
    body = made.body
    large = next(node for node in body.nodes if node.name == "layer_150")
    assert not any(first <= large.rank <= last for first, last in body.folds)
    assert all(last - first >= 2 for first, last in body.folds)
    assert all(a[1] < b[0] for a, b in pairwise(body.folds))
    rows = max(node.rank for node in body.nodes) + 1
    assert rows - sum(last - first for first, last in body.folds) <= 60, "few rows are left to read"
    tree = ElementTree.fromstring(figure.markup(made))
    shown = [group for group in tree.iter("g") if group.get("class") == "n"]
    hidden = [group for group in tree.iter("g") if group.get("class") == "n x"]
    folded = [group for group in tree.iter("g") if group.get("class") == "f"]
    assert len(shown) + len(hidden) == len(body.nodes) == 301
    assert len(folded) == len(body.folds)
    words = " ".join("".join(group.find("text").itertext()) for group in folded)
    assert sum(int(word) for word in words.split() if word.isdigit()) == len(hidden)


def test_short_graphs_are_open() -> None:
    node = Node("n", "", "", "", "gpu0", 0, 0.0, None, True, "n")
    nodes = tuple(Node(**{**node.__dict__, "rank": rank}) for rank in range(30))
    assert folds_of(nodes) == ()
    assert folds_of((*nodes, Node(**{**node.__dict__, "rank": 30}))) != ()


def places(markup: str) -> list[tuple[float, float]]:
    tree = ElementTree.fromstring(markup)
    out = []
    for group in tree.iter("g"):
        if group.get("class") in ("n", "f"):
            x, y = group.get("transform").removeprefix("translate(").rstrip(")").split()
            out.append((float(x), float(y)))
    return out


@pytest.mark.parametrize("count", [10, 60, 1_000])
def test_what_is_drawn_does_not_overlap_and_is_not_cut(count: int) -> None:
    markup = figure.markup(chart(engine(chain(count)), "plan"))
    boxes = places(markup)
    picture = next(ElementTree.fromstring(markup).iter("svg"))
    width, height = int(picture.get("width")), int(picture.get("height"))
    assert all(x >= 0 and x + WIDTH <= width and y >= 0 and y + HEIGHT <= height for x, y in boxes)
    for at, (x, y) in enumerate(boxes):
        for other_x, other_y in boxes[at + 1 : at + 40]:
            assert abs(x - other_x) >= WIDTH or abs(y - other_y) >= HEIGHT
    assert max(y for _, y in boxes) + HEIGHT >= height - 60, "no taller than what is in it"
    assert len(markup) < 1_500 * count + 20_000


def test_names_of_layers_are_text() -> None:
    layers = chain(3)
    layers[1]["name"] = '<img src=x onerror="alert(1)">'
    assert "<img" not in figure.markup(chart(engine(layers), "plan"))


def test_of_several_engines_the_slowest_is_drawn() -> None:
    b = Builder()
    fast = engine(chain(3), b=b)
    both = engine([{**one, "ns": 9_000} for one in chain(4)], b=b, name="slow")
    both.meta["engines"] = [*fast.meta["engines"], *both.meta["engines"]]
    assert "slow: 4 layers" in chart(both, "plan").says
    assert "net: 3 layers" in chart(both, "plan", engine="net").says


def test_layers_by_type_and_precision() -> None:
    layers = [
        {"name": "a", "reads": ["x"], "writes": ["a"], "ns": 100, "weights": 10},
        {"name": "b", "reads": ["a"], "writes": ["b"], "ns": 300, "precision": "INT8"},
        {"name": "c", "reads": ["b"], "writes": ["c"], "ns": 100, "weights": 30},
        {"name": "d", "reads": ["c"], "writes": ["d"], "type": "Reformat", "ns": None},
    ]
    trace = engine(layers)
    frame = layer_types(trace).set_index(["type", "precision"])
    assert frame.loc[("Convolution", "FP16"), ["layers", "timed", "total_ns", "weights_bytes"]].tolist() == [
        2,
        2,
        200,
        40,
    ]
    assert frame.loc[("Convolution", "INT8"), "pct"] == pytest.approx(60)
    assert frame.loc[("Reformat", "FP16"), "total_ns"] is pd.NA
    body = chart(trace, "layer_types").body
    assert [bar.label for bar in body.bars] == ["Convolution"]
    assert {body.series[part.series].name: part.value for part in body.bars[0].parts} == {
        "INT8 (GPU time)": 300,
        "FP16 (GPU time)": 200,
    }
