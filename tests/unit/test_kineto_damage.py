"""Damaged files give every event that is whole or can be mended, and say what was done and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trace_events import complete, decode, load_text, warned

from torchtrt_viz import TraceFormatError
from torchtrt_viz.trace import Trace


def names(trace: Trace) -> list[Any]:
    return list(trace.spans["name"].astype(object))


def event(name: str, ts: int = 1, args: str = "{}") -> str:
    """An event with its name (and arguments) put in as they are."""
    times = f'"ts": {ts}, "dur": 1'
    return f'{{"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": 1, {times}, "args": {args}}}'


def document(*events: str, joined: str = ",\n") -> str:
    return '{"schemaVersion": 1, "traceEvents": [\n' + joined.join(events) + '\n], "traceName": "x"}'


MENDED = {
    "unescaped quotes": (
        r'Library("_inductor_test", "IMPL")',
        'Library("_inductor_test", "IMPL")',
        "damaged_event",
    ),
    "quote at the start": (r'"quoted" name', '"quoted" name', "damaged_event"),
    "quote at the end": ('name "', 'name "', "damaged_event"),
    "json inside": (r'{"device": "cpu"}(12): run', '{"device": "cpu"}(12): run', "damaged_event"),
    "path that ends with a backslash": ("C:\\dir\\", "C:\\dir\\", "damaged_event"),
    "newline and quotes": (
        'Library("a", "b")\n(1): <module>',
        'Library("a", "b")\n(1): <module>',
        "damaged_event",
    ),
    "control character": ("|||S\x01(1): <module>", "|||S\x01(1): <module>", "control_character"),
    "tab": ("a\tb", "a\tb", "control_character"),
    "windows path": (r"torch\cuda\__init__.py(3): f", r"torch\cuda\__init__.py(3): f", "invalid_escape"),
    "short unicode escape": (r"a\u12", r"a\u12", "invalid_escape"),
}


@pytest.mark.parametrize("what", MENDED)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_mended_names(what: str, position: int, tmp_path: Path) -> None:
    raw, meant, code = MENDED[what]
    parts = ["a", "b", "c"]
    parts[position] = raw
    trace = load_text(tmp_path, document(*(event(n, i + 1) for i, n in enumerate(parts))))
    parts[position] = meant
    assert names(trace) == parts
    assert trace.spans["start_ns"].tolist() == [1000, 2000, 3000]
    assert code in warned(trace)
    assert trace.args.read() == [{}, {}, {}]


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    text = document(event("BAD", 1), event("good", 2)).encode().replace(b"BAD", b"a\xff\xc3(b")
    trace = load_text(tmp_path, text)
    assert names(trace) == ["a\ufffd\ufffd(b", "good"]
    assert warned(trace) == {"invalid_utf8": 2}


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        ('{"a": 1,}', {"a": 1}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('{"a": [1, 2,], "b": {}}', {"a": [1, 2], "b": {}}),
        ('{"a": "x"y", "b": ["p"q", 1]}', {"a": 'x"y', "b": ['p"q', 1]}),
        ('{"a": N/A, "b": -inf}', {"a": "N/A", "b": float("-inf")}),
        ('{"a": "\\ud83d\\ude00 \\ud83d", "b": "\\x"}', {"a": "\U0001f600 \ufffd", "b": "\\x"}),
        ('{"a": "x\ny"}', {"a": "x\ny"}),
    ],
)
def test_mended_arguments(args: str, meant: dict[str, Any], tmp_path: Path) -> None:
    trace = load_text(tmp_path, document(event("a"), event("b", 2, args), event("c", 3)))
    assert names(trace) == ["a", "b", "c"]
    assert trace.args[1] == meant


@pytest.mark.parametrize(
    ("text", "kept", "code"),
    [
        (document(event("a"), event("b"), joined="\n"), ["a", "b"], "missing_comma"),
        (document(event("a"), event("b"), joined=",,\n"), ["a", "b"], "trailing_comma"),
        (document(event("a"), "", event("b")), ["a", "b"], "trailing_comma"),
        (document(event("a"), "null", "12", '"text"', "[1, {}]", event("b")), ["a", "b"], "not_an_event"),
        (document(event("a"), "@@@ garbage", event("b")), ["a", "b"], "not_an_event"),
        (document(event("a"), '{"name": "x", 5: 1}', event("b")), ["a", "b"], "lost_event"),
        (document(event("a"), '{"name": "x", "args": {"a": [1, 2}}', event("b")), ["a", "b"], "lost_event"),
        (document(event("a"))[:-1], ["a"], "unclosed"),
        (document(event("a")).rpartition("]")[0], ["a"], "unclosed"),
        (document(event("a")) + "tail", ["a"], "trailing_data"),
        (f'{{"x" 1, "traceEvents": [{event("a")}]}}', ["a"], "damaged_header"),
        (f'{{"x": "un"quoted", "traceEvents": [{event("a")}]}}', ["a"], "damaged_header"),
        (document(event("a"), '{"name": "no phase", "ts": 1}', event("b")), ["a", "b"], "unknown_phase"),
        (document(event("a"), '{"ph": "V", "name": "x", "ts": 1}', event("b")), ["a", "b"], "unknown_phase"),
    ],
)
def test_structure(text: str, kept: list[str], code: str, tmp_path: Path) -> None:
    trace = load_text(tmp_path, text)
    assert names(trace) == kept
    assert code in warned(trace)
    if code != "unknown_phase":
        with pytest.raises(TraceFormatError, match="strict=True"):
            load_text(tmp_path, text, strict=True)


@pytest.mark.parametrize("window", [64, 500, 1 << 20])
def test_cut_anywhere_keeps_whole_events(window: int) -> None:
    events = [event(f"n{i}", i, '{"x": [1, {"name": "}"}], "t": "a\\"b"}') for i in range(6)]
    text = document(*events).encode()
    starts = [text.index(one.encode()) for one in events]
    ends = [start + len(one) for start, one in zip(starts, events, strict=True)]
    for cut in range(text.index(b"[") + 1, len(text)):
        found = decode(text[:cut], window)
        whole = sum(end <= cut for end in ends)
        assert len(found["spans"]["start_ns"]) == whole, cut
        partial = [s for s, e in zip(starts, ends, strict=True) if s < cut < e]
        if partial:
            assert found["notes"] == {"truncated": (1, partial[0])}, cut
        else:
            assert found["notes"].keys() == {"unclosed"}, cut


def test_offsets_of_damage_are_those_of_the_file(tmp_path: Path) -> None:
    text = document(event("a"), event('b "c" d', 2), event("e", 3))
    trace = load_text(tmp_path, text)
    (warning,) = trace.meta["warnings"]
    assert warning.offset == text.index('{"ph": "X", "cat": "cpu_op", "name": "b')


@pytest.mark.parametrize(
    "one",
    [
        event('x "y" z'),
        event("x\x01"),
        event("x") + "@",
        '{"name": @}',
        "{",
        "[",
        '{"a": "',
        '"',
        "}",
        '{"a":{"a":',
        "\\",
        '{"ph":"B","ts":1}',
    ],
)
def test_nothing_but_damage_takes_linear_time(one: str) -> None:
    """What follows a damaged event is looked at as far as the window reaches, not to the end: that, for each
    of so many, would not end within the limit of a test.
    """  # noqa: D205
    decode(('{"traceEvents":[' + ",".join([one] * 60_000)).encode(), window=1 << 16)


def test_ten_million_open_brackets() -> None:
    found = decode(b'{"traceEvents":[{"ph":"X","ts":1,"dur":1,"args":{"a":' + b"[" * 10_000_000)
    assert found["notes"].keys() == {"truncated"}


def test_a_list_of_something_else_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match="a list of other things"):
        load_text(tmp_path, "[1, 2, 3]")
    with pytest.raises(TraceFormatError, match="stops at byte 20"):
        load_text(tmp_path, '{"schemaVersion": 1,')
    with pytest.raises(TraceFormatError, match="no JSON"):
        load_text(tmp_path, "MZ\x90")
    assert len(load_text(tmp_path, "[]").spans) == 0


def test_the_mended_file_equals_the_file_that_was_meant(tmp_path: Path) -> None:
    good = [complete(f"n{i}", i, 1, args={"External id": i}) for i in range(50)]
    meant = load_text(tmp_path, json.dumps({"traceEvents": good}))
    damaged = (
        json.dumps({"traceEvents": good}).replace('"n7"', '"n7\x02"').replace('}}, {"ph"', '}},, {"ph"', 3)
    )
    trace = load_text(tmp_path, damaged)
    assert names(trace) == [n + ("\x02" if n == "n7" else "") for n in names(meant)]
    assert trace.spans.drop(columns="name").equals(meant.spans.drop(columns="name"))
