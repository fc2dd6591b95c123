"""Charts of an exported page in a real browser: every width and theme, search, folds, keyboard."""

from __future__ import annotations

import pytest
from described_engines import chain, engine
from timeline_traces import model_trace

from torchtrt_viz.report.html import write_html

# Of every text: its contrast with what lies under it, and whether it ends inside of its picture.
CHECK = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const f = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const ratio = (a, b) => {
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const page = parse(getComputedStyle(document.body).backgroundColor);
  const wrong = [];
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const name = figure.dataset.chart;
    for (const text of figure.querySelectorAll("text, li, .tv-bar button, .tv-bar input")) {
      const style = getComputedStyle(text);
      const ink = parse(text.nodeName === "text" ? style.fill : style.color);
      const box = text.closest("svg.b, g.n, g.f")?.querySelector("rect");
      const own = text.nodeName !== "text" && style.backgroundColor !== "rgba(0, 0, 0, 0)";
      const mark = box && !text.classList.contains("h") ? parse(getComputedStyle(box).fill) : page;
      const under = own ? parse(style.backgroundColor) : mark;
      const words = `${name}: "${text.textContent}"`;
      if (ratio(ink, under) < 4.5) wrong.push(`${words} ${ratio(ink, under).toFixed(2)}`);
      const around = text.closest("svg.b") ?? text.closest(".tv-scroll > svg") ?? figure;
      const frame = around.getBoundingClientRect();
      const at = text.getBoundingClientRect();
      const inside = at.left >= frame.left - 1 && at.right <= frame.right + 1;
      if (at.width && !inside) wrong.push(`${words} is cut`);
    }
    for (const mark of figure.querySelectorAll("svg rect[class], svg circle[class]")) {
      if (["t", "box"].includes(mark.getAttribute("class"))) continue;
      const found = ratio(parse(getComputedStyle(mark).fill), page);
      if (found < 3) wrong.push(`${name}: a mark with ${found.toFixed(2)}`);
    }
    // words of one row stand beside each other
    const rows = {};
    for (const text of figure.querySelectorAll(":scope > svg > text")) {
      const at = text.getBoundingClientRect();
      if (at.width) (rows[Math.round(at.top)] ??= []).push(at);
    }
    for (const row of Object.values(rows)) {
      row.sort((a, b) => a.left - b.left);
      const overlap = row.some((at, i) => i && at.left < row[i - 1].right - 0.5);
      if (overlap) wrong.push(`${name}: words overlap`);
    }
    if (!figure.querySelector("[aria-label]")) wrong.push(`${name}: has no name`);
    for (const control of figure.querySelectorAll("button, input")) {
      const said = control.getAttribute("aria-label") || control.textContent;
      if (!said) wrong.push(`${name}: a control without a name`);
    }
  }
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page is wider than the window");
  return wrong;
}"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("charts")
    layers = chain(200)
    layers[100] |= {"ns": 500_000, "name": "a_name_without_a_place_to_break" * 12}
    return {
        "trace": write_html(model_trace(steps=2), folder / "trace.html").as_uri(),
        "engine": write_html(engine(layers), folder / "engine.html").as_uri(),
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [480, 1000, 1600])
def test_everything_can_be_read_at_every_width(visit, files, width, theme):
    for file in files.values():
        one = visit(file, viewport={"width": width, "height": 900}, color_scheme=theme)
        one.settle()
        assert one.page.evaluate(CHECK) == []
        assert one.errors == []
        assert one.external == []


def test_the_theme_changes_with_the_pages(visit, files):
    one = visit(files["trace"], color_scheme="light")
    one.settle()
    ink = "getComputedStyle(document.querySelector('figure[data-chart] text')).fill"
    before = one.page.evaluate(ink)
    one.page.click("#theme")
    assert one.page.evaluate(ink) != before


def test_a_box_of_a_flame_graph_fills_the_width(visit, files):
    one = visit(files["trace"])
    one.settle()
    figure = one.page.locator("figure[data-chart=flame]")
    step = figure.locator("svg.b").filter(has_text="ProfilerStep").first
    step.click()
    whole, box = figure.locator("> svg").bounding_box(), step.bounding_box()
    assert box["width"] == pytest.approx(whole["width"], abs=2)
    assert "ProfilerStep" in figure.locator(".tv-said").inner_text()
    figure.locator("> svg").focus()
    one.page.keyboard.press("ArrowDown")
    assert "ProfilerStep" not in figure.locator(".tv-said").inner_text()
    one.page.keyboard.press("Enter")
    chosen = figure.locator("svg.b.tv-now").bounding_box()
    assert chosen["width"] == pytest.approx(whole["width"], abs=2)
    one.page.keyboard.press("Escape")
    assert figure.locator(".tv-said").inner_text() == ""


def test_calls_are_searched_with_their_number(visit, files):
    one = visit(files["trace"])
    one.settle()
    figure = one.page.locator("figure[data-chart=flame]")
    find = figure.locator("input")
    find.fill("aten::")
    total = figure.locator("svg.b").evaluate_all(
        "boxes => boxes.filter((box) => box.dataset.l.includes('aten::')).length"
    )
    assert total > 1
    assert figure.locator(".tv-count").inner_text() == f"1 of {total}"
    find.press("Enter")
    assert figure.locator(".tv-count").inner_text() == f"2 of {total}"
    assert "aten::" in figure.locator(".tv-said").inner_text()
    find.fill("no such call")
    assert figure.locator(".tv-count").inner_text() == "nothing found"


def test_folds_open_and_layers_are_found(visit, files):
    one = visit(files["engine"])
    one.settle()
    figure = one.page.locator("figure[data-chart=plan]")
    nodes, folds = figure.locator("g.n"), figure.locator("g.f")
    assert nodes.count() == 201
    shown = "groups => groups.filter((g) => g.getBoundingClientRect().width > 0).length"
    folded = nodes.evaluate_all(shown)
    assert folded < 30
    height = figure.locator(".tv-scroll > svg").evaluate("svg => svg.height.baseVal.value")
    folds.first.click()
    assert nodes.evaluate_all(shown) > folded
    figure.locator("input").fill("layer_150")
    assert figure.locator(".tv-count").inner_text() == "1 of 1"
    assert "layer_150" in figure.locator(".tv-said").inner_text()
    pane, found = figure.locator(".tv-scroll").bounding_box(), figure.locator("g.n.tv-now").bounding_box()
    assert pane["y"] <= found["y"] <= pane["y"] + pane["height"], "what was found is in sight"
    figure.get_by_role("button", name="show every layer").click()
    assert nodes.evaluate_all(shown) == 201
    assert folds.evaluate_all(shown) == 0
    figure.get_by_role("button", name="fold rows of small layers").click()
    assert nodes.evaluate_all(shown) == folded
    assert figure.locator(".tv-scroll > svg").evaluate("svg => svg.height.baseVal.value") == height


def test_what_the_page_draws_is_what_python_drew(visit, files):
    """Folding back gives the places and curves of the static picture, to a pixel."""
    one = visit(files["engine"], java_script_enabled=False)
    read = (
        "figure => [...figure.querySelectorAll('g.n, g.f')]"
        ".map((g) => g.getAttribute('transform').match(/-?[\\d.]+/g).map(Number))"
    )
    picture = one.page.locator("figure[data-chart=plan]")
    static = [group.get_attribute("transform") for group in picture.locator("g.n, g.f").all()]
    live = visit(files["engine"])
    live.settle()
    numbers = live.page.locator("figure[data-chart=plan]").evaluate(read)
    for text, (x, y) in zip(static, numbers, strict=True):
        left, top = text.removeprefix("translate(").rstrip(")").split()
        assert (float(left), float(top)) == (pytest.approx(x, abs=1), pytest.approx(y, abs=1))
