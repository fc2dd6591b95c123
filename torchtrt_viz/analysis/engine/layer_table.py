"""Layers of engines: which dominate, and what is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.engines import LAYERS
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.masks import among, in_ns, strings
from torchtrt_viz.analysis.core.tables import floats, integers, order, text
from torchtrt_viz.analysis.engine.engine_facts import details_of, engine_infos, first_detail
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["layers"]

Ints = NDArray[np.int64]

_FACTS = (
    "type",
    "role",
    "precision",
    "tactic",
    "module",
    "in_shapes",
    "out_shapes",
    "in_bytes",
    "out_bytes",
    "weights_bytes",
    "explanation",
)
_COLUMNS = (
    "engine",
    "position",
    "name",
    "calls",
    "total_ns",
    "mean_ns",
    "median_ns",
    "pct",
    "timing",
    "domain",
    "engine_runtime",
    *_FACTS,
)


@returns(LAYERS)
def layers(
    trace: TraceData,
    *,
    engine: str | None = None,
    untimed: bool = True,
    sort: str | None = "total_ns",
    top: int | None = None,
) -> pd.DataFrame:
    """Layers of engines, with their times and everything that the files say of them.

    Parameters
    ----------
    engine
        Only this engine (a value of column ``engine``).
    untimed
        Also list layers that the engine's description names but nobody timed; their times are NA.
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`; ``sort=None`` keeps the engine's order.

    Returns
    -------
    pandas.DataFrame
        One row per layer of an engine, with its times and what the files say of it.

    Examples
    --------
    >>> engines = tv.load(samples / "trex")
    >>> tv.analysis.layers(engines, sort=None, top=1)[["engine", "position"]].to_dict("records")
    [{'engine': 'region_000', 'position': 0}]
    """
    # what cannot be true is in no sum
    left = among(trace.spans["kind"], ("layer",)) & ~among(trace.spans["timing"], ("implausible",))
    parts = [_of_description(trace, str(id), info, left) for id, info in engine_infos(trace).items()]
    parts.append(_of_spans(trace, np.flatnonzero(left)))
    parts = [part for part in parts if len(part)]
    frame = (
        pd.concat(parts, ignore_index=True)
        if len(parts) > 1
        else parts[0].reset_index(drop=True)
        if parts
        else _empty()
    )
    frame = frame.assign(pct=_shares(frame))[list(_COLUMNS)]
    if not untimed:
        frame = frame[frame["total_ns"].notna()].reset_index(drop=True)
    if engine is not None:
        frame = frame[frame["engine"] == engine].reset_index(drop=True)
    return order(frame, sort, top, ("engine", "position"))


def _empty() -> pd.DataFrame:
    none = np.zeros(0)
    integer = {"position", "calls", "total_ns", "in_bytes", "out_bytes", "weights_bytes"}
    number = {"mean_ns", "median_ns"}
    return pd.DataFrame(
        {
            name: integers(none) if name in integer else floats(none) if name in number else text([])
            for name in _COLUMNS
            if name != "pct"
        }
    )


def _of_spans(trace: TraceData, rows: Ints) -> pd.DataFrame:
    """Layers that are known from their spans alone."""
    spans = trace.spans
    if len(rows) == 0:
        return _empty()
    groups = Groups.by(
        {
            "engine": text(strings(spans["run_id"])[rows]),
            "name": spans["name"].array[rows],
            "timing": spans["timing"].array[rows],
            "domain": spans["domain"].array[rows],
        }
    )
    dur = spans["dur_ns"].to_numpy()[rows]
    found = groups.statistics(dur)
    first = rows[groups.first_row()]
    aggregate = (groups.labels["timing"] == "aggregate").to_numpy()
    calls, known, median = _calls(trace, groups, rows, aggregate)
    total = found.total
    # a duration of no known domain is in a unit of its own: the layer is listed, its time is not known
    in_ns = groups.labels["domain"].notna().to_numpy()
    known = known & in_ns
    details = details_of(trace, first)
    frame = pd.DataFrame(
        {
            "engine": groups.labels["engine"].to_numpy(dtype=object),
            "name": groups.labels["name"].to_numpy(dtype=object),
            "calls": integers(calls, known),
            "total_ns": integers(total, in_ns),
            "mean_ns": floats(total / np.maximum(calls, 1), known & (calls > 0)),
            "median_ns": floats(np.where(aggregate, median, found.quantiles[0]), in_ns),
            "timing": text(groups.labels["timing"].to_numpy()),
            "domain": text(groups.labels["domain"].to_numpy()),
            "engine_runtime": text([first_detail([d], "engine_runtime") for d in details]),
            "first": first,
        }
    )
    frame = frame.sort_values(["engine", "first"], kind="stable")
    frame["position"] = integers(frame.groupby("engine", dropna=False).cumcount().to_numpy())
    by_row = dict(zip(first.tolist(), details, strict=True))
    return _with_facts(frame, [by_row[row] for row in frame["first"].tolist()])


def _calls(
    trace: TraceData, groups: Groups, rows: Ints, aggregate: NDArray[np.bool_]
) -> tuple[Ints, Any, Any]:
    """Return calls, whether they are known, and the recorded median: of aggregates from their arguments."""
    calls = groups.count()
    known = ~aggregate
    median = np.full(groups.size, np.nan)
    if aggregate.any():
        chosen = np.flatnonzero(aggregate[groups.codes])
        recorded = np.zeros(groups.size, np.int64)
        complete = aggregate.copy()
        for position, found in zip(chosen, details_of(trace, rows[chosen]), strict=True):
            group = groups.codes[position]
            count = first_detail([found], "count", "calls")
            if count is None:
                complete[group] = False
            else:
                recorded[group] += int(count)
            recorded_median = first_detail([found], "median_ns")
            if recorded_median is not None:
                median[group] = float(recorded_median)
        calls = np.where(aggregate, recorded, calls)
        known = known | complete
    return calls, known, median


def _with_facts(frame: pd.DataFrame, details: list[dict[str, Any]]) -> pd.DataFrame:
    for name in _FACTS:
        values = [first_detail([found], name) for found in details]
        if name.endswith("_bytes"):
            numbers = [value if isinstance(value, int) else -1 for value in values]
            frame[name] = integers(numbers, np.asarray(numbers) >= 0)
        else:
            frame[name] = text(values)
    return frame[[name for name in _COLUMNS if name != "pct"]]


def _shares(frame: pd.DataFrame) -> pd.arrays.FloatingArray:
    total = frame["total_ns"].to_numpy(dtype=np.float64, na_value=np.nan)
    whole = frame.assign(value=total).groupby("engine", dropna=False)["value"].transform("sum")
    wholes = whole.to_numpy(dtype=np.float64)
    return floats(np.where(wholes > 0, 100.0 * total / np.where(wholes > 0, wholes, 1), np.nan))


def _of_description(trace: TraceData, run_id: str, info: Any, left: NDArray[np.bool_]) -> pd.DataFrame:
    """Layers of a described engine; spans that it accounts for are taken out of ``left``."""
    table = info.layers
    span = table["span"].to_numpy()
    timed = span >= 0
    left[span[timed]] = False
    measured = _measured_times(trace, run_id, table, left)
    rows = np.maximum(span, 0)
    spans = trace.spans
    enough = len(spans) > 0
    total = np.where(timed, spans["dur_ns"].to_numpy()[rows], 0) if enough else np.zeros(len(table), np.int64)
    timing = strings(spans["timing"])[rows] if enough else text([None] * len(table))
    timing[~timed] = None
    count = table["count"].to_numpy(dtype=np.int64, na_value=-1)
    mean = table["average_ms"].to_numpy(dtype=np.float64, na_value=np.nan) * 1e6
    median = table["median_ms"].to_numpy(dtype=np.float64, na_value=np.nan) * 1e6
    exact = np.where(timed & (count > 0), total / np.maximum(count, 1), mean)
    frame = pd.DataFrame(
        {
            "engine": run_id,
            "position": integers(np.arange(len(table))),
            "name": table["name"].to_numpy(dtype=object),
            "calls": integers(count, timed & (count >= 0)),
            "total_ns": integers(total, timed),
            "mean_ns": floats(exact, timed),
            "median_ns": floats(median, timed),
            "timing": text(timing),
            "domain": info.domain,
            "engine_runtime": str(info.runtime),
        }
    )
    if measured is not None:
        for name, values in measured.items():
            frame[name] = values
    for name in _FACTS:
        column = table[name]
        if name.endswith("_bytes"):
            known = column.notna().to_numpy()
            frame[name] = integers(column.fillna(0).to_numpy(dtype=np.int64), known)
        else:
            frame[name] = text(column.astype(object).to_list())
    return frame[[name for name in _COLUMNS if name != "pct"]]


def _measured_times(
    trace: TraceData, run_id: str, table: pd.DataFrame, left: NDArray[np.bool_]
) -> dict[str, Any] | None:
    """Return times of a described engine from spans with its layers' names; None if it has its own."""
    spans = trace.spans
    if (table["span"].to_numpy() >= 0).any() or len(spans) == 0:
        return None
    rows = np.flatnonzero(left & in_ns(trace) & among(spans["run_id"], (run_id,)))
    if len(rows) == 0:
        return None
    groups = Groups.by({"name": spans["name"].array[rows], "timing": spans["timing"].array[rows]})
    found = groups.statistics(spans["dur_ns"].to_numpy()[rows])
    at = {name: position for position, name in enumerate(groups.labels["name"].astype(object))}
    position = np.array([at.get(name, -1) for name in table["name"].astype(object)], dtype=np.int64)
    # of layers with the same name only the first can be given the time
    position[table["occurrence"].to_numpy() > 0] = -1
    known = position >= 0
    left[rows[np.isin(groups.codes, position[known])]] = False
    chosen = np.maximum(position, 0)
    timing = groups.labels["timing"].astype(object).to_numpy()[chosen]
    timing[~known] = None
    return {
        "calls": integers(found.count[chosen], known),
        "total_ns": integers(found.total[chosen], known),
        "mean_ns": floats(found.mean[chosen], known),
        "median_ns": floats(found.quantiles[0][chosen], known),
        "timing": text(timing),
    }
