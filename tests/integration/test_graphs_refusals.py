"""Which capture serves a launch: what does not fit is refused, and what is not clear is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
from graph_checks import CAPTURE, check, load, owners, pair
from graph_traces import Call, Launch, capture, model, numbered, replay, write_pair
from rank_traces import write

import torchtrt_viz as tv
from torchtrt_viz.graphs.batch import captured_as, captured_in_file, fits, replayed

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
    trace = load(
        write_pair(tmp_path, replay(launches), {CAPTURE: capture(pieces, said="capture_8_PIECEWISE")})
    )
    assert set(check(trace, [call for piece in pieces for call in piece])["match"]) == {"exact"}


def test_equal_pieces_of_which_some_are_missing_are_known_by_name(tmp_path: Path):
    pieces = piecewise()
    launches = [Launch(tuple(pieces[1]), ""), Launch(tuple(pieces[3]), "")]
    trace = load(
        write_pair(tmp_path, replay(launches), {CAPTURE: capture(pieces, said="capture_8_PIECEWISE")})
    )
    found = check(trace, [call for piece in pieces for call in piece])
    assert set(found["match"]) == {"by_name"}
    assert "module" not in found  # it differs from piece to piece, and is left out


def test_graphs_of_batch_sizes_in_one_recording_are_not_told_apart_by_their_order(tmp_path: Path):
    """Four steps ran one graph; that four sizes of equal work were captured is no evidence."""
    sizes = [model(batch=size) for size in (8, 16, 32, 64)]
    calls = sizes[2]
    launches = [Launch(tuple(calls), "") for _ in range(4)]
    trace = load(write_pair(tmp_path, replay(launches), {CAPTURE: capture(sizes, said=None)}))
    found = check(trace, calls)
    assert set(found["match"]) == {"by_name"}
    assert "Input Dims" not in found
    assert found["module"].notna().all()


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
