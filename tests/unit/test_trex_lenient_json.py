"""JSON as profilers write it: what is mended, what is reported, what is refused."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from line_counter import lines_run

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.lenient_json import documents, parse_json
from torchtrt_viz.formats.io.lenient_scan import MAX_DEPTH, Scan
from torchtrt_viz.formats.io.options import LoadOptions


def parse(text: str | bytes) -> tuple[object, dict[str, tuple[int | None, int]]]:
    options = LoadOptions()
    data = text if isinstance(text, bytes) else text.encode()
    value = parse_json(data, "t.json", options)
    return value, {w.code: (w.offset, w.count) for w in options.warnings}


@pytest.mark.parametrize(
    ("text", "value", "repairs"),
    [
        ('{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}, {}),
        ('{"a":1,}', {"a": 1}, {"trailing_comma": (6, 1)}),
        ('[{"a":1,},]', [{"a": 1}], {"trailing_comma": (7, 2)}),
        ('{"a":"x"y","b":2}', {"a": 'x"y', "b": 2}, {"unescaped_quote": (6, 1)}),
        ('[{"a":1} {"b":2}]', [{"a": 1}, {"b": 2}], {"missing_comma": (9, 1)}),
        (
            '{"a":"\\q\\d", "b":1,}',
            {"a": "\\q\\d", "b": 1},
            {"invalid_escape": (6, 2), "trailing_comma": (18, 1)},
        ),
        (', {"name":"q"}, {"name":"r"}]', [{"name": "q"}, {"name": "r"}], {"no_brackets": (1, 1)}),
        ('{"name":"q"}, {"name":"z"}', [{"name": "q"}, {"name": "z"}], {"no_brackets": (14, 1)}),
        ('[{"a":1},{"a":2,"b', [{"a": 1}], {"truncated": (16, 1)}),
        (
            '{"Layers":["q",{"Name":"a","Inputs":[{"Name":"x"},{"Na',
            {"Layers": ["q"]},
            {"truncated": (51, 1)},
        ),
        ('{"Layers":["a","b', {"Layers": ["a"]}, {"truncated": (15, 1)}),
        ("\n]\n", [], {"empty_form": (0, 1)}),
        ("", [], {}),
        (" \r\n", [], {}),
        ('{"a":"b\x1ec"}', {"a": "b\x1ec"}, {}),
        ('{"a":"\\ud83d\\ude00 \\ud800"}', {"a": "\U0001f600 �"}, {}),
        ('[07/07/2026-02:11:40] [I] Layer Information:\n{"Layers": ["a"]}\nPASSED', {"Layers": ["a"]}, None),
    ],
)
def test_mended(text, value, repairs):
    found, noted = parse(text)
    assert found == value
    if repairs is None:
        assert set(noted) == {"text_around"}
    else:
        assert noted == repairs


@pytest.mark.parametrize("spelling", ["-nan", "nan", "NaN", "-nan(ind)", "nan(snan)", "-1.#IND", "1.#QNAN0"])
def test_not_a_number_in_every_spelling(spelling):
    value, _ = parse(f'[{{"name":"a","x":{spelling}}},{{"name":"nan","x":1}}]')
    assert math.isnan(value[0]["x"])
    assert value[1] == {"name": "nan", "x": 1}


@pytest.mark.parametrize(("spelling", "sign"), [("inf", 1), ("-inf", -1), ("Infinity", 1), ("-1.#INF", -1)])
def test_infinities(spelling, sign):
    value, _ = parse(f'[{{"name":"a","x":{spelling},}}]')
    assert value[0]["x"] == sign * math.inf


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_are_no_damage(encoding):
    text = '{"Layers": ["é中"],\r\n"Bindings": ["x"\r\n]}'
    value, repairs = parse(text.encode(encoding))
    assert value == {"Layers": ["é中"], "Bindings": ["x"]}
    assert repairs == {}


def test_bytes_that_are_no_text_are_replaced_and_counted_in_bytes():
    value, repairs = parse('{"é":1,"a":"'.encode() + b"\xff" + b'"}')
    assert value == {"é": 1, "a": "�"}
    assert repairs == {"encoding": (13, 1)}


def test_offsets_count_bytes_not_characters():
    _, repairs = parse('{"é中":1,}')
    # { " é(2) 中(3) " : 1 -> the comma is byte 10
    assert repairs == {"trailing_comma": (10, 1)}


def test_strict_raises_the_first_repair():
    with pytest.raises(TraceFormatError) as caught:
        parse_json(b'{"a":1,}', "t.json", LoadOptions(strict=True))
    assert caught.value.offset == 6
    assert "strict" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[", '{"a"', "[{", '[{"a":', "no json", '{"Layers"', '{"Layers":[{"Name":"a"']
)
def test_nothing_whole_is_an_error_that_says_where(text):
    with pytest.raises(TraceFormatError) as caught:
        parse(text)
    assert caught.value.path == "t.json"
    assert caught.value.offset is not None
    assert caught.value.expected


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"b":'])
def test_nesting_is_bounded(opening):
    with pytest.raises(TraceFormatError):
        parse(opening * 100_000)
    scan = Scan("[" * (MAX_DEPTH + 5), 0)
    scan.run()
    assert str(MAX_DEPTH) in scan.expected


@pytest.mark.parametrize(
    ("begin", "again", "end"),
    [
        ("", '["a"b', ""),
        ('{"a":"', '"x', ""),
        ('["', "\\q", ""),
        ("[", '"a" "b" ', ""),
        ('{"name":"', "\n", '"x"'),
    ],
)
def test_hostile_text_takes_linear_time(begin, again, end):
    def work(text):
        with contextlib.suppress(TraceFormatError):
            parse(text)

    once, thrice = (lines_run(lambda n=n: work(begin + again * n + end)) for n in (2_000, 6_000))
    assert thrice <= 3 * once + 500
    # inside the regular expressions nothing can be counted: the square of this would not end within the
    # limit of a test
    work(begin + again * (1_000_000 // len(again)) + end)


def test_agrees_with_the_standard_library_on_valid_documents():
    documents_ = [
        {"a": [1, -2.5e-3, 'q"\\/\b\f\n\r\té', [], {}, None, True, False]},
        [[[["x"]]], {"": {"": ""}}],
        [0.1, 1e308, -0.0, 2**64 - 1, -(2**63)],
    ]
    for document in documents_:
        text = json.dumps(document)
        value, end = Scan(text, 0).run()
        assert value == document
        assert end == len(text)


def test_integers_beyond_64_bits_are_real_numbers():
    assert Scan("[123456789012345678901234567890]", 0).run()[0] == [1.2345678901234568e29]
    value, _ = parse('["\x1e", 123456789012345678901234567890]')  # through the standard library
    assert value == ["\x1e", 1.2345678901234568e29]


def test_documents_inside_a_log_are_found_in_order():
    text = 'start\n{"Layers": ["a",]}\nmiddle [1]\n[ { "count" : 3 }, { "name" : "a", "timeMs" : 1 } ]\nend'
    options = LoadOptions()
    found = [value for value, _, _ in documents(text, "log", options)]
    assert found == [{"Layers": ["a"]}, [{"count": 3}, {"name": "a", "timeMs": 1}]]
    assert [w.code for w in options.warnings] == ["trailing_comma"]
