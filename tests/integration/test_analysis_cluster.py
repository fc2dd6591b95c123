"""Ranks spread over a local cluster: the same frames as in one process, also when a worker is lost."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from rank_traces import event, trace_json

import torchtrt_viz as tv
from torchtrt_viz.analysis import collective_skew, temporal_breakdown

RANKS = 8


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


@pytest.mark.slow
def test_a_cluster_gives_what_one_process_gives_even_if_a_worker_dies(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    _write(tmp_path)
    here = tv.load(tmp_path).map(temporal_breakdown)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = tv.load(tmp_path, engine="dask").map(temporal_breakdown)
        pd.testing.assert_frame_equal(here, there)
        marker = tmp_path / "died"
        again = tv.load(tmp_path, engine="dask").map(_die_once, marker=str(marker))
        assert marker.exists(), "a worker was lost on the way"
        pd.testing.assert_frame_equal(here, again)
        assert client.status == "running"


def _die_once(trace: tv.Trace, *, marker: str) -> pd.DataFrame:
    """Kill the worker that reduces rank 3, the first time."""
    import os

    if trace.meta["rank"] == 3:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os._exit(1)
    return temporal_breakdown(trace)
