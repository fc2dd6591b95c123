"""Files about engines in every writer's dialect, made here: the same engine, and the same values by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from engine_writers import (
    BUILD_METADATA,
    CALLS,
    DEVICES,
    GRAPHS,
    INSPECTOR_LOG,
    MODERN_LOG,
    OLD_LOG,
    PROFILE_METADATA,
    PROFILER_LOG,
    PROFILES,
    dumps,
    log,
    timing,
)

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.file_set import EngineInfo, read_set
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source


def loaded(folder: Path, name: str, data: bytes) -> tv.Trace:
    path = folder / name
    path.write_bytes(data)
    trace = tv.load(path)
    assert isinstance(trace, tv.Trace)
    return trace


def engine_of(folder: Path, name: str, data: bytes) -> EngineInfo:
    (engine,) = loaded(folder, name, data).meta["engines"]
    return engine


def set_of(folder: Path, files: dict[str, bytes]) -> tuple[EngineInfo, LoadOptions]:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    options = LoadOptions()
    trace = read_set([Source(folder / name) for name in files], options)
    (engine,) = trace.meta["engines"]
    return engine, options


# -- layer information -------------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", GRAPHS)
def test_layers_of_every_version(writer: str, tmp_path: Path) -> None:
    engine = engine_of(tmp_path, "net.graph.json", GRAPHS[writer])
    layers = engine.layers
    assert layers["name"].tolist() == ["conv", "act"]
    assert layers["in_bytes"].tolist() == [32, 8]
    assert layers["out_bytes"].tolist() == [8, 16]
    assert layers["weights_bytes"].tolist() == [64, pd.NA]
    assert layers["precision"].tolist() == ["FP16", "FP16"]
    assert layers["tactic"].tolist() == ["sm80_conv", "sm80_act"]
    assert layers["stream"].isna().all() == (writer == "TensorRT 8.2")
    bindings = engine.bindings
    assert bindings["name"].tolist() == ["x", "y"]
    assert bindings["direction"].tolist() == ["input", "output"]
    assert bindings["dtype"].tolist() == ["FP32", "FP32"]
    dynamic = writer == "TensorRT 11"
    assert bindings["shape"].tolist() == ["-1x8" if dynamic else "1x8", "1x4"]
    assert bindings["bytes"].tolist() == [pd.NA if dynamic else 32, 16]
    assert bindings["opt_shape"].tolist() == ["4x8" if dynamic else pd.NA, pd.NA]
    assert len(layers.loc[layers["in_profile"]]) == 0


def test_borders_that_the_file_describes_badly(tmp_path: Path) -> None:
    tensors = [
        {"Name": "a", "IOMode": "None", "DataType": 7, "Dimensions": "8", "ProfileInfo": "none"},
        {"Name": "b", "IOMode": "Output", "Datatype": "Int8", "Dimensions": [2, 3], "ProfileInfo": []},
        "never seen",
    ]
    engine = engine_of(tmp_path, "net.graph.json", dumps({"Layers": [], "I/O Tensors": tensors}))
    rows = engine.bindings.set_index("name")
    assert rows.loc["a", ["direction", "dtype", "shape", "bytes"]].isna().all()
    assert rows.loc["b", ["direction", "dtype", "shape", "bytes"]].tolist() == ["output", "INT8", "2x3", 6]
    assert rows.loc["never seen"].isna().all()


# -- layer times -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", PROFILES)
def test_times_of_every_writer(writer: str, tmp_path: Path) -> None:
    name, data = PROFILES[writer]
    trace = loaded(tmp_path, name, data)
    (engine,) = trace.meta["engines"]
    layers = engine.layers
    assert layers["name"].tolist() == ["conv", "act"]
    assert layers["total_ms"].tolist() == pytest.approx([5.0, 3.0])
    assert layers["percentage"].tolist() == pytest.approx([62.5, 37.5])
    assert trace.spans["dur_ns"].tolist() == [5_000_000, 3_000_000]
    assert trace.spans["timing"].tolist() == ["aggregate"] * 2
    if writer == "Torch-TensorRT, perfetto":  # totals over calls that nobody counted
        assert engine.count is None
        assert layers["average_ms"].isna().all()
        assert "does not say how many" in engine.notes[-1]
        assert engine.sums()["ms"].isna().all()
        return
    assert engine.count == CALLS
    assert layers["average_ms"].tolist() == pytest.approx([0.5, 0.3])
    middle = {"trtexec": [0.49, 0.29], "readings": [0.5, 0.3], "dated readings": [0.5, 0.3]}.get(writer)
    if middle is None:
        assert layers["median_ms"].isna().all()
    else:
        assert layers["median_ms"].tolist() == pytest.approx(middle)
    (sum_row,) = engine.sums().query("quantity == 'layer sum'").itertuples()
    assert sum_row.ms == pytest.approx(0.8)
    assert pd.isna(sum_row.percent)


def test_an_engine_on_the_host_says_so(tmp_path: Path) -> None:
    rows = [{"engine_runtime": "host"}, {"name": "gemm", "timeMs": 2.0, "averageMs": 1.0}]
    engine = engine_of(tmp_path, "a.profile.json", dumps(rows))
    assert (engine.runtime, engine.domain, engine.count) == ("host", "host", 2)
    events = [
        {"name": "gemm", "ph": "X", "ts": 0, "dur": 9, "pid": "e Engine Execution",
         "args": {"engine_runtime": "host", "count": 3, "averageMs": 0.003, "medianMs": 0.002}},
        {"name": "process_name", "ph": "M", "pid": "e Engine Execution"},
    ]  # fmt: skip
    engine = engine_of(tmp_path, "b_engine_execution_profile.trace", dumps(events))
    assert (engine.runtime, engine.count) == ("host", 3)
    assert engine.layers["median_ms"].tolist() == [0.002]


def test_totals_over_averages_that_disagree_give_no_number_of_calls(tmp_path: Path) -> None:
    rows = [
        {"name": "a", "timeMs": 10.0, "averageMs": 1.0},
        {"name": "b", "timeMs": 10.0, "averageMs": 3.0},
    ]
    engine = engine_of(tmp_path, "a.profile.json", dumps(rows))
    assert engine.count is None
    nothing = [{"name": "a", "timeMs": 0.0, "averageMs": 0.0}]
    assert engine_of(tmp_path, "b.profile.json", dumps(nothing)).count is None


def test_entries_that_are_no_times_are_counted(tmp_path: Path) -> None:
    rows = [{"count": 2.0}, {"name": "a", "timeMs": "1.5"}, {"name": "b", "timeMs": "-nan"}, 7, {"x": 1}]
    trace = loaded(tmp_path, "a.profile.json", dumps(rows))
    (engine,) = trace.meta["engines"]
    assert engine.count == 2
    assert engine.layers["total_ms"].tolist() == [1.5, pd.NA]
    assert {w.code: w.count for w in trace.meta["warnings"]} == {"not_a_record": 2, "no_time": 1}
    events = [{"name": "a", "ph": "X", "dur": -1, "pid": "e Engine Execution"}, "no event", {"ph": "X"}]
    trace = loaded(tmp_path, "a_engine_execution_profile.trace", dumps(events))
    assert {w.code: w.count for w in trace.meta["warnings"]} == {"not_a_record": 2, "no_time": 1}
    readings = {"a": [1.0, 2.0, "none", []], "b": 4.0}
    trace = loaded(tmp_path, "r_layer_latency.json", dumps(readings))
    (engine,) = trace.meta["engines"]
    assert engine.layers["total_ms"].tolist() == [3.0, 4.0]
    assert engine.layers["count"].tolist() == [2, 1]
    assert engine.count is None
    assert engine.notes[-1] == "the layers have different numbers of readings"
    assert {w.code: w.count for w in trace.meta["warnings"]} == {"no_time": 2}


def test_two_engines_of_one_trace_stay_apart(tmp_path: Path) -> None:
    events = [
        {"name": "a", "ph": "X", "ts": 0, "dur": 1000 * at, "pid": f"net_{at} Engine Execution"}
        for at in (1, 2)
    ]
    engines = loaded(tmp_path, "n_engine_execution_profile.trace", dumps(events)).meta["engines"]
    assert [engine.name for engine in engines] == ["net_1", "net_2"]
    assert [engine.layers["total_ms"].tolist() for engine in engines] == [[1.0], [2.0]]


# -- timed inferences and metadata -------------------------------------------------------------------------


@pytest.mark.parametrize("old", [False, True])
def test_totals_stand_side_by_side(old: bool, tmp_path: Path) -> None:
    """Layers 0.8 ms; GPU compute 0.7, latency 1.0 and enqueue 0.05 ms on average over two inferences."""
    files = {"net.profile.json": PROFILES["trtexec"][1], "net.timing.json": timing(old=old)}
    engine, _ = set_of(tmp_path, files)
    table = engine.sums().set_index("quantity")
    quantities = ["layer sum", "gpu compute", "host latency", "enqueue", "gap: layer sum - gpu compute"]
    assert table.index.tolist() == quantities
    assert table["ms"].tolist() == pytest.approx([0.8, 0.7, 1.0, 0.05, 0.1])
    assert table["percent"].tolist() == pytest.approx([800 / 7, 100, 1000 / 7, 50 / 7, 100 / 7])
    assert table["source"].tolist() == ["layer times", *["timed inferences"] * 3, "difference"]
    assert "auxiliary streams" in table["meaning"].iloc[-1]


def test_the_summary_stands_in_for_inferences_that_were_not_written(tmp_path: Path) -> None:
    summary = json.loads(dumps(PROFILE_METADATA))
    summary["performance_summary"]["GPU Compute Time"][2] = 0.9
    files = {
        "net.profile.json": PROFILES["trtexec"][1],
        "net.profile.metadata.json": dumps(summary),
        "net.build.metadata.json": dumps(BUILD_METADATA),
    }
    engine, options = set_of(tmp_path, files)
    assert [(w.code, w.count) for w in options.warnings] == [("left_out", 1)]  # the remark
    performance = engine.performance
    assert performance["throughput_qps"] == 800.0
    assert performance["host_walltime_s"] == 3.0
    assert performance["gpu_compute_s"] == 2.5
    assert performance["Something new"] == "as it is"
    expected = {"min": 0.09, "max": 0.12, "mean": 0.1, "median": 0.1, "p90": 0.11, "p95": 0.11, "p99": 0.11}
    assert performance["h2d_ms"] == pytest.approx(expected)
    assert engine.inference_options == {"Batch": "Explicit", "Streams": "1"}
    assert engine.build_options["Precision"] == "FP32+FP16"
    assert engine.model_options == {"Format": "ONNX"}
    assert engine.device["Selected Device"] == "NVIDIA A100"
    table = engine.sums().set_index("quantity")
    assert table["ms"].tolist() == pytest.approx([0.8, 0.9, 1.0, 0.05, -0.1])
    assert table["source"].tolist() == ["layer times", *["performance summary"] * 3, "difference"]
    assert "time between layers" in table["meaning"].iloc[-1]


def test_metadata_without_an_engine_is_kept(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "metadata.json", dumps(DEVICES))
    assert trace.meta["engines"] == []
    (loose,) = trace.meta["loose"]
    assert loose["devices"] == DEVICES
    trace = loaded(tmp_path, "net.build.metadata.json", dumps(BUILD_METADATA))
    assert trace.meta["loose"][0]["build_options"] == BUILD_METADATA["build_options"]
    with pytest.raises(TraceFormatError, match="no metadata in it"):
        read_set([_written(tmp_path / "x.profile.metadata.json", b"[]")], LoadOptions())


def _written(path: Path, data: bytes) -> Source:
    path.write_bytes(data)
    return Source(path)


# -- modules -----------------------------------------------------------------------------------------------


def test_times_by_module() -> None:
    from torchtrt_viz.formats.engine.sums import NO_MODULE, roll_up

    layers = pd.DataFrame(
        {
            "module": pd.array(["/a/b", "/a/b", "/a", "/c", None], dtype="string"),
            "total_ms": pd.array([1.0, 2.0, 3.0, 4.0, None], dtype="Float64"),
        }
    )
    table = roll_up(layers)
    assert table["module"].tolist() == ["/", "/a", "/a/b", "/c", NO_MODULE]
    assert table["depth"].tolist() == [0, 1, 2, 1, 0]
    assert table["layers"].tolist() == [4, 3, 2, 1, 1]
    assert table["self_ms"].tolist() == [0.0, 3.0, 3.0, 4.0, 0.0]
    assert table["total_ms"].tolist() == [10.0, 6.0, 3.0, 4.0, 0.0]
    assert table["percentage"].tolist() == [100.0, 60.0, 30.0, 40.0, 0.0]
    assert roll_up(layers, depth=1)["module"].tolist() == ["/", "/a", "/c", NO_MODULE]
    assert roll_up(layers.head(0)).empty


# -- logs --------------------------------------------------------------------------------------------------


def test_a_log_with_times_last_to_first(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "run.log", MODERN_LOG)
    (engine,) = trace.meta["engines"]
    assert trace.meta["versions"] == {"tensorrt": "10.16.1"}
    assert engine.count == CALLS
    assert engine.layers["name"].tolist() == ["conv", "act"]
    assert engine.layers["total_ms"].tolist() == [5.0, 3.0]
    assert engine.layers["median_ms"].tolist() == [0.49, 0.29]
    assert engine.layers["percentage_recorded"].tolist() == [62.5, 37.5]
    assert engine.model_options == {"Format": "ONNX"}
    assert engine.inference_options == {"Batch": "Explicit"}
    assert engine.device["Selected Device"] == "NVIDIA A100"
    assert engine.device["SMs"] == "108"
    assert engine.performance["throughput_qps"] == 800.5
    assert engine.performance["host_walltime_s"] == 3.001
    latency = {"min": 0.9, "max": 1.2, "mean": 1.0, "median": 0.98, "p90": 1.1, "p99": 1.15}
    assert engine.performance["latency_ms"] == latency
    table = engine.sums().set_index("quantity")["ms"]
    assert table["gap: layer sum - gpu compute"] == pytest.approx(0.1)


def test_a_log_of_tensorrt_7(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, "run.log", OLD_LOG)
    assert engine.layers["name"].tolist() == ["conv", "act"]
    assert engine.layers["median_ms"].isna().all()
    latency = {"min": 0.9, "max": 1.2, "mean": 1.0, "median": 0.98, "p99": 1.15}
    assert engine.performance["latency_ms"] == latency
    assert engine.performance["gpu_compute_ms"]["mean"] == 0.7
    assert engine.sums().set_index("quantity").loc["gpu compute", "source"] == "performance summary"


def test_lines_of_the_inspector(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, "main.log", INSPECTOR_LOG)
    layers = engine.layers
    assert layers["name"].tolist() == ["conv", "act", "s", "w"]
    assert layers["type"].tolist() == ["CaskConvolution", "PointWiseV2", "signal", "wait"]
    assert layers["in_bytes"].tolist()[:3] == [32, 8, 0]
    assert layers["out_bytes"].tolist()[:3] == [8, 16, 0]
    assert layers["weights_bytes"].tolist()[0] == 64
    assert layers["attributes"][0]["Kernel"] == [1, 1]
    assert layers["operators"].tolist()[:2] == [("/net/conv",), ("/net/act",)]
    assert engine.bindings["name"].tolist() == ["x", "y"]
    assert engine.bindings["direction"].tolist() == ["input", "output"]


def test_lines_of_a_profiler_in_python(tmp_path: Path) -> None:
    first, second = loaded(tmp_path, "main.log", PROFILER_LOG).meta["engines"]
    assert (first.count, second.count) == (CALLS, 1)
    assert first.layers["total_ms"].tolist() == pytest.approx([5.0, 3.0])
    assert second.layers["total_ms"].tolist() == pytest.approx([0.7, 0.1])
    assert first.producer == "iprofiler"


def test_a_log_that_prints_documents(tmp_path: Path) -> None:
    """Layer information, times, inferences and metadata, each as JSON between the lines of a program."""
    documents = (
        GRAPHS["TensorRT 10"],
        PROFILES["trtexec"][1],
        timing(),
        dumps({"build_options": BUILD_METADATA["build_options"]}),
        GRAPHS["TensorRT 8.2"],
        PROFILES["trtexec before 8.5"][1],
    )
    text = b"&&&& RUNNING TensorRT.trtexec\n" + b"".join(log("next:") + one + b"\n" for one in documents)
    first, second = loaded(tmp_path, "all.log", text).meta["engines"]
    assert (first.name, second.name) == ("all", "all (2)")
    assert first.layers["total_ms"].tolist() == second.layers["total_ms"].tolist() == [5.0, 3.0]
    assert first.layers["in_bytes"].tolist() == [32, 8]
    assert first.timing is not None
    assert first.build_options["Refit"] == "Disabled"
    assert second.timing is None


def test_a_log_that_is_no_text_is_read_as_far_as_it_is(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "run.log", MODERN_LOG.replace(b"Format: ONNX", b"Format: \xff"))
    assert [w.code for w in trace.meta["warnings"]] == ["encoding"]
    assert trace.meta["engines"][0].model_options == {"Format": "�"}
    with pytest.raises(TraceFormatError, match="no layers, times or performance summary"):
        loaded(tmp_path, "empty.log", b"&&&& RUNNING TensorRT.trtexec\n" + log("nothing"))


# -- what has no content -----------------------------------------------------------------------------------


def test_phases_of_a_call_with_wrong_events(tmp_path: Path) -> None:
    events = [
        {"name": "aten::copy_", "ph": "X", "ts": 1, "dur": 4, "tid": 1, "pid": "CPU Functions"},
        {"name": "aten::to", "ph": "X", "ts": 2, "dur": -1, "tid": 1, "pid": "CPU Functions"},
        "no event",
    ]
    trace = loaded(tmp_path, "net_input_profile.trace", dumps(events))
    spans = trace.spans[trace.spans["name"] == "aten::copy_"]
    assert spans["dur_ns"].tolist() == [4_000]
    assert {w.code: w.count for w in trace.meta["warnings"]} == {"not_a_record": 2}


def test_a_file_about_no_engine_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match=r"says nothing about an engine.*layer information"):
        read_set([_written(tmp_path / "x.json", b'{"a": 1}')], LoadOptions())
