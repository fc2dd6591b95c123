"""Arguments as text, taken from the file unparsed, are what reading the events gives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import torchtrt_viz as tv

ARGS = (
    '{"a": 1, "b": [1.5, null, true]}',
    '{"nested": {"args": {"x": "\\u00fc \\" }"}}}',
    '{"big": 123456789012345678901234567890}',
    '{"$tag": 1}',
    '{"text": "$x"}',
    '{"half": "\\ud800"}',
    '{"nan": NaN}',
    "{}",
    "[1, 2]",
    '"words"',
    "null",
    '{"twice": 1, "twice": 2}',
    '{"a": 1, "b": [1.5, null, true]}',
    '{"long": "' + "x" * 5000 + '"}',
)


def document() -> bytes:
    events = [
        f'{{"ph":"X","cat":"cpu_op","name":"op{n}","pid":1,"tid":1,"ts":{10 * n},"dur":5,"args":{text}}}'
        for n, text in enumerate(ARGS)
    ]
    events += [
        '{"ph":"X","cat":"cpu_op","name":"none","pid":1,"tid":1,"ts":500,"dur":1}',
        '{"ph":"B","cat":"cpu_op","name":"pair","pid":1,"tid":2,"ts":600,"args":{"begin":1}}',
        '{"ph":"E","cat":"cpu_op","name":"pair","pid":1,"tid":2,"ts":610,"args":{"end":2}}',
        '{"ph":"X","cat":"cpu_op","name":"bad","pid":1,"tid":1,"ts":700,"dur":"long","args":{"k":1}}',
        '{"ph":"i","cat":"cpu_op","name":"mark","pid":1,"tid":1,"ts":710,"s":"t","args":{"k":2}}',
    ]
    return ('{"schemaVersion": 1, "traceEvents": [\n' + ",\n".join(events) + "\n]}").encode()


@pytest.mark.parametrize("packed", [False, True])
def test_texts_are_what_reading_gives(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(document()) if packed else document())
    trace = tv.load(path)
    for args in (trace.args, trace.instant_args):
        rows = np.arange(len(args))
        told = args.texts(rows)
        assert told is not None
        codes, texts = told
        for row, code in zip(rows, codes, strict=True):
            if code >= 0:
                assert json.loads(texts[code]) == args[int(row)]
            elif code == -1:
                assert args[int(row)] == {}
    assert (trace.args.texts(np.arange(len(trace.args)))[0] >= 0).sum() >= 5, "most need no reading"
    back = tv.load(trace.save(tmp_path / "saved"))
    assert repr(back.args.read()) == repr(trace.args.read())
    assert repr(back.instant_args.read()) == repr(trace.instant_args.read())
