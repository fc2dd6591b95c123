"""What counts as work of a device where phases and layers stand beside kernels; worked out by hand."""

from __future__ import annotations

import pytest
from trace_builder import Builder

from torchtrt_viz import analysis
from torchtrt_viz.analysis.core.device_work import device_label, device_work


def test_measured_phases_are_device_work_and_layers_lie_inside_them() -> None:
    b = Builder()
    enqueue, gpu, layers = (
        b.track("enqueue", process="e", thread="enqueue"),
        b.track("e GPU", "stream", "gpu", process="e", thread="GPU"),
        b.track("e layers", "engine", "gpu", process="e"),
    )
    for run in range(10):
        t = 1000 * run
        b.span("enqueue", t, 20, enqueue, "runtime", correlation=run + 1)
        b.span("H2D", t, 100, gpu, "memcpy", correlation=run + 1, run_id="e")
        b.span("GPU compute", t + 100, 700, gpu, "phase", correlation=run + 1, run_id="e")
        b.span("conv", t + 150, 500, layers, "layer", run_id="e")
    trace = b.build()
    (row,) = analysis.temporal_breakdown(trace).to_dict("records")
    assert (row["busy_ns"], row["compute_ns"], row["span_ns"]) == (8000, 7000, 9800)
    kernels = analysis.kernels(trace).set_index("name")["total_ns"].to_dict()
    assert kernels == {"GPU compute": 7000, "H2D": 1000}
    both = analysis.host_gpu(trace).set_index("measure")["ns"]
    assert both["gpu busy"] == 8000
    assert analysis.launch_delays(trace)["host_ns"].sum() == 200, "an enqueue starts both"
    assert not analysis.explain(trace)["finding"].str.contains("idle for 8").any()


def test_kernels_take_the_place_of_the_phase_around_them() -> None:
    b = Builder()
    gpu, events = b.stream(7), b.track("e GPU", "stream", "gpu", device=0)
    b.span("GPU compute", 0, 1000, events, "phase", run_id="e")
    b.span("gemm", 100, 600, gpu, "kernel")
    b.span("GPU compute", 2000, 1000, events, "phase", run_id="e")  # nothing finer was recorded here
    assert analysis.kernels(b.build()).set_index("name")["total_ns"].to_dict() == {
        "GPU compute": 1000,
        "gemm": 600,
    }


def test_kernels_of_another_device_take_no_place() -> None:
    b = Builder()
    kernels = b.stream(7, device=0)
    for device in (0, 1):
        events = b.track(f"e{device} GPU", "stream", "gpu", device=device)
        b.span(f"compute {device}", 0, 1000, events, "phase", run_id=f"e{device}")
    b.span("gemm", 100, 600, kernels, "kernel")
    work = device_work(b.build())
    assert work.dur.tolist() == [1000, 600]
    assert [device_label(device) for device in work.devices()] == [0, 1]
    assert work.of(work.device == 1).dur.tolist() == [1000]
    assert [edges.tolist() for edges in work.of(work.device == 0).busy("compute")] == [[100], [700]]


def test_layers_stand_for_work_outside_the_phases_of_their_engine() -> None:
    b = Builder()
    events, layers = b.track("a GPU", "stream", "gpu", device=0), b.track("layers", "engine", "gpu", device=0)
    b.span("GPU compute", 0, 1000, events, "phase", run_id="a")
    b.span("conv", 100, 500, layers, "layer", run_id="a")  # inside its engine's phase
    b.span("relu", 700, 200, layers, "layer", run_id="b")  # of an engine without phases
    b.span("conv", 2000, 400, layers, "layer", run_id="a")  # a run whose phase was not recorded
    b.span("part", 2100, 100, layers, "layer", run_id="a")  # inside another layer
    trace = b.build()
    work = device_work(trace)
    assert trace.spans["name"].iloc[work.row].tolist() == ["GPU compute", "relu", "conv"]
    assert work.dur.tolist() == [1000, 200, 400]


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16", "kernel", "communication"),
        ("void vllm::cross_device_reduce_2stage<float>", "kernel", "communication"),
        ("void reduce_kernel<512>", "kernel", "compute"),
        ("CopyHostToDevice", "kernel", "copy"),
        ("__amd_rocclr_fillBufferAligned", "kernel", "fill"),
        ("Memcpy HtoD", "memcpy", "copy"),
        ("Memset", "memset", "fill"),
        ("all_gather", "communication", "communication"),
    ],
)
def test_classes_of_work(name: str, kind: str, expected: str) -> None:
    b = Builder()
    b.span(name, 0, 10, b.stream(7), kind)
    work = device_work(b.build())
    assert work.is_class(expected).tolist() == [True]
