"""Sequences aligned: where the order leaves a choice and where it does not, against all alignments."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtrt_viz.graphs import align as alignment
from torchtrt_viz.graphs.align import Alignment, align, interleaved, shared

names = st.lists(st.integers(0, 3), max_size=7).map(lambda found: np.array(found, np.int64))


def possible(found: Alignment) -> dict[int, set[int]]:
    """Captured calls by piece."""
    out = {piece: {int(call)} for piece, call in enumerate(found.position) if call >= 0}
    return out | {piece: set(calls.tolist()) for piece, calls in found.options.items()}


def best_alignments(replayed: np.ndarray, captured: np.ndarray) -> list[dict[int, int]]:
    """Every alignment with the most counterparts, by trying all."""
    for size in range(min(len(replayed), len(captured)), -1, -1):
        found = [
            dict(zip(pieces, calls, strict=True))
            for pieces in combinations(range(len(replayed)), size)
            for calls in combinations(range(len(captured)), size)
            if (replayed[list(pieces)] == captured[list(calls)]).all()
        ]
        if found:
            return found
    return []


@given(names, names)
def test_what_is_possible_is_what_a_best_alignment_holds(replayed: np.ndarray, captured: np.ndarray):
    found = align(replayed, captured)
    assert found is not None
    best = best_alignments(replayed, captured)
    expected: dict[int, set[int]] = {}
    for one in best:
        for piece, call in one.items():
            expected.setdefault(piece, set()).add(call)
    assert possible(found) == expected
    assert found.certain.tolist() == [all(piece in one for one in best) for piece in range(len(replayed))]
    assert found.whole == (len(replayed) == len(captured) == len(best[0]))


def test_one_missing_call_leaves_no_choice_where_its_neighbours_differ():
    found = align(np.array([1, 2, 3, 4]), np.array([1, 2, 9, 3, 4]))
    assert found is not None
    assert found.position.tolist() == [0, 1, 3, 4]
    assert not found.options


def test_one_missing_call_of_a_run_of_equal_ones_leaves_a_choice():
    found = align(np.array([1, 2, 2, 3]), np.array([1, 2, 2, 2, 3]))
    assert found is not None
    assert found.position.tolist() == [0, -1, -1, 4]
    assert {piece: calls.tolist() for piece, calls in found.options.items()} == {1: [1, 2], 2: [2, 3]}


def test_sequences_that_are_too_long_to_compare_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(alignment, "_MAX_CELLS", 10)
    assert align(np.array([1, 2, 3, 4]), np.array([2, 1, 4, 3])) is None


@st.composite
def shuffles(draw: st.DrawFn) -> tuple[np.ndarray, list[list[int]]]:
    """A captured sequence, and which of its calls each stream ran, in order."""
    captured = draw(st.lists(st.integers(0, 2), min_size=1, max_size=8))
    stream = draw(st.lists(st.integers(0, 2), min_size=len(captured), max_size=len(captured)))
    parts = [[call for call, on in enumerate(stream) if on == number] for number in range(3)]
    return np.array(captured), [part for part in parts if part]


def interleavings(streams: list[np.ndarray], captured: np.ndarray) -> list[list[list[int]]]:
    """Every way in which the streams can have been captured as this sequence, by trying all."""
    if not len(captured):
        return [[[] for _ in streams]]
    out = []
    for number, stream in enumerate(streams):
        if len(stream) and stream[-1] == captured[-1]:
            shorter = [part[:-1] if at == number else part for at, part in enumerate(streams)]
            for found in interleavings(shorter, captured[:-1]):
                out.append(
                    [[*calls, len(captured) - 1] if at == number else calls for at, calls in enumerate(found)]
                )
    return out


@given(shuffles())
def test_streams_are_aligned_as_they_can_have_taken_turns(shuffled: tuple[np.ndarray, list[list[int]]]):
    captured, parts = shuffled
    streams = [captured[part] for part in parts]
    found = interleaved(streams, captured)
    assert found is not None
    ways = interleavings(streams, captured)
    for number, part in enumerate(parts):
        expected = {piece: {way[number][piece] for way in ways} for piece in range(len(part))}
        assert possible(found[number]) == expected
        assert all(call in expected[piece] for piece, call in enumerate(part))


def test_streams_of_other_work_do_not_fit():
    assert interleaved([np.array([1, 2]), np.array([3])], np.array([1, 3, 4])) is None
    assert interleaved([np.array([1, 2]), np.array([3])], np.array([2, 1, 3])) is None
    assert interleaved([np.array([1, 2])], np.array([1, 2, 3])) is None


def test_streams_that_can_take_turns_in_too_many_ways_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(alignment, "_MAX_STATES", 3)
    same = np.zeros(6, np.int64)
    assert interleaved([same, same], np.zeros(12, np.int64)) is None


@given(names, names)
def test_what_sequences_share_is_counted_without_regard_to_order(one: np.ndarray, other: np.ndarray):
    left = other.tolist()
    count = 0
    for name in one.tolist():
        if name in left:
            left.remove(name)
            count += 1
    assert shared(one, other) == count
