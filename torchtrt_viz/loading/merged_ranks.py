"""A file into which the recordings of several ranks were merged, as a session of these ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.kineto.ids import MergedRank
from torchtrt_viz.loading.rank_files import RankFile
from torchtrt_viz.model.optional_ints import optional_ints
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.select import select
from torchtrt_viz.model.session_data import SessionData
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["session_of"]


@dataclass(frozen=True)
class _MergedRankFile(RankFile):
    """One rank out of a merged file, which was read as a whole."""

    whole: TraceData | None = field(default=None, repr=False, compare=False)
    part: MergedRank | None = None

    def load(self, options: LoadOptions) -> TraceData:
        """Return this rank's events, with the ids that they have in its own recording."""
        assert self.whole is not None
        assert self.part is not None
        return _rank(self.whole, self.part)


def session_of(trace: TraceData, paths: list[Any]) -> SessionData | None:
    """Return the session of the ranks that ``trace`` holds; None for the recording of one process."""
    ranks: list[MergedRank] = trace.meta.get("merged_ranks", [])
    if len(ranks) < 2:
        return None
    path = trace.meta["sources"][0] if trace.meta["sources"] else ""
    files = [
        _MergedRankFile(
            source=None,
            path=f"{path}#{one.mark}",
            format=str(trace.meta["format"]),
            rank=one.rank,
            session=trace.meta.get("session_id"),
            whole=trace,
            part=one,
        )
        for one in ranks
    ]
    options = LoadOptions()
    options.warnings.append(
        Repair(
            "merged_ranks",
            f"the file holds the recordings of {len(ranks)} ranks: {', '.join(one.mark for one in ranks[:8])}"
            + (", ..." if len(ranks) > 8 else ""),
            path,
            count=len(ranks),
        )
    )
    return SessionData(files, options=options, paths=paths)


def _rank(trace: TraceData, part: MergedRank) -> TraceData:
    lanes = np.zeros(len(trace.tracks), bool)
    lanes[list(part.lanes)] = True
    out = select(trace, lanes[trace.spans["track"].to_numpy()])
    for column, shift in part.shift.items():
        out.spans[column] = out.spans[column] - shift
    out.spans["rank"] = optional_ints(np.full(len(out.spans), part.rank, np.int32))
    out.instants = trace.instants[lanes[trace.instants["track"].to_numpy()]].reset_index(drop=True)
    out.counters = trace.counters[lanes[trace.counters["track"].to_numpy()]].reset_index(drop=True)
    out.tracks = trace.tracks.assign(rank=optional_ints(np.full(len(lanes), part.rank, np.int32)))
    out.meta["rank"] = part.rank
    out.meta.pop("merged_ranks", None)
    return out
