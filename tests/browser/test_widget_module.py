"""The widget as any host of anywidget modules sees it: VS Code, Colab and marimo bring no JupyterLab."""

from __future__ import annotations

import base64
import json

import pytest
from timeline_traces import model_trace

from torchtrt_viz.report.static_html import scene_html
from torchtrt_viz.scene import assets
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.scene.service import Service

HOST = """
<!doctype html><body class="vscode-dark" data-vscode-theme-kind="vscode-dark"><div id="cell"></div>
<script type="module">
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
// The least that the anywidget specification promises: get, set, save_changes, on, off, send.
class Model {
  values = { view_range: [], selected: {}, arrangement: {}, search: "", marks: {}, color_by: "name", theme: "auto", height: 420 };
  listeners = [];
  saved = 0;
  get(key) { return this.values[key]; }
  set(key, value) { this.values[key] = value; for (const [name, call] of [...this.listeners]) if (name === `change:${key}`) call(); }
  save_changes() { this.saved++; }
  on(name, call) { this.listeners.push([name, call]); }
  off(name, call) { this.listeners = this.listeners.filter(([n, c]) => n !== name || (call && c !== call)); }
  async send(content) {
    const [answer, buffers] = await window.kernel(content);
    // Buffers come as DataViews at odd offsets, as they do over a websocket.
    const views = buffers.map(bytes).map((b) => { const w = new Uint8Array(b.length + 1); w.set(b, 1); return new DataView(w.buffer, 1); });
    for (const [name, call] of [...this.listeners]) if (name === "msg:custom") call({ ...answer, reply: content.id }, views);
  }
}
const module = await import(URL.createObjectURL(new Blob([window.esm], { type: "text/javascript" })));
window.model = new Model();
const el = document.getElementById("cell");
window.close = await module.default.render({ model: window.model, el });
</script>
"""  # noqa: E501


@pytest.fixture(params=["whole", "kernel"])
def hosted(request, chromium, visit, tmp_path):
    service = Service(Scene.of(model_trace()), 300_000 if request.param == "whole" else 0)

    def kernel(content):
        answer, buffers = service.answer(content)
        json.dumps(answer, allow_nan=False)
        return answer, [base64.b64encode(buffer).decode() for buffer in buffers]

    blank = tmp_path / "blank.html"
    blank.write_text("")
    one = visit(blank.as_uri())
    one.page.expose_function("kernel", kernel)
    one.page.add_init_script(f"window.esm = {json.dumps(assets.module('widget'))};")
    file = tmp_path / "host.html"
    file.write_text(f"<style>{assets.style('timeline')}</style>{HOST}")
    one.page.goto(file.as_uri())
    one.settle()
    return one


def test_it_needs_nothing_of_a_lab(hosted):
    assert hosted.run("t.theme.dark") is True, "the host is VS Code's dark theme"
    hosted.page.locator(".tv-search").fill("gelu")
    hosted.page.keyboard.press("Enter")
    hosted.page.wait_for_function(
        "() => /gelu/.test(document.querySelector('.tv-root').timeline.selected?.name)"
    )
    hosted.page.wait_for_function("() => !document.querySelector('.tv-panel').hidden")
    assert hosted.page.evaluate("() => model.values.search") == "gelu"
    assert hosted.page.evaluate("() => model.values.selected.kind") == "span"
    hosted.page.evaluate("() => model.set('view_range', [100000, 200000])")
    hosted.settle()
    assert hosted.run("[Math.round(t.t0), Math.round(t.t1)]") == [100_000, 200_000]
    assert hosted.errors == []
    assert hosted.external == []


#: what somebody may have put into the widget's state in a saved notebook
FORGED = (
    "<div onclick='window.hacked=1' style='background:url(http://example.invalid/x)'>text of a forged form"
    "</div>"
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked=1'><iframe srcdoc='x'></iframe>"
    "<svg onload='window.hacked=1'></svg><a href='javascript:window.hacked=1'>a</a>"
    "<style>*{display:none}</style>"
)


@pytest.mark.parametrize("send", ["() => {}", "() => { throw new Error('no comm'); }"])
def test_without_a_kernel_it_shows_the_static_picture(visit, tmp_path, send):
    still = scene_html(Scene.of(model_trace(hostile=True))) + FORGED
    prelude = (
        f"window.esm = {json.dumps(assets.module('widget'))}; window.still = {json.dumps(still)};"
        f"window.kernel = () => new Promise(() => {{}}); window.send = {send};"
    )
    blank = tmp_path / "blank.html"
    blank.write_text("")
    one = visit(blank.as_uri())
    one.page.add_init_script(prelude)
    file = tmp_path / "host.html"
    file.write_text(
        HOST.replace("height: 420 }", "height: 420, still: window.still }").replace(
            "async send(content) {", "send(content) { return window.send(); }\n  async unused(content) {"
        )
    )
    one.page.goto(file.as_uri())
    one.page.wait_for_selector(".tv-still >> text=stream 7")
    assert one.page.locator(".tv-still div[style*='background']").count() > 20
    assert "SYNTHETIC DATA" in one.page.locator(".tv-still").inner_text()
    assert one.page.evaluate("() => window.hacked") is None
    kinds = "() => [...document.querySelectorAll('.tv-still *')].map((e) => e.nodeName)"
    assert set(one.page.evaluate(kinds)) <= {"DIV", "SPAN", "B"}
    attributes = "() => [...document.querySelectorAll('.tv-still *')].flatMap((e) => e.getAttributeNames())"
    assert set(one.page.evaluate(attributes)) == {"style"}
    assert "url" not in one.page.evaluate("() => document.querySelector('.tv-still').outerHTML")
    assert "text of a forged form" in one.page.locator(".tv-still").inner_text()
    assert one.external == []
    assert one.errors == []


def test_it_leaves_nothing_behind(hosted):
    assert hosted.page.evaluate("() => model.listeners.length") > 5
    hosted.page.evaluate("() => window.close()")
    assert hosted.page.evaluate("() => model.listeners.length") == 0
    assert hosted.errors == []
