"""Several recordings of one process become one trace, with every link kept inside its recording."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from torchtrt_viz.errors import OptionError, TorchTrtVizError
from torchtrt_viz.model import schema
from torchtrt_viz.model.args import MappingArgs
from torchtrt_viz.model.merge import merge
from torchtrt_viz.trace import Repair, Trace


def trace_of(names, starts, *, base, format, parents=None, correlation=None, tracks=1, run_id=None, **more):
    spans = schema.SPANS.frame(
        {
            "name": names,
            "kind": ["operator"] * len(names),
            "track": [i % tracks for i in range(len(names))],
            "start_ns": starts,
            "dur_ns": [10] * len(names),
            "self_ns": [10] * len(names),
            "parent": parents or [-1] * len(names),
            "correlation": correlation or [-1] * len(names),
            "run_id": run_id,
        }
    )
    table = schema.TRACKS.frame(
        {"label": [f"{format}{i}" for i in range(tracks)], "process": None, "thread": None}
    )
    return Trace(
        spans=spans,
        tracks=table,
        meta={"format": format, "sources": [f"{format}.file"], "base_ns": base, "clock": "wall clock"},
        args=MappingArgs([{"from": format, "row": i} for i in range(len(names))]),
        **more,
    )


def test_times_are_placed_by_the_bases_and_links_stay_inside():
    one = trace_of(["a", "b"], [0, 5], base=1_000, format="kineto", parents=[-1, 0], correlation=[7, -1])
    two = trace_of(
        ["b", "c"], [1, 2], base=400, format="etdump", parents=[1, -1], correlation=[7, 3], tracks=2
    )
    merged = merge([one, two])
    assert merged.meta["base_ns"] == 400
    spans = merged.spans
    assert spans["name"].tolist() == ["a", "b", "b", "c"]
    # 1000 + 0 and 1000 + 5 seen from 400; 400 + 1 and 400 + 2 seen from 400
    assert spans["start_ns"].tolist() == [600, 605, 1, 2]
    assert spans["parent"].tolist() == [-1, 0, 3, -1]
    assert spans["track"].tolist() == [0, 0, 1, 2]
    assert merged.tracks["label"].tolist() == ["kineto0", "etdump0", "etdump1"]
    linked = spans["correlation"].tolist()
    assert linked[0] == 7
    assert linked[1] is pd.NA
    # correlation 7 of the other recorder is another one
    assert len({linked[0], linked[2], linked[3]}) == 3
    assert [merged.args[row]["from"] for row in range(4)] == ["kineto", "kineto", "etdump", "etdump"]
    assert merged.args.read(np.array([3, 0, 2])) == [
        {"from": "etdump", "row": 1},
        {"from": "kineto", "row": 0},
        {"from": "etdump", "row": 0},
    ]
    assert merged.meta["sources"] == ["kineto.file", "etdump.file"]
    assert [part["first_span"] for part in merged.meta["parts"]] == [0, 2]


def test_a_base_can_be_chosen():
    one = trace_of(["a"], [10], base=1_000, format="kineto")
    two = trace_of(["b"], [0], base=400, format="etdump")
    merged = merge([one, two], base_ns=1_005)
    assert merged.meta["base_ns"] == 1_005
    assert merged.spans["start_ns"].tolist() == [5, -605]


def test_a_recording_without_base_is_left_out_and_reported():
    placed = trace_of(["a"], [0], base=10, format="kineto")
    lost = trace_of(["x"], [0], base=None, format="etdump")
    merged = merge([placed, lost])
    assert merged.spans["name"].tolist() == ["a"]
    assert merged.meta["unaligned"] == [["etdump.file"]]
    assert [w.code for w in merged.meta["warnings"]] == ["unaligned"]
    assert merged.meta["warnings"][0].path == "etdump.file"


def test_no_base_at_all_is_an_error_that_names_the_way_out():
    lost = [trace_of(["x"], [3], base=None, format=name) for name in ("etdump", "kineto")]
    with pytest.raises(TorchTrtVizError, match="align='start'"):
        merge(lost)
    merged = merge(lost, align="start")
    assert merged.spans["start_ns"].tolist() == [0, 0]
    assert "not aligned" in merged.meta["clock"]
    assert merged.meta["base_ns"] is None


def test_aggregates_need_no_base_and_keep_no_place():
    placed = trace_of(["a"], [4], base=10, format="kineto")
    sums = trace_of(["layer"], pd.array([pd.NA], dtype="Int64"), base=None, format="trex")
    sums.spans["timing"] = pd.Categorical(["aggregate"], categories=list(schema.TIMINGS))
    merged = merge([placed, sums])
    assert merged.spans["start_ns"].tolist() == [4, pd.NA]
    assert str(merged.spans["start_ns"].dtype) == "Int64"
    assert merged.measured["name"].tolist() == ["a"]
    assert merged.meta["warnings"] == []


def test_run_ids_instants_counters_and_flows_are_carried():
    def full(name, base, run_id):
        return trace_of(
            ["a", "b"],
            [0, 1],
            base=base,
            format=name,
            run_id=run_id,
            instants=schema.INSTANTS.frame({"name": ["i"], "track": [0], "ts_ns": [2]}),
            counters=schema.COUNTERS.frame({"name": ["c"], "track": [0], "ts_ns": [3], "value": [1.5]}),
            flows=schema.FLOWS.frame({"name": ["ac2g"], "source": [0], "target": [-1], "id": [0]}),
        )

    merged = merge([full("kineto", 0, None), full("etdump", 100, ["e1", "e2"])])
    assert merged.spans["run_id"].isna().tolist() == [True, True, False, False]
    assert merged.spans["run_id"].tolist()[2:] == ["e1", "e2"]
    assert merged.instants["ts_ns"].tolist() == [2, 102]
    assert merged.instants["track"].tolist() == [0, 1]
    assert merged.counters["ts_ns"].tolist() == [3, 103]
    assert merged.flows["source"].tolist() == [0, 2]
    assert merged.flows["target"].isna().tolist() == [True, True]
    assert merged.flows["id"].tolist() == [0, 1]
    part = full("etdump", 100, ["e1", "e2"])
    for name, expected in (
        ("spans", schema.SPANS),
        ("instants", schema.INSTANTS),
        ("counters", schema.COUNTERS),
        ("flows", schema.FLOWS),
        ("tracks", schema.TRACKS),
    ):
        frame = getattr(merged, name)
        assert list(frame.columns) == expected.stored
        of_part = getattr(part, name)[expected.stored]
        assert frame.dtypes.astype(str).to_dict() == of_part.dtypes.astype(str).to_dict()
    assert list(merged.spans["kind"].cat.categories) == list(schema.KINDS)


def test_warnings_and_synthetic_are_kept():
    one = trace_of(["a"], [0], base=0, format="kineto")
    two = trace_of(["b"], [0], base=0, format="etdump")
    two.meta["warnings"] = [Repair("truncated", "the file ends early")]
    two.meta["synthetic"] = True
    merged = merge([one, two])
    assert [w.code for w in merged.meta["warnings"]] == ["truncated"]
    assert merged.meta["synthetic"] is True


@pytest.mark.parametrize(("traces", "align"), [([], "clock"), (["one"], "wall")])
def test_wrong_arguments_are_refused(traces, align):
    with pytest.raises(OptionError):
        merge([trace_of(["a"], [0], base=0, format="kineto") for _ in traces], align=align)


def test_an_empty_recording_adds_nothing():
    merged = merge(
        [trace_of(["a"], [0], base=5, format="kineto"), trace_of([], [], base=None, format="etdump")]
    )
    assert merged.spans["name"].tolist() == ["a"]
    assert merged.meta["unaligned"] == []
