"""The schema between Python and JavaScript: both sides read the same and refuse what they do not know."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess

import numpy as np
import pytest
from wire_reader import unpack

from torchtrt_viz.scene import assets
from torchtrt_viz.scene.wire import MESSAGES, javascript, pack, since

READ = """
import { columnsOf } from "./wire.js";
let text = "";
for await (const part of process.stdin) text += part;
const out = JSON.parse(text).map(([message, frame, data, shift]) => {
  try {
    const bytes = Uint8Array.from(Buffer.from(data, "base64"));
    const placed = new Uint8Array(bytes.length + shift);
    placed.set(bytes, shift);
    const found = columnsOf(message, frame, new DataView(placed.buffer, shift));
    const column = (array) => array && {
      type: array.constructor.name,
      view: array.buffer === placed.buffer,
      values: Array.from(array, (value) => Number.isNaN(value) ? "nan" : value),
    };
    const columns = Object.entries(found).map(([name, array]) => [name, column(array)]);
    return { columns: Object.fromEntries(columns) };
  } catch (error) {
    return { error: error.message };
  }
});
console.log(JSON.stringify(out));
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """A function that reads messages with the front end's own module."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the browser tests read the messages instead")
    folder = tmp_path_factory.mktemp("wire")
    for name in ("wire", "schema", "signal"):
        shutil.copy(assets.STATIC / f"{name}.js", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "read.js").write_text(READ)

    def run(*messages):
        asked = [(name, frame, base64.b64encode(data).decode(), at) for name, frame, data, at in messages]
        done = subprocess.run(
            [node, folder / "read.js"], input=json.dumps(asked), capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return run


def sample(message, rng, optional=True):
    """Columns of odd lengths; their extremes where the type has some."""
    values = {}
    for number, column in enumerate(MESSAGES[message]):
        if column.optional and not optional:
            continue
        length = (0, 1, 7, 64)[number % 4]
        dtype = np.dtype(column.dtype)
        if column.encoding != "plain":
            low, high = (0, 2**32) if column.dtype == "uint32" else (-(2**31), 2**31)
            if dtype == np.float64:
                low, high = -(2**52), 2**52
            values[column.name] = rng.integers(low, high, length)
        elif dtype.kind == "f":
            values[column.name] = np.append(rng.normal(size=length), [np.nan]).astype(dtype)
        else:
            info = np.iinfo(dtype)
            values[column.name] = np.append(
                rng.integers(info.min, info.max, length, dtype), [info.min, info.max]
            ).astype(dtype)
    return values


def test_the_front_ends_schema_is_made_from_this_one():
    committed = (assets.STATIC / "schema.js").read_text(encoding="utf-8")
    assert committed == javascript(), (
        "run: python -m torchtrt_viz.scene.wire > torchtrt_viz/widgets/static/schema.js"
    )


@pytest.mark.parametrize("optional", [True, False])
def test_both_sides_read_what_was_packed(read, optional):
    rng = np.random.default_rng(5)
    packed = {message: sample(message, rng, optional) for message in MESSAGES}
    sent = {message: pack(message, values) for message, values in packed.items()}
    for shift in (0, 8, 1):
        answers = read(*((message, *sent[message], shift) for message in MESSAGES))
        for message, answer in zip(MESSAGES, answers, strict=True):
            assert "error" not in answer, answer
            frame, data = sent[message]
            here = unpack(frame, data)
            for column in MESSAGES[message]:
                there = answer["columns"][column.name]
                if column.name not in packed[message]:
                    assert there is None
                    assert column.name not in here
                    continue
                want = packed[message][column.name]
                assert np.array_equal(here[column.name], want, equal_nan=want.dtype.kind == "f")
                assert there["type"].lower() == f"{column.dtype}array"
                values = [np.nan if value == "nan" else value for value in there["values"]]
                assert np.array_equal(np.array(values, want.dtype), want, equal_nan=want.dtype.kind == "f")
                if column.encoding == "plain" and shift % 8 == 0:
                    assert there["view"], "columns of an aligned message are not copied"


def test_what_python_does_not_know_is_refused():
    good = sample("counters", np.random.default_rng(1))
    with pytest.raises(ValueError, match="'counters' lacks its column 'high'"):
        pack("counters", {"low": good["low"]})
    with pytest.raises(ValueError, match="'counters' has no column 'heigh'; it has low, high"):
        pack("counters", {**good, "heigh": good["high"]})
    with pytest.raises(ValueError, match=r"'low' of message 'counters' must be float32 .* not float64"):
        pack("counters", {**good, "low": good["low"].astype(np.float64)})
    page = sample("page", np.random.default_rng(1))
    with pytest.raises(ValueError, match=r"'row' .* 2\^55"):
        pack("page", {**page, "row": np.array([2**56])})


def test_times_of_any_distance_go_as_doubles(read):
    page = sample("page", np.random.default_rng(1))
    far = np.array([0, 2**56, 2**62], np.int64)
    frame, data = pack("page", {**page, "start": far, "dur": since(np.array([2**62, -(2**62)]), -(2**62))})
    assert unpack(frame, data)["start"].tolist() == far.tolist()
    (got,) = read(("page", frame, data, 0))
    assert [float(each) for each in got["columns"]["start"]["values"]] == [0, float(2**56), float(2**62)]
    assert [float(each) for each in got["columns"]["dur"]["values"]] == [float(2**63), 0]


def test_what_the_front_end_does_not_know_is_refused(read):
    frame, data = pack("counters", sample("counters", np.random.default_rng(2)))

    def changed(**change):
        first, *rest = frame["columns"]
        return {**frame, "columns": [{**first, **change}, *rest]}

    cases = {
        'lacks its column "low"': {**frame, "columns": frame["columns"][1:]},
        'unknown column "lowest" in the message "counters"': changed(name="lowest"),
        'column "low" of the message "counters" should be float32 and is float64': changed(dtype="float64"),
        'unknown encoding "zip" of the column "low"': changed(encoding="zip"),
        'ends within its column "low"': changed(length=10**6),
        'unknown column "__proto__"': changed(name="__proto__"),
        'expected the message "counters", got "view"': {**frame, "message": "view"},
        "came without its columns": None,
    }
    answers = read(*(("counters", header, data, 0) for header in cases.values()))
    for text, answer in zip(cases, answers, strict=True):
        assert text in answer.get("error", "no error"), answer
