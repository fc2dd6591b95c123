"""What launched each piece of device work, and behind how many it waited; and how a timeline tells of it."""

from __future__ import annotations

import pytest
from trace_builder import Builder

from torchtrt_viz.analysis import launched_work, queue_length
from torchtrt_viz.report.events.launch_stories import LaunchStories
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.scene.service import Service


@pytest.fixture
def trace():
    """Launches at 10, 20 and 30 whose work begins at 40, 60 and 100; another one for a free stream."""
    b = Builder()
    thread = b.track("thread 1", process="1", thread="1")
    stream = b.track("stream 7", "stream", "gpu", thread="7", device=0)
    other = b.track("stream 8", "stream", "gpu", thread="8", device=0)
    b.span("step", 0, 90, thread, "python")
    b.span("nn.Module: Mlp_0", 5, 40, thread, "python")
    b.span("aten::addmm", 8, 30, thread, args={"Input Dims": [[2, 3], [3, 4]]})
    for number, at in enumerate((10, 20, 30)):
        b.span("cudaLaunchKernel", at, 5, thread, "runtime", correlation=number + 1)
    b.span("cudaMemcpyAsync", 70, 5, thread, "runtime", correlation=4)
    for number, (begin, length) in enumerate(((40, 20), (60, 40), (100, 10))):
        b.span(f"gemm_{number}", begin, length, stream, "kernel", correlation=number + 1)
    b.span("Memcpy HtoD", 80, 5, other, "memcpy", correlation=4)
    b.span("orphan", 120, 5, other, "kernel", correlation=99)
    return b.build()


def test_each_piece_has_its_call_its_operator_and_its_place_in_the_queue(trace):
    work = launched_work(trace).set_index("name")
    queued = work["queued_ns"].dropna().to_dict()
    assert queued == {"gemm_0": 30, "gemm_1": 40, "gemm_2": 70, "Memcpy HtoD": 10}
    assert work.loc["orphan", ["host_row", "queued_ns", "ahead"]].isna().all()
    assert work["ahead"].dropna().to_dict() == {"gemm_0": 0, "gemm_1": 1, "gemm_2": 2, "Memcpy HtoD": 0}
    operators = work["operator"].dropna().astype(str).to_dict()
    assert operators == dict.fromkeys(("gemm_0", "gemm_1", "gemm_2"), "aten::addmm")
    spans = trace.spans
    assert spans["name"].iloc[int(work.loc["gemm_1", "host_row"])] == "cudaLaunchKernel"
    assert int(spans["start_ns"].iloc[int(work.loc["gemm_1", "host_row"])]) == 20


def test_the_longest_queue_is_that_of_the_step_function(corpus):
    import torchtrt_viz as tv

    trace = tv.load(corpus / "kineto" / "a100_ddp_nccl_fwdbwd.json.gz")
    assert launched_work(trace)["ahead"].max() + 1 == queue_length(trace)["length"].max()


def test_a_timeline_tells_it(trace):
    scene = Scene.of(trace)
    service = Service(scene, story=LaunchStories(scene))
    row = {name: at for at, name in enumerate(trace.spans["name"].astype(str))}
    launch = int(trace.spans.query("start_ns == 30 and kind == 'runtime'").index[0])
    detail, _ = service.answer({"op": "detail", "row": row["gemm_2"]})
    assert detail["story"] == {
        "queued": 70,
        "ahead": 2,
        "shapes": "[[2,3],[3,4]]",
        "path": [
            {"text": "Mlp_0", "row": -1},
            {"text": "aten::addmm", "row": row["aten::addmm"]},
            {"text": "cudaLaunchKernel", "row": launch},
            {"text": "kernel", "row": row["gemm_2"]},
        ],
    }
    for name in ("orphan", "aten::addmm"):
        assert "story" not in service.answer({"op": "detail", "row": row[name]})[0]
    columns, texts = LaunchStories(scene).columns()
    at = columns["row"].tolist().index(row["gemm_2"])
    assert (columns["queued"][at], columns["ahead"][at], columns["host"][at]) == (70, 2, launch)
    assert (texts[columns["module"][at]], texts[columns["shapes"][at]]) == ("Mlp_0", "[[2,3],[3,4]]")
    assert row["orphan"] not in columns["row"]
