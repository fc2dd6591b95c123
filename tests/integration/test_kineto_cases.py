"""Small hard inputs: each gives the value or the error that is written beside it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import torchtrt_viz as tv
from torchtrt_viz import TraceFormatError
from torchtrt_viz.trace import Trace


def load(path: Path, **options: Any) -> Trace:
    trace = tv.load(path, **options)
    assert isinstance(trace, Trace)
    return trace


def codes(trace: Trace) -> list[str]:
    return [warning.code for warning in trace.meta["warnings"]]


def column(trace: Trace, name: str) -> list[Any]:
    return list(trace.spans[name].astype(object))


@pytest.fixture
def case(cases: Path) -> Any:
    return lambda name, **options: load(cases / "kineto" / f"{name}.json", **options)


@pytest.fixture
def quirk(cases: Path) -> Any:
    return lambda name, **options: load(cases / "kineto_quirks" / f"{name}.json", **options)


def test_every_expected_row_has_a_test_here(cases: Path) -> None:
    named = [
        line.split("\t")[0].removesuffix(".json")
        for line in (cases / "kineto" / "EXPECTED.tsv").read_text().splitlines()
        if line
    ]
    source = Path(__file__).read_text()
    assert len(named) == 27
    assert [name for name in named if f'"{name}"' not in source] == []


def test_array_form(case: Any) -> None:
    trace = case("array_form")
    assert column(trace, "start_ns") == [10000, 20000]
    assert column(trace, "dur_ns") == [5000, 5000]
    assert codes(trace) == []


def test_array_unclosed(case: Any) -> None:
    trace = case("array_unclosed")
    assert column(trace, "start_ns") == [10000, 20000]
    assert codes(trace) == ["unclosed"]
    with pytest.raises(TraceFormatError, match="end of the document"):
        case("array_unclosed", strict=True)


def test_truncated_mid_event(case: Any, cases: Path) -> None:
    trace = case("truncated_mid_event")
    assert column(trace, "start_ns") == [10000]
    (warning,) = trace.meta["warnings"]
    text = (cases / "kineto" / "truncated_mid_event.json").read_bytes()
    assert warning.code == "truncated"
    assert warning.offset == text.rindex(b"{")
    assert str(warning.offset) in str(warning)
    with pytest.raises(TraceFormatError) as raised:
        case("truncated_mid_event", strict=True)
    assert raised.value.offset == warning.offset


def test_nan_infinity(case: Any) -> None:
    args = case("nan_infinity").args[0]
    assert math.isnan(args["bw"])
    assert args["x"] == math.inf
    assert args["y"] == -math.inf


def test_invalid_escape(case: Any) -> None:
    trace = case("invalid_escape")
    assert column(trace, "name") == ["C:\\Users\\x.py(3): f"]
    assert codes(trace) == ["invalid_escape"]


def test_raw_control_character(case: Any) -> None:
    trace = case("raw_control_character")
    assert column(trace, "name") == ["a\x01b"]
    assert codes(trace) == ["control_character"]


@pytest.mark.parametrize(
    ("name", "start", "duration"),
    [
        ("times_as_strings", 10500, 2250),
        ("epoch_us_three_decimals", 1712130698123456789, 1),
        ("exponent_times", 1500000, 2),
        ("base_time_nanoseconds", 12345, 5000),
    ],
)
def test_times(case: Any, name: str, start: int, duration: int) -> None:
    trace = case(name)
    assert column(trace, "start_ns") == [start]
    assert column(trace, "dur_ns") == [duration]
    assert codes(trace) == []


def test_base_time(case: Any) -> None:
    assert case("base_time_nanoseconds").meta["base_ns"] == 1700000000000000000
    assert case("epoch_us_three_decimals").meta["base_ns"] == 0
    assert case("times_as_strings").meta["base_ns"] is None


@pytest.mark.parametrize(
    ("name", "state", "args"),
    [("missing_dur", "unfinished", {}), ("negative_dur", "invalid", {"dur": -3})],
)
def test_duration_that_cannot_be_used(case: Any, name: str, state: str, args: dict[str, Any]) -> None:
    trace = case(name)
    assert column(trace, "start_ns") == [30000]
    assert trace.instants["ts_ns"].tolist() == [10000]
    assert trace.instants["state"].astype(object).tolist() == [state]
    assert trace.instant_args.read() == [args]
    assert len(trace.meta["warnings"]) == 1


def test_begin_end_pairs(case: Any) -> None:
    trace = case("begin_end_pairs")
    assert column(trace, "name") == ["op", "inner"]
    assert column(trace, "dur_ns") == [5000, 1000]
    assert column(trace, "self_ns") == [4000, 1000]
    assert column(trace, "parent") == [-1, 0]


def test_end_without_begin(case: Any) -> None:
    trace = case("end_without_begin")
    assert column(trace, "start_ns") == [30000]
    assert codes(trace) == ["end_without_begin"]


def test_overlap_on_one_thread(case: Any) -> None:
    trace = case("overlap_on_one_thread")
    assert column(trace, "parent") == [-1, -1]
    assert column(trace, "self_ns") == [10000, 10000]
    assert codes(trace) == ["overlap"]
    assert len(case("overlap_on_one_thread", strict=True).spans) == 2  # the file itself is whole


def test_same_start_nesting(case: Any, cases: Path, tmp_path: Path) -> None:
    trace = case("same_start_nesting")
    names, parents = column(trace, "name"), column(trace, "parent")
    assert names[parents[names.index("inner")]] == "outer"
    lines = (cases / "kineto" / "same_start_nesting.json").read_text().splitlines()
    turned = tmp_path / "turned.json"
    turned.write_text("\n".join([lines[0], f"{lines[2]},", lines[1].rstrip(","), *lines[3:]]))
    trace = load(turned)
    names, parents = column(trace, "name"), column(trace, "parent")
    assert names == ["inner", "outer"]
    assert parents == [1, -1]


def test_uint64_argument(case: Any) -> None:
    assert case("uint64_argument").args[0] == {"Comms Id": 10159970886766084423}


def test_late_metadata(case: Any) -> None:
    assert case("late_metadata").tracks["label"].tolist() == ["thread 7 (main)"]


def test_string_pid_tid(case: Any) -> None:
    tracks = case("string_pid_tid").tracks
    assert tracks["process"].tolist() == ["Spans", "1"]
    assert tracks["thread"].tolist() == ["PyTorch Profiler", "7"]


def test_events_after_other_keys(case: Any) -> None:
    trace = case("events_after_other_keys")
    assert len(trace.spans) == 1
    assert trace.meta["deviceProperties"] == [{"id": 0, "name": "GPU"}]
    assert trace.meta["devices"] == {0: {"id": 0, "name": "GPU"}}


def test_one_launch_many_kernels(case: Any) -> None:
    spans = case("one_launch_many_kernels").spans
    assert spans["correlation"].tolist() == [9, 9, 9]
    assert spans.groupby("domain", observed=True)["dur_ns"].sum().to_dict() == {"host": 5000, "gpu": 10000}
    assert spans["domain"].astype(object).tolist() == ["host", "gpu", "gpu"]


def test_html_name(case: Any) -> None:
    assert column(case("html_name"), "name") == ["<img src=x onerror=alert(1)>"]


@pytest.mark.parametrize("where", ["kineto", "kineto_quirks"])
@pytest.mark.parametrize("name", ["trailing_comma"])
def test_trailing_comma(cases: Path, where: str, name: str) -> None:
    trace = load(cases / where / f"{name}.json")
    assert len(trace.spans) == 1
    assert codes(trace) == ["trailing_comma"]


@pytest.mark.parametrize("where", ["kineto", "kineto_quirks"])
@pytest.mark.parametrize("name", ["empty_events"])
def test_empty_events(cases: Path, where: str, name: str) -> None:
    trace = load(cases / where / f"{name}.json")
    assert len(trace.spans) == 0
    assert codes(trace) == []


@pytest.mark.parametrize(("where", "name"), [("kineto", "zero_bytes"), ("kineto_quirks", "empty")])
@pytest.mark.parametrize("format", [None, "kineto"])
def test_zero_bytes(cases: Path, where: str, name: str, format: str | None) -> None:
    with pytest.raises(TraceFormatError, match="empty file"):
        tv.load(cases / where / f"{name}.json", format=format)


def test_not_a_trace(case: Any) -> None:
    with pytest.raises(TraceFormatError, match=r"expected .*trace-event JSON"):
        case("not_a_trace")
    with pytest.raises(TraceFormatError) as raised:
        case("not_a_trace", format="kineto")
    assert raised.value.expected is not None
    assert "traceEvents" in raised.value.expected


def test_deep_nesting(case: Any) -> None:
    trace = case("deep_nesting")
    assert column(trace, "dur_ns") == [5000]
    text = trace.args[0]["a"]
    assert text == "[" * 20000 + "]" * 20000


# -- kineto_quirks ---------------------------------------------------------------------------------------

KERNEL = {"correlation": 1, "stream": 7, "device": 0}


@pytest.mark.parametrize(
    ("name", "names", "warned"),
    [
        ("ok", ["k"], []),
        ("list_root", ["k"], []),
        ("bom", ["k"], ["byte_order_mark"]),
        ("ctrl_0x01", ["k", "|S\x01(1): <module>"], ["control_character"]),
        ("raw_newline_in_name", ["k", "a\n(1): <module>"], ["control_character"]),
        ("lone_surrogate", ["\ufffd"], ["lone_surrogate"]),
        ("unescaped_quote", ["k", '{"device": "cpu"}(12): run'], ["damaged_event"]),
        ("win_backslash", ["k", "torch\\cuda\\__init__.py(219): _lazy_init"], ["invalid_escape"]),
        ("truncated_in_event", ["k"], ["truncated"]),
        ("dup_key", ["k"], []),
        ("ts_string", ["k"], []),
    ],
)
def test_names_and_times_survive(quirk: Any, name: str, names: list[str], warned: list[str]) -> None:
    trace = quirk(name)
    assert column(trace, "name") == names
    assert column(trace, "start_ns") == [10500] * len(names)
    assert column(trace, "dur_ns") == [2250] * len(names)
    assert column(trace, "correlation") == [1] * len(names)
    assert column(trace, "domain") == ["gpu"] * len(names)
    assert trace.args.read() == [KERNEL] * len(names)
    assert codes(trace) == warned


def test_last_of_repeated_keys_counts(quirk: Any) -> None:
    assert quirk("dup_key").tracks["process"].tolist() == ["3"]


def test_19_digits(quirk: Any) -> None:
    assert column(quirk("ts_19_digits"), "start_ns") == [1712195495519689047]


@pytest.mark.parametrize(
    ("name", "state", "extra"),
    [
        ("dur_missing", "unfinished", {}),
        ("dur_null", "unfinished", {"dur": None}),
        ("dur_negative", "invalid", {"dur": -3.5}),
    ],
)
def test_quirks_of_durations(quirk: Any, name: str, state: str, extra: dict[str, Any]) -> None:
    trace = quirk(name)
    assert len(trace.spans) == 0
    assert trace.instants["state"].astype(object).tolist() == [state]
    assert trace.instants["domain"].astype(object).tolist() == ["gpu"]
    assert trace.instant_args.read() == [{**KERNEL, **extra}]


def test_words_that_are_no_json(quirk: Any) -> None:
    trace = quirk("inf")
    assert trace.args[1]["memory bandwidth (GB/s)"] == math.inf
    assert math.isnan(quirk("nan").args[1]["x"])


def test_uint64(quirk: Any) -> None:
    assert quirk("uint64").args[0]["Comms Id"] == 10159970886766084423


def test_pair_without_name_on_its_end(quirk: Any) -> None:
    trace = quirk("BE_pairs")
    assert (column(trace, "name"), column(trace, "start_ns"), column(trace, "dur_ns")) == (
        ["a"],
        [1000],
        [4000],
    )


def test_deep_args_are_text(quirk: Any) -> None:
    trace = quirk("deep_args")
    assert column(trace, "correlation") == [1]
    assert trace.args[0]["stream"] == 7
    assert set(trace.args[0]["x"]) <= set("[]01")
