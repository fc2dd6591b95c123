"""The table of hangs: causes first, then what follows from them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from torchtrt_viz.analysis.columns.hangs import HANGS
from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.analysis.hangs.disagreement import disagreements
from torchtrt_viz.analysis.hangs.gathering import Gathered
from torchtrt_viz.analysis.hangs.hang import Hang
from torchtrt_viz.analysis.hangs.joining import not_joined
from torchtrt_viz.analysis.hangs.point_to_point import without_partner
from torchtrt_viz.analysis.hangs.standing import Stood
from torchtrt_viz.analysis.hangs.words import ranks_in_words, sentence, shapes, waits_in, where

__all__ = ["hangs_of"]

_DISAGREE = ("type", "order", "size", "dtype")
_MOST_TOLD = 2
_CERTAINTIES = ("certain", "likely", "possible")


def hangs_of(gathered: Gathered, jobs: Stood) -> pd.DataFrame:
    """Return the table of hangs from the dumps side by side."""
    found: list[Hang] = []
    for job, groups in jobs:
        here: list[Hang] = []
        for group, calls, at in groups:
            differing = disagreements(gathered, job, group, calls)
            waiting = not_joined(gathered, job, group, calls, at)
            # a disagreement says more than that the ranks in it did not get on
            told = {(hang.problem in _DISAGREE, hang.sequence) for hang in differing}
            here += differing + [
                hang for hang in waiting if hang.problem == "not joined" or (True, hang.sequence) not in told
            ]
        here += without_partner(gathered, job)
        found += _causes_first(here, len(found))
    return _frame(found)


def _causes_first(found: list[Hang], before: int) -> list[Hang]:
    """Order the rows of a job, and say of each which other one holds its missing ranks up."""
    waits: dict[int, list[Hang]] = {}
    for hang in found:
        for rank in hang.waiting:
            waits.setdefault(rank, []).append(hang)
    holder: dict[int, Hang] = {}
    for hang in found:
        if hang.problem in _DISAGREE or not hang.missing:
            continue
        others = {id(o): o for rank in hang.missing for o in waits.get(rank, ()) if o is not hang}
        if others:
            ordered = sorted(others.values(), key=_place)
            holder[id(hang)] = ordered[0]
            hang.held = _held(hang, ordered)
    depth = {id(hang): _depth(hang, holder) for hang in found}
    ordered = sorted(found, key=lambda hang: (depth[id(hang)], *_place(hang)))
    row = {id(hang): before + number for number, hang in enumerate(ordered)}
    for hang in ordered:
        other = holder.get(id(hang))
        if other is None:
            continue
        hang.held_by = row[id(other)]
        if depth[id(hang)] > len(found):
            hang.why.append("the ranks of several collectives wait for one another in a circle")
    return ordered


def _held(hang: Hang, others: list[Hang]) -> str:
    """Say what the missing ranks of a row wait in themselves."""
    parts = []
    for other in others[:_MOST_TOLD]:
        ranks = [rank for rank in hang.missing if rank in other.waiting]
        parts.append(f"{ranks_in_words(ranks)} {waits_in(ranks)} {where(other)}")
    more = len(others) - _MOST_TOLD
    return "; ".join([*parts, *([f"others in {more:,} more collectives"] if more > 0 else [])])


def _place(hang: Hang) -> tuple[Any, ...]:
    """Where a row stands among those that are equally far from their cause."""
    return (
        hang.problem not in _DISAGREE,
        _CERTAINTIES.index(hang.certainty),
        hang.problem == "no dump",
        -len(hang.waiting),
        hang.group.name or "",
        hang.sequence,
    )


def _depth(hang: Hang, holder: dict[int, Hang]) -> int:
    """Return how many other rows stand between a row and its cause; more than there are rows for a circle."""
    steps, at = 0, hang
    while id(at) in holder:
        steps, at = steps + 1, holder[id(at)]
        if steps > len(holder):
            return 1 << 30
    return steps


def _frame(found: list[Hang]) -> pd.DataFrame:
    rows = [_row(hang) for hang in found]
    columns: dict[str, Any] = {}
    for column in HANGS.columns:
        values = [row[column.name] for row in rows]
        if column.dtype == "text":
            columns[column.name] = text(values)
        elif column.dtype == "object":
            columns[column.name] = pd.Series(values, dtype=object)
        else:
            columns[column.name] = pd.array(values, dtype="Int64")
    return HANGS.typed(pd.DataFrame(columns))


def _row(hang: Hang) -> dict[str, Any]:
    sizes, types = hang.call.both
    last = min(hang.behind, key=lambda each: each[1], default=None)
    known = last is not None and last[1] >= 0
    others = dict.fromkeys(f"{call.operation} {shapes(call)}".strip() for _, call, _ in hang.others)
    why = list(hang.why)
    if hang.later:
        why.append(f"they disagree in {hang.later:,} later collectives of the group too, which follows")
    return {
        "finding": sentence(hang),
        "problem": hang.problem,
        "certainty": hang.certainty,
        "session": hang.session,
        "group": hang.group.name,
        "group_desc": hang.group.desc,
        "backend": hang.group.backend,
        "group_size": None if hang.group.members is None else len(hang.group.members),
        "operation": hang.call.operation,
        "sequence": hang.sequence,
        "waiting": hang.waiting,
        "missing": hang.missing,
        "differing": hang.differing,
        "no_dump": hang.no_dump,
        "state": hang.state,
        "sizes": sizes,
        "types": types,
        "found": "; ".join(others) or None,
        "source": hang.source,
        "stack": hang.stack,
        "last_sequence": last[1] if last is not None and known else None,
        "last_operation": None if last is None or last[2] is None else last[2].operation,
        "last_source": None if last is None else last[3],
        "since_unix_ns": hang.since_ns,
        "timeout_ns": hang.timeout_ns,
        "held_by": hang.held_by,
        "why": "; ".join(why) or None,
    }
