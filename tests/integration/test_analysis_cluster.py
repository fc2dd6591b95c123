"""Ranks spread over a local cluster: the same frames as in one process, also when a worker is lost."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from rank_traces import event, trace_json

import torchtrt_viz as tv
from torchtrt_viz.analysis import collective_skew, temporal_breakdown

cloudpickle = pytest.importorskip("cloudpickle")
# workers cannot import this file: what they shall run is sent to them whole
cloudpickle.register_pickle_by_value(sys.modules[__name__])

RANKS = 8
SIMULATED = 32


def _write(folder: Path) -> None:
    for rank in range(RANKS):
        events = [event(f"aten::op{n}", 10.0 * n, 3.0 + rank, "cpu_op") for n in range(50)]
        for n in range(5):
            start, late = 1000.0 + 100.0 * n, float(rank)
            events.append(event("gemm", start, 20.0, "kernel", 9, stream=7, device=0, correlation=n + 1))
            events.append(
                event(
                    "ncclDevKernel_AllReduce",
                    start + 30.0 + late,
                    20.0 - late,
                    "kernel",
                    9,
                    stream=9,
                    device=0,
                    **{
                        "Collective name": "allreduce",
                        "Process Group Name": "0",
                        "Process Group Ranks": str(list(range(RANKS))),
                        "Group size": RANKS,
                        "In msg nelems": 1000,
                        "dtype": "Float",
                    },
                )
            )
        (folder / f"rank{rank}.json").write_bytes(trace_json(events, rank=rank, world_size=RANKS))


def test_skew_over_ranks(tmp_path: Path) -> None:
    _write(tmp_path)
    table = collective_skew(tv.load(tmp_path))
    assert table["ranks"].tolist() == [RANKS] * 5
    assert table["missing_ranks"].to_list() == [0] * 5
    assert table["transfer_ns"].tolist() == [13_000] * 5
    assert table["last_rank"].tolist() == [RANKS - 1] * 5
    assert table["first_rank"].tolist() == [0] * 5
    assert table["max_wait_ns"].tolist() == [7_000] * 5


@pytest.fixture(scope="module")
def simulated(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ModuleType]:
    """A session folder of simulated ranks, made by the benchmark's generator."""
    sys.path.append(str(root / "benchmarks"))
    try:
        ranks = importlib.import_module("cluster_ranks")
    finally:
        sys.path.remove(str(root / "benchmarks"))
    folder = tmp_path_factory.mktemp("cluster") / "simulated"
    ranks.write_session(folder, SIMULATED)
    return folder, ranks


def test_tables_over_simulated_ranks_find_what_was_planted(simulated) -> None:
    folder, ranks = simulated
    session = tv.load(folder)
    assert not session.meta["warnings"]
    made = session.overview()
    assert made.totals["synthetic"].all()
    assert made.ranks["world_size"].unique().tolist() == [SIMULATED]
    # one of these ranks is slow; its group of eight waits for it in every all-reduce
    slow = [rank for rank in range(SIMULATED) if ranks.is_slow(rank)]
    assert slow == [13]
    late = made.stragglers
    assert late["rank"].iloc[0] == 13
    assert late["last_in"].iloc[0] == ranks.STEPS * ranks.LAYERS
    own, peers = ranks._layers(13), [ranks._layers(rank) for rank in range(8, 16) if rank != 13]
    waited = sum(own[layer] - peer[layer] for peer in peers for layer in range(ranks.STEPS * ranks.LAYERS))
    assert late["waited_for_ns"].iloc[0] == pytest.approx(1e3 * waited, rel=1e-4)
    # collectives are compared inside their process groups only
    assert set(made.collectives["ranks"]) == {ranks.GROUP}
    assert len(made.collectives) == SIMULATED // ranks.GROUP * ranks.STEPS * ranks.LAYERS
    assert set(made.skew["transfer_ns"]) == {round(1e3 * ranks.TRANSFER_US)}
    roles = made.roles.set_index("role")
    assert roles.index.tolist() == ["prefill", "decode"]
    assert roles["ranks"].tolist() == [8, 24]
    requests = made.requests.set_index("request")
    assert len(requests) == requests["joined"].sum() == ranks.STEPS
    row = requests.loc["g0-r4"]
    assert (row["prefill_ranks"], row["decode_ranks"], row["decode_rank"]) == (8, 8, 16)
    assert row["decode_queue_ns"] == 1e3 * (40 - 2 * 4 - 1.5 + 25)
    assert pd.isna(row["handoff_ns"]), "clocks of two hosts are not compared"
    for name in ("stragglers", "requests"):
        pd.testing.assert_frame_equal(getattr(made, name), getattr(session, name)())


def test_a_cluster_gives_what_one_process_gives_even_if_a_worker_dies(simulated) -> None:
    distributed = pytest.importorskip("distributed")
    folder, _ = simulated
    here = tv.load(folder).overview()
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        seen: list[int] = []

        def kill(done: int, total: int) -> None:
            assert total == SIMULATED
            seen.append(done)
            if done == SIMULATED // 2:
                os.kill(victim, signal.SIGKILL)

        there = tv.load(folder, engine="dask").overview(kill)
        assert seen == list(range(1, SIMULATED + 1))
        left = client.run(_peak)
        assert victim not in {pid for pid, _ in left.values()}, "the worker is gone"
        assert max(peak for _, peak in left.values()) < 500_000_000
    for field in fields(here):
        pd.testing.assert_frame_equal(getattr(here, field.name), getattr(there, field.name))


@pytest.mark.slow
def test_a_rank_that_kills_its_worker_once_is_computed_again(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    _write(tmp_path)
    here = tv.load(tmp_path).map(temporal_breakdown)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        marker = tmp_path / "died"
        there = tv.load(tmp_path, engine="dask").map(_die_once, marker=str(marker))
        assert marker.exists(), "a worker was lost on the way"
        pd.testing.assert_frame_equal(here, there)


@pytest.mark.slow
def test_a_thousand_ranks_take_bounded_memory(root: Path) -> None:
    """Five minutes of CPU time: ``pytest -m slow tests/integration/test_analysis_cluster.py``."""
    pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, str(root / "benchmarks" / "cluster.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1000" in done.stdout
    assert "NOT HELD" not in done.stdout


def _peak() -> tuple[int, int]:
    """Process and its own highest resident memory."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return os.getpid(), int(line.split()[1]) * 1024


def _die_once(trace: tv.Trace, *, marker: str) -> pd.DataFrame:
    """Kill the worker that reduces rank 3, the first time."""
    if trace.meta["rank"] == 3:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os._exit(1)
    return temporal_breakdown(trace)
