"""Times are integer nanoseconds, exact from their text."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_events import load_events, load_text, warned


def loaded(folder: Path, texts: list[str]) -> list[int]:
    """Load one event a text, with the text as its time and duration."""
    events = ",".join(f'{{"ph":"X","name":"op","pid":1,"tid":1,"ts":{text},"dur":{text}}}' for text in texts)
    trace = load_text(folder, f'{{"traceEvents":[{events}]}}')
    starts = trace.spans["start_ns"].tolist()
    assert starts == trace.spans["dur_ns"].tolist()
    return starts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("0.000", 0),
        ("7", 7000),
        ("12.5", 12500),
        ("12.05", 12050),
        ("12.005", 12005),
        ("12.3456", 12346),
        ("12.3454", 12345),
        ("0.0005", 0),  # half to even
        ("0.0015", 2),
        ("0.00150000000000000000000000000000000000000000001", 2),
        ("0.00050000000000000000000000000000000000000000001", 1),
        ("1e3", 1000000),
        ("1.5E+3", 1500000),
        ("2E-3", 2),
        ("1e-400", 0),
        ("000012.5", 12500),
        ("1712130698123456.789", 1712130698123456789),
        ('"10.5"', 10500),
        ('"1712130698123456.789"', 1712130698123456789),
    ],
)
def test_by_hand(text: str, expected: int, tmp_path: Path) -> None:
    assert loaded(tmp_path, [text]) == [expected]


decimals = st.decimals(min_value=0, max_value=2 * 10**15, places=7, allow_nan=False)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)
@given(st.lists(decimals, min_size=1, max_size=200))
def test_like_decimal_arithmetic(tmp_path: Path, values: list[Decimal]) -> None:
    texts = [format(value, "f") for value in values]
    expected = [int((Decimal(t) * 1000).to_integral_value(ROUND_HALF_EVEN)) for t in texts]
    assert loaded(tmp_path, texts) == expected


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-1", "-0.001", '"soon"', "1e30", "true", "{}", "[1]", "1.2.3"]
)
def test_duration_that_is_no_duration_is_an_instant(text: str, tmp_path: Path) -> None:
    event = f'{{"ph":"X","name":"op","pid":1,"tid":1,"ts":5,"dur":{text}}}'
    trace = load_text(tmp_path, f'{{"traceEvents":[{event}]}}')
    assert len(trace.spans) == 0
    assert trace.instants["ts_ns"].tolist() == [5000]
    assert trace.instants["state"].astype(object).tolist() == ["invalid"]
    assert warned(trace) == {"invalid_duration": 1}
    assert "dur" in trace.instant_args[0]


@pytest.mark.parametrize("text", ["NaN", "null", '"soon"', "1e30", "9223372036854775.808", "{}"])
def test_event_without_a_time_is_left_out_and_counted(text: str, tmp_path: Path) -> None:
    events = [f'{{"ph":"X","name":"op","pid":1,"tid":1,"ts":{ts},"dur":1}}' for ts in (text, "3")]
    trace = load_text(tmp_path, f'{{"traceEvents":[{",".join(events)}]}}')
    assert trace.spans["start_ns"].tolist() == [3000]
    assert warned(trace) == {"missing_time": 1}


def test_negative_times_are_times(tmp_path: Path) -> None:
    trace = load_events(tmp_path, [{"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": -2.5, "dur": 1}])
    assert trace.spans["start_ns"].tolist() == [-2500]


def test_an_end_beyond_the_clock_is_no_span(tmp_path: Path) -> None:
    trace = load_text(
        tmp_path,
        '{"traceEvents":[{"ph":"X","name":"op","pid":1,"tid":1,"ts":9223372036854775.807,"dur":0.001}]}',
    )
    assert len(trace.spans) == 0
    assert warned(trace) == {"invalid_duration": 1}


def test_time_zero_beside_real_times_is_reported(tmp_path: Path) -> None:
    real = {"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": 1712130698123456, "dur": 1}
    lost = {"ph": "X", "name": "lost", "cat": "kernel", "pid": 0, "tid": 7, "ts": 0, "dur": 0}
    trace = load_events(tmp_path, [real, lost])
    assert warned(trace) == {"zero_time": 1}
    assert trace.meta["base_ns"] == 0  # told by the times that are real
    assert warned(load_events(tmp_path, [lost])) == {}
