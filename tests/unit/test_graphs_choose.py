"""Which captured graph a launch replays: chosen where it is clear, refused where not, for any program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from graph_traces import Call, numbered
from hypothesis import given
from hypothesis import strategies as st

from torchtrt_viz.graphs.captured import CapturedGraph, Node
from torchtrt_viz.graphs.choose import Plan, choose
from torchtrt_viz.graphs.launched import GraphLaunch
from torchtrt_viz.graphs.names import Names
from torchtrt_viz.model.graph_rows import MATCHES


def graph(
    calls: Sequence[Call],
    source: str = "a",
    number: int = 0,
    of: int = 1,
    batch: int | None = None,
    named: bool = True,
) -> CapturedGraph:
    """The capture of these calls, each of an operator call of its own."""
    nodes = tuple(
        Node(call.operator, "operator", -1, {"Input Dims": call.shape, "source": f"{source}:{call.number}"})
        for call in calls
    )
    codes = np.array([int(call.kernel) for call in calls], np.int64) + 10
    names = Names()
    return CapturedGraph(
        source,
        "",
        batch,
        None,
        number,
        of,
        codes if named else names.without_names(codes),
        named,
        nodes,
        np.arange(len(calls)),
    )


def launch(calls: Sequence[Call], step: int = -1, batch: int | None = None) -> GraphLaunch:
    """A launch that ran these calls: stream after stream, each in its order."""
    ordered = sorted(calls, key=lambda call: call.stream)
    streams = {stream: place for place, stream in enumerate(sorted({call.stream for call in calls}))}
    return GraphLaunch(
        row=0,
        pieces=np.array([call.number for call in ordered], np.int64),
        streams=np.array([streams[call.stream] for call in ordered], np.int64),
        codes=np.array([int(call.kernel) for call in ordered], np.int64) + 10,
        batch=batch,
        step=step,
    )


def wrong(plan: Plan, launched: GraphLaunch, calls: Sequence[Call]) -> list[int]:
    """Numbers of calls whose replay got another owner."""
    out = []
    for piece, number in enumerate(launched.pieces.tolist()):
        if plan.match[piece] < 0:
            continue
        node = plan.nodes[plan.owner[piece]]
        by_name = MATCHES[plan.match[piece]] == "by_name"
        source = node.details.get("source", f"a:{number}" if by_name else None)
        if node.name != calls[number].operator or not str(source).endswith(f":{number}"):
            out.append(number)
    return out


@st.composite
def programs(draw: st.DrawFn, streams: int = 3) -> list[Call]:
    few = st.integers(0, 2)
    count = draw(st.integers(1, 30))
    return numbered(
        Call(str(draw(few)), f"op_{draw(few)}", stream=draw(st.integers(0, streams - 1)))
        for _ in range(count)
    )


@given(programs(), st.sets(st.integers(0, 29), max_size=2), st.booleans())
def test_no_owner_is_wrong_where_one_side_lacks_calls(calls: list[Call], gone: set[int], on_capture: bool):
    kept = [call for call in calls if call.number not in gone]
    captured, run = (kept, calls) if on_capture else (calls, kept)
    if not captured or not run:
        return
    launched = launch(run)
    plan = choose([launched], [graph(captured)], Names())[0]
    assert wrong(plan, launched, calls) == []
    assert plan.ambiguous <= int((plan.match < 0).sum())


@given(programs(streams=1))
def test_the_same_work_on_one_stream_is_matched_whole(calls: list[Call]):
    launched = launch(calls)
    plan = choose([launched], [graph(calls)], Names())[0]
    assert plan.match.tolist() == [0] * len(calls)
    assert wrong(plan, launched, calls) == []
    assert plan.note == ""


@given(st.lists(programs(streams=1), min_size=1, max_size=5), st.integers(1, 3))
def test_graphs_of_a_recording_are_told_apart_by_their_order(parts: list[list[Call]], rounds: int):
    everything = numbered(call for part in parts for call in part)
    at = 0
    pieces = []
    for part in parts:
        pieces.append(everything[at : at + len(part)])
        at += len(part)
    graphs = [graph(piece, number=number, of=len(pieces)) for number, piece in enumerate(pieces)]
    for step in (False, True):
        launched = [launch(piece, step=turn if step else -1) for turn in range(rounds) for piece in pieces]
        plans = choose(launched, graphs, Names())
        for plan, one in zip(plans, launched, strict=True):
            assert plan.match.tolist() == [0] * len(one.pieces)
            assert wrong(plan, one, everything) == []


@given(programs(streams=1), st.lists(st.sampled_from((8, 16, 32, 64)), min_size=1, max_size=4, unique=True))
def test_only_the_capture_that_serves_the_batch_is_taken(calls: list[Call], sizes: list[int]):
    graphs = [graph(calls, source=str(size), batch=size) for size in sizes]
    for step in (7, 8, 9, 32, 64, 65):
        launched = launch(calls, batch=step)
        plan = choose([launched], graphs, Names())[0]
        serving = [size for size in sizes if size >= step]
        if not serving or (len(sizes) == 1 and serving[0] not in (step, -(-step // 8) * 8)):
            assert plan.graph is None
            assert "refused" in plan.note
        else:
            assert plan.graph is not None
            assert plan.graph.batch == min(serving)


def test_other_captures_beside_the_right_one_change_nothing():
    calls = numbered(Call(str(n % 7), f"op_{n}") for n in range(40))
    other = numbered(Call(str(n % 5), f"x_{n}") for n in range(40))
    nearly = calls[:-1]
    launched = launch(calls)
    plan = choose([launched], [graph(other, "b"), graph(nearly, "c"), graph(calls, "a")], Names())[0]
    assert plan.graph is not None
    assert plan.graph.source == "a"
    assert plan.match.tolist() == [0] * 40


def test_two_captures_that_nearly_fit_equally_well_are_no_choice():
    calls = numbered(Call(str(n), f"op_{n}") for n in range(40))
    one = [Call("99", "y", number=0), *calls[1:]]
    other = [Call("98", "z", number=0), *[Call(call.kernel, "z", number=call.number) for call in calls[1:]]]
    plan = choose([launch(calls)], [graph(one, "b"), graph(other, "c")], Names())[0]
    assert plan.match.max() < 0
    assert plan.ambiguous == 39


def test_sequences_of_a_length_but_without_names_are_taken_in_order():
    calls = numbered(Call(str(n), f"op_{n}") for n in range(5))
    launched = launch(calls)
    plan = choose([launched], [graph(calls, named=False)], Names())[0]
    assert [MATCHES[match] for match in plan.match] == ["ordered"] * 5
    assert wrong(plan, launched, calls) == []


def test_without_captures_nothing_is_matched():
    launched = launch(numbered([Call("1", "op")]))
    plan = choose([launched], [], Names())[0]
    assert plan.graph is None
    assert plan.match.tolist() == [-1]
