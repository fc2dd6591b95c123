"""Saved sessions: one dataset that comes back as the session, whole or not at all; saving can go on."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rank_traces import event, trace_json
from saved_checks import same_frame, same_trace, same_value
from small_session import write_small_session

import torchtrt_viz as tv
from torchtrt_viz.errors import OutputError, TorchTrtVizError, TraceFormatError
from torchtrt_viz.formats.saved import session_writer
from torchtrt_viz.loading import rank_files, saved
from torchtrt_viz.session import Session

FRAMES = ("spans", "tracks", "instants", "counters", "flows")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return tv.load(write_small_session(tmp_path_factory.mktemp("session")))


@pytest.fixture(scope="module")
def folder(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return session.save(tmp_path_factory.mktemp("saved") / "dataset")


def same_session(first: Session, back: Session) -> None:
    assert type(back) is Session
    same_frame(first.ranks, back.ranks, "ranks")
    same_value(first.meta, back.meta, "meta")
    for row in range(len(first)):
        if first.ranks["state"][row] == "ok":
            same_trace(first.trace(row=row), back.trace(row=row))


def test_a_session_comes_back(session: Session, folder: Path) -> None:
    back = tv.load(folder)
    same_session(session, back)
    assert back.dataset == str(folder)
    assert session.dataset is None
    assert repr(back) == repr(session)
    for name in ("operators", "steps", "collectives", "stragglers", "requests", "summary", "explain"):
        same_frame(getattr(session, name)(), getattr(back, name)(), name)
    assert back.check()["state"].unique().tolist() == ["ok"]
    part = back.select(role="decode")
    assert part.ranks["rank"].tolist() == [2, 3]
    assert part[3].meta["rank"] == 3


def test_a_recording_is_a_trace_by_itself(session: Session, folder: Path) -> None:
    same_trace(session[1], tv.load(folder / "traces" / "rank=1" / "cycle=0" / "recording=1"))


def test_a_saved_session_is_found_below_a_folder(session: Session, folder: Path) -> None:
    (folder.parent / "notes.txt").write_text("x")
    found = tv.load(folder.parent)
    assert found.ranks["rank"].tolist() == [0, 1, 2, 3]
    assert found.ranks["role"].tolist() == session.ranks["role"].tolist()
    assert found[2].spans["name"].tolist() == session[2].spans["name"].tolist()


def test_it_can_be_saved_again(session: Session, folder: Path, tmp_path: Path) -> None:
    same_session(session, tv.load(tv.load(folder).save(tmp_path / "again")))


def total(session: Session) -> dict[int, int]:
    return {rank: int(session[rank].spans["dur_ns"].sum()) for rank in range(4)}


def test_other_tools_read_the_tables(session: Session, folder: Path) -> None:
    """As documented in the README: one folder a table, partitioned as Hive does it."""
    frame = pd.read_parquet(folder / "spans")
    assert frame.groupby("rank", observed=True)["dur_ns"].sum().to_dict() == total(session)
    assert frame["correlation"].dtype == "Int64"
    polars = pytest.importorskip("polars", reason="polars is not installed (extra test)")
    lazy = polars.scan_parquet(folder / "spans", hive_partitioning=True)
    assert dict(lazy.group_by("rank").agg(polars.col("dur_ns").sum()).collect().rows()) == total(session)
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed (extra test)")
    query = f"SELECT rank, sum(dur_ns)::BIGINT FROM '{folder}/spans/**/*.parquet' GROUP BY rank"
    assert dict(duckdb.sql(query).fetchall()) == total(session)
    joined = f"SELECT role, count(*) FROM '{folder}/spans/**/*.parquet' JOIN '{folder}/ranks.parquet' "
    assert sorted(duckdb.sql(joined + "USING (recording) GROUP BY role").fetchall()) == [
        (role, sum(len(session[rank].spans) for rank in ranks))
        for role, ranks in (("decode", (2, 3)), ("prefill", (0, 1)))
    ]


def test_ranks_without_numbers_and_damaged_ones(tmp_path: Path) -> None:
    data = [trace_json([event(f"op{n}", 1.0, 2.0 + n, "cpu_op")]) for n in range(2)]
    source = tmp_path / "in"
    source.mkdir()
    (source / "first.json").write_bytes(data[0])
    (source / "second.json").write_bytes(data[1])
    (source / "rank7.json").write_bytes(data[1][: len(data[1]) // 2])
    (source / "rank8.json.gz").write_bytes(b"\x1f\x8b\x08 no more")
    session = tv.load(source)
    assert session.ranks["rank"].isna().sum() == 2
    back = tv.load(session.save(tmp_path / "out"))
    assert back.ranks["state"].tolist() == session.ranks["state"].tolist()
    assert back.ranks["error"].tolist() == session.ranks["error"].tolist()
    same_trace(session[7], back[7])
    with pytest.raises(TraceFormatError, match="rank8"):
        back[8]
    found = {file.path: trace.spans["name"].tolist() for file, trace in back.traces() if file.rank is None}
    assert sorted(found.values()) == [["op0"], ["op1"]]
    missing = tmp_path / "out" / "spans" / "rank=__HIVE_DEFAULT_PARTITION__"
    assert missing.is_dir()
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed (extra test)")
    query = f"SELECT rank, name FROM '{tmp_path}/out/spans/**/*.parquet' WHERE rank IS NULL ORDER BY name"
    assert duckdb.sql(query).fetchall() == [(None, "op0"), (None, "op1")]


# -- whole or not at all -------------------------------------------------------------------------------


class Stop(BaseException):
    """As a kill: nothing may tidy up after it."""


def stopped(session: Session, target: Path, after: int) -> None:
    """Save until so many recordings are done."""

    def progress(done: int, total: int) -> None:
        if done == after:
            raise Stop

    with pytest.raises(Stop):
        session.save(target, progress=progress)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which recordings are read."""
    read: list[str] = []
    real = rank_files.RankFile.load

    def noted(self: Any, options: Any) -> Any:
        read.append(self.path)
        return real(self, options)

    monkeypatch.setattr(rank_files.RankFile, "load", noted)
    return read


def test_saving_goes_on_where_it_was_stopped(session: Session, tmp_path: Path, loads: list[str]) -> None:
    fresh = tv.load(session.meta["sources"][0])
    target = tmp_path / "dataset"
    stopped(fresh, target, 2)
    assert not target.exists()
    half = tmp_path / ".dataset.saving"
    with pytest.raises(TraceFormatError):
        tv.load(tmp_path)  # nothing of it is seen from outside
    left = tv.load(half)
    assert left.ranks["state"].unique().tolist() == ["damaged"]
    assert left.ranks["error"].str.contains("not saved to its end").all()
    assert list(left.traces()) == []
    with pytest.raises(TraceFormatError, match="goes on where it was stopped"):
        tv.load(half / "traces" / "rank=0" / "cycle=0" / "recording=0")
    loads.clear()
    again = tv.load(session.meta["sources"][0])
    same_session(session, tv.load(again.save(target)))
    assert not half.exists()
    assert [Path(path).parent.name for path in loads[:2]] == ["rank-00002", "rank-00003"]


def test_what_was_begun_of_other_recordings_is_not_used(session: Session, tmp_path: Path) -> None:
    target = tmp_path / "dataset"
    other = tv.load(write_small_session(tmp_path / "other"))
    stopped(other, target, 3)
    back = tv.load(session.save(target))
    same_value(session.meta, back.meta, "meta")


def test_half_a_recording_is_written_anew(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the tables of a recording: without its document it does not count."""
    real = session_writer.save_recording
    calls = []

    def killed(*given: Any) -> Any:
        calls.append(given[2])
        if len(calls) == 2:
            real(*given)
            base = Path(given[1]) / "traces" / "rank=1" / "cycle=0" / "recording=1"
            (base / "saved_trace.json").unlink()
            raise Stop
        return real(*given)

    monkeypatch.setattr(session_writer, "save_recording", killed)
    with pytest.raises(Stop):
        session.save(tmp_path / "dataset")
    same_session(session, tv.load(session.save(tmp_path / "dataset")))
    assert calls == [0, 1, 1, 2, 3]


def test_two_cannot_save_to_one_name(session: Session, tmp_path: Path) -> None:
    half = tmp_path / ".dataset.saving"
    half.mkdir()
    with (half / "saving.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(OutputError, match="being saved by another process"):
            session.save(tmp_path / "dataset")


def test_nothing_is_overwritten_unasked(session: Session, tmp_path: Path) -> None:
    target = session.save(tmp_path / "dataset")
    with pytest.raises(OutputError, match="force=True"):
        session.save(target)
    same_session(session.select(rank=1), tv.load(session.select(rank=1).save(target, force=True)))
    with pytest.raises(OutputError, match="folder does not exist"):
        session.save(tmp_path / "nowhere" / "dataset")
    assert [each.name for each in tmp_path.iterdir()] == ["dataset"]


def test_one_recording_is_held_at_a_time(session: Session, tmp_path: Path) -> None:
    fresh = tv.load(session.meta["sources"][0])
    held: list[int] = []
    fresh.save(tmp_path / "dataset", progress=lambda *_: held.append(len(fresh._live)))
    assert max(held) <= 1


# -- damage --------------------------------------------------------------------------------------------


def copied(folder: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    document = json.loads((folder / "saved_session.json").read_text())
    change(document)
    target = tmp_path / "dataset"
    target.mkdir()
    (target / "saved_session.json").write_text(json.dumps(document))
    return target


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(version=2), "later version.*pip install -U"),
        (lambda d: d.update(recordings={}), "no recordings"),
        (lambda d: d.pop("recordings"), "no recordings"),
        (lambda d: d.update(meta=3), "no recordings, or no meta"),
        (lambda d: d["recordings"][0].update(partition="../../../../etc"), "is not that of recording 0"),
        (lambda d: d["recordings"][0].update(partition="rank=1/cycle=0/recording=0"), "is not that of"),
        (lambda d: d["recordings"][1].update(rank="1"), "rank of recording 1 is str"),
        (lambda d: d["recordings"][1].update(state="fine"), "state"),
        (lambda d: d["recordings"][1].pop("path"), "no path"),
        (lambda d: d["meta"].update(sources=3), "sources"),
    ],
)
def test_a_damaged_document_is_refused(
    change: Callable[[dict[str, Any]], object], said: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(TraceFormatError, match=said):
        tv.load(copied(folder, tmp_path, change))


def test_a_lost_recording_is_noted(folder: Path, tmp_path: Path) -> None:
    back = tv.load(copied(folder, tmp_path, lambda document: None))
    with pytest.raises(TraceFormatError, match="no such file"):
        back.trace(row=0)
    with pytest.raises(TorchTrtVizError, match="no rank of this session can be read"):
        back.operators()
    assert back.ranks["state"].unique().tolist() == ["damaged"]


# -- tables of all ranks ---------------------------------------------------------------------------------

TABLES = ("operators", "steps", "collectives", "stragglers", "requests")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which saved recordings are read."""
    rows: list[int] = []
    real = saved.SavedRankFile.load

    def noted(self: Any, options: Any) -> Any:
        rows.append(self.recording)
        return real(self, options)

    monkeypatch.setattr(saved.SavedRankFile, "load", noted)
    return rows


def test_tables_of_all_ranks_need_no_recording(session: Session, folder: Path, read: list[int]) -> None:
    for name in TABLES:
        same_frame(getattr(session, name)(), getattr(tv.load(folder), name)(), name)
    back = tv.load(folder)
    same_frame(session.operators(per_rank=True), back.operators(per_rank=True), "per_rank")
    ours, theirs = session.overview(), back.overview()
    for one in fields(ours):
        same_frame(getattr(ours, one.name), getattr(theirs, one.name), one.name)
    assert read == []
    same_frame(session.operators(by="shape"), back.operators(by="shape"), "by shape: not kept")
    assert read == [0, 1, 2, 3]
    read.clear()
    part = back.select(role="decode")
    same_frame(session.select(role="decode").operators(), part.operators(), "a part is worked out")
    assert read == [2, 3]


def test_tables_that_do_not_fit_are_worked_out_again(
    session: Session, tmp_path: Path, read: list[int]
) -> None:
    target = session.save(tmp_path / "dataset")
    document = target / "tables" / "tables.json"
    said = json.loads(document.read_text())
    for change in (
        {"package": "0.0.0"},
        {"version": 9},
        {"tables": []},
        {"tables": 3},
        {"rows": [0, 1]},
        {"tables": [{**each, "counts": [1]} for each in said["tables"]]},
        {"tables": [{**each, "file": "../spans"} for each in said["tables"]]},
    ):
        document.write_text(json.dumps({**said, **change}))
        read.clear()
        same_frame(session.operators(), tv.load(target).operators(), "operators")
        assert read == [0, 1, 2, 3], change
    document.write_text(json.dumps(said))
    for file in (target / "tables").glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:100])
    read.clear()
    same_frame(session.operators(), tv.load(target).operators(), "operators")
    assert read == [0, 1, 2, 3]
    assert not (session.save(tmp_path / "bare", tables=False) / "tables").exists()


def test_tables_know_what_could_not_be_read(tmp_path: Path, read: list[int]) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for rank in range(3):
        data = trace_json([event(f"op{rank}", 1.0, 2.0, "cpu_op")], rank=rank)
        (source / f"rank{rank}.json").write_bytes(data)
    (source / "rank7.json.gz").write_bytes(b"\x1f\x8b\x08 no more")
    session = tv.load(source)
    target = session.save(tmp_path / "out")
    read.clear()
    back = tv.load(target)
    frame = back.operators()
    assert read == []
    assert sorted(frame["name"]) == ["op0", "op1", "op2"]
    assert [path.endswith("rank7.json.gz") for path, _ in frame.attrs["skipped"]] == [True]
    assert any("rank7" in str(warning) for warning in back.meta["warnings"])


def test_tasks_write_the_same(session: Session, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("dask", reason="dask is not installed (extra cluster)")
    lazy = tv.load(session.meta["sources"][0], engine="dask")
    target = lazy.save(tmp_path / "dataset")
    same_session(session, tv.load(target))
    spread = tv.load(target, engine="dask")
    assert spread.engine == "dask"
    same_frame(session.operators(by="shape"), spread.operators(by="shape"), "operators")
    names = [{str(each.relative_to(root)) for each in root.rglob("*")} for root in (folder, target)]
    assert names[0] == names[1]


def test_workers_that_write_elsewhere_are_noticed(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of another machine, whose folder of that name is not this one's."""
    pytest.importorskip("dask", reason="dask is not installed (extra cluster)")
    monkeypatch.setattr(session_writer, "_save_one", lambda *_: None)
    with pytest.raises(OutputError, match="a folder that all machines share"):
        tv.load(session.meta["sources"][0], engine="dask").save(tmp_path / "dataset")
