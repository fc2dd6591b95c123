"""Which traces are of one rank: copies, nodes, processes without a rank, merged files, companions."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rank_traces import event, simple_events, trace_json, write

import torchtrt_viz as tv

STAMP = 1_796_036_029_605_142_630


def trace(scale: float = 1.0, **header: Any) -> bytes:
    return trace_json(simple_events(scale), **header)


def codes(loaded: Any) -> list[str]:
    return [warning.code for warning in loaded.meta["warnings"]]


def table(session: Any, *columns: str) -> list[list[Any]]:
    frame = session.ranks[list(columns)].astype(object)
    return frame.where(frame.notna(), None).values.tolist()


def test_processes_without_a_rank_are_not_one_rank(tmp_path: Path) -> None:
    for pid, scale in ((4711, 1), (4712, 4)):
        write(tmp_path / "run" / f"node-a_{pid}.{STAMP + pid}.pt.trace.json", trace(scale))
    session = tv.load(tmp_path / "run")
    assert table(session, "rank", "instance", "host", "pid") == [
        [None, "pid 4711", "node-a", 4711],
        [None, "pid 4712", "node-a", 4712],
    ]
    linear = session.operators().set_index("name").loc["aten::linear"]
    assert linear["ranks"] == 2
    # each rank's self time is 2 x 50 us times its scale: 100 and 400, mean 250
    assert (linear["rank_min_ns"], linear["rank_max_ns"]) == (100_000, 400_000)
    assert linear["imbalance"] == pytest.approx(400 / 250)


def test_recordings_of_one_process_are_its_cycles(tmp_path: Path) -> None:
    for number, scale in ((0, 1), (1, 2)):
        write(tmp_path / f"node-a_4711.{STAMP + number}.pt.trace.json", trace(scale))
    session = tv.load(tmp_path)
    assert table(session, "rank", "instance", "cycle") == [[None, None, 0], [None, None, 1]]
    assert "2 traces of 1 ranks" in repr(session)


def test_traces_of_which_nothing_is_known_stay_apart(tmp_path: Path) -> None:
    for number, name in enumerate(("a.json", "b.json", "deep/a.json"), start=1):
        write(tmp_path / name, trace_json(simple_events(number), host_name="unknown"))
    session = tv.load(tmp_path)
    assert session.ranks["rank"].isna().all()
    assert session.ranks["host"].isna().all()  # two that are unknown are no one host
    assert sorted(session.ranks["instance"]) == ["a", "b", "deep/a"]


@pytest.mark.parametrize("stamp", ["", f".{STAMP}.pt.trace"])
@pytest.mark.parametrize("header", [{}, {"rank": 0}])
def test_one_number_on_two_nodes_is_two_ranks(tmp_path: Path, stamp: str, header: dict[str, Any]) -> None:
    for node in (0, 1):
        write(tmp_path / f"node{node}" / f"rank0{stamp}.json", trace(1 + node, **header))
    session = tv.load(tmp_path, strict=True)
    assert table(session, "rank", "instance", "cycle") == [[0, "node0", 0], [0, "node1", 0]]
    assert codes(session) == ["rank_on_several_hosts"]
    assert "node0, node1" in session.meta["warnings"][0].message
    assert session.operators().set_index("name").loc["aten::linear", "ranks"] == 2


def test_one_number_of_two_machines_is_two_ranks(tmp_path: Path) -> None:
    for host in ("gpu-a", "gpu-b"):
        write(
            tmp_path / f"{host}.rank0.json",
            trace(len(host), rank=0, host_name=host) + b" " * (host == "gpu-b"),
        )
    session = tv.load(tmp_path)
    assert table(session, "rank", "host", "cycle") == [[0, "gpu-a", 0], [0, "gpu-b", 0]]
    assert codes(session)[-1] == "rank_on_several_hosts"


@pytest.mark.parametrize("copy", ["rank0 (1).json", "rank0_copy.json", "backup/rank0.json", "rank0.json.gz"])
def test_a_copy_counts_once(tmp_path: Path, copy: str) -> None:
    write(tmp_path / "rank0.json", trace(1, rank=0))
    write(tmp_path / copy, trace(1, rank=0))
    write(tmp_path / "rank1.json", trace(2, rank=1))
    session = tv.load(tmp_path)
    assert table(session, "rank", "cycle", "instance") == [[0, 0, None], [1, 0, None]]
    assert codes(session) == ["same_recording"]
    (note,) = session.meta["warnings"]
    assert note.path == str(tmp_path / copy)
    assert str(tmp_path / "rank0.json") in note.message


def test_long_copies_are_compared_to_their_end(tmp_path: Path) -> None:
    events = [event(f"op {i}", 10.0 * i, 5) for i in range(2000)]
    one = trace_json(events, rank=0)
    other = trace_json([*events[:-1], event("op x", 19_990.0, 6)], rank=0)
    assert one[:65536] == other[:65536]
    write(tmp_path / "a" / "rank0.json", one)
    write(tmp_path / "b" / "rank0.json", other)
    assert len(tv.load(tmp_path)) == 2
    write(tmp_path / "b" / "rank0.json", one)
    loaded = tv.load(tmp_path)
    assert isinstance(loaded, tv.Trace)
    assert codes(loaded) == ["same_recording"]
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.write(tmp_path / "a" / "rank0.json", "rank0.json")
        archive.writestr("rank0.json.gz", gzip.compress(one))
    assert codes(tv.load(tmp_path / "x.zip")) == ["same_recording"]


def test_equal_content_under_the_names_of_two_ranks_is_said(tmp_path: Path) -> None:
    for rank in (0, 1):
        write(tmp_path / f"rank{rank}.json", trace())
    session = tv.load(tmp_path)
    assert table(session, "rank") == [[0], [1]]
    assert codes(session) == ["identical_traces"]


def test_what_jax_writes_twice_counts_once(tmp_path: Path) -> None:
    folder = tmp_path / "log" / "plugins" / "profile" / "2026_01_02_03_04_05"
    write(folder / "vm-1.trace.json.gz", trace(1))
    # jax writes the second form anew: other bytes, and no arguments
    write(folder / "perfetto_trace.json.gz", trace(1).replace(b' "args": {}', b""))
    (folder / "vm-1.xplane.pb").write_bytes(b"\x0a\x12\x08\x01\x12\x0e/host:metadata")
    loaded = tv.load(tmp_path)
    assert isinstance(loaded, tv.Trace)
    assert loaded.meta["sources"] == [str(folder / "vm-1.trace.json.gz")]
    assert codes(loaded) == ["same_recording", "not_a_trace"]
    assert "XPlane" in loaded.meta["warnings"][1].message


def test_companions_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    junk = {
        "._rank0.json": b"\0\5\x16\7",
        "._rank1.pt.trace.json": b"\0\5\x16\7",
        ".DS_Store": b"Bud1",
        "__MACOSX/rank2.json": b"{",
        "sub/Thumbs.db": b"x",
    }
    write(folder / "rank0.json", trace(1, rank=0))
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("run/rank0.json", trace(1, rank=0))
        for name, data in junk.items():
            write(folder / name, data)
            archive.writestr(name, data)
    for path in (folder, tmp_path / "run.zip"):
        loaded = tv.load(path)
        assert isinstance(loaded, tv.Trace)
        assert not loaded.meta["warnings"]


def test_numbers_from_zero_without_a_gap_are_ranks(tmp_path: Path) -> None:
    for number in range(11):
        write(tmp_path / "run" / f"trace_{number}.json", trace(1 + number))
    for number in (10, 20):
        write(tmp_path / "steps" / f"trace_{number}.json", trace(50 + number))
    session = tv.load(tmp_path / "run")
    assert session.ranks["rank"].tolist() == list(range(11))
    assert codes(session) == ["ranks_from_numbers"]
    session = tv.load(tmp_path / "steps")
    assert session.ranks["rank"].isna().all()
    assert session.ranks["instance"].tolist() == ["trace_10", "trace_20"]
    assert not session.meta["warnings"]


def test_ranks_that_torch_npu_states_beside_its_traces(tmp_path: Path) -> None:
    for rank, pid in ((0, 11), (1, 12)):
        folder = tmp_path / f"n122-197_{pid}_20241105122131111_ascend_pt"
        write(folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json", trace(1 + rank))
        write(folder / f"profiler_info_{rank}.json", b'{"config": {}}')
    session = tv.load(tmp_path)
    assert table(session, "rank", "host", "pid") == [[0, "node-a", 11], [1, "node-a", 12]]


def merged(form: str, ranks: tuple[int, ...] = (0, 1)) -> bytes:
    """Two steps of each rank, the second rank's twice as long, in one file as mergers write it."""
    events: list[dict[str, Any]] = []
    for rank in ranks:
        pid: int | str = {
            "sglang": f"[TP{rank:02}-DP00-PP00-EP00] 83",
            "bracket": f"[rank {rank}] 83",
            "underscore": f"rank{rank}_83",
        }.get(form, rank * 1_000_000 + 83)
        name = {"named": f"[rank {rank}] python", "aorta": f"Rank {rank} - CPU/CUDA Runtime"}.get(form)
        if name is not None:
            events.append({"ph": "M", "name": "process_name", "pid": pid, "ts": 0, "args": {"name": name}})
        more = {"args": {"rank": rank, "pid_raw": 83}} if form == "tracelens" else {}
        events += [{**one, "pid": pid, **more} for one in simple_events(1 + rank)]
    return trace_json(events, rank=0)


@pytest.mark.parametrize("form", ["sglang", "bracket", "underscore", "named", "aorta", "tracelens"])
@pytest.mark.parametrize("place", ["file", "folder", "zip", "bytes"])
def test_a_merged_file_is_a_session_of_its_ranks(tmp_path: Path, form: str, place: str) -> None:
    path = write(tmp_path / "run" / "all.json", merged(form))
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.write(path, "all.json")
    given = {"file": path, "folder": path.parent, "zip": tmp_path / "run.zip", "bytes": path.read_bytes()}[
        place
    ]
    session = tv.load(given)
    assert isinstance(session, tv.Session)
    assert table(session, "rank", "state", "what") == [[0, "ok", "trace"], [1, "ok", "trace"]]
    assert codes(session) == ["merged_ranks"]
    for rank in (0, 1):
        own = tv.load(trace_json(simple_events(1 + rank), rank=rank))
        assert session[rank].meta["rank"] == rank
        assert session[rank].spans["name"].tolist() == own.spans["name"].tolist()
        assert session[rank].spans["self_ns"].tolist() == own.spans["self_ns"].tolist()
    assert session.operators().set_index("name").loc["aten::linear", "imbalance"] == pytest.approx(200 / 150)
    assert "2 traces of 2 ranks" in repr(session)


def test_where_nothing_says_the_ranks_there_is_a_warning_and_no_guess() -> None:
    loaded = tv.load(merged("numbers"))
    assert isinstance(loaded, tv.Trace)
    assert codes(loaded) == ["ranks_unsaid"]
    assert len(loaded.spans) == 12


def test_events_of_no_rank_are_counted(tmp_path: Path) -> None:
    other = trace_json([event("elsewhere", 1, 2)])[:-1]
    assert other
    events = merged("bracket").replace(
        b'"traceEvents": [', b'"traceEvents": [{"ph":"X","pid":5,"tid":5,"ts":1,"dur":2,"name":"x"},'
    )
    session = tv.load(events)
    assert codes(session) == ["domain_unsaid", "merged_ranks", "events_of_no_rank"] or codes(session) == [
        "merged_ranks",
        "events_of_no_rank",
    ]
    assert session.meta["warnings"][-1].count == 1


def test_a_merged_file_beside_its_parts_is_named_and_not_counted(tmp_path: Path) -> None:
    for rank in (0, 1):
        write(tmp_path / f"17.25-TP-{rank}.trace.json.gz", trace(1 + rank, rank=rank))
    for name in ("merged-17.25.trace.json.gz", "everything.json"):
        path = write(tmp_path / name, merged("sglang"))
        session = tv.load(tmp_path)
        assert "3 traces of 2 ranks" in repr(session)
        assert codes(session) == ["merged_file"]
        assert session.meta["warnings"][0].path == str(path)
        assert session.operators().set_index("name").loc["aten::linear", "calls"] == 4
        path.unlink()


@pytest.mark.parametrize("name", ["merged.json", "everything.json"])
def test_ranks_of_a_merged_file_join_those_of_other_files(tmp_path: Path, name: str) -> None:
    write(tmp_path / "a" / name, merged("bracket"))
    write(tmp_path / "b" / "rank7.json", trace(3, rank=7))
    session = tv.load(tmp_path)
    assert session.ranks["rank"].tolist() == [0, 1, 7]
    assert session.operators().set_index("name").loc["aten::linear", "ranks"] == 3
    # one of the merged ranks has a file of its own: it is counted once
    write(tmp_path / "a" / "rank1.json", trace(2, rank=1))
    session = tv.load(tmp_path)
    assert session.ranks["rank"].tolist() == [0, 1, 7]


def test_instants_of_a_merged_rank_keep_their_arguments() -> None:
    events = [
        {
            "ph": "i",
            "s": "t",
            "name": f"mark {rank}",
            "pid": f"[rank {rank}] 1",
            "tid": 1,
            "ts": 10 + rank,
            "args": {"of": rank},
        }
        for rank in (0, 1)
    ]
    session = tv.load(trace_json(events))
    assert [session[rank].instants["name"].tolist() for rank in (0, 1)] == [["mark 0"], ["mark 1"]]
    assert session[1].instant_args.read([0]) == [{"of": 1}]
