"""Torch-TensorRT's own traces: sums and no timelines, joined with its layer information."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from torchtrt_viz.files import load
from torchtrt_viz.formats.engine.file_set import group_sets, is_set_member, read_set
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.trace import Trace

ENGINE = "_run_on_acc_0_engine"
REGION = "{ForeignNode[a...b]}"
LAYERS = {"alexnet": 20, "resnet18": 26, "mobilenet_v2": 167}


@pytest.fixture
def runs(corpus: Path) -> list[Path]:
    found = sorted((corpus / "trex/fuzzylabs_torchtrt_traces").glob("*/*/iter_*"))
    assert len(found) == 15
    return found


def read_folder(folder: Path) -> Trace:
    sources = [Source(p) for p in sorted(folder.iterdir())]
    assert all(is_set_member(s) for s in sources)
    (members,) = group_sets(sources).values()
    return read_set(members, LoadOptions(strict=True))


def test_all_fifteen_runs_join_without_a_rest(runs):
    for folder in runs:
        trace = read_folder(folder)
        assert trace.meta["format"] == "torchtrt"
        (engine,) = trace.meta["engines"]
        raw = json.loads((folder / f"{ENGINE}_engine_exectuion_profile.trace").read_text())
        graph = json.loads((folder / f"{ENGINE}_layer_information.json").read_text())["Layers"]
        assert engine.name == ENGINE
        assert len(raw) == len(graph) == len(engine.layers) == LAYERS[folder.parts[-3]]
        assert list(engine.layers["name"]) == [layer["Name"] for layer in graph]
        assert engine.layers["in_profile"].all()
        assert engine.layers["in_graph"].all()
        times = {event["name"]: event["dur"] / 1000 for event in raw}
        assert list(engine.layers["total_ms"]) == [times[name] for name in engine.layers["name"]]
        assert engine.count is None
        assert engine.layers["average_ms"].isna().all()
        assert any("does not say how many" in note for note in engine.notes)


def test_the_sum_is_the_engine_trace_and_not_an_inference(runs):
    (folder,) = (f for f in runs if f.parts[-3] == "alexnet" and f.name == "iter_0")
    trace = read_folder(folder)
    layers = trace.spans[trace.spans["kind"] == "layer"]
    # 10,701 microseconds are the total over 20 calls
    raw = json.loads((folder / f"{ENGINE}_engine_exectuion_profile.trace").read_text())
    assert layers["dur_ns"].sum() == sum(round(event["dur"] * 1000) for event in raw)
    assert round(layers["dur_ns"].sum() / 1e3) == pytest.approx(10_701, abs=1)
    sums = trace.meta["engines"][0].sums().set_index("quantity")
    assert sums["ms"].isna().all()


def test_nothing_of_a_set_shares_a_time_axis(runs):
    """Every file counts from its own start: layer sums, and operators of each phase, have no common axis."""
    for folder in runs[:3]:
        trace = read_folder(folder)
        assert len(trace.measured) == 0
        assert trace.spans["start_ns"].isna().all()
        assert set(trace.spans["timing"]) == {"aggregate"}
        operators = trace.spans[trace.spans["kind"] == "operator"]
        raw = [
            event
            for phase in ("input", "output", "enqueue")
            for event in json.loads((folder / f"{ENGINE}_{phase}_profile.trace").read_text())
        ]
        assert list(operators["name"]) == [event["name"] for event in raw]
        assert list(operators["dur_ns"]) == [round(event["dur"] * 1000) for event in raw]
        assert (operators["domain"] == "host").all()
        assert trace.args[int(operators.index[0])] == {
            "phase": "input",
            "count": 1,
            "start_in_phase_us": raw[0]["ts"],
        }


def test_one_phase_alone_is_a_timeline(runs):
    path = runs[0] / f"{ENGINE}_output_profile.trace"
    trace = load(path)
    raw = json.loads(path.read_text())
    assert list(trace.spans["start_ns"]) == [round(event["ts"] * 1000) for event in raw]
    assert set(trace.spans["timing"]) == {"measured"}
    frame = trace.spans.set_index("name")
    # aten::to holds aten::_to_copy, which holds aten::copy_ and aten::empty_strided
    outer, copy = frame.loc["aten::to"], frame.loc["aten::_to_copy"]
    assert trace.spans["name"][copy["parent"]] == "aten::to"
    assert trace.spans["name"][frame.loc["aten::copy_", "parent"]] == "aten::_to_copy"
    assert outer["self_ns"] == outer["dur_ns"] - copy["dur_ns"]
    assert trace.tracks["label"][0] == f"{ENGINE} output phase"


def test_operators_recorded_by_torch(corpus):
    path = corpus / "trex/torch_recordprofile/rp_ops.trace"
    trace = load(path)
    raw = json.loads(path.read_text())
    assert len(trace.spans) == len(raw)
    assert trace.spans["dur_ns"].sum() == sum(round(event["dur"] * 1000) for event in raw)
    assert len(load(corpus / "trex/torch_recordprofile/rp_empty.trace").spans) == 0


def test_an_empty_phase_is_no_engine(runs):
    trace = load(runs[0] / f"{ENGINE}_enqueue_profile.trace")
    assert len(trace.spans) == 0
    assert trace.meta["engines"] == []


def write(folder: Path, name: str, document: object) -> Source:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return Source(path)


def event(name: str, dur: float, engine: str, **args: object) -> dict:
    return {
        "name": name,
        "ph": "X",
        "ts": 0,
        "dur": dur,
        "tid": 1,
        "pid": f"{engine} Engine Execution",
        "args": args,
    }


def test_several_engines_of_one_folder_are_one_trace(tmp_path):
    for i in range(2):
        engine = f"_run_on_acc_{i}_engine"
        write(tmp_path, f"{engine}_engine_execution_profile.trace", [event("a", 10, engine)])
        write(tmp_path, f"_run_on_acc_{i}_engine_layer_information.json", {"Layers": ["a"], "Bindings": []})
    trace = read_folder(tmp_path)
    assert [e.name for e in trace.meta["engines"]] == ["_run_on_acc_0_engine", "_run_on_acc_1_engine"]
    assert list(trace.spans["run_id"]) == ["_run_on_acc_0_engine", "_run_on_acc_1_engine"]
    assert len(trace.tracks) == 2
    assert list(trace.tracks["type"]) == ["engine", "engine"]


def test_trex_flavour_has_averages_and_an_inferred_count(tmp_path):
    rows = [
        {"name": "a", "timeMs": 4.0, "averageMs": 0.2, "percentage": 40},
        {"name": "b", "timeMs": 6.0, "averageMs": 0.3, "percentage": 60},
    ]
    source = write(tmp_path, "E_engine_execution_profile.trace", rows)
    trace = load(source.path)
    (engine,) = trace.meta["engines"]
    assert trace.meta["format"] == "torchtrt"
    assert (engine.name, engine.count, engine.producer) == ("E", 20, "torch_tensorrt")
    assert list(trace.spans["dur_ns"]) == [4_000_000, 6_000_000]


def test_an_inferred_count_needs_rows_that_agree(tmp_path):
    rows = [
        {"name": "a", "timeMs": 4.0, "averageMs": 0.2, "percentage": 40},
        {"name": "b", "timeMs": 6.0, "averageMs": 0.5, "percentage": 60},
    ]
    (engine,) = load(write(tmp_path, "E_engine_execution_profile.trace", rows).path).meta["engines"]
    assert engine.count is None


def test_count_of_a_forward_fragment_of_two_regions(tmp_path):
    """A published fragment: two rows without the opening bracket, braces in the names, count 102."""
    text = (
        ', { "name" : "{ForeignNode[ReduceMean_4492...Mul_4557]}", "timeMs" : 3802.94, '
        '"averageMs" : 37.2837, '
        '"medianMs" : 37.2818, "percentage" : 30.5601 }\n'
        ', { "name" : "{ForeignNode[ReduceMean_699...Mul_764]}", "timeMs" : 3802.82, "averageMs" : 37.2825, '
        '"medianMs" : 37.2818, "percentage" : 30.5591 }\n]\n'
    )
    trace = load(write(tmp_path, "x.profile.json", text).path)
    (engine,) = trace.meta["engines"]
    assert engine.count == 102
    assert list(engine.layers["role"]) == ["region", "region"]
    assert engine.layers["operators"].iloc[0] == ("ReduceMean_4492", "Mul_4557")
    assert "does not say how it splits" in engine.layers["explanation"].iloc[0]
    assert any("regions whose inside" in note for note in engine.notes)
    assert [w.code for w in trace.meta["warnings"]] == ["no_brackets"]


def test_engines_on_the_host_are_never_called_gpu(tmp_path):
    shapes = {
        "E_engine_execution_profile.trace": [event("a", 1000, "E", engine_runtime="host", count=4)],
        "F_engine_execution_profile.trace": [
            {"count": 4, "engine_runtime": "host"},
            {"name": "a", "timeMs": 1, "averageMs": 0.25, "percentage": 100},
        ],
    }
    for name, document in shapes.items():
        trace = load(write(tmp_path, name, document).path)
        (engine,) = trace.meta["engines"]
        assert engine.runtime == "host", name
        assert list(trace.spans["domain"]) == ["host"], name
        assert list(trace.tracks["domain"]) == ["host"], name
        assert engine.count == 4, name
        assert engine.layers["average_ms"].iloc[0] == 0.25, name
    graph = write(tmp_path, "G_layer_information.json", {"engine_runtime": "host", "Layers": ["a"]})
    profile = write(tmp_path, "G_engine_execution_profile.trace", [event("a", 1, "G")])
    trace = read_set([graph, profile], LoadOptions())
    assert list(trace.spans["domain"]) == ["host"]


def call_event(
    name: str, ts: float, dur: float, call: int, *, layer: str | None = None, **args: object
) -> dict:
    said = {
        "call": call,
        "timing": "measured",
        "domain": "host",
        "engine_id": "e1",
        "engine_runtime": "host",
        **args,
    }
    if layer is not None:
        said.update({"layer": layer, "op": "conv"})
    pid = "CPU Functions" if layer is None else "model Engine Execution"
    return {"name": name, "ph": "X", "ts": ts, "dur": dur, "tid": 1, "pid": pid, "args": said}


def test_traces_of_our_own_capture_are_timelines(tmp_path):
    """Same file names, but every execution with its start: all of them are on one time axis."""
    stem = "model-e1-77"
    base = 5_000_000_000.25
    layers = [
        call_event(name, base + 1000 * call + at, dur, call, layer=name, timing=timing)
        for call in range(3)
        for name, at, dur, timing in (("conv", 10, 100.5, "measured"), ("relu", 110.5, 20.125, "laid_out"))
    ]
    phases = [call_event("torchtrt.input_binding", base + 1000 * call, 5, call) for call in range(3)]
    enqueue = [call_event("torchtrt.enqueue_host", base + 1000 * call + 8, 130, call) for call in range(3)]
    graph = {
        "Layers": [
            {"Name": n, "LayerType": "Conv", "Inputs": [], "Outputs": [], "Metadata": m}
            for n, m in (
                ("conv", json.dumps({"id": "0", "module": "net.block", "nodes": ["aten.conv2d"]})),
                ("relu", ""),
            )
        ],
        "Bindings": ["x"],
        "engine_runtime": "host",
    }
    write(tmp_path, f"{stem}_engine_execution_profile.trace", layers)
    write(tmp_path, f"{stem}_input_profile.trace", phases)
    write(tmp_path, f"{stem}_output_profile.trace", "[\n]\n")
    write(tmp_path, f"{stem}_enqueue_profile.trace", enqueue)
    write(tmp_path, f"{stem}_layer_information.json", graph)
    trace = read_folder(tmp_path)
    (engine,) = trace.meta["engines"]
    assert (engine.name, engine.runtime, engine.count, engine.producer) == (
        "model",
        "host",
        3,
        "torchtrt_viz",
    )
    assert list(engine.layers["name"]) == ["conv", "relu"]
    assert list(engine.layers["total_ms"]) == pytest.approx([0.3015, 0.060375])
    assert list(engine.layers["average_ms"]) == pytest.approx([0.1005, 0.020125])
    assert engine.layers["module"].iloc[0] == "/net/block"
    assert engine.layers["operators"].iloc[0] == ("aten.conv2d",)
    spans = trace.spans
    assert set(spans["domain"]) == {"host"}
    convs = spans[spans["name"] == "conv"]
    assert list(convs["timing"]) == ["measured"] * 3
    assert list(convs["start_ns"]) == [round((base + 1000 * call + 10) * 1000) for call in range(3)]
    assert list(convs["dur_ns"]) == [100_500] * 3
    assert list(convs["iteration"]) == [0, 1, 2]
    assert set(spans.loc[spans["name"] == "relu", "timing"]) == {"modeled"}
    assert sorted(set(spans["kind"])) == ["layer", "phase"]
    assert list(trace.tracks["label"]) == ["model layers", "model calls"]
    assert "monotonic" in trace.meta["clock"]
    assert trace.args[int(convs.index[0])]["layer"] == "conv"


def test_graph_and_times_of_different_verbosity_say_so(tmp_path):
    graph = write(tmp_path, "x.graph.json", {"Layers": ["__myl_GathMul_myl0_0", "__myl_Add_myl0_1", "c"]})
    profile = write(
        tmp_path,
        "x.profile.json",
        [{"count": 1}, *({"name": n, "timeMs": 1.0, "averageMs": 1.0} for n in (REGION, "c"))],
    )
    (engine,) = read_set([graph, profile], LoadOptions()).meta["engines"]
    assert list(engine.layers["name"]) == ["__myl_GathMul_myl0_0", "__myl_Add_myl0_1", "c", REGION]
    assert list(engine.layers["layer"]) == [0, 1, 2, -1]
    assert list(engine.layers["in_profile"]) == [False, False, True, True]
    assert float(engine.layers["percentage"].sum()) == 100
    assert any("1 of 2 timed layers are not in the layer information" in note for note in engine.notes)


def test_names_that_are_numbers_join_by_position(tmp_path):
    graph = write(tmp_path, "x.graph.json", {"Layers": ["a", "b", "c"]})
    rows = [{"name": str(i), "timeMs": 1.0 + i, "averageMs": 1.0 + i} for i in range(3)]
    profile = write(tmp_path, "x.profile.json", [{"count": 1}, *rows])
    (engine,) = read_set([graph, profile], LoadOptions()).meta["engines"]
    assert list(engine.layers["total_ms"]) == [1.0, 2.0, 3.0]
    assert len(engine.layers) == 3


def test_times_in_another_order_join_by_name(tmp_path):
    graph = write(tmp_path, "x.graph.json", {"Layers": ["a", "b", "c"]})
    rows = [{"name": n, "timeMs": t, "averageMs": t} for n, t in (("c", 3.0), ("a", 1.0), ("b", 2.0))]
    profile = write(tmp_path, "x.profile.json", [{"count": 1}, *rows])
    (engine,) = read_set([graph, profile], LoadOptions()).meta["engines"]
    assert list(engine.layers["total_ms"]) == [1.0, 2.0, 3.0]


def test_optimisation_profiles_of_two_digits(tmp_path):
    names = ["a", "b"] + [f"{n} [profile {p}]" for p in (1, 2, 9, 10, 12) for n in ("a", "b")]
    trace = load(write(tmp_path, "x.graph.json", {"Layers": names}).path)
    (engine,) = trace.meta["engines"]
    assert list(engine.of_profile(0)["name"]) == ["a", "b"]
    assert list(engine.of_profile(12)["name"]) == ["a [profile 12]", "b [profile 12]"]
    assert sorted(set(engine.layers["profile"])) == [0, 1, 2, 9, 10, 12]


def test_two_clocks_do_not_share_a_trace(tmp_path):
    timing = [{"startEnqMs": 0, "endEnqMs": 1, "startComputeMs": 0, "endComputeMs": 2, "computeMs": 2}]
    sources = [write(tmp_path, f"{stem}.timing.json", timing) for stem in "ab"]
    assert [len(members) for members in group_sets(sources).values()] == [1, 1]
    trace = read_set(sources, LoadOptions())
    assert len(trace.measured) == 2
    assert [w.code for w in trace.meta["warnings"]] == ["second_clock"]
    assert all(len(e.timing) == 1 for e in trace.meta["engines"])


def test_a_damaged_member_does_not_take_the_set_with_it(tmp_path):
    good = write(tmp_path, "x.profile.json", [{"count": 1}, {"name": "a", "timeMs": 1, "averageMs": 1}])
    bad = write(tmp_path, "x.graph.json", '{"Layers": [{"Name"')
    trace = read_set([good, bad], LoadOptions())
    assert [w.code for w in trace.meta["warnings"]] == ["unreadable_file"]
    assert math.isclose(trace.meta["engines"][0].layers["total_ms"].iloc[0], 1)
