"""The timeline at size: index, views, search, and what a browser needs to show them; peers beside it.

    python benchmarks/timeline.py                          # the kernel's side, ten million spans
    python benchmarks/timeline.py --browser                # and a real JupyterLab in headless Chromium
    python benchmarks/timeline.py --browser --peers        # and plotly bars and a trace-event JSON page

CPU seconds are user plus system of this process; times per request are medians over the runs. In the browser
(software rendering) an interaction is timed from the change of the range until the sharp picture is drawn;
"repaint" is the drawing alone. Heap figures are the JavaScript heap after a collection, array buffers
included, less what the page had before. All spans are synthetic (tests/support/timeline_traces.py): three
quarters of the tracks are threads whose spans nest eightfold, one quarter are GPU streams with overlaps.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

ZOOMS = (1.0, 0.1, 1e-3, 1e-5)
WIDTH = 1500
SCREEN_LANES = 40


def cpu() -> float:
    usage = os.times()
    return usage.user + usage.system


def line(what: str, value: str) -> None:
    print(f"  {what:<58} {value}", flush=True)


def milliseconds(values: list[float]) -> str:
    return f"{statistics.median(values):8.2f} ms   (most {max(values):.2f})"


def kernel_side(spans: int, tracks: int, runs: int) -> None:
    from timeline_traces import wide_columns

    from torchtrt_viz._native import native

    track, start, dur, name, gpu = wide_columns(spans, tracks, 0)
    columns = (track, start, dur, name.astype(np.int32), gpu.astype(np.uint8))
    costs = []
    for _ in range(3):
        begin = cpu()
        index = native("columns").TimelineIndex(*columns)
        costs.append(cpu() - begin)
    print(f"kernel: {len(track):,} spans on {tracks} tracks")
    line(
        "index, CPU s", f"{statistics.median(costs):8.2f} s    ({index.nbytes / len(track):.0f} bytes a span)"
    )
    _, _, kind, *_ = index.lanes()
    lanes = np.flatnonzero(kind == 0).astype(np.int32)
    first, last = index.bounds
    length = last - first
    for zoom in ZOOMS:
        times, sizes = [], []
        for run in range(runs):
            t0 = int(first + length * (1 - zoom) * (0.1 + 0.8 * run / runs))
            t1 = t0 + max(WIDTH, int(length * zoom))
            shown = lanes[(run * 7) % max(1, len(lanes) - SCREEN_LANES) :][:SCREEN_LANES].copy()
            begin = time.perf_counter()
            view = index.view(t0, t1, WIDTH, shown, WIDTH // 4, (t1 - t0) // WIDTH * 24)
            times.append((time.perf_counter() - begin) * 1e3)
            sizes.append(sum(array.nbytes for array in view.values()))
        line(f"view of 1/{1 / zoom:g} of the length, {SCREEN_LANES} lanes x {WIDTH} px", milliseconds(times))
        line("    answer", f"{statistics.median(sizes) / 1e3:8.1f} kB")
    whole = []
    for _ in range(runs):
        begin = time.perf_counter()
        index.view(first, last, WIDTH, lanes, WIDTH // 4)
        whole.append((time.perf_counter() - begin) * 1e3)
    line(f"view of everything, all {len(lanes)} lanes", milliseconds(whole))
    mask = np.zeros(2000, np.uint8)
    mask[1999] = 1
    count, step = [], []
    for _ in range(runs):
        begin = time.perf_counter()
        index.count_marked(mask)
        count.append((time.perf_counter() - begin) * 1e3)
        begin = time.perf_counter()
        index.next_marked(lanes, first + length // 2, -1, True, np.zeros(2000, np.uint8))
        step.append((time.perf_counter() - begin) * 1e3)
    line("search: count the matches of a name", milliseconds(count))
    line("search: next match, worst case (there is none)", milliseconds(step))
    totals = []
    for _ in range(runs):
        begin = time.perf_counter()
        index.totals(first, last, lanes)
        totals.append((time.perf_counter() - begin) * 1e3)
    line("box over everything: totals by name", milliseconds(totals))


INTERACT = """async ([zooms, runs]) => {
  const t = document.querySelector('.tv-root').timeline;
  const out = [];
  const sharp = (range) => {
    const v = t.view;
    return !t.fetching && !t.scheduled && v.t0 <= range[0] && v.t1 >= range[1]
      && Math.abs((v.t1 - v.t0) / v.width / ((range[1] - range[0]) / t.width) - 1) < 0.01;
  };
  for (const zoom of zooms) for (let run = 0; run < runs; run++) {
    const t0 = t.length * (1 - zoom) * (0.1 + 0.8 * run / runs);
    const range = [t0, t0 + t.length * zoom];
    const began = performance.now();
    t.setRange(...range);
    await new Promise((done) => { const look = () => sharp(range) ? done() : setTimeout(look, 1); look(); });
    out.push([zoom, performance.now() - began, t.lastDraw, t.lastLatency, t.source.wire.traffic]);
  }
  return out;
}"""
SEARCH = """async (runs) => {
  const t = document.querySelector('.tv-root').timeline;
  const out = [];
  for (let run = 0; run < runs; run++) {
    const began = performance.now();
    await t.search(`operation_${run * 37 + 11}`);
    await t.stepMatch(true);
    out.push(performance.now() - began);
  }
  return out;
}"""


def heap(page) -> float:
    """JavaScript heap and array buffers after a collection, in MB."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return (usage["usedSize"] + usage.get("backingStorageSize", 0)) / 1e6


def browser_side(spans: int, tracks: int, runs: int) -> None:
    from browser_lab import FLAGS, KERNEL_READY, Lab, Visit
    from playwright.sync_api import sync_playwright

    folder = Path(tempfile.mkdtemp(prefix="timeline-benchmark-"))
    lab = Lab(folder)
    try:
        paths = [str(ROOT), str(ROOT / "tests" / "support")]
        url = lab.write(
            "timeline.ipynb",
            [
                f"import os, sys, time; sys.path[:0] = {paths!r}\nfrom timeline_traces import wide_trace\n"
                f"trace = wide_trace({spans}, {tracks})\nwidget = trace.timeline(height=640)",
                "widget",
            ],
        )
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
            visit = Visit(chromium, folder, viewport={"width": 1900, "height": 1100})
            page = visit.page
            page.set_default_timeout(180_000)
            page.goto(url)
            page.wait_for_selector(".jp-Notebook")
            page.wait_for_function(KERNEL_READY)
            run_cell = "() => { window.jupyterapp.commands.execute('notebook:run-cell-and-select-next'); }"
            page.click(".jp-Notebook .jp-Cell >> nth=0 >> .cm-content")
            page.evaluate(run_cell)
            page.wait_for_function("() => document.querySelector('.jp-InputPrompt').textContent === '[1]:'")
            page.wait_for_timeout(1_500)
            before = heap(page)
            began = time.perf_counter()
            page.evaluate(run_cell)
            visit.settle()
            first = time.perf_counter() - began
            print(f"browser: JupyterLab, Chromium {chromium.version}, software rendering")
            line("first picture, from running the cell", f"{first * 1e3:8.0f} ms")
            rows = page.evaluate(INTERACT, [list(ZOOMS), runs])
            for zoom in ZOOMS:
                some = [row for row in rows if row[0] == zoom]
                line(
                    f"zoom to 1/{1 / zoom:g}: until the sharp picture", milliseconds([row[1] for row in some])
                )
                line("    repaint", milliseconds([row[2] for row in some]))
                line(
                    "    answer of the kernel, with both ways",
                    milliseconds([row[3] for row in some if row[3]]),
                )
                line("    traffic", f"{max(row[4] for row in some) / 1e3:8.1f} kB")
            line("search and step to a match", milliseconds(page.evaluate(SEARCH, runs)))
            line("browser memory for the widget", f"{heap(page) - before:8.1f} MB")
            chromium.close()
    finally:
        lab.stop()


ZOOM_PLOTLY = """async (runs) => {
  const plot = document.querySelector('.js-plotly-plot');
  const out = [];
  const [a, b] = plot._fullLayout.xaxis.range;
  for (let run = 0; run < runs; run++) {
    const began = performance.now();
    const from = a + (b - a) * (0.1 + 0.2 * run);
    await Plotly.relayout(plot, {'xaxis.range': [from, from + (b - a) * 0.1]});
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    out.push(performance.now() - began);
  }
  return out;
}"""


def peers(counts: list[int]) -> None:
    from browser_lab import FLAGS, Visit
    from playwright.sync_api import sync_playwright
    from timeline_traces import wide_columns

    folder = Path(tempfile.mkdtemp(prefix="timeline-peers-"))
    print("peers")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for count in counts:
            track, start, dur, *_ = wide_columns(count, 16, 0)
            _plotly_bars(Visit(chromium, folder).page, folder, track, start, dur)
        track, start, dur, name, _ = wide_columns(1_000_000, 64, 0)
        _trace_events(Visit(chromium, folder).page, folder, track, start, dur, name)
        chromium.close()
    try:
        import plotly_resampler  # noqa: F401
    except ImportError:
        line("plotly-resampler", "not installed: it needs plotly < 7, and thins points of lines, not spans")


def _plotly_bars(page, folder, track, start, dur) -> None:
    try:
        import plotly.graph_objects as go
    except ImportError:
        line("plotly", "not installed")
        return
    page.set_default_timeout(240_000)
    begin = cpu()
    figure = go.Figure(go.Bar(orientation="h", base=start, x=dur, y=track.astype(str)))
    file = folder / "bars.html"
    figure.write_html(file, include_plotlyjs=True)
    cost = cpu() - begin
    began = time.perf_counter()
    page.goto(file.as_uri())
    page.wait_for_function("() => document.querySelectorAll('.bars .point').length > 0")
    first = time.perf_counter() - began
    zooms = page.evaluate(ZOOM_PLOTLY, 3)
    line(f"plotly bars, {len(track):,} spans: CPU s in Python", f"{cost:8.2f} s")
    line("    first picture", f"{first * 1e3:8.0f} ms")
    line("    zoom", milliseconds(zooms))
    line("    browser memory", f"{heap(page):8.1f} MB")


def _trace_events(page, folder, track, start, dur, name) -> None:
    """What a viewer of trace-event JSON has to do before it can show anything: parse it."""
    file = folder / "trace.json"
    begin = cpu()
    with file.open("w") as out:
        out.write('{"traceEvents":[\n')
        rows = zip(track.tolist(), start.tolist(), dur.tolist(), name.tolist(), strict=True)
        out.write(
            ",\n".join(
                f'{{"ph":"X","pid":1,"tid":{t},"ts":{s / 1000},"dur":{d / 1000},"name":"operation_{n}"}}'
                for t, s, d, n in rows
            )
        )
        out.write("\n]}\n")
    cost = cpu() - begin
    page_file = folder / "parse.html"
    page_file.write_text("<input type=file id=file>")
    page.goto(page_file.as_uri())
    page.set_default_timeout(240_000)
    page.set_input_files("#file", file)
    took = page.evaluate(
        """async () => {
          const file = document.getElementById('file').files[0];
          const began = performance.now();
          window.trace = JSON.parse(await file.text());
          return [performance.now() - began, window.trace.traceEvents.length];
        }"""
    )
    line(
        f"trace-event JSON, {took[1]:,} spans: CPU s to write",
        f"{cost:8.2f} s ({file.stat().st_size / 1e6:.0f} MB)",
    )
    line("    parse in the browser, before any drawing", f"{took[0]:8.0f} ms")
    line("    browser memory", f"{heap(page):8.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spans", type=int, default=10_000_000)
    parser.add_argument("--tracks", type=int, default=64)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--browser", action="store_true", help="measure in JupyterLab as well")
    parser.add_argument("--peers", action="store_true", help="measure plotly bars and a JSON page as well")
    parser.add_argument("--peer-bars", type=int, nargs="*", default=[10_000], help="spans for plotly bars")
    options = parser.parse_args()
    print(
        json.dumps(
            {"machine": platform.machine(), "cpus": os.cpu_count(), "python": platform.python_version()}
        )
    )
    kernel_side(options.spans, options.tracks, options.runs)
    if options.browser:
        browser_side(options.spans, options.tracks, options.runs)
    if options.peers:
        peers(options.peer_bars)


if __name__ == "__main__":
    main()
