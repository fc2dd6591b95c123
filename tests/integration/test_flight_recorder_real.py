"""Dumps that torch itself wrote: the reference files, and jobs of Gloo ranks that are made to hang here."""

from __future__ import annotations

import os
import pickle
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from flight_recorder_dumps import Job
from shared_files import shared_folder

import torchtrt_viz as tv
from torchtrt_viz.formats.flight_recorder.plain_pickle import read_plain

SCENARIO = r"""
import datetime, os, sys, time
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

name, rank, port, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
os.environ.update(TORCH_FR_BUFFER_SIZE="50", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
limit = datetime.timedelta(seconds=8)
dist.init_process_group("gloo", rank=rank, world_size=3, timeout=limit)
store = dist.distributed_c10d._get_default_store()
part = dist.new_group([1, 2], group_desc="pair", timeout=limit)
dist.all_reduce(torch.ones(16))
try:
    if name == "missing":
        if rank != 1:
            dist.all_reduce(torch.ones(16))
    elif name == "dtype":  # as many bytes: nothing fails before both have called it
        dist.all_reduce(torch.ones(16, dtype=torch.int32 if rank == 2 else torch.float32))
    elif name == "type":
        if rank == 0:
            dist.barrier()
        else:
            dist.broadcast(torch.ones(4), 1)
    elif name == "subgroup":
        if rank != 0:
            dist.all_gather([torch.ones(3) for _ in range(2)], torch.ones(3), group=part)
        if rank == 2:
            dist.all_gather([torch.ones(3) for _ in range(2)], torch.ones(3), group=part)
    elif name == "healthy":
        for _ in range(60):
            dist.all_reduce(torch.ones(4))
        dist.barrier()
except RuntimeError:
    pass
with open(f"{folder}/rank_{rank}", "wb") as file:
    file.write(c10d._dump_fr_trace())
with open(f"{folder}/json/rank_{rank}.json", "wb") as file:
    text = c10d._dump_fr_trace_json()
    file.write(text if isinstance(text, bytes) else text.encode())
# nobody leaves before all have dumped: a connection that closes would end the others' calls
store.add("dumped", 1)
while store.add("dumped", 0) < 3:
    time.sleep(0.05)
time.sleep(0.3 if rank == 0 else 0)  # the store lives in rank 0
os._exit(0)
"""


def run(name: str, folder: Path) -> Path:
    """Run a scenario on three ranks, and return the folder of their dumps."""
    pytest.importorskip("torch", reason="needs torch")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    (folder / "json").mkdir(parents=True)
    script = folder / "scenario.py"
    script.write_text(SCENARIO)
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "50"}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(script), name, str(rank), port, str(folder)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank in range(3)
    ]
    try:
        for process in ranks:
            process.wait()
    finally:
        for process in ranks:
            process.kill()
    script.unlink()
    return folder


def session(folder: Path) -> tv.Session:
    loaded = tv.load([folder / f"rank_{rank}" for rank in range(3)])
    assert isinstance(loaded, tv.Session)
    return loaded


# -- the reference files ---------------------------------------------------------------------------------


def test_the_reference_files_name_the_missing_rank() -> None:
    made = tv.load(shared_folder("corpus/flight_recorder"))
    assert isinstance(made, tv.Session)
    assert made.ranks["state"].tolist() == ["ok"] * 3
    row = made.hangs().iloc[0]
    assert len(made.hangs()) == 1
    assert (row["waiting"], row["missing"], row["sequence"]) == ((0, 2), (1,), 5)
    assert (row["last_sequence"], row["operation"], row["group_desc"]) == (4, "all_reduce", "default_pg")
    assert row["certainty"] == "likely"  # gloo records no completion
    assert row["finding"] == (
        "Ranks 0 and 2 wait in all_reduce (collective 5 of the default group, 16 x float32), called at "
        "flight_recorder_make.py:8; rank 1 has not joined: its last is collective 4, at "
        "flight_recorder_make.py:6."
    )
    assert made.explain()["finding"][0].startswith(row["finding"])
    assert made.positions().set_index("rank")["last"].to_dict() == {0: 5, 1: 4, 2: 5}


def test_the_reference_files_are_read_whole() -> None:
    for path in sorted(shared_folder("corpus/flight_recorder").glob("rank_*")):
        raw = pickle.loads(path.read_bytes())  # these files are known
        assert read_plain(path.read_bytes(), path.name).value == raw
        trace = tv.load(path)
        table = trace.recorded_collectives().iloc[::-1]
        assert table["created_unix_ns"].tolist() == [entry["time_created_ns"] for entry in raw["entries"]]
        assert table["sequence"].tolist() == [entry["collective_seq_id"] for entry in raw["entries"]]
        assert trace.meta["accounting"]["in_file"] == len(raw["entries"])
        assert len(trace.spans) == 0  # gloo notes no end
        assert len(trace.instants) == len(raw["entries"])


# -- made here -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_real_healthy_ranks(tmp_path: Path) -> None:
    folder = run("healthy", tmp_path / "healthy")
    made = session(folder)
    assert made.hangs().empty
    positions = made.positions()
    assert positions["last"].tolist() == [62] * 3
    assert positions["first"].tolist() == [13] * 3  # 62 collectives, and room for 50
    read = tv.load(folder / "json")
    assert isinstance(read, tv.Session)
    same = ["group", "rank", "first", "last", "operation", "since_unix_ns"]
    assert read.positions()[same].equals(positions[same])


@pytest.mark.slow
def test_a_real_missing_rank(tmp_path: Path) -> None:
    row = session(run("missing", tmp_path / "missing")).hangs().iloc[0]
    assert (row["problem"], row["waiting"], row["missing"]) == ("not joined", (0, 2), (1,))
    assert (row["sequence"], row["sizes"], row["types"]) == (2, "[[16]]", "float32")
    assert "scenario.py:" in row["source"]
    assert "scenario.py:" in row["last_source"]


@pytest.mark.slow
def test_real_ranks_that_disagree(tmp_path: Path) -> None:
    row = session(run("dtype", tmp_path / "dtype")).hangs().iloc[0]
    assert (row["problem"], row["differing"], row["sequence"]) == ("dtype", (2,), 2)
    row = session(run("type", tmp_path / "type")).hangs().iloc[0]
    assert (row["problem"], row["differing"], row["sequence"]) == ("type", (0,), 2)
    assert row["found"] == "barrier"


@pytest.mark.slow
def test_a_real_subgroup(tmp_path: Path) -> None:
    row = session(run("subgroup", tmp_path / "subgroup")).hangs().iloc[0]
    assert (row["group_desc"], row["waiting"], row["missing"]) == ("pair", (2,), (1,))
    assert (row["operation"], row["sequence"]) == ("all_gather", 2)


# -- torch's own reader ----------------------------------------------------------------------------------

PEER = "import sys; from torch.distributed.flight_recorder.fr_trace import main; main(sys.argv[1:])"


def job(what: str) -> Job:
    made = Job(4)
    for _ in range(3):
        made.call("all_reduce")
    made.call("all_reduce", ranks=range(4) if what == "healthy" else [0, 1, 3])
    for entry in (made.recorders[rank].entries[-1] for rank in (0, 1, 3) if what != "healthy"):
        entry |= {"state": "started", "time_discovered_completed_ns": None, "retired": False}
    if what == "size":
        made.call("all_reduce", [[8]], ranks=[2], state="started")
    elif what == "dtype":
        made.call("all_reduce", ranks=[2], dtype="Half", state="started")
    elif what == "type":
        made.call("broadcast", ranks=[2], state="started")
    return made


@pytest.mark.slow
@pytest.mark.parametrize("what", ["missing", "size", "dtype", "type", "healthy"])
def test_the_same_verdict_as_torchfrtrace(tmp_path: Path, what: str) -> None:
    """On NCCL's dumps; on Gloo's torch 2.13's reader fails with a KeyError."""
    pytest.importorskip("torch.distributed.flight_recorder", reason="needs torch 2.9 or later")
    folder = job(what).write(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PEER, str(folder), "-p", "nccl_trace_rank_"],
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout + done.stderr
    hangs = tv.load(folder).hangs()
    if what == "healthy":
        assert "sequence number" not in said
        assert hangs.empty
        return
    row = hangs.iloc[0]
    assert re.findall(r"equence number: (\d+)", said) == [str(row["sequence"])] == ["4"]
    if what == "missing":
        assert re.findall(r"missing ranks: \{(\d+)\}", said) == ["2"]
        assert (row["problem"], row["missing"]) == ("not joined", (2,))
    else:
        kind = {"size": "SIZE_OR_SYNTAX", "dtype": "COLLECTIVE_DTYPE", "type": "COLLECTIVE_TYPE"}[what]
        assert re.findall(r"Culprit rank (\d+); Error type: (\w+)_MISMATCH", said) == [("2", kind)]
        assert (row["problem"], row["differing"]) == (what, (2,))
