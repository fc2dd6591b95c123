"""The exported page in a real browser, from disk, without a network."""

from __future__ import annotations

import json
import re

import pytest
from rank_traces import event, simple_events, trace_json, write
from timeline_traces import HOSTILE, model_trace, wide_trace

import torchtrt_viz as tv
from torchtrt_viz.report.html import write_html
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.scene.wanted import show_request

KEYS = ["w", "s", "a", "d", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]


@pytest.fixture(scope="module")
def trace():
    return model_trace()


@pytest.fixture(scope="module")
def file(trace, tmp_path_factory):
    return write_html(trace, tmp_path_factory.mktemp("report") / "report.html").as_uri()


@pytest.fixture
def page(visit, file):
    one = visit(file)
    one.settle()
    # the verdict stands above it: the mouse reaches what is in sight
    one.page.locator("#timeline").evaluate("(section) => section.scrollIntoView()")
    yield one
    assert one.external == []
    assert one.errors == []


def span(trace, visit, name, nth=0):
    """Scene row of the nth measured span of a name (nothing is merged: rows are those of the frame)."""
    found = trace.spans[(trace.spans["name"] == name) & (trace.spans["timing"] == "measured")]
    return int(found.index[nth])


def of(name):
    """JS expression of the place of the first span whose name contains this."""
    return (
        "t.source.locate([...t.source.index.row].find((r, i) => "
        f"t.source.texts[t.source.index.name[i]].includes('{name}')))"
    )


def focus(visit):
    visit.page.locator(".tv-root").focus()


def test_host_and_gpu_are_drawn_apart(page):
    page.run("t.setRange(0, 400000)")
    page.settle()
    host, gpu = (
        page.pixel(at["x"] + at["width"] / 2, at["y"] + 2)
        for at in (page.run(f"t.rectangleOf({of(name)})") for name in ("TransformerBlock_2", "sgemm"))
    )
    assert host[2] > host[0], "host work is cool: more blue than red"
    assert gpu[0] > gpu[2], "GPU work is warm: more red than blue"
    sections = page.page.locator(".tv-section").all_inner_texts()
    assert sections[:2] == ["GPU", "HOST"]


def test_every_span_is_somewhere_on_the_canvas(page, trace):
    """At full zoom-out no span of a lane is lost: every pixel that a span touches is not background."""
    page.run("t.fitAll()")
    page.settle()
    missing = page.run(
        """(() => {
          const {index} = t.source; const out = [];
          const px = t.parts.lanes.getContext('2d');
          for (const row of t.rows.laneRows) {
            if (row.y + row.height - t.scroll > t.height || row.role === 'instants') continue;
            const y = Math.round((row.y - t.scroll + 5) * t.ratio);
            const line = px.getImageData(0, y, t.parts.lanes.width, 1).data;
            const back = t.theme[row.section].back;
            const [r, g, b] = [1, 3, 5].map((i) => parseInt(back.slice(i, i + 2), 16));
            for (let i = index.laneBegin[row.lane]; i < index.laneEnd[row.lane]; i++) {
              const x = (index.start[i] + index.dur[i] / 2 - t.t0) / (t.t1 - t.t0) * t.width;
              let seen = false;
              for (const at of [Math.floor(x) - 1, Math.floor(x), Math.floor(x) + 1]) {
                const p = Math.round(at * t.ratio) * 4;
                seen ||= Math.abs(line[p] - r) + Math.abs(line[p + 1] - g) + Math.abs(line[p + 2] - b) > 12;
              }
              if (!seen) out.push([row.track.label, index.row[i]]);
            }
          }
          return out;
        })()"""
    )
    assert missing == []


def test_keys_zoom_and_pan(page):
    focus(page)
    before = page.run("t.range()")
    page.page.keyboard.press("w")
    page.settle()
    zoomed = page.run("t.range()")
    assert zoomed["t1"] - zoomed["t0"] == pytest.approx((before["t1"] - before["t0"]) / 1.4)
    page.page.keyboard.press("d")
    moved = page.run("t.range()")
    assert moved["t0"] > zoomed["t0"]
    assert moved["t1"] - moved["t0"] == pytest.approx(zoomed["t1"] - zoomed["t0"])
    page.page.keyboard.press("ArrowLeft")
    assert page.run("t.range()")["t0"] == pytest.approx(zoomed["t0"])
    page.page.keyboard.press("0")
    page.settle()
    assert page.run("t.range()") == {key: pytest.approx(value) for key, value in before.items()}


def test_the_wheel_zooms_at_the_pointer_only_with_ctrl(page):
    box = page.page.locator(".tv-lanes").bounding_box()
    x = box["x"] + box["width"] * 0.25
    page.page.mouse.move(x, box["y"] + 60)
    before = page.run("t.range()")
    anchor = page.run("t.timeAt(t.width * 0.25)")
    page.page.mouse.wheel(0, 120)
    page.page.wait_for_timeout(100)
    assert page.run("t.range()") == before, "a plain wheel scrolls"
    page.page.keyboard.down("Control")
    page.page.mouse.wheel(0, -240)
    page.page.keyboard.up("Control")
    page.settle()
    assert page.run("t.t1 - t.t0") < before["t1"] - before["t0"]
    assert page.run("t.timeAt(t.width * 0.25)") == pytest.approx(anchor, abs=20_000)
    narrowed = page.run("t.range()")
    page.page.mouse.wheel(200, 0)
    page.settle()
    assert page.run("t.t0") > narrowed["t0"], "a sideways wheel pans"


def test_click_pins_details_and_arrows_lead_to_the_kernel(page, trace):
    launch = span(trace, page, "cudaLaunchKernel", 3)
    page.run("t.setRange(0, 400000)")
    page.settle()
    row = page.run(
        "[...t.source.index.row].filter((r, i) =>"
        " t.source.texts[t.source.index.name[i]] === 'cudaLaunchKernel').sort((a, b) => a - b)[3]"
    )
    page.page.mouse.click(*page.rectangle(f"t.source.locate({row})"))
    panel = page.page.locator(".tv-panel")
    panel.wait_for()
    text = panel.inner_text()
    assert "cudaLaunchKernel" in text
    assert f"{trace.spans['dur_ns'][launch]:,} ns" in text
    assert "host time" in text
    page.page.wait_for_function("() => window.tvTimeline.links.length === 1")
    panel.locator(".tv-link").click()
    page.settle()
    page.page.wait_for_function("() => document.querySelector('.tv-panel').innerText.includes('GPU time')")
    target = trace.flows.loc[trace.flows["source"] == launch, "target"].iloc[0]
    assert f"{trace.spans['dur_ns'][target]:,} ns" in panel.inner_text()
    focus(page)
    page.page.keyboard.press("b")  # back
    page.page.wait_for_function(
        "() => document.querySelector('.tv-panel').innerText.includes('cudaLaunchKernel')"
    )
    page.page.keyboard.press("Escape")
    assert not panel.is_visible()


def test_search_counts_steps_and_dims(page, trace):
    count = int(trace.spans["name"].astype(str).str.contains("gemm").sum())
    focus(page)
    page.page.keyboard.press("/")
    page.page.keyboard.type("GEMM")
    page.page.wait_for_function(
        f"() => document.querySelector('.tv-matches').innerText === '{count} matches'"
    )
    page.page.keyboard.press("Enter")
    page.settle()
    first = page.run("t.selected")
    assert "gemm" in first["name"]
    focus(page)
    page.page.keyboard.press("n")
    page.settle()
    second = page.run("t.selected")
    assert second["start"] > first["start"]
    page.page.keyboard.press("Shift+N")
    page.settle()
    assert page.run("t.selected.row") == first["row"]
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("Escape")
    page.page.wait_for_function("() => document.querySelector('.tv-matches').innerText === ''")


def test_a_box_sums_host_and_gpu_apart(page):
    box = page.page.locator(".tv-lanes").bounding_box()
    page.page.mouse.move(box["x"] + 200, box["y"] + 30)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 500, box["y"] + 230, steps=4)
    page.page.mouse.up()
    panel = page.page.locator(".tv-panel")
    panel.wait_for()
    text = panel.inner_text()
    assert re.search(r"\d+ events in [\d.]+ (µs|ms) on \d+ lanes", text)
    assert "host time inside" in text
    assert "GPU time inside" in text
    state = page.run("t.store.get('selected')")
    assert state["kind"] == "box"
    t0 = page.run("t.timeAt(200)")
    assert state["t0"] == pytest.approx(t0, abs=2)


def test_the_ruler_measures(page):
    box = page.page.locator(".tv-ruler").bounding_box()
    page.page.mouse.move(box["x"] + 100, box["y"] + 8)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 300, box["y"] + 8, steps=4)
    page.page.mouse.up()
    measured = page.run("t.measure.t1 - t.measure.t0")
    assert measured == pytest.approx(page.run("200 / t.width * (t.t1 - t.t0)"))
    focus(page)
    page.page.keyboard.press("Escape")
    assert page.run("t.measure") is None


def test_the_overview_moves_the_window(page):
    page.run("t.setRange(0, t.length / 10)")
    box = page.page.locator(".tv-minimap").bounding_box()
    page.page.mouse.click(box["x"] + box["width"] * 0.7, box["y"] + 10)
    assert page.run("(t.t0 + t.t1) / 2 / t.length") == pytest.approx(0.7, abs=0.01)


def test_everything_by_keyboard_alone(page):
    """Choose a lane and a span in it, extend a box, measure, arrange tracks: no mouse."""
    focus(page)
    page.page.keyboard.press("2")
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowDown")
    assert page.run("t.cursor.at") == 2
    page.page.keyboard.press("Enter")
    page.page.wait_for_function("() => window.tvTimeline.selected !== null")
    first = page.run("t.selected")
    assert first["lane"] == page.run("t.cursor.lane")
    page.page.keyboard.press(".")
    page.page.wait_for_function(f"() => window.tvTimeline.selected?.start > {first['start']}")
    page.page.keyboard.press("f")
    page.settle()
    dur = page.run("t.selected.dur")
    assert page.run("t.t1 - t.t0") == pytest.approx(max(100, dur) * 1.3, rel=0.01)
    page.page.keyboard.press("[")
    page.page.keyboard.press("]")
    assert page.run("t.measure.t1 - t.measure.t0") == pytest.approx(dur)
    page.page.keyboard.press(">")
    page.page.wait_for_function("() => window.tvTimeline.box !== null")
    page.page.keyboard.press(">")
    page.page.wait_for_function("() => /events/.test(document.querySelector('.tv-panel').innerText)")
    assert page.run("t.box.t1 - t.box.t0") > dur
    page.page.keyboard.press("x")
    assert page.run("t.box.lanes.size") == 1
    page.page.keyboard.press("Shift+X")
    assert page.run("t.box.lanes.size") > 5
    main = page.run("t.cursor.track.id")
    page.page.keyboard.press("c")
    assert page.run("t.rows.layout.collapsed") == [main]
    page.page.keyboard.press("c")
    page.page.keyboard.press("p")
    assert page.run("t.rows.layout.pinned") == [main]
    assert page.run("t.rows.rows[0].title[0]") == "PINNED"
    page.page.keyboard.press("p")
    page.page.keyboard.press("}")
    first = "t.rows.laneRows.find((row) => row.section === 'host').track.id"
    assert page.run(first) != main
    page.page.keyboard.press("{")
    assert page.run(first) == main
    page.page.keyboard.press("h")
    assert page.run("t.rows.layout.hidden") == [main]
    page.page.keyboard.press("Shift+H")
    assert page.run("t.rows.layout.hidden") == []
    page.page.keyboard.press("2")
    assert page.run("t.cursor.section") == "host"
    page.page.keyboard.press("1")
    assert page.run("t.cursor.section") == "gpu"
    page.page.keyboard.press("k")
    assert page.run("t.colorBy") == "kind"
    page.page.keyboard.press("?")
    help_ = page.page.locator(".tv-help")
    assert help_.is_visible()
    assert "follow the arrow" in help_.inner_text()
    page.page.keyboard.press("Escape")
    assert not help_.is_visible()


def test_keys_stay_inside(page):
    page.page.evaluate(
        "() => { window.leaked = []; document.addEventListener('keydown', (e) => leaked.push(e.key)); }"
    )
    focus(page)
    for key in [*KEYS, "x", "?", "?", "Enter", "Delete", "b", "m", "Shift+A", " "]:
        page.page.keyboard.press(key)
    page.page.keyboard.press("/")
    page.page.keyboard.type("dd")
    assert page.page.evaluate("() => leaked") == []
    page.page.keyboard.press("Control+B")
    assert "B" in page.page.evaluate("() => leaked"), "what is not the timeline's stays the browser's"


def test_hidden_pinned_and_collapsed_by_mouse(page):
    label = page.page.locator(".tv-track", has_text="stream 20")
    label.hover()
    label.get_by_title("hide (H)").click()
    page.settle()
    assert page.page.locator(".tv-track", has_text="stream 20").count() == 0
    assert "GPU · 1 hidden" in page.page.locator(".tv-section").all_inner_texts()
    page.page.get_by_title("choose, collapse and order tracks").click()
    menu = page.page.locator(".tv-menu")
    menu.get_by_title("show all tracks (Shift+H)").click()
    page.settle()
    assert page.page.locator(".tv-track", has_text="stream 20").count() == 1
    caret = page.page.locator(".tv-track", has_text="engine head_0").get_by_title("collapse (C)")
    assert page.run("t.rows.laneRows.filter((r) => r.track.label === 'engine head_0').length") == 3
    caret.click()
    assert page.run("t.rows.laneRows.filter((r) => r.track.label === 'engine head_0').length") == 1


def test_hover_names_the_side(page):
    page.run("t.setRange(0, 400000)")
    page.settle()
    page.page.mouse.move(*page.rectangle(of("sgemm")))
    tooltip = page.page.locator(".tv-tooltip")
    tooltip.wait_for()
    assert "GPU time" in tooltip.inner_text()
    assert "sgemm" in tooltip.inner_text()


def test_dark_follows_the_system_and_the_button(visit, file):
    one = visit(file, color_scheme="dark")
    one.settle()
    assert one.run("t.theme.dark") is True
    assert sum(one.pixel(5, 60)) < 150
    one.page.locator("#theme").click()
    one.settle()
    assert one.run("t.theme.dark") is False
    assert sum(one.pixel(5, 60)) > 600


def test_at_200_percent_the_canvas_is_sharp(visit, file):
    one = visit(file, device_scale_factor=2)
    one.settle()
    assert one.run("t.parts.lanes.width") == 2 * one.run("t.width")
    assert one.page.locator(".tv-root").evaluate("(e) => e.scrollWidth <= e.clientWidth")


def test_hostile_names_are_text_everywhere(visit, tmp_path):
    trace = model_trace(hostile=True)
    one = visit(write_html(trace, tmp_path / "report.html", title=HOSTILE[0]).as_uri())
    one.settle()
    one.run(f"t.search({HOSTILE[0]!r})")
    one.run("t.stepMatch(true)")
    one.settle()
    one.page.wait_for_function("() => !document.querySelector('.tv-panel').hidden")
    assert "<img src=x" in one.page.locator(".tv-panel").inner_text()
    one.run("t.boxInSight(true)")
    one.page.mouse.move(*one.rectangle("t.source.locate(t.source.index.row[0])"))
    one.settle()
    assert one.page.evaluate("() => window.hacked") is None
    assert one.page.locator("img").count() == 0
    assert one.page.locator("script").count() <= 2
    assert one.page.title() == HOSTILE[0]
    assert one.external == []
    assert one.errors == []


def test_tables_sort_filter_and_lead_to_the_timeline(page):
    section = page.page.locator("#operators")
    names = section.locator("tbody tr td:first-child")
    section.locator("th", has_text="name").first.click()
    texts = names.all_inner_texts()
    assert texts == sorted(texts, key=str.casefold, reverse=True)
    section.locator("th", has_text="calls").first.click()
    calls = [int(t.replace(",", "")) for t in section.locator("tbody tr td:nth-child(2)").all_inner_texts()]
    assert calls == sorted(calls, reverse=True)
    page.page.locator("#kernels input.filter").fill("nccl")
    assert page.page.locator("#kernels tbody tr:visible").count() == 1
    section.locator("button.name", has_text="aten::gelu").click()
    page.page.wait_for_function("() => window.tvTimeline.selected?.name === 'aten::gelu'")
    assert page.page.locator(".tv-search").input_value() == "aten::gelu"


def test_the_picture_is_a_png_of_the_view(page):
    size = page.run(
        "t.picture().then(async (blob) => { const b = new Uint8Array(await blob.arrayBuffer());"
        " return [blob.type, b.length, [...b.slice(1, 4)]]; })"
    )
    assert size[0] == "image/png"
    assert size[1] > 5_000
    assert bytes(size[2]) == b"PNG"


def test_a_page_that_cannot_hold_everything_says_so(visit, tmp_path):
    trace = wide_trace(40_000, tracks=6)
    one = visit(write_html(trace, tmp_path / "report.html", max_spans=5_000).as_uri())
    one.settle()
    assert "spans shorter than" in one.page.locator(".tv-status").inner_text()
    block = one.run("t.source.locate(t.source.index.row[t.source.stands.findIndex((n) => n > 1)])")
    one.run(f"t.select(t.source.locate({block['row']}))")
    one.page.wait_for_function(
        "() => /short spans, the longest/.test(document.querySelector('.tv-panel').innerText)"
    )
    assert one.errors == []


def test_no_script_still_shows_the_tables(visit, file):
    one = visit(file, java_script_enabled=False)
    assert one.page.locator("#operators tbody tr").count() == 5
    assert "needs JavaScript" in one.page.locator("noscript").first.inner_text()


@pytest.fixture(scope="module")
def session_file(tmp_path_factory):
    """The report of two hosts' ranks with hostile names, a missing rank, and a GPU on each that is there."""
    folder = tmp_path_factory.mktemp("session")
    for rank, role in ((0, "prefill"), (1, "decode")):
        events = simple_events(1 + rank)
        events.append(event(f"{role}[request={HOSTILE[0].replace(' ', '')} transfer=x1]", 0, 450))
        events.append(event(HOSTILE[0], 600, 30, "cpu_op"))
        events.append(event("gemm", 700, 200, "kernel", 9, stream=9, device=0))
        data = trace_json(events, rank=rank, world_size=3, role=role, host_name=f"node-{rank} {HOSTILE[0]}")
        write(folder / f"rank{rank}.json", data)
    session = tv.load(folder)
    session.to_html(folder / "report.html", title=HOSTILE[0])
    return (folder / "report.html").as_uri()


@pytest.fixture
def session_page(visit, session_file):
    one = visit(session_file)
    one.settle()
    yield one
    assert one.external == []
    assert one.errors == []


def test_a_session_shows_its_gaps_first_and_its_ranks_apart(session_page):
    page = session_page.page
    health = page.locator(".health.bad")
    assert "1 left nothing here: 2" in health.inner_text()
    top = health.bounding_box()["y"]
    assert top < page.locator("nav").bounding_box()["y"] < 950, "seen without scrolling"
    assert page.locator("#ranks .strips").inner_text().count("HOST") == 2
    assert page.locator("#ranks .strips").inner_text().count("GPU") == 2
    assert "not aligned" in page.locator("#timeline").inner_text()
    # each rank's first event is at 0: the clocks are of two hosts
    firsts = session_page.run(
        """(() => {
          const first = {}; const {index, info} = t.source;
          for (const track of info.tracks) for (const lane of track.lanes) {
            const rank = track.group.match(/rank \\d/)[0];
            for (let i = index.laneBegin[lane]; i < index.laneEnd[lane]; i++) {
              first[rank] = Math.min(first[rank] ?? Infinity, index.start[i]);
            }
          }
          return first;
        })()"""
    )
    assert firsts == {"rank 0": 0, "rank 1": 0}


def test_a_sessions_names_are_text_and_lead_to_the_timeline(session_page):
    page = session_page.page
    assert page.title() == HOSTILE[0]
    assert page.locator("img").count() == 0
    assert page.locator("script").count() <= 2
    assert page.evaluate("() => window.hacked") is None
    assert HOSTILE[0] in page.locator("#operators").inner_text()
    page.locator("#operators button.name", has_text="aten::addmm").first.click()
    page.wait_for_function("() => window.tvTimeline.selected?.name === 'aten::addmm'")


def test_a_sessions_links_lead_to_sections_and_recordings(session_page):
    page = session_page.page
    for link in page.locator('a[href^="#"]').all():
        target = link.get_attribute("href")[1:]
        assert page.locator(f"[id='{target}']").count() == 1, target
    address = page.locator("#ranks td.file a").first
    assert address.get_attribute("href") == "./rank0.json"
    assert address.evaluate("(a) => a.href").endswith("/rank0.json")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_sessions_page_is_readable_in_both_themes_and_at_200_percent(visit, session_file, scheme):
    """Every text has a contrast of 4.5 or more to what is behind it, and nothing hangs over the side."""
    one = visit(
        session_file, color_scheme=scheme, viewport={"width": 650, "height": 475}, device_scale_factor=2
    )
    one.settle()
    assert one.page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    faint = one.page.evaluate(
        """() => {
          const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
          const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
          const parse = (text) => text.match(/[\\d.]+/g).map(Number);
          const behind = (node) => {
            for (let at = node; at; at = at.parentElement) {
              const color = parse(getComputedStyle(at).backgroundColor);
              if (color.length === 3 || color[3] > 0.99) return color.slice(0, 3);
            }
            return [255, 255, 255];
          };
          const out = [];
          let seen = 0;
          for (const node of document.querySelectorAll("header *, main section:not(#timeline) *")) {
            const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
            if (!own || !node.getClientRects().length) continue;
            seen++;
            const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
            const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (contrast < 4.5) out.push([node.tagName, node.textContent.slice(0, 30), contrast.toFixed(2)]);
          }
          return [seen > 100, out.slice(0, 10)];
        }"""
    )
    assert faint == [True, []]


def test_what_an_element_of_the_page_says_is_shown(page, trace):
    kernels = trace.spans[trace.spans["name"] == "ampere_sgemm_128x64_tn"]
    scene = Scene.of(trace)
    request = show_request(scene, kernels.head(3))
    assert request == {"rows": scene.scene_rows(kernels.index[:3].to_numpy()).tolist()}
    page.page.evaluate(
        """(text) => {
          const button = document.createElement("button");
          button.id = "try"; button.dataset.show = text; button.textContent = "show";
          document.body.prepend(button);
        }""",
        json.dumps(request),
    )
    page.page.click("#try")
    page.page.wait_for_function(
        "() => /^3 events selected/.test(document.querySelector('.tv-panel').innerText)"
    )
    assert page.page.locator(".tv-matches").inner_text() == "3 highlighted"
    first, last = kernels["t_ns"].iloc[0], (kernels["t_ns"] + kernels["dur_ns"]).iloc[2]
    margin = max(0.08 * (last - first), 500)
    assert page.run("[t.t0, t.t1]") == pytest.approx([first - margin, last + margin])
    page.run("t.show({ names: ['gelu', 'ampere_sgemm_128x64_tn'], zoom: false })")
    page.page.wait_for_function(
        f"() => document.querySelector('.tv-panel').innerText.startsWith('{len(kernels)} events')"
    )
    page.run("t.show({ t0: 1e6, t1: 2e6 })")
    assert page.run("[t.box.t0, t.box.t1, t.t0, t.t1]") == [1e6, 2e6, 0.92e6, 2.08e6]


def test_searches_say_more_than_names_and_which_match_is_seen(page, trace):
    kernels = trace.spans[(trace.spans["kind"] == "kernel") & (trace.spans["dur_ns"] > 20_000)]
    focus(page)
    page.page.keyboard.press("/")
    page.page.keyboard.type("kind:kernel dur>20us")
    matches = page.page.locator(".tv-matches")
    page.page.wait_for_function(
        f"() => document.querySelector('.tv-matches').innerText === '{len(kernels)} matches'"
    )
    page.page.keyboard.press("Enter")
    page.page.wait_for_function(
        f"() => document.querySelector('.tv-matches').innerText === '1 of {len(kernels)}'"
    )
    first = kernels.sort_values("t_ns", kind="stable").iloc[0]
    assert page.run("t.selected.start") == first["t_ns"]
    page.page.keyboard.press("Enter")
    page.page.wait_for_function(
        f"() => document.querySelector('.tv-matches').innerText === '2 of {len(kernels)}'"
    )
    page.page.fill(".tv-search", "kind:kernle")
    page.page.wait_for_function("() => document.querySelector('.tv-search').ariaInvalid === 'true'")
    assert matches.inner_text().startswith("character 6: expected one of method, operator")
    page.page.keyboard.press("Escape")
    assert matches.inner_text() == ""


def test_backspace_goes_back_and_both_ends_of_an_arrow_fit(page):
    focus(page)
    page.run("t.setRange(1e6, 2e6)")
    page.run(f"(async () => t.select(await {of('sgemm')}))()")
    page.page.wait_for_function("() => window.tvTimeline.links.length === 1")
    row = page.run("t.selected.row")
    page.page.keyboard.press("j")
    launch = page.run("t.links[0]")
    kernel = page.run("t.selected")
    t0, t1 = launch["start"], kernel["start"] + kernel["dur"]
    margin = max(500, 0.08 * (t1 - t0))
    assert page.run("[t.t0, t.t1]") == pytest.approx([t0 - margin, t1 + margin])
    page.page.keyboard.press("Backspace")
    assert page.run("[t.t0, t.t1]") == [1e6, 2e6]
    assert page.run("t.selected?.row ?? null") == row
    page.page.keyboard.press("Backspace")
    assert page.run("t.selected") is None
    page.page.click("[aria-label^='forth']")
    page.page.wait_for_function(f"() => window.tvTimeline.selected?.row === {row}")


@pytest.mark.parametrize("width", [480, 1600])
def test_the_gpu_is_first_and_the_lanes_keep_most_of_the_width(visit, file, width):
    one = visit(file, viewport={"width": width, "height": 900})
    one.settle()
    sections = one.run("t.rows.rows.filter((row) => row.type === 'section').map((row) => row.section)")
    assert sections[:2] == ["gpu", "host"]
    assert one.run("t.rows.laneRows[0].section") == "gpu"
    assert one.run("t.rows.laneRows[0].y + t.rows.laneRows[0].height < t.height")
    inner = one.run("t.parts.scroll.clientWidth")
    assert one.run("t.width") > 0.7 * inner
    boxes = one.page.evaluate(
        """() => {
          const words = [...document.querySelectorAll(".tv-track .tv-text, .tv-role")];
          const seen = words.filter((one) => one.checkVisibility());
          const boxes = seen.map((one) => one.getBoundingClientRect());
          return boxes.map((box) => [box.left, box.right, box.top, box.bottom]);
        }"""
    )
    for at, (left, right, top, bottom) in enumerate(boxes):
        for other_left, other_right, other_top, other_bottom in boxes[:at]:
            apart = (
                left >= other_right
                or right <= other_left
                or top >= other_bottom - 3
                or bottom <= other_top + 3
            )
            assert apart, "a badge covers a label"
    one.page.select_option(".tv-select", "kind")
    one.settle()
    assert {"kernel", "operator"} <= set(one.page.locator(".tv-colours button").all_inner_texts())
    one.page.locator(".tv-colours button", has_text="kernel").click()
    assert one.page.locator(".tv-search").input_value() == "kind:kernel domain:gpu"


def test_a_kernel_tells_how_it_came_about(page, trace):
    focus(page)
    page.run(f"(async () => t.select(await {of('sgemm')}))()")
    page.page.wait_for_selector(".tv-story")
    kernel = trace.spans.loc[page.run("t.selected.row")]
    launch = trace.spans[
        (trace.spans["correlation"] == kernel["correlation"]) & (trace.spans["kind"] == "runtime")
    ]
    earlier = (kernel["start_ns"] - launch["start_ns"].iloc[0]) / 1000
    story = page.page.locator(".tv-story").inner_text()
    assert f"launched {earlier:.4g} µs earlier" in story
    assert " › cudaLaunchKernel › kernel" in story
    page.page.locator(".tv-story button", has_text="cudaLaunchKernel").click()
    page.page.wait_for_function(f"() => window.tvTimeline.selected?.row === {launch.index[0]}")


def test_nothing_before_the_trace_has_a_label(page):
    page.run("t.setRange(-5e5, 5e5)")
    assert page.run("[t.t0, t.t1]") == pytest.approx([-0.03e6, 0.97e6])


@pytest.mark.parametrize("width", [480, 1000])
def test_the_verdict_leads_to_its_spans_and_tables(visit, file, width):
    one = visit(file, viewport={"width": width, "height": 900})
    one.settle()
    verdict = one.page.locator("#verdict")
    inside = verdict.evaluate(
        "(section) => [...section.querySelectorAll('*')].every((e) => {"
        " const r = e.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth + 1; })"
    )
    assert inside
    for row in verdict.locator("li").all():
        act, head = row.locator(".act").bounding_box(), row.locator("b").first.bounding_box()
        assert width < 560 or head["x"] + head["width"] <= act["x"] + 1, "the buttons lie on the words"
    verdict.locator("[data-show]").first.click()
    one.page.wait_for_function("() => tvTimeline.t0 > 0 || tvTimeline.t1 < tvTimeline.source.info.length")
    one.page.locator(".tv-head", has_text="selected").wait_for()
    frame = verdict.locator("[data-copy]").first
    expression = frame.get_attribute("data-copy")
    frame.click()
    assert verdict.locator("li code").first.inner_text() == expression
    assert one.errors == []
