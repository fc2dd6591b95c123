"""Logs: layer tables of both column orders, the performance summary, inspector text, profiler lines."""

from __future__ import annotations

import pytest

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.files import load


def test_a_modern_profile_table(corpus):
    path = corpus / "trex/nvidia_cookbook/07-Tool__trtexec__result-05.log"
    trace = load(path)
    assert trace.meta["format"] == "trtexec"
    (engine,) = trace.meta["engines"]
    assert engine.count == 18362
    assert len(engine.layers) == 15
    row = engine.layers.set_index("name").loc[
        "Reformatting CopyNode for Input Tensor 0 to {ForeignNode[node_conv2d_1...node_relu_1]}"
    ]
    assert (row["total_ms"], row["average_ms"], row["median_ms"], row["percentage_recorded"]) == (
        101.96,
        0.0056,
        0.0044,
        6.7,
    )
    # the table's own last line: 1529.13 in all
    assert float(engine.layers["total_ms"].sum()) == pytest.approx(1529.13, abs=0.08)
    assert "Total" not in set(engine.layers["name"])
    assert trace.meta["versions"] == {"tensorrt": "10.16.1"}
    assert engine.device["Selected Device"] == "NVIDIA H100 PCIe"
    assert engine.inference_options["Duration"] == "3s (+ 200ms warm up)"
    assert engine.sums().set_index("quantity").loc["layer sum", "ms"] == pytest.approx(
        1529.13 / 18362, abs=1e-5
    )


def test_inspector_text_with_two_optimisation_profiles(corpus):
    path = corpus / "trex/nvidia_cookbook/04-Feature__EngineInspector__log-main.py.log"
    (engine,) = load(path).meta["engines"]
    lines = [line for line in path.read_text().split("\n") if line.startswith("Name: ")]
    assert len(engine.layers) == len(lines) == 26
    assert list(engine.layers["name"]) == [
        line[len("Name: ") : line.index(", LayerType: ")] for line in lines
    ]
    assert list(engine.layers["profile"]) == [0] * 13 + [1] * 13
    first = engine.layers.iloc[0]
    # 1x1x28x28 FP32 in, 1x32x28x28 FP32 out, 800 + 32 floats of weights and bias
    assert (first["in_bytes"], first["out_bytes"], first["weights_bytes"]) == (3136, 100352, 3328)
    assert first["operators"] == ("node_conv2d", "node_relu")
    assert first["attributes"]["Kernel"] == [5, 5]
    gemm = engine.layers.set_index("name").loc["node_linear_myl5_2"]
    assert gemm["operators"] == ("node_linear", "node_relu_2")
    assert gemm["in_shapes"] == "-1x3136"
    assert list(engine.bindings["name"]) == ["x", "y", "z"]


def test_lines_of_a_python_profiler(corpus):
    path = corpus / "trex/nvidia_cookbook/04-Feature__Profiler__log-main.py.log"
    lines = path.read_text().split("\n")
    times: dict[str, list[float]] = {}
    block = 0
    for line in lines:
        if line.startswith("============================== Start"):
            block += 1
        if line.startswith("Timing:") and block == 1:
            times.setdefault(line.split("-> ")[1], []).append(float(line[7:].split("us")[0]))
    first, second = load(path).meta["engines"]
    assert list(first.layers["name"]) == list(times)
    assert first.count == 2
    assert second.count == 1
    for name, total in zip(first.layers["name"], first.layers["total_ms"], strict=True):
        assert total == pytest.approx(sum(times[name]) / 1000)
    # node_conv2d + node_relu of the second engine: 8.224 us
    assert second.layers.set_index("name").loc["node_conv2d + node_relu", "total_ms"] == pytest.approx(
        0.008224
    )


def test_json_with_the_suffix_of_a_log(corpus):
    path = corpus / "trex/nvidia_cookbook/07-Tool__trtexec__model-trained-exportLayerInfo.log"
    trace = load(path)
    assert trace.meta["format"] == "trex"
    assert len(trace.meta["engines"][0].layers) == 9


STAMP = "[07/07/2026-02:11:43] [I] "


def statistics(low: float, high: float, mean: float, median: float, p90: float, p99: float) -> str:
    return (
        f"min = {low} ms, max = {high} ms, mean = {mean} ms, median = {median} ms, "
        f"percentile(90%) = {p90} ms, percentile(99%) = {p99} ms"
    )


SUMMARY = "\n".join(
    STAMP + line
    for line in (
        "=== Performance summary ===",
        "Throughput: 2012.22 qps",
        "Latency: " + statistics(0.49, 0.5, 0.495, 0.4956, 0.498, 0.4999),
        "Enqueue Time: " + statistics(0.001, 0.02, 0.002, 0.0015, 0.003, 0.004),
        "GPU Compute Time: " + statistics(0.4, 0.5, 0.45, 0.44, 0.46, 0.47),
        "Total Host Walltime: 3.00117 s",
        "Total GPU Compute Time: 2.99126 s",
        "",
        "=== Profile (100 iterations ) ===",
        "                     Layer   Time (ms)   Avg. Time (ms)   Median Time (ms)   Time %",
        "          conv 1 + relu 2       50.00           0.5000             0.4900     62.5",
        "                       fc       30.00           0.3000             0.2900     37.5",
        "                    Total       80.00           0.8000             0.7800    100.0",
        "",
    )
)


def test_summary_and_a_table_with_names_first(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text(SUMMARY)
    (engine,) = load(path).meta["engines"]
    assert list(engine.layers["name"]) == ["conv 1 + relu 2", "fc"]
    assert list(engine.layers["total_ms"]) == [50.0, 30.0]
    assert list(engine.layers["median_ms"]) == [0.49, 0.29]
    assert engine.count == 100
    assert engine.performance["latency_ms"]["p90"] == 0.498
    assert engine.performance["latency_ms"]["p99"] == 0.4999
    assert engine.performance["throughput_qps"] == 2012.22
    sums = engine.sums().set_index("quantity")
    assert sums.loc["layer sum", "ms"] == pytest.approx(0.8)
    assert sums.loc["gpu compute", "ms"] == 0.45
    assert sums.loc["gap: layer sum - gpu compute", "ms"] == pytest.approx(0.35)


def test_a_table_of_8_2_without_medians(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(
        "[I] === Profile (10 iterations ) ===\n"
        "[I]   Layer   Time (ms)   Avg. Time (ms)   Time %\n"
        "[I]   a + b       1.00           0.1000     100.0\n"
        "[I]   Total       1.00           0.1000     100.0\n"
    )
    (engine,) = load(path).meta["engines"]
    assert engine.layers["total_ms"].tolist() == [1.0]
    assert engine.layers["median_ms"].isna().all()
    assert engine.layers["percentage_recorded"].tolist() == [100.0]


def test_lines_with_names_first_keep_their_colons(tmp_path):
    path = tmp_path / "profile.txt"
    path.write_text(
        "(Unnamed Layer* 0) [Conv2d] + (Unnamed Layer* 1) [Activation]: 12.647ms\n"
        "[RELU #1] torch.relu(tensor(shape=[1, 3]), x: y): 4.5 ms\n"
        "pool: 1ms\n"
    )
    (engine,) = load(path).meta["engines"]
    assert engine.layers["total_ms"].tolist() == [12.647, 4.5, 1.0]
    assert engine.layers["name"].iloc[1] == "[RELU #1] torch.relu(tensor(shape=[1, 3]), x: y)"
    assert engine.count == 1


def test_a_log_without_anything_says_what_to_run(tmp_path):
    path = tmp_path / "a.log"
    path.write_text("&&&& RUNNING TensorRT.trtexec\nnothing else\n")
    with pytest.raises(TraceFormatError, match="--dumpProfile"):
        load(path)
