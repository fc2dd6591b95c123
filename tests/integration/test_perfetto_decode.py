"""Perfetto protobuf traces, packet by packet: what each construct becomes."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from perfetto_messages import (
    BEGIN,
    COUNTER,
    END,
    INSTANT,
    annotation,
    annotation_body,
    compressed,
    counter,
    event,
    field,
    fixed64,
    interned,
    mark,
    message,
    packet,
    process,
    snapshot,
    thread,
    track,
    varint,
)

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.files import load
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.perfetto.sniff import looks_like_perfetto
from torchtrt_viz.formats.perfetto.writer import write_perfetto
from torchtrt_viz.loading.sniffing import sniff
from torchtrt_viz.trace import Trace


def rows(trace: Trace) -> list[tuple]:
    frame = trace.spans
    return list(zip(frame["name"], frame["start_ns"].tolist(), frame["dur_ns"].tolist(), strict=True))


def codes(trace: Trace) -> dict[str, int]:
    """Warnings but that of events without a category, which test_perfetto_places tests."""
    return {w.code: w.count for w in trace.meta["warnings"] if w.code != "domain_unsaid"}


PLAIN = (
    process(1, 42, "model")
    + thread(2, 1, 42, 43, "main")
    + mark(1000, event(BEGIN, "outer", track=2, category="cpu_op"))
    + mark(1100, event(BEGIN, "inner", track=2, category=["cpu_op", "gpu"]))
    + mark(1400, event(END, track=2))
    + mark(2000, event(END, track=2))
    + mark(2500, event(INSTANT, "tick", track=2))
)


def test_slices_nest_and_the_first_event_is_time_zero(read):
    trace = read(PLAIN)
    assert trace.meta["format"] == "perfetto"
    assert rows(trace) == [("outer", 0, 1000), ("inner", 100, 300)]
    assert list(trace.spans["parent"]) == [-1, 0]
    assert list(trace.spans["self_ns"]) == [700, 300]
    assert list(trace.spans["kind"]) == ["operator", "operator"]
    assert list(trace.spans["domain"]) == ["host", "gpu"]  # the category "gpu" says so
    assert list(trace.instants["name"]) == ["tick"]
    assert list(trace.instants["ts_ns"]) == [1500]
    (row,) = trace.tracks.to_dict("records")
    assert (row["label"], row["type"], row["process"], row["thread"]) == (
        "main 43",
        "thread",
        "model 42",
        "main",
    )
    assert "boottime" in trace.meta["clock"]
    assert codes(trace) == {}


def test_files_out_of_order_are_put_in_order_of_time(read):
    parts = [
        mark(5000, event(BEGIN, "late", track=9)),
        mark(6000, event(END, track=9)),
        mark(1000, event(BEGIN, "early", track=9)),
        mark(2000, event(END, track=9)),
    ]
    trace = read(b"".join(parts))
    # rows keep the order of the file
    assert rows(trace) == [("late", 4000, 1000), ("early", 0, 1000)]


def test_interned_names_belong_to_their_sequence_and_epoch(read):
    first = interned({1: {1: "cat"}, 2: {1: "one"}}, sequence=1)
    second = interned({2: {1: "two"}}, sequence=2)
    cleared = interned({2: {1: "three"}}, sequence=1)
    data = (
        first
        + second
        + mark(10, event(BEGIN, 1, track=5, category=1), sequence=1, flags=2)
        + mark(20, event(END, track=5), sequence=1, flags=2)
        + mark(30, event(BEGIN, 1, track=6), sequence=2, flags=2)
        + mark(40, event(END, track=6), sequence=2, flags=2)
        + cleared
        + mark(50, event(BEGIN, 1, track=5), sequence=1, flags=2)
        + mark(60, event(END, track=5), sequence=1, flags=2)
        + mark(70, event(BEGIN, 9, track=5), sequence=1, flags=2)
        + mark(80, event(END, track=5), sequence=1, flags=2)
    )
    trace = read(data)
    assert [name for name, _, _ in rows(trace)] == ["one", "two", "three", "(unnamed)"]
    assert codes(trace) == {"missing_string": 1}


def test_events_that_need_lost_state_are_left_out_until_it_is_cleared(read):
    data = (
        mark(5, event(INSTANT, 1, track=5), flags=2)  # nothing was interned yet
        + interned({2: {1: "a"}})
        + mark(10, event(INSTANT, 1, track=5), flags=2)
        + packet({42: True})  # a packet was dropped
        + mark(20, event(INSTANT, 1, track=5), flags=2)
        + interned({2: {1: "b"}})
        + mark(30, event(INSTANT, 1, track=5), flags=2)
    )
    trace = read(data)
    assert list(trace.instants["name"]) == ["a", "b"]
    assert codes(trace) == {"missing_state": 2}


def test_defaults_of_a_sequence_give_track_clock_and_counters(read):
    defaults = message({11: message({11: 77, 31: [90]}), 58: 64})
    data = (
        counter(90, "bytes", unit=3)
        + snapshot({6: 1_000_000, 64: 5_000}, c64=(10, False))
        + packet({59: defaults, 13: 1})
        + track(77, "lane")
        + mark(5_000, event(BEGIN, "a", extra=field(12, 7)), flags=2)
        + mark(5_010, event(END, extra=field(12, 9)), flags=2)
    )
    trace = read(data)
    # clock 64 counts in tens of nanoseconds: 10 ticks are 100 ns
    assert rows(trace) == [("a", 0, 100)]
    assert trace.tracks["label"][trace.spans["track"][0]] == "lane"
    assert list(trace.counters["name"]) == ["bytes", "bytes"]
    assert list(trace.counters["value"]) == [7.0, 9.0]
    assert list(trace.counters["ts_ns"]) == [0, 100]
    assert list(trace.counters["unit"]) == ["bytes", "bytes"]


def test_incremental_clocks_add_up_from_their_snapshot(read):
    data = (
        snapshot({6: 1_000_000, 64: 500}, c64=(1000, True))
        + packet({59: message({58: 64}), 13: 1})
        + mark(2, event(BEGIN, "a", track=7))
        + mark(3, event(END, track=7))
        + mark(5, event(INSTANT, "b", track=7))
    )
    trace = read(data)
    # 2, then 2 + 3, then 2 + 3 + 5 microseconds after the snapshot
    assert rows(trace) == [("a", 0, 3_000)]
    assert list(trace.instants["ts_ns"]) == [8_000]


def test_clocks_are_brought_together_over_snapshots(read):
    data = (
        snapshot({6: 1_000, 3: 101_000, 1: 1_700_000_000_000_000_000})
        + snapshot({6: 2_000, 3: 102_500})  # the monotonic clock gained 500 ns
        + mark(1_200, event(BEGIN, "boot", track=7))
        + mark(1_300, event(END, track=7))
        + mark(101_400, event(BEGIN, "mono", track=8), more={58: 3})
        + mark(103_500, event(END, track=8), more={58: 3})
    )
    trace = read(data)
    # 101,400 is 1,400 by the first snapshot, 103,500 is 3,000 by the second; time zero is 1,200
    assert rows(trace) == [("boot", 0, 100), ("mono", 200, 1_600)]
    assert trace.meta["base_ns"] == 1_700_000_000_000_000_200


def test_clocks_that_lead_over_others(read):
    data = (
        snapshot({6: 0, 3: 10_000})
        + snapshot({3: 20_000, 200: 5_000_000})
        + mark(5_000_100, event(BEGIN, "far", track=7), more={58: 200})
        + mark(5_000_300, event(END, track=7), more={58: 200})
        + mark(0, event(INSTANT, "zero", track=7))
    )
    trace = read(data)
    assert rows(trace) == [("far", 10_100, 200)]
    assert list(trace.instants["ts_ns"]) == [0]


def test_primary_trace_clock_is_the_axis(read):
    data = snapshot({3: 100, 6: 1_000}, primary=3) + mark(150, event(INSTANT, "a", track=7))
    trace = read(data)
    assert "monotonic" in trace.meta["clock"]
    assert len(trace.instants) == 1


def test_one_unrelated_clock_is_an_axis_two_are_not(read):
    alone = mark(100, event(BEGIN, "a", track=7), more={58: 3}) + mark(300, event(END, track=7), more={58: 3})
    trace = read(alone)
    assert rows(trace) == [("a", 0, 200)]
    assert "monotonic" in trace.meta["clock"]
    both = alone + mark(50, event(BEGIN, "b", track=8)) + mark(60, event(END, track=8))
    trace = read(both)
    assert rows(trace) == [("b", 0, 10)]
    assert codes(trace) == {"other_clock": 2}


def test_counters_of_every_form(read):
    data = (
        counter(1, "plain", unit_name="W")
        + counter(2, "scaled", unit=1, multiplier=1000)
        + counter(3, "steps", unit=2, incremental=True)
        + packet({13: 1})
        + mark(10, event(COUNTER, track=1, extra=field(44, 2.5)))
        + mark(20, event(COUNTER, track=1, extra=field(30, -7)))
        + mark(30, event(COUNTER, track=2, extra=field(30, 4)))
        + mark(40, event(COUNTER, track=3, extra=field(30, 5)))
        + mark(50, event(COUNTER, track=3, extra=field(30, 6)))
        + packet({13: 1})  # the state is cleared, and the sum with it
        + mark(60, event(COUNTER, track=3, extra=field(30, 1)))
        + mark(70, event(BEGIN, "a", track=9, extra=field(45, 1) + field(46, 0.25)))
        + mark(80, event(END, track=9))
    )
    trace = read(data)
    found = list(zip(trace.counters["name"], trace.counters["ts_ns"], trace.counters["value"], strict=True))
    assert found == [
        ("plain", 0, 2.5),
        ("plain", 10, -7.0),
        ("scaled", 20, 4000.0),
        ("steps", 30, 5.0),
        ("steps", 40, 11.0),
        ("steps", 50, 1.0),
        ("plain", 60, 0.25),
    ]
    units = dict(zip(trace.counters["name"], trace.counters["unit"], strict=True))
    assert units == {"plain": "W", "scaled": "ns", "steps": "count"}
    assert set(trace.tracks["type"]) == {"counter", "other"}


def test_flows_chain_and_end(read):
    def flow(*ids: int) -> bytes:
        return b"".join(fixed64(47, i) for i in ids)

    def last(i: int) -> bytes:
        return fixed64(48, i)

    data = b"".join(
        mark(ts, body)
        for ts, body in (
            (10, event(BEGIN, "a", track=1, extra=flow(5))),
            (11, event(END, track=1)),
            (20, event(BEGIN, "b", track=2, extra=flow(5))),
            (21, event(END, track=2)),
            (30, event(BEGIN, "c", track=3, extra=last(5))),
            (31, event(END, track=3)),
            (40, event(BEGIN, "d", track=1, extra=flow(5))),  # a new flow: the id was ended
            (41, event(END, track=1, extra=flow(6))),  # an end carries flows of its slice
            (50, event(BEGIN, "e", track=2, extra=field(36, 6))),  # the old, varint form
            (52, event(INSTANT, "i", track=2, extra=flow(5))),  # of the slice around it
            (55, event(END, track=2)),
            (60, event(BEGIN, "f", track=2, extra=last(99))),  # ends what never began
            (61, event(END, track=2)),
        )
    )
    trace = read(data)
    names = list(trace.spans["name"])
    found = [(names[s], names[t], i) for s, t, i in trace.flows[["source", "target", "id"]].to_numpy()]
    assert found == [("a", "b", 5), ("b", "c", 5), ("d", "e", 6), ("d", "e", 5)]


def test_arguments_nested_interned_and_typed(read):
    names = interned({3: {1: "shape"}, 29: {4: "fp16"}, 2: {1: "k"}, 4: {}})
    location = packet({12: field(4, message({1: 8, 2: "a.py", 3: "f", 4: 12})), 13: 2})
    args = (
        annotation(1, [1, 2.0, "x", [True]])
        + field(4, message({10: "dtype", 17: 4}))
        + annotation("tree", {"a": {"b": -5}, "c": []})
        + field(4, message({10: "big", 3: 2**64 - 1}))
        + field(4, message({10: "nan", 5: float("nan")}))
        + annotation('quo"te\n', "bad \\ \x01 text")
        + field(4, message({10: "json", 9: '{"raw": 1}'}))
        + field(4, message({10: "ptr", 7: 255}))
        + field(34, 8)
        + field(52, 77)
    )
    trace = read(
        names
        + location
        + mark(1, event(BEGIN, 1, track=5, extra=args), flags=2)
        + mark(2, event(END, track=5, extra=annotation("at_end", 3)), flags=2)
    )
    found = trace.args[0]
    nan = found.pop("nan")
    assert np.isnan(nan)
    assert found == {
        "shape": [1, 2.0, "x", [True]],
        "dtype": "fp16",
        "tree": {"a": {"b": -5}, "c": None},  # an empty array cannot be told from no value
        "big": 2**64 - 1,
        'quo"te\n': "bad \\ \x01 text",
        "json": '{"raw": 1}',
        "ptr": 255,
        "source_location": {"file_name": "a.py", "function_name": "f", "line_number": 12},
        "correlation_id": 77,
        "at_end": 3,
    }
    assert trace.spans["correlation"][0] == 77
    assert isinstance(found["shape"][1], float)


def test_arguments_of_the_form_before_2020(read):
    nested = message(
        {
            1: 1,
            2: ["a", "b"],
            3: [message({5: 4}), message({1: 2, 4: [message({8: "x"}), message({7: True})]})],
        }
    )
    trace = read(
        mark(1, event(BEGIN, "s", track=5, extra=field(4, message({10: "old", 8: nested}))))
        + mark(2, event(END, track=5))
    )
    assert trace.args[0] == {"old": {"a": 4, "b": ["x", True]}}


def test_links_are_columns(read):
    args = (
        annotation("correlation", 900)
        + annotation("External id", 31)
        + annotation("iteration", 2)
        + annotation("run_id", "engine_0")
    )
    trace = read(
        mark(1, event(BEGIN, "k", track=5, category="kernel", extra=args)) + mark(9, event(END, track=5))
    )
    row = trace.spans.iloc[0]
    assert (row["correlation"], row["external_id"], row["iteration"], row["run_id"]) == (
        900,
        31,
        2,
        "engine_0",
    )
    assert (row["kind"], row["domain"]) == ("kernel", "gpu")
    assert list(trace.tracks["domain"]) == ["gpu"]


def test_ends_with_names_close_the_slice_they_name(read):
    data = b"".join(
        mark(ts, body)
        for ts, body in (
            (10, event(BEGIN, "a", track=1)),
            (20, event(BEGIN, "b", track=1)),
            (30, event(END, "a", track=1)),
            (40, event(END, "b", track=1)),
            (50, event(END, "x", track=1)),
        )
    )
    trace = read(data)
    assert rows(trace) == [("a", 0, 20), ("b", 10, 20)]
    assert codes(trace) == {"end_without_begin": 1}


def test_slices_without_an_end_are_no_spans(read):
    trace = read(
        mark(10, event(BEGIN, "open", track=1))
        + mark(20, event(BEGIN, "in", track=1))
        + mark(30, event(END, track=1))
    )
    assert rows(trace) == [("in", 10, 10)]
    assert list(trace.instants["name"]) == ["open"]
    assert list(trace.instants["state"]) == ["unfinished"]
    assert codes(trace) == {"unfinished": 1}


def test_tracks_of_one_name_and_parent_are_one_row(read):
    data = process(1, 7, "p") + b"".join(
        track(10 + i, "request", parent=1) + mark(100 * i, event(BEGIN, f"r{i}", track=10 + i))
        for i in range(3)
    )
    data += b"".join(mark(1000 + i, event(END, track=10 + i)) for i in range(3))
    data += track(20, "other", parent=1) + mark(5, event(INSTANT, "x", track=20))
    trace = read(data)
    assert list(trace.tracks["label"]) == ["request", "other"]
    assert list(trace.tracks["process"]) == ["p 7", "p 7"]
    assert list(trace.spans["track"]) == [0, 0, 0]
    # overlapping and not nested: nobody's children
    assert list(trace.spans["parent"]) == [-1, -1, -1]


def test_threads_described_as_in_2019(read):
    old_thread = packet({44: message({1: 7, 2: 70, 5: "old", 6: 1_000}), 13: 1})
    data = (
        packet({43: message({1: 7, 6: "proc"})})
        + old_thread
        + packet({11: field(1, 5) + field(9, BEGIN) + field(23, "a"), 13: 2})  # 5 us after the reference
        + packet({11: field(1, 10) + field(9, END), 13: 2})  # and 10 after that
        + packet({11: field(16, 2_000) + field(9, INSTANT) + field(23, "i"), 13: 2})
    )
    trace = read(data)
    assert rows(trace) == [("a", 0, 10_000)]
    assert list(trace.instants["ts_ns"]) == [2_000_000 - 1_005_000]
    assert list(trace.tracks["label"]) == ["old 70"]
    assert list(trace.tracks["process"]) == ["proc 7"]


def legacy(phase: str, **fields: int) -> bytes:
    numbers = {"duration": 3, "id": 6, "local": 10, "pid": 18, "tid": 19}
    return field(6, message({2: ord(phase), **{numbers[k]: v for k, v in fields.items()}}))


def test_legacy_phases(read):
    data = (
        mark(1_000, field(23, "x") + legacy("X", duration=3, pid=5, tid=6))
        + mark(2_000, field(23, "async") + legacy("b", id=9))
        + mark(4_000, field(23, "async") + legacy("e", id=9))
        + mark(5_000, field(23, "mark") + legacy("I", pid=5, tid=6))
        + mark(6_000, field(23, "?") + legacy("P", pid=5, tid=6))
    )
    trace = read(data)
    assert rows(trace) == [("x", 0, 3_000), ("async", 1_000, 2_000)]
    assert list(trace.instants["name"]) == ["mark"]
    assert set(trace.tracks["type"]) == {"thread", "async"}
    assert codes(trace) == {"legacy_phase": 1}


def test_compressed_packets_stand_for_what_is_inside(read):
    inside = mark(1_000, event(BEGIN, "z", track=3)) + mark(1_500, event(END, track=3))
    trace = read(mark(900, event(INSTANT, "before", track=3)) + compressed(inside) + PLAIN)
    assert ("z", 100, 500) in rows(trace)
    assert ("outer", 100, 1000) in rows(trace)
    zstandard = pytest.importorskip("zstandard")
    packed = packet({133: zstandard.ZstdCompressor().compress(inside)}, None)
    assert rows(read(packed)) == [("z", 0, 500)]


def test_damaged_and_hostile_compressed_packets(read):
    inside = mark(1_000, event(INSTANT, "z", track=3)) * 50
    cut = packet({50: zlib.compress(inside)[:-10]}, None)
    trace = read(PLAIN + cut)
    assert "damaged_packet" in codes(trace)
    assert ("outer", 0, 1000) in rows(trace)
    bomb = packet({50: zlib.compress(b"\0" * (80 << 20), 9)}, None)
    with pytest.raises(TraceFormatError, match="without bound"):
        read(bomb)
    nested = compressed(compressed(inside))
    assert "compressed" in codes(read(PLAIN + nested))


def test_truncated_traces_keep_whole_packets(read):
    whole = read(PLAIN)
    for cut in (1, 5, 19):
        trace = read(PLAIN[:-cut])
        assert rows(trace) == rows(whole)
        (repair,) = trace.meta["warnings"]
        assert repair.code == "truncated"
        # the last packet is the instant's
        assert repair.offset == len(PLAIN) - len(mark(2500, event(INSTANT, "tick", track=2)))
    with pytest.raises(TraceFormatError):
        read(PLAIN[:-3], strict=True)


def test_a_damaged_packet_does_not_take_its_neighbours_with_it(read):
    bad = field(1, b"\x0b\xff\xff")  # a group, which the format does not have
    trace = read(PLAIN + bad + mark(9_000, event(INSTANT, "after", track=2)))
    assert list(trace.instants["name"]) == ["tick", "after"]
    assert codes(trace) == {"damaged_packet": 1}


def test_times_that_do_not_fit_are_left_out(read):
    data = (
        PLAIN
        + mark(2**63 + 5, event(INSTANT, "far", track=2))
        + packet({11: event(INSTANT, "never", track=2)})
    )
    trace = read(data)
    assert list(trace.instants["name"]) == ["tick"]
    assert codes(trace) == {"no_time": 2}


def test_times_before_zero_are_left_out_so_that_differences_always_fit(read, tmp_path):
    """Found by fuzzing: with times on both sides of zero, a difference was too large to be read again."""
    early = packet({8: 4_000, 58: 64, 11: event(INSTANT, "early", track=2)})  # 6 us before the clock's zero
    clocks = snapshot({64: 20_000, 6: 10_000})
    ends = mark(0, event(BEGIN, "long", track=2)) + mark(2**62, event(END, track=2))
    trace = read(clocks + early + ends)
    assert codes(trace) == {"no_time": 1}
    assert trace.instants.empty
    assert trace.spans[["start_ns", "dur_ns"]].to_numpy().tolist() == [[0, 2**62]]
    write_perfetto(trace, tmp_path / "again.pftrace")
    again = load(tmp_path / "again.pftrace")
    assert again.meta["warnings"] == []
    assert again.spans[["start_ns", "dur_ns"]].to_numpy().tolist() == [[0, 2**62]]


def test_nesting_of_arguments_is_bounded(read):
    body = annotation_body("leaf", 1)
    for _ in range(200):
        body = message({10: "d"}) + field(11, body)
    trace = read(mark(1, event(BEGIN, "a", track=1, extra=field(4, body))) + mark(2, event(END, track=1)))
    depth, value = 0, trace.args[0]["d"]
    while isinstance(value, dict):
        (value,) = value.values()
        depth += 1
    assert value is None
    assert depth < 70


def test_names_that_are_no_text(read):
    trace = read(
        mark(1, event(BEGIN, None, track=1, extra=field(23, b"\xff\xfe"))) + mark(2, event(END, track=1))
    )
    assert list(trace.spans["name"]) == ["��"]


def test_packets_of_other_sources_are_counted(read):
    trace = read(PLAIN + packet({1: b"\x08\x01"}) * 3 + packet({35: b""}))
    assert trace.meta["packets_not_read"] == {1: 3, 35: 1}
    assert codes(trace) == {"unread_packets": 3}  # statistics of the recording are no data


def test_events_without_a_track(read):
    trace = read(mark(1, event(BEGIN, "a"), sequence=9) + mark(2, event(END), sequence=9))
    assert list(trace.tracks["label"]) == ["sequence 9"]


def test_an_empty_trace_and_one_of_nothing_whole(read):
    trace = read(packet({60: message({1: 5, 2: "t"})}))
    assert len(trace.spans) == 0
    with pytest.raises(TraceFormatError) as caught:
        read(b"\x0a" + varint(500) + b"\x40\x01\x58\x01")
    assert caught.value.hint


def test_the_sniff_takes_traces_and_leaves_text_alone(tmp_path, cases):
    path = tmp_path / "a.bin"
    path.write_bytes(PLAIN)
    assert sniff(Source(path)) == "perfetto"
    for name in ("trex/p12_empty_torchtrt.trace", "trex/g01_strings_names_only.graph.json"):
        assert sniff(Source(cases / name)) != "perfetto"
    for text in (
        b"\n[1,2]\n",
        b"\n" + b"x" * 500,
        b'\n{"traceEvents": []}',
        b"\n" * 100,
        b"",
        b"\n",
        b"\n\0",
    ):
        assert not looks_like_perfetto(text), text
