"""Iterations of a capture: executions of a method, or steps of a profiler, and which of them are warm-up."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.by_name import ITERATIONS
from torchtrt_viz.analysis.core.ancestry import outermost
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.links import launches
from torchtrt_viz.analysis.core.masks import among, ints, measured, strings
from torchtrt_viz.analysis.core.recovered import recovered
from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["iteration_of", "iterations", "steady", "warmup_length"]

Ints = NDArray[np.int64]


@returns(ITERATIONS)
def iterations(trace: TraceData) -> pd.DataFrame:
    """List the iterations of a capture.

    An iteration is one execution of a program's method; where there are none, one step of the profiler.

    Returns
    -------
    pandas.DataFrame
        One row per execution of a method, or per profiler step where there are none.

        No row when the capture has neither.

    Examples
    --------
    >>> tv.analysis.iterations(trace)[["of", "iteration"]].head(2).to_dict("records")
    [{'of': 'steps', 'iteration': 0}, {'of': 'steps', 'iteration': 1}]
    """
    spans = trace.spans
    start = ints(spans["start_ns"])
    dur = spans["dur_ns"].to_numpy()
    rows, of = _units(trace)
    number = filled(spans["iteration"])[rows]
    frame = pd.DataFrame(
        {"of": text(of), "iteration": number, "row": rows, "start_ns": start[rows], "dur_ns": dur[rows]}
    )
    frame = frame.sort_values(["of", "start_ns"], kind="stable").reset_index(drop=True)
    warm = np.zeros(len(frame), bool)
    for _, part in frame.groupby("of", sort=False):
        length = warmup_length(part["dur_ns"].to_numpy())
        warm[part.index.to_numpy()[:length]] = True
        if (part["iteration"] < 0).all():
            frame.loc[part.index, "iteration"] = np.arange(len(part))
    frame["warmup"] = warm
    return frame.sort_values("start_ns", kind="stable").reset_index(drop=True)


def _units(trace: TraceData) -> tuple[Ints, list[str]]:
    spans = trace.spans
    parent = host_nesting(trace).parent
    here = among(spans["domain"], ("host",)) & measured(trace)
    method = np.flatnonzero(outermost(parent, among(spans["kind"], ("method",)) & here))
    if len(method):
        names, instances = strings(spans["name"]), strings(spans["run_id"])
        return method, [str(instances[row] or names[row]) for row in method]
    step = np.flatnonzero(outermost(parent, among(spans["kind"], ("step",)) & here))
    return step, ["steps"] * len(step)


def warmup_length(durations: NDArray[np.int64]) -> int:
    """Return how many of the first iterations are warm-up.

    The second half tells what is usual: its median, and how far its values stray (the larger of three
    robust standard deviations and 5 percent). Iterations at the beginning are warm-up as long as they take
    longer than that; at most half of them are. With fewer than four iterations nothing can be told.
    """
    count = len(durations)
    if count < 4:
        return 0
    usual = np.asarray(durations[count // 2 :], dtype=np.float64)
    middle = float(np.median(usual))
    stray = 1.4826 * float(np.median(np.abs(usual - middle)))
    limit = middle + max(3.0 * stray, 0.05 * middle)
    slow = np.asarray(durations[: count // 2], dtype=np.float64) > limit
    return int(np.argmin(np.append(slow, False)))


def iteration_of(trace: TraceData) -> Ints:
    """Return the number of the iteration that each span belongs to, -1 for none.

    What the loader recorded holds; otherwise a host span belongs to the iteration during which it began
    (on whatever thread), and device work to the iteration of the call that launched it, like what was
    recovered for the launch of a graph.

    Examples
    --------
    >>> sorted(set(tv.analysis.iteration_of(trace).tolist()))
    [-1, 0, 1, 2, 3]
    """
    spans = trace.spans
    out = filled(spans["iteration"]).copy()
    listed = iterations(trace)
    if (out >= 0).any() or len(listed) == 0 or listed["of"].nunique() > 1:
        return out
    begin = listed["start_ns"].to_numpy()
    stop = begin + listed["dur_ns"].to_numpy()
    number = listed["iteration"].to_numpy()
    start = ints(spans["start_ns"])
    position = np.searchsorted(begin, start, side="right") - 1
    inside = (position >= 0) & (start < stop[np.maximum(position, 0)]) & measured(trace)
    host = among(spans["domain"], ("host",))
    out[:] = np.where(inside & host, number[np.maximum(position, 0)], -1)
    found = launches(trace)
    known = found.host >= 0
    out[found.work.row[known]] = out[found.host[known]]
    graphs = recovered(trace)
    if graphs is not None:
        launched = graphs.launch >= 0
        out[launched] = out[graphs.launch[launched]]
    return out


def steady(trace: TraceData) -> list[int]:
    """Return the numbers of the iterations that are not warm-up, in order; empty without iterations."""
    listed = iterations(trace)
    keep = listed[~listed["warmup"]]
    return sorted({int(number) for number in keep["iteration"]})
