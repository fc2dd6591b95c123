"""A file into which the recordings of several ranks were merged, as a session of these ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import folder_of
from torchtrt_viz.formats.kineto.ids import MergedRank
from torchtrt_viz.loading.rank_files import RankFile
from torchtrt_viz.model.args import Args
from torchtrt_viz.model.optional_ints import optional_ints
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.select import Subset, select
from torchtrt_viz.model.session_data import SessionData
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["expanded", "merged_files", "session_of"]


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


def session_of(trace: TraceData, paths: list[Any], options: LoadOptions) -> SessionData | None:
    """Return the session of the ranks that ``trace`` holds; None for the recording of one process.

    What was said about the whole file goes to the session's warnings.
    """
    files = merged_files(trace)
    if not files:
        return None
    said = [warning for warning in trace.meta["warnings"] if warning.code != "merged_ranks"]
    options = replace(options, warnings=[*said, *_notes(trace, files)])
    return SessionData(files, options=options, paths=paths)


def expanded(ranks: Sequence[RankFile], options: LoadOptions) -> tuple[list[RankFile], list[Repair]]:
    """Put in place of each merged file the ranks that it holds, where their own files do not lie beside it.

    A merged file beside its parts stays what it is: its parts are counted, and a note names it.
    """
    out: list[RankFile] = []
    notes: list[Repair] = []
    for one in ranks:
        if one.what != "merged" or one.state == "missing":
            out.append(one)
            continue
        beside = [
            part
            for part in ranks
            if part is not one and part.what == "trace" and part.state != "missing" and _together(one, part)
        ]
        if len(beside) > 1:
            out.append(one)
            notes.append(
                Repair(
                    "merged_file",
                    f"holds the recordings of several ranks merged; {len(beside)} traces of single ranks lie "
                    "beside it: these are counted, and the merged file is not",
                    one.path,
                    count=len(beside),
                )
            )
            continue
        try:
            whole = one.load(options)
        except TraceFormatError as error:
            out.append(replace(one, state="damaged", error=str(error)))
            continue
        files = merged_files(whole)
        notes += whole.meta["warnings"]
        if files:
            notes += _notes(whole, files)
            apart = {part.rank for part in beside}  # of these ranks their own files are counted
            out += [file for file in files if file.rank not in apart]
        else:
            out.append(replace(one, what="trace"))
    return out, notes


def _together(merged: RankFile, part: RankFile) -> bool:
    """Whether a trace lies beside a merged file: in its folder or below, or of the same run."""
    if merged.session is not None and merged.session == part.session:
        return True
    return f"{part.path}".startswith(f"{folder_of(merged.path)}/")


def merged_files(trace: TraceData) -> list[RankFile]:
    """Return the ranks that a trace holds as files of their own; none for the recording of one process."""
    ranks: list[MergedRank] = trace.meta.get("merged_ranks", [])
    if len(ranks) < 2:
        return []
    path = trace.meta["sources"][0] if trace.meta["sources"] else ""
    return [
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


def _notes(trace: TraceData, files: Sequence[RankFile]) -> list[Repair]:
    """Say which ranks are in the file, and what is of none of them."""
    marks = [file.path.rpartition("#")[2] for file in files]
    path = files[0].path.rpartition("#")[0]
    owned = [lane for one in trace.meta["merged_ranks"] for lane in one.lanes]
    left = int((~trace.spans["track"].isin(owned)).sum())
    notes = []
    if left:
        notes.append(
            Repair(
                "events_of_no_rank",
                f"{left} spans are on processes that the merged file gives to no rank: they are left out",
                path,
                count=left,
            )
        )
    said = Repair(
        "merged_ranks",
        f"the file holds the recordings of {len(marks)} ranks: {', '.join(marks[:8])}"
        + (", ..." if len(marks) > 8 else ""),
        path,
        count=len(marks),
    )
    return [said, *notes]


def _rank(trace: TraceData, part: MergedRank) -> TraceData:
    lanes = np.zeros(len(trace.tracks), bool)
    lanes[list(part.lanes)] = True
    kept = np.flatnonzero(lanes)
    place = np.full(len(lanes) + 1, -1, np.int32)  # the last one is for events of no track
    place[kept] = np.arange(len(kept))
    out = select(trace, lanes[trace.spans["track"].to_numpy()])
    for column, shift in part.shift.items():
        out.spans[column] = out.spans[column] - shift
    out.spans["rank"] = optional_ints(np.full(len(out.spans), part.rank, np.int32))
    instants = np.flatnonzero(_on(trace.instants["track"].to_numpy(), lanes))
    out.instants = trace.instants.iloc[instants].reset_index(drop=True)
    out.instant_args = Args(Subset(trace.instant_args, instants), len(instants))
    out.counters = trace.counters[_on(trace.counters["track"].to_numpy(), lanes)].reset_index(drop=True)
    for frame in (out.spans, out.instants, out.counters):
        frame["track"] = place[frame["track"].to_numpy()]
    out.tracks = trace.tracks.iloc[kept].reset_index(drop=True)
    out.tracks["rank"] = optional_ints(np.full(len(kept), part.rank, np.int32))
    out.meta["rank"] = part.rank
    out.meta["warnings"] = list(trace.meta["warnings"])
    out.meta.pop("merged_ranks", None)
    return out


def _on(tracks: NDArray[np.int32], lanes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether events lie on one of the lanes; those of no track do not."""
    return np.append(lanes, False)[tracks]
