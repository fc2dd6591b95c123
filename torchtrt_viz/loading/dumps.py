"""Dumps of Flight Recorders among the recordings of a session: each is of a rank, and no trace of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torchtrt_viz.loading.rank_files import RankFile
from torchtrt_viz.model.repair import Repair

__all__ = ["DUMP", "dumps_of_ranks"]

DUMP = "dump"
"""What such a recording is, in the column ``what`` of a session's ranks."""

_FILLED = ("session", "role", "instance", "host", "world_size")


def dumps_of_ranks(ranks: Sequence[RankFile]) -> tuple[list[RankFile], list[Repair]]:
    """Give each dump what the traces of its rank say of it; returns all recordings, and notes.

    A dump holds no rank, role or host. Where one rank of the session has its number, the dump is that rank's.
    """
    out: list[RankFile] = []
    without: list[RankFile] = []
    traces = [rank for rank in ranks if rank.what == "trace" and rank.state != "missing"]
    sessions = {trace.session for trace in traces}
    for one in ranks:
        if one.what != DUMP:
            out.append(one)
            continue
        if one.rank is None:
            without.append(one)
        beside = [trace for trace in traces if trace.rank is not None and trace.rank == one.rank]
        said: dict[str, Any] = {}
        for name in _FILLED:
            values = {getattr(trace, name) for trace in beside} or (sessions if name == "session" else set())
            if len(values) == 1 and getattr(one, name) is None:
                said[name] = values.pop()
        out.append(replace(one, **said))
    if not without:
        return out, []
    return out, [
        Repair(
            "no_rank",
            "the names of dumps do not end in a rank, which nothing else tells: they are not compared with "
            "the others",
            path=without[0].path,
            count=len(without),
        )
    ]
