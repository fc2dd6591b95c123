"""Which traces are of one rank, and which only have the same number, or none.

What is not known is equal to nothing: traces without a rank are not one rank, and traces of one number are
cycles of one rank only where time stamps say so. Everything else is kept apart by ``instance``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from torchtrt_viz.formats.session.rank_names import RankName
from torchtrt_viz.loading.rank_files import RankFile
from torchtrt_viz.model.repair import Repair

__all__ = ["numbered_ranks", "ranks_beside", "tell_apart"]

_WORK = ("trace", "partial")
_ASCEND_INFO = re.compile(r"profiler_info_(\d{1,9})\.json")
_ENDING = re.compile(r"(?:\.pt)?(?:\.trace)?\.(?:json|etdp|pftrace|perfetto-trace)(?:\.gz|\.zst)?$")


def ranks_beside(ranks: Sequence[RankFile], others: Iterable[str]) -> list[RankFile]:
    """Take the rank of a trace from the file ``profiler_info_<rank>.json`` that torch_npu writes above it."""
    said = {}
    for other in others:
        folder, _, name = other.replace("!", "/").rpartition("/")
        found = _ASCEND_INFO.fullmatch(name)
        if found is not None:
            said[folder] = int(found[1])
    if not said:
        return list(ranks)
    out = []
    for rank in ranks:
        parents = [str(parent) for parent in PurePosixPath(rank.path.replace("!", "/")).parents[:3]]
        number = next((said[parent] for parent in parents if parent in said), None)
        out.append(rank if number is None or rank.rank is not None else replace(rank, rank=number))
    return out


def numbered_ranks(
    ranks: Sequence[RankFile], names: Sequence[RankName | None]
) -> tuple[list[RankFile], list[Repair]]:
    """Take numbers in names for ranks where a folder has them from 0 on without a gap, and nothing else says.

    "trace_3.json" is rank 3 in some programs and step 3 in others; trace_0, trace_1, trace_2 of one folder
    are taken for ranks, and a note says so.
    """
    series: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(names):
        if name is not None and name.number is not None and name.series is not None:
            series[name.series].append(i)
    out, notes = list(ranks), []
    for members in series.values():
        numbers = {i: number for i in members if (number := _number(names[i])) is not None}
        known = any(ranks[i].rank is not None for i in members)
        if known or len(members) < 2 or sorted(numbers.values()) != list(range(len(members))):
            continue
        for i in members:
            out[i] = replace(out[i], rank=numbers[i])
        notes.append(
            Repair(
                "ranks_from_numbers",
                f"the numbers in the names of {len(members)} traces, 0 to {len(members) - 1}, are taken for "
                "their ranks: nothing else says whose they are",
                path=out[members[0]].path,
                count=len(members),
            )
        )
    return out, notes


def _number(name: RankName | None) -> int | None:
    return None if name is None else name.number


def tell_apart(ranks: list[RankFile]) -> tuple[list[RankFile], list[Repair], list[Repair]]:
    """Number the cycles of each rank where time stamps tell them, and keep all other traces apart.

    Returns the ranks in order, a repair for each number that several traces have, and notes on numbers that
    count within hosts.
    """
    out = list(ranks)
    collisions = _same_number(out)
    _without_number(out)
    return sorted(out, key=_order), collisions, _several_hosts(out)


def _same_number(out: list[RankFile]) -> list[Repair]:
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for i, rank in enumerate(out):
        if rank.rank is not None and rank.state != "missing":
            groups[(*rank.key, rank.stage, rank.what, rank.cycle)].append(i)
    repairs = []
    for members in groups.values():
        if _by_stamps(out, members) or len(members) == 1:
            continue
        labels = _labels([out[i].path for i in members])
        for i, label in zip(members, labels, strict=True):
            given = out[i].instance
            out[i] = replace(out[i], instance=label if given is None else f"{given} {label}")
            if out[i].cycle is None:
                out[i] = replace(out[i], cycle=0)
        repairs.append(
            Repair(
                "rank_collision",
                f"{len(members)} traces say that they are of rank {out[members[0]].rank}, and nothing says "
                "that they are cycles of one process: they are kept apart, as instances "
                + ", ".join(labels[:5])
                + (", ..." if len(labels) > 5 else ""),
                path=out[members[0]].path,
                count=len(members),
            )
        )
    return repairs


def _by_stamps(out: list[RankFile], members: list[int]) -> bool:
    """Number traces of one process by their time stamps; False when these do not tell them apart."""
    if any(out[i].cycle is not None for i in members):
        return False
    stamps = {i: out[i].stamp for i in members}
    if len(members) > 1 and (None in stamps.values() or len(set(stamps.values())) < len(members)):
        return False
    for number, i in enumerate(sorted(members, key=lambda i: (stamps[i] or 0, out[i].path))):
        out[i] = replace(out[i], cycle=number)
    return True


def _several_hosts(out: Sequence[RankFile]) -> list[Repair]:
    """Say where one number is there on several hosts: each counts its own."""
    hosts: dict[tuple[Any, ...], dict[str, RankFile]] = defaultdict(dict)
    for rank in out:
        place = rank.node or rank.host
        if rank.rank is not None and place is not None and rank.what in _WORK:
            instance = None if rank.instance == rank.node else rank.instance
            hosts[rank.session, rank.role, instance, rank.rank].setdefault(place, rank)
    several = [found for found in hosts.values() if len(found) > 1]
    if not several:
        return []
    names = sorted({host for found in several for host in found})
    first = min((rank for found in several for rank in found.values()), key=lambda rank: rank.path)
    return [
        Repair(
            "rank_on_several_hosts",
            f"{len(several)} rank numbers are there on several hosts ({', '.join(names[:5])}"
            f"{', ...' if len(names) > 5 else ''}): numbers seem to count within each host, and these are "
            "taken as different ranks",
            path=first.path,
            count=len(several),
        )
    ]


def _without_number(out: list[RankFile]) -> None:
    """Keep traces apart that have no rank: by process where that is known, else each by itself."""
    groups: dict[tuple[Any, ...], dict[tuple[Any, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, rank in enumerate(out):
        if rank.rank is None and rank.what in _WORK and rank.state != "missing":
            groups[rank.key][_process(rank)].append(i)
    for processes in groups.values():
        apart: list[list[int]] = []
        for members in processes.values():
            apart += [members] if _by_stamps(out, members) else [[i] for i in members]
        if len(apart) < 2:
            continue
        pids = [out[members[0]].pid for members in apart]
        labels = (
            [f"pid {pid}" for pid in pids]
            if None not in pids and len(set(pids)) == len(pids)
            else _labels([out[members[0]].path for members in apart])
        )
        for members, label in zip(apart, labels, strict=True):
            for i in members:
                given = out[i].instance
                out[i] = replace(out[i], instance=label if given is None else f"{given} {label}")


def _process(rank: RankFile) -> tuple[Any, ...]:
    """Return what is equal for traces of one process, as far as names and headers say."""
    if rank.stamp is not None and rank.host is not None and rank.pid is not None:
        return "process", rank.host, rank.pid
    if rank.stamp is not None and rank.session is not None and rank.pid is None:
        return "worker", rank.session
    return "file", rank.path


def _labels(paths: Sequence[str]) -> list[str]:
    """Return what tells paths apart: the parts in which they differ, without the endings of names."""
    split = [path.replace("\\", "/").replace("!", "/").split("/") for path in paths]
    shortest = min(map(len, split))
    first = next((n for n in range(shortest) if len({parts[n] for parts in split}) > 1), shortest - 1)
    last = next((n for n in range(1, shortest - first + 1) if len({parts[-n] for parts in split}) > 1), 1)
    labels = ["/".join(parts[first : len(parts) - last + 1]) for parts in split]
    short = [_ENDING.sub("", label) for label in labels]
    for chosen in (short, labels):
        if len(set(chosen)) == len(paths) and all(chosen):
            return chosen
    return list(paths)


def _order(rank: RankFile) -> tuple[Any, ...]:
    return (
        rank.session or "",
        rank.rank is None,
        rank.rank if rank.rank is not None else 0,
        rank.role or "",
        rank.instance or "",
        rank.cycle if rank.cycle is not None else -1,
        rank.stage or "",
        rank.path,
    )
