"""Call trees as flame graphs, of host time and of the GPU work that the code launched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.device.calltree import flame_graph
from torchtrt_viz.charts.chart import Boxes, Chart
from torchtrt_viz.charts.names import shade
from torchtrt_viz.charts.written import duration
from torchtrt_viz.model.schema import KINDS

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["flame", "flame_gpu"]

_MOST = 1200
"""Boxes of a picture: the widest."""
_CALLS = tuple(kind for kind in KINDS if kind != "other")
"""What a thread did; the others are records of the recorder's own."""


def flame(trace: TraceData, *, kinds: Iterable[str] | None = None, min_pct: float = 0.15) -> Chart:
    """Draw the host time of each thread by who called whom; by default without the recorder's records."""
    return _flame(trace, "host", _CALLS if kinds is None else kinds, min_pct)


def flame_gpu(trace: TraceData, *, kinds: Iterable[str] | None = None, min_pct: float = 0.15) -> Chart:
    """Draw GPU work by the code that launched it."""
    return _flame(trace, "gpu", kinds, min_pct)


def _flame(trace: TraceData, value: str, kinds: Iterable[str] | None, min_pct: float) -> Chart:
    frame = flame_graph(trace, value=value, kinds=kinds, by_thread=True, min_pct=min_pct)
    frame = frame[frame["total_ns"] > 0]
    # a caller is never narrower than what it calls, so that the widest boxes have all their callers
    shown = frame.sort_values(["total_ns", "depth"], ascending=[False, True], kind="stable").head(_MOST)
    shown = shown.sort_values("node", kind="stable").reset_index(drop=True)
    roots = shown[shown["depth"] == 0]
    whole = float(roots["total_ns"].sum())
    place = {node: at for at, node in enumerate(shown["node"])}
    side = "GPU work launched" if value == "gpu" else "host time"
    says = tuple(
        f"{row.name}: {duration(row.total_ns)} {side} ({row.pct:.1f} %), own {duration(row.self_ns)}, "
        f"{row.calls:,} {'call' if row.calls == 1 else 'calls'}"
        for row in records(shown)
    )
    colors = tuple(
        "rest" if kind == "thread" else f"{value}{shade(name)}"
        for name, kind in zip(shown["name"], shown["kind"], strict=True)
    )
    body = Boxes(
        tuple(shown["name"].astype(str)),
        tuple(shown["depth"].tolist()),
        tuple(shown["left_ns"].astype(float).tolist()),
        tuple(shown["total_ns"].astype(float).tolist()),
        colors,
        says,
        whole,
        tuple(place.get(parent, -1) for parent in shown["parent"]),
    )
    return Chart(
        "flame_gpu" if value == "gpu" else "flame",
        "Flame graph of GPU work, by the code that launched it"
        if value == "gpu"
        else "Flame graph of host time",
        _words(value, len(roots), whole),
        body if whole > 0 else None,
        shown,
        "flame_graph",
        "no device work leads back to a call of the host"
        if value == "gpu"
        else "the trace has no host time with a place on a thread",
    )


def _words(value: str, roots: int, whole: float) -> str:
    threads = f"{roots:,} {'thread' if roots == 1 else 'threads'}"
    if value == "gpu":
        return (
            f"{duration(whole)} of kernels and copies (sums of durations, not wall time), launched by "
            f"{threads}: a box is as wide as what it and its callees launched."
        )
    return (
        f"{duration(whole)} in which something was recorded on {threads}, each moment counted once: a box is "
        "as wide as its calls took, callees inside."
    )
