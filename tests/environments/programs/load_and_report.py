"""Load a trace of every kind that the repository holds, and write pages that open offline."""

from __future__ import annotations

import sys
from pathlib import Path

import torchtrt_viz as tv

ROOT, OUTPUT = Path(sys.argv[1]), Path(sys.argv[2])
SAMPLES = {
    "kineto": "eager.pt.trace.json",
    "etdump": "demo_capture/demo.etdp",
    "trex": "trex",
    "torch-tensorrt": "package",
    "perfetto": "perfetto/region_001.perfetto.json",
    "capture": "demo_capture",
}

inside = Path(tv.__file__).resolve()
assert inside.is_relative_to(Path(sys.prefix).resolve()), f"not the installed package: {inside}"
for name, sample in SAMPLES.items():
    trace = tv.load(ROOT / "sample_traces" / sample)
    page = OUTPUT / f"{name}.html"
    trace.to_html(page)
    assert len(trace.spans), name
    assert page.stat().st_size > 10_000, name
    print(f"{name}: {len(trace.spans)} spans, {len(trace.explain())} findings")
loaded = {name for name in ("torch", "executorch", "plotly", "IPython") if name in sys.modules}
assert not loaded, f"loading and reporting imported {sorted(loaded)}"
