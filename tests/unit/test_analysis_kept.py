"""What analyses keep of a trace never outlives the columns that it came from."""

from __future__ import annotations

import gc
import re
import weakref

import numpy as np
import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis import launch_delays, temporal_breakdown
from torchtrt_viz.analysis.core.cache import kept
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.links import _lookup, launches
from torchtrt_viz.analysis.core.masks import among, names_matching
from torchtrt_viz.model import schema
from torchtrt_viz.model.trace_data import TraceData
from torchtrt_viz.trace import Trace


def _trace():
    b = Builder()
    main, stream = b.track("main"), b.stream(7)
    b.span("cudaLaunchKernel", 10, 5, main, "runtime", correlation=1)
    b.span("a", 100, 50, stream, "kernel", correlation=1)
    b.span("nccl_Kernel", 200, 30, stream, "kernel")
    return b.build()


def test_the_same_columns_are_looked_at_once() -> None:
    trace = _trace()
    assert device_work(trace) is device_work(trace)
    assert launches(trace) is launches(trace, device_work(trace))
    with pytest.raises(ValueError, match="read-only"):
        device_work(trace).start[0] = 1


@pytest.mark.parametrize("how", ["in place", "new column", "new frame"])
def test_a_changed_frame_has_another_answer(how: str) -> None:
    trace = _trace()
    assert temporal_breakdown(trace)["busy_ns"].tolist() == [80]
    assert launch_delays(trace)["delay_ns"].tolist() == [85]
    if how == "in place":
        trace.spans.loc[1, "dur_ns"] = 20
        trace.spans.loc[1, "start_ns"] = 110
    elif how == "new column":
        trace.spans["dur_ns"] = np.array([5, 20, 30])
        trace.spans["start_ns"] = np.array([10, 110, 200])
    else:
        trace.spans = trace.spans.assign(dur_ns=[5, 20, 30], start_ns=[10, 110, 200])
    assert temporal_breakdown(trace)["busy_ns"].tolist() == [50]
    assert launch_delays(trace)["delay_ns"].tolist() == [95]
    trace.spans.loc[1, "correlation"] = 7
    assert len(launch_delays(trace)) == 0


@pytest.mark.parametrize("rows", [slice(0, 2), slice(None, None, 2)])
def test_a_part_of_the_same_memory_is_another_column(rows: slice) -> None:
    """A view of the first rows begins where the whole does."""
    trace = _trace()
    trace.spans = trace.spans[["start_ns", "dur_ns"]]
    columns = {"spans": ("start_ns", "dur_ns")}
    assert kept(trace, "rows", columns, lambda: len(trace.spans)) == 3
    trace.spans = trace.spans.iloc[rows]
    assert kept(trace, "rows", columns, lambda: len(trace.spans)) == 2


def test_a_changed_kind_has_another_answer() -> None:
    trace = _trace()
    assert len(device_work(trace)) == 2
    trace.spans.loc[2, "kind"] = "annotation"
    assert len(device_work(trace)) == 1
    trace.spans["name"] = trace.spans["name"].cat.rename_categories({"a": "ncclDevKernel"})
    assert temporal_breakdown(trace)["communication_ns"].tolist() == [50]


def test_other_frames_are_looked_at_too() -> None:
    trace = _trace()
    assert device_work(trace).device.tolist() == [0, 0]
    trace.tracks.loc[1, "device"] = 3
    assert device_work(trace).device.tolist() == [3, 3]
    assert launches(trace).host.tolist() == [0, -1]
    trace.flows = schema.FLOWS.frame({"name": ["launch"], "source": [0], "target": [2], "id": [1]})
    assert launches(trace).host.tolist() == [0, 0]
    trace.flows.loc[0, "source"] = -1
    assert launches(trace).host.tolist() == [0, -1]


def test_equal_values_are_the_same_wherever_they_lie() -> None:
    trace, calls = _trace(), []
    columns = {"spans": ("kind", "correlation")}

    def times() -> int:
        kept(trace, "calls", columns, lambda: calls.append(1))
        return len(calls)

    assert times() == times() == 1
    trace.spans = trace.spans.copy(deep=True)
    trace.spans["dur_ns"] = 0
    assert times() == 1, "no column that counts has changed"
    trace.spans["kind"] = trace.spans["kind"].cat.set_categories([*trace.spans["kind"].cat.categories, "new"])
    assert times() == 2
    trace.spans["correlation"] = trace.spans["correlation"].astype("float64")
    assert times() == 3


def test_a_change_that_is_taken_back_is_seen_twice() -> None:
    trace = _trace()
    first = device_work(trace)
    trace.spans.loc[1, "dur_ns"] = 20
    assert device_work(trace).dur.tolist() == [20, 30]
    trace.spans.loc[1, "dur_ns"] = 50
    assert device_work(trace).dur.tolist() == first.dur.tolist() == [50, 30]


@pytest.mark.skipif(int(pd.__version__.partition(".")[0]) >= 3, reason="pandas 3 gives read-only arrays")
def test_a_write_to_the_array_below_is_seen() -> None:
    trace = _trace()
    assert device_work(trace).dur.tolist() == [50, 30]
    trace.spans["dur_ns"].to_numpy()[1] = 20
    assert device_work(trace).dur.tolist() == [20, 30]


def test_a_trace_made_of_another_has_its_own_answers() -> None:
    data = TraceData(spans=_trace().spans, tracks=_trace().tracks)
    assert len(device_work(data)) == 2
    trace = Trace.of(data)
    trace.spans = trace.spans.iloc[:2]
    assert len(device_work(trace)) == 1
    assert len(device_work(data)) == 2


def test_what_is_kept_goes_with_the_trace() -> None:
    trace = _trace()
    work = weakref.ref(device_work(trace))
    del trace
    gc.collect()
    assert work() is None


def test_matching_looks_at_the_categories_of_the_rows_asked_for_and_at_new_ones() -> None:
    column = pd.Series(pd.Categorical(["ab", None, "b", "c", "ab"], categories=["c", "b", "ab", "unused"]))
    pattern = re.compile("b|unused")
    assert names_matching(column, pattern, np.array([2, 3])).tolist() == [True, False]
    assert names_matching(column, pattern).tolist() == [True, False, True, False, True]
    other = column.cat.rename_categories({"c": "b2"})
    assert names_matching(other, pattern).tolist() == [True, False, True, True, True]
    assert among(column, ("b", "nowhere", "c")).tolist() == [False, False, True, True, False]


@pytest.mark.parametrize("spread", [1, 10**12])
def test_ids_close_together_and_far_apart_are_found_alike(spread: int) -> None:
    random = np.random.default_rng(7)
    keys, rows = random.integers(1, 60, 200) * spread, random.permutation(200)
    wanted = random.integers(-5, 90, 300) * spread
    last = dict(zip(keys.tolist(), rows.tolist(), strict=True))
    assert _lookup(wanted, keys, rows).tolist() == [last.get(key, -1) for key in wanted.tolist()]
