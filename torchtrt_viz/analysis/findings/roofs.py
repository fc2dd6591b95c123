"""How far operators and layers are from the limits of their device, where shapes and device are known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.humanize import duration
from torchtrt_viz.analysis.core.links import launches, operator_rows, operators_of
from torchtrt_viz.analysis.core.masks import among
from torchtrt_viz.analysis.core.readable import engine_names, layer_name, shortened
from torchtrt_viz.analysis.device.device_specs import device_of
from torchtrt_viz.analysis.device.roofline import operator_roofline
from torchtrt_viz.analysis.engine.engine_facts import engine_infos
from torchtrt_viz.analysis.engine.roofline import engine_roofline
from torchtrt_viz.analysis.findings.finding import Evidence, Finding, pct
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["layers_below_the_roof", "operators_below_the_roof"]

_BELIEVED = 110.0  # percent of the roof; what exceeds it has shapes or a device that are not what they seem


def operators_below_the_roof(trace: TraceData) -> Iterator[Finding]:
    """The matrix products, convolutions and attention that could win most at the device's limits."""
    work = device_work(trace)
    if not len(work) or device_of(trace) is None:
        return
    table = operator_roofline(trace)
    known = table[table["efficiency_pct"].notna() & table["time_ns"].notna() & (table["domain"] == "gpu")]
    known = known[(known["efficiency_pct"] > 0) & (known["efficiency_pct"] <= _BELIEVED)]
    if not len(known):
        return
    time = known["time_ns"].to_numpy(dtype=np.float64)
    won = time * (1.0 - np.minimum(1.0, known["efficiency_pct"].to_numpy(dtype=np.float64) / 100.0))
    at = int(np.argmax(won))
    row = known.iloc[at]
    spans = trace.spans
    linked = launches(trace)
    owner = operators_of(trace, linked, operator_rows(trace))
    mine = (owner >= 0) & among(spans["name"], [str(row["name"])])[np.maximum(owner, 0)]
    whole = float(work.dur.sum())
    shape = "" if not isinstance(row["shape"], str) else f" {shortened(row['shape'], 48)}"
    yield Finding(
        f"{row['name']}{shape} reaches {float(row['efficiency_pct']):.3g} % of what the device could at its "
        f"intensity ({row['bound']} bound), in {duration(time[at])} of {duration(whole)} of device work.",
        float(time[at]),
        float(time[at]) / whole if whole else 0.0,
        "the sum of all device work",
        "gpu",
        "analysis.operator_roofline(trace)",
        "other shapes, layouts or precisions; a fused or tuned kernel",
        kind="roofline",
        head=f"{row['name']} reaches {float(row['efficiency_pct']):.3g} % of the roof",
        could_save_ns=float(won[at]),
        basis="its kernels' time above the device's limit for these shapes",
        evidence=Evidence.of(trace, linked.work.row[mine]),
        frame="trace.analysis.operator_roofline()",
    )


def layers_below_the_roof(trace: TraceData) -> Iterator[Finding]:
    """The layer that could win most at the limits of its device, of each engine."""
    if not engine_infos(trace) or device_of(trace) is None:
        return
    table = engine_roofline(trace)
    known = table[table["efficiency_pct"].notna() & table["mean_ns"].notna() & (table["domain"] == "gpu")]
    known = known[(known["efficiency_pct"] > 0) & (known["efficiency_pct"] <= _BELIEVED)]
    names = engine_names(table["engine"])
    spans = trace.spans
    for engine, part in known.groupby("engine", sort=False):
        time = part["mean_ns"].to_numpy(dtype=np.float64)
        won = time * (1.0 - np.minimum(1.0, part["efficiency_pct"].to_numpy(dtype=np.float64) / 100.0))
        at = int(np.argmax(won))
        row = part.iloc[at]
        whole = float(table.loc[table["engine"] == engine, "mean_ns"].sum())
        name, words = layer_name(str(row["name"])), names.get(str(engine), str(engine))
        rows = np.flatnonzero(
            among(spans["kind"], ("layer",))
            & among(spans["name"], [str(row["name"])])
            & (spans["run_id"] == engine).to_numpy()
        )
        yield Finding(
            f"{name} reaches {float(row['efficiency_pct']):.3g} % of what the device could ({row['bound']} "
            f"bound), in {duration(time[at])} of the {duration(whole)} of {words}'s layers "
            f"({pct(time[at] / whole)}).",
            float(time[at]),
            float(time[at]) / whole if whole else 0.0,
            f"the timed layers of {words}",
            "gpu",
            "analysis.engine_roofline(trace)",
            "another precision, layout or tactic; fusion with its neighbours",
            placed=False,
            kind="roofline",
            head=f"layer {name} reaches {float(row['efficiency_pct']):.3g} % of the roof",
            could_save_ns=float(won[at]),
            basis="the time of one call above the device's limit for its shapes",
            evidence=Evidence.of(trace, rows),
            frame="trace.analysis.engine_roofline()",
        )
