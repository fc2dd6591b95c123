"""Kernels of graphs get the operators of their capture, on made-up pairs of which the owners are known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from graph_checks import CAPTURE, check, load, pair
from graph_traces import Call, Launch, capture, model, numbered, replay, write_pair
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_sums import excesses
from rank_traces import write

import torchtrt_viz as tv
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.widgets.spans_of import rows_of

# -- one capture, its replay ----


def test_a_replay_gets_the_operators_of_its_capture(tmp_path: Path):
    calls = model()
    trace = load(pair(tmp_path, calls, [Launch(tuple(calls), host_us=50.0), Launch(tuple(calls))]))
    found = check(trace, calls)
    assert found["match"].tolist() == ["exact"] * 30
    table = trace.graphs()
    assert table["launched_by"].tolist() == ["hipGraphLaunch"] * 2
    assert table["host_ns"].tolist() == [50_000, 100_000]
    assert table[["kernels", "exact", "none"]].to_numpy().tolist() == [[15, 15, 0]] * 2
    assert table["gpu_ns"].tolist() == [75_000, 75_000]
    assert table["graph"].tolist() == ["capture_32_FULL"] * 2
    assert table[["batch", "mode", "step_batch"]].iloc[0].tolist() == [32, "FULL", 32]
    assert table["note"].isna().all()
    assert table["matched_gpu_pct"].tolist() == [100.0, 100.0]
    assert trace.meta["warnings"] == []
    assert list(excesses(trace)) == []


def test_operators_that_only_graphs_ran_have_gpu_time_and_no_host_time(tmp_path: Path):
    calls = model()
    eager = [Call("softmax", "aten::softmax")]
    folder = write_pair(tmp_path, replay([Launch(tuple(calls))], eager=eager), {CAPTURE: capture([calls])})
    table = load(folder).operators().set_index("name")
    mm = table.loc["aten::mm"]
    assert (mm["calls"], mm["graph_calls"], mm["total_ns"], mm["self_ns"]) == (0, 3, 0, 0)
    assert pd.isna(mm["min_ns"])
    assert pd.isna(mm["max_ns"])
    assert pd.isna(mm["mean_ns"])
    assert (mm["device_total_ns"], mm["device_self_ns"], mm["device_graph_ns"]) == (15_000, 15_000, 15_000)
    softmax = table.loc["aten::softmax"]
    assert (softmax["calls"], softmax["graph_calls"], softmax["device_graph_ns"]) == (1, 0, 0)
    assert softmax["device_self_ns"] == 3_000
    # by host time those that only graphs ran come last, most device work first
    assert table.index[0] == "aten::softmax"
    assert table["device_total_ns"].iloc[1:].is_monotonic_decreasing


def test_kernels_tell_operator_shape_module_source_and_match(tmp_path: Path):
    calls = model(layers=2)
    eager = [Call("softmax", "aten::softmax")]
    folder = write_pair(tmp_path, replay([Launch(tuple(calls))], eager=eager), {CAPTURE: capture([calls])})
    table = load(folder).kernels(by=("operator", "shape", "module", "source", "match"))
    attention = table[table["name"] == "attention"].sort_values("module")
    assert attention["operator"].tolist() == ["vllm::attention"] * 2
    assert attention["shape"].tolist() == ["[[32,16],[16,16]]"] * 2
    assert attention["module"].tolist() == ["nn.Module: Layer_0", "nn.Module: Layer_1"]
    assert attention["source"].tolist() == ["model.py(2): forward", "model.py(7): forward"]
    assert attention["match"].tolist() == ["exact"] * 2
    assert table[table["name"] == "softmax"]["match"].isna().all()


def test_without_its_capture_a_launch_says_so(tmp_path: Path):
    folder = pair(tmp_path, model())
    trace = load(folder / "graph_execution.json.gz")
    table = trace.graphs()
    assert table["none"].tolist() == [15]
    assert table["matched_pct"].tolist() == [0.0]
    assert "no capture of this graph was loaded" in table["note"].iloc[0]
    assert table["graph"].isna().all()
    assert table["ambiguous"].isna().all()
    assert trace.operators().attrs["device_unexplained_pct"] == 100.0
    assert trace.operators()["graph_calls"].isna().all()
    assert not trace.spans["timing"].eq("modeled").any()
    assert trace.kernels(by="match")["match"].unique().tolist() == ["none"]


def test_the_timeline_shows_recovered_operators_on_a_track_below_the_stream(tmp_path: Path):
    trace = load(pair(tmp_path, model()))
    scene = Scene.of(trace)
    label = "GPU 0 stream 7: recovered"
    tracks = [track for track in scene.tracks if track.label == label]
    assert len(tracks) == 1
    assert tracks[0].section == "gpu"
    assert {lane.role for lane in tracks[0].lanes} == {"modeled"}
    assert tracks[0].busy_ns == 0  # nothing of it was measured
    labels = [track.label for track in scene.tracks]
    assert labels.index(label) == labels.index("GPU 0 stream 7") + 1
    root = trace.spans[trace.spans["name"].astype(str).str.endswith("(recovered)")]
    assert root["name"].tolist() == ["graph capture_32_FULL (recovered)"]
    links = trace.flows[trace.flows["name"] == "graph launch"]
    assert str(trace.spans["name"].iloc[int(links["source"].iloc[0])]) == "hipGraphLaunch"
    assert int(links["target"].iloc[0]) == root.index[0]


def test_a_row_of_the_operators_leads_to_the_recovered_ones(tmp_path: Path):
    trace = load(pair(tmp_path, model()))
    table = trace.operators()
    rows = rows_of(trace, "operators", table[table["name"] == "aten::mm"])
    assert len(rows) == 3
    assert trace.spans["timing"].iloc[rows].unique().tolist() == ["modeled"]


def test_the_call_tree_of_gpu_time_goes_through_the_launch(tmp_path: Path):
    trace = load(pair(tmp_path, model()))
    folded = tv.analysis.folded_stacks(trace, value="gpu")
    step = "execute_context_0(0)_generation_32(32)"
    path = f"{step};hipGraphLaunch;nn.Module: Layer_0;vllm::attention"
    assert folded.set_index("stack")["self_ns"].to_dict()[path] == 5_000
    only = tv.analysis.flame_graph(trace, value="gpu", kinds=["operator"])
    assert set(only["name"]) == {
        "aten::rms_norm",
        "aten::addmm",
        "vllm::attention",
        "aten::copy_",
        "aten::mm",
    }
    host = tv.analysis.call_tree(trace)
    assert "vllm::attention" not in set(host["name"])


def test_a_roofline_goes_through_graphs(tmp_path: Path):
    trace = load(pair(tmp_path, model()))
    table = tv.analysis.operator_roofline(trace, device="H100").set_index("name")
    assert table.loc["aten::mm", "calls"] == 3
    assert table.loc["aten::mm", "time_ns"] == 15_000
    assert table.loc["aten::mm", "flops"] == 2 * 32 * 16 * 16


def test_a_comparison_goes_through_graphs(tmp_path: Path):
    calls = model(layers=8)
    slower = [Launch(tuple(calls), kernel_us=10.0)]
    a = load(pair(tmp_path / "a", calls))
    b = load(pair(tmp_path / "b", calls, slower))
    table = tv.analysis.compare(a, b, levels=["operator"])
    row = table[(table["name"] == "aten::mm") & (table["domain"] == "gpu")].iloc[0]
    assert (row["a_ns"], row["b_ns"], row["change_pct"]) == (5_000.0, 10_000.0, 100.0)
    assert (row["a_calls"], row["b_calls"]) == (8, 8)


def test_findings_name_what_leads_inside_graphs_and_what_nobody_knows(tmp_path: Path):
    calls = numbered(
        [Call("big", "vllm::moe_forward"), Call("big", "vllm::moe_forward"), Call("x", "aten::mm")]
    )
    launches = [Launch(tuple(calls), kernel_us=50.0)]
    trace = load(pair(tmp_path, calls, launches))
    found = trace.explain(top=9)["finding"]
    assert found.str.contains("Inside graphs vllm::moe_forward takes 100 µs of 150 µs").any()
    assert found.str.contains("3 of 3 kernels in 1 graph launch have their operator back").any()
    foreign = replay(launches, eager=[Call("softmax", "aten::softmax")])
    write(tmp_path / "alone.json", foreign)
    alone = load(tmp_path / "alone.json")
    said = alone.explain(top=9)["finding"]
    assert said.str.contains("of it is work of launches of graphs (no capture", regex=False).any()
    gpu = alone.summary().query("section == 'gpu'").set_index("item")
    assert gpu.loc["kernels of graphs without an operator", "value"] == 3


# -- any program ----


@st.composite
def programs(draw: st.DrawFn) -> list[Call]:
    """Calls of few operators and kernels, so that many are alike, on up to three streams."""
    count = draw(st.integers(1, 24))
    few = st.integers(0, 2)
    return numbered(
        Call(
            kernel=f"kernel_{draw(few)}",
            operator=f"op_{draw(few)}",
            module=f"Layer_{number // 6}",
            batch=draw(st.sampled_from((16, 32))),
            what=draw(st.sampled_from(("kernel", "kernel", "kernel", "copy", "fill"))),
            stream=7 + draw(st.sampled_from((0, 0, 0, 1, 2))),
        )
        for number in range(count)
    )


def mixed(calls: Sequence[Call], seed: int) -> tuple[Call, ...]:
    """The calls as their streams may have run them: each stream in order, turns at random."""
    left = {stream: [call for call in calls if call.stream == stream] for stream in {c.stream for c in calls}}
    chance, out = random.Random(seed), []
    while left:
        stream = chance.choice(sorted(left))
        out.append(left[stream].pop(0))
        if not left[stream]:
            del left[stream]
    return tuple(out)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(programs(), st.integers(0, 2**16), st.integers(0, 3), st.data())
def test_no_owner_is_wrong_whatever_the_program(
    tmp_path_factory: pytest.TempPathFactory, calls: list[Call], seed: int, lost: int, data: st.DataObject
):
    """Streams run as they like, a few calls may be missing on one side: nothing recovered is wrong."""
    folder = tmp_path_factory.mktemp("pair")
    gone = {data.draw(st.integers(0, len(calls) - 1)) for _ in range(lost)}
    side = data.draw(st.sampled_from(("capture", "replay")))
    kept = [call for call in calls if call.number not in gone]
    captured = kept if side == "capture" else calls
    run = kept if side == "replay" else calls
    if not captured or not run:
        return
    launches = [Launch(mixed(run, seed + number)) for number in range(2)]
    text = capture([captured], warm_up=bool(seed % 2))
    trace = load(write_pair(folder, replay(launches), {CAPTURE: text}))
    found = check(trace, calls)
    if not gone and len({call.stream for call in calls}) == 1:
        assert set(found["match"]) == {"exact"}


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(programs(), min_size=1, max_size=4), st.integers(0, 2**16), st.booleans())
def test_no_owner_is_wrong_whatever_graphs_a_recording_holds(
    tmp_path_factory: pytest.TempPathFactory, graphs: list[list[Call]], seed: int, steps: bool
):
    """Several graphs, some of them alike, launched in the order of their capture, once or twice a trace."""
    folder = tmp_path_factory.mktemp("pair")
    everything = numbered(call for graph in graphs for call in graph)
    parts, at = [], 0
    for graph in graphs:
        parts.append(everything[at : at + len(graph)])
        at += len(graph)
    launches = [
        Launch(mixed(part, seed), f"turn {turn}" if steps else "") for turn in (1, 2) for part in parts
    ]
    trace = load(write_pair(folder, replay(launches), {CAPTURE: capture(parts, said="capture_8_PIECEWISE")}))
    found = check(trace, everything)
    if len({call.stream for call in everything}) == 1:
        assert set(found["match"]) == {"exact"}
