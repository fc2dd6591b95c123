"""The native level-of-detail index against plain numpy, span by span."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtrt_viz._native import native

WIDTHS = st.integers(1, 60)
TIMES = st.integers(-300, 300)


def index(track, start, dur, name=None, flat=None):
    n = len(track)
    return native("columns").TimelineIndex(
        np.asarray(track, np.int32),
        np.asarray(start, np.int64),
        np.asarray(dur, np.int64),
        np.zeros(n, np.int32) if name is None else np.asarray(name, np.int32),
        np.zeros(int(max(track, default=-1)) + 1, np.uint8) if flat is None else np.asarray(flat, np.uint8),
    )


def lane_rows(ix):
    """Rows of every lane, from the index's own columns."""
    _, _, _, row = ix.whole()
    _, _, _, begin, end, _ = ix.lanes()
    return [row[b:e].astype(int) for b, e in zip(begin, end, strict=True)]


def edges(t0, t1, width):
    return [t0 + (t1 - t0) * k // width for k in range(width + 1)]


@st.composite
def scenes(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 300))
    tracks = draw(st.integers(1, 3))
    span = draw(st.sampled_from([20, 500, 100_000]))
    start = rng.integers(-span, span, n)
    dur = np.where(rng.random(n) < 0.2, 0, rng.integers(0, max(2, span // 5), n))
    return (
        rng.integers(0, tracks, n).astype(np.int32),
        start.astype(np.int64),
        dur.astype(np.int64),
        rng.integers(-1, 5, n).astype(np.int32),
        (rng.random(tracks) < 0.5).astype(np.uint8),
        tracks,
    )


@given(scenes())
def test_lanes_hold_every_span_once_without_overlap(scene):
    track, start, dur, name, flat, _ = scene
    ix = index(track, start, dur, name, flat)
    of_track, _, kind, _, _, busy = ix.lanes()
    seen = []
    for lane, rows in enumerate(lane_rows(ix)):
        assert (track[rows] == of_track[lane]).all()
        if kind[lane] == 1:
            # The cover: the union of the track's spans, computed by marking every nanosecond.
            mine = track == of_track[lane]
            low, high = start[mine].min(), (start[mine] + dur[mine]).max()
            if high - low < 50_000:
                busy_at = np.zeros(high - low, bool)
                for s, d in zip(start[mine], dur[mine], strict=True):
                    busy_at[s - low : s - low + d] = True
                assert busy[lane] == busy_at.sum()
            continue
        seen.extend(rows)
        s, e = start[rows], (start + dur)[rows]
        assert (s[1:] >= e[:-1]).all()
        assert (s[1:] >= s[:-1]).all()
        assert busy[lane] == dur[rows].sum()
    assert sorted(seen) == list(range(len(track)))
    assert ix.bounds == (start.min(), (start + dur).max())


@given(scenes())
def test_nested_spans_lie_below_what_encloses_them(scene):
    track, start, dur, name, flat, _ = scene
    ix = index(track, start, dur, name, flat)
    _, sub, kind, _, _, _ = ix.lanes()
    row_of = np.zeros(len(track), int)
    for lane, rows in enumerate(lane_rows(ix)):
        if kind[lane] == 0:
            row_of[rows] = sub[lane]
    parent, depth, _, overlaps = native("columns").nest(track, start, dur)
    nested = flat[track] == 0
    child = nested & (parent >= 0)
    assert (row_of[child] > row_of[parent[child]]).all()
    if overlaps == 0:
        assert (row_of[nested] == depth[nested]).all()


@given(
    scenes(), st.integers(1, 60), st.integers(-300, 300), st.integers(1, 700), st.sampled_from([1, 7, 300])
)
def test_every_pixel_column_is_exact(scene, width, t0, span, scale):
    track, start, dur, name, flat, _ = scene
    ix = index(track, start, dur, name, flat)
    t1 = t0 + span * scale
    edge = edges(t0, t1, width)
    for lane, rows in enumerate(lane_rows(ix)):
        kind = ix.lanes()[2][lane]
        if kind == 1:
            continue
        busy, longest, count = ix.columns(t0, t1, width, lane)
        s, e = start[rows], (start + dur)[rows]
        for k in range(width):
            part = np.maximum(np.minimum(e, edge[k + 1]) - np.maximum(s, edge[k]), 0)
            assert busy[k] == part.sum()
            touching = ((s >= edge[k]) & (s < edge[k + 1])) | ((s < edge[k]) & (e > edge[k]))
            assert count[k] == touching.sum()
            if not touching.any():
                assert longest[k] == -1
            else:
                best = part[touching].max()
                mine = np.flatnonzero(rows == longest[k])[0]
                assert touching[mine]
                assert part[mine] == best


@given(
    scenes(), st.integers(1, 60), st.integers(-300, 300), st.integers(1, 700), st.sampled_from([0, 3, 10**6])
)
def test_a_view_sends_the_spans_or_shades_the_columns(scene, width, t0, span, limit):
    track, start, dur, name, flat, _ = scene
    ix = index(track, start, dur, name, flat)
    t1 = t0 + span
    lanes = np.arange(len(ix.lanes()[0]), dtype=np.int32)[::-1].copy()
    wanted = np.array([0, 1, 0, 0, 1], np.uint8)
    wide = max(1, span // width * 2)
    view = ix.view(t0, t1, width, lanes, limit, wide, wanted)
    edge = np.array(edges(t0, t1, width))
    rows_of = lane_rows(ix)
    kinds = ix.lanes()[2]
    column = 0
    for i, lane in enumerate(lanes):
        rows = rows_of[lane]
        mode = view["mode"][i]
        sent = slice(view["span_begin"][i], view["span_begin"][i + 1])
        if mode == 2:
            busy = view["column_busy"][column * width : (column + 1) * width]
            names = view["column_name"][column * width : (column + 1) * width]
            marks = view["column_marked"][column * width : (column + 1) * width]
            column += 1
        if kinds[lane] == 1:
            continue
        s, e = start[rows], (start + dur)[rows]
        in_sight = rows[((s >= t0) & (s < t1)) | ((s < t0) & (e > t0))]
        if len(in_sight) == 0:
            assert mode == 0
            continue
        assert mode == (1 if len(in_sight) <= limit else 2)
        expected = in_sight if mode == 1 else in_sight[dur[in_sight] >= wide]
        assert view["span_row"][sent].tolist() == expected.tolist()
        assert view["span_start"][sent].tolist() == start[expected].tolist()
        assert view["span_dur"][sent].tolist() == dur[expected].tolist()
        assert view["names"][view["span_name"][sent]].tolist() == name[expected].tolist()
        is_wanted = (name >= 0) & (wanted[np.maximum(name, 0)] == 1)
        assert view["span_marked"][sent].astype(bool).tolist() == is_wanted[expected].tolist()
        if mode == 1:
            continue
        exact, longest, count = ix.columns(t0, t1, width, lane)
        length = np.diff(edge)
        for k in range(width):
            if count[k] == 0:
                assert busy[k] == 0
            elif length[k] == 0:
                assert busy[k] == 255
            else:
                assert abs(busy[k] - max(1, 255 * exact[k] / length[k])) <= 0.5
                assert busy[k] > 0
            if count[k]:
                assert view["names"][names[k]] == name[longest[k]]
            touching = ((s >= edge[k]) & (s < edge[k + 1])) | ((s < edge[k]) & (e > edge[k]))
            mine = touching & is_wanted[rows]
            if length[k] > 0:
                part = np.maximum(np.minimum(e, edge[k + 1]) - np.maximum(s, edge[k]), 0)[mine].sum()
                assert abs(int(marks[k]) - (max(1, 255 * part / length[k]) if mine.any() else 0)) <= 0.5


@given(scenes(), st.integers(-300, 300))
def test_hit_finds_the_span_under_a_point(scene, t):
    track, start, dur, name, flat, _ = scene
    ix = index(track, start, dur, name, flat)
    for lane, rows in enumerate(lane_rows(ix)):
        if ix.lanes()[2][lane] == 1:
            continue
        s, d = start[rows], dur[rows]
        under = rows[(s <= t) & ((s + d > t) | ((d == 0) & (s == t)))]
        found = ix.hit(lane, t, 0)
        if len(under) == 0:
            assert found is None
        else:
            assert found[0] in under
            assert found[1:] == (lane, start[found[0]], dur[found[0]])
        near = ix.hit(lane, t, 50)
        distance = np.where(s > t, s - t, np.where(d == 0, t - s, np.maximum(t - (s + d) + 1, 0)))
        if len(rows) and distance.min() <= 50:
            assert distance[np.flatnonzero(rows == near[0])[0]] == distance.min()
        else:
            assert near is None


@given(scenes(), st.integers(-400, 400), st.integers(0, 300))
def test_rows_locate_and_neighbours(scene, t0, length):
    track, start, dur, name, flat, _ = scene
    ix = index(track, start, dur, name, flat)
    lanes = np.flatnonzero(ix.lanes()[2] == 0).astype(np.int32)
    t1 = t0 + length
    got = ix.rows(t0, t1, lanes)
    end = start + dur
    want = np.flatnonzero(((start >= t0) & (start <= t1)) | ((start < t0) & (end > t0)))
    assert sorted(got.tolist()) == want.tolist()
    names, counts, inside = ix.totals(t0, t1, lanes)
    part = np.maximum(np.minimum(end, t1) - np.maximum(start, t0), 0)
    assert names.tolist() == sorted(set(name[want].tolist()))
    for code, count, ns in zip(names, counts, inside, strict=True):
        mine = want[name[want] == code]
        assert (count, ns) == (len(mine), part[mine].sum())
    rows_of = lane_rows(ix)
    for lane in lanes:
        rows = rows_of[lane]
        for i, row in enumerate(rows):
            assert ix.locate(track[row], start[row], row) == (row, lane, start[row], dur[row])
            after = ix.neighbour(lane, start[row], row, 1)
            before = ix.neighbour(lane, start[row], row, -1)
            assert (after and after[0]) == (rows[i + 1] if i + 1 < len(rows) else None)
            assert (before and before[0]) == (rows[i - 1] if i else None)


@given(scenes())
def test_stepping_through_marked_spans_visits_each_start_in_order(scene):
    track, start, dur, name, flat, _ = scene
    ix = index(track, start, dur, name, flat)
    lanes = np.flatnonzero(ix.lanes()[2] == 0).astype(np.int32)
    wanted = np.array([1, 0, 1], np.uint8)
    rows_mask = (np.arange(len(track)) % 7 == 0).astype(np.uint8)
    marked = ((name >= 0) & (name < 3) & (name != 1)) | (rows_mask == 1)
    rows_of = lane_rows(ix)
    order = sorted({(start[r], int(lane)) for lane in lanes for r in rows_of[lane] if marked[r]})
    forward, place = [], (-(10**9), -1)
    while hit := ix.next_marked(lanes, place[0], place[1], True, wanted, rows_mask):
        assert marked[hit[0]]
        place = (hit[2], hit[1])
        forward.append(place)
    assert forward == order
    backward, place = [], (10**9, -1)
    while hit := ix.next_marked(lanes, place[0], place[1], False, wanted, rows_mask):
        place = (hit[2], hit[1])
        backward.append(place)
    assert backward == order[::-1]
    counts = ix.count_marked(wanted, rows_mask)
    assert [int(c) for c in counts[lanes]] == [int(marked[rows_of[lane]].sum()) for lane in lanes]


def test_many_levels_of_blocks_agree_with_numpy():
    rng = np.random.default_rng(5)
    n = 70_000
    dur = rng.lognormal(4, 2, n).astype(np.int64)
    start = np.cumsum(np.concatenate([[0], dur[:-1]]) + rng.integers(0, 50, n))
    ix = index(np.zeros(n, np.int32), start, dur, np.arange(n) % 100)
    t0, t1, width = int(start[100]) + 3, int(start[-100]), 777
    busy, longest, _ = ix.columns(t0, t1, width, 0)
    edge = np.array(edges(t0, t1, width))
    before = np.concatenate([[0], np.cumsum(dur)])

    def until(t):
        i = np.searchsorted(start, t)
        return before[i] - np.maximum(start[i - 1] + dur[i - 1] - t, 0)

    assert (busy == np.diff(until(edge))).all()
    for k in range(0, width, 13):
        part = np.minimum(start + dur, edge[k + 1]) - np.maximum(start, edge[k])
        assert part[longest[k]] == part.max()
    wide = ix.view(t0, t1, width, np.array([0], np.int32), 10, 2_000)
    in_sight = (start < t1) & (start + dur > t0)
    assert wide["span_row"].tolist() == np.flatnonzero(in_sight & (dur >= 2_000)).tolist()


def test_ends_beyond_the_clock_saturate():
    top = np.iinfo(np.int64).max
    ix = index([0, 0], [top - 10, -(2**62)], [100, 5])
    assert ix.bounds == (-(2**62), top)
    busy, _, _ = ix.columns(-(2**62), top, 3, 0)
    assert busy.tolist() == [5, 0, 10]


def test_thousands_of_overlaps_get_a_lane_each():
    n = 20_000
    ix = index(np.zeros(n, np.int32), np.arange(n), np.full(n, 10**6), flat=[1])
    assert (ix.lanes()[2] == 0).sum() == n
    assert ix.lanes()[5][-1] == 10**6 + n - 1


def test_empty_and_wrong_columns():
    empty = index([], [], [], flat=[])
    assert len(empty.lanes()[0]) == 0
    assert empty.bounds == (0, 0)
    with pytest.raises(ValueError, match="track 3 outside"):
        index([3], [0], [1], flat=[0])
    with pytest.raises(ValueError, match="negative"):
        index([0], [0], [-1])
    with pytest.raises(ValueError, match="differ in length"):
        native("columns").TimelineIndex(
            np.zeros(2, np.int32), np.zeros(1, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int32),
            np.zeros(1, np.uint8),
        )  # fmt: skip
    names_with = native("columns").names_with
    for offsets in ([], [1, 2], [0, 3, 2], [0, 4]):
        with pytest.raises(ValueError, match="offsets of names"):
            names_with(b"abc", np.array(offsets, np.int64), b"a")
    one = index([0], [0], [5])
    with pytest.raises(ValueError, match="t1 > t0"):
        one.columns(5, 5, 10, 0)
    with pytest.raises(ValueError, match="lane 9 of 1"):
        one.columns(0, 5, 10, 9)


def test_a_view_finer_than_the_clock_still_shows_the_span():
    ix = index([0], [0], [100])
    view = ix.view(50, 53, 10, np.array([0], np.int32), 0)
    assert (view["column_busy"] == 255).all()
