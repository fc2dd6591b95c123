"""Charts of other people's traces hold the numbers that a plain walk of the file finds."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from raw_kineto import device_events, events, length, union
from shared_files import shared_file, shared_folder

import torchtrt_viz as tv
from torchtrt_viz.charts import figure
from torchtrt_viz.charts.plan_svg import WIDTH
from torchtrt_viz.charts.ranks import rank_steps, waited_for
from torchtrt_viz.charts.registry import CHARTS, chart
from torchtrt_viz.report.html import write_html

FILES = ("a100_alexnet_cuda_sync", "a100_ddp_nccl_fwdbwd", "mi300x_resnet_train_fwdbwd_pystacks")
ENGINES = (
    "trex/trex_samples/examples/pytorch/resnet/A100/fp16",
    "trex/fuzzylabs/desktop/torch_onnx_trtexec/results/mobilenet_v2",
)
LAUNCHES = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "hipExtModuleLaunchKernel")


@cache
def raw(name: str) -> list[dict[str, Any]]:
    return events(shared_file(f"corpus/kineto/{name}.json.gz"))


@cache
def loaded(name: str) -> Any:
    return tv.load(shared_folder("corpus") / name)


def kineto(name: str) -> Any:
    return loaded(f"kineto/{name}.json.gz")


@pytest.mark.parametrize("name", FILES)
def test_launch_delays_are_those_of_the_file(name: str) -> None:
    """From the begin of the runtime call to the begin of the first work with its correlation."""
    found = raw(name)
    calls = {
        event["args"]["correlation"]: event["ts"]
        for event in found
        if event.get("cat") in ("cuda_runtime", "Runtime", "cuda_driver")
        and "correlation" in event.get("args", {})
    }
    first: dict[Any, int] = {}
    for event in device_events(found):
        number = event["args"].get("correlation")
        if number in calls:
            first[number] = min(first.get(number, event["ts"]), event["ts"])
    waited = [begin - calls[number] for number, begin in first.items()]
    body = chart(kineto(name), "launch_delay").body
    columns = Counter()
    for value in waited:
        if value >= 1:
            columns[max(at for at, edge in enumerate(body.edges) if edge <= value)] += 1
    drawn = {at: sum(counts[at] for counts in body.counts) for at in range(len(body.edges) - 1)}
    assert {at: count for at, count in drawn.items() if count} == columns
    longest = chart(kineto(name), "longest_delays").body.bars[0]
    assert longest.parts[0].value == max(waited)


@pytest.mark.parametrize("name", FILES)
def test_the_gpu_is_busy_as_long_as_the_file_says(name: str) -> None:
    by_device = defaultdict(list)
    for event in device_events(raw(name)):
        by_device[event["args"]["device"]].append(event)
    bars = chart(kineto(name), "gpu_time").body.bars
    assert len(bars) == len(by_device)
    for bar, (device, work) in zip(bars, sorted(by_device.items()), strict=True):
        assert bar.label == f"GPU {device}"
        span = max(e["ts"] + e["dur"] for e in work) - min(e["ts"] for e in work)
        assert sum(part.value for part in bar.parts) == span
        assert span - bar.parts[-1].value == length(union(work))


@pytest.mark.parametrize("name", FILES)
def test_idle_time_of_streams_is_what_lies_between_their_work(name: str) -> None:
    by_stream = defaultdict(list)
    for event in device_events(raw(name)):
        by_stream[event["args"]["device"], event["args"]["stream"]].append(event)
    idle = []
    for work in by_stream.values():
        idle.append(sum(b[0] - a[1] for a, b in pairwise(union(work))))
    bars = chart(kineto(name), "idle").body.bars
    drawn = [sum(part.value for part in bar.parts) for bar in bars]
    assert sorted(drawn) == sorted(value for value in idle if value)


@pytest.mark.parametrize("name", FILES)
def test_the_roots_of_a_flame_graph_are_the_busy_time_of_the_threads(name: str) -> None:
    """No moment of a thread counts twice, whoever recorded it, and none is lost."""
    host = defaultdict(list)
    for event in raw(name):
        category = str(event.get("cat", "")).lower()
        if category in ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "python_function"):
            host[str(event["pid"]), str(event["tid"])].append(event)
    body = chart(kineto(name), "flame", min_pct=0.0).body
    roots = [width for width, depth in zip(body.width, body.depth, strict=True) if depth == 0]
    assert sorted(roots) == sorted(length(union(work)) for work in host.values())
    assert sum(roots) == body.whole


@pytest.mark.parametrize("name", FILES)
def test_the_flame_graph_of_the_gpu_has_all_work_whose_launch_is_known(name: str) -> None:
    trace = kineto(name)
    found = raw(name)
    calls = {
        event["args"]["correlation"]
        for event in found
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {})
    }
    linked = sum(e["dur"] for e in device_events(found) if e["args"].get("correlation") in calls)
    assert chart(trace, "flame_gpu", min_pct=0.0).body.whole == linked


@pytest.mark.parametrize("name", FILES)
def test_the_critical_path_leaves_no_time_out(name: str) -> None:
    trace = kineto(name)
    body = chart(trace, "critical_path").body
    path = tv.analysis.critical_path(trace)
    assert sum(part.value for bar in body.bars for part in bar.parts) == path["dur_ns"].sum()
    assert (path["start_ns"].to_numpy()[1:] == (path["start_ns"] + path["dur_ns"]).to_numpy()[:-1]).all()


@pytest.mark.parametrize("folder", ENGINES)
def test_layers_are_those_of_the_engine(folder: str) -> None:
    trace = loaded(folder)
    (info,) = trace.meta["engines"]
    timed = info.layers[info.layers["total_ms"].notna()]
    bars = chart(trace, "layers", top=10_000).body.bars
    assert len(bars) == len(timed)
    drawn = sum(part.value for bar in bars for part in bar.parts)
    assert drawn / 1e6 == pytest.approx(float(timed["total_ms"].sum()), rel=1e-6)
    types = chart(trace, "layer_types").body
    by_type = timed.groupby("type")["total_ms"].sum()
    assert {bar.label: sum(part.value for part in bar.parts) / 1e6 for bar in types.bars} == pytest.approx(
        by_type.to_dict()
    )


@pytest.mark.parametrize("folder", ENGINES)
def test_every_layer_and_tensor_of_an_engine_is_in_its_graph(folder: str) -> None:
    trace = loaded(folder)
    (info,) = trace.meta["engines"]
    body = chart(trace, "plan").body
    assert Counter(node.name for node in body.nodes if node.layer) == Counter(info.layers["name"])
    written = {tensor.name for tensors in info.layers["outputs"] for tensor in tensors or ()}
    written |= set(info.bindings.loc[info.bindings["direction"] == "input", "name"])
    read = [
        tensor.name for tensors in info.layers["inputs"] for tensor in tensors or () if tensor.name in written
    ]
    outputs = [node for node in body.nodes if not node.layer and node.kind == "output"]
    assert len(body.edges) == len(read) + len(outputs)
    rows: dict[int, list[float]] = defaultdict(list)
    for node in body.nodes:
        rows[node.rank].append(node.x)
    for edge in body.edges:
        for step, x in enumerate(edge.via):
            rank = body.nodes[edge.source].rank + 1 + step
            assert all(abs(x - node) > 0.5 for node in rows[rank]), "no line runs through a layer"
    assert f'width="{WIDTH}"' in figure.markup(chart(trace, "plan"))


def test_the_report_of_a_large_trace_stays_small(tmp_path: Any) -> None:
    trace = kineto("a100_rank0_of16_train")
    made = write_html(trace, tmp_path / "report.html")
    without = write_html(trace, tmp_path / "without.html", charts=[])
    assert made.stat().st_size < 3_000_000
    assert made.stat().st_size - without.stat().st_size < 700_000


@pytest.mark.parametrize("file", ["graphs/vllm_decode_full", "etdump/cnn_xnnpack_300runs.etdp"])
def test_other_traces_have_charts_too(file: str) -> None:
    trace = loaded(file)
    made = {name: chart(trace, name) for name in CHARTS}
    assert made["flame"].body is not None
    for one in made.values():
        assert one.body is not None or one.missing


def test_steps_of_a_session_are_those_of_its_files(tmp_path: Any) -> None:
    folder = shared_folder("corpus") / "ranks/tp4"
    session = tv.load(folder)
    recorded: dict[str, list[int]] = {}
    for file in sorted(folder.glob("*.gz")):
        rank = file.name.split("TP-")[1].split(".")[0]
        steps = [
            e
            for e in events(file)
            if str(e["name"]).startswith("step[") and e.get("cat") == "user_annotation"
        ]
        recorded[f"rank {rank}"] = [e["dur"] for e in sorted(steps, key=lambda e: e["ts"])]
    made = rank_steps(session.steps())
    drawn = {line.name: [int(value) for value in line.y] for line in made.body.lines}
    assert drawn == recorded
    bars = waited_for(session.overview().stragglers).body.bars
    assert bars[0].label == "rank 1"
    page = session.to_html(tmp_path / "session.html").read_text()
    assert 'data-chart="rank_steps"' in page
    assert 'data-chart="waited_for"' in page
