"""Kernels of graphs get the operators of their capture, on made-up pairs of which the owners are known."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from graph_traces import Call, Launch, capture, model, numbered, replay, write_pair
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_sums import excesses
from rank_traces import write

import torchtrt_viz as tv
from torchtrt_viz.analysis.core.links import operator_rows
from torchtrt_viz.analysis.core.recovered import recovered
from torchtrt_viz.cli.show import command as show
from torchtrt_viz.errors import OptionError, TraceFormatError
from torchtrt_viz.graphs.batch import captured_as, captured_in_file, fits, replayed
from torchtrt_viz.model.graph_rows import MATCHES
from torchtrt_viz.report.html import page
from torchtrt_viz.scene.scene import Scene

CAPTURE = "graph_capture_rank_0.1773709742341309550.pt.trace.json.gz"


def load(folder: Path, **options: Any) -> tv.Trace:
    trace = tv.load(folder, **options)
    assert isinstance(trace, tv.Trace)
    return trace


def owners(trace: tv.Trace) -> pd.DataFrame:
    """Each piece of work of graphs: what it came from, and what was recovered of it."""
    found = recovered(trace)
    rows = np.flatnonzero(
        trace.spans["kind"].isin(["kernel", "memcpy", "memset"]) & trace.spans["domain"].eq("gpu")
    )
    out = []
    is_operator = operator_rows(trace) & trace.spans["timing"].eq("modeled").to_numpy()
    for row, args in zip(rows, trace.args.read(rows), strict=True):
        if args.get("truth", -1) < 0:
            continue
        owner = -1 if found is None else int(found.owner[row])
        while owner >= 0 and not is_operator[owner]:
            owner = int(trace.spans["parent"].iloc[owner])
        match = "none" if found is None or found.match[row] < 0 else MATCHES[found.match[row]]
        out.append(
            {
                "row": int(row),
                "truth": args["truth"],
                "replay": args["replay"],
                "match": match,
                "operator": None if owner < 0 else str(trace.spans["name"].iloc[owner]),
                **({} if owner < 0 else trace.args[owner]),
            }
        )
    return pd.DataFrame(out)


def check(trace: tv.Trace, calls: Sequence[Call]) -> pd.DataFrame:
    """Nothing that was recovered is wrong, and what was not is counted; returns what was found."""
    found = owners(trace)
    for row in found.to_dict("records"):
        call = calls[row["truth"]]
        if row["match"] == "none":
            assert pd.isna(row["operator"])
            continue
        assert row["operator"] == call.operator
        if row["match"] != "by_name":
            assert row["Input Dims"] == call.shape
            assert row["module"] == f"nn.Module: {call.module}"
            assert row["source"] == f"model.py({call.number}): forward"
        else:
            for key, true in (
                ("Input Dims", call.shape),
                ("module", f"nn.Module: {call.module}"),
                ("source", f"model.py({call.number}): forward"),
            ):
                assert (
                    pd.isna(row.get(key)) if not isinstance(row.get(key), (list, str)) else row[key] == true
                )
    table = trace.graphs()
    for match in (*MATCHES, "none"):
        assert int(table[match].sum()) == int((found["match"] == match).sum())
    conserved(trace)
    return found


def conserved(trace: tv.Trace) -> None:
    """Sums over what was recovered never exceed what was recorded, and host time has none of it."""
    spans = trace.spans
    measured = spans[spans["timing"] == "measured"]
    work = measured[measured["domain"].eq("gpu") & measured["kind"].isin(["kernel", "memcpy", "memset"])]
    gpu = int(work["dur_ns"].sum())
    table = trace.operators()
    assert int(table["device_self_ns"].sum()) + table.attrs["device_unexplained_ns"] == gpu
    host = measured[measured["domain"].eq("host") & measured["kind"].eq("operator")]
    assert int(table["calls"].sum()) == len(host)
    assert int(table["total_ns"].sum()) == int(host["dur_ns"].sum())  # nothing in these traces is nested
    launches = measured[measured["name"].astype(str).str.contains("GraphLaunch")]
    graphs = trace.graphs()
    assert int(graphs["host_ns"].sum()) == int(launches["dur_ns"].sum())
    assert int(graphs["gpu_ns"].sum()) <= gpu
    tree = tv.analysis.call_tree(trace, value="gpu")
    assert int(tree["self_ns"].sum()) == gpu
    assert int(tv.analysis.call_tree(trace)["self_ns"].sum()) <= int(
        measured[measured["domain"].eq("host")]["dur_ns"].sum()
    )
    made = spans[spans["timing"] == "modeled"]
    assert made["domain"].eq("gpu").all()
    assert int(made["self_ns"].sum()) <= gpu


def pair(
    folder: Path, graph: Sequence[Call], launches: Sequence[Launch] | None = None, **options: Any
) -> Path:
    launched = [Launch(tuple(graph))] if launches is None else launches
    return write_pair(folder, replay(launched), {CAPTURE: capture([graph], **options)})


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


# -- what does not fit is refused ----


def test_a_capture_of_another_batch_size_is_refused_though_its_work_is_the_same(tmp_path: Path):
    other = model(batch=64)
    folder = write_pair(
        tmp_path, replay([Launch(tuple(model()))]), {CAPTURE: capture([other], said="capture_64_FULL")}
    )
    trace = load(folder)
    check(trace, model())
    table = trace.graphs()
    assert table["none"].tolist() == [15]
    assert "of batch size 64; the replay states 32: refused" in table["note"].iloc[0]
    assert [warning.code for warning in trace.meta["warnings"]] == [
        "graph_work_unmatched",
        "graph_capture_unused",
    ]


def test_a_capture_of_another_batch_size_is_refused_by_its_name_before_it_is_read(tmp_path: Path):
    broken = b"{ no trace"
    folder = write_pair(
        tmp_path, replay([Launch(tuple(model()))]), {"bs_64_rank0.json.gz": broken}, details=None
    )
    trace = load(folder, graphs=None)
    assert trace.graphs()["none"].tolist() == [15]


def test_a_capture_of_other_work_is_refused_and_the_nearest_named(tmp_path: Path):
    other = model(suffix="_64")
    folder = write_pair(tmp_path, replay([Launch(tuple(model()))]), {CAPTURE: capture([other], said=None)})
    trace = load(folder)
    check(trace, model())
    note = trace.graphs()["note"].iloc[0]
    assert "no capture has this work: the nearest has 6 of its 15 pieces among 15 captured calls" in note


def test_nearly_the_same_work_is_aligned_and_the_rest_left_out(tmp_path: Path):
    calls = model(layers=8)
    run = [call for call in calls if call.number != 12]  # the attention of the third layer did not run
    trace = load(pair(tmp_path, calls, [Launch(tuple(run))]))
    found = check(trace, calls)
    assert found["match"].tolist() == ["ordered"] * 39
    extra = [*run[:7], Call("other", "aten::other", number=40), *run[7:]]
    trace = load(pair(tmp_path / "more", calls, [Launch(tuple(extra))]))
    found = check(trace, [*calls, extra[7]])
    assert found["match"].value_counts().to_dict() == {"ordered": 39, "none": 1}
    assert "40 pieces of work against 40 captured calls" in trace.graphs()["note"].iloc[0]


def test_a_kernel_that_can_be_of_two_operators_is_counted_and_not_guessed(tmp_path: Path):
    twins = [Call("same", "aten::add"), Call("same", "aten::sub")]
    calls = numbered([*model(layers=8), *twins])
    run = calls[:-1]  # one of the twins did not run, and nothing says which
    trace = load(pair(tmp_path, calls, [Launch(tuple(run))]))
    found = check(trace, calls)
    assert found["match"].value_counts().to_dict() == {"ordered": 40, "none": 1}
    table = trace.graphs()
    assert table["ambiguous"].tolist() == [1]
    assert "1 piece of work can be of several captured calls" in table["note"].iloc[0]


def test_a_kernel_of_one_of_several_calls_of_an_operator_is_known_by_name(tmp_path: Path):
    twins = [Call("same", "aten::add", "Layer_8"), Call("same", "aten::add", "Layer_9")]
    calls = numbered([*model(layers=8), *twins])
    trace = load(pair(tmp_path, calls, [Launch(tuple(calls[:-1]))]))
    found = check(trace, calls)
    assert found["match"].value_counts().to_dict() == {"ordered": 40, "by_name": 1}
    last = found.iloc[-1]
    assert last["operator"] == "aten::add"
    assert last["Input Dims"] == [[32, 16], [16, 16]]
    assert pd.isna(last["module"])


# -- streams ----


def test_work_on_several_streams_is_aligned_stream_by_stream(tmp_path: Path):
    calls = numbered(
        [
            replace(call, stream=9, kernel=f"{call.kernel}_side") if call.operator == "aten::mm" else call
            for call in model()
        ]
    )
    # the side stream ran late: in time its kernels stand elsewhere than in the capture
    late = [call for call in calls if call.stream == 7] + [call for call in calls if call.stream == 9]
    trace = load(pair(tmp_path, calls, [Launch(tuple(late))]))
    found = check(trace, calls)
    assert set(found["match"]) == {"exact"}
    assert trace.operators().set_index("name").loc["aten::mm", "graph_calls"] == 3
    labels = [label for label in trace.tracks["label"] if "recovered" in label]
    assert len(labels) == 2


def test_one_call_with_work_on_two_streams_counts_once(tmp_path: Path):
    events = model(layers=1)
    text = capture([events], said="capture_32_FULL").decode()
    # the operator of the last call encloses the one before as well: its work is on both streams
    calls = [*events[:3], replace(events[3], stream=9), events[4]]
    wide = text.replace('"name": "aten::mm"', '"name": "aten::mm_x"')
    folder = write_pair(tmp_path, replay([Launch(tuple(calls))]), {CAPTURE: wide.encode()})
    table = load(folder).operators().set_index("name")
    assert table.loc["aten::copy_", "graph_calls"] == 1


# -- several graphs, captures, ranks ----


def test_the_capture_of_the_batch_size_is_chosen_among_many_of_equal_work(tmp_path: Path):
    sizes = (8, 16, 32, 64)
    captures = {
        f"bs_{size}_rank0.json.gz": capture([model(batch=size)], said=f"capture_{size}_DECODE")
        for size in sizes
    }
    calls = model(batch=32)
    launches = [Launch(tuple(calls), f"step[DECODE bs={size}]") for size in (32, 27, 9)]
    folder = write_pair(tmp_path, replay(launches), captures)
    trace = load(folder)
    table = trace.graphs()
    assert table["batch"].tolist() == [32, 32, 16]
    assert table["step_batch"].tolist() == [32, 27, 9]
    assert table["exact"].tolist() == [15, 15, 15]
    assert table["capture"].str.endswith("bs_32_rank0.json.gz").tolist() == [True, True, False]
    shapes = owners(trace).groupby("replay")["Input Dims"].first().tolist()
    assert shapes == [[[32, 16], [16, 16]], [[32, 16], [16, 16]], [[16, 16], [16, 16]]]


def test_a_graph_larger_than_the_step_needs_shows_by_its_work(tmp_path: Path):
    """Ranks that work together pad their batches alike: a step of 5 may run the graph of 32."""
    captures = {
        f"bs_{size}_rank0.json.gz": capture([model(batch=size, suffix=f"_{size}")], said=None)
        for size in (8, 16, 32, 64)
    }
    calls = model(batch=32, suffix="_32")
    launches = [Launch(tuple(calls), "execute_context_0(0)_generation_5(5)")]
    trace = load(write_pair(tmp_path, replay(launches), captures))
    check(trace, calls)
    assert trace.graphs()[["batch", "step_batch", "exact"]].iloc[0].tolist() == [32, 5, 15]
    alone = tmp_path / "capture_traces" / "bs_32_rank0.json.gz"
    assert load(tmp_path / "graph_execution.json.gz", graphs=alone).graphs()["none"].tolist() == [15]


def test_sizes_and_modes_come_from_the_list_beside_the_captures(tmp_path: Path):
    calls = model()
    details = [{"file": "a.json.gz", "batch_size": 32, "mode": "PIECEWISE"}, {"file": "gone"}, "?"]
    folder = write_pair(
        tmp_path, replay([Launch(tuple(calls))]), {"a.json.gz": capture([calls], said=None)}, details=details
    )
    table = load(folder).graphs()
    assert table[["batch", "mode", "exact"]].iloc[0].tolist() == [32, "PIECEWISE", 15]


def piecewise() -> list[list[Call]]:
    """The pieces of a model, captured one by one: those of its layers have equal work."""
    calls = model(layers=4)
    return [calls[begin : begin + 5] for begin in range(0, 20, 5)]


def test_equal_pieces_are_told_apart_by_their_order_within_a_step(tmp_path: Path):
    pieces = piecewise()
    launches = [
        Launch(tuple(piece), f"execute_context_1({n})_generation_0(0)") for n in (5, 6) for piece in pieces
    ]
    recording = capture(pieces, said="capture_8_PIECEWISE")
    trace = load(write_pair(tmp_path, replay(launches), {CAPTURE: recording}))
    found = check(trace, [call for piece in pieces for call in piece])
    assert set(found["match"]) == {"exact"}
    assert trace.graphs()["graph"].tolist() == [f"capture_8_PIECEWISE {n} of 4" for n in (1, 2, 3, 4)] * 2


def test_equal_pieces_without_steps_are_told_apart_where_all_of_them_ran(tmp_path: Path):
    pieces = piecewise()
    launches = [Launch(tuple(piece), "") for _ in range(3) for piece in pieces]
    trace = load(write_pair(tmp_path, replay(launches), {CAPTURE: capture(pieces, said=None)}))
    assert set(check(trace, [call for piece in pieces for call in piece])["match"]) == {"exact"}


def test_equal_pieces_of_which_some_are_missing_are_known_by_name(tmp_path: Path):
    pieces = piecewise()
    launches = [Launch(tuple(pieces[1]), ""), Launch(tuple(pieces[3]), "")]
    trace = load(write_pair(tmp_path, replay(launches), {CAPTURE: capture(pieces, said=None)}))
    found = check(trace, [call for piece in pieces for call in piece])
    assert set(found["match"]) == {"by_name"}
    assert "module" not in found  # it differs from piece to piece, and is left out


def test_equal_work_of_unequal_operators_in_two_captures_is_ambiguous(tmp_path: Path):
    calls = model(layers=1)
    renamed = [replace(call, operator=f"other::{call.number}") for call in calls]
    captures = {
        "capture_trace_rank_0.json.gz": capture([calls], said=None),
        CAPTURE: capture([renamed], said=None),
    }
    trace = load(write_pair(tmp_path, replay([Launch(tuple(calls))]), captures))
    table = trace.graphs()
    assert table[["none", "ambiguous"]].iloc[0].tolist() == [5, 5]
    assert "can be of several captured calls in 2 captures" in table["note"].iloc[0]


def test_one_capture_twice_is_no_ambiguity(tmp_path: Path):
    calls = model()
    captures = {
        "capture_trace_rank_0.json.gz": capture([calls], trace_id="A"),
        CAPTURE: capture([calls], trace_id="B"),
    }
    trace = load(write_pair(tmp_path, replay([Launch(tuple(calls))]), captures))
    assert set(check(trace, calls)["match"]) == {"exact"}


def test_every_rank_has_its_own_captures(tmp_path: Path):
    for rank in (0, 1):
        calls = model(batch=32 + rank)
        write(tmp_path / f"trace-rank{rank}.json", replay([Launch(tuple(calls), "")], rank=rank))
        write(
            tmp_path / "capture_traces" / f"bs_32_rank{rank}.json.gz",
            capture([calls], said=None, rank=rank),
        )
    session = tv.load(tmp_path)
    assert isinstance(session, tv.Session)
    assert session.ranks["what"].tolist() == ["trace", "trace"]
    for rank in (0, 1):
        trace = session[rank]
        assert trace.graphs()["capture"].iloc[0].endswith(f"bs_32_rank{rank}.json.gz")
        check(trace, model(batch=32 + rank))


def test_folders_of_several_runs_keep_their_own_captures(tmp_path: Path):
    for name, batch in (("one", 32), ("two", 48)):
        calls = model(batch=batch)
        captures = {CAPTURE: capture([calls], said=None)}
        write_pair(tmp_path / name, replay([Launch(tuple(calls), "")], trace_id=name), captures)
    session = tv.load(tmp_path)
    assert isinstance(session, tv.Session)
    for row, (name, batch) in enumerate((("one", 32), ("two", 48))):
        trace = session.trace(row=row)
        assert f"/{name}/" in trace.graphs()["capture"].iloc[0]
        check(trace, model(batch=batch))


def test_a_capture_of_a_rank_without_a_replay_is_named(tmp_path: Path):
    calls = model()
    write(tmp_path / "trace-rank0.json", replay([Launch(tuple(calls))], rank=0))
    for rank in (0, 1):
        write(tmp_path / "capture_traces" / f"bs_32_rank{rank}.json.gz", capture([calls], rank=rank))
    trace = load(tmp_path)
    assert trace.graphs()["exact"].tolist() == [15]
    unused = [warning.path for warning in trace.meta["warnings"] if warning.code == "graph_capture_unused"]
    assert [Path(path or "").name for path in unused] == ["bs_32_rank1.json.gz"]


# -- roles by content, captures by hand ----


@pytest.mark.parametrize("listed", [True, False])
def test_roles_are_told_by_the_calls_within_where_no_name_says(tmp_path: Path, listed: bool):
    calls = model()
    a = write(tmp_path / "first.json", replay([Launch(tuple(calls))]))
    b = write(tmp_path / "second.json.gz", capture([calls]))
    trace = tv.load([b, a] if listed else tmp_path)
    assert isinstance(trace, tv.Trace)
    assert trace.meta["sources"] == [str(a)]
    assert set(check(trace, calls)["match"]) == {"exact"}


def test_captures_are_named_by_hand(tmp_path: Path):
    calls = model()
    a = write(tmp_path / "replay" / "x.json", replay([Launch(tuple(calls))]))
    b = write(tmp_path / "elsewhere" / "y.json", capture([calls]))
    for graphs in (b, b.parent, [b], b.read_bytes()):
        trace = load(a, graphs=graphs)
        assert set(check(trace, calls)["match"]) == {"exact"}
    assert load(a, graphs=False).graphs()["none"].tolist() == [15]
    session = tv.load(a.parent, graphs=b)
    assert isinstance(session, tv.Trace)
    assert session.graphs()["exact"].tolist() == [15]


def test_what_is_no_capture_cannot_be_named_as_one(tmp_path: Path):
    a = write(tmp_path / "x.json", replay([Launch(tuple(model()))]))
    (tmp_path / "empty").mkdir()
    for wrong in (tmp_path / "empty", 3, [None]):
        with pytest.raises(OptionError, match="graphs"):
            tv.load(a, graphs=wrong)  # type: ignore[arg-type]
    with pytest.raises(TraceFormatError):
        tv.load(a, graphs=tmp_path / "nothing")
    trace = load(a, graphs=a)
    assert trace.graphs()["none"].tolist() == [15]
    assert "graph_capture_unused" in [warning.code for warning in trace.meta["warnings"]]


def test_a_trace_without_graphs_stays_as_it_is(tmp_path: Path):
    a = write(tmp_path / "x.json", replay([], eager=model()))
    b = write(tmp_path / "capture_traces" / "bs_8_rank0.json", capture([model()]))
    trace = load(tmp_path)
    assert trace.meta["sources"] == [str(a)]
    assert len(trace.graphs()) == 0
    assert [(w.code, w.path) for w in trace.meta["warnings"]] == [("graph_capture_unused", str(b))]


def test_a_folder_of_captures_alone_is_loaded_as_it_was(tmp_path: Path):
    write(tmp_path / "capture_traces" / "bs_8_rank0.json", capture([model()]))
    trace = load(tmp_path)
    assert "aten::mm" in set(trace.operators()["name"])
    assert len(trace.graphs()) == 0


def test_one_recording_of_capture_and_replay_is_joined_with_itself(tmp_path: Path):
    calls = model()
    captured, replayed_ = json.loads(capture([calls])), json.loads(replay([Launch(tuple(calls))]))
    for event in replayed_["traceEvents"]:
        event["ts"] += 100_000
        if "correlation" in event["args"]:
            event["args"]["correlation"] += 1000
    captured["traceEvents"] += replayed_["traceEvents"]
    trace = load(write(tmp_path / "x.json", json.dumps(captured).encode()))
    assert set(check_owners(trace, calls)["match"]) == {"exact"}


def check_owners(trace: tv.Trace, calls: Sequence[Call]) -> pd.DataFrame:
    found = owners(trace)
    assert [calls[number].operator for number in found["truth"]] == found["operator"].tolist()
    return found


def test_the_command_line_takes_captures_by_name(tmp_path: Path):
    calls = model()
    a = write(tmp_path / "x.json", replay([Launch(tuple(calls))]))
    b = write(tmp_path / "elsewhere" / "y.json", capture([calls]))
    found = CliRunner().invoke(show, [str(a), "--graphs", str(b), "--table", "graphs", "--wide"])
    assert found.exit_code == 0, found.output
    assert (
        "15 of 15 kernels in 1 graph launch have their operator back, 100 % of their 75 µs." in found.output
    )
    alone = CliRunner().invoke(show, [str(a), "--table", "graphs", "--wide"])
    assert "0 of 15 kernels in 1 graph launch have their operator back" in alone.output


def test_the_page_puts_gpu_work_first_and_names_no_folder(tmp_path: Path):
    calls = model()
    eager = [Call("softmax", "aten::softmax")]
    folder = write_pair(tmp_path, replay([Launch(tuple(calls))], eager=eager), {CAPTURE: capture([calls])})
    text = page(load(folder))
    assert "15 of 15 kernels in 1 graph launch have their operator back" in text
    assert text.index(">aten::addmm<") < text.index(">aten::softmax<")
    assert CAPTURE in text
    assert str(tmp_path) not in text


# -- captures that are not whole ----


def test_a_capture_whose_calls_were_not_recorded_is_one_graph(tmp_path: Path):
    calls = model()
    trace = load(pair(tmp_path, calls, calls=False))
    assert set(check(trace, calls)["match"]) == {"exact"}


def test_a_capture_that_was_cut_off_still_tells_what_it_holds(tmp_path: Path):
    calls = model()
    trace = load(pair(tmp_path, calls, ended=False))
    assert set(check(trace, calls)["match"]) == {"exact"}
    text = capture([calls])
    half = text[: int(len(text) * 0.7)]
    folder = write_pair(tmp_path / "half", replay([Launch(tuple(calls))]), {CAPTURE: half})
    check(load(folder), calls)


@pytest.mark.parametrize(
    "content", [b"", b"\x1f\x8b\x08broken", b"{}", b'{"traceEvents": []}', b"not a trace"]
)
def test_a_damaged_capture_costs_its_operators_and_nothing_else(tmp_path: Path, content: bytes):
    calls = model()
    folder = tmp_path / "run"
    write(folder / "graph_execution.json", replay([Launch(tuple(calls))]))
    path = folder / "capture_traces" / "bs_32_rank0.json.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    found = tv.load(folder)
    trace = found if isinstance(found, tv.Trace) else found.trace(what="trace")
    assert trace.graphs()["none"].tolist() == [15]


def test_strict_loading_refuses_a_damaged_capture(tmp_path: Path):
    calls = model()
    cut = capture([calls])[:-200]
    folder = write_pair(tmp_path, replay([Launch(tuple(calls))]), {"bs_32_rank0.json": cut})
    check(load(folder), calls)
    with pytest.raises(TraceFormatError, match="capture is not used"):
        tv.load(folder, strict=True)


# -- recordings of CUDA ----


def test_without_names_of_kernels_number_and_order_tell(tmp_path: Path):
    calls = model()
    recording = capture([calls], vendor="cuda", named=False)
    trace = load(write_pair(tmp_path, replay([Launch(tuple(calls))], vendor="cuda"), {CAPTURE: recording}))
    assert set(check(trace, calls)["match"]) == {"ordered"}
    fewer = Launch(tuple(calls[:-1]))
    trace = load(write_pair(tmp_path / "x", replay([fewer], vendor="cuda"), {CAPTURE: recording}))
    assert set(check(trace, calls)["match"]) == {"none"}


def test_without_names_several_streams_are_refused_but_graph_nodes_tell_the_order(tmp_path: Path):
    calls = numbered([replace(call, stream=7 + call.number % 2) for call in model()])
    late = (*[call for call in calls if call.stream == 7], *[call for call in calls if call.stream == 8])
    recording = capture([calls], vendor="cuda", named=False)
    folder = write_pair(tmp_path, replay([Launch(late)], vendor="cuda"), {CAPTURE: recording})
    trace = load(folder)
    assert set(check(trace, calls)["match"]) == {"none"}
    assert "does not name its kernels" in trace.graphs()["note"].iloc[0]
    folder = write_pair(
        tmp_path / "n", replay([Launch(late)], vendor="cuda", nodes=True), {CAPTURE: recording}
    )
    assert set(check(load(folder), calls)["match"]) == {"ordered"}


# -- sizes of batches ----


def test_batch_sizes_are_read_from_the_names_of_engines():
    assert captured_as("capture_32_FULL") == (32, "FULL")
    assert captured_as("capture_now") is None
    assert captured_in_file("bs_128_rank3.json.gz") == 128
    assert captured_in_file("graph_capture_rank_0.1.pt.trace.json") is None
    assert replayed("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086)") == 32
    assert replayed("execute_context_9(8155)_generation_37(37)") == 8192
    assert replayed("execute_context_0(0)_generation_0(0)") is None
    assert replayed("step[DECODE bs=32]") == 32
    assert replayed("ProfilerStep#3") is None


def test_a_graph_serves_steps_up_to_its_size_and_the_smallest_that_does_is_taken():
    assert fits(32, 32, {32})
    assert fits(32, 27, {32})
    assert not fits(64, 32, {64})
    assert not fits(32, 33, {32})
    assert fits(64, 33, {32, 64})
    assert not fits(64, 32, {32, 64})
    assert fits(4, 3, {4})
    assert fits(272, 260, {272})
    assert fits(264, 260, {264})


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
        Launch(mixed(part, seed), f"execute_context_0(0)_generation_{turn}({turn})" if steps else "")
        for turn in (1, 2)
        for part in parts
    ]
    trace = load(write_pair(folder, replay(launches), {CAPTURE: capture(parts, said=None)}))
    found = check(trace, everything)
    if len({call.stream for call in everything}) == 1:
        assert set(found["match"]) == {"exact"}
