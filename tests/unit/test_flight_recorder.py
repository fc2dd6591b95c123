"""A Flight Recorder's dump as a trace: spans, instants, the table of entries, and what became of them."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from flight_recorder_dumps import BASE_NS, MS, Job, old_document

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.flight_recorder.sniff import is_dump, world_size
from torchtrt_viz.formats.session.rank_names import read_dump_name


def job() -> Job:
    made = Job(2)
    made.call("all_reduce", [[16]])
    made.call("broadcast", [[4, 4], [2]], dtype="Long", at_ms=7)
    made.call("all_reduce", [[8]], state="started", at_ms=9, line=33)
    return made


def load(document: Any, name: str = "rank_1", folder: Path | None = None) -> tv.Trace:
    data = pickle.dumps(document, 2)
    if folder is None:
        found = tv.load(data)
    else:
        (folder / name).write_bytes(data)
        found = tv.load(folder / name)
    assert isinstance(found, tv.Trace)
    return found


def test_completed_collectives_are_spans_and_others_instants() -> None:
    trace = load(job().document(1))
    assert trace.meta["format"] == "flight_recorder"
    assert trace.meta["base_ns"] == BASE_NS + 1
    spans = trace.spans
    assert spans["name"].tolist() == ["nccl:all_reduce", "nccl:broadcast"]
    assert spans["start_ns"].tolist() == [0, 7 * MS]
    assert spans["dur_ns"].tolist() == [MS, MS]
    assert spans["kind"].unique().tolist() == ["communication"]
    # from the call to the moment at which the recorder looked: no time of the work itself, in no sum
    assert spans["timing"].unique().tolist() == ["modeled"]
    assert trace.measured.empty
    instants = trace.instants
    assert instants[["name", "ts_ns", "state"]].to_numpy().tolist() == [
        ["nccl:all_reduce", 9 * MS, "unfinished"]
    ]
    assert trace.instant_args[0]["source"] == "/home/someone/train.py:33 (step)"
    assert trace.args[1]["input_sizes"] == "[[4, 4], [2]]"
    assert trace.tracks["label"].tolist() == ["nccl default_pg 0"]


def test_every_entry_is_a_row_the_latest_first() -> None:
    table = load(job().document(1)).recorded_collectives()
    assert table["record"].tolist() == [2, 1, 0]
    assert table["sequence"].tolist() == [3, 2, 1]
    assert table["operation"].tolist() == ["all_reduce", "broadcast", "all_reduce"]
    assert table["input_types"].tolist() == ["float32", "int64", "float32"]
    assert table["state"].tolist() == ["started", "completed", "completed"]
    assert table["created_unix_ns"].tolist() == [BASE_NS + 1 + at * MS for at in (9, 7, 0)]
    assert table["completed_unix_ns"].isna().tolist() == [True, False, False]
    assert table["timeout_ns"].tolist() == [600 * 10**9] * 3
    assert table["stack"][0].count("\n") == 2


def test_what_became_of_every_entry() -> None:
    document = job().document(0)
    document["entries"] += ["no entry", {"record_id": 9, "profiling_name": "x", "later_field": 1}]
    document["nccl_comm_state"] = {"comm": {"rank": "0"}}
    trace = load(document)
    accounting = trace.meta["accounting"]
    assert accounting["in_file"] == 5
    assert accounting["read"] == 4
    assert accounting["left_out"] == {"no entry": 1}
    assert accounting["unread"] == {"nccl_comm_state": 1, "entries: later_field": 1}
    assert accounting["rows"] == {"spans": 2, "instants": 1, "entries": 4}
    assert accounting["span_ns"] == 2 * MS
    assert [warning.code for warning in trace.meta["warnings"]] == ["not_a_record", "no_time"]


def test_the_rank_is_the_names(tmp_path: Path) -> None:
    trace = load(job().document(1), "nccl_trace_rank_1", tmp_path)
    assert trace.meta["rank"] == 1
    assert trace.spans["rank"].tolist() == [1, 1]


def test_values_that_no_recorder_writes_are_not_believed() -> None:
    document = job().document(0)
    document["entries"][0] |= {
        "time_created_ns": -5,
        "input_sizes": [["a"]],
        "output_sizes": "[[1]]",
        "input_dtypes": [1],
        "state": 7,
        "retired": "yes",
        "frames": [{"filename": 1}, 5, {"filename": "a.py", "line": "x", "name": None}],
        "process_group": (1, 2, 3),
        "collective_seq_id": "3",
        "profiling_name": None,
        "duration_ms": float("nan"),
    }
    row = load(document).recorded_collectives().iloc[-1]
    missing = ["created_unix_ns", "input_sizes", "output_sizes", "input_types", "state", "retired"]
    assert row[[*missing, "sequence", "operation", "device_ns"]].isna().all()
    assert row["source"] == "a.py"
    assert row["group"] == "0"  # by its number
    document["entries"][0]["profiling_name"] = "nccl:\nall reduce"
    assert load(document).recorded_collectives()["operation"].iloc[-1] == "\nall reduce"


@pytest.mark.parametrize("version", [None, "1.0", "1.4"])
def test_older_versions_have_the_same_columns(version: str | None) -> None:
    trace = load(old_document(version, (0, 1), 3))
    table = trace.recorded_collectives()
    assert table["sequence"].tolist() == [3, 2, 1]
    assert table["group"].tolist() == ["0"] * 3
    assert table["input_types"].isna().all()
    assert len(trace.spans) == 3


def test_json_has_no_frames_and_writes_0_for_no_time(tmp_path: Path) -> None:
    job().write_json(tmp_path)
    path = tmp_path / "comm_lib_trace_rank_1.json"
    trace = tv.load(path)
    pickled = load(job().document(1))
    same = [name for name in pickled.recorded_collectives() if name not in ("source", "stack")]
    table, expected = trace.recorded_collectives(), pickled.recorded_collectives()
    assert table[same].astype(str).equals(expected[same].astype(str))
    assert table["source"].isna().all()
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert len(tv.load(tmp_path / "packed.json.gz").spans) == 2


def test_truncated_json_keeps_whole_entries(tmp_path: Path) -> None:
    job().write_json(tmp_path)
    data = (tmp_path / "comm_lib_trace_rank_1.json").read_bytes()
    cut = data.index(b'"record_id": 2')
    trace = tv.load(data[:cut])
    assert trace.meta["warnings"]
    assert trace.meta["flight_recorder"]["cut"]
    assert set(trace.recorded_collectives()["record"].dropna()) <= {0, 1}


def test_what_is_a_dump() -> None:
    for protocol in (2, 3, 4, 5):
        assert is_dump(pickle.dumps(job().document(0), protocol))
    assert is_dump(pickle.dumps(old_document(None, (0, 1), 1), 2))
    assert is_dump(json.dumps(job().document(0)).encode())
    memory = {"segments": [{"frames": [{"filename": "/x/pg_config.py", "name": "collective_seq_id_of"}]}]}
    assert not is_dump(pickle.dumps(memory, 4))
    assert not is_dump(b'{"traceEvents": [], "pg_status": {}}')
    assert not is_dump(pickle.dumps({"a": 1}))
    assert not is_dump(b"")


def test_a_dump_whose_lines_name_other_things_is_a_dump() -> None:
    document = job().document(0)
    document["entries"][0]["frames"][1]["filename"] = "/x/segments/device_traces.py"
    assert load(document).meta["format"] == "flight_recorder"


def test_other_pickles_are_refused_as_ever() -> None:
    with pytest.raises(TraceFormatError, match="memory snapshot"):
        tv.load(pickle.dumps({"segments": [], "device_traces": []}))
    with pytest.raises(TraceFormatError, match="no dump of a Flight Recorder"):
        tv.load(pickle.dumps([1, 2]), format="flight_recorder")


def test_the_number_of_ranks_is_told_by_the_beginning() -> None:
    assert world_size(pickle.dumps(Job(12).document(0), 2)) == 12
    assert world_size(b"[0, 2, 4]") is None
    assert world_size(b"") is None


@pytest.mark.parametrize(
    ("name", "rank", "host"),
    [
        ("nccl_trace_rank_0", 0, None),
        ("comm_lib_trace_rank_13", 13, None),
        ("nccl_trace_rank_container-node02_5", 5, "container-node02"),
        ("nccl_trace_rank_<container-node02>_5", 5, "container-node02"),
        ("trace_0", 0, None),
        ("rank_7.json.gz", 7, None),
        ("fr/node3/my_prefix_21.pkl", 21, "node3"),
        ("rank3/dump.pickle", 3, None),
        ("dump", None, None),
        ("nccl_trace_rank_99999999999", None, None),
    ],
)
def test_names(name: str, rank: int | None, host: str | None) -> None:
    found = read_dump_name(name)
    assert (found.what, found.rank, found.host or found.node) == ("dump", rank, host)
