"""Sets of real files: everything that the files record is there, and nothing is dropped or made up."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest
from line_counter import lines_run

from torchtrt_viz.files import load
from torchtrt_viz.formats.engine.file_set import EngineInfo, group_sets, is_set_member, read_set
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.report.static_html import static_text
from torchtrt_viz.trace import Trace

TREX = (
    "examples/pytorch/resnet/A100/fp16",
    "examples/pytorch/resnet/A100/fp32",
    "examples/pytorch/resnet/A100/qat-residual-qgap",
    "examples/pytorch/resnet/A100/qat-residual",
    "examples/pytorch/resnet/A100/qat",
    "examples/tensorflow/resnet/RTX-3090/fp32",
    "examples/tensorflow/resnet/RTX-3090/qat",
    "tests/inputs",
)
TRTEXEC = ("alexnet", "mobilenet_v2")


def read_folder(folder: Path) -> Trace:
    sources = [Source(p) for p in sorted(folder.iterdir()) if p.is_file()]
    (members,) = group_sets([s for s in sources if is_set_member(s)]).values()
    return read_set(members, LoadOptions(strict=True))


def only(folder: Path, pattern: str) -> Path:
    (path,) = (p for p in folder.glob(pattern) if ".metadata." not in p.name)
    return path


def check_engine(engine: EngineInfo, trace: Trace, graph: list, profile: list) -> None:
    """Compare a joined engine with the raw documents, value by value."""
    frame = engine.layers
    assert list(frame["name"]) == [layer["Name"] for layer in graph]
    assert list(frame["type"]) == [layer["LayerType"] for layer in graph]
    assert frame["in_graph"].all()
    assert frame["in_profile"].all()
    header, rows = profile[0], profile[1:]
    assert engine.count == header["count"]
    by_name = {row["name"]: row for row in rows}
    assert len(by_name) == len(rows) == len(graph)
    for _, layer in frame.iterrows():
        row = by_name[layer["name"]]
        assert layer["total_ms"] == row["timeMs"]
        assert layer["average_ms"] == row["averageMs"]
        assert layer["percentage_recorded"] == row["percentage"]
        if "medianMs" in row:
            assert layer["median_ms"] == row["medianMs"]
        else:
            assert pd.isna(layer["median_ms"])
        span = trace.spans.iloc[layer["span"]]
        assert span["name"] == layer["name"]
        assert span["kind"] == "layer"
        assert span["timing"] == "aggregate"
        assert span["domain"] == "gpu"
        assert abs(span["dur_ns"] - row["timeMs"] * 1e6) <= 0.5
    whole = math.fsum(row["timeMs"] for row in rows)
    for share, name in zip(frame["percentage"], frame["name"], strict=True):
        assert share == pytest.approx(100 * by_name[name]["timeMs"] / whole)
    assert float(frame["percentage"].sum()) == pytest.approx(100, abs=1e-9)
    for layer, (_, row) in zip(graph, frame.iterrows(), strict=True):
        kept = {"Name", "LayerType", "Inputs", "Outputs", "TacticName", "TacticValue", "StreamId"}
        assert row["attributes"] == {k: v for k, v in layer.items() if k not in kept}
        assert [t.name for t in row["inputs"]] == [t["Name"] for t in layer["Inputs"]]
        assert [list(t.shape) for t in row["outputs"]] == [t["Dimensions"] for t in layer["Outputs"]]
        assert row["tactic"] is pd.NA or row["tactic"] == layer["TacticName"]


@pytest.mark.parametrize("name", TREX)
def test_trex_samples(corpus, name):
    folder = corpus / "trex/trex_samples" / name
    trace = read_folder(folder)
    (engine,) = trace.meta["engines"]
    graph = json.loads(only(folder, "*.graph.json").read_text())
    profile = json.loads(only(folder, "*.profile.json").read_text())
    check_engine(engine, trace, graph["Layers"], profile)
    assert list(engine.bindings["name"]) == graph["Bindings"]
    assert engine.bindings["direction"].notna().all()
    assert not any("not in the layer information" in note for note in engine.notes)
    timing = json.loads(only(folder, "*.timing.json").read_text())
    assert len(engine.timing) == len(timing)
    assert engine.timing["computeMs"].tolist() == [row["computeMs"] for row in timing]
    compute = trace.spans[trace.spans["name"] == "GPU compute"]
    assert compute["dur_ns"].sum() == sum(round(row["computeMs"] * 1e6) for row in timing)
    assert (compute["domain"] == "gpu").all()
    assert (trace.spans.loc[trace.spans["name"] == "enqueue", "domain"] == "host").all()


@pytest.mark.parametrize("name", TRTEXEC)
def test_trtexec_of_tensorrt_10(corpus, name):
    folder = corpus / "trex/fuzzylabs/desktop/torch_onnx_trtexec/results" / name
    trace = read_folder(folder)
    (engine,) = trace.meta["engines"]
    graph = json.loads(only(folder, "*.graph.json").read_text())["Layers"]
    profile = json.loads(only(folder, "*.profile.json").read_text())
    check_engine(engine, trace, graph, profile)
    shape_calls = [layer["Name"] for layer in graph if layer["LayerType"] == "shape_call"]
    assert shape_calls  # these engines have one, and it has a time
    assert engine.layers.set_index("name").loc[shape_calls, "total_ms"].notna().all()


@pytest.mark.parametrize(("name", "gap"), [("alexnet", 6), ("mobilenet_v2", 78)])
def test_the_three_sums_stand_side_by_side(corpus, name, gap):
    """Layer sum against GPU compute: the published gaps of these two engines are +6 % and +78 %."""
    folder = corpus / "trex/fuzzylabs/desktop/torch_onnx_trtexec/results" / name
    (engine,) = read_folder(folder).meta["engines"]
    profile = json.loads(only(folder, "*.profile.json").read_text())
    timing = json.loads(only(folder, "*.timing.json").read_text())
    layer_sum = math.fsum(row["timeMs"] for row in profile[1:]) / profile[0]["count"]
    gpu = math.fsum(row["computeMs"] for row in timing) / len(timing)
    sums = engine.sums().set_index("quantity")
    assert sums.loc["layer sum", "ms"] == pytest.approx(layer_sum)
    assert sums.loc["gpu compute", "ms"] == pytest.approx(gpu)
    latency = math.fsum(row["latencyMs"] for row in timing) / len(timing)
    assert sums.loc["host latency", "ms"] == pytest.approx(latency)
    enqueue = math.fsum(row["endEnqMs"] - row["startEnqMs"] for row in timing) / len(timing)
    assert sums.loc["enqueue", "ms"] == pytest.approx(enqueue)
    assert sums.loc["gap: layer sum - gpu compute", "ms"] == pytest.approx(layer_sum - gpu)
    assert round(sums.loc["gap: layer sum - gpu compute", "percent"]) == gap
    assert "never added" in sums.loc["enqueue", "meaning"]


def test_metadata_is_named(corpus):
    folder = corpus / "trex/fuzzylabs/desktop/torch_onnx_trtexec/results/alexnet"
    (engine,) = read_folder(folder).meta["engines"]
    latency = engine.performance["latency_ms"]
    assert latency == {
        "min": 0.490234,
        "max": 0.500977,
        "mean": 0.495324,
        "median": 0.495605,
        "p90": 0.498047,
        "p95": 0.498535,
        "p99": 0.5,
    }
    assert engine.performance["throughput_qps"] == 2012.22
    assert engine.inference_options["CUDA Graph"] == "Enabled"
    assert engine.build_options["Precision"] == "FP32+FP16"
    assert engine.model_options["Format"] == "ONNX"
    assert engine.device["Selected Device"] == "NVIDIA GeForce RTX 3060 Laptop GPU"
    assert set(engine.files) >= {"graph", "profile", "timing", "metadata"}


def test_device_properties(corpus):
    folder = corpus / "trex/trex_samples/examples/pytorch/resnet/A100/fp16"
    (engine,) = read_folder(folder).meta["engines"]
    (device,) = engine.device["properties"]
    assert device["Name"] == "NVIDIA A100 80GB PCIe"
    assert device["L2_CACHE_SIZE"] == 41943040


@pytest.mark.parametrize("name", TREX)
def test_sizes_follow_from_the_raw_tensors(corpus, name):
    """An independent sum over the raw documents, with a table of the types in these files only."""
    sizes = {"FP32": 4, "FP16": 2, "Int8": 1, "Float": 4, "Half": 2}

    def size(text: str) -> int:
        (found,) = {size for word, size in sizes.items() if word in text.split()}
        return found

    folder = corpus / "trex/trex_samples" / name
    (engine,) = read_folder(folder).meta["engines"]
    graph = json.loads(only(folder, "*.graph.json").read_text())["Layers"]
    for layer, (_, row) in zip(graph, engine.layers.iterrows(), strict=True):
        for side, column in (("Inputs", "in_bytes"), ("Outputs", "out_bytes")):
            expected = sum(
                math.prod(t["Dimensions"]) * size(t["Format/Datatype"].rstrip(".")) for t in layer[side]
            )
            assert row[column] == expected
        held = [layer[k] for k in ("Weights", "Bias", "ConvWeights", "ConvBias") if k in layer]
        if held:
            assert row["weights_count"] == sum(h["Count"] for h in held)
            assert row["weights_bytes"] == sum(h["Count"] * size(h["Type"]) for h in held)
        else:
            assert pd.isna(row["weights_bytes"])


def test_readings_of_a_users_profiler_join_by_content(corpus):
    """Names of these two files have nothing in common; the names of the layers do."""
    folder = corpus / "trex/fuzzylabs/desktop/torch_trt/results/alexnet/trt_profiling"
    trace = read_folder(folder)
    (engine,) = trace.meta["engines"]
    raw = json.loads((folder / "trt_layer_latency.json").read_text())
    graph = json.loads((folder / "trt_engine_info.json").read_text())["Layers"]
    assert list(engine.layers["name"]) == [layer["Name"] for layer in graph]
    assert engine.producer == "iprofiler"
    for _, layer in engine.layers.iterrows():
        times = raw[layer["name"]]
        assert layer["count"] == len(times)
        assert layer["total_ms"] == pytest.approx(math.fsum(times))
        assert layer["attributes"]["readings_ms"] == times


def test_dated_readings_keep_their_dates(corpus):
    data = corpus / "trex/fuzzylabs/model_training/tests/test_data"
    folder = data / "example_raw_data/multiple_layers/trt_profiling"
    (engine,) = read_folder(folder).meta["engines"]
    raw = json.loads((folder / "trt_layer_latency.json").read_text())
    assert set(engine.layers["name"]) == set(raw)
    for _, layer in engine.layers.iterrows():
        assert layer["attributes"]["readings_ms"] == [reading[0] for reading in raw[layer["name"]]]
        assert layer["attributes"]["reported_at"] == [reading[1] for reading in raw[layer["name"]]]


def test_modules_roll_up_to_the_whole(corpus):
    folder = corpus / "trex/fuzzylabs/desktop/torch_trt/results/resnet18/trt_profiling"
    (engine,) = read_folder(folder).meta["engines"]
    modules = engine.modules().set_index("module")
    whole = float(engine.layers["total_ms"].sum())
    outermost = modules[modules["depth"] == 0]
    assert outermost["total_ms"].sum() == pytest.approx(whole)
    assert outermost["percentage"].sum() == pytest.approx(100)
    assert modules["self_ms"].sum() == pytest.approx(whole)
    raw = json.loads((folder / "trt_layer_latency.json").read_text())
    # every layer whose parts all lie in layer1 (names hold the full path of each part)
    inside = math.fsum(
        math.fsum(readings)
        for name, readings in raw.items()
        if "-[/layer1/" in name and not any(f"-[/layer{i}/" in name for i in (2, 3, 4))
    )
    assert modules.loc["/layer1", "total_ms"] == pytest.approx(inside)
    shallow = engine.modules(depth=1)
    assert shallow["depth"].max() == 1
    assert len(shallow) < len(modules)


def test_a_folder_loads_in_one_call(corpus):
    trace = load(corpus / "trex/trex_samples/examples/tensorflow/resnet/RTX-3090/fp32")
    assert isinstance(trace, Trace)
    assert len(trace.meta["engines"]) == 1
    assert len(trace.meta["engines"][0].layers) == 103


def test_a_summary_without_scripts_lists_the_slowest_layers(corpus):
    folder = corpus / "trex/trex_samples/examples/tensorflow/resnet/RTX-3090/fp32"
    (profile,) = folder.glob("*.profile.json")
    rows = [row for row in json.loads(profile.read_text()) if "name" in row]
    slowest = max(rows, key=lambda row: row["averageMs"])
    trace = load(folder)
    for text in (trace._repr_html_(), static_text(trace)):
        assert "Layers of engines" in text
        assert slowest["name"].split(" + ")[0] in text
        assert f"{slowest['averageMs'] * 1000:.4g} µs" in text


def test_eleven_thousand_detailed_layers_take_as_many_steps_each_as_a_thousand_do(tmp_path):
    """120 lines of Python a layer when this was written; what they take: benchmarks/engine_files.py."""
    side = [{"Name": "t", "Location": "Device", "Dimensions": [1, 64, 56, 56], "Format/Datatype": "Half"}]
    kept = {
        "Kernel": [3, 3],
        "Stride": [1, 1],
        "Weights": {"Type": "Half", "Count": 9},
        "HasBias": 1,
        "Groups": 1,
    }

    def written(count: int) -> list[Path]:
        names = [f"/block{i // 100}/conv{i}/Conv + /block{i // 100}/relu{i}/Relu" for i in range(count)]
        layers = [{"Name": n, "LayerType": "Conv", "Inputs": side, "Outputs": side, **kept} for n in names]
        times = {"timeMs": 1.5, "averageMs": 0.5, "medianMs": 0.5, "percentage": 0.01}
        graph, profile = tmp_path / f"{count}.graph.json", tmp_path / f"{count}.profile.json"
        graph.write_text(json.dumps({"Layers": layers, "Bindings": ["t"]}))
        profile.write_text(json.dumps([{"count": 3}, *({"name": n, **times} for n in names)]))
        return [graph, profile]

    def read(paths: list[Path]) -> Trace:
        return read_set([Source(path) for path in paths], LoadOptions())

    few, many = written(1_000), written(11_329)
    (engine,) = read(many).meta["engines"]
    assert len(engine.layers) == 11_329
    assert engine.layers["in_profile"].all()
    assert engine.layers["module"].iloc[-1] == "/block113"
    of_few, of_many = (lines_run(lambda paths=paths: read(paths)) for paths in (few, many))
    assert (of_many - of_few) / (11_329 - 1_000) < 150


def test_every_file_of_the_corpus_is_recognised_and_loads(corpus):
    loaded = 0
    for path in sorted((corpus / "trex").rglob("*")):
        if not path.is_file() or path.name in ("SOURCES.txt", "LICENSE.txt"):
            continue
        if path.name == "rp_empty.trace":
            assert len(load(path).spans) == 0
            continue
        trace = load(path)
        assert isinstance(trace, Trace), path
        assert trace.meta["format"] in ("trex", "torchtrt", "trtexec"), path
        assert trace.meta["engines"] or trace.meta["loose"] or len(trace.spans) or "enqueue" in path.name
        loaded += 1
    assert loaded > 150
