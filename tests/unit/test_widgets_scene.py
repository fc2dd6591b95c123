"""Scenes: what is drawn where, and how scene rows lead back to the frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small_session import write_small_session
from timeline_traces import model_trace
from trace_builder import Builder

from torchtrt_viz import load
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model import schema
from torchtrt_viz.scene.counters import counter_series
from torchtrt_viz.scene.details import details, links
from torchtrt_viz.scene.scene import Part, Scene
from torchtrt_viz.trace import Trace


def trace(rows, tracks=("thread 1", "stream 7"), **frames):
    """Rows of (name, kind, domain, timing, track, start, dur)."""
    name, kind, domain, timing, track, start, dur = zip(*rows, strict=True)
    gpu = [label.startswith("stream") for label in tracks]
    return Trace(
        spans=schema.SPANS.frame(
            {
                "name": name,
                "kind": kind,
                "domain": domain,
                "timing": timing,
                "track": np.array(track, np.int32),
                "start_ns": pd.array(start, dtype="Int64"),
                "dur_ns": np.array(dur),
                "self_ns": np.array(dur),
                "rank": frames.pop("rank", -1),
                "correlation": np.array(frames.pop("correlation", [-1] * len(rows))),
            }
        ),
        tracks=schema.TRACKS.frame(
            {
                "label": np.array(tracks, dtype=object),
                "type": ["stream" if g else "thread" for g in gpu],
                "domain": ["gpu" if g else "host" for g in gpu],
                "process": np.array(["9"] * len(tracks), dtype=object),
                "device": np.array([0 if g else None for g in gpu], dtype=object),
            }
        ),
        **frames,
    )


ROWS = [
    ("sum", "layer", "gpu", "aggregate", 1, None, 900),
    ("op", "operator", "host", "measured", 0, 100, 50),
    ("launch", "runtime", "host", "measured", 0, 110, 10),
    ("kernel", "kernel", "gpu", "measured", 1, 130, 40),
    ("layer", "layer", "gpu", "measured", 0, 120, 20),
    ("range", "annotation", "gpu", "measured", 1, 125, 60),
    ("guess", "layer", "gpu", "modeled", 1, 130, 15),
    ("overlap", "kernel", "gpu", "measured", 1, 150, 40),
]


def drawn(scene, track):
    return {
        (lane.role, scene.names[scene.index.whole()[2][i]])
        for lane in track.lanes
        for i in range(scene.lane_begin[lane.lane], scene.lane_end[lane.lane])
    }


def test_host_and_gpu_time_never_share_a_lane_even_on_one_track():
    scene = Scene.of(trace(ROWS))
    shown = {(track.section, track.label): drawn(scene, track) for track in scene.tracks}
    assert shown == {
        ("host", "thread 1"): {("spans", "op"), ("spans", "launch")},
        ("gpu", "thread 1 (GPU work)"): {("spans", "layer")},
        ("gpu", "stream 7"): {
            ("annotations", "range"),
            ("spans", "kernel"),
            ("spans", "overlap"),
            ("modeled", "guess"),
        },
    }


def test_aggregates_have_no_place_and_the_axis_begins_with_the_first_span():
    scene = Scene.of(trace(ROWS))
    assert (scene.origin_ns, scene.end_ns) == (100, 190)
    assert "sum" not in {name for track in scene.tracks for _, name in drawn(scene, track)}


def test_busy_time_of_a_stream_is_the_union_of_its_kernels_only():
    scene = Scene.of(trace(ROWS))
    stream = next(track for track in scene.tracks if track.label == "stream 7")
    assert stream.busy_ns == 60  # 130..170 and 150..190, without the annotation and the modeled layer
    assert [lane.role for lane in stream.lanes] == ["annotations", "spans", "spans", "modeled"]


def test_rows_lead_to_the_frame_and_back():
    one = trace(ROWS)
    scene = Scene.of(one)
    rows = scene.scene_rows([1, 3, 0, 7])  # 0 is an aggregate: no place
    frame = scene.frame(rows)
    assert frame["name"].tolist() == ["op", "kernel", "overlap"]
    assert frame.index.tolist() == [1, 3, 7]
    for row in rows:
        place = scene.locate(int(row))
        _, _, frame_row = scene.event(int(row))
        assert place.start_ns == one.spans["start_ns"].iloc[frame_row]
        assert scene.index.hit(place.lane, place.start_ns)[0] == row


def test_several_traces_share_names_and_keep_their_rows():
    first = trace(ROWS, rank=0)
    second = trace([*ROWS[3:4], ROWS[1]], rank=1)
    scene = Scene([Part(first, 0, "rank 0"), Part(second, 1_000, "rank 1")])
    assert scene.names.count("kernel") == 1
    assert scene.end_ns == 1_170
    assert {track.group for track in scene.tracks} == {
        "rank 0 · process 9",
        "rank 0 · GPU 0",
        "rank 1 · process 9",
        "rank 1 · GPU 0",
    }
    rows = np.concatenate([scene.scene_rows([3], 0), scene.scene_rows([0], 1)])
    frame = scene.frame(rows)
    assert frame["part"].tolist() == ["rank 0", "rank 1"]
    assert frame["start_ns"].tolist() == [130, 130]
    assert scene.locate(int(rows[1])).start_ns == 1_130


def test_an_empty_trace_makes_an_empty_scene():
    scene = Scene.of(Trace(spans=schema.SPANS.frame({}), tracks=schema.TRACKS.frame({})))
    assert scene.tracks == []
    assert scene.length_ns == 1
    assert scene.frame(np.empty(0, np.int64)).empty
    with pytest.raises(ValueError, match="at least one trace"):
        Scene([])


def test_names_have_the_same_colour_in_every_trace():
    first = Scene.of(trace(ROWS))
    second = Scene.of(trace(ROWS[::-1]))
    colour = [dict(zip(scene.names, scene.name_color.tolist(), strict=True)) for scene in (first, second)]
    assert colour[0]["kernel"] == colour[1]["kernel"]
    assert len(set(colour[0].values())) > 1
    assert schema.KINDS[first.name_kind[first.names.index("kernel")]] == "kernel"


def test_details_say_where_the_time_was_spent():
    one = model_trace(steps=1)
    scene = Scene.of(one)
    kernel = int(np.flatnonzero(one.spans["kind"] == "kernel")[0])
    found = details(scene, int(scene.scene_rows([kernel])[0]))
    assert found["domain"] == "gpu"
    assert found["times"]["dur"] == one.spans["dur_ns"].iloc[kernel]
    assert found["times"]["start"] == one.spans["start_ns"].iloc[kernel] - scene.origin_ns
    assert ["grid", "[96, 4, 1]"] in found["args"]
    assert ["track", "stream 7"] in found["fields"]


def test_links_follow_flows_and_else_the_correlation_id():
    one = model_trace(steps=1, blocks=1)
    scene = Scene.of(one)
    source, target = one.flows[["source", "target"]].iloc[4]
    found, total = links(scene, int(scene.scene_rows([source])[0]))
    assert total == 1
    assert (found[0].outgoing, found[0].name) == (True, "ac2g")
    assert found[0].place.row == scene.scene_rows([target])[0]
    assert links(scene, int(scene.scene_rows([target])[0]))[0][0].outgoing is False

    bare = trace(ROWS, correlation=[-1, -1, 5, 5, -1, -1, -1, 5])
    scene = Scene.of(bare)
    found, total = links(scene, int(scene.scene_rows([2])[0]))
    assert {link.text for link in found} == {"kernel", "overlap"}
    assert {link.name for link in found} == {"correlation"}
    assert all(link.outgoing for link in found)
    assert links(scene, int(scene.scene_rows([1])[0])) == ([], 0)


def test_counters_show_the_value_that_holds_and_every_change_in_a_column():
    one = trace(
        ROWS[1:2],
        counters=schema.COUNTERS.frame(
            {
                "name": ["memory"] * 4,
                "track": np.zeros(4, np.int32),
                "ts_ns": np.array([30, 10, 20, 21]),
                "value": np.array([7.0, 1.0, 5.0, 3.0]),
                "unit": "bytes",
            }
        ),
    )
    (series,) = counter_series([Part(one)])
    low, high = series.view(0, 40, 8)  # columns of 5 ns
    assert np.isnan(low[:2]).all()
    assert low[2:].tolist() == [1, 1, 3, 3, 7, 7]
    assert high[2:].tolist() == [1, 1, 5, 3, 7, 7]
    assert series.to_dict()["unit"] == "bytes"


def test_traces_share_the_axis_by_their_clocks_or_say_that_they_do_not():
    first, second = trace(ROWS[1:2], rank=0), trace(ROWS[1:2], rank=1)
    first.meta.update(base_ns=5_000, rank=0)
    second.meta.update(base_ns=5_300, rank=1)
    scene = Scene.of([first, second])
    assert [part.shift_ns for part in scene.parts] == [0, 300]
    assert [part.label for part in scene.parts] == ["rank 0", "rank 1"]
    assert "wall clocks" in scene.note
    assert [part.shift_ns for part in Scene.of([first, second], "start").parts] == [-100, -100]
    second.meta["base_ns"] = None
    scene = Scene.of([first, second])
    assert [part.shift_ns for part in scene.parts] == [-100, -100]
    assert scene.note == "each trace begins at 0: not all of them record a wall clock"
    with pytest.raises(OptionError, match="align"):
        Scene.of([first, second], "guess")
    with pytest.raises(OptionError, match="at most 256"):
        Scene.of([first] * 300)


def test_a_session_becomes_one_group_per_rank(tmp_path):
    session = load(write_small_session(tmp_path))
    scene = Scene.of(session)
    assert len(scene.parts) == len(list(session.traces()))
    groups = {track.group.split(" · ")[0] for track in scene.tracks}
    assert groups == {part.label for part in scene.parts}


def test_one_thread_has_one_group_whoever_recorded_it_and_recorders_stand_apart():
    b = Builder()
    main = b.track("thread 7 (python)", process="42", thread="7", process_name="python")
    quiet = b.track("thread 8", process="42", thread="8", process_name="python")
    lazy = b.track("thread 9", process="42", thread="9", process_name="python")
    dump = b.track("demo.etdp, thread 7", "method", thread="7")
    notes = b.track("PyTorch Profiler", process="Spans", thread="PyTorch Profiler")
    marks = b.track("no thread", thread="")
    b.span("step", 1_000, 9_000, main)
    b.span("poll", 2_000, 1, quiet)
    b.span("poll", 3_000, 1, lazy)
    b.span("delegate", 2_000, 5_000, dump, "delegate")
    b.span("PyTorch Profiler (0)", 0, 20_000, notes, "other", timing="modeled")
    b.instant("Record Window End", 20_000, marks)
    tracks = {track.label: track for track in Scene.of(b.build()).tracks}
    assert list(tracks)[:2] == ["thread 7 (python)", "demo.etdp, thread 7"]
    assert {track.group for label, track in tracks.items() if not track.recording} == {"python 42"}
    assert {label for label, track in tracks.items() if track.recording} == {"PyTorch Profiler", "no thread"}
    assert {label for label, track in tracks.items() if track.idle} == {"thread 8", "thread 9"}


def test_what_is_modeled_is_not_idle():
    b = Builder()
    stream = b.track("stream 2", "stream", "gpu", device=0)
    ops = b.track("ops, stream 2", "stream", "gpu", device=0)
    rare = b.track("stream 9", "stream", "gpu", device=0)
    for at in range(3):
        b.span("gemm", 10_000 * at, 9_000, stream, "kernel", domain="gpu")
        b.span("dot_general", 10_000 * at, 9_000, ops, "operator", domain="gpu", timing="modeled")
        b.span("jit_step", 10_000 * at, 9_500, ops, "annotation", domain="gpu", timing="modeled")
    b.span("memset", 500, 1, rare, "memset", domain="gpu")
    b.span("memset", 500, 1, rare, "memset", domain="gpu")
    tracks = {track.label: track for track in Scene.of(b.build()).tracks}
    assert next(iter(tracks)) == "stream 2"
    assert not tracks["stream 2"].idle
    assert not tracks["ops, stream 2"].idle, "its work is that of the stream, told again"
    assert tracks["stream 9"].idle
