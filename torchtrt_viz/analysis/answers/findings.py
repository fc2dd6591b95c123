"""The findings that matter most in a capture, in sentences with numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.answers.certainty import CLEAR, ENOUGH, Lead, leader
from torchtrt_viz.analysis.columns.answers import EXPLAIN
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.humanize import count, duration
from torchtrt_viz.analysis.core.intervals import length, merge
from torchtrt_viz.analysis.core.links import launches, operator_rows, operators_of
from torchtrt_viz.analysis.core.masks import among, codes, ends, ints, measured
from torchtrt_viz.analysis.core.recovered import recovered
from torchtrt_viz.analysis.core.steps import iteration_of, iterations
from torchtrt_viz.analysis.core.tables import floats, records
from torchtrt_viz.analysis.core.waiting import wait_mask
from torchtrt_viz.analysis.device.graph_table import graphs
from torchtrt_viz.analysis.device.idle import idle_causes
from torchtrt_viz.analysis.device.launch import launch_delays, launch_stats
from torchtrt_viz.analysis.device.operator_tables import device_coverage, kernels, operators
from torchtrt_viz.analysis.device.temporal import temporal_breakdown
from torchtrt_viz.analysis.device.transfers import copies
from torchtrt_viz.analysis.engine.delegate_calls import UNATTRIBUTED, delegate_calls, delegates, phases
from torchtrt_viz.analysis.engine.engine_facts import engine_infos
from torchtrt_viz.analysis.engine.gaps import orchestration
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.analysis.engine.lint import engine_lint, reformats
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.schema import DOMAINS
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["explain"]


@dataclass(frozen=True)
class Finding:
    """One thing that a capture shows."""

    text: str
    impact_ns: float
    share: float  # of what ``of`` names, 0 to 1
    of: str
    domain: str
    source: str
    remedy: str
    placed: bool = True  # whether the time is part of the capture's, or an average without a place

    def weight(self, whole: int | None) -> float:
        """Return the share of the capture's length, by which findings are ranked."""
        return self.impact_ns / whole if self.placed and whole else self.share


@returns(EXPLAIN)
def explain(trace: TraceData, *, top: int = 3, min_pct: float = 3.0) -> pd.DataFrame:
    """Say in sentences what matters most in a capture.

    Parameters
    ----------
    top
        How many findings.
    min_pct
        Findings with less at stake are not worth a sentence, percent.

    Returns
    -------
    pandas.DataFrame
        One row per finding, the largest time at stake against the length of the capture first.

        Ordered by the time at stake against the length of the capture (sums without a place on the time axis
        by ``impact_pct``), at most ``top`` rows; none when nothing stands out. What noise could turn around
        is left out: that one thing leads has to hold in 95 % of resamples of the iterations, and the interval
        of its share is given; with fewer than four iterations it has to be a fifth above the next.

        ``attrs["coverage"]`` says how much of the devices' time no operator explains (empty without device
        work), ``attrs["device_unexplained_pct"]`` the share.

    Examples
    --------
    >>> tv.analysis.explain(trace, top=1)["domain"].tolist()
    ['host']
    """
    if not isinstance(top, int) or isinstance(top, bool) or top < 1:
        raise OptionError("top", top, "a number of findings, 1 or more")
    found: list[Finding] = []
    for look in _LOOKS:
        found += look(trace)
    whole = trace.duration_ns
    found = [finding for finding in found if 100.0 * finding.weight(whole) >= min_pct]
    found.sort(key=lambda finding: -finding.weight(whole))
    found = found[:top]
    frame = pd.DataFrame(
        {
            "finding": [finding.text for finding in found],
            "impact_ns": floats([finding.impact_ns for finding in found]),
            "impact_pct": floats([100.0 * finding.share for finding in found]),
            "of": [finding.of for finding in found],
            "domain": [finding.domain for finding in found],
            "source": [finding.source for finding in found],
            "remedy": [finding.remedy for finding in found],
        }
    )
    frame = EXPLAIN.typed(frame)
    known = device_coverage(trace)
    frame.attrs.update({key: known[key] for key in ("coverage", "device_unexplained_pct")})
    return frame


def _pct(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def _device(number: Any) -> str:
    return "The GPU" if pd.isna(number) else f"GPU {number}"


_IDLE_REMEDY = {
    "host wait": "launch less often (CUDA graphs, larger batches, fused kernels), or take work off the host",
    "kernel wait": "fewer and larger kernels; CUDA graphs",
    "other": "look for events, streams and memory that the kernels wait for",
    "unknown": "record the host's side too (CPU activity)",
}
_IDLE_WORDS = {
    "host wait": "because the host had not launched the next work yet",
    "kernel wait": "between kernels started back to back",
    "other": "although the next work had been launched",
    "unknown": "for a reason that the trace does not record",
}


def _idle(trace: TraceData) -> Iterator[Finding]:
    spans = temporal_breakdown(trace)
    causes = idle_causes(trace, level="device")
    for row in records(spans):
        whole = int(row.span_ns)
        same = causes["device"].isna() if pd.isna(row.device) else causes["device"] == row.device
        mine = causes[same.fillna(False)].sort_values("idle_ns", ascending=False)
        if whole and len(mine):
            worst = mine.iloc[0]
            share = int(worst["idle_ns"]) / whole
            cause = str(worst["cause"])
            yield Finding(
                f"{_device(row.device)} was idle for {duration(row.idle_ns)} ({_pct(row.idle_ns / whole)}) "
                f"between its first and last work, {duration(worst['idle_ns'])} of it {_IDLE_WORDS[cause]}.",
                float(worst["idle_ns"]),
                share,
                "the device's span",
                "gpu",
                'analysis.idle_causes(trace, level="device")',
                _IDLE_REMEDY[cause],
            )


def _exposed(trace: TraceData) -> Iterator[Finding]:
    for row in records(temporal_breakdown(trace)):
        whole = int(row.span_ns)
        if not whole:
            continue
        if row.exposed_communication_ns:
            yield Finding(
                f"{_device(row.device)} communicated for {duration(row.communication_ns)}, "
                f"{duration(row.exposed_communication_ns)} of it with nothing computed meanwhile: "
                f"{_pct(row.exposed_communication_ns / whole)} of the span.",
                float(row.exposed_communication_ns),
                row.exposed_communication_ns / whole,
                "the device's span",
                "gpu",
                "analysis.temporal_breakdown(trace)",
                "start collectives earlier, on streams of their own, in larger or smaller buckets; look for "
                "ranks that arrive late",
            )
        if row.exposed_copy_ns:
            table = copies(trace)
            largest = str(table["name"].iloc[0]) if len(table) else "copies"
            yield Finding(
                f"{_device(row.device)} only copied or filled memory for {duration(row.exposed_copy_ns)} "
                f"({_pct(row.exposed_copy_ns / whole)}), mostly {largest}.",
                float(row.exposed_copy_ns),
                row.exposed_copy_ns / whole,
                "the device's span",
                "gpu",
                "analysis.copies(trace)",
                "pinned memory, asynchronous copies on a stream of their own, fewer round trips to the host",
            )


def _kernels(trace: TraceData) -> Iterator[Finding]:
    work = device_work(trace)
    work = work.of(work.is_class("compute"))  # collectives and copies have findings of their own
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
        yield Finding(
            f"{_short(str(row['name']))} ran {count(int(row['calls']), 'time')} for "
            f"{duration(row['total_ns'])} in all, {row['total_pct']:.3g} % of the sum of all device work"
            f"{'' if len(whole) > len(work) else lead.interval}; it kept the device busy for "
            f"{duration(busy)}.",
            float(busy),
            busy / span,
            "the device's span",
            "gpu",
            "trace.kernels()",
            "it is the first place to look: precision, shapes, or a faster implementation",
        )


def _unexplained(trace: TraceData) -> Iterator[Finding]:
    found = device_coverage(trace)
    pct = found["device_unexplained_pct"]
    if not pct or not (among(trace.spans["kind"], ("operator",)) & measured(trace)).any():
        return  # of a recording without operators nobody expects it
    linked = launches(trace).host >= 0
    why = (
        "the trace holds no launch of it"
        if not linked.any()
        else "it was launched outside operators, or its launch is not in the trace"
    )
    replays = graphs(trace)
    left = int((replays["gpu_ns"] * (1 - replays["matched_gpu_pct"] / 100.0)).sum()) if len(replays) else 0
    if left:
        reasons = replays["note"].dropna()
        why = f"{duration(left)} of it is work of launches of graphs ({reasons.iloc[0]})"
    yield Finding(
        f"No operator explains {duration(found['device_unexplained_ns'])} of "
        f"{duration(found['device_ns'])} of device work ({pct:.3g} % of the sum of durations): {why}.",
        float(min(found["device_unexplained_ns"], length(device_work(trace).busy()))),
        pct / 100.0,
        "the sum of all device work",
        "gpu",
        "trace.kernels(by='operator')",
        "record operators and runtime calls too (CPU activity); for CUDA graphs load the trace of their "
        "capture as well",
    )


def _graphs(trace: TraceData) -> Iterator[Finding]:
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
    used, part = np.unique(codes(trace.spans["name"])[owner[inside]], return_inverse=True)
    lead = leader(part.reshape(-1), work.dur[inside], iteration_of(trace)[work.row[inside]], len(used))
    if not lead.certain:
        return
    table = graphs(trace)
    row = operators(trace, sort="device_graph_ns", top=1).iloc[0]
    share = int(row["device_graph_ns"]) / whole
    yield Finding(
        f"Inside graphs {row['name']} takes {duration(row['device_graph_ns'])} of {duration(whole)} of "
        f"device work ({_pct(share)}), in {count(int(row['graph_calls']), 'replayed call')}. "
        f"{table.attrs['coverage']}",
        float(min(int(row["device_graph_ns"]), length(work.busy()))),
        share,
        "the sum of all device work",
        "gpu",
        "trace.operators(sort='device_graph_ns')",
        "see its shapes and modules: trace.kernels(by=('operator', 'shape', 'module'))",
    )


def _launches(trace: TraceData) -> Iterator[Finding]:
    table = launch_stats(trace)
    if not len(table):
        return
    short, calls = int(table["short"].sum()), int(table["calls"].sum())
    spans = trace.spans
    rows = launch_delays(trace)["host_row"].to_numpy()
    start = ints(spans["start_ns"])[rows]
    # threads may launch at the same time, and a driver's call lies inside the runtime's
    cost = length(merge(start, start + spans["dur_ns"].to_numpy()[rows]))
    whole = trace.duration_ns
    # two standard errors above a half, or the next run may show the opposite
    if whole and short > calls / 2 + calls**0.5:
        yield Finding(
            f"{short:,} of {count(calls, 'launch', 'launches')} took the host longer than the work took the "
            f"device; launching cost the host {duration(cost)}.",
            float(cost),
            min(1.0, cost / whole),
            "the capture's length",
            "host",
            "analysis.launch_stats(trace)",
            "CUDA graphs, fused kernels, larger batches",
        )


def _waiting(trace: TraceData) -> Iterator[Finding]:
    mask = np.flatnonzero(wait_mask(trace))
    whole = trace.duration_ns
    if not len(mask) or not whole:
        return
    start, end = ints(trace.spans["start_ns"])[mask], ends(trace)[mask]
    waited = length(merge(start, end))
    names = trace.spans["name"].iloc[mask].astype(str).value_counts()
    yield Finding(
        f"A host thread waited for a device during {duration(waited)} ({_pct(waited / whole)} of the "
        f"capture), in {count(len(mask), 'call')} such as {names.index[0]}.",
        float(waited),
        waited / whole,
        "the capture's length",
        "host",
        "trace.host_gpu()",
        "synchronise less often: avoid .item(), .cpu() and prints of tensors in the loop",
    )


def _operators(trace: TraceData) -> Iterator[Finding]:
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
        yield Finding(
            f"{row['name']} took {duration(row['self_ns'])} in {count(int(row['calls']), 'call')}: "
            f"{_pct(share)} of the operators' own time{lead.interval}.",
            float(row["self_ns"]),
            share,
            "the operators' own time",
            "host",
            "trace.operators()",
            "see its shapes (operators(by='shape')) and where it is called from (by='stack')",
        )


def _delegates(trace: TraceData) -> Iterator[Finding]:
    table = delegates(trace, top=1)
    if not len(table):
        return
    row = table.iloc[0]
    calls = delegate_calls(trace)
    rows = np.flatnonzero(calls.call)
    part, names = pd.factorize(calls.instance[rows])
    took = trace.spans["dur_ns"].to_numpy()[rows]
    lead = leader(part, took, filled(trace.spans["iteration"])[rows], len(names))
    if not lead.certain:
        return
    inside = phases(trace)
    inside = inside[inside["delegate"] == row["delegate"]].sort_values("total_ns", ascending=False)
    if len(inside):
        top = inside.iloc[0]
        share = float(top["pct"]) / 100.0 if not pd.isna(top["pct"]) else 0.0
        named = "outside its phases" if top["phase"] == UNATTRIBUTED else f"in {top['phase']} ({top['role']})"
        yield Finding(
            f"Calls of {row['delegate']} took the host {duration(row['host_median_ns'])} in the median; "
            f"{_pct(share)} of that time was spent {named}.",
            float(top["total_ns"]),
            share,
            f"host time in {row['delegate']}",
            "host",
            "trace.phases()",
            "binding and staging shrink with inputs and outputs that stay on the device; waiting shrinks "
            "with a caller's stream",
        )
    elif not pd.isna(row["host_pct"]) and row["host_pct"] <= 100.0:
        share = float(row["host_pct"]) / 100.0
        yield Finding(
            f"Calls of {row['delegate']} took {duration(row['host_total_ns'])} of host time, {_pct(share)} "
            "of the methods' time.",
            float(row["host_total_ns"]),
            share,
            "the methods' time",
            "host",
            "trace.delegates()",
            "load the program with torchtrt_profile_level=phases to see inside",
        )


def _outside(trace: TraceData) -> Iterator[Finding]:
    table = orchestration(trace)
    if not len(table):
        return
    found = dict(zip(table["part"], table["total_ns"].tolist(), strict=True))
    whole = sum(found.values())
    if found["delegates"] and whole:
        outside = found["operators"] + found["orchestration"]
        yield Finding(
            f"{duration(outside)} of {duration(whole)} in methods ({_pct(outside / whole)}) lie outside "
            f"delegates: operators {duration(found['operators'])}, orchestration "
            f"{duration(found['orchestration'])}.",
            float(outside),
            outside / whole,
            "the methods' time",
            "host",
            "analysis.orchestration(trace)",
            "let a delegate take the operators between regions; fewer, larger regions",
        )


def _layers(trace: TraceData) -> Iterator[Finding]:
    table = layers(trace, untimed=False)
    for engine, part in table.groupby("engine", sort=False, dropna=False):
        row = part.sort_values("total_ns", ascending=False).iloc[0]
        if pd.isna(row["pct"]) or len(part) < 2:
            continue
        share = float(row["pct"]) / 100.0
        if share < 1.5 / len(part):
            continue  # no layer stands out
        lead = _leading_layer(trace, engine, part)
        if not lead.certain:
            continue
        yield Finding(
            f"{_short(str(row['name']))} takes {_pct(share)} of the timed layers of {engine}{lead.interval} "
            f"({row['domain']} time), {count(len(part), 'layer')} in all.",
            float(row["total_ns"]),
            share,
            f"the timed layers of {engine}",
            str(row["domain"]),
            "trace.layers()",
            "see analysis.engine_roofline(trace) for how near the layer is to the device's limits",
            placed=row["timing"] != "aggregate",
        )


def _leading_layer(trace: TraceData, engine: Any, table: pd.DataFrame) -> Lead:
    """Say how sure it is that the largest layer leads: by its calls, else by the sums that were recorded."""
    spans = trace.spans
    of_engine = spans["run_id"].isna() if pd.isna(engine) else spans["run_id"] == engine
    timed = among(spans["timing"], ("measured", "modeled")) & among(spans["domain"], DOMAINS)
    rows = np.flatnonzero(among(spans["kind"], ("layer",)) & timed & of_engine.to_numpy())
    if not len(rows):
        total = table["total_ns"].to_numpy(dtype=np.int64)
        return leader(np.arange(len(total)), total, np.full(len(total), -1, np.int64), len(total))
    used, part = np.unique(codes(spans["name"])[rows], return_inverse=True)
    number = filled(spans["iteration"])[rows]
    return leader(part.reshape(-1), spans["dur_ns"].to_numpy()[rows], number, len(used))


def _conversions(trace: TraceData) -> Iterator[Finding]:
    if not engine_infos(trace):
        return
    table = reformats(trace)
    for engine, part in table.groupby("engine", sort=False):
        share = float(part["pct"].sum()) / 100.0
        cost = float(part["mean_ns"].fillna(0).sum())
        yield Finding(
            f"{count(len(part), 'layer')} of {engine} only convert precision or layout: {_pct(share)} of its "
            "timed layers.",
            cost,
            share,
            f"the timed layers of {engine}",
            engine_infos(trace)[str(engine)].domain,
            "analysis.reformats(trace)",
            "keep neighbouring layers in one precision and layout",
            placed=False,
        )
    lint = engine_lint(trace)
    for engine, part in lint[lint["rule"] == "tensor cores"].groupby("engine", sort=False):
        share = float(part["pct"].fillna(0).sum()) / 100.0
        yield Finding(
            f"{count(len(part), 'layer')} of {engine} compute without tensor cores: {_pct(share)} of its "
            f"timed layers, such as {_short(str(part['layer'].iloc[0]))}.",
            float(part["mean_ns"].fillna(0).sum()),
            share,
            f"the timed layers of {engine}",
            engine_infos(trace)[str(engine)].domain,
            "analysis.engine_lint(trace)",
            "allow FP16, BF16, INT8 or TF32 for them",
            placed=False,
        )


def _warmup(trace: TraceData) -> Iterator[Finding]:
    listed = iterations(trace)
    for name, part in listed.groupby("of", sort=False):
        warm, rest = part[part["warmup"]], part[~part["warmup"]]
        # with few iterations to compare with, their scatter is hardly known
        if not len(warm) or len(rest) < ENOUGH or warm["dur_ns"].max() < CLEAR * rest["dur_ns"].max():
            continue
        usual = float(np.median(rest["dur_ns"]))
        extra = float((warm["dur_ns"] - usual).sum())
        whole = float(part["dur_ns"].sum())
        worst = float(warm["dur_ns"].max())
        yield Finding(
            f"The first {count(len(warm), 'iteration')} of {name} took up to {duration(worst)}, "
            f"{worst / usual:.3g} times the median of the others ({duration(usual)}): warm-up.",
            extra,
            extra / whole if whole else 0.0,
            f"the time of {name}",
            "host",
            "analysis.iterations(trace)",
            "leave warm-up out of comparisons; run a few iterations before capturing",
        )


def _short(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


_LOOKS: tuple[Callable[[TraceData], Iterator[Finding]], ...] = (
    _idle,
    _exposed,
    _kernels,
    _unexplained,
    _graphs,
    _launches,
    _waiting,
    _operators,
    _delegates,
    _outside,
    _layers,
    _conversions,
    _warmup,
)
