"""Real traces of several ranks load as a session; expected values come from the raw JSON."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

import torchtrt_viz as tv


def _raw(path: Path) -> dict:
    return json.loads(gzip.decompress(path.read_bytes()))


def _sum_us(events: list[dict], name: str) -> float:
    return sum(e["dur"] for e in events if e.get("ph") == "X" and e["name"] == name)


@pytest.fixture(scope="module")
def ranks(corpus: Path) -> Path:
    return corpus / "ranks"


def test_schedule_of_two_cycles_per_rank(ranks):
    session = tv.load(ranks / "ddp2")
    table = session.ranks
    assert table[["rank", "cycle"]].values.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert set(table["state"]) == {"ok"}
    assert set(table["host"]) == {"vm"}
    assert table["world_size"].tolist() == [2, 2, 2, 2]
    # cycles are numbered by the time stamps in the names
    assert [Path(p).name.split(".")[1] for p in table["path"]] == [
        "1796035957089938289",
        "1796035958093565594",
        "1796035957071322939",
        "1796035958028863063",
    ]
    trace = session[1, 0]
    assert trace.meta["rank"] == 1
    assert trace.meta["cycle"] == 0
    assert (trace.spans["rank"] == 1).all()
    with pytest.raises(KeyError, match=r"2 traces with rank=0; say which by cycle"):
        session[0]
    with pytest.raises(KeyError, match=r"no trace with rank=7; the session has ranks 0, 1"):
        session[7]


def test_operators_over_ranks_are_the_sums_of_the_raw_files(ranks):
    session = tv.load(ranks / "ddp2")
    table = session.operators().set_index("name")
    files = sorted((ranks / "ddp2").glob("*.gz"))
    mm = [_sum_us(_raw(f)["traceEvents"], "aten::mm") for f in files]
    calls = sum(e["name"] == "aten::mm" for f in files for e in _raw(f)["traceEvents"] if e.get("ph") == "X")
    assert table.loc["aten::mm", "calls"] == calls
    assert table.loc["aten::mm", "total_ns"] == pytest.approx(sum(mm) * 1000, abs=calls)
    assert table.loc["aten::mm", "ranks"] == 2
    per_rank = session.operators(per_rank=True)
    mine = per_rank[(per_rank["name"] == "aten::mm")].groupby("rank")["self_ns"].sum()
    assert table.loc["aten::mm", "rank_max_ns"] == mine.max()
    assert table.loc["aten::mm", "max_rank"] == mine.idxmax()
    assert table.loc["aten::mm", "imbalance"] == pytest.approx(mine.max() / mine.mean())


def test_steps_and_the_straggler(ranks):
    session = tv.load(ranks / "ddp2")
    steps = session.steps()
    assert steps.groupby("cycle")["step"].unique().map(sorted).tolist() == [[2, 3], [6, 7]]
    raw = _raw(ranks / "ddp2" / "rank1.1796035957071322939.pt.trace.json.gz")["traceEvents"]
    expected = next(e["dur"] for e in raw if e["name"] == "ProfilerStep#2")
    mine = steps[(steps["rank"] == 1) & (steps["step"] == 2)]["dur_ns"].iloc[0]
    assert mine == pytest.approx(expected * 1000, abs=1)
    # rank 1 sleeps 4 ms in every step; its peer waits for it in the collectives
    late = session.stragglers()
    assert late["rank"].iloc[0] == 1
    waits = session.collectives()
    by_rank = waits.groupby("last_rank")["wait_ns"].sum()
    assert by_rank[1] > 3 * by_rank[0]
    assert late["waited_for_ns"].tolist() == [by_rank[1], by_rank[0]]


def test_names_of_another_engine_without_a_schedule(ranks):
    session = tv.load(ranks / "tp4")
    table = session.ranks
    assert table["rank"].tolist() == [0, 1, 2, 3]
    assert set(table["session"]) == {"1796034800.1234"}
    assert set(table["writer"]) == {"sglang"}
    steps = session.steps()
    assert set(steps["rank"]) == {0, 1, 2, 3}
    assert steps["name"].str.startswith("step[").all()


def test_prefill_and_decode_ranks_are_kept_apart_and_joined_by_ids(ranks):
    session = tv.load(ranks / "pd2x2")
    table = session.ranks
    # the names count ranks within a role; the traces say the global rank
    assert table["rank"].tolist() == [0, 1, 2, 3]
    assert table["role"].tolist() == ["prefill", "prefill", "decode", "decode"]
    assert table["instance"].tolist() == ["prefill-0", "prefill-1", "decode-0", "decode-1"]
    assert set(table["session"]) == {"s-0001"}
    for row in table.itertuples():
        number = row.rank % 2
        meta = json.loads((ranks / "pd2x2" / f"{row.role}_rank{number}.meta.json").read_text())
        assert (row.start_unix_ns, row.stop_unix_ns, row.pid) == (
            meta["start_ns"],
            meta["stop_ns"],
            meta["pid"],
        )
    requests = session.requests().set_index("request")
    assert sorted(requests.index) == ["r0-0", "r0-1", "r0-2", "r1-0", "r1-1", "r1-2"]
    assert requests["joined"].all()
    assert requests.loc["r1-2", ["prefill_rank", "decode_rank"]].tolist() == [1, 3]
    prefill = _raw(next((ranks / "pd2x2").glob("prefill_dp1*.gz")))["traceEvents"]
    decode = _raw(next((ranks / "pd2x2").glob("decode_dp1*.gz")))["traceEvents"]
    expected = _sum_us(prefill, "prefill[req=r1-2 toks=32]")
    assert requests.loc["r1-2", "prefill_ns"] == pytest.approx(expected * 1000, abs=1)
    names = [f"decode[req=r1-2 tok={i}]" for i in range(4)]
    assert requests.loc["r1-2", "decode_ns"] == pytest.approx(
        sum(_sum_us(decode, n) for n in names) * 1000, abs=4
    )
    assert requests.loc["r1-2", "decode_steps"] == 4
    events = session.request_events()
    assert set(events.loc[events["phase"] == "kv_send", "transfer"]) == {
        f"xfer-{i}-{j}" for i in range(2) for j in range(3)
    }


def test_damaged_ranks_are_listed_and_what_is_whole_loads(ranks):
    session = tv.load(ranks / "broken")
    state = {Path(r.path).name.split(".")[0]: (r.state, r.error) for r in session.ranks.itertuples()}
    assert state["no_rank"] == ("ok", None)
    assert state["empty"][0] == state["enospc"][0] == state["truncated"][0] == "damaged"
    assert "empty" in state["empty"][1]
    assert "never finished" in state["enospc"][1]
    assert sum(w.code == "damaged_rank" for w in session.meta["warnings"]) == 3
    part = session.trace(rank=0)
    assert len(part.spans) > 100
    assert part.meta["warnings"]
    with pytest.raises(tv.TraceFormatError, match="empty file"):
        session.trace(session="empty")
    with pytest.raises(tv.TraceFormatError):
        tv.load(ranks / "broken", strict=True)


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_an_archive_of_the_folder_is_the_same_session(ranks, tmp_path, kind):
    archive = tmp_path / f"all.{kind}"
    files = sorted((ranks / "pd2x2").iterdir())
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as out:
            for file in files:
                out.write(file, f"run/{file.name}")
    else:
        with tarfile.open(archive, "w:gz" if kind == "tar.gz" else "w") as out:
            for file in files:
                out.add(file, f"run/{file.name}")
    packed, plain = tv.load(archive), tv.load(ranks / "pd2x2")
    columns = ["session", "rank", "role", "instance", "state", "pid", "start_unix_ns"]
    assert packed.ranks[columns].equals(plain.ranks[columns])
    assert packed.trace(3).spans.equals(plain.trace(3).spans)


def test_a_list_of_files_is_a_session_and_one_file_a_trace(ranks, tmp_path):
    files = sorted((ranks / "tp4").iterdir())
    assert isinstance(tv.load(files), tv.Session)
    assert isinstance(tv.load([files[0]]), tv.Trace)
    shutil.copy(files[0], tmp_path)
    (tmp_path / "notes.txt").write_text("not a trace")
    (tmp_path / "server_args.json").write_text('{"tp_size": 4}')
    one = tv.load(tmp_path)
    assert isinstance(one, tv.Trace)
    assert one.spans.equals(tv.load(files[0]).spans)


def test_dask_gives_the_same_frames(ranks):
    pytest.importorskip("dask")
    here, there = tv.load(ranks / "tp4"), tv.load(ranks / "tp4", engine="dask")
    assert "by dask" in repr(there)
    assert here.operators().equals(there.operators())
    assert here.steps().equals(there.steps())


def test_etdump_finds_its_etrecord_in_the_folder(corpus, tmp_path):
    for name in ("cnn_xnnpack_300runs.etdp", "cnn_xnnpack.etrecord"):
        shutil.copy(corpus / "etdump" / name, tmp_path)
    trace = tv.load(tmp_path)
    assert isinstance(trace, tv.Trace)
    assert Path(trace.meta["etrecord"]["path"]).name == "cnn_xnnpack.etrecord"


def test_a_folder_of_engine_files_is_one_trace(corpus):
    folder = next(p for p in sorted((corpus / "trex").rglob("*.profile.json"))).parent
    trace = tv.load(folder)
    assert isinstance(trace, tv.Trace)
    assert trace.meta["engines"]
