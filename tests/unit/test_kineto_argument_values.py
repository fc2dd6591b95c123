"""One argument of many events, read without building them, is what building them gives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import torchtrt_viz as tv
from torchtrt_viz._native import native
from torchtrt_viz.trace import Trace


def _one(event: str, key: str = "k") -> tuple[int, list[bytes]]:
    codes, texts = native("kineto").argument_texts([event.encode()], key)
    return int(codes[0]), texts


@pytest.mark.parametrize(
    ("event", "value"),
    [
        ('{"args": {"k": 1}}', b"1"),
        ('{"args":{"a":{"k":2},"k" : [ [2, 3] , [ ] ]},"ts":1}', b"[[2,3],[]]"),
        ('{"name": "args", "x": {"args": {"k": 3}}, "args": {"k": "a  b"}}', b'"a  b"'),
        ('{"args": {"k": 1, "k": 2}}', b"2"),
        ('{"args": {"k": 1}, "args": {"k": {"x": "}"}}}', b'{"x":"}"}'),
        ('{"args": {"k": -1.5e+3}}', b"-1.5e+3"),
        ('{"args": {"k": null}}', b"null"),
        ('{"args": {"k": "quote \\" and \\\\"}}', b'"quote \\" and \\\\"'),
    ],
)
def test_values_by_hand(event: str, value: bytes) -> None:
    assert _one(event) == (0, [value])


@pytest.mark.parametrize(
    "event", ['{"ts": 1}', '{"args": {}}', '{"args": {"other": 1}}', '{"args": {"k": 1}, "args": {}}', "{}"]
)
def test_absent(event: str) -> None:
    assert _one(event) == (-1, [])


@pytest.mark.parametrize(
    "event",
    [
        "",
        "{",
        '{"args": {"k": }}',
        '{"args": {"k": 1}',
        '{"args": "text"}',
        '{"name": "a "b" c", "args": {"k": 1}}',
        '{"args": {"\\u006b": 1}}',
        '{"args": {"k": "line\nbreak"}}',
        '{"args": {"k": [1}]}}',
        '{"args": {"k": ' + "[" * 100 + "]" * 100 + "}}",
    ],
)
def test_what_is_not_plain_json_is_left_to_those_who_can_mend_it(event: str) -> None:
    assert _one(event)[0] == -2


def test_equal_values_share_a_code() -> None:
    events = [b'{"args":{"k":[1, 2]}}', b'{"args":{"k":[1,2]}}', b'{"args":{"k":[3]}}']
    codes, texts = native("kineto").argument_texts(events, "k")
    assert codes.tolist() == [0, 0, 1]
    assert texts == [b"[1,2]", b"[3]"]


def _same(trace: Trace, key: str) -> None:
    rows = np.arange(len(trace.spans))
    codes, values = trace.args.values(rows, key)
    slow = trace.args.read(rows)
    for code, found in zip(codes.tolist(), slow, strict=True):
        assert (code < 0) == (key not in found)
        if code >= 0:
            assert values[code] == found[key] or (values[code] != values[code] and found[key] != found[key])


def test_sources_without_a_fast_way_give_the_same(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    file.write_text(json.dumps({"traceEvents": [{**event, "args": {"k": [1]}}, event]}))
    trace = tv.load(file)
    part = trace.select(np.array([1, 0]))
    codes, values = part.args.values(np.arange(2), "k")
    assert [None if code < 0 else values[code] for code in codes] == [None, [1]]
    with pytest.raises(IndexError):
        trace.args.values(np.array([7]), "k")
