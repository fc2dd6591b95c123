"""What devices did: the leading kernel, communication and copies that nothing hides, unexplained work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.humanize import count, duration
from torchtrt_viz.analysis.core.intervals import IntervalSet, inside_of, length, merge, subtract
from torchtrt_viz.analysis.core.links import launches, operator_rows, operators_of
from torchtrt_viz.analysis.core.masks import among, codes, measured
from torchtrt_viz.analysis.core.readable import shortened
from torchtrt_viz.analysis.core.recovered import recovered
from torchtrt_viz.analysis.core.steps import iteration_of
from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.device.graph_table import graphs
from torchtrt_viz.analysis.device.operator_tables import device_coverage, kernels, operators
from torchtrt_viz.analysis.device.temporal import temporal_breakdown
from torchtrt_viz.analysis.device.transfers import copies
from torchtrt_viz.analysis.findings.certainty import leader
from torchtrt_viz.analysis.findings.finding import Evidence, Finding, device_words, pct
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["exposed", "in_graphs", "leading_kernel", "unexplained"]


def exposed(trace: TraceData) -> Iterator[Finding]:
    """Communication and copies during which nothing was computed."""
    for row in records(temporal_breakdown(trace)):
        whole = int(row.span_ns)
        if not whole:
            continue
        number = None if pd.isna(row.device) else int(row.device)
        name = "GPU" if number is None else f"GPU {number}"
        if row.exposed_communication_ns:
            yield Finding(
                f"{device_words(number)} communicated for {duration(row.communication_ns)}, "
                f"{duration(row.exposed_communication_ns)} of it with nothing computed meanwhile: "
                f"{pct(row.exposed_communication_ns / whole)} of the span.",
                float(row.exposed_communication_ns),
                row.exposed_communication_ns / whole,
                "the device's span",
                "gpu",
                "analysis.temporal_breakdown(trace)",
                "start collectives earlier, on streams of their own, in larger or smaller buckets; look for "
                "ranks that arrive late",
                kind="communication",
                head=f"{name} only communicates for {duration(row.exposed_communication_ns)}",
                could_save_ns=float(row.exposed_communication_ns),
                basis="communication with nothing computed meanwhile, were it hidden under computation",
                evidence=_alone(trace, number, ("communication",), ("compute",)),
                frame="trace.analysis.temporal_breakdown()",
            )
        if row.exposed_copy_ns:
            table = copies(trace)
            largest = str(table["name"].iloc[0]) if len(table) else "copies"
            yield Finding(
                f"{device_words(number)} only copied or filled memory for {duration(row.exposed_copy_ns)} "
                f"({pct(row.exposed_copy_ns / whole)}), mostly {largest}.",
                float(row.exposed_copy_ns),
                row.exposed_copy_ns / whole,
                "the device's span",
                "gpu",
                "analysis.copies(trace)",
                "pinned memory, asynchronous copies on a stream of their own, fewer round trips to the host",
                kind="copies",
                head=f"{name} only copies for {duration(row.exposed_copy_ns)}",
                could_save_ns=float(row.exposed_copy_ns),
                basis="copies and fills with nothing else running, were they hidden or left out",
                evidence=_alone(trace, number, ("copy", "fill"), ("compute", "communication")),
                frame="trace.analysis.copies()",
            )


def _alone(
    trace: TraceData, device: int | None, classes: tuple[str, ...], hiding: tuple[str, ...]
) -> Evidence:
    """Return the work of some classes of which a part ran while nothing of the hiding classes did."""
    work = device_work(trace)
    mine = work.of(work.device == (-1 if device is None else device))
    alone: IntervalSet = subtract(mine.busy(*classes), mine.busy(*hiding))
    chosen = mine.of(mine.is_class(*classes))
    # every stretch begins where such work begins, or where what hid it ends
    touched = inside_of(alone, chosen.start) | inside_of(alone, chosen.end - 1)
    return Evidence.of(trace, chosen.row[touched if touched.any() else slice(None)])


def leading_kernel(trace: TraceData) -> Iterator[Finding]:
    """The kernel that takes the most time, where it is sure that it does."""
    work = device_work(trace)
    work = work.of(work.is_class("compute"))  # collectives and copies have findings of their own
    if not len(work):  # sums over executions have no place in the device's span
        return
    table = kernels(trace)
    table = table[table["class"] == "compute"]
    if not len(table):
        return
    whole = device_work(trace)
    span = int(whole.end.max() - whole.start.min())
    row = table.iloc[0]
    names = codes(trace.spans["name"])[work.row]
    used, part = np.unique(names, return_inverse=True)
    lead = leader(part.reshape(-1), work.dur, iteration_of(trace)[work.row], len(used))
    mine = (trace.spans["name"].iloc[work.row] == row["name"]).to_numpy()
    busy = length(merge(work.start[mine], work.end[mine]))
    if span and lead.certain:
        name = str(row["name"])
        yield Finding(
            f"{shortened(name, 80)} ran {count(int(row['calls']), 'time')} for "
            f"{duration(row['total_ns'])} in all, {row['total_pct']:.3g} % of the sum of all device work"
            f"{'' if len(whole) > len(work) else lead.interval}; it kept the device busy for "
            f"{duration(busy)}.",
            float(busy),
            busy / span,
            "the device's span",
            "gpu",
            "trace.kernels()",
            "it is the first place to look: precision, shapes, or a faster implementation",
            kind="kernel",
            head=f"kernel {shortened(name, 56)}: {row['total_pct']:.3g} % of the sum of GPU work",
            basis="how fast it could be depends on its shapes: trace.analysis.operator_roofline()",
            evidence=Evidence.of(trace, work.row[mine]),
            frame="trace.kernels(top=10)",
        )


def unexplained(trace: TraceData) -> Iterator[Finding]:
    """Device work that no operator of the trace launched."""
    found = device_coverage(trace)
    share = found["device_unexplained_pct"]
    if not share or not (among(trace.spans["kind"], ("operator",)) & measured(trace)).any():
        return  # of a recording without operators nobody expects it
    linked = launches(trace)
    why = (
        "the trace holds no launch of it"
        if not (linked.host >= 0).any()
        else "it was launched outside operators, or its launch is not in the trace"
    )
    replays = graphs(trace)
    left = int((replays["gpu_ns"] * (1 - replays["matched_gpu_pct"] / 100.0)).sum()) if len(replays) else 0
    if left:
        reasons = replays["note"].dropna()
        because = f" ({reasons.iloc[0]})" if len(reasons) else ""
        why = f"{duration(left)} of it is work of launches of graphs{because}"
    owner = operators_of(trace, linked, operator_rows(trace))
    yield Finding(
        f"No operator explains {duration(found['device_unexplained_ns'])} of "
        f"{duration(found['device_ns'])} of device work ({share:.3g} % of the sum of durations): {why}.",
        float(min(found["device_unexplained_ns"], length(device_work(trace).busy()))),
        share / 100.0,
        "the sum of all device work",
        "gpu",
        "trace.kernels(by='operator')",
        "record operators and runtime calls too (CPU activity); for CUDA graphs load the trace of their "
        "capture as well",
        kind="unexplained",
        head=f"no operator explains {share:.3g} % of the GPU work",
        basis="it says what is not known, not what is slow",
        evidence=Evidence.of(trace, linked.work.row[owner < 0]),
        frame='trace.kernels(by="operator")',
    )


def in_graphs(trace: TraceData) -> Iterator[Finding]:
    """Say which operator leads inside graphs, where their captures tell."""
    found = recovered(trace)
    if found is None:
        return
    work, linked = device_work(trace), launches(trace)
    owner = operators_of(trace, linked, operator_rows(trace))
    inside = (owner >= 0) & found.rows[owner]
    whole = int(work.dur.sum())
    if not inside.any() or not whole:
        return
    names = codes(trace.spans["name"])
    used, part = np.unique(names[owner[inside]], return_inverse=True)
    lead = leader(part.reshape(-1), work.dur[inside], iteration_of(trace)[work.row[inside]], len(used))
    if not lead.certain:
        return
    table = graphs(trace)
    row = operators(trace, sort="device_graph_ns", top=1).iloc[0]
    share = int(row["device_graph_ns"]) / whole
    mine = inside & (trace.spans["name"].iloc[np.maximum(owner, 0)] == row["name"]).to_numpy()
    yield Finding(
        f"Inside graphs {row['name']} takes {duration(row['device_graph_ns'])} of {duration(whole)} of "
        f"device work ({pct(share)}), in {count(int(row['graph_calls']), 'replayed call')}. "
        f"{table.attrs['coverage']}",
        float(min(int(row["device_graph_ns"]), length(work.busy()))),
        share,
        "the sum of all device work",
        "gpu",
        "trace.operators(sort='device_graph_ns')",
        "see its shapes and modules: trace.kernels(by=('operator', 'shape', 'module'))",
        kind="graphs",
        head=f"inside graphs {row['name']} takes {pct(share)} of the GPU work",
        basis="how fast it could be depends on its shapes: trace.analysis.operator_roofline()",
        evidence=Evidence.of(trace, work.row[mine]),
        frame='trace.operators(sort="device_graph_ns", top=10)',
    )
