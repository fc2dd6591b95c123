"""Frames have exactly the documented columns, and take whole arrays without copying them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from torchtrt_viz.model import schema
from torchtrt_viz.trace import Trace


def test_every_column_is_documented():
    for frame in (schema.SPANS, schema.TRACKS, schema.INSTANTS, schema.COUNTERS, schema.FLOWS):
        assert list(frame.frame({}).columns) == frame.stored
        assert all(column.meaning for column in frame.columns)
        described = frame.describe()
        assert described.loc[described["name"].str.endswith("_ns"), "unit"].eq("ns").all()


def test_arrays_are_taken_and_defaults_fill_in():
    start = np.arange(3, dtype=np.int64)
    frame = schema.SPANS.frame(
        {
            "name": pd.Categorical.from_codes([0, 1, 0], ["a", "b"]),
            "kind": np.array([1, 5, 5], np.int8),
            "domain": "host",
            "track": 0,
            "start_ns": start,
            "dur_ns": np.ones(3, np.int64),
            "self_ns": np.ones(3, np.int64),
        }
    )
    assert np.shares_memory(frame["start_ns"].to_numpy(), start)
    assert frame["kind"].tolist() == ["operator", "kernel", "kernel"]
    assert frame["correlation"].isna().all()
    assert frame["run_id"].isna().all()
    assert frame["timing"].tolist() == ["measured"] * 3


def test_wrong_input_is_refused():
    with pytest.raises(KeyError, match="no column"):
        schema.SPANS.frame({"duration": np.zeros(1)})
    with pytest.raises(ValueError, match="has 2 rows"):
        schema.COUNTERS.frame(
            {"name": ["a"], "track": 0, "ts_ns": np.zeros(2, np.int64), "value": 1.0}, length=1
        )
    with pytest.raises(ValueError, match="cannot be"):
        schema.INSTANTS.frame({"name": ["a"], "track": 0, "ts_ns": 0, "kind": ["nonsense"]})
    with pytest.raises(ValueError, match="outside"):
        schema.INSTANTS.frame({"name": ["a"], "track": 0, "ts_ns": 0, "kind": np.array([99])})


def test_aggregates_have_no_start_and_are_left_out_of_the_time_axis():
    spans = schema.SPANS.frame(
        {
            "name": ["call", "layer"],
            "timing": ["measured", "aggregate"],
            "track": 0,
            "start_ns": pd.array([5, pd.NA], dtype="Int64"),
            "dur_ns": np.array([10, 1000], np.int64),
            "self_ns": np.array([10, 1000], np.int64),
        }
    )
    trace = Trace(spans=spans, tracks=schema.TRACKS.frame({"label": ["t"]}))
    assert trace.measured["name"].tolist() == ["call"]
    assert trace.measured["start_ns"].dtype == "int64"
    assert trace.duration_ns == 10
    assert "2 spans" in repr(trace)


def test_selection_keeps_links_whole():
    spans = schema.SPANS.frame(
        {
            "name": ["a", "b", "c"],
            "track": 0,
            "start_ns": np.array([0, 1, 2], np.int64),
            "dur_ns": np.array([10, 5, 2], np.int64),
            "self_ns": np.array([5, 3, 2], np.int64),
            "parent": np.array([-1, 0, 1], np.int64),
        }
    )
    flows = schema.FLOWS.frame({"name": ["f", "f"], "source": np.array([0, 0]), "target": np.array([2, 0])})
    trace = Trace(spans=spans, tracks=schema.TRACKS.frame({"label": ["t"]}), flows=flows)
    part = trace.select(trace.spans["name"].isin(["b", "c"]))
    assert part.spans["parent"].tolist() == [-1, 0]
    assert part.flows["source"].isna().tolist() == [True]
    assert part.flows["target"].tolist() == [1]
    with pytest.raises(ValueError, match="mask"):
        trace.select(np.array([True]))
