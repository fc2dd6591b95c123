"""The native ETDump reader: what it reads, and what it refuses."""

from __future__ import annotations

import struct
from typing import Any

import etdump_writer as writer
import numpy as np
import pytest
from etdump_writer import Scalar, Table, debug, profile, run, tensor

from torchtrt_viz._native import native

ROLES = native("etdump").ROLES


def decode(data: bytes) -> Any:
    return native("etdump").decode(np.frombuffer(data, np.uint8))


def two_runs() -> list[Table]:
    return [
        run([profile("Method::init", 10, 20, chain=-1, instruction=0)], "Default"),
        run(
            [
                profile(identifier="torchtrt.enqueue_host", start=40, end=50, instruction=0),
                profile(
                    identifier="torchtrt.delegate", start=35, end=55, instruction=0, metadata=b'{"call":7}'
                ),
                profile("DELEGATE_CALL", 30, 60, instruction=0),
                profile(number=3, start=61, end=62, instruction=1, chain=2),
                profile("native_call_add.out", 71, 79, instruction=2),
                profile("Method::execute", 25, (1 << 64) - 1, chain=-1, instruction=0),
            ],
            bundled=4,
        ),
    ]


@pytest.mark.parametrize("prefix", [True, False])
def test_every_field_of_profile_events(prefix: bool) -> None:
    data = writer.etdump(two_runs(), prefix=prefix, version=3)
    dump = decode(data)
    events, strings = dump["events"], dump["strings"]
    name = [strings[code] if code >= 0 else None for code in events["name"]]
    identifier = [strings[code] if code >= 0 else None for code in events["delegate_name"]]
    assert name == [
        "Method::init",
        None,
        None,
        "DELEGATE_CALL",
        None,
        "native_call_add.out",
        "Method::execute",
    ]
    assert identifier == [None, "torchtrt.enqueue_host", "torchtrt.delegate", None, None, None, None]
    assert events["run"].tolist() == [0, 1, 1, 1, 1, 1, 1]
    assert events["chain"].tolist() == [-1, 0, 0, 0, 2, 0, -1]
    assert events["instruction"].tolist() == [0, 0, 0, 0, 1, 2, 0]
    assert events["delegate_id"].tolist() == [-1, -1, -1, -1, 3, -1, -1]
    assert events["start"].tolist() == [10, 40, 35, 30, 61, 71, 25]
    assert events["end"].tolist() == [20, 50, 55, 60, 62, 79, (1 << 64) - 1]
    offset, length = int(events["metadata_offset"][2]), int(events["metadata_length"][2])
    assert data[offset : offset + length] == b'{"call":7}'
    assert events["metadata_length"].tolist() == [0, 0, 10, 0, 0, 0, 0]
    assert [ROLES[role] for role in events["role"]] == [
        "load",
        "enqueue",
        "delegate",
        "delegate_call",
        "layer",
        "kernel",
        "method",
    ]
    runs = dump["runs"]
    assert [strings[code] for code in runs["name"]] == ["Default", "Execute"]
    assert runs["bundled_input"].tolist() == [-1, 4]
    assert (runs["first"].tolist(), runs["count"].tolist()) == ([0, 1], [1, 6])
    assert dump["version"] == 3
    assert dump["size_prefixed"] is prefix
    assert dump["fatal"] is None
    assert dump["damage_count"] == 0


def test_signature_is_of_the_events_and_not_of_their_times() -> None:
    def body(at: int, number: int = 1) -> list[Table]:
        return [
            profile("A", at, at + 1, instruction=1),
            profile(number=number, start=at, end=at, instruction=1),
        ]

    dump = decode(writer.etdump([run(body(1)), run(body(99)), run(body(1, 2)), run(body(1)[:1])]))
    signature = dump["runs"]["signature"]
    assert signature[0] == signature[1]
    assert len(set(signature.tolist())) == 3


def test_logged_values_of_every_type() -> None:
    values = [
        {0: Scalar("<b", 1), 3: Table({0: Scalar("<q", -(1 << 40))})},
        {0: Scalar("<b", 2), 6: Table({0: Scalar("<B", 1)})},
        {0: Scalar("<b", 3), 4: Table({0: Scalar("<f", 1.5)})},
        {0: Scalar("<b", 4), 5: Table({0: Scalar("<d", 0.1)}), 7: Table({0: Scalar("<B", 1)})},
        {0: Scalar("<b", 5), 1: tensor(6, [2, 3], [3, 1], 64)},
        {0: Scalar("<b", 6), 2: Table({0: [tensor(4, [5], [1], 0), tensor(11, [], [], 8)]})},
    ]
    events = [profile("A", 1, 2), *(debug(value, instruction=i, chain=5) for i, value in enumerate(values))]
    dump = decode(writer.etdump([run(events)]))
    debugs, tensors = dump["debugs"], dump["tensors"]
    assert debugs["type"].tolist() == [1, 2, 3, 4, 5, 6]
    assert debugs["integer"].tolist() == [-(1 << 40), 1, 0, 0, 0, 0]
    assert debugs["real"].tolist() == [0, 0, 1.5, 0.1, 0, 0]
    assert debugs["output"].tolist() == [-1, -1, -1, 1, -1, -1]
    assert debugs["after"].tolist() == [1] * 6
    assert debugs["chain"].tolist() == [5] * 6
    assert debugs["tensor_first"].tolist() == [0, 0, 0, 0, 0, 1]
    assert debugs["tensor_count"].tolist() == [0, 0, 0, 0, 1, 2]
    assert tensors["scalar_type"].tolist() == [6, 4, 11]
    assert tensors["offset"].tolist() == [64, 0, 8]
    assert tensors["sizes"].tolist() == [2, 3, 5]
    assert tensors["strides"].tolist() == [3, 1, 1]
    assert tensors["size_count"].tolist() == [2, 1, 0]


def test_allocations() -> None:
    events = [writer.allocation(1, 4096), profile("A", 1, 2), writer.allocation(2, (1 << 64) - 1)]
    dump = decode(writer.etdump([run([]), run(events, allocators=["method", "planned"])]))
    assert dump["allocations"]["run"].tolist() == [1, 1]
    assert dump["allocations"]["after"].tolist() == [0, 1]
    assert dump["allocations"]["allocator"].tolist() == [1, 2]
    assert dump["allocations"]["size"].tolist() == [4096, (1 << 64) - 1]
    assert [dump["strings"][code] for code in dump["allocators"]["name"]] == ["method", "planned"]


def test_dumps_that_follow_one_another_in_a_file() -> None:
    one = writer.etdump([run([profile("A", 1, 2)])])
    two = writer.etdump([run([profile("B", 3, 4, instruction=9)]), run([profile("A", 5, 6)])])
    dump = decode(one + two)
    assert dump["segments"] == 2
    assert dump["runs"]["segment"].tolist() == [0, 1, 1]
    assert [dump["strings"][code] for code in dump["events"]["name"]] == ["A", "B", "A"]
    assert dump["events"]["instruction"].tolist() == [-1, 9, -1]
    assert dump["trailing_bytes"] == 0
    trailing = decode(one + b"surplus")
    assert (trailing["trailing_offset"], trailing["trailing_bytes"]) == (len(one), 7)
    assert len(trailing["events"]["run"]) == 1


def test_invalid_utf8_is_replaced_and_located() -> None:
    data = writer.etdump([run([profile(b"ok", 1, 2), profile(b"b\xffd", 3, 4), profile(b"b\xfed", 5, 6)])])
    dump = decode(data)
    assert [dump["strings"][code] for code in dump["events"]["name"]] == ["ok", "b�d", "b�d"]
    assert [data[offset : offset + 3] for _, offset in dump["invalid_text"]] == [b"b\xffd", b"b\xfed"]


def test_a_file_cut_anywhere_keeps_its_whole_events() -> None:
    events = [profile(f"event {i}", 10 * i, 10 * i + 5, instruction=i) for i in range(20)]
    data = writer.etdump([run(events)])
    kept = []
    for size in range(12, len(data)):
        dump = decode(data[:size])
        count = 0 if dump["fatal"] else len(dump["events"]["run"])
        instructions = dump["events"]["instruction"].tolist()
        assert instructions == list(range(count))
        if count < 20:
            assert dump["fatal"] or dump["damage_count"]
        kept.append(count)
    assert kept == sorted(kept)
    assert kept[-1] >= 19


def damaged(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + struct.pack("<I", value & 0xFFFFFFFF) + data[at + 4 :]


def test_damage_to_one_event_costs_that_event_only() -> None:
    events = [profile(f"event {i}", 10 * i + 1, 10 * i + 5, instruction=i) for i in range(5)]
    data = writer.etdump([run(events)])
    at = data.index(b"event 2") - 4  # the length of its name
    dump = decode(damaged(data, at, 0x7FFFFFFF))
    assert dump["events"]["instruction"].tolist() == [0, 1, 3, 4]
    assert dump["damages"] == [("text", at)]
    assert dump["damage_count"] == 1


@pytest.mark.parametrize(("at", "kind"), [(4, "reference"), (8, "empty")])
def test_root_that_leads_nowhere(at: int, kind: str) -> None:
    data = writer.etdump([run([profile("A", 1, 2)])])
    assert decode(damaged(data, at, 0x7FFFFFFF))["fatal"][0] == kind


def test_every_byte_of_a_dump_may_be_wrong() -> None:
    data = writer.etdump(two_runs())
    decoded = 0
    for at in range(len(data)):
        for value in (0x00, 0x7F, 0x80, 0xFF):
            dump = decode(data[:at] + bytes([value]) + data[at + 1 :])
            decoded += dump["fatal"] is None
            rows = len(dump["events"]["run"])
            assert all(len(column) == rows for column in dump["events"].values())
    assert decoded > len(data)


def test_a_table_that_is_reached_from_everywhere_cannot_multiply_the_work() -> None:
    """A run with many events, listed as a run many times over: quadratic for a reader without a budget."""
    count = 20_000
    events = encoded_vector_of_one_event(count)
    dump = decode(events)
    assert dump["fatal"] is not None
    assert dump["fatal"][0] == "overlap"
    assert len(dump["events"]["run"]) <= 2 * count


def encoded_vector_of_one_event(count: int) -> bytes:
    """Return a dump whose ``count`` runs are all one table, whose ``count`` events are all one table."""
    out = bytearray(writer.encode(Table({1: []})))
    root = struct.unpack_from("<I", out)[0]
    slot = root + 4
    vector = len(out)
    struct.pack_into("<I", out, slot, vector - slot)
    run_at = vector + 4 + 4 * count + 4 * count + 4 + 64
    run_at += -run_at % 8
    out += struct.pack("<I", count)
    for i in range(count):
        out += struct.pack("<I", run_at - (vector + 4 + 4 * i))
    out += bytes(run_at - len(out) - 16)
    out += struct.pack("<HH4H", 12, 8, 0, 0, 0, 4) + bytes(4)
    assert len(out) == run_at
    out += struct.pack("<iI", 16, 4)
    events = len(out)
    event_at = events + 4 + 4 * count
    event_at += -event_at % 8 + 8
    out += struct.pack("<I", count)
    for i in range(count):
        out += struct.pack("<I", event_at - (events + 4 + 4 * i))
    out += bytes(event_at - len(out) - 8) + struct.pack("<HHHH", 8, 8, 4, 0)
    out += struct.pack("<iI", 8, 8)
    out += struct.pack("<HHI", 4, 4, 0)
    out += struct.pack("<i", 8) + bytes(12)
    return struct.pack("<I", len(out)) + bytes(out)


def test_long_names_that_overlap_cannot_multiply_the_work() -> None:
    """Every event's name is the whole rest of the file."""
    size = 1 << 20
    count = 4000
    data = writer.etdump([run([profile("x", 1, 2) for _ in range(count)]), run([profile("y" * size, 1, 2)])])
    body = bytearray(data)
    at = 0
    found = 0
    while (at := body.find(b"\x01\x00\x00\x00x\x00", at + 1)) >= 0:
        struct.pack_into("<I", body, at, size)
        found += 1
    assert found == count
    dump = decode(bytes(body))
    assert dump["fatal"] is not None
    assert dump["fatal"][0] == "overlap"
    assert len(dump["strings"]) < count


def test_names_that_are_shared_are_no_offence() -> None:
    """Another writer may store a name once and refer to it from every event."""
    dump = decode(writer.tiled([profile("n" * 300, 10, 20)] * 4, 2000, 100))
    assert dump["fatal"] is None
    assert dump["events"]["start"][:5].tolist() == [10, 10, 10, 10, 110]
    assert len(dump["events"]["run"]) == 8000


def test_group_rows_numbers_combinations_in_order() -> None:
    a = np.array([3, 3, 1, 3, 1, 3], np.int32)
    b = np.array([-1, 5, 5, -1, 5, 5], np.int32)
    code, first = native("etdump").group_rows([a, b])
    assert code.tolist() == [0, 1, 2, 0, 2, 1]
    assert first.tolist() == [0, 1, 2]
    many = np.arange(10_000, dtype=np.int32) % 5003
    code, first = native("etdump").group_rows([many])
    assert code.tolist() == many.tolist()
    assert len(first) == 5003


def test_group_rows_refuses_columns_of_different_length() -> None:
    with pytest.raises(ValueError, match="length"):
        native("etdump").group_rows([np.zeros(2, np.int32), np.zeros(3, np.int32)])
