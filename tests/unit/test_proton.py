"""Trees of Triton's Proton: every sum of the tables is that of a plain walk."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from proton_trees import document, kernel, random_tree, scope, sums

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError


def load(tmp_path: Path, content: Any, **options: Any) -> tv.Trace:
    path = tmp_path / "proton.hatchet"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    loaded = tv.load(path, **options)
    assert isinstance(loaded, tv.Trace)
    return loaded


def test_nodes_are_sums(tmp_path: Path) -> None:
    inner = scope("layer", kernel("matmul", 3000, 3, flops8=1e9, bytes=2e6), kernel("Memcpy DtoH", 500))
    trace = load(tmp_path, document(scope("model", inner, scope("/a/b.py:f@3", kernel("add", 70, 2)))))
    columns = ["name", "kind", "timing", "domain", "dur_ns", "self_ns", "depth", "parent"]
    assert trace.spans[columns].values.tolist() == [
        ["model", "operator", "aggregate", "gpu", 3570, 0, 0, -1],
        ["layer", "operator", "aggregate", "gpu", 3500, 0, 1, 0],
        ["matmul", "kernel", "aggregate", "gpu", 3000, 3000, 2, 1],
        ["Memcpy DtoH", "memcpy", "aggregate", "gpu", 500, 500, 2, 1],
        ["/a/b.py:f@3", "python", "aggregate", "gpu", 70, 0, 1, 0],
        ["add", "kernel", "aggregate", "gpu", 70, 70, 2, 4],
    ]
    assert trace.spans["start_ns"].isna().all()
    assert trace.args[2]["flops8"] == 1e9
    assert trace.meta["devices"][0]["numSms"] == 132
    assert trace.tracks["label"].tolist() == ["scopes", "CUDA 0"]
    kernels = trace.kernels(by=("operator", "device")).set_index("name")
    assert kernels.loc["matmul", ["operator", "calls", "total_ns", "mean_ns"]].tolist() == [
        "layer",
        3,
        3000,
        1000,
    ]
    assert kernels.loc["matmul", ["median_ns", "min_ns", "max_ns"]].isna().all()  # only the sum is known
    assert kernels.loc["Memcpy DtoH", ["min_ns", "max_ns", "class"]].tolist() == [500, 500, "copy"]
    assert kernels.loc["add", "operator"] == "model"
    operators = trace.operators().set_index("name")
    assert operators[["calls", "total_ns", "device_total_ns", "device_self_ns"]].to_dict("index") == {
        "model": {"calls": 0, "total_ns": 0, "device_total_ns": 3570, "device_self_ns": 70},
        "layer": {"calls": 0, "total_ns": 0, "device_total_ns": 3500, "device_self_ns": 3500},
    }
    assert trace.operators().attrs["device_unexplained_ns"] == 0
    flame = tv.analysis.flame_graph(trace, value="gpu")
    assert flame.loc[flame["depth"] == 0, "total_ns"].tolist() == [3570]
    assert len(trace.questions()) == 6
    assert trace.measured.empty


@pytest.mark.parametrize("seed", range(12))
def test_tables_conserve_a_plain_walk(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    content = document(*(random_tree(rng) for _ in range(1 + seed % 3)))
    time, count, inclusive = sums(content)
    trace = load(tmp_path, content)
    kernels = trace.kernels().set_index("name")
    assert kernels["total_ns"].to_dict() == dict(time)
    assert kernels["calls"].to_dict() == dict(count)
    tree = tv.analysis.call_tree(trace, value="gpu")
    paths: dict[int, tuple[str, ...]] = {-1: ()}
    for row in tree.itertuples():
        paths[row.node] = (*paths[row.parent], row.name)
    found = {paths[row.node]: row.total_ns for row in tree.itertuples()}
    # of one path several kinds may be there: a kernel and a scope of one name
    assert sum(found.values()) == sum(inclusive[path] for path in found)
    assert set(found) == set(inclusive)
    assert tree["self_ns"].sum() == sum(time.values())
    attrs = trace.operators().attrs
    assert attrs["device_ns"] == sum(time.values()) == trace.meta["accounting"]["span_ns"]
    assert trace.operators()["device_self_ns"].sum() + attrs["device_unexplained_ns"] == sum(time.values())


def test_what_proton_did_for_itself_is_in_no_sum(tmp_path: Path) -> None:
    own = scope("__proton_launch_metadata", kernel("sum", 4064))
    trace = load(tmp_path, document(scope("scope", own, kernel("matmul", 1664))))
    assert trace.spans["timing"].tolist() == ["aggregate", "modeled", "modeled", "aggregate"]
    assert trace.spans["dur_ns"].tolist() == [1664, 4064, 4064, 1664]
    assert trace.kernels()["total_ns"].tolist() == [1664]
    assert trace.operators()["device_total_ns"].tolist() == [1664]
    found = trace.meta["accounting"]
    assert (found["span_ns"], found["bookkeeping_ns"]) == (5728, 4064)


def test_kernels_that_hold_kernels(tmp_path: Path) -> None:
    """The launch of a graph has a time of its own, and the graph's kernels below it."""
    trace = load(tmp_path, document(kernel("graph", 10, 1, kernel("a", 100, 4))))
    assert trace.spans[["dur_ns", "self_ns"]].values.tolist() == [[110, 10], [100, 100]]
    assert trace.kernels()["total_ns"].sum() == 110


def test_damage(tmp_path: Path) -> None:
    """Nodes without a frame, and times that are none, are counted; the rest is read."""
    lost = {"children": [kernel("below", 5)], "metrics": {}}
    bad = [kernel("a", -1), kernel("b", "x"), kernel("c", True), kernel("d", 1e300), kernel("e", [1])]
    trace = load(tmp_path, document(kernel("good", 7), lost, *bad, "text", 5, None))
    assert trace.kernels()["name"].tolist() == ["good"]
    found = trace.meta["accounting"]
    assert found["left_out"] == {"not_a_node": 4}
    assert found["in_file"] == found["read"] + 4 == 11
    assert [(w.code, w.count) for w in trace.meta["warnings"]] == [
        ("not_a_node", 4),
        ("invalid_duration", 5),
    ]
    with pytest.raises(TraceFormatError):
        load(tmp_path, document(kernel("good", 7), lost), strict=True)


def test_cut_files_keep_what_is_whole(tmp_path: Path) -> None:
    text = json.dumps(document(scope("s", kernel("a", 5), kernel("b", 6)), kernel("c", 7)))
    read = 0
    for size in range(30, len(text), 11):
        try:
            trace = load(tmp_path, text[:size])
        except TraceFormatError:
            continue
        read += 1
        assert trace.meta["warnings"]
        assert trace.kernels()["total_ns"].sum() in (5, 11, 18)
    assert read > 3


def test_no_times_and_other_documents(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match="no node of the tree has a time") as caught:
        load(tmp_path, document(scope("s", num_samples=4)))
    assert "num_samples" in str(caught.value)
    with pytest.raises(TraceFormatError, match="centuries"):
        load(tmp_path, document(*(kernel("k", (1 << 62) - 1) for _ in range(4))))
    (tmp_path / "tree.hatchet_msgpack").write_bytes(b"\x92\x83\xa5frame\x82\xa4name\xa4ROOT")
    with pytest.raises(TraceFormatError, match="MessagePack"):
        tv.load(tmp_path / "tree.hatchet_msgpack")


def test_a_tree_as_deep_as_its_file(tmp_path: Path) -> None:
    deep = kernel("leaf", 5)
    for level in range(150):
        deep = scope(f"f{level}", deep)
    assert load(tmp_path, document(deep)).spans["depth"].max() == 150
    for many in (5_000, 200_000):
        text = (
            '[{"children":' * many
            + "[]"
            + ',"frame":{"name":"x"},"metrics":{"time (ns)":1,"count":1}}]' * many
        )
        with pytest.raises(TraceFormatError):
            load(tmp_path, text, strict=True)
        with contextlib.suppress(TraceFormatError):
            load(tmp_path, text)
