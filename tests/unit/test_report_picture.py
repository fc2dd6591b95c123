"""The timeline as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from timeline_traces import HOSTILE, model_trace, wide_trace

from torchtrt_viz.errors import OptionError
from torchtrt_viz.report.picture import LABELS, svg, write_svg
from torchtrt_viz.scene.scene import Scene

SVG = "{http://www.w3.org/2000/svg}"


def titles(picture):
    return [title.text for title in ET.fromstring(picture).iter(f"{SVG}title")]


def test_every_span_in_sight_is_drawn_at_its_place():
    trace = model_trace(steps=1)
    scene = Scene.of(trace)
    t0, t1 = scene.origin_ns, scene.origin_ns + 300_000
    root = ET.fromstring(svg(scene, start_ns=t0, end_ns=t1, width=LABELS + 1000))
    start = trace.spans["start_ns"]
    here = (trace.spans["timing"] == "measured") & (start < t1) & (start + trace.spans["dur_ns"] > t0)
    marks = int((trace.instants["ts_ns"] < t1).sum())
    groups = root.findall(f"{SVG}g")
    assert len(groups) == int(here.sum()) + marks
    step = next(g for g in groups if g.find(f"{SVG}title").text.startswith("ProfilerStep#0"))
    row = trace.spans[trace.spans["name"] == "ProfilerStep#0"].iloc[0]
    assert float(step.find(f"{SVG}rect").get("x")) == pytest.approx(
        LABELS + (row["start_ns"] - t0) / 300, abs=0.02
    )


def test_titles_say_where_the_time_was_spent():
    found = titles(svg(Scene.of(model_trace(steps=1))))
    assert any("sgemm" in text and text.endswith("GPU time") for text in found)
    assert any("aten::add" in text and text.endswith("host time") for text in found)
    assert "SYNTHETIC DATA" in svg(Scene.of(model_trace(steps=1)))


def test_hostile_names_are_text():
    picture = svg(Scene.of(model_trace(hostile=True)))
    assert any(text.startswith(HOSTILE[0]) for text in titles(picture))  # it parses, and they are texts
    assert "<script" not in picture
    assert "<img" not in picture


def test_hidden_and_collapsed_tracks():
    scene = Scene.of(model_trace(steps=1))
    main, *_, copies = scene.tracks
    whole = svg(scene)
    less = svg(scene, arrangement={"hidden": [copies.id], "collapsed": [main.id]})
    assert copies.label in whole
    assert copies.label not in less
    height = [float(ET.fromstring(picture).get("height")) for picture in (whole, less)]
    rows = len(main.lanes) - 1 + len(copies.lanes)
    assert height[0] - height[1] == rows * 18 + 3


def test_a_large_trace_makes_a_small_picture(tmp_path):
    file = write_svg(Scene.of(wide_trace(200_000, tracks=4)), tmp_path / "view.svg", width=900)
    assert file.stat().st_size < 3_000_000
    ET.parse(file)


def test_wrong_options():
    scene = Scene.of(model_trace(steps=1))
    with pytest.raises(OptionError, match="end_ns"):
        svg(scene, start_ns=5, end_ns=5)
    with pytest.raises(OptionError, match="width"):
        svg(scene, width=10)
