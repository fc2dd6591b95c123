"""Pickles of plain values are read as Python reads them; others do nothing, and are errors that say what."""

from __future__ import annotations

import os
import pickle
import pickletools
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from flight_recorder_dumps import Job

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.flight_recorder.dump import read_dump
from torchtrt_viz.formats.flight_recorder.plain_pickle import MAX_DEPTH, MAX_OPEN, read_plain
from torchtrt_viz.formats.io.options import LoadOptions

VALUES: list[Any] = [
    {},
    [],
    5,
    {"a": [1, -1, 255, 256, 65536, -(2**31), 2**31, 2**63, -(2**63), 2**100]},
    {"b": [True, False, None, 1.5, -0.0, float("inf"), b"", b"bytes", b"x" * 300, "", "é" * 300, "\ud800x"]},
    [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), [()])],
    {1: "a", 2.5: "b", None: "c", b"d": "e", "f": {"g": {"h": []}}},
    [list(range(2500)), {str(n): n for n in range(2500)}],
]


def read(data: bytes) -> Any:
    return read_plain(data, "rank_0").value


def refused(data: bytes) -> TraceFormatError:
    with pytest.raises(TraceFormatError) as caught:
        read_plain(data, "rank_0")
    assert caught.value.path == "rank_0"
    return caught.value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("number", range(len(VALUES)))
def test_plain_values_are_what_python_reads(number: int, protocol: int) -> None:
    value = VALUES[number]
    if protocol == 2 and number in (4, 6):  # bytes have no instruction of their own in it
        pytest.skip("a call of codecs.encode")
    data = pickle.dumps(value, protocol)
    expected = pickle.loads(data) if number != 4 else value
    if number == 4:  # a lone surrogate is no text: it is replaced
        expected = {"b": [*value["b"][:-1], "\ufffd\ufffd\ufffdx"]}
    assert read(data) == expected


def test_shared_values_stay_shared() -> None:
    inner = {"frame": 1}
    found = read(pickle.dumps([inner, inner], 4))
    assert found[0] is found[1]


# -- hostile ---------------------------------------------------------------------------------------------


class Reduced:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def marker(tmp_path: Path) -> Path:
    return tmp_path / "was_run"


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("where", ["top", "entry", "key"])
@pytest.mark.parametrize("function", ["system", "eval", "open", "import"])
def test_nothing_is_run(tmp_path: Path, function: str, where: str, protocol: int) -> None:
    run = marker(tmp_path)
    hostile = {
        "system": Reduced(os.system, f"touch {run}"),
        "eval": Reduced(eval, f"open({str(run)!r}, 'w')"),
        "open": Reduced(open, str(run), "w"),
        "import": Reduced(__import__, "antigravity"),
    }[function]
    value: Any = hostile
    if where != "top":
        value = {"version": "2.10", "pg_config": {}, "entries": [{"record_id": 0}, hostile]}
    if where == "key":
        value["entries"][1] = {hostile: 1}
    data = pickle.dumps(value, protocol)
    error = refused(data)
    assert "GLOBAL" in str(error.found)
    assert error.offset is not None
    assert "any code" in str(error)
    dump = tmp_path / "rank_0"
    dump.write_bytes(data)
    with pytest.raises(TraceFormatError):
        tv.load(dump, format="flight_recorder")
    assert not run.exists()
    assert "antigravity" not in sys.modules


def test_what_is_refused_is_named_with_its_place() -> None:
    data = pickle.dumps({"pg_config": {}, "entries": os.system}, 2)
    error = refused(data)
    assert error.found == f"the instruction GLOBAL {os.system.__module__} system"
    assert data[error.offset : error.offset + 1] == b"c"
    error = refused(pickle.dumps({"pg_config": {}, "entries": os.system}, 4))
    assert error.found == f"the instruction STACK_GLOBAL {os.system.__module__} system"
    assert pickle.dumps({"pg_config": {}, "entries": os.system}, 4)[error.offset] == 0x93


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("INST", b"\x80\x02(S'touch x'\nios\nsystem\n."),
        ("INST", b"\x80\x02(ios\nsystem\n."),
        ("OBJ", b"\x80\x02(]o."),
        ("REDUCE", b"\x80\x02])R."),
        ("BUILD", b"\x80\x02]}b."),
        ("NEWOBJ", b"\x80\x02])\x81."),
        ("NEWOBJ_EX", b"\x80\x04])}\x92."),
        ("PERSID", b"\x80\x02Px\n."),
        ("BINPERSID", b"\x80\x02]Q."),
        ("EXT1", b"\x80\x02\x82\x01."),
        ("EXT4", b"\x80\x02\x84\x01\x00\x00\x00."),
        ("BYTEARRAY8", b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x."),
        ("NEXT_BUFFER", b"\x80\x05\x97."),
        ("FROZENSET", b"\x80\x04(\x91."),
        ("EMPTY_SET", b"\x80\x04\x8f."),
        ("DUP", b"\x80\x02]2."),
        ("PUT", b"\x80\x02]p0\n."),
    ],
)
def test_each_other_instruction_is_refused(name: str, data: bytes) -> None:
    assert name in str(refused(data).found) or name == "INST"


def test_every_instruction_of_pickle_is_read_or_refused() -> None:
    """Only these make values, and none of them can do anything else."""
    read_ones = {
        *("PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "MEMOIZE"),
        *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
        *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT"),
        *("EMPTY_LIST", "APPEND", "APPENDS", "LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
    }
    for opcode in pickletools.opcodes:
        code = opcode.code.encode("latin-1")
        if opcode.name in read_ones:
            continue
        error = refused(b"\x80\x02]" + code + b"." * 20)
        assert f"instruction {opcode.name}" in str(error.found), opcode.name


def bombs() -> Iterator[tuple[str, bytes]]:
    proto = b"\x80\x02"
    yield "a memo index that an array would be made for", proto + b"]r\xff\xff\xff\xff."
    yield "a string longer than the file", proto + b"X\xff\xff\xff\xffabc."
    yield "bytes longer than the file", b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b"abc."
    yield "a frame longer than the file", b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"]."
    yield (
        "an integer of many digits",
        proto + b"\x8b" + struct.pack("<i", 1 << 20) + b"\xff" * (1 << 20) + b".",
    )
    yield "a negative length", proto + b"\x8b" + struct.pack("<i", -1) + b"."
    yield "lists in lists", proto + b"]" * 100_000 + b"a" * 99_999 + b"."
    yield "tuples in tuples", proto + b")" + b"\x85" * 100_000 + b"."
    yield "tuples in tuples as a key", proto + b"})" + b"\x85" * 100_000 + b"Ns."
    yield "marks", proto + b"(" * 100_000 + b"."
    yield "a list in itself", proto + b"]q\x00h\x00a."
    yield "a dict in itself", proto + b"}q\x00Nh\x00s."
    yield "many lists", proto + b"]" * 100_000 + b"."
    laughs = b"".join(
        b"](" + b"h" + bytes([n - 1]) * 1 + (b"h" + bytes([n - 1])) * 9 + b"eq" + bytes([n])
        for n in range(1, 40)
    )
    yield "a billion laughs", proto + b"]q\x00" + laughs + b"."
    yield "an unknown protocol", b"\x80\x63]."
    yield "nothing", proto
    yield "a stack that is empty", proto + b"a."
    yield "a mark that is not there", proto + b"]e."
    yield "a memo that is not there", proto + b"h\x05."
    yield "a dict with half a pair", proto + b"}(Nu."
    yield "a list as a key", proto + b"}]Ns."


@pytest.mark.parametrize(("what", "data"), list(bombs()), ids=[what for what, _ in bombs()])
def test_a_bomb_is_an_error_or_a_small_value(what: str, data: bytes, tmp_path: Path) -> None:
    with suppress(TraceFormatError):
        plain = read_plain(data, "rank_0")
        assert isinstance(plain.value, (list, dict, int, str, bytes, tuple))
        harmless = ("a frame longer", "a list in itself", "a dict in itself", "a memo index", "many lists")
        assert plain.cut is not None or what.startswith(harmless)
    dump = tmp_path / "rank_0"
    dump.write_bytes(data)
    with pytest.raises(TraceFormatError):
        tv.load(dump, format="flight_recorder")


def test_depth_and_open_containers_are_bounded() -> None:
    deep: Any = []
    for _ in range(MAX_DEPTH - 2):
        deep = [deep]
    assert read(pickle.dumps(deep, 4)) == deep
    for _ in range(4):
        deep = [deep]
    assert "too deep" in str(refused(pickle.dumps(deep, 4)))
    assert "under way" in str(refused(b"\x80\x02" + b"(" * (MAX_OPEN + 1)))


def test_a_size_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchtrt_viz.formats.flight_recorder.plain_pickle.MAX_BYTES", 8)
    assert "too large" in str(refused(pickle.dumps([1, 2, 3], 2)))


# -- damaged ---------------------------------------------------------------------------------------------


def dump_of(calls: int = 3) -> bytes:
    job = Job(2)
    for _ in range(calls):
        job.call("all_reduce")
    return pickle.dumps(job.document(0), 2)


def test_truncated_at_every_byte() -> None:
    """What is before the cut is read and a warning says so, or nothing is whole and it is an error."""
    data = dump_of()
    whole = read_dump(data, "rank_0", LoadOptions()).entries
    counts = []
    for end in range(len(data)):
        options = LoadOptions()
        try:
            dump = read_dump(data[:end], "rank_0", options)
        except TraceFormatError:
            counts.append(-1)
            continue
        assert [warning.code for warning in options.warnings] == ["truncated"]
        assert dump.cut
        assert dump.entries == whole[: len(dump.entries)]  # whole entries only, the oldest ones
        counts.append(len(dump.entries))
    assert counts == sorted(counts)
    assert set(counts) == {-1, 0, 1, 2, 3}


@pytest.mark.parametrize("left", [40, 300, 700])
def test_a_cut_dump_is_accounted_for(left: int) -> None:
    data = dump_of()
    trace = tv.load(data[:-left], format="flight_recorder")
    accounting = trace.meta["accounting"]
    assert accounting["read"] == len(trace.recorded_collectives()) < 4
    assert accounting["in_file"] == accounting["read"] + sum(accounting["left_out"].values())
    assert trace.meta["flight_recorder"]["cut"]


def test_strict_refuses_what_is_cut() -> None:
    data = dump_of()
    with pytest.raises(TraceFormatError, match="ends in its middle"):
        tv.load(data[:-40], format="flight_recorder", strict=True)


def test_damage_in_the_middle_leaves_what_is_before_it() -> None:
    data = dump_of(6)
    place = data.index(b"completed")
    damaged = data[:place] + b"\xff" * 9 + data[place + 9 :]  # a text of other bytes: the rest is whole
    assert len(tv.load(damaged, format="flight_recorder").recorded_collectives()) == 6
    number = data.rindex(b"\x8a\x08")  # a long integer: its instruction becomes none
    damaged = data[:number] + b"\xfe" + data[number + 1 :]
    trace = tv.load(damaged, format="flight_recorder")
    assert trace.recorded_collectives()["record"].tolist() == [4, 3, 2, 1, 0]
    warning = trace.meta["warnings"][0]
    assert (warning.code, warning.offset) == ("truncated", number)
    assert "0xfe, which is no instruction" in warning.message
