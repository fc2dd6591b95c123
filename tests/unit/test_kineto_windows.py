"""A file gives the same however it is cut into windows and blocks, and whatever its text looks like."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from trace_events import complete, decode, summary


def tricky(count: int, seed: int = 0) -> bytes:
    """Events whose arguments and names look like the boundaries between events."""
    random_ = random.Random(seed)
    looks = [
        '}, {"ph": "X"',
        "}\\n,\\n{",
        'name\\": \\"x\\"}, {\\"name\\": 1',
        "]}",
        "\\\\",
        '\\\\\\"',
        "\u00e9\u4e2d\U0001f600",
        "",
    ]
    events: list[dict[str, Any]] = []
    for i in range(count):
        name = json.loads(f'"{random_.choice(looks[1:])}"')
        event = complete(
            name,
            i * 10,
            random_.randint(0, 30),
            args={
                "External id": i,
                "list": [{"name": "x", "ph": "X"}, {"name": "y", "ts": 1}, {"cat": [1, [2, {"ph": "M"}]]}],
                "text": random_.choice(looks) * random_.randint(0, 9),
            },
        )
        if i % 7 == 0:
            event = dict(reversed(event.items()))
        events.append(event)
        if i % 5 == 0:
            events.append(
                {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": i, "pid": 1, "tid": 1, "ts": i * 10}
            )
    top = {"schemaVersion": 1, "distributedInfo": {"rank": 3, "x": "}],"}, "unknown": "[" * 500}
    after = {"traceName": "}], {", "more": [{"name": 1}, {"ph": 2}] * 20, "nested": {"traceEvents": [1, 2]}}
    return json.dumps({**top, "traceEvents": events, **after}, ensure_ascii=False).encode()


CONTENT = tricky(150)


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize(
    ("window", "block"), [(64, 1), (64, 7), (100, 1000), (333, 4096), (1000, 1), (4096, 100)]
)
def test_windows_and_blocks_do_not_show(indent: int | None, window: int, block: int) -> None:
    content = json.dumps(json.loads(CONTENT), indent=indent).encode()
    assert summary(decode(content, window, block)) == summary(decode(content))


def test_whole_window_equals_json() -> None:
    found = decode(CONTENT)
    events = [e for e in json.loads(CONTENT)["traceEvents"] if e["ph"] == "X"]
    categories, codes = found["spans"]["name"]
    assert [categories[c] for c in codes] == [e["name"] for e in events]
    assert found["spans"]["start_ns"].tolist() == [e["ts"] * 1000 for e in events]
    assert found["spans"]["external_id"].tolist() == [e["args"]["External id"] for e in events]
    assert found["notes"].keys() <= {"overlap"}
    assert dict(found["values"]).keys() == {"distributedInfo", "traceName"}
    offsets = found["spans"]["offset"].tolist()
    decoder = json.JSONDecoder()
    text = CONTENT.decode()
    assert [decoder.raw_decode(CONTENT[o:].decode())[0] for o in offsets] == events
    assert text.startswith("{")


def test_an_event_longer_than_the_window() -> None:
    long = complete("x" * 300_000, 1, 2, args={"text": "y" * 3_000_000, "correlation": 9})
    content = json.dumps({"traceEvents": [complete("a", 0, 1), long, complete("b", 5, 1)]}).encode()
    found = decode(content, window=4096)
    assert found["spans"]["correlation"].tolist() == [-1, 9, -1]
    assert found["notes"] == {}


def test_order_of_the_top_level_does_not_matter() -> None:
    events = [complete("op", 1, 2)]
    for content in (
        {"traceEvents": events, "traceName": "t"},
        {"traceName": "t", "traceEvents": events},
        {"a": {"traceEvents": []}, "b": ['"traceEvents": ['], "traceEvents": events, "traceName": "t"},
    ):
        found = decode(json.dumps(content).encode(), window=64)
        assert found["spans"]["start_ns"].tolist() == [1000]
        assert dict(found["values"]) == {"traceName": b'"t"'}
        assert found["complete"]


def test_several_lists_of_events_are_all_read() -> None:
    content = b'{"traceEvents":[%s],"traceEvents":[%s]}' % (
        json.dumps(complete("a", 1, 1)).encode(),
        json.dumps(complete("b", 2, 1)).encode(),
    )
    found = decode(content)
    assert found["spans"]["start_ns"].tolist() == [1000, 2000]
    assert found["notes"].keys() == {"repeated_events_key"}


def test_a_value_that_was_not_asked_for_is_not_held() -> None:
    content = b'{"big": "' + b"x" * (8 << 20) + b'", "traceName": "t", "traceEvents": []}'
    found = decode(content)
    assert dict(found["values"]) == {"traceName": b'"t"'}


def test_a_value_without_end_of_a_known_key_is_dropped() -> None:
    content = b'{"traceName": "' + b"x" * (5 << 20) + b'", "traceEvents": []}'
    assert decode(content)["values"] == []


def test_a_decoder_ends_once() -> None:
    from torchtrt_viz._native import native

    decoder = native("kineto").Decoder(
        categories={}, rules=[], other=(0, -1), step_kind=0, kept_keys=[], window=64
    )
    decoder.feed(b'{"traceEvents":[')
    assert decoder.finish()["saw_events"]
    for call in (decoder.finish, lambda: decoder.feed(b"x"), lambda: decoder.read(0, 1)):
        with pytest.raises(RuntimeError, match="ended already"):
            call()
    with pytest.raises(ValueError, match="window"):
        native("kineto").Decoder(categories={}, rules=[], other=(0, -1), step_kind=0, kept_keys=[], window=1)


@pytest.mark.slow
def test_offsets_beyond_4_gib() -> None:
    from torchtrt_viz._native import native

    decoder = native("kineto").Decoder(categories={}, rules=[], other=(0, -1), step_kind=0, kept_keys=[])
    event = json.dumps(complete("far", 1, 2)).encode()
    decoder.feed(b'{"unknown": "')
    block = b"x" * (64 << 20)
    for _ in range(70):
        decoder.feed(block)
    decoder.feed(b'", "traceEvents": [' + event + b"]}")
    found = decoder.finish()
    assert found["spans"]["offset"].tolist() == [13 + 70 * len(block) + 19]
    assert found["spans"]["offset"][0] > 2**32
    assert found["bytes"] > 2**32
