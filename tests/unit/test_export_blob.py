"""The delegate blob, byte by byte, and what a damaged one gives."""

from __future__ import annotations

import json
import struct

import pytest

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.blob import HOST_MAGIC, host_payload, pack_blob, parse_blob

BINDINGS = [
    {"name": "x", "dtype": "float32", "shape": [-1, 4], "is_input": True},
    {"name": "y", "dtype": "bfloat16", "shape": [-1, 2], "is_input": False},
]


def good(**more):
    return bytearray(pack_blob(host_payload(b"inner program"), io_bindings=BINDINGS, **more))


def test_the_bytes_are_those_of_the_format():
    blob = bytes(good(extra={"device_id": 0, "note": "größe"}))
    magic, meta_at, meta_size, engine_at, engine_size, reserved = struct.unpack_from("<4sIIIQ8s", blob)
    assert magic == b"TR01"
    assert meta_at == 32
    assert engine_at % 16 == 0
    assert reserved == b"\x01" + b"\0" * 7
    text = blob[32 : 32 + meta_size]
    assert json.loads(text.decode("utf-8")) == {"io_bindings": BINDINGS, "device_id": 0, "note": "größe"}
    # Torch-TensorRT's parser does not read \u escapes
    assert b"\\u" not in text
    assert set(blob[32 + meta_size : engine_at]) <= {0}
    engine = blob[engine_at : engine_at + engine_size]
    assert engine[:8] == b"TVHOST01" == HOST_MAGIC
    assert struct.unpack_from("<Q", engine, 8) == (13,)
    assert engine[16:] == b"inner program"
    assert engine_at + engine_size == len(blob)


def test_what_is_packed_is_what_is_parsed():
    parsed = parse_blob(bytes(good()))
    assert (parsed.magic, parsed.kind, parsed.program) == ("TR01", "host", b"inner program")
    assert parsed.metadata["io_bindings"] == BINDINGS
    aliased = parse_blob(bytes(good(aliased_io=[{"output": 0, "input": 0, "kind": "user"}])))
    assert aliased.magic == "TR02"
    assert aliased.metadata["aliased_io"] == [{"output": 0, "input": 0, "kind": "user"}]


def test_a_tensorrt_plan_is_told_by_not_being_a_host_engine():
    parsed = parse_blob(pack_blob(b"ftrt plan", io_bindings=[]))
    assert (parsed.kind, parsed.program, parsed.engine) == ("tensorrt", None, b"ftrt plan")


def put(blob, offset, form, value):
    struct.pack_into(form, blob, offset, value)


DAMAGE = {
    "short": (lambda b: b.__delitem__(slice(20, None)), 0, "at least 32 bytes"),
    "magic": (lambda b: put(b, 0, "<4s", b"TR09"), 0, "'TR01' or 'TR02'"),
    "metadata before its place": (lambda b: put(b, 4, "<I", 8), 4, "32 to"),
    "metadata outside": (lambda b: put(b, 4, "<I", 2**32 - 1), 4, "32 to"),
    "metadata too long": (lambda b: put(b, 8, "<I", 2**32 - 1), 8, "at most"),
    "engine not aligned": (
        lambda b: put(b, 12, "<I", struct.unpack_from("<I", b, 12)[0] + 1),
        12,
        "a multiple of 16",
    ),
    "engine over the metadata": (lambda b: put(b, 12, "<I", 32), 12, "a multiple of 16"),
    # offset + size wraps to a small number in 64 bits
    "engine size wraps": (lambda b: put(b, 16, "<Q", 2**64 - 16), 16, "1 to"),
    "engine empty": (lambda b: put(b, 16, "<Q", 0), 16, "1 to"),
    "metadata no JSON": (lambda b: put(b, 32, "<c", b"["), 32, "Expecting"),
    "metadata no UTF-8": (lambda b: put(b, 34, "<B", 0xFF), 34, "UTF-8"),
    "aliases without TR02": (lambda b: put(b, 0, "<4s", b"TR02"), 0, "TR02 exactly when"),
    "inner program too long": (
        lambda b: put(b, struct.unpack_from("<I", b, 12)[0] + 8, "<Q", 2**63),
        None,
        "1 to 13",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named_with_its_place(name):
    spoil, offset, expected = DAMAGE[name]
    blob = good()
    spoil(blob)
    with pytest.raises(TraceFormatError) as raised:
        parse_blob(bytes(blob))
    assert expected in str(raised.value.expected) + str(raised.value)
    if offset is not None:
        assert raised.value.offset is not None
        assert raised.value.offset >= offset
    assert raised.value.hint


@pytest.mark.parametrize(
    "bindings",
    [
        [{"name": "x", "dtype": "float32", "shape": [-2], "is_input": True}],
        [{"name": "x", "dtype": "float32", "shape": "4", "is_input": True}],
        [{"name": "x", "dtype": "float32", "shape": [4]}],
        ["x"],
    ],
)
def test_bindings_that_are_none_are_refused(bindings):
    text = json.dumps({"io_bindings": bindings}).encode()
    offset = -(-(32 + len(text)) // 16) * 16
    header = struct.pack("<4sIIIQ8s", b"TR01", 32, len(text), offset, 4, b"\1" + b"\0" * 7)
    blob = header + text + b"\0" * (offset - 32 - len(text)) + b"ftrt"
    with pytest.raises(TraceFormatError, match="io_bindings"):
        parse_blob(blob)


def test_every_truncation_is_refused():
    blob = bytes(good())
    for size in range(len(blob)):
        with pytest.raises(TraceFormatError):
            parse_blob(blob[:size])
