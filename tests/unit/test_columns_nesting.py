"""Nesting by containment: parent, depth, self time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from torchtrt_viz._native import native

nest = native("columns").nest


def _columns(rows):
    array = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return array[:, 0].astype(np.int32), np.ascontiguousarray(array[:, 1]), np.ascontiguousarray(array[:, 2])


def test_a_hand_computed_tree():
    # outer 0..100 holds a 10..40 (which holds b 20..30) and c 50..60; d on another track
    parent, depth, self_ns, overlaps = nest(
        *_columns([(0, 0, 100), (0, 10, 30), (0, 20, 10), (0, 50, 10), (1, 5, 7)])
    )
    assert parent.tolist() == [-1, 0, 1, 0, -1]
    assert depth.tolist() == [0, 1, 2, 1, 0]
    assert self_ns.tolist() == [100 - 30 - 10, 20, 10, 10, 7]
    assert overlaps == 0


def test_overlapping_spans_are_siblings():
    parent, depth, self_ns, overlaps = nest(*_columns([(0, 0, 10), (0, 5, 10), (0, 6, 2)]))
    assert parent.tolist() == [-1, -1, 1]
    assert depth.tolist() == [0, 0, 1]
    assert self_ns.tolist() == [10, 8, 2]
    assert overlaps == 1


def test_same_start_and_file_order():
    # the inner one comes first in the file; equal spans nest in file order
    parent, depth, self_ns, _ = nest(*_columns([(0, 0, 5), (0, 0, 50), (0, 60, 5), (0, 60, 5)]))
    assert parent.tolist() == [1, -1, -1, 2]
    assert self_ns.tolist() == [5, 45, 0, 5]
    assert depth.tolist() == [1, 0, 0, 1]


def test_overlapping_children_are_not_counted_twice():
    _, _, self_ns, overlaps = nest(*_columns([(0, 0, 100), (0, 10, 20), (0, 20, 20)]))
    assert self_ns.tolist() == [70, 20, 20]
    assert overlaps == 1


def test_extreme_times_do_not_wrap():
    top = np.iinfo(np.int64).max
    parent, _, self_ns, _ = nest(*_columns([(0, top - 5, top), (0, top - 3, 1)]))
    assert parent.tolist() == [-1, 0]
    assert self_ns.tolist() == [top - 1, 1]


def _slow(track, start, dur):
    """The definition, written out: the innermost enclosing span, and the union of the children."""
    n = len(track)
    end = start + dur

    def encloses(a, b):
        if a == b or track[a] != track[b] or not (start[a] <= start[b] and end[b] <= end[a]):
            return False
        if start[a] == start[b] and end[a] == end[b]:
            return a < b and dur[a] > 0
        return not (dur[b] == 0 and start[b] == end[a])

    parent = []
    for i in range(n):
        around = [a for a in range(n) if encloses(a, i)]
        parent.append(max(around, key=lambda a: (start[a], -end[a], a)) if around else -1)
    self_ns = []
    for i in range(n):
        covered = set()
        for child in range(n):
            if parent[child] == i:
                covered.update(range(start[child], end[child]))
        self_ns.append(dur[i] - len(covered))
    return parent, self_ns


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 12)), max_size=14))
def test_equals_the_definition(rows):
    track, start, dur = _columns(rows)
    parent, depth, self_ns, _ = nest(track, start, dur)
    want_parent, want_self = _slow(track.tolist(), start, dur)
    assert parent.tolist() == want_parent
    assert self_ns.tolist() == want_self
    for row, above in enumerate(parent):
        assert depth[row] == (0 if above < 0 else depth[above] + 1)
