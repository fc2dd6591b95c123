"""Ids that several processes, or several ranks merged into one file, use each for its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.formats.producers.rules import rank_group, rank_numbers
from torchtrt_viz.model.schema import KINDS

if TYPE_CHECKING:
    from torchtrt_viz.formats.kineto.tracks import Lane

__all__ = ["MergedRank", "Separated", "separate_ids"]

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
    """

    ids: int = 0
    rows: int = 0
    ranks: list[MergedRank] = field(default_factory=list)


def separate_ids(spans: dict[str, Any], lanes: Sequence[Lane]) -> Separated:
    """Make correlation and external ids unique in the file, where several processes of the host use the same.

    Each process (each rank of a merged recording) keeps its ids apart. Device work under one of these
    processes is that process's; other device work with such an id could be anyone's: it loses the id.
    """
    marks = [rank_group(lane[1]) for lane in lanes]
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
        return Separated(ids, rows)
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


def _separate(
    spans: dict[str, Any], column: str, giver: int, owner_of: np.ndarray[Any, Any], owners: int
) -> tuple[np.ndarray[Any, Any], int, int]:
    """Give each owner ids of its own; returns what was added by owner, ids and rows that nobody owns."""
    values = spans[column]
    shift = np.zeros(owners, np.int64)
    known = values >= 0
    host = known & (spans["kind"] == giver)
    users = np.unique(owner_of[np.unique(spans["track"][host])])
    if len(users) < 2:
        return shift, 0, 0
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
