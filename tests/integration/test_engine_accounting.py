"""What the loaders of ETDump and engine files say became of a file, against a plain walk over its content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from slow_etdump import parse

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.files import kind_of

LEFT = "../shared/cases/outside is not beside this checkout"


def whole(accounting: dict[str, Any]) -> bool:
    return accounting["in_file"] == accounting["read"] + sum(accounting["left_out"].values()) + sum(
        accounting["unread"].values()
    )


def said(trace: Any) -> int:
    """Number of records or lines that warnings say were left out or not read."""
    codes = ("not_a_record", "not_a_layer", "left_out", "unread_lines", "no_time", "damaged")
    return sum(warning.count for warning in trace.meta["warnings"] if warning.code in codes)


# -- ETDump --------------------------------------------------------------------------------------------


def etdumps(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.rglob("*.etdp"))]


def test_every_event_of_every_etdump(corpus: Path, cases: Path) -> None:
    seen = 0
    for path in etdumps(corpus / "etdump", cases):
        try:
            trace = tv.load(path)
        except TraceFormatError:
            continue
        found = trace.meta["accounting"]
        assert whole(found), path.name
        assert sum(found["left_out"].values()) <= said(trace), path.name
        if "truncated" in path.name:
            continue
        runs = parse(path.read_bytes())
        profile = [event for run in runs for event in run["profile"]]
        debugs = sum(len(run["debug"]) for run in runs)
        allocations = sum(len(run["allocation"]) for run in runs)
        assert found["in_file"] == len(profile) + debugs + allocations, path.name
        assert found["events"]["debug"] == debugs
        assert found["events"]["allocations"] == allocations
        ticks = sum(event["end"] - event["start"] for event in profile)
        assert found["span_ns"] + found["ticks"] == ticks, path.name
        spans = trace.spans
        assert found["rows"]["spans"] == len(spans)
        assert found["span_ns"] == int(spans["dur_ns"][spans["timing"] != "ticks"].sum())
        seen += 1
    assert seen >= 25


def test_no_delegate_of_the_corpus_counts_another_clock(corpus: Path) -> None:
    for path in etdumps(corpus / "etdump"):
        try:
            trace = tv.load(path)
        except TraceFormatError:
            continue
        assert trace.meta["accounting"]["events"]["other_clock"] == 0, path.name


def test_cycles_take_no_time_of_the_host(cases: Path) -> None:
    path = cases / "outside/etdump_device_ticks/qnn_cycles.etdp"
    if not path.exists():
        pytest.skip(LEFT)
    trace = tv.load(path)
    spans = trace.spans
    assert spans["self_ns"][spans["name"] == "DELEGATE_CALL"].tolist() == [7_000_000] * 3
    cycles = spans[spans["name"].astype(str).str.endswith("(cycles)")]
    assert len(cycles) == 9
    assert cycles["domain"].isna().all()
    assert [trace.args[int(row)]["unit"] for row in cycles.index] == ["unknown"] * 9
    assert [(w.code, w.count) for w in trace.meta["warnings"]] == [("foreign_clock", 9)]
    answers = trace.questions()
    assert answers["measured"].iloc[3] == "no"
    assert "host time" not in answers["answer"].iloc[3]


# -- engine files --------------------------------------------------------------------------------------


def entries(kind: str, value: Any) -> int:
    """Count records as the files' writers do: entries of lists, keys of sections, readings."""
    if kind == "graph":
        if isinstance(value, list):
            return len(value)
        if "Layers" not in value and "LayerType" in value:
            return 1
        return sum(len(value.get(key, ())) for key in ("Layers", "Bindings", "I/O Tensors"))
    if kind == "metadata":
        return sum(len(section) for section in value.values())
    if kind == "readings":
        return sum(len(readings) for readings in value.values())
    if isinstance(value, dict) and "traceEvents" in value:
        value = value["traceEvents"]
    return len(value) if isinstance(value, list) else 1


def engine_files(*folders: Path) -> list[Path]:
    return [
        path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in (".json", ".trace", ".log")
    ]


def test_every_record_of_every_engine_file(corpus: Path, cases: Path) -> None:
    walked = 0
    folders = (corpus / "trex", cases / "trex", cases / "outside/trtexec_times_with_copies")
    for path in engine_files(*folders):
        try:
            trace = tv.load(path)
        except TraceFormatError:
            continue
        found = trace.meta["accounting"]
        assert whole(found), path.name
        assert sum(found["left_out"].values()) + sum(found["unread"].values()) <= said(trace), path.name
        assert found["span_ns"] == int(trace.spans["dur_ns"].sum())
        (file,) = found["files"]
        assert file["kind"] == kind_of(path.read_bytes()[: 64 << 10], path.name) or trace.meta["warnings"]
        try:
            value = json.loads(path.read_bytes())
        except ValueError:
            continue  # not the JSON that it should be: the lenient reader's tests count it
        assert found["in_file"] == entries(file["kind"], value), path.name
        if file["kind"] == "profile" and isinstance(value, list):
            times = [row["timeMs"] for row in value if isinstance(row, dict) and "timeMs" in row]
            if all(isinstance(time, (int, float)) for time in times):
                assert found["span_ns"] == pytest.approx(sum(times) * 1e6, abs=len(times) + 1)
        walked += 1
    assert walked >= 150


def test_lines_of_a_log_that_hold_data(corpus: Path) -> None:
    path = corpus / "trex/nvidia_cookbook/07-Tool__trtexec__result-05.log"
    found = tv.load(path).meta["accounting"]
    assert found["files"][0]["unit"] == "lines"
    assert found["unread"] == {}
    # counted by hand: options of model, system, inference and reporting, lines about the device, the layer
    # table with its total, and how long the engine took to load
    assert found["in_file"] == found["read"] == 3 + 6 + 22 + 9 + 14 + 16 + 1


def test_copies_and_computation_are_the_gpus_work(cases: Path) -> None:
    folder = cases / "outside/trtexec_times_with_copies/trex_layer_sum_below"
    if not folder.is_dir():
        pytest.skip(LEFT)
    trace = tv.load(folder)
    spans = trace.spans
    gpu = spans[(spans["domain"] == "gpu") & (spans["timing"] == "measured")]
    assert gpu["kind"].value_counts().loc[["phase", "memcpy"]].tolist() == [50, 100]
    # 5 ms of computation and two copies of 0.1 ms in each of 50 inferences, nothing nested in anything
    assert int(gpu["dur_ns"].sum()) == 50 * 5_200_000
    assert gpu["self_ns"].tolist() == gpu["dur_ns"].tolist()
    copies = tv.analysis.copies(trace).set_index("direction")["total_ns"]
    assert copies.to_dict() == {"host to device": 5_000_000, "device to host": 5_000_000}
    window = trace.duration_ns
    assert window == 49 * 6_000_000 + 5_300_000
    assert 0.835 <= gpu["dur_ns"].sum() / window <= 0.87
