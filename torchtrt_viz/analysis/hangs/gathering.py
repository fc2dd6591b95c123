"""The dumps of a session side by side: who left one, which groups there are, and what each rank called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.analysis.hangs.agreement import Call
from torchtrt_viz.analysis.hangs.reduction import COMPLETED, default_group

__all__ = ["DUMP", "Collectives", "Gathered", "Group", "Job", "gathered"]

DUMP = "dump"
"""What a recording of a session is (``ranks["what"]``) that is a Flight Recorder's dump."""

_PRIME = 0x9E3779B97F4A7C15

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_APART = ("role", "instance", "host", "cycle", "stage")
_NUMBERS = ("sequence", "call", "operation", "size", "types", "sent", "received", "created_ns", "timeout_ns")
_COLUMNS = (*_NUMBERS, "rank", "group", "order", "site", "state", "retired", "overdue")
_UNTRACKED = ("gloo", "mpi")
"""Libraries whose entries stay scheduled: whether a collective completed is not recorded."""


@dataclass(frozen=True)
class Group:
    """A process group.

    Attributes
    ----------
    members
        Its ranks in the group's order; None where no dump lists them.
    tracked
        Whether completion is recorded for its collectives.
    everyone
        Whether it is the group of all ranks.
    """

    key: int
    name: str | None
    desc: str | None
    backend: str | None
    members: tuple[int, ...] | None
    tracked: bool
    everyone: bool


@dataclass(frozen=True)
class Collectives:
    """The collectives of one group on all ranks, by rank, then number; a batch under one number is one call.

    Attributes
    ----------
    rank, sequence
        Whose call, and its number.
    call, operation, size, types, site
        Hashes: of the call's texts, of what all ranks have to agree in, and of the line that called it.
    sent, received
        Elements of its inputs and outputs; -1 not recorded.
    completed
        Whether it is recorded as complete, or a later one of its rank and group is.
    failed
        Whether the library is done with it without its completion, or it outlived its timeout.
    open
        Whether it is recorded as under way.
    """

    rank: Ints
    sequence: Ints
    call: Ints
    operation: Ints
    size: Ints
    types: Ints
    site: Ints
    sent: Ints
    received: Ints
    created_ns: Ints
    timeout_ns: Ints
    state: NDArray[np.int8]
    retired: NDArray[np.int8]
    completed: Mask
    failed: Mask
    open: Mask

    def rows_of(self, sequence: int) -> Ints:
        """Return the rows of one collective, a row per rank that called it."""
        return np.flatnonzero(self.sequence == sequence)


@dataclass(frozen=True)
class Job:
    """Ranks that belong together, each with one dump.

    Attributes
    ----------
    session
        Id of their session.
    ranks
        Those of which there is a whole dump.
    world
        All ranks that there should be, as far as the dumps say.
    begins
        Ranks whose recorder still had its first entry.
    groups
        Process groups by key.
    calls
        All their calls, with a column ``rank``.
    """

    session: str | None
    ranks: tuple[int, ...]
    world: tuple[int, ...]
    begins: frozenset[int]
    groups: dict[int, Group]
    calls: pd.DataFrame

    def collectives(self) -> Iterator[tuple[Group, Collectives]]:
        """Yield the groups in which collectives were called."""
        frame = self.calls[~self.calls["p2p"].to_numpy() & (self.calls["sequence"].to_numpy() >= 0)]
        columns = {name: frame[name].to_numpy() for name in _COLUMNS}
        columns["rank"] = columns["rank"].astype(np.int64)
        order = np.lexsort([columns[name] for name in ("order", "sequence", "rank", "group")])
        columns = {name: values[order] for name, values in columns.items()}
        keys = columns["group"]
        if not len(keys):
            return
        starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
        for begin, end in zip(starts, [*starts[1:], len(keys)], strict=True):
            group = self.groups[int(keys[begin])]
            yield group, _collectives({name: values[begin:end] for name, values in columns.items()}, group)


@dataclass(frozen=True)
class Gathered:
    """The dumps of a session: its jobs, and the texts that the numbers of calls and sites stand for."""

    jobs: tuple[Job, ...] = ()
    calls: dict[int, Call] = field(default_factory=dict)
    sites: dict[int, tuple[str | None, str | None]] = field(default_factory=dict)
    doubled: tuple[int, ...] = ()


def gathered(frames: Sequence[pd.DataFrame]) -> Gathered:
    """Put together what `reduction.WORK` gave for each rank, under each other with the ranks' columns."""
    facts, calls, signatures, sites, groups = frames
    if not len(facts):
        return Gathered()
    texts = signatures.drop_duplicates("call")
    fields = [text(texts[name].to_numpy()).tolist() for name in Call.__dataclass_fields__]
    known = {
        int(number): Call(*values) for number, *values in zip(texts["call"].tolist(), *fields, strict=True)
    }
    sites = sites.sort_values("stack", key=lambda column: column.isna(), kind="stable")
    sites = sites.drop_duplicates("site")
    sources, stacks = (text(sites[name].to_numpy()).tolist() for name in ("source", "stack"))
    places = dict(zip(map(int, sites["site"]), zip(sources, stacks, strict=True), strict=True))
    jobs: list[Job] = []
    doubled: list[int] = []
    # where a dump's end is missing, it does not say how far its rank got: as good as none
    facts = facts[facts["rank"].notna() & (facts["cut"] == 0)]
    for session, part in facts.groupby("session", dropna=False, sort=False):
        apart, twice = _jobs(part)
        doubled += twice
        jobs += [_job(None if pd.isna(session) else str(session), one, calls, groups) for one in apart]
    return Gathered(tuple(jobs), known, places, tuple(sorted(set(doubled))))


def _jobs(facts: pd.DataFrame) -> tuple[list[pd.DataFrame], list[int]]:
    """Divide dumps into jobs in which each rank has one; returns these, and ranks that remain there twice."""
    parts = [facts]
    for name in _APART:
        if all(part["rank"].is_unique for part in parts):
            break
        divided: list[pd.DataFrame] = []
        for part in parts:
            several = not part["rank"].is_unique
            divided += [one for _, one in part.groupby(name, dropna=False, sort=False)] if several else [part]
        parts = divided
    twice = [int(rank) for part in parts for rank in part.loc[part["rank"].duplicated(), "rank"]]
    return [part.drop_duplicates("rank", keep=False) for part in parts], twice


def _of(facts: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of ``frame`` that are of the dumps in ``facts``."""
    whole = frame[frame["rank"].isin(facts["rank"])]
    for name in ("session", *_APART):
        if whole[name].nunique(dropna=False) > 1:
            keys = facts[["rank", name]].astype(object).where(facts[["rank", name]].notna(), None)
            own = {(rank, key) for rank, key in keys.itertuples(index=False)}
            values = whole[["rank", name]].astype(object).where(whole[["rank", name]].notna(), None)
            whole = whole[[pair in own for pair in values.itertuples(index=False, name=None)]]
    return whole


def _job(session: str | None, facts: pd.DataFrame, calls: pd.DataFrame, groups: pd.DataFrame) -> Job:
    calls, groups = _of(facts, calls), _of(facts, groups)
    ranks = tuple(sorted(int(rank) for rank in facts["rank"]))
    listed = {each for each in facts["world"] if isinstance(each, str)}
    world = sorted({*ranks, *(int(number) for each in listed for number in each.split())})
    seen = set(calls.loc[calls["state"].to_numpy() > 0, "group"].tolist())
    found: dict[int, Group] = {}
    groups = groups.drop_duplicates("key")
    fields = [text(groups[name].to_numpy()).tolist() for name in ("name", "desc", "backend", "members")]
    for key, name, desc, backend, members in zip(map(int, groups["key"]), *fields, strict=True):
        everyone = default_group(name, desc)
        found[key] = Group(
            key,
            name,
            desc,
            backend,
            tuple(world) if everyone else None if members is None else tuple(map(int, members.split())),
            (backend or "").lower() not in _UNTRACKED or key in seen,
            everyone,
        )
    begins = frozenset(int(rank) for rank in facts.loc[facts["begins"] == 1, "rank"])
    return Job(session, ranks, tuple(world), begins, found, calls)


def _collectives(found: dict[str, NDArray[Any]], group: Group) -> Collectives:
    """Make one call of each batch under one number; the rows are sorted by rank, number and order."""
    rank, sequence = found["rank"], found["sequence"]
    first = np.r_[True, (rank[1:] != rank[:-1]) | (sequence[1:] != sequence[:-1])]
    starts = np.flatnonzero(first)
    position = np.arange(len(rank)) - starts[np.cumsum(first) - 1]
    weight = np.cumprod(np.full(int(position.max()) + 1, _PRIME, np.uint64))
    weight = np.r_[np.uint64(1), weight][position]
    columns: dict[str, Ints] = {}
    for name in _NUMBERS:
        if name in ("operation", "size", "types"):  # in their order: a batch is what all its parts are
            weighted = found[name].astype(np.uint64) * weight
            columns[name] = np.add.reduceat(weighted, starts).astype(np.int64)
        else:
            columns[name] = found[name][starts]
    state = np.maximum.reduceat(found["state"], starts)
    retired = np.maximum.reduceat(found["retired"], starts)
    overdue = np.logical_or.reduceat(found["overdue"], starts)
    rank = rank[starts]
    completed = state == COMPLETED
    if group.tracked:
        completed |= _before_completed(rank, columns["sequence"], completed)
    return Collectives(
        rank=rank,
        state=state,
        retired=retired,
        completed=completed,
        failed=~completed & group.tracked & ((retired == 1) | overdue),
        open=~completed & (retired == 0),
        site=found["site"][starts],
        **columns,
    )


def _before_completed(rank: Ints, sequence: Ints, completed: Mask) -> Mask:
    """Say which calls come before a completed one of their rank: a group's collectives run in order."""
    last = np.where(completed, sequence, -1)
    ranks, index = np.unique(rank, return_inverse=True)
    highest = np.full(len(ranks), -1, np.int64)
    np.maximum.at(highest, index.reshape(-1), last)
    return sequence < highest[index.reshape(-1)]
