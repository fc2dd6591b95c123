"""Ids that several processes, or several ranks merged into one file, use each for its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.formats.producers.rules import rank_group, rank_numbers
from torchtrt_viz.model.schema import KINDS

if TYPE_CHECKING:
    from torchtrt_viz.formats.kineto.tracks import Lane

__all__ = ["MergedRank", "Separated", "ranks_in_args", "separate_ids"]

_SAMPLED = 3
_MOST_PROCESSES = 4096

#: Kind of the events that give an id: a launch its correlation id, an operator the external id.
_GIVERS = {"correlation": KINDS.index("runtime"), "external_id": KINDS.index("operator")}


@dataclass(frozen=True)
class MergedRank:
    """One of several ranks whose recordings were merged into one file.

    Attributes
    ----------
    mark
        What stands before its process ids: "TP01-DP00-PP00-EP00".
    rank
        Its number.
    lanes
        Rows of ``trace.tracks`` that are its own.
    shift
        What was added to its correlation and external ids, to tell them from those of other ranks.
    """

    mark: str
    rank: int
    lanes: tuple[int, ...]
    shift: dict[str, int]


@dataclass(frozen=True)
class Separated:
    """What was done about ids that are used more than once.

    Attributes
    ----------
    ids, rows
        Ids that could not be told apart, and events that lost their link for it.
    ranks
        The ranks of a merged recording; empty for any other.
    recorded
        Processes of which operators were recorded, where nothing says a rank of several.
    """

    ids: int = 0
    rows: int = 0
    ranks: list[MergedRank] = field(default_factory=list)
    recorded: int = 0


def separate_ids(
    spans: dict[str, Any], lanes: Sequence[Lane], names: Mapping[str | None, str] | None = None
) -> Separated:
    """Make correlation and external ids unique in the file, where several processes of the host use the same.

    Each process (each rank of a merged recording) keeps its ids apart. Device work under one of these
    processes is that process's; other device work with such an id could be anyone's: it loses the id.

    Parameters
    ----------
    names
        Process as the file writes its id -> what it is called.
    """
    names = names or {}
    marks = [rank_group(lane[1], names.get(lane[1], "")) for lane in lanes]
    owners: dict[tuple[str, str | None], int] = {}
    keys = [
        ("process", lane[1]) if mark is None else ("rank", mark)
        for lane, mark in zip(lanes, marks, strict=True)
    ]
    owner_of = np.array([owners.setdefault(key, len(owners)) for key in keys], np.int64)
    shift: dict[str, np.ndarray[Any, Any]] = {}
    ids = rows = 0
    for column, giver in _GIVERS.items():
        shift[column], lost_ids, lost_rows = _separate(spans, column, giver, owner_of, len(owners))
        ids += lost_ids
        rows += lost_rows
    groups = list(dict.fromkeys(mark for mark in marks if mark is not None))
    if len(groups) < 2:
        working = _owners_of(spans, spans["kind"] == _GIVERS["external_id"], owner_of)
        return Separated(ids, rows, recorded=len(working))
    numbers = rank_numbers(groups)
    ranks = [
        MergedRank(
            mark,
            numbers[mark],
            tuple(lane for lane, of in enumerate(marks) if of == mark),
            {column: int(values[owners["rank", mark]]) for column, values in shift.items()},
        )
        for mark in groups
    ]
    return Separated(ids, rows, sorted(ranks, key=lambda one: one.rank))


def ranks_in_args(
    tracks: np.ndarray[Any, Any],
    lanes: Sequence[Lane],
    read: Callable[[np.ndarray[Any, Any]], list[dict[str, Any]]],
) -> dict[str | None, str]:
    """Return the rank of each process where every event states one in its arguments; {} where not all do.

    TraceLens merges so: process and correlation ids are moved apart, and "rank" is added to the arguments.
    A few events of each process are looked at.

    Parameters
    ----------
    tracks
        Lane of each span.
    read
        Returns the arguments of spans.
    """
    processes = np.array([lane[1] or "" for lane in lanes], object)
    codes = np.unique(processes, return_inverse=True)[1]
    of_span = codes[tracks]
    rows = [np.flatnonzero(of_span == code)[:_SAMPLED] for code in np.unique(of_span)[:_MOST_PROCESSES]]
    out: dict[str | None, str] = {}
    for some in rows:
        stated = {args.get("rank") for args in read(some)}
        rank = stated.pop() if len(stated) == 1 else None
        if isinstance(rank, bool) or not isinstance(rank, int) or rank < 0:
            return {}
        out[lanes[int(tracks[some[0]])][1]] = f"rank {rank}"
    return out if len(set(out.values())) > 1 else {}


def _owners_of(
    spans: dict[str, Any], rows: np.ndarray[Any, Any], owner_of: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return the owners of the lanes on which the spans of ``rows`` (a mask) lie."""
    lanes = np.zeros(len(owner_of), bool)
    lanes[spans["track"][rows]] = True
    return np.unique(owner_of[lanes])


def _separate(
    spans: dict[str, Any], column: str, giver: int, owner_of: np.ndarray[Any, Any], owners: int
) -> tuple[np.ndarray[Any, Any], int, int]:
    """Give each owner ids of its own; returns what was added by owner, ids and rows that nobody owns."""
    values = spans[column]
    shift = np.zeros(owners, np.int64)
    host = (spans["kind"] == giver) & (values >= 0)
    users = _owners_of(spans, host, owner_of)
    if len(users) < 2:
        return shift, 0, 0
    known = values >= 0
    owner = owner_of[spans["track"]]
    pairs = np.unique(np.stack([values[host], owner[host]]), axis=1)
    several = np.unique(pairs[0][1:][pairs[0][1:] == pairs[0][:-1]])
    if not len(several):
        return shift, 0, 0
    shift[users] = (int(values.max()) + 1) * np.arange(len(users))
    owned = np.isin(owner, users)
    lost = known & ~owned & np.isin(values, several)
    out = np.where(known & owned, values + shift[owner], values)
    out[lost] = -1
    spans[column] = out
    return shift, len(np.unique(values[lost])), int(lost.sum())
