"""What an interaction costs the browser's main thread, with few and with very many spans, in one run.

    python benchmarks/timeline_latency.py                      # ten thousand, a million, ten million spans
    python benchmarks/timeline_latency.py --spans 10000

A JupyterLab of its own shows a timeline per size in headless Chromium (software rendering). Zoom and pan are
keys, the search is typed and stepped through, the box is drawn with the mouse over half of the lanes, twenty
moves of it. Chromium's own trace says what the main thread of the page did: CPU time of all its tasks, in ms
an interaction, and the longest single task. CPU time and not wall time, so that other work on the machine
changes little. Spans up to the timeline's ``whole_limit`` are held by the browser, more are asked of the
kernel. All spans are synthetic (tests/support/timeline_traces.py).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

SEARCHES = ("operation_11", "dur>2us name~operation_1[0-9]", "kind:kernel or depth:3")
CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
CLEAR = "t.search('').then(() => t.select(null)).then(() => t.fitAll())"
FOUND = "() => / of /.test(document.querySelector('.tv-matches').textContent)"
SHOWN = "() => !document.querySelector('.tv-panel').hidden"
DONE = """() => {
  const t = document.querySelector('.tv-root').timeline;
  return !t.fetching && !t.scheduled;
}"""


class Tracer:
    """Chromium's trace of what the page's main thread does."""

    def __init__(self, page) -> None:
        self.session = page.context.new_cdp_session(page)
        self.events: list[dict] = []
        self.ended = False
        self.session.on("Tracing.dataCollected", lambda found: self.events.extend(found["value"]))
        self.session.on("Tracing.tracingComplete", lambda _: setattr(self, "ended", True))

    def cost(self, page, act, times: int) -> tuple[float, float]:
        """Return the CPU time of one of ``times`` interactions, and that of the longest task, in ms."""
        self.events.clear()
        self.ended = False
        config = {"includedCategories": CATEGORIES}
        self.session.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": config})
        act()
        page.wait_for_function(DONE, polling=50)
        self.session.send("Tracing.end")
        while not self.ended:
            page.wait_for_timeout(20)
        main = {
            (event["pid"], event["tid"])
            for event in self.events
            if event["name"] == "thread_name" and event["args"].get("name") == "CrRendererMain"
        }
        tasks = [
            event["tdur"] / 1e3
            for event in self.events
            if event["name"].endswith("RunTask") and (event["pid"], event["tid"]) in main and "tdur" in event
        ]
        return sum(tasks) / times, max(tasks, default=0.0)


def interactions(page) -> dict[str, tuple[object, int]]:
    """Return what is done, and how often, by name."""
    keyboard, mouse = page.keyboard, page.mouse
    box = page.locator(".tv-lanes").bounding_box()

    def keys(*names: str):
        def act() -> None:
            page.locator(".tv-root").focus()
            for name in names:
                keyboard.press(name)
                page.wait_for_function(DONE, polling=50)

        return act

    def search(text: str):
        def act() -> None:
            page.locator(".tv-search").fill(text)
            keyboard.press("Enter")
            page.wait_for_function(FOUND, polling=50)

        return act

    def drag() -> None:
        mouse.move(box["x"] + 20, box["y"] + 40)
        mouse.down()
        mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.5, steps=20)
        mouse.up()
        page.wait_for_function(SHOWN, polling=50)

    found: dict[str, tuple[object, int]] = {
        "zoom": (keys(*"wwwwssss"), 8),
        "pan": (keys(*"wwddaadd0"), 9),
        "box: a move of it": (drag, 20),
    }
    for text in SEARCHES:
        found[f"search {text}, to the match"] = (search(text), 1)
    return found


def main() -> None:
    from browser_lab import FLAGS, KERNEL_READY, Lab, Visit
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spans", type=int, nargs="*", default=[10_000, 1_000_000, 10_000_000])
    parser.add_argument("--tracks", type=int, default=64)
    options = parser.parse_args()
    machine = {"machine": platform.machine(), "cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    print(json.dumps({**machine, "python": platform.python_version()}), flush=True)
    folder = Path(tempfile.mkdtemp(prefix="timeline-latency-"))
    lab = Lab(folder)
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
            for spans in options.spans:
                paths = [str(ROOT), str(ROOT / "tests" / "support")]
                cell = (
                    f"import sys; sys.path[:0] = {paths!r}\nfrom timeline_traces import wide_trace\n"
                    f"widget = wide_trace({spans}, {options.tracks}).timeline(height=480)\nwidget"
                )
                visit = Visit(chromium, folder, viewport={"width": 1600, "height": 1000})
                page = visit.page
                page.set_default_timeout(300_000)
                page.goto(lab.write(f"spans{spans}.ipynb", [cell]))
                page.wait_for_selector(".jp-Notebook")
                page.wait_for_function(KERNEL_READY)
                page.click(".jp-Notebook .jp-Cell >> nth=0 >> .cm-content")
                page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
                visit.settle()
                page.wait_for_timeout(1_500)
                where = "browser" if visit.run("t.source.whole") else "kernel"
                print(f"{spans:,} spans, held by the {where}: main thread, CPU ms (and its longest task)")
                tracer = Tracer(page)
                for name, (act, times) in interactions(page).items():
                    act()  # once to warm up
                    visit.run(CLEAR)
                    visit.settle()
                    cost, longest = tracer.cost(page, act, times)
                    visit.run(CLEAR)
                    print(f"  {name:<52} {cost:7.1f} ({longest:.1f})", flush=True)
                page.evaluate(
                    "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.shutdown(); }"
                )
                visit.context.close()
            chromium.close()
    finally:
        lab.stop()


if __name__ == "__main__":
    main()
