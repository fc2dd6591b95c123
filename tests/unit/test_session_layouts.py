"""Session folders, archives and odd collections: what is found, and what is told about what is not."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from rank_traces import event, simple_events, tar_gz, trace_json, write

import torchtrt_viz as tv
from torchtrt_viz.formats.session.manifest import CycleRecord, Manifest, RankRecord


def cycle_archive(
    rank: int, cycle: int = 0, session: str = "s1", role: str | None = None, scale: float = 1.0
) -> bytes:
    meta = {
        "format": "torchtrt_viz.rank/1",
        "session_id": session,
        "rank": rank,
        "cycle": cycle,
        "role": role,
        "host": "node-a",
        "pid": 10 + rank,
    }
    members = {
        "rank.json": json.dumps(meta).encode(),
        "summary.json": b"{}",
        "raw/trace.json": trace_json(simple_events(scale), rank=rank),
    }
    files = [
        {"name": n, "bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for n, d in members.items()
    ]
    members["inventory.json"] = json.dumps({"format": "torchtrt_viz.inventory/1", "files": files}).encode()
    return tar_gz(members)


def session_folder(root: Path, manifest: Manifest | None, archives: dict[tuple[int, int], bytes]) -> Path:
    folder = root / "s1"
    for (rank, cycle), data in archives.items():
        write(folder / f"rank-{rank:05d}" / f"cycle-{cycle:05d}.tar.gz", data)
    if manifest is not None:
        write(folder / "manifest.json", manifest.to_json())
    return folder


def record(rank: int, *cycles: CycleRecord, **fields) -> RankRecord:
    return RankRecord(rank, cycles=list(cycles), **{"state": "collected", **fields})


def published(rank: int, cycle: int, data: bytes | None = None, **fields) -> CycleRecord:
    size = None if data is None else len(data)
    return CycleRecord(cycle, "published", f"rank-{rank:05d}/cycle-{cycle:05d}.tar.gz", size, **fields)


def test_our_layout_with_everything_there(tmp_path):
    data = {
        (r, c): cycle_archive(r, c, role="prefill" if r == 0 else "decode") for r in (0, 1) for c in (0, 1)
    }
    ranks = [
        record(r, published(r, 0, data[r, 0]), published(r, 1, data[r, 1]), role=role, host="h")
        for r, role in ((0, "prefill"), (1, "decode"))
    ]
    session = tv.load(session_folder(tmp_path, Manifest("s1", "complete", ranks=ranks), data))
    table = session.ranks
    assert table[["rank", "cycle", "role", "host", "state"]].values.tolist() == [
        [0, 0, "prefill", "h", "ok"],
        [0, 1, "prefill", "h", "ok"],
        [1, 0, "decode", "h", "ok"],
        [1, 1, "decode", "h", "ok"],
    ]
    assert session.meta["manifests"][0].session_id == "s1"
    assert session[1, 1].meta["role"] == "decode"
    assert len(session.select(role="prefill")) == 2
    assert not session.meta["warnings"]


def test_missing_failed_and_damaged_ranks_are_listed_with_their_reasons(tmp_path):
    whole, short = cycle_archive(0), cycle_archive(1)
    ranks = [
        record(0, published(0, 0, whole)),
        record(1, CycleRecord(0, "published", "rank-00001/cycle-00000.tar.gz", len(short) + 7)),
        record(2, published(2, 0), host="node-b", storage="/local/prof"),
        record(3, state="missing", error="no answer to the start in time"),
        record(4, CycleRecord(0, "failed", stage="pack", error="No space left on device")),
        record(5, state="nothing_recorded"),
        record(6, CycleRecord(0, "published", "../../etc/passwd")),
    ]
    folder = session_folder(tmp_path, Manifest("s1", ranks=ranks), {(0, 0): whole, (1, 0): short})
    session = tv.load(folder)
    found = {r.rank: (r.state, r.error) for r in session.ranks.itertuples()}
    assert sorted(found) == [0, 1, 2, 3, 4, 6]
    assert found[0] == ("ok", None)
    assert found[1][0] == "damaged"
    assert "manifest says" in found[1][1]
    assert found[2][0] == "missing"
    assert "host node-b in /local/prof" in found[2][1]
    assert found[3] == ("missing", "no answer to the start in time")
    assert found[4] == ("missing", "No space left on device")
    assert "outside" in found[6][1]
    assert {w.code for w in session.meta["warnings"]} == {"missing_rank", "damaged_rank"}
    with pytest.raises(tv.TraceFormatError, match="no answer to the start"):
        session[3]
    assert set(session.operators(per_rank=True)["rank"]) == {0, 1}
    with pytest.raises(tv.TraceFormatError):
        tv.load(folder, strict=True)


def test_without_its_manifest_a_session_is_what_its_archives_say(tmp_path):
    folder = session_folder(
        tmp_path, None, {(0, 0): cycle_archive(0, role="prefill"), (3, 0): cycle_archive(3, role="decode")}
    )
    table = tv.load(folder).ranks
    assert table[["session", "rank", "role", "pid"]].values.tolist() == [
        ["s1", 0, "prefill", 10],
        ["s1", 3, "decode", 13],
    ]
    (folder / "manifest.json").write_text('{"format": "torchtrt_viz.session/1", "ranks": 5}')
    session = tv.load(folder)
    assert session.ranks["rank"].tolist() == [0, 3]
    assert [w.code for w in session.meta["warnings"]] == ["damaged_manifest"]


def test_archive_that_was_cut_or_changed_is_damaged(tmp_path):
    whole = cycle_archive(0)
    inner = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(whole)) as old, tarfile.open(fileobj=inner, mode="w:gz") as new:
        for member in old:
            data = old.extractfile(member).read()
            if member.name == "summary.json":
                data = b"{ }"
            entry = tarfile.TarInfo(member.name)
            entry.size = len(data)
            new.addfile(entry, io.BytesIO(data))
    folder = session_folder(
        tmp_path, None, {(0, 0): whole, (1, 0): whole[: len(whole) - 40], (2, 0): inner.getvalue()}
    )
    table = tv.load(folder).ranks.set_index("rank")
    states = {
        Path(p).parent.name: (s, e)
        for p, s, e in zip(table["path"], table["state"], table["error"], strict=True)
    }
    assert states["rank-00000"][0] == "ok"
    assert states["rank-00001"][0] == "damaged"
    assert "summary.json" in states["rank-00002"][1]


def test_large_sessions_are_checked_when_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("torchtrt_viz.loading.identify.CHECK_BYTES", 0)
    whole = cycle_archive(0)
    session = tv.load(session_folder(tmp_path, None, {(0, 0): whole, (1, 0): cycle_archive(1)[:-40]}))
    assert set(session.ranks["state"]) == {"ok"}
    assert session.check()["state"].tolist() == ["ok", "damaged"]


def test_a_recording_that_is_not_packed_yet_can_be_loaded(tmp_path):
    folder = session_folder(tmp_path, None, {(0, 0): cycle_archive(0)})
    staging = folder / ".staging" / "rank-00001-cycle-00000-abcd"
    write(staging / "raw" / "trace.json", trace_json(simple_events(), rank=1, session_id="s1"))
    ranks = [
        record(0, published(0, 0)),
        record(1, CycleRecord(0, "packing", staging=str(staging), stage="pack")),
    ]
    write(folder / "manifest.json", Manifest("s1", ranks=ranks).to_json())
    session = tv.load(folder)
    row = session.ranks.set_index("rank").loc[1]
    assert row["state"] == "staged"
    assert "recover(folder)" in row["error"]
    assert len(session[1].spans) == 6
    (folder / "manifest.json").unlink()
    assert tv.load(folder).ranks.set_index("rank").loc[1, "state"] == "ok"


def test_timestamped_rank_folders(tmp_path):
    for rank in (0, 1):
        members = {"trace.json": trace_json(simple_events(), rank=rank), "operators.csv": b"name\n"}
        write(tmp_path / f"20261130-101500-rank{rank}" / "cycle-00002.tar.gz", tar_gz(members))
    table = tv.load(tmp_path).ranks
    assert table[["rank", "cycle", "state"]].values.tolist() == [[0, 2, "ok"], [1, 2, "ok"]]


def test_a_packed_session_in_a_zip(tmp_path):
    path = tmp_path / "session.zip"
    with zipfile.ZipFile(path, "w") as out:
        for rank in (0, 1):
            out.writestr(f"s1/rank-{rank:05d}/cycle-00000.tar.gz", cycle_archive(rank))
    session = tv.load(path)
    assert session.ranks["rank"].tolist() == [0, 1]
    assert session[1].meta["sources"] == [f"{path}!s1/rank-00001/cycle-00000.tar.gz!raw/trace.json"]
    assert len(session[1].spans) == 6


def test_equal_ranks_that_nothing_tells_apart_are_told(tmp_path):
    for scale, folder in enumerate(("a", "b"), start=1):
        write(tmp_path / folder / "rank0.json", trace_json(simple_events(scale), rank=0))
    session = tv.load(tmp_path)
    # not two cycles of one rank: nothing says that
    assert session.ranks[["rank", "instance", "cycle"]].values.tolist() == [[0, "a", 0], [0, "b", 0]]
    assert [w.code for w in session.meta["warnings"]] == ["rank_collision"]


def test_same_rank_of_two_roles_and_replicas_is_two_ranks(tmp_path):
    write(tmp_path / "prefill" / "rank0.json", trace_json(simple_events(), rank=0))
    write(tmp_path / "decode" / "rank0.json", trace_json(simple_events(), rank=0))
    session = tv.load(tmp_path)
    assert sorted(session.ranks["role"]) == ["decode", "prefill"]
    assert session.trace(0, role="decode").meta["role"] == "decode"
    with pytest.raises(KeyError, match="say which by role"):
        session[0]


def test_merged_and_frontend_files_are_no_ranks_work(tmp_path):
    write(tmp_path / "1769071195.66-TP-0.trace.json.gz", trace_json(simple_events(), rank=0))
    write(tmp_path / "1769071195.66-TP-1.trace.json.gz", trace_json(simple_events(), rank=1))
    write(tmp_path / "merged-1769071195.66.trace.json.gz", trace_json(simple_events() * 2))
    session = tv.load(tmp_path)
    assert session.ranks.set_index("what").loc["merged", "state"] == "ok"
    assert session.operators().set_index("name").loc["aten::addmm", "calls"] == 4


def test_the_traces_word_goes_before_the_name(tmp_path):
    write(tmp_path / "rank0.json", trace_json(simple_events(), rank=5))
    write(tmp_path / "rank1.json", trace_json(simple_events()))
    assert tv.load(tmp_path).ranks["rank"].tolist() == [1, 5]


@pytest.mark.parametrize("member", ["../../escape.json", "/abs/escape.json", "a/../../rank0.json"])
def test_members_are_never_written_under_their_names(tmp_path, member):
    folder = tmp_path / "in" / "deep"
    write(
        folder / "bad.tar.gz",
        tar_gz(
            {member: trace_json(simple_events(), rank=0), "b/rank1.json": trace_json(simple_events(), rank=1)}
        ),
    )
    before = sorted(tmp_path.rglob("*"))
    session = tv.load(folder / "bad.tar.gz")
    assert len(session[1].spans) == 6
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bomb_in_an_archive_is_refused(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rank0.json", b" " * (80 << 20))
        archive.writestr("rank1.json", trace_json(simple_events(), rank=1))
    path = tmp_path / "bomb.zip"
    path.write_bytes(out.getvalue())
    session = tv.load(path)
    table = session.ranks.set_index("rank")
    assert table.loc[1, "state"] == "ok"
    assert table.loc[0, "state"] == "damaged"


def test_a_tar_of_countless_members_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("torchtrt_viz.loading.walk.MAX_FILES", 20)
    path = write(tmp_path / "many.tar.gz", tar_gz({f"rank{i}.json": b"{}" for i in range(30)}))
    with pytest.raises(tv.TraceFormatError, match="too many"):
        tv.load(path)


def test_nothing_to_load_names_what_was_seen(tmp_path):
    with pytest.raises(tv.TraceFormatError, match=r"no trace in here.*nothing"):
        tv.load(tmp_path)
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(tv.TraceFormatError, match=r"1 other files \(a.txt\)"):
        tv.load(tmp_path)


def test_engine_sums_of_a_rank_without_a_number_are_reachable(tmp_path):
    write(tmp_path / "x.pt.trace.json", trace_json(simple_events()))
    write(tmp_path / "y.pt.trace.json", trace_json(simple_events(2)))
    session = tv.load(tmp_path)
    assert session.ranks["rank"].isna().all()
    assert len(session.trace(session="y").spans) == len(session.trace(row=0).spans) == 6
    with pytest.raises(KeyError, match="no rank numbers"):
        session[0]


def test_a_rank_that_turns_out_to_be_unreadable_is_left_out_and_told(tmp_path):
    write(tmp_path / "rank0.json", trace_json(simple_events(), rank=0))
    bad = write(tmp_path / "rank1.json", trace_json(simple_events(), rank=1))
    session = tv.load(tmp_path)
    bad.unlink()
    table = session.operators(per_rank=True)
    assert set(table["rank"]) == {0}
    assert table.attrs["skipped"][0][0] == str(bad)
    assert session.ranks.set_index("rank").loc[1, "state"] == "damaged"


def test_map_gives_every_ranks_frame(tmp_path):
    for rank in (0, 1, 2):
        write(tmp_path / f"rank{rank}.json", trace_json(simple_events(1 + rank), rank=rank))
    session = tv.load(tmp_path)
    table = session.operators()
    linear = table.set_index("name").loc["aten::linear"]
    assert linear["total_ns"] == 2 * 200_000 * (1 + 2 + 3)
    assert linear["self_ns"] == 2 * 50_000 * (1 + 2 + 3)
    assert (linear["rank_min_ns"], linear["rank_max_ns"], linear["max_rank"]) == (100_000, 300_000, 2)
    assert linear["imbalance"] == pytest.approx(1.5)
    assert table["self_pct"].sum() == pytest.approx(100)
    late = session.stragglers()
    assert late["rank"].tolist() == [2, 1, 0]
    assert late["behind_ns"].tolist() == [1_000_000, 0, -1_000_000]
    assert late["slowest"].tolist() == [2, 0, 0]


def test_clocks_of_two_hosts_are_not_compared(tmp_path):
    prefill = [
        event("prefill[request=r1 transfer=x1 tokens=9]", 0, 100),
        event("kv_send[transfer=x1]", 120, 20),
    ]
    decode = [
        event("kv_recv[transfer=x1]", 300, 20),
        event("decode[request=r1,r2]", 400, 50),
        event("decode[request=r1]", 500, 30),
    ]
    for name, host in (("same", "node-a"), ("other", "node-b")):
        write(tmp_path / name / "prefill" / "rank0.json", trace_json(prefill, rank=0))
        write(tmp_path / name / "decode" / "rank1.json", trace_json(decode, rank=1, host_name=host))
        requests = tv.load(tmp_path / name).requests().set_index("request")
        row = requests.loc["r1"]
        assert (row["prefill_ns"], row["kv_send_ns"], row["kv_recv_ns"], row["decode_ns"]) == (
            100_000,
            20_000,
            20_000,
            80_000,
        )
        assert (row["decode_steps"], row["batched"], row["joined"], row["transfer"]) == (2, True, True, "x1")
        if name == "same":
            assert row["handoff_ns"] == 300_000
        else:
            assert row["handoff_ns"] is None or str(row["handoff_ns"]) == "<NA>"
        assert not requests.loc["r2", "joined"]


def test_requests_cut_by_a_boundary_are_marked(tmp_path):
    data = {(0, 0): cycle_archive(0)}
    events = [event("prefill[request=r1]", 0, 100), event("prefill[request=r2]", 200, 100)]
    members = {
        "rank.json": json.dumps(
            {
                "format": "torchtrt_viz.rank/1",
                "session_id": "s1",
                "rank": 0,
                "cycle": 0,
                "cut_at_stop": ["r2"],
            }
        ).encode(),
        "raw/trace.json": trace_json(events, rank=0),
    }
    data[0, 0] = tar_gz(members)
    session = tv.load(session_folder(tmp_path, Manifest("s1", ranks=[record(0, published(0, 0))]), data))
    assert session.requests().set_index("request")["cut"].to_dict() == {"r1": False, "r2": True}
