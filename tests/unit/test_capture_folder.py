"""The folder of a saved capture, and the columns of engines in it: what is read, what hostile ones give."""

from __future__ import annotations

import json

import numpy as np
import pytest

import torchtrt_viz as tv
from torchtrt_viz.capture.foreign_engines import columns_of_others
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.capture.document import MARK, read_document, write_document
from torchtrt_viz.formats.capture.engine_columns import read_engine_columns
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.capture_folder import place_torch
from torchtrt_viz.model import schema
from torchtrt_viz.trace import Trace

BASE = 1_700_000_000_000_000_000


def columns(**changes):
    """Two engines; the second one's call ran on a device, and lies inside nothing."""
    document = {
        "engine": [0, 0, 0, 1],
        "call": [0, 0, 0, 0],
        "kind": [0, 1, 2, 2],
        "name": [0, 1, 2, 2],
        "start_ns": [100, 110, 120, 130],
        "end_ns": [200, 190, 150, 170],
        "thread": [7, 7, 7, 7],
        "timing": [0, 0, 1, 2],
        "on_device": [0, 0, 0, 1],
        "names": ["torchtrt.delegate", "torchtrt.enqueue_host", "layer_0000_add.out"],
        "labels": ["torchtrt.delegate", "torchtrt.enqueue_host", "add"],
        "timings": ["measured", "laid_out", "device"],
        "engines": [
            {"engine_id": "e0", "instance": 0, "runtime": "host", "method": "forward", "owner": "executorch"},
            {"engine_id": "e1", "instance": 0, "runtime": "tensorrt", "method": "", "owner": "torch"},
        ],
        "dropped": 0,
        "anchor": {"monotonic_ns": 50, "unix_ns": BASE + 50},
    }
    document.update(changes)
    return document


def read(document, **options):
    return read_engine_columns(
        Source("engines.json", data=json.dumps(document).encode()), LoadOptions(**options)
    )


def test_columns_become_spans_with_nesting_device_and_engine():
    trace = read(columns())
    spans = trace.spans
    assert spans["name"].tolist() == ["torchtrt.delegate", "torchtrt.enqueue_host", "add", "add"]
    assert spans["kind"].tolist() == ["delegate", "phase", "layer", "layer"]
    assert spans["parent"].tolist() == [-1, 0, 1, -1]
    assert spans["self_ns"].tolist() == [20, 50, 30, 40]
    assert spans["domain"].tolist() == ["host", "host", "host", "gpu"]
    # neither laid end to end, nor the device's own time, is a place that was observed
    assert spans["timing"].tolist() == ["measured", "measured", "modeled", "modeled"]
    assert spans["run_id"].tolist() == ["e0", "e0", "e0", "e1"]
    assert trace.tracks["domain"].tolist() == ["host", "gpu"]
    assert trace.meta["base_ns"] == BASE
    assert trace.args[3] == {
        "id": "layer_0000_add.out",
        "timing": "device",
        "call": 0,
        "engine": "e1",
        "engine_runtime": "tensorrt",
        "backend": "TensorRTBackend",
        "method": "",
        "owner": "torch",
    }


def test_what_was_dropped_is_reported():
    assert [w.count for w in read(columns(dropped=5)).meta["warnings"]] == [5]
    with pytest.raises(TraceFormatError, match="dropped"):
        read(columns(dropped=5), strict=True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"engine": [0, 0, 0, 2]}, "engine"),
        ({"name": [0, 1, 2, -1]}, "name"),
        ({"kind": [0, 1, 2, 3]}, "kind"),
        ({"timing": [0, 0, 0, 9]}, "timing"),
        ({"call": [0, 0, 0]}, "call"),
        ({"call": "0000"}, "call"),
        ({"start_ns": [100, 110, 120, 1 << 70]}, "start_ns"),
        ({"end_ns": [200, 190, 150, 100]}, "end_ns"),
        ({"start_ns": [1.5, 110, 120, 130]}, "start_ns"),
        ({"labels": ["one"]}, "labels"),
        ({"engines": ["e0", "e1"]}, "engines"),
        ({"names": None}, "names"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(changes, said):
    with pytest.raises(TraceFormatError, match=said):
        read(columns(**changes))


@pytest.mark.parametrize("text", [b"", b"[", b"[]", b"null", b"\xff\xfe", b'{"engine": [0]}'])
def test_other_documents_are_refused(text):
    with pytest.raises(TraceFormatError):
        read_engine_columns(Source("engines.json", data=text), LoadOptions())


def native_columns():
    document = columns()
    for key in ("engine", "call", "kind", "name", "start_ns", "end_ns", "thread", "timing", "on_device"):
        document[key] = np.array(document[key])
    return document


def test_engines_that_recorded_themselves_are_left_out():
    kept = columns_of_others(native_columns(), {("e0", 0)}, {"monotonic_ns": 0, "unix_ns": BASE})
    assert kept["engines"] == [columns()["engines"][1]]
    assert kept["names"] == ["layer_0000_add.out"]
    trace = read(kept)
    assert trace.spans["run_id"].tolist() == ["e1"]
    assert columns_of_others(native_columns(), {("e0", 0), ("e1", 0)}, {}) is None
    # the same engine in another instance is another engine
    assert len(columns_of_others(native_columns(), {("e0", 1)}, {"unix_ns": 0})["engine"]) == 4


def document(**changes):
    made = {
        "format": "torchtrt_viz.capture",
        "version": 1,
        "begin_unix_ns": BASE,
        "end_unix_ns": BASE + 1000,
        "options": {"level": "phases"},
        "error": None,
        "problems": ["no torch activity: made up"],
        "programs": [],
        "torch": None,
        "engines": "engines.json",
        "versions": {"executorch": "1.5.1"},
    }
    made.update(changes)
    return made


def write(folder, made, **files):
    (folder / "capture.json").write_text(json.dumps(made))
    for name, content in files.items():
        (folder / name.replace("_json", ".json")).write_text(json.dumps(content))


def test_a_folder_is_one_trace(tmp_path):
    write(tmp_path, document(), engines_json=columns())
    trace = tv.load(tmp_path)
    assert isinstance(trace, Trace)
    assert trace.meta["base_ns"] == BASE
    assert trace.spans["start_ns"].tolist() == [100, 110, 120, 130]
    assert [w.code for w in trace.meta["warnings"]] == ["not_captured"]
    assert trace.meta["versions"]["executorch"] == "1.5.1"


def test_the_document_in_a_list_stands_for_its_folder(tmp_path):
    write(tmp_path, document(), engines_json=columns())
    assert tv.load([tmp_path / "capture.json"]).spans["start_ns"].tolist() == [100, 110, 120, 130]


def test_a_document_that_is_written_is_read_again(tmp_path):
    (tmp_path / "engines.json").write_text(json.dumps(columns()))
    path = write_document(
        tmp_path,
        begin_unix_ns=BASE,
        end_unix_ns=BASE + 1000,
        options={"level": "phases"},
        versions={"executorch": "1.5.1"},
        error="ValueError: no",
        problems=["no torch activity: made up"],
        engines="engines.json",
    )
    made = document(error="ValueError: no", layer_sets=[], start_seconds=None, stop_seconds=None)
    assert read_document(Source(path)) == json.loads(path.read_text()) == made
    trace = tv.load(tmp_path)
    assert trace.meta["capture"]["error"] == "ValueError: no"
    assert trace.spans["start_ns"].tolist() == [100, 110, 120, 130]


def test_a_recording_that_is_gone_is_reported_and_the_rest_loaded(tmp_path):
    made = document(programs=[{"etdump": "gone.etdp", "etrecord": None}], problems=[])
    write(tmp_path, made, engines_json=columns())
    trace = tv.load(tmp_path)
    assert len(trace.spans) == 4
    assert [w.code for w in trace.meta["warnings"]] == ["recording_unreadable"]
    with pytest.raises(TraceFormatError):
        tv.load(tmp_path, strict=True)


@pytest.mark.parametrize("name", ["../secret.etdp", "/etc/passwd", "a/b.etdp", "..", ".", "", 5, None])
def test_names_that_lead_out_of_the_folder_are_not_followed(tmp_path, name):
    outside = tmp_path / "secret.etdp"
    outside.write_bytes(b"x")
    folder = tmp_path / "run"
    folder.mkdir()
    write(folder, document(programs=[{"etdump": name}], problems=[]), engines_json=columns())
    trace = tv.load(folder)
    assert [w.code for w in trace.meta["warnings"]] == ["recording_unreadable"]
    assert "leads out of the folder" in trace.meta["warnings"][0].message


def test_a_document_of_a_later_version_is_refused(tmp_path):
    write(tmp_path, document(version=2), engines_json=columns())
    with pytest.raises(TraceFormatError, match="another version"):
        tv.load(tmp_path)


def test_a_damaged_document_is_refused(tmp_path):
    (tmp_path / "capture.json").write_text('{"format": "torchtrt_viz.capture", ')
    with pytest.raises(TraceFormatError, match="not JSON"):
        tv.load(tmp_path)


def test_somebody_elses_capture_json_is_none_of_ours(tmp_path):
    (tmp_path / "capture.json").write_text('{"format": "something else"}')
    (tmp_path / "trace.json").write_text(
        '{"traceEvents": [{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]}'
    )
    loaded = tv.load(tmp_path)
    assert loaded.spans["name"].tolist() == ["a"]


def torch_trace(starts, base=BASE):
    names = [MARK] * len(starts) + ["aten::add"]
    times = [*starts, 50]
    spans = schema.SPANS.frame(
        {
            "name": names,
            "kind": ["operator"] * len(names),
            "track": 0,
            "start_ns": times,
            "dur_ns": 1,
            "self_ns": 1,
        },
        length=len(names),
    )
    tracks = schema.TRACKS.frame({"label": ["t"], "process": ["1"], "thread": ["1"]})
    return Trace(spans=spans, tracks=tracks, meta={"format": "kineto", "base_ns": base, "clock": "unix"})


@pytest.mark.parametrize(
    ("marks", "shift", "within"),
    [
        # inside of both intervals: nothing to do
        ([(0, 20), (90, 120)], 0, 20),
        # torch is 1000 early and late: it is moved by the least that fits both
        ([(1005, 1020), (1090, 1120)], 995, 15),
        ([(-990, -980), (-910, -890)], -990, 10),
    ],
)
def test_torchs_clock_is_checked_by_the_marks_and_moved_if_it_is_off(marks, shift, within):
    placed = place_torch(torch_trace([10, 100]), [(BASE + a, BASE + b) for a, b in marks])
    assert placed.meta["base_ns"] == BASE + shift
    assert placed.spans["name"].tolist() == ["aten::add"]
    assert f"right to within {within} ns" in placed.meta["clock"]
    assert ("moved by" in placed.meta["clock"]) == (shift != 0)


def test_a_recording_without_our_marks_is_somebody_elses():
    placed = place_torch(torch_trace([]), [(BASE, BASE + 1)])
    assert [w.code for w in placed.meta["warnings"]] == ["not_captured"]
    assert placed.meta["base_ns"] == BASE
