"""What the host did: its leading operator, and iterations that took longer than the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.humanize import count, duration
from torchtrt_viz.analysis.core.masks import among, codes, measured
from torchtrt_viz.analysis.core.readable import engine_names
from torchtrt_viz.analysis.core.steps import iteration_of, iterations
from torchtrt_viz.analysis.device.operator_tables import operators
from torchtrt_viz.analysis.findings.certainty import CLEAR, ENOUGH, leader
from torchtrt_viz.analysis.findings.finding import Evidence, Finding, pct
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["leading_operator", "slow_iterations", "warmup"]

_FAR = 3.0  # robust standard deviations above the median


def leading_operator(trace: TraceData) -> Iterator[Finding]:
    """The operator with the most time of its own, in a trace without device work."""
    if len(device_work(trace)):
        return  # host time of operators then says little about what the run waits for
    table = operators(trace, top=1)
    if len(table):
        row = table.iloc[0]
        share = float(row["self_pct"]) / 100.0 if not pd.isna(row["self_pct"]) else 0.0
        spans = trace.spans
        rows = np.flatnonzero(
            among(spans["kind"], ("operator",)) & among(spans["domain"], ("host",)) & measured(trace)
        )
        used, part = np.unique(codes(spans["name"])[rows], return_inverse=True)
        self_ns = host_nesting(trace).self_ns[rows]
        lead = leader(part.reshape(-1), self_ns, iteration_of(trace)[rows], len(used))
        if not lead.certain:
            return
        mine = rows[(spans["name"].iloc[rows] == row["name"]).to_numpy()]
        yield Finding(
            f"{row['name']} took {duration(row['self_ns'])} in {count(int(row['calls']), 'call')}: "
            f"{pct(share)} of the operators' own time{lead.interval}.",
            float(row["self_ns"]),
            share,
            "the operators' own time",
            "host",
            "trace.operators()",
            "see its shapes (operators(by='shape')) and where it is called from (by='stack')",
            kind="operator",
            head=f"operator {row['name']}: {pct(share)} of the operators' own time",
            basis="how fast it could be depends on its shapes: trace.analysis.operator_roofline()",
            evidence=Evidence.of(trace, mine),
            frame="trace.operators(top=10)",
        )


def warmup(trace: TraceData) -> Iterator[Finding]:
    """First iterations that took longer than those that followed."""
    listed = iterations(trace)
    names = engine_names(listed["of"])
    for name, part in listed.groupby("of", sort=False):
        warm, rest = part[part["warmup"]], part[~part["warmup"]]
        # with few iterations to compare with, their scatter is hardly known
        if not len(warm) or len(rest) < ENOUGH or warm["dur_ns"].max() < CLEAR * rest["dur_ns"].max():
            continue
        usual = float(np.median(rest["dur_ns"]))
        extra = float((warm["dur_ns"] - usual).sum())
        whole = float(part["dur_ns"].sum())
        worst = float(warm["dur_ns"].max())
        words = names.get(str(name), str(name))
        yield Finding(
            f"The first {count(len(warm), 'iteration')} of {words} took up to {duration(worst)}, "
            f"{worst / usual:.3g} times the median of the others ({duration(usual)}): warm-up.",
            extra,
            extra / whole if whole else 0.0,
            f"the time of {words}",
            "host",
            "analysis.iterations(trace)",
            "leave warm-up out of comparisons; run a few iterations before capturing",
            kind="warm-up",
            head=f"warm-up: {duration(extra)} more than later iterations take",
            basis="it is paid once, not by later iterations",
            evidence=Evidence.of(trace, warm["row"].to_numpy(dtype=np.int64)),
            frame="trace.analysis.iterations()",
        )


def slow_iterations(trace: TraceData) -> Iterator[Finding]:
    """Iterations after warm-up that took far longer than the median one."""
    listed = iterations(trace)
    names = engine_names(listed["of"])
    for name, part in listed[~listed["warmup"]].groupby("of", sort=False):
        took = part["dur_ns"].to_numpy(dtype=np.float64)
        if len(took) < 2 * ENOUGH:
            continue
        usual = float(np.median(took))
        stray = 1.4826 * float(np.median(np.abs(took - usual)))
        slow = took > max(usual + _FAR * stray, CLEAR * usual)
        if not slow.any() or usual <= 0 or slow.sum() > len(took) // 4:
            continue  # so many are no exception, but another mode
        extra, whole = float((took[slow] - usual).sum()), float(took.sum())
        words = names.get(str(name), str(name))
        yield Finding(
            f"{count(int(slow.sum()), 'iteration')} of {len(took)} of {words} took up to "
            f"{duration(float(took.max()))}, {took.max() / usual:.3g} times the median ({duration(usual)}).",
            extra,
            extra / whole,
            f"the time of {words}",
            "host",
            "analysis.iterations(trace)",
            "look for what happens in these alone: input, garbage collection, other processes, clocks",
            kind="variability",
            head=f"{count(int(slow.sum()), 'iteration')} of {len(took)} slower than the others",
            could_save_ns=extra,
            basis="what these iterations took above the median one",
            evidence=Evidence.of(trace, part["row"].to_numpy(dtype=np.int64)[slow]),
            frame='trace.analysis.iterations().sort_values("dur_ns", ascending=False)',
        )
