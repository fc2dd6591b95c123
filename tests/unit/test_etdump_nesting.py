"""The tree of an ETDump's events, which the file does not record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchtrt_viz._native import native

ROLES = native("etdump").ROLES
MEASURED, MODELED, ELSEWHERE = 1, 2, 3


@dataclass
class Tree:
    """What `arrange` returns, by row."""

    parent: list[int]
    depth: list[int]
    self_ns: list[int]
    call: list[int]
    modeled: list[int]
    overlaps: int


def arrange(
    *events: tuple[str, int, int, int],
    runs: list[int] | None = None,
    shape: list[int] | None = None,
    placing: list[int] | None = None,
    in_engine: list[int] | None = None,
    chain: list[int] | None = None,
) -> Tree:
    """Arrange events given as (role, instruction, start, end), all in one run by default."""
    count = len(events)
    run = np.array(runs or [0] * count, np.int32)
    result: Any = native("etdump").arrange(
        run,
        np.array(chain or [-1 if role in ("method", "load") else 0 for role, *_ in events], np.int32),
        np.array([instruction for _, instruction, _, _ in events], np.int32),
        np.array([ROLES.index(role) for role, *_ in events], np.uint8),
        np.array([start for *_, start, _ in events], np.int64),
        np.array([end - start for *_, start, end in events], np.int64),
        np.array(shape or list(range(int(run.max(initial=0)) + 1)), np.int32),
        np.array(placing or [], np.uint8),
        np.array(in_engine or [], np.uint8),
    )
    *columns, overlaps = result
    return Tree(*(column.tolist() for column in columns), overlaps)


def test_no_events() -> None:
    assert arrange() == Tree([], [], [], [], [], 0)


def test_delegate_call_with_phases_and_layers() -> None:
    """Layers are logged behind the phases, and still lie in the one that ran them."""
    tree = arrange(
        ("phase", 0, 1010, 1105),
        ("enqueue", 0, 1110, 1507),
        ("phase", 0, 1510, 1603),
        ("layer", 0, 1115, 1217),
        ("layer", 0, 1217, 1499),
        ("delegate", 0, 1005, 1606),
        ("delegate_call", 0, 1001, 1611),
        ("kernel", 1, 1630, 1702),
        ("operator_call", 1, 1620, 1711),
        ("method", 0, 990, 1800),
    )
    assert tree.parent == [5, 5, 5, 1, 1, 6, 9, 8, 9, -1]
    assert tree.depth == [3, 3, 3, 4, 4, 2, 1, 2, 1, 0]
    assert tree.call == [6, 6, 6, 6, 6, 6, -1, -1, -1, -1]
    assert tree.modeled == [0] * 10
    assert tree.overlaps == 0
    assert tree.self_ns == [
        95,
        397 - 102 - 282,
        93,
        102,
        282,
        601 - 95 - 397 - 93,
        610 - 601,
        72,
        91 - 72,
        810 - 610 - 91,
    ]


def test_layers_that_cut_across_phases_have_no_real_place() -> None:
    """As a device's times put on the host's clock: they stay children of their call."""
    tree = arrange(
        ("enqueue", 0, 1110, 1207),
        ("phase", 0, 1210, 1603),
        ("layer", 0, 1115, 1301),
        ("layer", 0, 1301, 1499),
        ("delegate", 0, 1005, 1606),
        ("delegate_call", 0, 1001, 1611),
    )
    assert tree.modeled == [0, 0, 1, 1, 0, 0]
    assert tree.parent == [4, 4, 4, 4, 5, -1]
    # their time is the phases' time, and is not taken from the delegate twice
    assert tree.self_ns[4] == 601 - 97 - 393
    assert tree.overlaps == 0


def test_microseconds_laid_end_to_end() -> None:
    """XNNPACK's operators: whole microseconds, from somewhere before the call to behind its end."""
    tree = arrange(
        ("layer", 0, 1000_123, 1010_123),
        ("layer", 0, 1010_123, 1010_123),
        ("layer", 0, 1010_123, 1033_123),
        ("delegate_call", 0, 1000_001, 1030_011),
        ("kernel", 1, 1031_005, 1032_003),
        ("operator_call", 1, 1031_000, 1033_500),
        ("method", 0, 999_000, 1040_017),
    )
    assert tree.modeled == [1, 1, 1, 0, 0, 0, 0]
    assert tree.parent == [3, 3, 3, 6, 5, 6, -1]
    assert tree.depth == [2, 2, 2, 1, 2, 1, 0]
    # 33 microseconds of operators do not fit into 30.01 of the call: nothing is left of it, nothing negative
    assert tree.self_ns[3] == 0
    assert tree.self_ns[6] == 41_017 - 30_010 - 2_500
    assert tree.overlaps == 0


def test_whole_microseconds_are_no_evidence_on_a_coarse_clock() -> None:
    tree = arrange(
        ("layer", 0, 5_000, 6_000),
        ("layer", 0, 6_000, 8_000),
        ("delegate_call", 0, 4_000, 9_000),
        ("method", 0, 1_000, 10_000),
    )
    assert tree.modeled == [0, 0, 0, 0]
    assert tree.parent == [2, 2, 3, -1]


def test_one_instance_is_judged_by_all_its_calls() -> None:
    """Measured layers that happen to last whole microseconds once are not taken for modeled ones."""
    tree = arrange(
        ("layer", 0, 1_000, 2_000),
        ("delegate_call", 0, 990, 2_007),
        ("layer", 0, 3_000, 3_999),
        ("delegate_call", 0, 2_990, 4_007),
        runs=[0, 0, 1, 1],
        shape=[7, 7],
    )
    assert tree.modeled == [0, 0, 0, 0]
    apart = arrange(
        ("layer", 0, 1_000, 2_000),
        ("delegate_call", 0, 990, 2_007),
        ("layer", 0, 3_000, 3_999),
        ("delegate_call", 0, 2_990, 4_007),
        runs=[0, 0, 1, 1],
        shape=[7, 8],
    )
    assert apart.modeled == [1, 0, 0, 0]


def test_repeated_calls_of_one_instruction() -> None:
    """A loop runs an instruction many times in one run: events belong to the call that ends behind them."""
    tree = arrange(
        ("layer", 4, 11, 12),
        ("delegate_call", 4, 10, 19),
        ("layer", 4, 21, 23),
        ("layer", 4, 24, 27),
        ("delegate_call", 4, 20, 29),
        ("method", 0, 1, 40),
    )
    assert tree.call == [1, -1, 4, 4, -1, -1]
    assert tree.parent == [1, 5, 4, 4, 5, -1]


def test_the_same_instruction_of_another_chain_is_another_call() -> None:
    tree = arrange(
        ("layer", 0, 10, 11),
        ("layer", 0, 20, 21),
        ("delegate_call", 0, 9, 12),
        ("delegate_call", 0, 19, 22),
        chain=[0, 1, 0, 1],
    )
    assert tree.call == [2, 3, -1, -1]
    assert tree.parent == [2, 3, -1, -1]


def test_methods_only() -> None:
    """Told to record methods only, the runtime logs no DELEGATE_CALL: the delegate's events remain."""
    tree = arrange(
        ("layer", 0, 6_295_400, 6_354_400),
        ("layer", 0, 6_354_400, 6_422_400),
        ("layer", 2, 6_585_319, 6_588_319),
        ("method", 0, 6_127_341, 6_622_952),
    )
    assert tree.modeled == [1, 1, 1, 0]
    assert tree.parent == [3, 3, 3, -1]
    assert tree.self_ns[3] == 495_611 - 59_000 - 68_000 - 3_000


def test_a_failed_run_has_no_method() -> None:
    tree = arrange(("phase", 0, 11, 13), ("delegate", 0, 10, 15), ("delegate_call", 0, 9, 90))
    assert tree.parent == [1, 2, -1]


def test_coarse_clock_keeps_what_takes_no_time() -> None:
    """A kernel that takes no tick, right where its instruction ends, still lies in its instruction."""
    tree = arrange(
        ("kernel", 0, 5, 5),
        ("operator_call", 0, 5, 5),
        ("kernel", 1, 6, 6),
        ("operator_call", 1, 5, 6),
        ("operator_call", 2, 6, 6),
        ("method", 0, 5, 6),
    )
    assert tree.parent == [1, 5, 3, 5, 5, -1]


def test_what_the_producer_says_wins() -> None:
    events = (
        ("layer", 0, 1_000, 2_000),
        ("layer", 0, 2_000, 3_000),
        ("layer", 0, 50_000, 60_000),
        ("enqueue", 0, 950, 3_101),
        ("delegate", 0, 900, 4_003),
        ("delegate_call", 0, 890, 4_010),
    )
    tree = arrange(*events, placing=[MEASURED, MEASURED, ELSEWHERE, 0, 0, 0])
    assert tree.modeled == [0, 0, 0, 0, 0, 0]
    assert tree.parent == [3, 3, -1, 4, 5, -1]
    tree = arrange(*events, placing=[MODELED, MEASURED, ELSEWHERE, 0, 0, 0], in_engine=[1, 1, 0, 0, 0, 0])
    assert tree.modeled == [1, 0, 0, 0, 0, 0]
    assert tree.parent == [3, 3, -1, 4, 5, -1]
    assert tree.self_ns[3] == 2_151 - 1_000 - 1_000


def test_phases_that_contradict_the_runtime_are_kept_by_position() -> None:
    tree = arrange(
        ("phase", 0, 100, 205),
        ("delegate", 0, 90, 210),
        ("delegate_call", 0, 1_000, 1_311),
        ("method", 0, 900, 1_500),
    )
    assert tree.modeled == [1, 1, 0, 0]
    assert tree.parent == [1, 2, 3, -1]
    assert tree.depth == [3, 2, 1, 0]


def test_runs_do_not_enclose_one_another() -> None:
    tree = arrange(("load", 0, 0, 100), ("method", 0, 10, 20), runs=[0, 1])
    assert tree.parent == [-1, -1]


def test_events_of_several_threads_in_one_run_overlap() -> None:
    tree = arrange(("operator_call", 0, 10, 20), ("operator_call", 1, 15, 25), ("method", 0, 1, 30))
    assert tree.parent == [2, 2, -1]
    assert tree.overlaps == 1


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[tuple[str, int, int, int]], list[int]]:
    """Draw a tree of the runtime's events as it is written: every event behind its children."""
    events: list[tuple[str, int, int, int]] = []
    parent: list[int] = []

    def write(start: int, depth: int) -> int:
        at = start + draw(st.integers(0, 3))
        children = []
        for _ in range(draw(st.integers(0, 3 if depth < 4 else 0))):
            at = write(at, depth + 1)
            children.append(len(events) - 1)
        end = at + draw(st.integers(1, 3))
        for child in children:
            parent[child] = len(events)
        events.append(("runtime", depth, start, end))
        parent.append(-1)
        return end

    write(draw(st.integers(0, 5)), 0)
    return events, parent


@given(trees())
def test_a_tree_is_found_again(tree: tuple[list[tuple[str, int, int, int]], list[int]]) -> None:
    events, parent = tree
    found = arrange(*events)
    assert found.parent == parent
    for row, (_, depth, start, end) in enumerate(events):
        assert found.depth[row] == depth
        children = [i for i, above in enumerate(parent) if above == row]
        assert found.self_ns[row] == end - start - sum(events[i][3] - events[i][2] for i in children)


NUMBERS = st.integers(0, 50)
EVENT = st.tuples(st.sampled_from(ROLES), st.integers(0, 3), NUMBERS, NUMBERS)


@given(st.lists(EVENT, max_size=40), st.data())
def test_whatever_comes_is_a_forest(events: list[tuple[str, int, int, int]], data: st.DataObject) -> None:
    events = [(role, at, min(a, b), max(a, b)) for role, at, a, b in events]
    placing = data.draw(st.lists(st.integers(0, 3), min_size=len(events), max_size=len(events)))
    found = arrange(*events, placing=placing)
    for row, above in enumerate(found.parent):
        assert 0 <= found.self_ns[row] <= events[row][3] - events[row][2]
        if above < 0:
            assert found.depth[row] == 0
            continue
        assert found.depth[row] == found.depth[above] + 1
        if not found.modeled[row]:
            assert events[above][2] <= events[row][2] <= events[row][3] <= events[above][3]
            assert not found.modeled[above]
        step = above
        for _ in events:
            step = found.parent[step] if step >= 0 else -1
        assert step == -1
