"""The browser's own index against the native one: the same lanes, the same pixels."""

from __future__ import annotations

import json

import numpy as np
import pytest
from timeline_traces import wide_trace

from torchtrt_viz.scene import assets
from torchtrt_viz.scene.scene import Scene


@pytest.fixture(scope="module")
def scene():
    return Scene.of(wide_trace(30_000, tracks=4, seed=8))


@pytest.fixture(scope="module")
def page(shared_visit, scene, tmp_path_factory):
    start, dur, name, row = scene.index.whole()
    data = {
        "start": (start - scene.origin_ns).tolist(),
        "dur": dur.tolist(),
        "name": name.tolist(),
        "row": row.tolist(),
        "laneBegin": scene.lane_begin.tolist(),
        "laneEnd": scene.lane_end.tolist(),
    }
    file = tmp_path_factory.mktemp("index") / "index.html"
    file.write_text(
        f"<script>{assets.module('local')}\n"
        f"window.index = new m_local.LocalIndex({json.dumps(data)});</script>"
    )
    return shared_visit(file.as_uri()).page


def local(page, t0, t1, width, lanes, exact, marks=None):
    return page.evaluate(
        """([request, exact, marks]) => {
          index.markNames = marks ? Uint8Array.from(marks) : null;
          const v = index.view(request, exact);
          return {modes: request.lanes.map((l) => v.lanes.get(l)), start: [...v.start], dur: [...v.dur],
                  row: [...v.row], name: [...v.name], mark: [...v.mark], busy: [...v.busy],
                  cell: [...v.cellName], cellMark: [...v.cellMark]};
        }""",
        [{"t0": t0, "t1": t1, "width": width, "lanes": [int(lane) for lane in lanes]}, exact, marks],
    )


@pytest.mark.parametrize("share", [1.0, 0.3, 0.02, 0.002])
def test_totals_agree(page, scene, share):
    """What a box holds: as many events in the browser as in Python."""
    lanes = np.flatnonzero(~scene.lane_is_cover).astype(np.int32)
    start, *_ = scene.index.whole()
    t0 = int(np.quantile(start - scene.origin_ns, 0.3))
    t1 = int(np.sort(start - scene.origin_ns)[int(len(start) * (0.3 + 0.7 * share)) - 1])  # where one begins
    got = page.evaluate(
        "([t0, t1, lanes]) => index.totals(t0, t1, lanes).events", [t0, t1, [int(lane) for lane in lanes]]
    )
    assert got == len(scene.rows_within(t0, t1, lanes.tolist())) > 0


@pytest.mark.parametrize(
    ("share", "width", "exact"), [(1.0, 700, 200), (0.3, 501, 50), (0.02, 640, 10), (0.002, 300, 1000)]
)
def test_views_agree(page, scene, share, width, exact):
    rng = np.random.default_rng(int(share * 1000))
    lanes = np.flatnonzero(~scene.lane_is_cover).astype(np.int32)
    marks = (rng.random(len(scene.names)) < 0.3).astype(np.uint8)
    length = scene.length_ns
    # A width that divides the range, so that both sides cut the time at the same whole nanoseconds.
    px = max(1, int(length * share) // width)
    t0 = int(length * (1 - share) * 0.6)
    t1 = t0 + px * width
    native = scene.index.view(
        t0 + scene.origin_ns, t1 + scene.origin_ns, width, lanes, exact, px * 24, marks, None
    )
    got = local(page, t0, t1, width, lanes, exact, marks.tolist())
    assert [mode["mode"] for mode in got["modes"]] == native["mode"].tolist()
    assert got["row"] == native["span_row"].tolist()
    assert got["dur"] == native["span_dur"].tolist()
    assert got["name"] == native["names"][native["span_name"]].tolist()
    assert got["mark"] == native["span_marked"].tolist()
    busy = native["column_busy"].astype(int)
    assert np.abs(np.array(got["busy"], int) - busy).max(initial=0) <= 1
    assert ((np.array(got["busy"]) > 0) == (busy > 0)).all()
    assert np.abs(np.array(got["cellMark"], int) - native["column_marked"].astype(int)).max(initial=0) <= 1
    cells = busy > 0
    same = np.array(got["cell"])[cells] == native["names"][native["column_name"]][cells]
    assert (~same).sum() <= 0.001 * len(same)  # equally long spans may change places


def test_hits_steps_and_totals_agree(page, scene):
    lanes = np.flatnonzero(~scene.lane_is_cover).astype(np.int32)
    rng = np.random.default_rng(3)
    points = [(int(rng.choice(lanes)), int(rng.integers(0, scene.length_ns))) for _ in range(200)]
    got = page.evaluate(
        "(points) => points.map(([lane, t]) => { const p = index.hit(lane, t, 500); return p && p.row; })",
        points,
    )
    want = [scene.index.hit(lane, t + scene.origin_ns, 500) for lane, t in points]
    assert got == [place and place[0] for place in want]

    marks = np.zeros(len(scene.names), np.uint8)
    marks[7:9] = 1
    steps = page.evaluate(
        """([marks, lanes]) => {
          index.markNames = Uint8Array.from(marks);
          const walk = (forward) => {
            const seen = [];
            let at = {start: forward ? -1 : 1e18, lane: -1};
            while ((at = index.step(lanes, at, forward)) && seen.length < 1e5) {
              seen.push([at.start, at.lane, at.row, index.markedUntil(lanes, at)]);
            }
            return seen;
          };
          return [walk(true), walk(false)];
        }""",
        [marks.tolist(), lanes.tolist()],
    )
    seen, place = [], (scene.origin_ns - 1, -1, -1)
    while hit := scene.index.next_marked(lanes, place[0], place[1], True, marks, None, place[2]):
        place = (hit[2], hit[1], hit[0])
        number = scene.index.marked_until(lanes, *place, marks)
        assert number == len(seen) + 1
        seen.append([hit[2] - scene.origin_ns, hit[1], hit[0], number])
    assert steps[0] == seen
    assert steps[1] == seen[::-1]

    t0, t1 = scene.length_ns // 3, scene.length_ns // 2
    totals = page.evaluate("([a, b, lanes]) => index.totals(a, b, lanes)", [t0, t1, lanes.tolist()])
    name, count, inside = scene.index.totals(t0 + scene.origin_ns, t1 + scene.origin_ns, lanes)
    assert totals["events"] == count.sum()
    want = {code: (events, ns) for code, events, ns in zip(name, count, inside, strict=True)}
    assert all(want[code] == (events, ns) for code, events, ns in totals["rows"])
