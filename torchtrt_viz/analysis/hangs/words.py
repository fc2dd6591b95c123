"""Hangs in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from torchtrt_viz.analysis.hangs.agreement import Call, elements
from torchtrt_viz.analysis.hangs.gathering import Group
from torchtrt_viz.analysis.hangs.hang import Hang

__all__ = ["group_in_words", "rank_ranges", "ranks_in_words", "sentence", "shapes", "waits_in", "where"]

_MOST_RANGES = 8
_MOST_TOLD = 3
_SHAPE = re.compile(r"\[([\d, -]*)\]")


def rank_ranges(ranks: Iterable[int]) -> list[str]:
    """Return ranks as numbers and ranges: ["0", "2 to 5"]."""
    out: list[str] = []
    run: list[int] = []
    for rank in [*sorted(ranks), -2]:
        if run and rank != run[-1] + 1:
            out += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(each) for each in run]
            run = []
        run.append(rank)
    return out


def ranks_in_words(ranks: Sequence[int]) -> str:
    """Return "rank 1", "ranks 0 and 2", "ranks 0 to 3 and 7", "512 ranks (0, 2, 4, ...)"."""
    parts = rank_ranges(ranks)
    if len(ranks) == 1:
        return f"rank {parts[0]}"
    if len(parts) > _MOST_RANGES:
        return f"{len(ranks):,} ranks ({', '.join(parts[:_MOST_RANGES])}, ...)"
    return f"ranks {_listed(parts)}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def group_in_words(group: Group) -> str:
    """Return how a group is called: "the default group", "group tp (12)"."""
    if group.everyone:
        return "the default group"
    members = "" if group.members is None else f" of {ranks_in_words(group.members)}"
    name = " ".join(
        filter(None, (group.desc, f"({group.name})" if group.desc and group.name else group.name))
    )
    return f"group {name}{members}" if name else f"a group{members}"


def shapes(call: Call) -> str:
    """Return "16 x float32" for what a call was given; "" where no shapes are recorded."""
    sizes, types = call.input_sizes, call.input_types
    if not elements(sizes):
        sizes, types = call.output_sizes, call.output_types
    counts = elements(sizes)
    if not counts or sizes is None:
        return ""
    if len(counts) > 1:
        return f"{len(counts)} tensors of {sum(counts):,} elements" + (f", {types}" if types else "")
    dims = _SHAPE.findall(sizes[1:-1])[0]
    return " x ".join([*(dims.replace(" ", "").split(",") if dims.strip() else ["1"]), types or "?"])


def call_in_words(call: Call | None, sequence: int, group: Group | None = None) -> str:
    """Return "all_reduce (collective 5 of the default group, 16 x float32)"."""
    of = "" if group is None else f" of {group_in_words(group)}"
    sized = "" if call is None else shapes(call)
    more = f", {sized}" if sized else ""
    return f"{(call and call.operation) or 'a call'} (collective {sequence:,}{of}{more})"


def place(source: str | None) -> str:
    """Return the file's name and line of a call; "" where none is recorded."""
    if not source:
        return ""
    where = source.partition(" (")[0].replace("\\", "/")
    return PurePosixPath(where).name


def waits_in(ranks: Sequence[int]) -> str:
    """Return the verb for ranks that hold others up because they wait themselves."""
    return _verb(ranks, "waits itself in", "wait themselves in")


def where(hang: Hang) -> str:
    """Return what ranks wait in: "all_gather (collective 2 of group tp)", "send to rank 3 of ..."."""
    if hang.sides is not None:
        source, target = hang.sides
        to = f"to rank {target}" if hang.waiting[0] == source else f"from rank {source}"
        return f"{hang.call.operation} {to} ({group_in_words(hang.group)})"
    return f"{hang.call.operation or 'a call'} (collective {hang.sequence:,} of {group_in_words(hang.group)})"


def sentence(hang: Hang) -> str:
    """Put a row of the table into one or two sentences."""
    told = _SENTENCES[hang.problem](hang)
    if hang.held is None:
        return told
    return f"{told[:-1]}; {hang.held}."


def _called(source: str | None) -> str:
    at = place(source)
    return f", called at {at}" if at else ""


def _verb(ranks: Sequence[int], one: str, several: str) -> str:
    return one if len(ranks) == 1 else several


def _waits(hang: Hang) -> str:
    who = ranks_in_words(hang.waiting)
    verb = _verb(hang.waiting, "waits", "wait")
    return (
        f"{who[:1].upper()}{who[1:]} {verb} in {call_in_words(hang.call, hang.sequence, hang.group)}"
        f"{_called(hang.source)}"
    )


def _not_joined(hang: Hang) -> str:
    parts = []
    for ranks, sequence, _, source in hang.behind[:_MOST_TOLD]:
        whose = "its" if len(hang.behind) == 1 and len(ranks) == 1 else f"the last of {ranks_in_words(ranks)}"
        if len(hang.behind) == 1:
            whose = _verb(ranks, "its", "their")
        if sequence < 0:
            has = f"{_verb(ranks, 'has', 'have')} recorded nothing of this group"
            parts.append(f"{'it' if len(ranks) == 1 else 'they'} {has}" if len(hang.behind) == 1 else
                         f"{ranks_in_words(ranks)} {has}")  # fmt: skip
        else:
            at = place(source)
            last = f"{whose} last is" if len(hang.behind) == 1 else f"{whose} is"
            parts.append(f"{last} collective {sequence:,}" + (f", at {at}" if at else ""))
    more = len(hang.behind) - _MOST_TOLD
    if more > 0:
        parts.append(f"{more:,} more places")
    who = ranks_in_words(hang.missing)
    has = _verb(hang.missing, "has", "have")
    told = f": {'; '.join(parts)}" if parts else ""
    return f"{_waits(hang)}; {who} {has} not joined{told}.{_no_dumps(hang)}"


def _no_dumps(hang: Hang) -> str:
    return f" There is no dump of {ranks_in_words(hang.no_dump)}." if hang.no_dump else ""


def _no_dump(hang: Hang) -> str:
    return (
        f"There is no dump of {ranks_in_words(hang.no_dump)}. {_waits(hang)}, and whether "
        f"{_verb(hang.no_dump, 'it has', 'they have')} joined is not known."
    )


def _not_completed(hang: Hang) -> str:
    return (
        f"{_waits(hang)}. All ranks with a dump have joined it, and it failed or timed out.{_no_dumps(hang)}"
    )


def _disagree(hang: Hang) -> str:
    group = group_in_words(hang.group)
    begin = f"The ranks of {group} disagree in collective {hang.sequence:,}"
    if not hang.others:
        return f"{begin}, {hang.call.operation}{_called(hang.source)}: {'; '.join(hang.why)}."
    parts = [_says(hang.usual, hang.call, hang.source)]
    parts += [_says(ranks, call, source) for ranks, call, source in hang.others[:_MOST_TOLD]]
    more = len(hang.others) - _MOST_TOLD
    if more > 0:
        parts.append(f"{more:,} more calls differ")
    order = " The same calls come in another order." if hang.problem == "order" else ""
    shifted = next(
        (f" It seems that {why}." for why in hang.why if "call" in why and hang.problem == "type"), ""
    )
    return f"{begin}: {'; '.join(parts)}.{order}{shifted}{_no_dumps(hang)}"


def _says(ranks: Sequence[int], call: Call, source: str | None) -> str:
    sized, at = shapes(call), place(source)
    return (
        f"{ranks_in_words(ranks)} {_verb(ranks, 'calls', 'call')} {call.operation or 'something'}"
        + (f" ({sized})" if sized else "")
        + (f" at {at}" if at else "")
    )


def _alone(hang: Hang) -> str:
    assert hang.sides is not None
    source, target = hang.sides
    me = hang.waiting[0]
    sends = me == source
    other = target if sends else source
    sized = shapes(hang.call)
    does = f"waits to send to rank {other}" if sends else f"waits to receive from rank {other}"
    number = f"the {hang.sequence:,}. between them, " if hang.sequence > 1 else ""
    begin = (
        f"Rank {me} {does} ({number}in {group_in_words(hang.group)}{f', {sized}' if sized else ''})"
        f"{_called(hang.source)}"
    )
    if hang.problem != "no partner":
        theirs = hang.others[0]
        return f"{begin}; {_says(theirs[0], theirs[1], theirs[2])}: they do not fit."
    if hang.no_dump:
        return f"{begin}; there is no dump of rank {other}."
    return f"{begin}; rank {other} has not called the {'receive' if sends else 'send'}."


def _size(hang: Hang) -> str:
    return _disagree(hang) if hang.sides is None else _alone(hang)


_SENTENCES = {
    "not joined": _not_joined,
    "no dump": _no_dump,
    "not completed": _not_completed,
    "type": _disagree,
    "order": _disagree,
    "size": _size,
    "dtype": _disagree,
    "no partner": _alone,
}
