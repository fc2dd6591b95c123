"""The timeline at size: index, views, search, and what a browser needs to show them; peers beside it.

    python benchmarks/timeline.py                          # the kernel's side, ten million spans
    python benchmarks/timeline.py --browser                # and a real JupyterLab in headless Chromium
    python benchmarks/timeline.py --browser --nodelay      # with a notebook server that does not wait
    python benchmarks/timeline.py --peers --resampler-python V/bin/python
                                                           # plotly bars, plotly-resampler, trace-event JSON

CPU seconds are user plus system of this process; times per request are medians over the runs. In the browser
(software rendering) an interaction is timed from the change of the range until the sharp picture is drawn (a
coarser one is drawn in the next frame); "repaint" is the drawing alone.

Interactions are timed twice: one at a time, as with a key pressed now and then, and back to back, as with a
key held down. Back to back, 40 ms of every answer are the notebook server's: jupyter_server leaves Nagle's
algorithm on for its websocket, so the answer waits until the browser has acknowledged the "busy" before it.
``--nodelay`` measures a server without that (its lines may stand in anyone's jupyter_server_config.py).

Heap figures are the JavaScript heap after a collection, array buffers
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
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support"), str(ROOT / "benchmarks")]

from timeline_peers import cpu, heap, milliseconds, peers  # noqa: E402

ZOOMS = (1.0, 0.1, 1e-3, 1e-5)
WIDTH = 1500
SCREEN_LANES = 40


def line(what: str, value: str) -> None:
    print(f"  {what:<58} {value}", flush=True)


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
    whole, spent = [], []
    for _ in range(runs):
        begin, used = time.perf_counter(), time.process_time()
        index.view(first, last, WIDTH, lanes, WIDTH // 4)
        whole.append((time.perf_counter() - begin) * 1e3)
        spent.append((time.process_time() - used) * 1e3)
    line(f"view of everything, all {len(lanes)} lanes", milliseconds(whole))
    line("    CPU time of its threads", milliseconds(spent))
    _search(columns, index, lanes, runs)
    totals = []
    for _ in range(runs):
        begin = time.perf_counter()
        index.totals(first, last, lanes)
        totals.append((time.perf_counter() - begin) * 1e3)
    line("box over everything: totals by name", milliseconds(totals))


def _search(columns, index, lanes, runs: int) -> None:
    """What the kernel does for a text that is typed, and for a step to its next match."""
    from torchtrt_viz._native import native

    first, last = index.bounds
    texts = [f"operation_{i}".encode() for i in range(2000)]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    count, step, rare, shown = [], [], [], []
    for run in range(runs):
        begin = time.perf_counter()
        mask = native("columns").names_with(b"".join(texts), offsets, f"operation_{run * 37 + 11}".encode())
        index.name_counts[mask != 0].sum()
        count.append((time.perf_counter() - begin) * 1e3)
        begin = time.perf_counter()
        index.next_marked(lanes, first + (last - first) // 2, -1, True, mask)
        step.append((time.perf_counter() - begin) * 1e3)
        begin = time.perf_counter()
        index.next_marked(lanes, first, -1, True, np.zeros(2000, np.uint8))
        rare.append((time.perf_counter() - begin) * 1e3)
        some = lanes[(run * 7) % max(1, len(lanes) - SCREEN_LANES) :][:SCREEN_LANES].copy()
        begin = time.perf_counter()
        index.view(first, last, WIDTH, some, WIDTH // 4, (last - first) // WIDTH * 24, mask)
        shown.append((time.perf_counter() - begin) * 1e3)
    line("search: match the names, count the spans", milliseconds(count))
    line("search: step to the next match", milliseconds(step))
    line("search: step, worst case (no span is marked)", milliseconds(rare))
    line(f"search: view of everything with marks, {SCREEN_LANES} lanes", milliseconds(shown))
    begin = time.perf_counter()
    texts = [b"a name as long as those of kernels are, number %d of a million" % i for i in range(1_000_000)]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    joined = b"".join(texts)
    many = []
    for run in range(runs):
        begin = time.perf_counter()
        native("columns").names_with(joined, offsets, b"number %d7" % run)
        many.append((time.perf_counter() - begin) * 1e3)
    line("search: match among a million different names", milliseconds(many))


INTERACT = """async ([zooms, runs, pause]) => {
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
    await new Promise((done) => setTimeout(done, pause));
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
    await t.select(null);
    t.setRange(0, t.length);
    await new Promise((done) => setTimeout(done, 300));
    const began = performance.now();
    t.parts.search.value = `operation_${run * 37 + 11}`; // and Enter
    await t.stepMatch(true, true);
    if (!t.selected || t.parts.panel.hidden) throw new Error('no match is shown');
    out.push([performance.now() - began, t.lastDraw]);
  }
  return out;
}"""
NODELAY = """from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
_open = KernelWebsocketHandler.open
async def open_(self, *args, **options):
    await _open(self, *args, **options)
    self.set_nodelay(True)
KernelWebsocketHandler.open = open_
"""


def browser_side(spans: int, tracks: int, runs: int, nodelay: bool) -> None:
    from browser_lab import FLAGS, KERNEL_READY, Lab, Visit
    from playwright.sync_api import sync_playwright

    folder = Path(tempfile.mkdtemp(prefix="timeline-benchmark-"))
    if nodelay:
        (folder / "config").mkdir()
        (folder / "config" / "jupyter_server_config.py").write_text(NODELAY)
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
            for how, pause in (("one at a time", 300), ("back to back", 0)):
                print(f"  -- {how}{', server without delay' if nodelay else ''}")
                _interactions(page.evaluate(INTERACT, [list(ZOOMS), runs, pause]))
            found = page.evaluate(SEARCH, runs)
            line("search: from Enter to the match with its details", milliseconds([row[0] for row in found]))
            line("    repaint", milliseconds([row[1] for row in found]))
            line("browser memory for the widget", f"{heap(page) - before:8.1f} MB")
            chromium.close()
    finally:
        lab.stop()


def _interactions(rows: list[list[float]]) -> None:
    for zoom in ZOOMS:
        some = [row for row in rows if row[0] == zoom]
        line(f"zoom to 1/{1 / zoom:g}: until the sharp picture", milliseconds([row[1] for row in some]))
        line("    repaint", milliseconds([row[2] for row in some]))
        line("    answer of the kernel, with both ways", milliseconds([row[3] for row in some if row[3]]))
        line("    traffic", f"{max(row[4] for row in some) / 1e3:8.1f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spans", type=int, default=10_000_000)
    parser.add_argument("--tracks", type=int, default=64)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--browser", action="store_true", help="measure in JupyterLab as well")
    parser.add_argument("--nodelay", action="store_true", help="let the notebook server send at once")
    parser.add_argument("--peers", action="store_true", help="measure what else draws traces as well")
    parser.add_argument("--peers-only", action="store_true", help="measure only those")
    parser.add_argument("--peer-bars", type=int, nargs="*", default=[10_000], help="spans for plotly bars")
    parser.add_argument("--peer-spans", type=int, default=1_000_000, help="spans for the other peers")
    parser.add_argument("--resampler-python", help="a Python that has plotly<7 and plotly-resampler")
    options = parser.parse_args()
    print(
        json.dumps(
            {"machine": platform.machine(), "cpus": os.cpu_count(), "python": platform.python_version()}
        )
    )
    if not options.peers_only:
        kernel_side(options.spans, options.tracks, options.runs)
    if options.browser:
        browser_side(options.spans, options.tracks, options.runs, options.nodelay)
    if options.peers or options.peers_only:
        print("peers")
        peers(line, options.peer_bars, options.peer_spans, options.resampler_python)


if __name__ == "__main__":
    main()
