"""Logs: layer tables of both column orders, the performance summary, inspector text, profiler lines."""

from __future__ import annotations

import pandas as pd
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


# -- figures of timed runs, as the versions of trtexec print them ----------------------------------------


def performance_of(tmp_path, *lines, stamp="[01/12/2021-17:36:31] [I] "):
    path = tmp_path / "run.log"
    path.write_text("&&&& RUNNING TensorRT.trtexec\n" + "\n".join(stamp + line for line in lines) + "\n")
    trace = load(path)
    return [section["performance"] for section in trace.meta["loose"] if "performance" in section], trace


BLOCKS_OF_7 = (
    "=== Model Options ===",
    "Format: ONNX",
    "Average on 10 runs - GPU latency: 3.1 ms - Host latency: 3.6 ms (end to end 6.1 ms, enqueue 0.5 ms)",
    "Host Latency",
    "min: 4.34442 ms (end to end 4.35388 ms)",
    "max: 7.12915 ms (end to end 7.14398 ms)",
    "mean: 4.52398 ms (end to end 4.53851 ms)",
    "median: 4.49951 ms (end to end 4.51025 ms)",
    "percentile: 5.46606 ms at 99% (end to end 6.10291 ms at 99%)",
    "throughput: 0 qps",
    "walltime: 3.00956 s",
    "Enqueue Time",
    "min: 2.3894 ms",
    "max: 4.89722 ms",
    "median: 2.64331 ms",
    "GPU Compute",
    "min: 4.2439 ms",
    "mean: 4.42492 ms",
    "percentile: 5.36792 ms at 99%",
    "total compute time: 2.93 s",
)


@pytest.mark.parametrize("stamp", ["[10/20/2020-19:56:29] [I] ", "[I] ", ""])
def test_blocks_of_tensorrt_7_are_named_by_their_words(tmp_path, stamp):
    (found,), trace = performance_of(tmp_path, *BLOCKS_OF_7, stamp=stamp)
    assert found["enqueue_ms"] == {"min": 2.3894, "max": 4.89722, "median": 2.64331}
    assert found["latency_ms"] == {
        "min": 4.34442,
        "max": 7.12915,
        "mean": 4.52398,
        "median": 4.49951,
        "p99": 5.46606,
    }
    assert found["end_to_end_ms"] == {
        "min": 4.35388,
        "max": 7.14398,
        "mean": 4.53851,
        "median": 4.51025,
        "p99": 6.10291,
    }
    assert found["gpu_compute_ms"] == {"min": 4.2439, "mean": 4.42492, "p99": 5.36792}
    assert (found["host_walltime_s"], found["gpu_compute_s"]) == (3.00956, 2.93)
    assert found["averages"] == [
        {"runs": 10, "gpu_compute_ms": 3.1, "latency_ms": 3.6, "end_to_end_ms": 6.1, "enqueue_ms": 0.5}
    ]
    # 0 is no throughput: trtexec multiplied by the batch of a network that has none
    assert "throughput_qps" not in found
    assert [(w.code, w.count) for w in trace.meta["warnings"]] == [("no_throughput", 1)]
    assert trace.meta["loose"][0]["model_options"] == {"Format": "ONNX"}
    assert trace.meta["accounting"]["read"] == len(BLOCKS_OF_7) - 1  # the head of a section holds nothing


def test_the_reference_log_of_tensorrt_7(cases):
    path = cases / "outside/trtexec7_log_statistics/trtexec_7x.log"
    if not path.exists():
        pytest.skip("../shared/cases/outside is not beside this checkout")
    (section,) = load(path).meta["loose"]
    assert section["performance"]["enqueue_ms"] == {"min": 0.4, "max": 1.9, "median": 0.52}
    assert section["performance"]["end_to_end_ms"]["mean"] == 6.15
    assert section["performance"]["latency_ms"]["mean"] == 3.65
    assert section["model_options"] == {"Format": "ONNX"}


def test_lines_that_lost_their_ends_and_lines_with_colours(tmp_path):
    """As pasted into a README, and as a terminal shows them."""
    stamp = "[07/20/2021-01:49:12] [I] "
    pasted = "GPU Compute" + "".join(
        stamp + f"{name}: {value} ms" for name, value in (("min", 6.1), ("mean", 6.17))
    )
    (found,), _ = performance_of(tmp_path, pasted, stamp=stamp)
    assert found == {"gpu_compute_ms": {"min": 6.1, "mean": 6.17}}
    (found,), _ = performance_of(
        tmp_path, "GPU Compute\x1b[0m", "mean: 6.17 ms*\x1b[0m", stamp="\x1b[32m[07/20/2021-01:49:12] [I] "
    )
    assert found == {"gpu_compute_ms": {"mean": 6.17}}


def test_old_times_inside_a_log(tmp_path):
    _, trace = performance_of(
        tmp_path,
        "GPU Compute",
        "mean: 2 ms",
        '[ { "startInMs" : 1, "startComputeMs" : 2, "computeMs" : 3 } ]',
    )
    (engine,) = trace.meta["engines"]
    assert engine.timing["computeMs"].tolist() == [3.0]
    assert engine.performance["gpu_compute_ms"] == {"mean": 2.0}


def test_end_to_end_latency_and_an_enqueue_without_a_mean_in_tables(tmp_path):
    path = tmp_path / "run.log"
    table = SUMMARY[SUMMARY.index(STAMP + "=== Profile") :]
    path.write_text("\n".join(STAMP + line for line in BLOCKS_OF_7) + "\n" + table)
    trace = load(path)
    sums = trace.meta["engines"][0].sums().set_index("quantity")["ms"]
    assert sums["end to end"] == 4.53851
    assert sums["host latency"] == 4.52398
    assert sums["enqueue"] is pd.NA
    answer = trace.questions()["answer"].iloc[1]
    assert "run 2.64 ms in the median" in answer


def test_averages_of_tensorrt_5_and_6(tmp_path):
    line = "Average over 10 runs is 25.9082 ms (host walltime is 26.0956 ms, 99% percentile time is 25.9656)."
    (found,), _ = performance_of(tmp_path, line, stamp="")
    assert found["averages"] == [
        {"runs": 10, "gpu_compute_ms": 25.9082, "host_walltime_ms": 26.0956, "p99_ms": 25.9656}
    ]


def test_lines_of_tensorrt_8_with_end_to_end_latency(tmp_path):
    figures = "min = 0.36 ms, max = 0.67 ms, mean = 0.52 ms, median = 0.5 ms, percentile(99%) = 0.61 ms"
    (found,), trace = performance_of(
        tmp_path,
        "Warmup completed 1 queries over 50 ms",
        "Timing trace has 100 queries over 4.07195 s",
        "=== Performance summary ===",
        "Throughput: 1.29477e+08 qps",
        f"Latency: {figures}",
        f"End-to-End Host Latency: {figures.replace('0.52', '0.9')}",
        f"H2D Latency: {figures.replace('0.52', '0.01')}",
        "D2H Latency: min = 0 ms, max = nan ms, mean = inf ms, median = 0 ms, percentile(99%) = 0 ms",
        "Enqueue Time: min = 12.5 us, max = 20 us, median = 13 us",
        "Total Host Walltime: 4.07195 s",
    )
    assert found["throughput_qps"] == 1.29477e8
    assert (found["warmup_queries"], found["queries"]) == (1, 100)
    assert found["end_to_end_ms"]["mean"] == 0.9
    assert found["latency_ms"] == {"min": 0.36, "max": 0.67, "mean": 0.52, "median": 0.5, "p99": 0.61}
    assert found["d2h_ms"] == {"min": 0.0, "median": 0.0, "p99": 0.0}
    assert found["enqueue_ms"] == pytest.approx({"min": 0.0125, "max": 0.02, "median": 0.013})
    assert trace.meta["warnings"] == []


def test_percentiles_of_any_list(tmp_path):
    line = "GPU Compute Time: min = 1 ms, max = 3 ms, mean = 2 ms, median = 2 ms, " + ", ".join(
        f"percentile({p}%) = {v} ms" for p, v in ((50, 2), (99.9, 2.9), (100, 3))
    )
    (found,), _ = performance_of(tmp_path, line)
    assert found["gpu_compute_ms"] == {
        "min": 1.0,
        "max": 3.0,
        "mean": 2.0,
        "median": 2.0,
        "p50": 2.0,
        "p99.9": 2.9,
        "p100": 3.0,
    }


def test_runs_of_one_log_stay_apart(tmp_path):
    path = tmp_path / "batches.log"
    path.write_text(
        "".join(
            f"&&&& RUNNING TensorRT.trtexec # trtexec --batch={batch}\n"
            "[I] === Build Options ===\n"
            f"[I] Max batch: {batch}\n"
            "[I] === System Options ===\n"
            "[I] Device: 0\n"
            f"[I] GPU Compute\n[I] mean: {batch}.5 ms\n"
            "&&&& PASSED TensorRT.trtexec\n"
            for batch in (1, 4, 8)
        )
    )
    found = load(path).meta["loose"]
    assert [section["performance"]["gpu_compute_ms"]["mean"] for section in found] == [1.5, 4.5, 8.5]
    assert [section["build_options"] for section in found] == [
        {"Max batch": "1"},
        {"Max batch": "4"},
        {"Max batch": "8"},
    ]


def test_a_second_run_is_not_the_engines_summary(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(
        SUMMARY
        + "\n"
        + "\n".join(line for line in SUMMARY.split("\n") if "Latency" in line).replace("0.4956", "7")
    )
    (engine,) = load(path).meta["engines"]
    assert engine.performance["latency_ms"]["median"] == 0.4956
    (second,) = load(path).meta["loose"]
    assert second["performance"]["latency_ms"]["median"] == 7


def test_figures_without_their_head_are_unknown_and_said(tmp_path):
    """What grep leaves of a log."""
    (found,), trace = performance_of(
        tmp_path, "GPU Compute", "mean: 2.51739 ms", "--", "median: 2.46094 ms", "min: 0.048584 ms"
    )
    assert found["gpu_compute_ms"] == {"mean": 2.51739}
    assert trace.meta["accounting"]["unread"] == {"statistics without a head": 2}
    assert [(w.code, w.count) for w in trace.meta["warnings"]] == [("unread_lines", 2)]


def test_what_else_has_times_is_counted(tmp_path):
    (found,), trace = performance_of(
        tmp_path,
        "Engine built in 25.5 sec.",
        "GPU Compute",
        "mean: 2.5 ms",
        "Tactic: 0x0000000000000000 Time: 0.0146286",
        "Tactic Name: sm80_xmma Tactic: 0x1 Time: 0.02",
        "Total Activation Memory took 12.5 ms",
    )
    assert found["build_s"] == 25.5
    assert trace.meta["accounting"]["unread"] == {
        "times of tactics, from building the engine": 2,
        "other lines with times": 1,
    }
    assert sum(w.count for w in trace.meta["warnings"]) == 3


def test_lines_of_the_library_are_no_options(tmp_path):
    (found,), trace = performance_of(
        tmp_path,
        "=== Build Options ===",
        "Max batch: 1",
        "[TRT] [MemUsageChange] Init CUDA: CPU +203, GPU +0",
        "Workspace: 16 MiB",
        "Start parsing network model.",
        "Input filename: model.onnx",
        "GPU Compute",
        "mean: 2 ms",
    )
    assert trace.meta["loose"][0]["build_options"] == {"Max batch": "1", "Workspace": "16 MiB"}
    assert found["gpu_compute_ms"] == {"mean": 2.0}


def test_a_log_of_options_alone_says_that_nothing_was_timed(tmp_path):
    path = tmp_path / "build.log"
    path.write_text(
        "&&&& RUNNING TensorRT.trtexec\n[I] === Build Options ===\n[I] Max batch: 1\n"
        "[I] Engine built in 25.5 sec.\n&&&& PASSED TensorRT.trtexec\n"
    )
    with pytest.raises(TraceFormatError, match="nothing was timed"):
        load(path)


def test_lists_of_a_summary_that_are_too_short_do_not_name_the_mean(tmp_path):
    path = tmp_path / "a.profile.metadata.json"
    path.write_text(
        '{"performance_summary": {"Enqueue Time": [0.4, 1.9, 0.52], "Latency": [1, 2, 1.5, 1.4, 1.9]}}'
    )
    (section,) = load(path).meta["loose"]
    assert section["performance"]["enqueue_ms"] == {"min": 0.4, "max": 1.9, "_3": 0.52}
    assert section["performance"]["latency_ms"]["mean"] == 1.5
