"""Every packet of a Perfetto trace is accounted for, as a plain walk over the bytes counts them."""

from __future__ import annotations

import pytest
import raw_perfetto
from perfetto_gpu import counter_spec, counters, interned_gpu, specification, stage
from perfetto_messages import (
    BEGIN,
    COUNTER,
    END,
    INSTANT,
    compressed,
    event,
    field,
    interned,
    mark,
    message,
    packet,
    process,
    snapshot,
    thread,
    varint,
)
from perfetto_traces import some_gpu_trace, some_trace

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.files import load
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.perfetto.packet_kinds import BOOKKEEPING, kind_of
from torchtrt_viz.formats.perfetto.writer import write_perfetto
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.trace import Trace


def codes(trace: Trace) -> dict[str, int]:
    return {w.code: w.count for w in trace.meta["warnings"] if w.code != "domain_unsaid"}


def check(data: bytes, accounting: dict) -> None:
    """The sums hold, and each kind has as many packets as the raw walk finds."""
    raw, raw_bytes = raw_perfetto.counts(data)
    left = sum(accounting["left_out"].values())
    unread = sum(accounting["unread"].values())
    assert accounting["in_file"] == sum(raw.values()) == accounting["read"] + left + unread
    sizes = accounting["bytes"]
    assert sizes["read"] + sizes["left_out"] + sizes["unread"] == raw_bytes
    assert sizes["in_file"] == raw_bytes + sizes["outside_packets"] + sizes["cut"]
    if not left:
        named = {kind_of(kind): count for kind, count in raw.items()}
        events = sum(count for name, count in accounting["unread"].items() if "_event of " in name)
        for name, count in named.items():
            found = accounting["packets"].get(name, 0) + accounting["unread"].get(name, 0)
            if name not in accounting["packets"]:
                found = max(found, accounting["bookkeeping"].get(name, 0))
            assert found + (events if name == "track_event" else 0) == count, name


MIXED = (
    process(1, 42, "model")
    + thread(2, 1, 42, 43, "main")
    + snapshot({6: 10, 3: 100})
    + interned({1: {1: "kernel"}})
    + mark(10, event(BEGIN, "a", track=2, category=1), flags=2)
    + mark(20, event(END, track=2), flags=2)
    + interned_gpu(specification(1, "q"), specification(2, "k"), sequence=7)
    + stage(30, 5, event=1, queue=1, stage=2, sequence=7)
    + counters(40, {1: 2}, descriptor=counter_spec(1, "c", [37]))
    + compressed(mark(50, event(INSTANT, "inside", track=2)) + packet({7: b"\x08\x01"}))
    + packet({33: field(1, message({1: 4}))})
    + packet({1: b"\x08\x01"}) * 3
    + packet({9: b""})
    + packet({66: b"\x08\x01", 12: field(5, message({1: 1, 2: "frame"}))})
    + mark(60, event(5, track=2))
    + mark(70, event(0, track=2))
    + packet({1234: b""})
)


def test_every_packet_is_counted_once(read):
    trace = read(MIXED)
    accounting = trace.meta["accounting"]
    check(MIXED, accounting)
    assert accounting["unread"] == {
        "ftrace_events": 3,
        "sys_stats": 1,
        "process_stats": 1,
        "perf_sample": 1,
        "field 1234": 1,
        "track_event of type 5 (state)": 1,
        "track_event of type 0 (unspecified)": 1,
    }
    assert accounting["bookkeeping"] == {"no data": 2, "clock_snapshot": 1, "trace_config": 1}
    assert accounting["left_out"] == {}
    assert accounting["rows"] == {"spans": 2, "instants": 1, "counters": 1, "flows": 0}
    assert accounting["span_ns"] == 15
    assert codes(trace) == {"unread_packets": 9}
    (warning,) = [w for w in trace.meta["warnings"] if w.code == "unread_packets"]
    assert "ftrace_events 3" in str(warning)
    assert "perf_sample 1" in str(warning)


def test_what_is_left_out_has_its_reason(read):
    legacy = field(6, message({2: ord("O")}))
    data = (
        mark(1, event(BEGIN, "a", track=1))
        + mark(2, event(END, track=1))
        + mark(3, event(END, track=1))  # ends nothing
        + packet({11: event(INSTANT, "timeless", track=1)})
        + mark(4, event(COUNTER, track=5))  # no value
        + mark(5, event(INSTANT, 3, track=1), flags=2, sequence=9)  # state that was never set
        + packet({11: b"\xff"})
        + field(1, b"\x0f")
        + mark(6, field(11, 1) + legacy)
        + field(9, b"not a packet")
        + b"\x0a\x7f\x08"
    )
    trace = read(data)
    accounting = trace.meta["accounting"]
    check(data, accounting)
    assert accounting["left_out"] == {
        "damaged_packet": 1,
        "damaged_message": 1,
        "missing_state": 1,
        "no_time": 1,
        "no_value": 1,
        "end_without_begin": 1,
    }
    assert accounting["unread"] == {"legacy_event of phase O": 1}
    assert accounting["read"] == 2
    assert accounting["bytes"]["cut"] == 3
    assert accounting["bytes"]["outside_packets"] == 14
    assert codes(trace)["legacy_phase"] == 1
    assert "unread_packets" not in codes(trace)


def test_flows_that_are_not_read_are_said(read):
    legacy = field(6, message({8: 77, 13: 2}))
    trace = read(mark(1, event(BEGIN, "a", track=1) + legacy) + mark(2, event(END, track=1)), strict=True)
    assert codes(trace) == {"legacy_flow": 1}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("made", [some_trace, some_gpu_trace])
def test_generated_traces(read, made, seed):
    data = made(seed)
    check(data, read(data).meta["accounting"])


def test_what_this_package_writes(cases, tmp_path):
    source = load(cases / "outside/id_scopes/async_global_id_two_processes.json")
    assert isinstance(source, Trace)
    path = write_perfetto(source, tmp_path / "t.pftrace")
    trace = load(path)
    check(path.read_bytes(), trace.meta["accounting"])
    assert trace.meta["accounting"]["left_out"] == trace.meta["accounting"]["unread"] == {}
    assert codes(trace) == {}


@pytest.mark.parametrize("room", ["corpus", "cases"])
def test_every_perfetto_file_of_the_shared_folders(request, room):
    checked = 0
    for path in sorted(request.getfixturevalue(room).rglob("*")):
        if path.suffix not in (".pftrace", ".perfetto-trace", ".trace", ".pb") or not path.is_file():
            continue
        try:
            trace = read_source(Source(path), LoadOptions())
        except TraceFormatError:
            continue
        if trace.meta.get("format") == "perfetto":
            check(path.read_bytes(), trace.meta["accounting"])
            checked += 1
    assert checked >= (2 if room == "cases" else 0)


def test_a_trace_of_other_sources_loads_with_a_warning(read):
    """A recording of the scheduler alone is a Perfetto trace: nothing of it is read, and that is said."""
    trace = read(
        packet({33: field(1, message({1: 4})), 8: 1})
        + packet({8: 5, 1: message({1: 0, 2: message({1: 5, 2: 7})})}) * 4
        + packet({8: 9, 9: b""})
    )
    assert len(trace.spans) == len(trace.instants) == len(trace.counters) == 0
    assert codes(trace) == {"unread_packets": 5, "no_events": 1}
    (warning,) = [w for w in trace.meta["warnings"] if w.code == "unread_packets"]
    assert "ftrace_events 4, process_stats 1" in str(warning)
    assert 1 not in BOOKKEEPING


def test_an_end_that_is_cut_off_is_in_the_bytes(read):
    whole = mark(1, event(INSTANT, "a", track=1))
    data = whole + whole[:-3]
    accounting = read(data).meta["accounting"]
    check(data, accounting)
    assert (accounting["in_file"], accounting["bytes"]["cut"]) == (1, len(whole) - 3)
    assert varint(1) == b"\x01"
