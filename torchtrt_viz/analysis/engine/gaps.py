"""What happens between delegate calls: other operators, copies, orchestration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.engines import DELEGATE_GAPS, ORCHESTRATION
from torchtrt_viz.analysis.core.ancestry import nearest, outermost
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.host_threads import host_nesting, os_threads
from torchtrt_viz.analysis.core.intervals import cover, length, merge, subtract
from torchtrt_viz.analysis.core.masks import among, ends, ints, measured
from torchtrt_viz.analysis.core.tables import floats, integers, order, text
from torchtrt_viz.analysis.engine.delegate_calls import delegate_calls
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.optional_ints import filled, optional_ints
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["delegate_gaps", "orchestration"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@returns(DELEGATE_GAPS)
def delegate_gaps(trace: TraceData, *, sort: str | None = None, top: int | None = None) -> pd.DataFrame:
    """Time between one delegate call and the next on the same thread, within one execution.

    A gap reaches from the end of a call to the start of the next; the stretches from the start of a method
    to its first call and from its last call to its end are gaps too.

    Parameters
    ----------
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`; by default in order of time.

    Returns
    -------
    pandas.DataFrame
        One row per stretch between delegate calls on one thread, within one execution.

    Examples
    --------
    >>> tv.analysis.delegate_gaps(tv.load(samples / "demo_capture"))["after"].iloc[0]
    '(start)'
    """
    spans = trace.spans
    start, end = ints(spans["start_ns"]), ends(trace)
    parent = host_nesting(trace).parent
    here = measured(trace)
    calls = delegate_calls(trace)
    rows = np.flatnonzero(calls.call & here)
    method = outermost(parent, among(spans["kind"], ("method",)) & among(spans["domain"], ("host",)) & here)
    inside = nearest(parent, method)[rows]
    track = os_threads(trace)[spans["track"].to_numpy()[rows]]
    ordered = np.lexsort((start[rows], track, inside))
    rows, inside, track = rows[ordered], inside[ordered], track[ordered]

    after: list[Any] = []
    before: list[Any] = []
    method_row: list[int] = []
    begins: list[int] = []
    stops: list[int] = []
    lanes: list[int] = []

    lane = -1

    def add(left: object, right: object, within: int, begin: int, stop: int) -> None:
        after.append(left)
        before.append(right)
        method_row.append(within)
        begins.append(begin)
        stops.append(max(stop, begin))

        lanes.append(lane)

    names = calls.instance
    for position, row in enumerate(rows.tolist()):
        within = int(inside[position])
        lane = int(track[position])
        new = position == 0 or inside[position - 1] != within or track[position - 1] != track[position]
        if not new:
            previous = int(rows[position - 1])
            add(names[previous], names[row], within, int(end[previous]), int(start[row]))
        elif within >= 0:
            add("(start)", names[row], within, int(start[within]), int(start[row]))
        closes = (
            position + 1 == len(rows)
            or inside[position + 1] != within
            or track[position + 1] != track[position]
        )
        if closes and within >= 0:
            add(names[row], "(end)", within, int(end[row]), int(end[within]))

    begin, stop = np.array(begins, np.int64), np.array(stops, np.int64)
    operators_ns = _covered_by_operators(trace, np.array(lanes, np.int64), begin, stop)
    copies = device_work(trace)
    copying = cover(copies.busy("copy", "fill"), begin, stop)
    within_rows = np.array(method_row, np.int64)
    iteration = filled(spans["iteration"])
    frame = pd.DataFrame(
        {
            "after": text(after),
            "before": text(before),
            "method_row": integers(within_rows, within_rows >= 0),
            "iteration": optional_ints(
                np.where(within_rows >= 0, iteration[np.maximum(within_rows, 0)], -1).astype(np.int32)
            ),
            "start_ns": begin,
            "dur_ns": stop - begin,
            "operators_ns": operators_ns,
            "other_ns": stop - begin - operators_ns,
            "gpu_copy_ns": integers(copying, len(copies) > 0),
        }
    )
    if sort is None:
        frame = frame.sort_values("start_ns", kind="stable")
    return order(frame, sort, top, ("after", "before"))


def _covered_by_operators(trace: TraceData, lanes: Ints, begin: Ints, stop: Ints) -> Ints:
    """Return how much of each gap operators cover on the thread that makes the calls."""
    spans = trace.spans
    track = os_threads(trace)[spans["track"].to_numpy()]
    operator = among(spans["kind"], ("operator",)) & among(spans["domain"], ("host",)) & measured(trace)
    start, end = ints(spans["start_ns"]), ends(trace)
    out = np.zeros(len(begin), np.int64)
    for lane in np.unique(lanes):
        mine = lanes == lane
        there = operator & (track == lane)
        out[mine] = cover(merge(start[there], end[there]), begin[mine], stop[mine])
    return out


@returns(ORCHESTRATION)
def orchestration(trace: TraceData) -> pd.DataFrame:
    """Executions of methods divided into delegates, operators and the rest, on the host.

    Returns
    -------
    pandas.DataFrame
        Three rows: what executions of methods spent in delegates, in operators and in neither.

        No row when the trace holds no executions of methods, or a method whose parts are not recorded.

    Examples
    --------
    >>> tv.analysis.orchestration(tv.load(samples / "demo_capture"))["part"].tolist()
    ['delegates', 'operators', 'orchestration']
    """
    spans = trace.spans
    start, end = ints(spans["start_ns"]), ends(trace)
    here = measured(trace) & among(spans["domain"], ("host",))
    parent = host_nesting(trace).parent
    method = outermost(parent, among(spans["kind"], ("method",)) & here)
    runs = np.flatnonzero(method)
    if len(runs) == 0:
        return ORCHESTRATION.typed(pd.DataFrame(columns=ORCHESTRATION.names))
    delegate = delegate_calls(trace).call & here
    operator = among(spans["kind"], ("operator",)) & here
    total = {"delegates": 0, "operators": 0, "orchestration": 0}
    tracks = os_threads(trace)[spans["track"].to_numpy()]
    for track in np.unique(tracks[runs]):
        mine = tracks == track
        whole = merge(start[method & mine], end[method & mine])
        calls = merge(start[delegate & mine], end[delegate & mine])
        work = merge(start[operator & mine], end[operator & mine])
        outside = subtract(whole, calls)
        rest = subtract(outside, work)
        total["delegates"] += length(whole) - length(outside)
        total["operators"] += length(outside) - length(rest)
        total["orchestration"] += length(rest)
    values = np.array(list(total.values()), np.int64)
    return pd.DataFrame(
        {
            "part": text(list(total)),
            "domain": "host",
            "total_ns": values,
            "mean_ns": values / len(runs),
            "pct": floats(100.0 * values / values.sum() if values.sum() else np.full(3, np.nan)),
        }
    )
