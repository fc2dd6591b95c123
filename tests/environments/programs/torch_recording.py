"""Record two calls with torch.profiler, load the file, and find the calls in it."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

import torchtrt_viz as tv

CALLS = 7

file = Path(sys.argv[1]) / "recording.pt.trace.json"
left, right = torch.ones(32, 32), torch.ones(32, 32)
with profile(activities=[ProfilerActivity.CPU]) as recording:
    for _ in range(CALLS):
        torch.mm(left, right)
recording.export_chrome_trace(str(file))

trace = tv.load(file)
table = trace.operators()
calls = int(table.loc[table["name"] == "aten::mm", "calls"].sum())
assert calls == CALLS, f"{CALLS} calls of aten::mm were recorded, {calls} loaded"
print(f"found: torch {torch.__version__}: {calls} calls of aten::mm in {len(trace.spans)} spans")
