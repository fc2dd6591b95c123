"""How busy host and devices were: the rows of `host_gpu` that a verdict begins with."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from torchtrt_viz.analysis.core.masks import among
from torchtrt_viz.analysis.core.steps import iterations
from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.device.host_gpu_time import host_gpu
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Bar", "busy_bars", "step_words"]

_MOST_DEVICES = 8


@dataclass(frozen=True)
class Bar:
    """One bar: a side, and its busy share of the capture's window.

    Attributes
    ----------
    label
        HOST, GPU, or GPU with its number.
    domain
        host or gpu.
    busy_ns, pct
        Union of its busy times, and its share of the window; None where nothing of it was recorded.
    note
        Words that stand in place of the bar, or after it.
    """

    label: str
    domain: str
    busy_ns: int | None
    pct: float | None
    note: str = ""


def busy_bars(trace: TraceData) -> tuple[int | None, list[Bar]]:
    """Return the length of the window in ns and the bars: the host's, and one for each device.

    A trace without times on an axis has no window, and bars say so.
    """
    table = host_gpu(trace)
    window = table.loc[table["measure"] == "window", "ns"].iloc[0]
    whole = None if pd.isna(window) else int(window)
    out = []
    devices = table[table["measure"] == "gpu busy"]
    for row in records(table[table["measure"] == "host busy"]):
        out.append(_bar("HOST", "host", row, _without(trace, "host")))
    for row in records(devices.head(_MOST_DEVICES)):
        label = "GPU" if pd.isna(row.device) or len(devices) == 1 else f"GPU {int(row.device)}"
        out.append(_bar(label, "gpu", row, _without(trace, "gpu")))
    if len(devices) > _MOST_DEVICES:
        out.append(Bar("GPU", "gpu", None, None, f"and {len(devices) - _MOST_DEVICES} more GPUs"))
    return whole, out


def _without(trace: TraceData, domain: str) -> str:
    """Say why a side has no bar."""
    side = "of the host" if domain == "host" else "of a GPU"
    spans = trace.spans
    if (among(spans["timing"], ("aggregate",)) & among(spans["domain"], (domain,))).any():
        return f"sums over calls only: no busy share {side}"
    return f"no work {side} was recorded"


def _bar(label: str, domain: str, row: object, none: str) -> Bar:
    busy, share = row.ns, row.pct  # type: ignore[attr-defined]
    if pd.isna(busy):
        return Bar(label, domain, None, None, none)
    return Bar(label, domain, int(busy), None if pd.isna(share) else float(share))


def step_words(trace: TraceData) -> tuple[int, str]:
    """Return how many iterations the capture holds, and the word for them."""
    table = iterations(trace)
    if not len(table):
        return 0, ""
    noun = "step" if (table["of"] == "steps").all() else "execution"
    return len(table), noun if len(table) == 1 else f"{noun}s"
