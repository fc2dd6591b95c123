"""Delegates and engines: their calls, what lies between them, their layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.humanize import count, duration
from torchtrt_viz.analysis.core.masks import among, codes
from torchtrt_viz.analysis.core.readable import engine_names, layer_name
from torchtrt_viz.analysis.engine.delegate_calls import UNATTRIBUTED, delegate_calls, delegates, phases
from torchtrt_viz.analysis.engine.engine_facts import engine_infos
from torchtrt_viz.analysis.engine.gaps import delegate_gaps, orchestration
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.analysis.engine.lint import engine_lint, reformats
from torchtrt_viz.analysis.findings.certainty import Lead, leader
from torchtrt_viz.analysis.findings.finding import Evidence, Finding, pct
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.schema import DOMAINS
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["conversions", "leading_delegate", "leading_layer", "outside", "staging", "without_tensor_cores"]

Ints = NDArray[np.int64]

_MOVING = (
    "torchtrt.input_binding",
    "torchtrt.output_binding",
    "torchtrt.input_staging",
    "torchtrt.output_staging",
)
_SEVERAL = 3
_OF_PHASES = (
    "binding and staging shrink with inputs and outputs that stay on the device; waiting shrinks with a "
    "caller's stream"
)


def leading_delegate(trace: TraceData) -> Iterator[Finding]:
    """The delegate whose calls take the host longest, and where inside."""
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
    words = _names(trace).get(str(row["delegate"]), str(row["delegate"]))  # some are known by name alone
    inside = phases(trace)
    inside = inside[inside["delegate"] == row["delegate"]].sort_values("total_ns", ascending=False)
    mine = rows[calls.instance[rows] == row["delegate"]]
    if len(inside):
        top = inside.iloc[0]
        share = float(top["pct"]) / 100.0 if not pd.isna(top["pct"]) else 0.0
        named = "outside its phases" if top["phase"] == UNATTRIBUTED else f"in {top['phase']} ({top['role']})"
        yield Finding(
            f"Calls of {words} took the host {duration(row['host_median_ns'])} in the median; "
            f"{pct(share)} of that time was spent {named}.",
            float(top["total_ns"]),
            share,
            f"host time in {words}",
            "host",
            "trace.phases()",
            _OF_PHASES,
            kind="delegate",
            head=f"delegate {words}: {duration(top['total_ns'])} of host time {named.partition(' (')[0]}",
            basis="see its layers, and the phases that only move data",
            evidence=Evidence.of(trace, mine),
            frame=f'trace.phases().loc[lambda t: t["delegate"] == {str(row["delegate"])!r}]',
        )
    elif not pd.isna(row["host_pct"]) and row["host_pct"] <= 100.0:
        share = float(row["host_pct"]) / 100.0
        yield Finding(
            f"Calls of {words} took {duration(row['host_total_ns'])} of host time, {pct(share)} "
            "of the methods' time.",
            float(row["host_total_ns"]),
            share,
            "the methods' time",
            "host",
            "trace.delegates()",
            "load the program with torchtrt_profile_level=phases to see inside",
            kind="delegate",
            head=f"delegate {words}: {pct(share)} of the methods' time",
            basis="its phases and layers were not recorded",
            evidence=Evidence.of(trace, mine),
            frame="trace.delegates()",
        )


def staging(trace: TraceData) -> Iterator[Finding]:
    """Host time of phases that only bind and copy inputs and outputs."""
    table = phases(trace)
    moving = table[table["phase"].isin(_MOVING)]
    whole = trace.duration_ns
    if not len(moving) or not whole:
        return
    total = float(moving["total_ns"].sum())
    in_calls = float(table["total_ns"].sum())
    spans = trace.spans
    rows = np.flatnonzero(
        among(spans["kind"], ("phase",)) & among(spans["domain"], ("host",)) & among(spans["name"], _MOVING)
    )
    yield Finding(
        f"Binding and staging of inputs and outputs took {duration(total)} of the {duration(in_calls)} in "
        f"delegate calls ({pct(total / in_calls) if in_calls else '0 %'}).",
        total,
        total / in_calls if in_calls else 0.0,
        "the time in delegate calls",
        "host",
        "trace.phases()",
        "inputs and outputs that stay on the device; the same buffers in every call",
        kind="staging",
        head=f"binding and staging take {duration(total)}",
        could_save_ns=total,
        basis="the phases that only move data, were inputs and outputs left in place",
        evidence=Evidence.of(trace, rows),
        frame="trace.phases()",
    )


def outside(trace: TraceData) -> Iterator[Finding]:
    """Time in methods that no delegate took."""
    table = orchestration(trace)
    if not len(table):
        return
    found = dict(zip(table["part"], table["total_ns"].tolist(), strict=True))
    whole = sum(found.values())
    if found["delegates"] and whole:
        other = found["operators"] + found["orchestration"]
        yield Finding(
            f"{duration(other)} of {duration(whole)} in methods ({pct(other / whole)}) lie outside "
            f"delegates: operators {duration(found['operators'])}, orchestration "
            f"{duration(found['orchestration'])}.",
            float(other),
            other / whole,
            "the methods' time",
            "host",
            "analysis.orchestration(trace)",
            "let a delegate take the operators between regions; fewer, larger regions",
            kind="between delegates",
            head=f"{duration(other)} in methods outside delegates",
            could_save_ns=float(found["orchestration"]),
            basis="the time between delegates in which no operator ran, were there one region",
            evidence=_longest_gap(trace),
            frame="trace.analysis.orchestration()",
        )


def _longest_gap(trace: TraceData) -> Evidence:
    gaps = delegate_gaps(trace, sort="dur_ns")
    if not len(gaps):
        return Evidence()
    rows = np.unique(gaps["method_row"].dropna().to_numpy(dtype=np.int64))
    begin, length = int(gaps["start_ns"].iloc[0]), int(gaps["dur_ns"].iloc[0])
    first = gaps["method_row"].iloc[0]
    return Evidence(rows, -1 if pd.isna(first) else int(first), (begin, begin + max(1, length)))


def leading_layer(trace: TraceData) -> Iterator[Finding]:
    """The layer of each engine that takes the most time, where it is sure that it does."""
    table = layers(trace, untimed=False)
    names = _names(trace)
    for engine, part in table.groupby("engine", sort=False, dropna=False):
        row = part.sort_values("total_ns", ascending=False).iloc[0]
        if pd.isna(row["pct"]) or len(part) < 2:
            continue
        share = float(row["pct"]) / 100.0
        if share < 1.5 / len(part):
            continue  # no layer stands out
        known = not pd.isna(engine)
        words = names.get(str(engine), str(engine)) if known else "an engine that is not named"
        lead = _lead(trace, engine, part)
        if not lead.certain:
            if len(part) > 2 * _SEVERAL:
                yield _several_layers(trace, engine, part, words, lead)
            continue
        name = layer_name(str(row["name"]))
        yield Finding(
            f"{name} takes {pct(share)} of the timed layers of {words}{lead.interval} "
            f"({_side(row['domain'])}), {count(len(part), 'layer')} in all.",
            float(row["total_ns"]),
            share,
            f"the timed layers of {words}",
            str(row["domain"]),
            "trace.layers()",
            "see analysis.engine_roofline(trace) for how near the layer is to the device's limits",
            placed=row["timing"] != "aggregate",
            kind="layer",
            head=f"layer {name}: {pct(share)} of {words}",
            basis="how fast it could be: trace.analysis.engine_roofline(), where shapes and device are known",
            evidence=Evidence.of(trace, _rows(trace, engine, [str(row["name"])])),
            frame=f"trace.layers(engine={str(engine)!r})" if known else "trace.layers()",
        )


def _side(domain: object) -> str:
    return "GPU time" if domain == "gpu" else f"{domain} time"


def _several_layers(trace: TraceData, engine: Any, table: pd.DataFrame, words: str, lead: Lead) -> Finding:
    """Name the largest layers together, where noise could turn their order around."""
    top = table.sort_values("total_ns", ascending=False).head(_SEVERAL)
    share = float(top["pct"].sum()) / 100.0
    named = [layer_name(str(name), 44) for name in top["name"]]
    over = f"over {lead.iterations} iterations" if lead.iterations else "in one recording"
    return Finding(
        f"{', '.join(named)} take {pct(share)} of the timed layers of {words} "
        f"({_side(top['domain'].iloc[0])}, {count(len(table), 'layer')} in all); "
        f"which of them leads is not certain {over}.",
        float(top["total_ns"].sum()),
        share,
        f"the timed layers of {words}",
        str(top["domain"].iloc[0]),
        "trace.layers()",
        "record more iterations to tell them apart; see analysis.engine_roofline(trace)",
        placed=top["timing"].iloc[0] != "aggregate",
        kind="layer",
        head=f"{_SEVERAL} layers take {pct(share)} of {words}: {named[0]}, ...",
        basis="how fast they could be: trace.analysis.engine_roofline(), where shapes and device are known",
        evidence=Evidence.of(trace, _rows(trace, engine, top["name"].astype(str).tolist())),
        frame=f"trace.layers(engine={str(engine)!r})" if not pd.isna(engine) else "trace.layers()",
    )


def _rows(trace: TraceData, engine: Any, names: list[str]) -> Ints:
    """Return the spans of some layers of an engine."""
    spans = trace.spans
    mine = spans["run_id"].isna() if pd.isna(engine) else spans["run_id"] == engine
    here = among(spans["kind"], ("layer",)) & mine.to_numpy() & among(spans["name"], names)
    return np.flatnonzero(here & ~among(spans["timing"], ("implausible",)))


def _lead(trace: TraceData, engine: Any, table: pd.DataFrame) -> Lead:
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


def conversions(trace: TraceData) -> Iterator[Finding]:
    """Layers of engines that only convert precision or layout."""
    if not engine_infos(trace):
        return
    names = _names(trace)
    table = reformats(trace)
    for engine, part in table.groupby("engine", sort=False):
        share = float(part["pct"].sum()) / 100.0
        cost = float(part["mean_ns"].fillna(0).sum())
        verb = "converts" if len(part) == 1 else "convert"
        words = names.get(str(engine), str(engine))
        yield Finding(
            f"{count(len(part), 'layer')} of {words} only {verb} precision or layout: {pct(share)} of its "
            "timed layers.",
            cost,
            share,
            f"the timed layers of {words}",
            engine_infos(trace)[str(engine)].domain,
            "analysis.reformats(trace)",
            "keep neighbouring layers in one precision and layout",
            placed=False,
            kind="conversions",
            head=f"{count(len(part), 'layer')} of {words} only {verb}: {pct(share)} of its time",
            could_save_ns=cost if cost else None,
            basis="one call of these layers, were their neighbours of one precision and layout"
            if cost
            else "these layers were not timed",
            evidence=Evidence.of(trace, _rows(trace, engine, part["name"].astype(str).tolist())),
            frame="trace.analysis.reformats()",
        )


def without_tensor_cores(trace: TraceData) -> Iterator[Finding]:
    """Layers of engines that multiply without tensor cores."""
    if not engine_infos(trace):
        return
    names = _names(trace)
    lint = engine_lint(trace)
    for engine, part in lint[lint["rule"] == "tensor cores"].groupby("engine", sort=False):
        share = float(part["pct"].fillna(0).sum()) / 100.0
        words = names.get(str(engine), str(engine))
        yield Finding(
            f"{count(len(part), 'layer')} of {words} compute without tensor cores: {pct(share)} of its "
            f"timed layers, such as {layer_name(str(part['layer'].iloc[0]), 80)}.",
            float(part["mean_ns"].fillna(0).sum()),
            share,
            f"the timed layers of {words}",
            engine_infos(trace)[str(engine)].domain,
            "analysis.engine_lint(trace)",
            "allow FP16, BF16, INT8 or TF32 for them",
            placed=False,
            kind="tensor cores",
            head=f"{count(len(part), 'layer')} of {words} without tensor cores: {pct(share)} of its time",
            basis="what another precision brings depends on the shapes: trace.analysis.engine_roofline()",
            evidence=Evidence.of(trace, _rows(trace, engine, part["layer"].astype(str).tolist())),
            frame="trace.analysis.engine_lint()",
        )


def _names(trace: TraceData) -> dict[str, str]:
    """Return readable names of the trace's engines and delegates."""
    table = layers(trace, sort=None)
    return engine_names([*trace.spans["run_id"].cat.categories, *table["engine"]], table)
