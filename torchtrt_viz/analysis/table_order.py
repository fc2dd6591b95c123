"""Which table says most about a trace: how much of its window the spans behind each one cover."""

from __future__ import annotations

import numpy as np

from torchtrt_viz.analysis.catalogue import TABLES, View, shown_in
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.intervals import length, merge
from torchtrt_viz.analysis.core.masks import among, ends, ints, measured
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["table_order", "table_shares"]

#: From the finest to the coarsest; each divides the time of those after it.
_NESTED = ("layers", "phases", "delegates")
_ENOUGH = 0.5  # of a coarser table's time, for a finer one to come before it
_LAST = ("host_gpu", "questions", "explain", "verdict", "summary")


def table_shares(trace: TraceData) -> dict[str, float]:
    """Return for every table whose rows stand for spans which share of the window these cover, 0 to 1.

    Tables of spans that the trace lacks are left out. Sums without a place on the time axis have no share of
    it: they count with their share of all sums.
    """
    spans = trace.spans
    start, end, dur = ints(spans["start_ns"]), ends(trace), spans["dur_ns"].to_numpy()
    here = measured(trace)
    sums = among(spans["timing"], ("aggregate",)) & among(spans["domain"], ("host", "gpu"))
    whole = trace.duration_ns or 0
    all_sums = float(dur[sums].sum())
    out = {}
    for name, entry in TABLES.items():
        source = entry.spans
        if source is None:
            continue
        mine = among(spans["kind"], source.kinds)
        if source.domain is not None:
            mine &= among(spans["domain"], (source.domain,))
        if name == "operators":
            mine &= among(spans["domain"], ("host",))
        placed = np.flatnonzero(mine & here)
        if name == "kernels":
            if len(work := device_work(trace)) and whole:
                out[name] = length(work.busy()) / whole
        elif len(placed) and whole:
            out[name] = length(merge(start[placed], end[placed])) / whole
        elif (mine & sums).any() and all_sums:
            out[name] = float(dur[mine & sums].sum()) / all_sums
        elif mine.any():
            out[name] = 0.0
    return out


def table_order(trace: TraceData, view: View) -> list[str]:
    """Return the tables that a view shows, the one that explains most of this trace first.

    A table that divides the time of another one further comes before it when it covers at least half of it.
    Tables that stand for no spans come after those that do, and answers in words last.
    """
    names = list(shown_in(view))
    shares = table_shares(trace)
    rank = dict(shares)
    for at, name in enumerate(_NESTED):
        for coarser in _NESTED[at + 1 :]:
            if name in shares and coarser in shares and shares[name] >= _ENOUGH * shares[coarser]:
                rank[name] = max(rank[name], rank[coarser])
    fine = {name: at for at, name in enumerate(_NESTED)}

    def key(name: str) -> tuple[int, float, int]:
        if name in _LAST:
            return 2, 0.0, _LAST.index(name)
        if name in rank:
            return 0, -rank[name], fine.get(name, 0)
        return 1, 0.0, names.index(name)

    return sorted(names, key=key)
