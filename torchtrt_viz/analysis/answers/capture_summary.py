"""A capture in a dozen numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.answers import SUMMARY
from torchtrt_viz.analysis.core.ancestry import outermost
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.host_threads import host_nesting, thread_count
from torchtrt_viz.analysis.core.intervals import length
from torchtrt_viz.analysis.core.masks import among, in_ns, measured, strings
from torchtrt_viz.analysis.device.graph_table import graphs
from torchtrt_viz.analysis.device.operator_tables import device_coverage
from torchtrt_viz.analysis.engine.delegate_calls import delegate_calls
from torchtrt_viz.analysis.engine.engine_facts import engine_infos
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["summary"]

_LARGEST = 2**63 - 1


@returns(SUMMARY)
def summary(trace: TraceData) -> pd.DataFrame:
    """Totals of a capture.

    Returns
    -------
    pandas.DataFrame
        One row per total of a capture; host and GPU figures stand in sections of their own and are never
        added.

        Host and GPU figures stand in sections of their own and are never added.

    Examples
    --------
    >>> tv.analysis.summary(trace)["section"].unique().tolist()
    ['capture', 'host', 'gpu', 'delegates', 'engines', 'warnings']
    """
    spans = trace.spans
    here = measured(trace)
    host = among(spans["domain"], ("host",)) & here
    parent = host_nesting(trace).parent
    dur = spans["dur_ns"].to_numpy()
    rows: list[tuple[str, str, Any, str, str]] = []

    def add(section: str, item: str, value: int | None, unit: str, note: str = "") -> None:
        if value is not None and value > _LARGEST:  # times of a damaged file
            value, note = None, f"{value} {unit}, more than a column holds"
        rows.append((section, item, pd.NA if value is None else value, unit, note))

    sources = trace.meta["sources"]
    made_up = ", made-up data" if trace.meta["synthetic"] else ""
    add("capture", "format", None, "", f"{trace.meta['format']}{made_up}")
    add("capture", "source", len(sources) or None, "files", str(sources[0]) if len(sources) == 1 else "")
    add("capture", "rank", trace.meta["rank"], "rank")
    add("capture", "length", trace.duration_ns, "ns", "first start to last end of everything measured")
    add("capture", "spans", len(spans), "spans")
    for timing, note in (
        ("aggregate", "sums over calls: no place on a time axis"),
        ("modeled", "their places on the time axis are computed, or they repeat other rows"),
        ("implausible", "recorded, and cannot be true: in no sum"),
        ("ticks", "numbers of a clock or unit that the file does not name: in no sum"),
    ):
        add("capture", f"{timing} records", _some(among(spans["timing"], (timing,))), "spans", note)
    add("capture", "iterations", _distinct(filled(spans["iteration"])), "iterations")

    method = outermost(parent, among(spans["kind"], ("method",)) & host)
    add("host", "threads", thread_count(trace) or None, "threads")
    add("host", "executions of methods", _some(method), "calls")
    add(
        "host",
        "time in methods",
        int(dur[method].sum()) if method.any() else None,
        "ns",
        "sum over executions",
    )
    operator = among(spans["kind"], ("operator",)) & host
    add("host", "calls of operators", _some(operator), "calls")
    add("host", "operators", _distinct(spans["name"].cat.codes.to_numpy()[operator]), "names")
    add("host", "runtime calls", _some(among(spans["kind"], ("runtime",)) & host), "calls")

    work = device_work(trace)
    some = len(work) > 0
    add("gpu", "pieces of work", len(work) if some else None, "kernels, copies, fills, collectives")
    for device in work.devices():
        part = work.of(work.device == device)
        label = "" if device < 0 else f" of device {device}"
        busy = length(part.busy())
        add("gpu", f"busy time{label}", busy, "ns", "union over streams")
        add(
            "gpu",
            f"idle time{label}",
            int(part.end.max() - part.start.min()) - busy,
            "ns",
            "between its first and last work",
        )
    if not some:
        add("gpu", "busy time", None, "ns")
    else:
        found = device_coverage(trace)
        add(
            "gpu",
            "work that no operator launched",
            found["device_unexplained_ns"],
            "ns",
            f"{found['device_unexplained_pct']:.3g} % of the durations of all work"
            if found["device_unexplained_pct"] is not None
            else "",
        )

    replays = graphs(trace)
    if len(replays):
        add("gpu", "launches of graphs", len(replays), "calls", "each runs many kernels")
        add("gpu", "work of graphs", int(replays["gpu_ns"].sum()), "ns", "sum of durations")
        add(
            "gpu",
            "kernels of graphs without an operator",
            int(replays["none"].sum()),
            "kernels",
            replays.attrs["coverage"],
        )

    calls = delegate_calls(trace)
    rows_of_calls = np.flatnonzero(calls.call)
    any_call = len(rows_of_calls) > 0
    add("delegates", "instances", len(set(calls.instance[rows_of_calls])) if any_call else None, "delegates")
    add("delegates", "calls", len(rows_of_calls) if any_call else None, "calls")
    add(
        "delegates",
        "host time in calls",
        int(dur[calls.call].sum()) if any_call else None,
        "ns",
        "host time only",
    )

    infos = engine_infos(trace)
    layer = among(spans["kind"], ("layer",)) & in_ns(trace)
    add("engines", "described", len(infos) or None, "engines")
    add("engines", "layers timed", _timed_layers(trace, layer), "layers")
    add("warnings", "repairs and doubts", len(trace.meta["warnings"]), "warnings", "trace.meta['warnings']")
    return pd.DataFrame(
        {
            "section": [row[0] for row in rows],
            "item": [row[1] for row in rows],
            "value": pd.array([row[2] for row in rows], dtype="Int64"),
            "unit": [row[3] for row in rows],
            "note": [row[4] for row in rows],
        }
    )


def _some(mask: Any) -> int | None:
    return int(mask.sum()) or None


def _distinct(values: Any) -> int | None:
    found = np.unique(values)
    return int((found >= 0).sum()) or None


def _timed_layers(trace: TraceData, layer: Any) -> int | None:
    names = strings(trace.spans["name"])[layer]
    engines = strings(trace.spans["run_id"])[layer]
    return len(set(zip(names, engines, strict=True))) or None
