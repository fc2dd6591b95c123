"""Every reference ETDump, value by value against a slow reader, and against executorch's Inspector."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from slow_etdump import parse

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.etdump.tensor import debug_tensor

REFUSED = ("truncated_", "bad_root_offset", "bad_vector_len", "empty", "not_etdump")
RECORD_OF = {
    "cnn_xnnpack_300runs": "cnn_xnnpack",
    "cnn_xnnpack_debug": "cnn_xnnpack",
    "native_cnn_10runs": "cnn_xnnpack",
    "native_debug": "cnn_xnnpack",
    "native_methodonly": "cnn_xnnpack",
    "probe_init_event": "probe_phases",
    "probe_failing": "probe_phases",
    "probe_12layers": "probe_layers",
    "probe_option_phases": "probe_layers",
}


def dumps(corpus: Path, refused: bool) -> list[Path]:
    found = [p for p in sorted((corpus / "etdump").glob("*.etdp")) if p.name.startswith(REFUSED) == refused]
    assert found
    return found


def record_of(path: Path) -> Path | None:
    record = path.with_name(RECORD_OF.get(path.stem, path.stem) + ".etrecord")
    return record if record.exists() else None


def test_every_value_equals_a_slow_parse(corpus: Path) -> None:
    for path in dumps(corpus, refused=False):
        trace = tv.load(path)
        runs = parse(path.read_bytes())
        expected = [(run, event) for run, found in enumerate(runs) for event in found["profile"]]
        spans = trace.spans
        assert len(spans) == len(expected), path.name
        args = trace.args.read()
        for row, (run, event) in enumerate(expected):
            where = f"{path.name} row {row}"
            got = args[row]
            names = {event["name"], event["delegate_name"], f"#{event['delegate_id']}"} - {None}
            if event["name"] is None and event["delegate_name"] == "":
                names.add("(no name)")
            assert spans["name"].iloc[row] in names, where
            assert spans["start_ns"].iloc[row] == event["start"], where
            assert spans["dur_ns"].iloc[row] == event["end"] - event["start"], where
            assert got["block"] == run, where
            assert got["chain"] == event["chain"], where
            if event["chain"] >= 0:
                assert got["instruction"] == event["instruction"], where
            if event["delegate_name"] is not None:
                assert got["delegate_debug_id"] == event["delegate_name"], where
            elif event["delegate_id"] != -1:
                assert got["delegate_debug_id"] == event["delegate_id"], where
            if event["metadata"].startswith(b"{"):
                facts = json.loads(event["metadata"])
                assert {key: {**got, **got.get("metadata", {})}[key] for key in facts} == facts, where
        frame = trace.meta["etdump"]["runs"]
        assert frame["name"].tolist() == [run["name"] for run in runs]
        assert frame["bundled_input"].tolist() == [run["bundled"] for run in runs]
        assert frame["events"].tolist() == [len(run["profile"]) for run in runs]
        executions = [i for i, run in enumerate(runs) if run["name"] != "Default"]
        assert frame.index[frame["iteration"] >= 0].tolist() == executions
        ended = [any(e["name"] == "Method::execute" for e in runs[i]["profile"]) for i in executions]
        assert (frame["status"][executions] == "ok").tolist() == ended


def test_logged_values_and_allocations_equal_a_slow_parse(corpus: Path) -> None:
    seen = 0
    for path in dumps(corpus, refused=False):
        trace = tv.load(path)
        runs = parse(path.read_bytes())
        expected = [(run, value) for run, found in enumerate(runs) for value in found["debug"]]
        args = [a for a in trace.instant_args.read() if "value_type" in a]
        assert len(args) == len(expected)
        for got, (run, value) in zip(args, expected, strict=True):
            assert got["block"] == run
            assert got["chain"] == value["chain"]
            assert got.get("output") == value["output"]
            tensor = value["tensor"]
            assert (got["sizes"], got["strides"], got["offset"]) == (
                tensor["sizes"],
                tensor["strides"],
                tensor["offset"],
            )
            seen += 1
        sizes = [size for run in runs for _, _, size in run["allocation"]]
        assert trace.meta["etdump"]["allocations"]["bytes"].tolist() == sizes
    assert seen >= 20


def test_logged_tensors_hold_what_the_program_computed(corpus: Path) -> None:
    """The last value of each run is the softmax's cumulative sum: it rises to 1."""
    trace = tv.load(corpus / "etdump" / "native_debug.etdp")
    buffer = (corpus / "etdump" / "native_debug.bin").read_bytes()
    outputs = [a for a in trace.instant_args.read() if a.get("output")]
    assert outputs
    for args in outputs:
        values = debug_tensor(args, buffer)
        assert values.shape == (1, 10)
        assert (np.diff(values[0]) >= 0).all()
        assert values[0, -1] == pytest.approx(1, abs=1e-5)


def test_the_tree_is_sound(corpus: Path) -> None:
    """Parents lie in the same run and track, measured children lie in them, self times add up."""
    for path in dumps(corpus, refused=False):
        spans = tv.load(path).spans
        parent = spans["parent"].to_numpy()
        start = spans["start_ns"].to_numpy()
        end = start + spans["dur_ns"].to_numpy()
        child = np.flatnonzero(parent >= 0)
        above = parent[child]
        measured = (spans["timing"] == "measured").to_numpy()
        iterations = spans["iteration"].fillna(-1).to_numpy()
        assert (iterations[child] == iterations[above]).all()
        assert (spans["track"].to_numpy()[child] == spans["track"].to_numpy()[above]).all()
        real = measured[child]
        assert measured[above[real]].all()
        assert (start[child[real]] >= start[above[real]]).all()
        assert (end[child[real]] <= end[above[real]]).all()
        assert (spans["self_ns"] >= 0).all()
        if measured.all():
            methods = spans[spans["kind"] == "method"]
            inside = spans[spans["iteration"] >= 0]
            if len(methods) == inside["iteration"].nunique():
                assert inside["self_ns"].sum() == methods["dur_ns"].sum()


def test_delegates_contain_what_they_logged(corpus: Path) -> None:
    trace = tv.load(corpus / "etdump" / "probe_layers.etdp")
    spans = trace.spans
    kind = spans["kind"].astype(object)
    names = spans["name"].astype(object)
    parent = spans["parent"].to_numpy()
    for row in np.flatnonzero(kind == "phase"):
        assert names[parent[row]] == "torchtrt.delegate"
    for row in np.flatnonzero(names == "torchtrt.delegate"):
        assert names[parent[row]] == "DELEGATE_CALL"
    for row in np.flatnonzero(kind == "layer"):
        assert names[parent[row]] == "torchtrt.delegate"
        assert spans["timing"].iloc[row] == "modeled"
    for row in np.flatnonzero(names == "DELEGATE_CALL"):
        assert names[parent[row]] == "Method::execute"


def test_xnnpack_operators_stay_with_their_call(corpus: Path) -> None:
    spans = tv.load(corpus / "etdump" / "mv2q_xnnpack.etdp").spans
    layers = spans[spans["kind"] == "layer"]
    assert set(layers["timing"]) == {"modeled"}
    assert (spans["name"].astype(object)[layers["parent"]] == "DELEGATE_CALL").all()
    assert len(layers) == 340


def test_init_events_lie_in_the_loading_of_the_method(corpus: Path) -> None:
    spans = tv.load(corpus / "etdump" / "probe_init_event.etdp").spans
    loads = np.flatnonzero(spans["name"] == "torchtrt.load")
    assert len(loads) == 2
    for row in loads:
        assert pd.isna(spans["iteration"].iloc[row])
        assert spans["name"].iloc[spans["parent"].iloc[row]] == "Method::init"


def test_failed_runs(corpus: Path) -> None:
    trace = tv.load(corpus / "etdump" / "probe_failing.etdp")
    assert trace.meta["etdump"]["runs"]["status"].tolist() == ["load", "ok", "unfinished", "unfinished", "ok"]
    assert trace.instants["state"].tolist() == ["unfinished", "unfinished"]


@pytest.mark.parametrize("strict", [False, True])
def test_what_cannot_be_read_is_refused_with_a_place(corpus: Path, strict: bool) -> None:
    for path in dumps(corpus, refused=True):
        with pytest.raises(TraceFormatError) as caught:
            tv.load(path, format="etdump", strict=strict)
        assert str(path) in str(caught.value)
        assert caught.value.offset is not None
        assert caught.value.hint


def test_a_name_that_is_not_utf8_costs_that_name_only(corpus: Path) -> None:
    trace = tv.load(corpus / "etdump" / "bad_utf8_name.etdp")
    assert [warning.code for warning in trace.meta["warnings"]] == ["invalid_text"]
    with pytest.raises(TraceFormatError, match="UTF-8"):
        tv.load(corpus / "etdump" / "bad_utf8_name.etdp", strict=True)


def test_records_explain_their_own_dumps_only(corpus: Path) -> None:
    folder = corpus / "etdump"
    for name in ("cnn_xnnpack_300runs", "encoder_xnnpack", "mv2q_portable", "probe_phases"):
        path = folder / f"{name}.etdp"
        own = record_of(path)
        assert own is not None
        assert tv.load(path, etrecord=own).meta["warnings"] == []
        for other in ("two_prefill_decode", "dynamic_xnnpack", "mv2q_xnnpack"):
            trace = tv.load(path, etrecord=folder / f"{other}.etrecord")
            assert [warning.code for warning in trace.meta["warnings"]] == ["wrong_etrecord"], (name, other)


def test_two_methods_in_one_record(corpus: Path) -> None:
    folder = corpus / "etdump"
    trace = tv.load(folder / "two_prefill_decode.etdp", etrecord=folder / "two_prefill_decode.etrecord")
    assert trace.meta["warnings"] == []
    runs = trace.meta["etdump"]["runs"]
    methods = runs["method"][runs["iteration"] >= 0].tolist()
    assert methods == ["prefill", "decode", "decode", "decode", "decode", "prefill"]
    tanh = int(np.flatnonzero(trace.spans["name"] == "native_call_tanh.out")[0])
    assert trace.args[tanh]["op_types"] == ["aten.tanh.default"]
    assert trace.args[tanh]["source"].endswith("make_corpus.py:59")


INSPECT = """
import json, logging, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from executorch.devtools import Inspector
out = {}
for name, record in json.loads(sys.argv[1]):
    inspector = Inspector(etdump_path=name, etrecord=record)
    out[name] = [
        [block.name, [
            [event.name, event.delegate_debug_identifier, event._instruction_id, event.perf_data.raw,
             [list(ops) for ops in [event.op_types]][0], event.start_time]
            for event in block.events]]
        for block in inspector.event_blocks]
sys.stdout.write("RESULT" + json.dumps(out))
"""

UNREADABLE_FOR_INSPECTOR = {"alloc", "bad_utf8_name", "noprefix", "two_prefill_decode", "map_portable"}


@pytest.mark.slow
@pytest.mark.skipif(find_spec("executorch") is None, reason="executorch is not installed")
def test_names_durations_and_operator_types_equal_inspectors(corpus: Path) -> None:
    """Inspector merges runs and keeps the last of events that repeat within a run; we keep all."""
    paths = [p for p in dumps(corpus, refused=False) if p.stem not in UNREADABLE_FOR_INSPECTOR]
    jobs = []
    for path in paths:
        record = record_of(path)
        mapped = record is not None and not tv.load(path, etrecord=record).meta["warnings"]
        jobs.append((str(path), str(record) if mapped else None))
    done = subprocess.run(
        [sys.executable, "-c", INSPECT, json.dumps(jobs)], capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr[-2000:]
    inspected = json.loads(done.stdout.split("RESULT", 1)[1])
    compared = mapped_events = 0
    for name, record in jobs:
        trace = tv.load(name, etrecord=record)
        args = trace.args.read()
        for block, events in inspected[name]:
            for event_name, identifier, instruction, raw, op_types, start_ticks in events:
                rows = [
                    row
                    for row, found in enumerate(args)
                    if found["block_name"] == block
                    and found.get("delegate_debug_id") == identifier
                    and (found["chain"] < 0 or found["instruction"] == instruction)
                    and (identifier is not None or trace.spans["name"].iloc[row] == event_name)
                ]
                in_ms = [int(trace.spans["dur_ns"].iloc[row]) / 1e6 for row in rows]
                for value in raw:
                    assert any(value == pytest.approx(got, abs=1e-9) for got in in_ms), (name, event_name)
                assert {int(trace.spans["start_ns"].iloc[row]) for row in rows} >= set(start_ticks)
                compared += len(raw)
                if record is not None and args[rows[0]]["chain"] >= 0 and not _by_substring(trace, rows[0]):
                    ours = [op for op in args[rows[0]].get("op_types", [])]
                    assert set(ours) == set(op_types), (name, event_name, identifier)
                    mapped_events += bool(ours)
    assert compared > 4000
    assert mapped_events > 200


def _by_substring(trace: Any, row: int) -> bool:
    """Whether Inspector would find the identifier only as a part of another one."""
    found = trace.args[row]
    return "delegate_debug_id" in found and "op_types" not in found
