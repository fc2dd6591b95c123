"""A page with a million spans, opened from disk: nothing merged, and zoom, hover and search answer.

``pytest -m slow -s tests/browser/test_report_million.py`` runs the large one and prints what it took.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import pytest
from timeline_traces import wide_trace

from torchtrt_viz.report.html import write_html

MEASURE = """async () => {
  const t = window.tvTimeline;
  const took = async (act) => {
    const began = performance.now();
    await act();
    t.drawNow();
    return performance.now() - began;
  };
  const out = { zoom: [], hover: [], search: [], step: [] };
  for (const zoom of [1, 0.1, 0.01, 1e-3, 1e-5]) for (let run = 0; run < 5; run++) {
    const t0 = t.length * (1 - zoom) * (0.1 + 0.8 * run / 5);
    out.zoom.push(await took(() => t.setRange(t0, t0 + t.length * zoom)));
  }
  t.setRange(0, t.length);
  t.drawNow();
  for (let run = 0; run < 15; run++) {
    out.hover.push(await took(() => t.hoverAt({ x: (t.width * (run + 0.5)) / 15, y: 40 })));
  }
  for (let run = 0; run < 7; run++) {
    out.search.push(await took(() => t.search(`operation_${run * 37 + 11}`)));
    out.step.push(await took(() => t.stepMatch(true)));
    await t.select(null);
    t.setRange(0, t.length);
  }
  return out;
}"""


@pytest.mark.parametrize("spans", [60_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_everything_is_there_and_answers(visit, tmp_path, spans):
    trace = wide_trace(spans, tracks=64)
    file = write_html(trace, tmp_path / "report.html")
    began = time.perf_counter()
    one = visit(file.as_uri())
    one.settle()
    opened = time.perf_counter() - began
    assert one.run("t.info.events") == len(trace.spans) > 0.99 * spans
    assert one.run("t.info.left_out") == ""
    assert one.run("t.source.stands") is None, "no span stands for several"

    # Every duration is in the page, whatever lane it is on.
    total = one.run(
        "t.source.drawnLanes.reduce((sum, lane) => sum"
        " + t.source.index.before[t.source.index.laneEnd[lane]]"
        " - t.source.index.before[t.source.index.laneBegin[lane]], 0)"
    )
    assert total == trace.spans["dur_ns"].sum()

    name = "operation_7"
    expected = trace.spans[trace.spans["name"].astype(str).str.contains(name)]
    one.run(f"t.search('{name}')")
    one.page.wait_for_function(
        f"() => document.querySelector('.tv-matches').innerText === '{len(expected):,} matches'"
    )
    one.run("t.stepMatch(true)")
    first = one.run("t.selected")
    starts = expected["start_ns"] - int(trace.spans["start_ns"].min())
    visible = starts[starts >= -0.01 * (trace.spans["start_ns"] + trace.spans["dur_ns"]).max()]
    assert first["start"] == visible.min()
    assert name in first["name"]
    # What lies under the pointer is named, on the first lane (its track is not collapsed).
    one.run("t.select(null)")
    one.run("t.select(t.source.hit(t.rows.laneRows[0].lane, t.length / 2, t.length))")
    one.run("t.fit()")
    one.settle()
    under = one.run("t.selected")
    one.page.locator(".tv-scroll").evaluate("(e) => { e.scrollTop = 0; }")
    one.page.mouse.move(*one.rectangle("t.selected"))
    one.page.wait_for_function(
        f"() => document.querySelector('.tv-tooltip').innerText.startsWith('{under['name']}')"
    )
    one.run("t.select(null)")

    found = one.page.evaluate(MEASURE)
    session = one.page.context.new_cdp_session(one.page)
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    heap = (usage["usedSize"] + usage.get("backingStorageSize", 0)) / 1e6
    medians = {what: statistics.median(values) for what, values in found.items()}
    print(
        f"\n{len(trace.spans):,} spans: file {file.stat().st_size / 1e6:.1f} MB, opened in {opened:.1f} s, "
        f"heap {heap:.0f} MB, medians in ms: "
        + ", ".join(f"{what} {value:.1f} (most {max(found[what]):.1f})" for what, value in medians.items())
    )
    assert np.isfinite(list(medians.values())).all()
    assert heap < 200
    assert file.stat().st_size < 40 * max(spans, 100_000)
    assert one.errors == []
    assert one.external == []
