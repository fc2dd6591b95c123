"""A timeline as text: where something ran, for how much of the time, by name, host and GPU apart."""

from __future__ import annotations

import pytest
from trace_builder import Builder

from torchtrt_viz.report.text_timeline import terminal_width, text_timeline
from torchtrt_viz.scene.scene import Scene


def scene() -> Scene:
    """1000 ns: a thread busy in the first half, a stream in the third quarter and a fifth of the last."""
    b = Builder()
    thread, stream = b.track("main", process=1, thread=1), b.stream(7)
    b.span("forward pass", 0, 500, thread)
    b.span("gemm", 500, 250, stream, "kernel")
    for start in range(750, 1000, 5):
        b.span("tiny", start, 1, stream, "kernel")
    b.span("last", 999, 1, stream, "kernel")
    return Scene.of(b.build())


def lanes(text: str, edge: str) -> dict[str, str]:
    return {
        line.split(edge)[0].strip(): line.split(edge)[1]
        for line in text.splitlines()
        if line.count(edge) == 2
    }


def test_lanes_show_when_and_how_densely_tracks_were_busy():
    text = text_timeline(scene(), width=119, encoding="utf-8")  # 100 cells: 10 ns each
    drawn = lanes(text, "│")
    assert set(drawn) == {"main", "stream 7"}
    assert drawn["main"] == "█" * 50 + " " * 50
    assert drawn["stream 7"][:75] == " " * 50 + "█" * 25
    # 2 of 10 ns: two eighths, rounded up
    assert set(drawn["stream 7"][75:99]) == {"▂"}


def test_host_and_gpu_have_sections_of_their_own_and_lanes_their_share():
    lines = text_timeline(scene(), width=119, encoding="utf-8").splitlines()
    assert lines.index("HOST time") < lines.index("GPU time")
    host = next(line for line in lines if line.startswith("main"))
    assert host.endswith(" 50.0 %")
    assert lines.index("HOST time") < lines.index(host) < lines.index("GPU time")


def test_spans_with_room_have_their_names_below():
    lines = text_timeline(scene(), width=119, encoding="utf-8").splitlines()
    below = lines[next(n for n, line in enumerate(lines) if line.startswith("main")) + 1]
    assert below.split("│")[1] == "forward pass"
    below = lines[next(n for n, line in enumerate(lines) if line.startswith("stream 7")) + 1]
    assert below.split("│")[1] == " " * 50 + "gemm"


def test_the_axis_begins_at_the_traces_start():
    axis = text_timeline(scene(), width=119, encoding="utf-8").splitlines()[0]
    assert axis.split() == ["time", "0", "ns", "200", "ns", "400", "ns", "600", "ns", "800", "ns"]
    cells = axis[axis.index("0 ns") :]
    assert cells.index("600 ns") == 60


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_no_line_is_longer_than_the_width_and_every_encoding_can_show_it(width, encoding):
    text = text_timeline(scene(), width=width, encoding=encoding)
    assert max(map(len, text.splitlines())) <= width
    text.encode(encoding)
    if encoding == "ascii":
        assert lanes(text, "|")["main"].startswith("####")


def test_a_view_draws_what_lies_in_it():
    made = scene()
    text = text_timeline(made, width=119, encoding="utf-8", view=(250, 750))
    assert lanes(text, "│")["main"] == "█" * 50 + " " * 50


def test_busy_tracks_come_first_and_the_rest_is_counted():
    b = Builder()
    for number in range(5):
        b.span("work", 0, 100 * (number + 1), b.track(f"thread {number}", process=1, thread=number))
    text = text_timeline(Scene.of(b.build()), width=80, encoding="utf-8", tracks=2)
    assert set(lanes(text, "│")) == {"thread 3", "thread 4"}
    assert "3 more tracks with less" in text


def test_names_cannot_steer_the_terminal():
    b = Builder()
    b.span("\x1b[31mred\u202e", 0, 100, b.track("\x1b]0;x\x07thread", process=1, thread=1))
    text = text_timeline(Scene.of(b.build()), width=80, encoding="utf-8")
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_a_trace_without_a_time_axis_says_so():
    b = Builder()
    b.span("layer", None, 100, b.track("engine", "engine", "gpu"), "layer")
    assert text_timeline(Scene.of(b.build()), width=80) == "nothing in it has a place on a time axis"


def test_the_width_is_that_of_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "57")
    assert terminal_width() == 57


def test_the_widget_is_its_drawing_where_only_text_is_shown(monkeypatch):
    pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
    from torchtrt_viz.widgets import timeline

    monkeypatch.setenv("COLUMNS", "100")
    b = Builder()
    b.span("work", 0, 100, b.track("thread 1", process=1, thread=1))
    widget = timeline.Timeline(b.build())
    assert repr(widget) == "<Timeline of 1 events on 1 tracks>"
    assert str(widget).splitlines()[0] == repr(widget)
    assert "thread 1" in str(widget)
    assert widget._repr_mimebundle_()[0]["text/plain"] == str(widget)
    monkeypatch.setattr(timeline, "at_plain_prompt", lambda: True)
    assert repr(widget) == str(widget)
