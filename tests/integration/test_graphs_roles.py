"""Which traces are captures: told by content or by hand, damaged, or without names of kernels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from graph_checks import CAPTURE, check, load, owners, pair
from graph_traces import Call, Launch, capture, model, numbered, replay, write_pair
from rank_traces import write

import torchtrt_viz as tv
from torchtrt_viz.cli.show import command as show
from torchtrt_viz.errors import OptionError, TraceFormatError
from torchtrt_viz.report.html import page

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
    operators = text[text.index('<section id="operators">') : text.index('<section id="graphs">')]
    assert operators.index(">aten::addmm<") < operators.index(">aten::softmax<")
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
