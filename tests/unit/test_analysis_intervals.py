"""Unions and differences of time intervals against brute force over a time line of ticks."""

from __future__ import annotations

import numpy as np
import pytest

from torchtrt_viz.analysis.core import intervals


def _ticks(pairs: list[tuple[int, int]]) -> set[int]:
    return {tick for start, end in pairs for tick in range(start, end)}


def _set_ticks(merged: intervals.IntervalSet) -> set[int]:
    return _ticks(list(zip(merged[0].tolist(), merged[1].tolist(), strict=True)))


def _random(seed: int, count: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, 200, count)
    return [(int(s), int(s + d)) for s, d in zip(starts, rng.integers(0, 12, count), strict=True)]


def _merged(pairs: list[tuple[int, int]]) -> intervals.IntervalSet:
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return intervals.merge(array[:, 0].copy(), array[:, 1].copy())


@pytest.mark.parametrize("seed", range(20))
def test_sets_agree_with_counting_ticks(seed: int) -> None:
    a, b = _random(seed, 30), _random(seed + 100, 25)
    set_a, set_b = _merged(a), _merged(b)
    assert _set_ticks(set_a) == _ticks(a)
    assert (set_a[0][1:] > set_a[1][:-1]).all(), "a set is sorted and its intervals do not touch"
    assert intervals.length(set_a) == len(_ticks(a))
    assert _set_ticks(intervals.union(set_a, set_b)) == _ticks(a) | _ticks(b)
    assert _set_ticks(intervals.intersect(set_a, set_b)) == _ticks(a) & _ticks(b)
    assert _set_ticks(intervals.subtract(set_a, set_b)) == _ticks(a) - _ticks(b)


@pytest.mark.parametrize("seed", range(5))
def test_cover_counts_the_ticks_of_each_window(seed: int) -> None:
    a, windows = _random(seed, 20), _random(seed + 7, 40)
    ticks = _ticks(a)
    start = np.array([w[0] for w in windows], dtype=np.int64)
    end = np.array([w[1] for w in windows], dtype=np.int64)
    expected = [len(ticks & set(range(s, e))) for s, e in windows]
    assert intervals.cover(_merged(a), start, end).tolist() == expected


def test_nothing_is_a_set_too() -> None:
    none = _merged([])
    assert intervals.length(none) == 0
    assert intervals.length(intervals.subtract(none, _merged([(1, 2)]))) == 0
    assert intervals.length(intervals.union(none, _merged([(1, 3)]))) == 2
    assert intervals.cover(none, np.array([0]), np.array([5])).tolist() == [0]
    assert intervals.length(_merged([(5, 5)])) == 0
