"""The data of a page, decoded again without the front end."""

from __future__ import annotations

import base64
import gzip
import json

import numpy as np
import pytest
from timeline_traces import model_trace, wide_trace
from wire_reader import unpack

from torchtrt_viz.model.args import MappingArgs
from torchtrt_viz.report.payload import payload
from torchtrt_viz.scene.counters import counter_series
from torchtrt_viz.scene.scene import Scene


def decode(text):
    raw = gzip.decompress(base64.b64decode(text))
    size = int.from_bytes(raw[:8], "little")
    assert size % 8 == 0, "the columns stay aligned"
    head = json.loads(raw[8 : 8 + size])
    return head, unpack(head["frame"], raw[8 + size :])


def test_a_page_holds_every_span_exactly():
    trace = model_trace()
    scene = Scene.of(trace)
    head, got = decode(payload(scene).text)
    start, dur, name, row = scene.index.whole()
    assert (got["start"] + scene.origin_ns == start).all()
    assert (got["dur"] == dur).all()
    assert (got["row"] == row).all()
    assert [head["names"][code] for code in got["name"]] == [scene.names[code] for code in name]
    own = trace.spans["self_ns"].to_numpy()
    iteration = trace.spans["iteration"].fillna(-1).to_numpy()
    for at, scene_row in enumerate(row):
        _, block, frame_row = scene.event(int(scene_row))
        if block.frame == "spans":
            assert got["dur"][at] - got["covered"][at] == own[frame_row]
            assert got["iteration"][at] == iteration[frame_row]
    ends = zip(got["flow_source"], got["flow_target"], strict=True)
    flows = [(scene.event(int(a))[2], scene.event(int(b))[2]) for a, b in ends]
    assert flows == list(zip(trace.flows["source"], trace.flows["target"], strict=True))
    assert (got["lane_begin"] == scene.lane_begin).all()
    assert (got["lane_end"] == scene.lane_end).all()
    assert (got["name_color"] == scene.name_color).all()
    assert (got["name_kind"] == scene.name_kind).all()
    assert "share" not in got
    assert head["left_out"] == ""
    assert head["events"] == 839


def test_only_known_details_go_into_a_page():
    trace = model_trace(steps=1)
    longest = int(trace.spans["dur_ns"].idxmax())
    trace.args._source = MappingArgs(
        {longest: {"grid": [1], "HF_TOKEN": "hf_secret", "env": {"A": "hf_secret"}}}
    )
    text = payload(Scene.of(trace)).text
    head, _ = decode(text)
    assert list(head["args"].values()) == [{"grid": "[1]"}]
    assert b"hf_secret" not in gzip.decompress(base64.b64decode(text))


@pytest.mark.parametrize("limit", [2_000, 20_000])
def test_what_does_not_fit_is_merged_and_counted(limit):
    trace = wide_trace(60_000, tracks=6)
    scene = Scene.of(trace)
    made = payload(scene, max_spans=limit)
    head, got = decode(made.text)
    stands, share = got["stands"], got["share"]
    assert len(got["start"]) <= limit
    assert head["left_out"].startswith(f"{made.merged:,} spans shorter than")
    drawn = ~scene.lane_is_cover
    begin, end = got["lane_begin"], got["lane_end"]
    # No event is lost: kept ones and those that blocks stand for add up, lane by lane.
    for lane in np.flatnonzero(drawn):
        here = slice(begin[lane], end[lane])
        assert stands[here].sum() == scene.lane_end[lane] - scene.lane_begin[lane]
        s, e = got["start"][here], (got["start"] + got["dur"])[here]
        assert (s[1:] >= e[:-1]).all()
        # Busy time is kept: a block's share is rounded up to 1/255 of it.
        busy = (got["dur"][here] * share[here] / 255).sum()
        exact = scene.lane_busy[lane]
        assert exact * 0.999 <= busy <= exact + got["dur"][here][stands[here] > 1].sum() / 255 + 1
    # Every span longer than the limit is there by itself.
    threshold = int(made.left_out.split("shorter than ")[1].split(" ns")[0].replace(",", ""))
    single = got["row"][stands == 1]
    long = np.flatnonzero(trace.spans["dur_ns"].to_numpy() >= threshold)
    assert np.isin(long, single).all()


def test_counters_travel_as_columns():
    trace = model_trace()
    trace.counters.loc[trace.counters.index[1], "value"] = np.inf
    scene = Scene.of(trace)
    head, got = decode(payload(scene).text)
    begin = 0
    for series, about, end in zip(
        counter_series(scene.parts), head["counters"], got["counter_end"], strict=True
    ):
        assert about["name"] == series.name
        assert (got["counter_time"][begin:end] + scene.origin_ns == series.ts_ns).all()
        finite = np.isfinite(series.value)
        assert (got["counter_value"][begin:end][finite] == series.value[finite]).all()
        assert np.isnan(got["counter_value"][begin:end][~finite]).all()
        begin = end
    assert begin == len(got["counter_value"]) > 0
    assert np.isnan(got["counter_value"]).sum() == 1


def test_times_of_any_distance_go_into_a_page():
    """As the doubles that JavaScript has: within some nanoseconds beyond 2^53."""
    trace = model_trace(steps=1)
    trace.spans.loc[3, "start_ns"] = 2**60
    scene = Scene.of(trace)
    _, got = decode(payload(scene).text)
    start, *_ = scene.index.whole()
    far = np.flatnonzero(start == 2**60)
    assert len(far)
    assert got["start"][far].tolist() == [float(2**60 - scene.origin_ns)] * len(far)
    near = start < 2**53
    assert (got["start"][near] + scene.origin_ns == start[near]).all()
