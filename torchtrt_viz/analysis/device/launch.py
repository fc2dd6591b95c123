"""From the host's call to the device's work: delays, and the length of the queue between them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.device import GRAPH_LAUNCHES, LAUNCH_DELAYS, LAUNCH_STATS
from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.device_work import CLASSES
from torchtrt_viz.analysis.core.groups import Groups
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.launch_calls import launch_calls
from torchtrt_viz.analysis.core.links import GRAPH_LAUNCH, launches, operator_rows
from torchtrt_viz.analysis.core.masks import codes, ints, names_matching, strings
from torchtrt_viz.analysis.core.tables import floats, integers, order
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["graph_launches", "launch_delays", "launch_stats"]

Ints = NDArray[np.int64]


@returns(LAUNCH_DELAYS)
def launch_delays(trace: TraceData) -> pd.DataFrame:
    """One row per call that launched device work.

    A call counts once however many pieces of work it started: the launch of a graph is one call.

    Returns
    -------
    pandas.DataFrame
        One row per call whose device work is in the trace, by the start of its first piece.

    Examples
    --------
    >>> delays = tv.analysis.launch_delays(trace)
    >>> delays["launched_by"].unique().tolist()
    ['cudaLaunchKernel']
    """
    found = launches(trace)
    calls = launch_calls(found)
    work, host = found.work, calls.host
    spans = trace.spans
    start, dur = ints(spans["start_ns"]), spans["dur_ns"].to_numpy()
    graph = names_matching(spans["name"], GRAPH_LAUNCH)
    row = work.row[calls.first]
    begin = work.start[calls.first]
    names = spans["name"].array
    operator = nearest(host_nesting(trace).parent, operator_rows(trace))[host]
    return pd.DataFrame(
        {
            "row": row,
            "host_row": host,
            "name": pd.Categorical.from_codes(
                np.where(calls.pieces == 1, codes(spans["name"])[row], -1),
                categories=spans["name"].cat.categories,
            ),
            "class": pd.Categorical.from_codes(
                np.where(calls.mixed, -1, work.kind[calls.first]), categories=pd.Index(CLASSES)
            ),
            "launched_by": names[host],
            "operator": pd.Categorical.from_codes(
                np.where(operator >= 0, codes(spans["name"])[np.maximum(operator, 0)], -1),
                categories=spans["name"].cat.categories,
            ),
            "pieces": calls.pieces,
            "host_ns": dur[host],
            "device_ns": calls.total,
            "delay_ns": begin - start[host] - dur[host],
            "queued_ns": begin - start[host],
            "graph": graph[host],
        }
    )


@returns(LAUNCH_STATS)
def launch_stats(
    trace: TraceData, *, by: str = "launched_by", sort: str | None = "calls", top: int | None = None
) -> pd.DataFrame:
    """Launches in numbers.

    Parameters
    ----------
    by
        ``launched_by`` (the host call), ``name`` (the kernel) or ``class``; calls that launched several
        pieces of work have no name, and no class where these are of several.
    sort, top
        As in :func:`torchtrt_viz.analysis.operators`.

    Returns
    -------
    pandas.DataFrame
        One row per launching call, kernel or class of work.

    Examples
    --------
    >>> tv.analysis.launch_stats(trace)[["launched_by", "calls"]].to_dict("records")
    [{'launched_by': 'cudaLaunchKernel', 'calls': 240}]
    """
    delays = launch_delays(trace)
    if by not in ("launched_by", "name", "class"):
        raise OptionError("by", by, "one of launched_by, name, class")
    groups = Groups.by({by: delays[by]})
    host, device = delays["host_ns"].to_numpy(), delays["device_ns"].to_numpy()
    on_host = groups.statistics(host, (0.99,))
    delay = groups.statistics(delays["delay_ns"].to_numpy(), (0.5, 0.9, 0.99))
    short = groups.count(device < host)
    frame = groups.labels.assign(
        calls=on_host.count,
        pieces=groups.total(delays["pieces"].to_numpy()),
        host_mean_ns=on_host.mean,
        host_p99_ns=on_host.quantiles[0],
        device_mean_ns=groups.statistics(device).mean,
        delay_median_ns=delay.quantiles[0],
        delay_p90_ns=delay.quantiles[1],
        delay_p99_ns=delay.quantiles[2],
        delay_max_ns=delay.maximum,
        short=short,
        short_pct=floats(100.0 * short / np.maximum(on_host.count, 1)),
        early=groups.count(delays["queued_ns"].to_numpy() < 0),
    )
    return order(frame, sort, top, (by,))


@returns(GRAPH_LAUNCHES)
def graph_launches(trace: TraceData) -> pd.DataFrame:
    """Launches of CUDA (or HIP) graphs, one row each.

    Returns
    -------
    pandas.DataFrame
        One row per launch of a CUDA (or HIP) graph.

    Examples
    --------
    >>> len(tv.analysis.graph_launches(trace))
    0
    """
    spans = trace.spans
    found = launches(trace)
    is_graph = names_matching(spans["name"], GRAPH_LAUNCH) & (strings(spans["domain"]) == "host")
    calls = np.flatnonzero(is_graph)
    start, dur = ints(spans["start_ns"]), spans["dur_ns"].to_numpy()
    work, launched = found.work, launch_calls(found)
    position = np.full(len(spans), -1, np.int64)
    position[launched.host] = np.arange(len(launched))
    at = position[calls]
    some = at >= 0

    def of(values: Ints) -> Ints:
        out = np.zeros(len(calls), np.int64)
        out[some] = values[at[some]]
        return out

    begin = of(work.start[launched.first])
    device = np.where(some, of(work.device[launched.first]), -1)
    return pd.DataFrame(
        {
            "host_row": calls,
            "launched_by": strings(spans["name"])[calls],
            "start_ns": start[calls],
            "host_ns": dur[calls],
            "device": integers(device, device >= 0),
            "kernels": of(launched.pieces),
            "device_start_ns": integers(begin, some),
            "device_span_ns": integers(of(launched.end) - begin, some),
            "device_busy_ns": integers(of(launched.busy), some),
            "device_sum_ns": integers(of(launched.total), some),
            "delay_ns": integers(begin - start[calls] - dur[calls], some),
        }
    )
