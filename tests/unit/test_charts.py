"""Charts and their pictures: numbers worked out by hand, names that stay text, colours that can be read."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from timeline_traces import HOSTILE, model_trace
from trace_builder import Builder

import torchtrt_viz as tv
from torchtrt_viz.charts import figure, palette, svg
from torchtrt_viz.charts.chart import Axis, Bars, Boxes, Graph, Line, Plot, Point, Series
from torchtrt_viz.charts.names import engine_label, format_label, kernel_label, layer_label, node_label
from torchtrt_viz.charts.registry import CHARTS, chart
from torchtrt_viz.charts.scales import Scale
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model import schema
from torchtrt_viz.report.html import page


def parsed(markup: str) -> ElementTree.Element:
    """Return markup as a tree: what is not escaped, or not closed, is no tree."""
    return ElementTree.fromstring(f"<main>{markup}</main>")


def written(value: Bars | Boxes) -> dict[str, float]:
    return {bar.label: sum(part.value for part in bar.parts) for bar in value.bars}


@pytest.fixture(scope="module")
def empty() -> tv.Trace:
    return tv.Trace(spans=schema.SPANS.frame({}), tracks=schema.TRACKS.frame({}))


@pytest.fixture(scope="module")
def hostile() -> tv.Trace:
    return model_trace(steps=1, hostile=True)


@pytest.fixture(scope="module")
def trace() -> tv.Trace:
    return model_trace()


# -- every chart -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(CHARTS))
def test_a_chart_of_nothing_says_why(name: str, empty: tv.Trace) -> None:
    made = chart(empty, name)
    assert made.body is None
    assert len(made.missing) > 10
    assert made.missing in "".join(parsed(figure.markup(made)).itertext())
    assert made.missing.split()[0] in figure.svg_file(made)


@pytest.mark.parametrize("name", list(CHARTS))
def test_names_are_text_in_every_picture(name: str, hostile: tv.Trace) -> None:
    made = chart(hostile, name)
    for markup in (figure.markup(made), figure.svg_file(made, theme="dark")):
        assert parsed(markup).find(".//script") is None
        for text in HOSTILE[:2]:
            assert text not in markup


@pytest.mark.parametrize("name", list(CHARTS))
def test_a_chart_has_words_and_a_table(name: str, trace: tv.Trace) -> None:
    made = chart(trace, name)
    if made.body is None:
        return
    assert made.title
    assert made.says.endswith("."), made.says
    assert len(made.frame)
    root = parsed(figure.markup(made))
    picture = root.find(".//svg")
    assert picture is not None
    assert picture.get("role") == "img"
    assert made.says in (picture.get("aria-label") or "")
    assert root.findall(".//title"), "marks say what they are"


def test_a_chart_that_there_is_not_is_refused(trace: tv.Trace) -> None:
    with pytest.raises(OptionError, match="roofline"):
        chart(trace, "pie")
    with pytest.raises(OptionError, match="layers"):
        page(trace, charts=["pie"])
    with pytest.raises(OptionError, match="head_0"):
        chart(trace, "layers", engine="other")


def test_a_page_shows_the_charts_that_have_something(trace: tv.Trace) -> None:
    shown = page(trace, tables=["layers"])
    assert 'id="chart-flame"' in shown
    assert 'href="#chart-flame"' in shown
    assert 'id="chart-memory"' not in shown, "the trace has no memory"
    assert '<a href="#layers">The table behind it</a>' in shown
    few = page(trace, charts=["memory"], tables=["layers"])
    assert "profile_memory=True" in few, "one that was asked for says why it is empty"
    assert 'id="chart-flame"' not in few
    assert page(trace, charts=[]).count('id="chart-') == 0


# -- numbers by hand -------------------------------------------------------------------------------------


def device_trace() -> tv.Trace:
    """Two streams; what each launch waited, and why each gap, follows from the numbers below."""
    b = Builder()
    main = b.track("main", process=1, thread=1)
    one, two = b.stream(7), b.stream(8)
    b.span("step", 0, 400_000, main, "annotation")
    calls = (  # operator, call begins, work begins, work lasts, stream
        ("aten::a", 1_000, 11_000, 20_000, one),  # waits 10 us
        ("aten::b", 5_000, 35_000, 10_000, one),  # gap 31000 to 35000: launched in time, short
        ("aten::c", 90_000, 95_000, 5_000, one),  # gap 45000 to 95000: launched late
        ("aten::d", 10_000, 50_000, 1_000, two),
        ("aten::e", 20_000, 200_000, 1_000, two),  # gap 51000 to 200000: launched in time, long
    )
    for number, (name, call, begin, length, stream) in enumerate(calls, 1):
        b.span(name, call - 500, 2_000, main)
        b.span("cudaLaunchKernel", call, 1_000, main, "runtime", correlation=number)
        b.span(f"kernel_{name[-1]}", begin, length, stream, "kernel", correlation=number)
    return b.build()


def test_idle_time_by_cause() -> None:
    body = chart(device_trace(), "idle").body
    assert written(body) == {"stream 7": 4_000 + 50_000, "stream 8": 149_000}
    causes = {
        (bar.label, body.series[part.series].name): part.value for bar in body.bars for part in bar.parts
    }
    assert causes == {
        ("stream 7", "between pieces that were launched in time"): 4_000,
        ("stream 7", "waits for the host: launched too late"): 50_000,
        ("stream 8", "launched in time, waits for something else"): 149_000,
    }


def test_the_gpus_time_adds_up_to_its_span() -> None:
    body = chart(device_trace(), "gpu_time").body
    assert {part.says.split(":")[0]: part.value for part in body.bars[0].parts} == {
        "GPU 0, compute": 20_000 + 10_000 + 5_000 + 1_000 + 1_000,
        "GPU 0, communication, nothing computed": 0,
        "GPU 0, copies and fills alone": 0,
        "GPU 0, idle": (201_000 - 11_000) - 37_000,
    }


def test_launch_delays_are_counted_once() -> None:
    made = chart(device_trace(), "launch_delay")
    waited = [10_000, 30_000, 5_000, 40_000, 180_000]
    body = made.body
    assert sum(map(sum, body.counts)) == len(waited)
    for value in waited:
        column = max(at for at, edge in enumerate(body.edges) if edge <= value)
        assert body.counts[0][column] >= 1, value
    assert int(made.frame["queued_ns"].sum()) == sum(waited)


def test_the_longest_delays_name_operator_and_kernel() -> None:
    body = chart(device_trace(), "longest_delays", top=2).body
    assert [(bar.label, bar.parts[0].value) for bar in body.bars] == [
        ("aten::e → kernel_e", 180_000),
        ("aten::d → kernel_d", 40_000),
    ]


def test_work_before_its_call_is_said_and_not_drawn() -> None:
    b = Builder()
    main, stream = b.track("main", process=1, thread=1), b.stream(7)
    b.span("cudaLaunchKernel", 5_000, 1_000, main, "runtime", correlation=1)
    b.span("k", 4_000, 100, stream, "kernel", correlation=1)
    b.span("cudaLaunchKernel", 7_000, 1_000, main, "runtime", correlation=2)
    b.span("k", 9_000, 100, stream, "kernel", correlation=2)
    made = chart(b.build(), "launch_delay")
    assert sum(map(sum, made.body.counts)) == 1
    assert "1 began before" in made.says


def test_the_flame_graph_keeps_the_time_of_each_thread() -> None:
    """One thread, seen by two recorders: 100 us of Python, inside it 60 us of operators on another track."""
    b = Builder()
    python = b.track("python", process=1, thread=1)
    torch = b.track("thread 1", process=1, thread=1)
    other = b.track("thread 2", process=1, thread=2)
    b.span("main", 0, 100_000, python, "python")
    b.span("aten::mm", 10_000, 40_000, torch)
    b.span("aten::add", 60_000, 20_000, torch)
    b.span("backward", 5_000, 30_000, other)
    body = chart(b.build(), "flame").body
    roots = [width for width, depth in zip(body.width, body.depth, strict=True) if depth == 0]
    assert roots == [100_000, 30_000]
    assert body.whole == 130_000
    boxes = dict(zip(body.name, zip(body.left, body.width, strict=True), strict=True))
    assert boxes["main"] == (0, 100_000)
    assert boxes["aten::mm"] == (0, 40_000), "the longest first"
    assert boxes["aten::add"] == (40_000, 20_000)
    assert boxes["backward"] == (100_000, 30_000)


def test_boxes_stand_within_their_callers(trace: tv.Trace) -> None:
    for name in ("flame", "flame_gpu"):
        body = chart(trace, name).body
        for at, above in enumerate(body.parent):
            assert (above < 0) == (body.depth[at] == 0)
            if above >= 0:
                assert body.left[above] <= body.left[at]
                assert body.left[at] + body.width[at] <= body.left[above] + body.width[above]


def test_work_of_the_gpu_is_kept_in_its_flame_graph(trace: tv.Trace) -> None:
    spans = trace.spans
    linked = set(spans.loc[spans["kind"] == "runtime", "correlation"].dropna())
    work = spans[(spans["domain"] == "gpu") & spans["kind"].isin(["kernel", "memcpy", "memset"])]
    assert chart(trace, "flame_gpu").body.whole == work.loc[work["correlation"].isin(linked), "dur_ns"].sum()


def test_the_critical_path_is_as_long_as_the_capture() -> None:
    body = chart(device_trace(), "critical_path").body
    assert sum(written(body).values()) == 400_000


def test_phases_of_delegates(trace: tv.Trace) -> None:
    spans = trace.spans
    calls = spans[(spans["kind"] == "delegate") & (spans["run_id"] == "head_0")]
    assert written(chart(trace, "delegate_phases").body) == {"head_0": calls["dur_ns"].sum()}


def test_memory_in_steps() -> None:
    b = Builder()
    main = b.track("main", process=1, thread=1)
    b.span("step", 1_000, 9_000, main)
    for at, total in ((2_000, 2048), (3_000, 1536)):
        b.counter("allocated memory/cpu", at, total, main, "B")
    made = chart(b.build(), "memory")
    (line,) = made.body.lines
    assert line.step
    assert line.name == "cpu, in use"
    assert line.x == (1_000, 2_000)
    assert line.y == (2048, 1536)


def test_graph_launches_are_two_marks_each() -> None:
    b = Builder()
    main, stream = b.track("main", process=1, thread=1), b.stream(7)
    b.span("cudaGraphLaunch", 1_000, 300, main, "runtime", correlation=1)
    for start in (2_000, 2_500):
        b.span("k", start, 400, stream, "kernel", correlation=1)
    body = chart(b.build(), "graph_launches").body
    assert [(point.x, point.y, point.series) for point in body.points] == [(0, 300, 0), (0, 800, 1)]


def test_the_roof_bends_where_memory_meets_arithmetic() -> None:
    b = Builder()
    main, stream = b.track("main", process=1, thread=1), b.stream(7)
    size = 1024
    b.span(
        "aten::mm", 0, 100, main,
        args={"Input Dims": [[size, size], [size, size]], "Input type": ["float", "float"]},
    )  # fmt: skip
    b.span("cudaLaunchKernel", 10, 20, main, "runtime", correlation=1)
    b.span("sgemm", 200, 1_000_000, stream, "kernel", correlation=1)
    known = b.build(deviceProperties=[{"name": "NVIDIA A100-SXM4-80GB"}])
    made = chart(known, "roofline")
    (point,) = made.body.points
    assert point.y == pytest.approx(2 * size**3 / 1e-3 / 1e12)
    assert point.x == pytest.approx(2 * size**3 / (3 * size**2 * 4))
    (line,) = made.body.lines
    assert max(line.y) == 19.5, "fp32 without tensor cores"
    assert line.y[0] == pytest.approx(line.x[0] * 2039 / 1e3)
    unknown = chart(b.build(), "roofline")
    assert unknown.body.lines == ()
    assert "No roof is drawn (NA)" in unknown.says
    assert chart(b.build(), "roofline", device="A100-SXM4-80GB").body.lines == made.body.lines


# -- drawing ---------------------------------------------------------------------------------------------


def test_bars_are_as_wide_as_their_values(trace: tv.Trace) -> None:
    made = chart(trace, "delegate_phases")
    root = parsed(figure.markup(made))
    wide = [
        float(rect.get("width").rstrip("%"))
        for rect in root.findall(".//rect")
        if rect.find("title") is not None
    ]
    values = [part.value for bar in made.body.bars for part in bar.parts if part.value > 0]
    assert wide == pytest.approx([100 * value / sum(values) for value in values], abs=0.001)


def test_no_label_reaches_its_value(trace: tv.Trace) -> None:
    b = Builder()
    main = b.track("main")
    b.span("a/very/long/module/path/of/a/layer/" * 8, None, 2_000, main, "layer", run_id="e")
    root = parsed(figure.markup(chart(b.build(), "layers")))
    label, value = root.findall(".//text")[:2]
    shown = label.find("title").tail  # behind the hover label
    assert len(shown) + len(value.text) == svg.LONGEST_LABEL
    assert "…" in shown


def test_steps_keep_the_extremes_of_a_column() -> None:
    count = 50_000
    low, high = 1_234, 43_210
    values = [100.0] * count
    values[low], values[high] = 1.0, 900.0
    line = Line("use", "host0", tuple(range(count)), tuple(values), step=True)
    markup, _ = svg.draw(Plot(Axis("t", "ns"), Axis("use", "byte", zero=True), lines=(line,)))
    path = parsed(markup).find(".//path").get("d")
    heights = [float(found) for found in re.findall(r"V([\d.]+)", path)]
    scale = Scale.of(Axis("use", "byte", zero=True), values, 0.06)
    assert len(path) < 60_000
    assert max(heights) == pytest.approx(260 * (1 - scale.at(1.0)), abs=0.1)
    assert min(heights) == pytest.approx(260 * (1 - scale.at(900.0)), abs=0.1)


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        (Axis("t", "ns"), (0, 3.2e9)),
        (Axis("t", "ns", log=True), (3, 4e8)),
        (Axis("t", "ns", log=True), (500, 501)),
        (Axis("m", "byte", zero=True), (3e9, 9e9)),
        (Axis("n", zero=True), (0, 7)),
        (Axis("n"), (5, 5)),
        (Axis("n", log=True), ()),
    ],
)
def test_an_axis_shows_its_values_between_round_numbers(axis: Axis, values: tuple[float, ...]) -> None:
    scale = Scale.of(axis, values)
    assert all(0 <= scale.at(value) <= 1 for value in values if value > 0)
    ticks = scale.ticks(5)
    assert 1 <= len(ticks) <= 12
    assert all(-1e-9 <= scale.at(tick) <= 1 + 1e-9 for tick in ticks)


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_a_file_of_its_own(trace: tv.Trace, theme: str) -> None:
    text = figure.svg_file(chart(trace, "layers"), width=600, theme=theme)
    root = ElementTree.fromstring(text)
    assert root.get("width") == "600"
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert palette.THEMES["dark" if theme == "dark" else "light"]["back"] in text


def test_a_file_of_no_size_is_refused(trace: tv.Trace) -> None:
    with pytest.raises(OptionError, match="width"):
        figure.svg_file(chart(trace, "layers"), width=10)
    with pytest.raises(OptionError, match="theme"):
        figure.svg_file(chart(trace, "layers"), theme="blue")


# -- colours ---------------------------------------------------------------------------------------------


def luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", list(palette.THEMES))
def test_colours_can_be_told_from_the_background(theme: str) -> None:
    """WCAG AA: 3:1 for marks, 4.5:1 for text; also on the page's and the notebook's own backgrounds."""
    colors = palette.THEMES[theme]
    backs = {"light": ["#ffffff"], "dark": ["#101316", "#14171b", "#111111"]}[theme]
    for back in [*backs, colors["back"]]:
        for mark in (*palette.HOST, *palette.GPU, palette.REST):
            assert contrast(mark, back) >= 3, (mark, back)
        for text in ("text", "muted"):
            assert contrast(colors[text], back) >= 4.5, (text, back)
    for text in ("text", "muted"):
        assert contrast(colors[text], colors["panel"]) >= 4.5


def test_text_on_marks_can_be_read() -> None:
    for mark in (*palette.HOST, *palette.GPU, palette.REST):
        assert contrast(palette.ON_MARK, mark) >= 4.5, mark


def test_host_is_cool_and_gpu_is_warm() -> None:
    for color in palette.HOST:
        assert int(color[5:], 16) > int(color[1:3], 16) or int(color[3:5], 16) > int(color[1:3], 16)
    for color in palette.GPU:
        assert int(color[1:3], 16) > int(color[5:], 16)


# -- names -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "name", "short"),
    [
        (kernel_label, "ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        (
            kernel_label,
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
            "std::array<char*, 3ul> >(int, float)",
            "vectorized_elementwise_kernel<…>",
        ),
        (kernel_label, "void (anonymous namespace)::softmax<float>(float*)", "softmax<…>"),
        (kernel_label, "(", "("),
        (layer_label, "Reformatting CopyNode for Input Tensor 0 to Conv_0", "reformat 0 → Conv_0"),
        (layer_label, "Reformatting CopyNode for Output Tensor 1 to /head/Gemm", "head/Gemm → reformat 1"),
        (node_label, "/features/block.0/conv/Conv + /features/block.0/act/Relu", "conv/Conv + act/Relu"),
        (engine_label, "forward_3f2a9c81d4e5b6a7_0", "forward_3f2a9c…_0"),
        (engine_label, "region_000", "region_000"),
        (engine_label, "e27214aa90bc41d3-forward-0", "forward-0"),
        (layer_label, "[BMM]-[aten_ops.bmm.default]-[/attention/bmm] [layer_0020]", "attention/bmm (BMM)"),
        (format_label, "Channel major FP16 format where channel % 8 == 0", "channel last %8"),
        (format_label, "Thirty-two wide channel vectorized row major Int8 format", "32-wide channels"),
        (format_label, "Row major linear FP32", "linear"),
        (format_label, "Half", ""),
    ],
)  # fmt: skip
def test_names_are_short_enough_to_read(label, name: str, short: str) -> None:
    assert label(name) == short


def test_points_of_a_plot_lie_where_the_axes_say() -> None:
    points = (Point(1, 10, 0, "a"), Point(100, 1000, 0, "b"), Point(10, 100, 0, "middle"))
    body = Plot(Axis("x", log=True), Axis("y", log=True), (Series("s", "gpu0"),), points)
    circles = parsed(svg.draw(body)[0]).findall(".//circle")
    assert float(circles[2].get("cx").rstrip("%")) == pytest.approx(50, abs=0.01)
    assert float(circles[2].get("cy")) == pytest.approx(18 + 260 / 2, abs=0.1)


def test_a_form_that_nobody_draws_is_an_error() -> None:
    with pytest.raises(TypeError, match="Graph"):
        svg.draw(Graph((), (), (), ()))
