"""Answers to the front end, against the frames."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from timeline_traces import HOSTILE, model_trace, wide_trace
from wire_reader import unpack

from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.scene.service import Service, aggregates, minimap


@pytest.fixture(scope="module")
def trace():
    return model_trace()


@pytest.fixture
def service(trace):
    return Service(Scene.of(trace))


def all_lanes(service):
    return [lane.lane for track in service.scene.tracks for lane in track.lanes]


def ask(service, op, **request):
    """Return the answer and its columns."""
    answer, buffers = service.answer({"op": op, **request})
    assert "error" not in answer, answer
    json.dumps(answer, allow_nan=False)  # it travels as JSON
    assert len(buffers) == ("frame" in answer)
    return answer, unpack(answer["frame"], *buffers) if buffers else {}


def test_open_describes_every_track_and_sends_a_small_trace_whole(service, trace):
    info, columns = ask(service, "open")
    assert info["length"] == service.scene.end_ns - service.scene.origin_ns
    assert info["origin"] == "-30000"
    assert info["synthetic"] is True
    assert [track["label"] for track in info["tracks"]] == [
        "thread 4242 (main)",
        "thread 4250 (loader)",
        "engine head_0",
        "stream 7",
        "stream 20",
    ]
    assert info["whole"] is True
    start, dur, name, row = (columns[key] for key in ("start", "dur", "name", "row"))
    spans = trace.spans[trace.spans["timing"] == "measured"]
    drawn = np.concatenate(
        [
            np.arange(service.scene.lane_begin[lane], service.scene.lane_end[lane])
            for lane in all_lanes(service)
        ]
    )
    assert len(drawn) == len(spans) + len(trace.instants)
    assert sorted(start[drawn] + service.scene.origin_ns) == sorted(
        [*spans["start_ns"].astype(int), *trace.instants["ts_ns"]]
    )
    assert dur[drawn].sum() == spans["dur_ns"].sum()
    assert {info["names"][code] for code in name[drawn]} == {*spans["name"], "[memory]"}
    assert sorted(row[drawn]) == list(range(len(drawn)))


def test_a_large_trace_stays_in_the_kernel(trace):
    info, columns = ask(Service(Scene.of(trace), whole_limit=10), "open")
    assert info["whole"] is False
    assert list(columns) == ["host_busy", "gpu_busy", "name_color", "name_kind"]


def test_view_sends_times_relative_to_its_beginning(service):
    lanes = all_lanes(service)
    info, columns = ask(service, "view", t0=100_000, t1=900_000, width=800, lanes=lanes)
    assert (info["t0"], info["t1"], info["width"]) == (100_000, 900_000, 800)
    begin, start, dur, row = (columns[key] for key in ("span_begin", "start", "dur", "row"))
    for i, lane in enumerate(lanes):
        for k in range(begin[i], begin[i + 1]):
            place = service.scene.locate(int(row[k]))
            assert place.lane == lane
            assert start[k] == place.start_ns - service.scene.origin_ns - 100_000
            assert dur[k] == place.dur_ns


def test_view_stays_near_the_trace_whatever_is_asked(service):
    info, _ = ask(service, "view", t0=-1e30, t1=1e30, width=10, lanes=[])
    assert info["t0"] == -2 * service.scene.length_ns
    assert info["t1"] <= 3 * service.scene.length_ns + 1
    info, _ = ask(service, "view", t0=5, t1=5, width=0, lanes=[])
    assert info["t1"] == 6
    assert info["width"] == 1


def test_search_marks_and_steps_through_every_match(service, trace):
    answer, _ = ask(service, "search", text="GEMM")
    expected = trace.spans[trace.spans["name"].astype(str).str.contains("gemm")]
    assert answer["count"] == len(expected)
    lanes = all_lanes(service)
    seen, place = [], {"start": -1, "lane": -1}
    for _ in range(len(expected) + 1):
        answer, _ = ask(service, "step", lanes=lanes, t=place["start"], lane=place["lane"], forward=True)
        place = answer["place"]
        assert "gemm" in place["name"]
        assert answer["detail"] == ask(service, "detail", row=place["row"])[0]
        assert answer["links"] == ask(service, "links", row=place["row"])[0]
        seen.append(place["start"] + service.scene.origin_ns)
    starts = sorted(expected["start_ns"].astype(int))
    assert seen == [*starts, starts[0]], "after the last match comes the first"
    back = ask(service, "step", lanes=lanes, t=place["start"], lane=place["lane"], forward=False)[0]["place"]
    assert back["start"] + service.scene.origin_ns == starts[-1]
    _, marks = ask(service, "marks")
    assert list(marks) == ["names"]
    assert {service.scene.names[i] for i in np.flatnonzero(marks["names"])} == set(expected["name"])
    assert ask(service, "search", text="")[0]["count"] == 0
    assert ask(service, "step", lanes=lanes, t=0, lane=-1, forward=True)[0]["place"] is None


def test_a_batch_is_answered_in_its_order(service):
    lanes = all_lanes(service)
    view = {"op": "view", "t0": 0, "t1": service.scene.length_ns, "width": 50, "lanes": lanes}
    requests = [
        {"op": "search", "text": "gelu"},
        view,
        {"op": "nonsense"},
        {"op": "marks"},
        {"op": "names", "ids": [0]},
    ]
    answer, buffers = service.answer({"op": "batch", "requests": requests})
    json.dumps(answer, allow_nan=False)
    search, seen, wrong, marks, names = answer["answers"]
    assert search["count"] > 0
    assert seen["marked"] is True, "the view knows the search that was asked for before it"
    with_columns = [one["frame"]["message"] for one in (search, seen, wrong, marks, names) if "frame" in one]
    assert with_columns == ["view", "marks"]
    assert buffers == [*service.answer(view)[1], *service.answer({"op": "marks"})[1]]
    assert wrong["error"] == "unknown request 'nonsense'"
    assert names["names"] == [service.scene.names[0]]
    assert "batch" in service.answer({"op": "batch", "requests": [{"op": "batch"}]})[0]["error"]


@pytest.mark.parametrize(
    "text", ["", "a", "GEMM", "straße", "STRASSE", "\ud800", "é", "x" * 90, "gelugelu", "ß\x00"]
)
def test_matching_agrees_with_python_name_by_name(text):
    service = Service(Scene.of(model_trace(steps=1)))
    service.scene.names += ["Straße", "gelu", "gelu", "ge", "lu", "", "\ud800 lone", "É", "ß\x00b", "x" * 89]
    got = service.matching(text)
    assert got.tolist() == [text.casefold() in name.casefold() for name in service.scene.names]


def test_a_name_and_its_rows_are_counted_alike(service, trace):
    hits = service.matching("gemm")
    rows = service.scene.scene_rows(
        np.flatnonzero(trace.spans["name"].astype(str).str.contains("gemm").to_numpy())
    )
    assert service.mark(names=hits) == service.mark(rows=rows) == len(rows) > 0
    assert service.mark(text="gemm") == service.mark(text="gemm") == len(rows)
    assert service.mark() == 0


def test_marks_are_sent_with_the_view(service):
    lanes = all_lanes(service)
    ask(service, "search", text="cudaLaunch")
    answer, view = ask(service, "view", t0=0, t1=service.scene.length_ns, width=100, lanes=lanes)
    assert answer["marked"] is True
    names = view["names"][view["name"]]
    hits = np.array([service.scene.names[code].startswith("cudaLaunch") for code in names])
    assert (view["marked"].astype(bool) == hits).all()
    assert view["cell_marked"].any()


def test_totals_by_name_inside_a_box(service, trace):
    lanes = all_lanes(service)
    t0, t1 = 200_000, 500_000
    answer, _ = ask(service, "totals", t0=t0, t1=t1, lanes=lanes)
    spans = trace.spans[trace.spans["timing"] == "measured"]
    start = spans["start_ns"].astype(int) - service.scene.origin_ns
    end = start + spans["dur_ns"]
    inside = (np.minimum(end, t1) - np.maximum(start, t0)).clip(lower=0)
    touching = (start <= t1) & (end > t0)
    expected = inside[touching].groupby(spans["name"][touching].astype(str)).agg(["size", "sum"])
    got = {name: (count, ns) for name, count, ns in answer["rows"] if name != "[memory]"}
    assert got == {name: tuple(row) for name, row in expected.iterrows()}


def test_hit_neighbour_locate_and_detail_speak_of_the_same_span(service, trace):
    lane = service.scene.tracks[0].lanes[1].lane
    place = ask(service, "hit", lane=lane, t=60_000, tolerance=50_000)[0]["place"]
    after = ask(service, "neighbour", lane=lane, start=place["start"], row=place["row"], step=1)[0]["place"]
    assert after["start"] >= place["start"] + place["dur"]
    back = ask(service, "neighbour", lane=lane, start=after["start"], row=after["row"], step=-1)[0]["place"]
    assert back == place
    assert ask(service, "locate", row=place["row"])[0]["place"] == place
    detail, _ = ask(service, "detail", row=place["row"])
    assert detail["name"] == place["name"] == trace.spans["name"].iloc[detail["frame_row"]]


def test_names_are_fetched_by_number(service):
    answer, _ = ask(service, "names", ids=[0, 1, 10**6, -1])
    assert answer["names"] == [service.scene.names[0], service.scene.names[1], "", ""]


@pytest.mark.parametrize(
    "request_",
    [
        {"op": "nonsense"},
        {"op": None},
        {},
        {"op": "view"},
        {"op": "view", "t0": 0, "t1": 1, "width": 5, "lanes": [10**6]},
        {"op": "view", "t0": "x", "t1": 1, "width": 5, "lanes": []},
        {"op": "hit", "lane": -1, "t": 0},
        {"op": "detail", "row": 10**9},
        {"op": "counters", "t0": 0, "t1": 9, "width": 3, "ids": [99]},
    ],
)
def test_a_wrong_request_is_answered_with_an_error(service, request_):
    answer, buffers = service.answer(request_)
    assert answer["error"]
    assert buffers == []


def test_aggregates_come_longest_first(service):
    found = aggregates(service.scene)
    assert found["total"] == 5
    assert [record["dur"] for record in found["rows"]] == [200_000, 160_000, 120_000, 80_000, 40_000]
    assert {record["domain"] for record in found["rows"]} == {"gpu"}
    assert aggregates(service.scene, limit=2)["rows"][1]["name"] == "layer_sum_3"


def test_the_overview_is_the_mean_of_the_tracks_busy_shares(service):
    host, gpu = minimap(service.scene, width=50)
    scene = service.scene
    for shares, section in ((host, "host"), (gpu, "gpu")):
        tracks = [track for track in scene.tracks if track.section == section]
        total = sum(track.busy_ns for track in tracks) / len(tracks)
        assert shares.mean() == pytest.approx(total / scene.length_ns, rel=1e-3)


def test_hostile_names_travel_as_they_are():
    service = Service(Scene.of(model_trace(hostile=True)))
    info, _ = ask(service, "open")
    assert set(HOSTILE) <= set(info["names"])
    assert ask(service, "search", text="<img")[0]["count"] > 0


def test_requests_from_several_threads_agree_with_one_thread():
    service = Service(Scene.of(wide_trace(60_000, tracks=8)), whole_limit=0)
    lanes = all_lanes(service)
    length = service.scene.length_ns
    requests = [
        {"op": "view", "t0": length * i // 40, "t1": length * (i + 4) // 40, "width": 300, "lanes": lanes}
        for i in range(36)
    ]
    alone = [service.answer(request) for request in requests]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(service.answer, requests * 3))
    assert together == alone * 3
