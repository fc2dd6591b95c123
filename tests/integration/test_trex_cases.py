"""Each small hard input about an engine gives the value, or the message, that stands beside it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.files import load
from torchtrt_viz.formats.engine.file_set import EngineInfo, read_set
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.trace import Trace


@pytest.fixture
def folder(cases: Path) -> Path:
    return cases / "trex"


def engine_of(path: Path) -> tuple[EngineInfo, Trace]:
    trace = load(path)
    assert isinstance(trace, Trace)
    (engine,) = trace.meta["engines"]
    return engine, trace


def codes(trace: Trace) -> list[str]:
    return [repair.code for repair in trace.meta["warnings"]]


def joined(*paths: Path) -> tuple[EngineInfo, Trace]:
    trace = read_set([Source(p) for p in paths], LoadOptions())
    (engine,) = trace.meta["engines"]
    return engine, trace


def test_names_only_engine_says_how_to_get_more(folder):
    engine, trace = engine_of(folder / "g01_strings_names_only.graph.json")
    assert list(engine.layers["name"]) == [
        "Reformatting CopyNode for Input Tensor 0 to a + b",
        "a + b",
        "(Unnamed Layer* 14) [Shuffle]",
        "copied_squeeze_after_c",
    ]
    assert engine.layers["type"].isna().all()
    assert list(engine.layers["role"]) == ["reformat", "unknown", "unknown", "shape"]
    assert engine.verbosity == "layer_names_only"
    assert list(engine.bindings["name"]) == ["x:0", "z:0"]
    assert "profilingVerbosity=detailed" in engine.notes[0]
    assert len(trace.spans) == 0
    assert codes(trace) == []


def test_engine_without_layer_information_loads_with_a_hint(folder):
    engine, _ = engine_of(folder / "g02_verbosity_none.graph.json")
    assert len(engine.layers) == 0
    assert engine.verbosity == "none"
    assert list(engine.bindings["name"]) == ["x", "y"]
    assert "profilingVerbosity=detailed" in " ".join(engine.notes)


def test_tensorrt_8_2_has_no_bindings_and_gets_them_from_its_tensors(folder):
    engine, _ = engine_of(folder / "g03_no_bindings_trt82.graph.json")
    row = engine.layers.iloc[0]
    # 1x8 Int8 in, 1x8 Half out, 64 Int8 weights
    assert (row["in_bytes"], row["out_bytes"], row["weights_bytes"]) == (8, 16, 64)
    assert (row["precision"], row["in_dtypes"], row["out_dtypes"]) == ("INT8", "INT8", "FP16")
    assert row["tactic_value"] == "0x1"
    assert row["attributes"]["AllowSparse"] == 0
    assert dict(zip(engine.bindings["name"], engine.bindings["direction"], strict=True)) == {
        "x": "input",
        "conv1_o": "output",
    }


def test_tensorrt_11_has_tensors_in_full(folder):
    engine, _ = engine_of(folder / "g04_trt11_io_tensors.graph.json")
    x, y = (engine.bindings.iloc[i] for i in (0, 1))
    assert (x["name"], x["direction"], x["dtype"], x["shape"]) == ("x", "input", "BF16", "-1x8")
    assert (x["min_shape"], x["opt_shape"], x["max_shape"]) == ("1x8", "4x8", "8x8")
    assert pd.isna(x["bytes"])
    assert (y["direction"], y["format"]) == ("output", "Linear")
    row = engine.layers.iloc[0]
    assert (row["in_dtypes"], row["in_bytes"], row["stream"]) == ("BF16", 16, 0)
    assert row["operators"] == ("a", "b")
    assert row["inputs"][0].format == "Linear"
    assert "2 recorded operators" in row["explanation"]


def test_raw_control_characters_of_8_6_early_access(folder):
    engine, trace = engine_of(folder / "g06_raw_control_chars_trt86ea.graph.json")
    assert engine.layers["operators"].iloc[0] == ("a", "b")
    assert codes(trace) == []


def test_separators_inside_names_and_metadata(folder):
    engine, _ = engine_of(folder / "g07_escaped_1e_1f_metadata.graph.json")
    assert engine.layers["name"].iloc[0] == "a\x1fb"
    assert engine.layers["operators"].iloc[0] == ("a", "b", "c")


def test_trailing_commas_are_mended_and_counted(folder):
    engine, trace = engine_of(folder / "g08_trailing_commas.graph.json")
    assert engine.layers["in_shapes"].iloc[0] == "1x8"
    assert engine.layers["in_bytes"].iloc[0] == 16
    assert engine.layers["out_bytes"].iloc[0] == 0  # an empty list of outputs, not an unknown one
    (repair,) = trace.meta["warnings"]
    text = (folder / "g08_trailing_commas.graph.json").read_text()
    assert (repair.code, repair.offset) == ("trailing_comma", text.index(",]"))
    with pytest.raises(TraceFormatError):
        load(folder / "g08_trailing_commas.graph.json", strict=True)


def test_dynamic_dimensions_have_no_size(folder):
    engine, _ = engine_of(folder / "g09_dynamic_dims_na.graph.json")
    row = engine.layers.iloc[0]
    assert row["in_shapes"] == "-1x25088"
    assert pd.isna(row["in_bytes"])
    assert pd.isna(row["out_bytes"])
    assert pd.isna(row["in_dtypes"])


def test_duplicate_names_join_by_occurrence(folder):
    engine, trace = joined(
        folder / "g10_duplicate_names.graph.json", folder / "g10_duplicate_names.profile.json"
    )
    names = list(engine.layers["name"])
    assert names.count("a") == 3
    assert list(engine.layers.loc[engine.layers["name"] == "a", "occurrence"]) == [0, 1, 2]
    # the profile is a 0.3, a 0.6, b 0.9, a 1.2
    assert list(engine.layers.loc[engine.layers["name"] == "a", "total_ms"]) == [0.3, 0.6, 1.2]
    assert list(engine.layers.loc[engine.layers["name"] == "b", "total_ms"]) == [0.9]
    assert list(engine.layers["percentage"].round(9)) == [
        {0.3: 10.0, 0.6: 20.0, 0.9: 30.0, 1.2: 40.0}[t] for t in engine.layers["total_ms"]
    ]
    assert engine.layers["in_graph"].all()
    assert len(trace.spans) == 4
    assert any("occur more than once" in note for note in engine.notes)


def test_synchronising_layers_are_kept_and_marked(folder):
    engine, _ = joined(
        folder / "g11_train_station_signal_wait.graph.json",
        folder / "g11_train_station_signal_wait.profile.json",
    )
    frame = engine.layers.set_index("name")
    assert list(frame.index) == [
        "Entry^bb^signal^0_myl5_0",
        "wait1",
        "wait2",
        "[trainStation1]",
        "a",
    ]
    assert list(frame["role"]) == ["sync", "sync", "sync", "sync", "compute"]
    assert frame.loc["[trainStation1]", "total_ms"] == 0.3
    assert frame.loc[["wait1", "wait2"], "total_ms"].isna().all()
    assert list(frame["in_profile"]) == [False, False, False, True, True]
    assert frame["percentage"].sum() == pytest.approx(100)


def test_shape_calls_stay_and_percentages_sum_to_100(folder):
    engine, _ = joined(folder / "g12_shape_call.graph.json", folder / "g12_shape_call.profile.json")
    frame = engine.layers
    assert list(frame["type"]) == ["CaskConvolution", "shape_call", "CaskConvolution"]
    assert list(frame["total_ms"]) == [0.3, 0.6, 0.9]
    assert list(frame["percentage_recorded"]) == [16.6667, 33.3333, 50]
    assert float(frame["percentage"].sum()) == pytest.approx(100, abs=1e-9)
    assert list(frame["role"]) == ["compute", "shape", "compute"]


def test_a_single_layer_stands_alone(folder):
    engine, _ = engine_of(folder / "g15_single_layer_object.graph.json")
    assert list(engine.layers["name"]) == ["a"]
    assert engine.layers["type"].iloc[0] == "CaskConvolution"


def test_json_inside_a_log(folder):
    engine, trace = engine_of(folder / "g16_log_prefix.graph.json")
    assert list(engine.layers["name"]) == ["a", "b"]
    assert trace.meta["format"] == "trtexec"
    assert (
        load(folder / "g16_log_prefix.graph.json", format="trex").meta["engines"][0].name == "g16_log_prefix"
    )


@pytest.mark.parametrize(
    ("file", "names"), [("g17_bom.graph.json", ["a"]), ("g19_crlf.graph.json", ["a", "b"])]
)
def test_marks_and_line_ends_are_no_damage(folder, file, names):
    engine, trace = engine_of(folder / file)
    assert list(engine.layers["name"]) == names
    assert codes(trace) == []


def test_utf_16_from_a_windows_shell(folder, tmp_path):
    text = (folder / "g03_no_bindings_trt82.graph.json").read_text()
    for encoding in ("utf-16", "utf-16-be"):
        path = tmp_path / f"{encoding}.graph.json"
        path.write_bytes(text.encode(encoding))
        engine, _ = engine_of(path)
        assert engine.layers["weights_bytes"].iloc[0] == 64


#: Type as the file writes it -> bytes of 2x3 elements, worked out by hand.
SIX_ELEMENTS = {
    "Float": 24,
    "Half": 12,
    "BFloat16": 12,
    "FP8": 6,
    "FP8E4M3": 6,
    "Int8": 6,
    "UInt8": 6,
    "Bool": 6,
    "Int32": 24,
    "Int64": 48,
    "Int4": 3,
    "FP4": 3,
    "E8M0": 6,
    "Row major linear FP16 format": 12,
    "Row major linear BFloat16 format": 12,
    "Row major linear FP8 format": 6,
    "Row major linear Bool": 6,
    "Channel major FP16 format where channel % 8 == 0": 12,
    "Two wide channel vectorized row major FP16 format": 12,
    "Unknown format": None,
}


def test_every_type_has_its_size_and_the_unknown_none(folder):
    path = folder / "g21_dtypes.graph.json"
    engine, _ = engine_of(path)
    raw = json.loads(path.read_text())["Layers"]
    written = [layer["Inputs"][0]["Format/Datatype"] for layer in raw]
    assert set(written) == set(SIX_ELEMENTS)
    for column in ("in_bytes", "out_bytes", "weights_bytes"):
        sizes = [None if pd.isna(v) else int(v) for v in engine.layers[column]]
        assert sizes == [SIX_ELEMENTS[text] for text in written], column


def test_a_label_of_fifty_kilobytes(folder):
    engine, _ = engine_of(folder / "g22_long_metadata.graph.json")
    assert len(engine.layers["operators"].iloc[0]) == 1000
    assert "1000 recorded operators" in engine.layers["explanation"].iloc[0]
    assert len(engine.layers["explanation"].iloc[0]) < 200


def test_names_are_kept_as_they_are(folder):
    engine, _ = engine_of(folder / "g23_quotes_backslash_unicode_names.graph.json")
    assert engine.layers["name"].iloc[0] == 'a"b\\c/é中<x>&{ForeignNode[p...q]}'


def test_eleven_thousand_names(folder):
    engine, _ = engine_of(folder / "g24_zero_layers_11k_names.graph.json")
    assert len(engine.layers) == 11329
    assert list(engine.layers["layer"].iloc[[0, -1]]) == [0, 11328]


def test_latency_figures_are_named_by_their_number(folder):
    trace = load(folder / "m02_7values.profile.metadata.json")
    (loose,) = trace.meta["loose"]
    latency = loose["performance"]["latency_ms"]
    assert latency == {"min": 1, "max": 2, "mean": 3, "median": 4, "p90": 5, "p95": 6, "p99": 7}
    assert loose["performance"]["throughput_qps"] == 100.0
    assert loose["performance"]["gpu_compute_s"] == 2.9


@pytest.mark.parametrize(
    ("file", "count", "inferred"),
    [
        ("p01_count_header.profile.json", 3, False),
        ("p02_torchtrt_trex_no_header.profile.json", 3, True),
        ("p03_old_4keys_with_count.profile.json", 625, False),
    ],
)
def test_profiles_with_and_without_header(folder, file, count, inferred):
    engine, trace = engine_of(folder / file)
    assert engine.count == count
    assert any("not in the file" in note for note in engine.notes) == inferred
    assert list(engine.layers["name"]) == ["a", "b"]
    assert list(engine.layers["total_ms"]) == [0.3, 0.6]
    assert list(trace.spans["dur_ns"]) == [300_000, 600_000]
    assert list(trace.spans["timing"]) == ["aggregate", "aggregate"]
    assert list(trace.spans["domain"]) == ["gpu", "gpu"]
    assert trace.spans["start_ns"].isna().all()
    assert trace.args[0]["count"] == count
    assert trace.args[1]["average_ms"] == pytest.approx(0.2)


def test_an_all_zero_profile_has_times_and_no_shares(folder):
    engine, trace = engine_of(folder / "p04_all_zero_nan.profile.json")
    assert list(engine.layers["total_ms"]) == [0, 0]
    for column in ("average_ms", "percentage", "percentage_recorded"):
        assert engine.layers[column].isna().all(), column
    assert list(trace.spans["dur_ns"]) == [0, 0]
    assert codes(trace) == ["not_a_number"]
    assert trace.meta["warnings"][0].count == 4


def test_an_unescaped_quote_in_a_name(folder):
    engine, trace = engine_of(folder / "p06_unescaped_quote.profile.json")
    assert list(engine.layers["name"]) == ['a"b', "c"]
    assert list(engine.layers["median_ms"]) == [0.1, 0.2]
    assert codes(trace) == ["unescaped_quote"]


@pytest.mark.parametrize(
    "file",
    [
        "p10_empty_array.profile.json",
        "p12_empty_torchtrt.trace",
        "p13_torchtrt_noevents.trace",
        "p14_zero_bytes.profile.json",
    ],
)
def test_empty_forms_are_empty_frames(folder, file):
    trace = load(folder / file)
    assert len(trace.spans) == 0
    notes = [note for engine in trace.meta["engines"] for note in engine.notes]
    if file.startswith("p13"):
        # the file of a phase without operators: it says nothing of an engine's layers
        assert trace.meta["format"] == "torchtrt"
    else:
        assert any("reported none" in note for note in notes)


def test_a_file_without_bytes_or_a_telling_name_is_an_error(tmp_path):
    (tmp_path / "a.json").write_bytes(b"")
    with pytest.raises(TraceFormatError, match="empty file"):
        load(tmp_path / "a.json")


def test_a_truncated_profile_keeps_whole_records(folder):
    engine, trace = engine_of(folder / "p15_truncated.profile.json")
    assert list(engine.layers["name"]) == ["a"]
    assert engine.count == 3
    (repair,) = trace.meta["warnings"]
    assert repair.code == "truncated"
    assert repair.offset == len((folder / "p15_truncated.profile.json").read_bytes()) - len("0.")


def test_a_perfetto_engine_trace_is_no_timeline(folder):
    engine, trace = engine_of(folder / "p16_perfetto_dups_overlap.trace")
    assert trace.meta["format"] == "torchtrt"
    assert engine.name == "_run_on_acc_0"
    assert engine.count is None
    assert list(trace.spans["dur_ns"]) == [12_500, 8_000, 0]
    assert trace.spans["start_ns"].isna().all()
    assert engine.layers["average_ms"].isna().all()
    assert any("does not say how many" in note for note in engine.notes)
    assert len(trace.measured) == 0


def test_timed_inferences_are_measured_spans(folder):
    engine, trace = engine_of(folder / "t02_modern.timing.json")
    rows = trace.spans[["name", "domain", "kind", "start_ns", "dur_ns", "correlation"]].to_numpy().tolist()
    assert rows == [
        ["enqueue", "host", "runtime", 0, 50_000, 0],
        ["H2D", "gpu", "memcpy", 0, 100_000, 0],
        ["GPU compute", "gpu", "phase", 100_000, 1_000_000, 0],
        ["D2H", "gpu", "memcpy", 1_100_000, 100_000, 0],
    ]
    flow = trace.flows.iloc[0]
    assert (trace.spans["name"][flow["source"]], trace.spans["name"][flow["target"]]) == (
        "enqueue",
        "GPU compute",
    )
    assert engine.timing["latencyMs"].iloc[0] == 1.2
    assert "not aligned" in trace.meta["clock"]


def test_old_names_of_timed_inferences(tmp_path):
    path = tmp_path / "a.timing.json"
    path.write_text(
        '[{"startInMs": 1, "endInMs": 2, "startComputeMs": 2, "endComputeMs": 5, "startOutMs": 5,'
        '"endOutMs": 6, "inMs": 1, "computeMs": 3, "outMs": 1, "latencyMs": 5, "endToEndMs": 6}]'
    )
    engine, trace = engine_of(path)
    assert list(trace.spans["name"]) == ["H2D", "GPU compute", "D2H"]
    assert list(trace.spans["dur_ns"]) == [1_000_000, 3_000_000, 1_000_000]
    assert engine.timing["endToEndMs"].iloc[0] == 6


def test_compressed_files_are_the_same(folder, tmp_path):
    path = tmp_path / "q.profile.json.gz"
    path.write_bytes(gzip.compress((folder / "p01_count_header.profile.json").read_bytes()))
    engine, _ = engine_of(path)
    assert engine.name == "q"
    assert engine.count == 3


def test_every_case_loads_without_an_exception_of_another_kind(folder):
    for path in sorted(folder.iterdir()):
        assert isinstance(load(path), Trace), path.name
