"""Alignment of replayed work with captured calls, both as sequences of codes of names.

Nothing here knows of traces. An alignment says for each piece of replayed work which captured calls it can be
of: one where the order leaves no choice, several where it does, none where the piece has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Alignment", "align", "identity", "interleaved", "shared"]

Ints = NDArray[np.int64]

_MAX_STATES = 2048
"""Ways in which streams may have come together that are followed at once; with more, order tells nothing."""
_MAX_CELLS = 16_000_000
"""Largest table of a comparison of two sequences that differ in both directions."""


@dataclass(frozen=True)
class Alignment:
    """Captured calls that each piece of replayed work can be of.

    Attributes
    ----------
    position
        The captured call, where only one is possible; -1 else.
    options
        For pieces with several: the captured calls that are possible, by the piece's number. A piece that
        is in neither has no counterpart.
    certain
        Whether the piece is of a captured call at all, in every best alignment.
    whole
        Whether every piece and every captured call has its counterpart.
    """

    position: Ints
    options: dict[int, Ints]
    certain: NDArray[np.bool_]
    whole: bool

    @property
    def matched(self) -> int:
        """How many pieces are of some captured call for certain."""
        return int(self.certain.sum())


def identity(size: int) -> Alignment:
    """Return the alignment of two sequences that are equal element by element."""
    return Alignment(np.arange(size), {}, np.ones(size, bool), True)


def shared(one: Ints, other: Ints) -> int:
    """Return how many elements two sequences have in common, whatever their order."""
    names, count = np.unique(one, return_counts=True)
    theirs, other_count = np.unique(other, return_counts=True)
    _, mine, its = np.intersect1d(names, theirs, assume_unique=True, return_indices=True)
    return int(np.minimum(count[mine], other_count[its]).sum())


def align(replayed: Ints, captured: Ints) -> Alignment | None:
    """Align one stream's work with captured calls, in order; None where the sequences are too long for it.

    What is possible is every alignment with the most counterparts.
    """
    if len(replayed) == len(captured) and np.array_equal(replayed, captured):
        return identity(len(replayed))
    inside = _embedding(replayed, captured)
    if inside is not None:
        first, last = inside
        return _between(replayed, captured, first, last)
    around = _embedding(captured, replayed)
    if around is not None:
        return _around(replayed, captured, *around)
    if len(replayed) * len(captured) > _MAX_CELLS:
        return None
    return _longest(replayed, captured)


def _embedding(short: Ints, long: Ints) -> tuple[Ints, Ints] | None:
    """Return where each element of ``short`` lies in ``long`` at the earliest and latest, in order."""
    if len(short) > len(long):
        return None
    first = _greedy(short, long)
    if first is None:
        return None
    last = _greedy(short[::-1], long[::-1])
    assert last is not None
    return first, len(long) - 1 - last[::-1]


def _greedy(short: Ints, long: Ints) -> Ints | None:
    found = np.empty(len(short), np.int64)
    wanted, at = short.tolist(), 0
    size = len(wanted)
    for position, name in enumerate(long.tolist()):
        if at == size:
            break
        if name == wanted[at]:
            found[at] = position
            at += 1
    return found if at == size else None


def _between(replayed: Ints, captured: Ints, first: Ints, last: Ints) -> Alignment:
    position = np.where(first == last, first, -1)
    options: dict[int, Ints] = {}
    for piece in np.flatnonzero(first != last).tolist():
        low, high = int(first[piece]), int(last[piece])
        options[piece] = low + np.flatnonzero(captured[low : high + 1] == replayed[piece])
        if len(options[piece]) == 1:
            position[piece] = options.pop(piece)[0]
    certain = np.ones(len(replayed), bool)
    return Alignment(position, options, certain, len(replayed) == len(captured))


def _around(replayed: Ints, captured: Ints, first: Ints, last: Ints) -> Alignment:
    """Align where every captured call has a counterpart, and some pieces of work have none."""
    calls: dict[int, list[int]] = {}
    certain = np.zeros(len(replayed), bool)
    for call, (low, high) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        places = low + np.flatnonzero(replayed[low : high + 1] == captured[call])
        for piece in places.tolist():
            calls.setdefault(piece, []).append(call)
        if len(places) == 1:
            certain[places[0]] = True
    return _of_calls(len(replayed), calls, certain, False)


def _of_calls(size: int, calls: dict[int, list[int]], certain: NDArray[np.bool_], whole: bool) -> Alignment:
    position = np.full(size, -1, np.int64)
    options: dict[int, Ints] = {}
    for piece, found in calls.items():
        if len(found) == 1:
            position[piece] = found[0]
        else:
            options[piece] = np.array(found, np.int64)
    return Alignment(position, options, certain, whole)


def _longest(replayed: Ints, captured: Ints) -> Alignment:
    """Align by longest common subsequences: possible is what is in one of them."""
    ahead = _lengths(replayed, captured)
    behind = _lengths(replayed[::-1], captured[::-1])[::-1, ::-1]
    best = int(ahead[-1, -1])
    calls: dict[int, list[int]] = {}
    certain = np.zeros(len(replayed), bool)
    for piece, name in enumerate(replayed.tolist()):
        here = (captured == name) & (ahead[piece, :-1] + 1 + behind[piece + 1, 1:] == best)
        if here.any():
            calls[piece] = np.flatnonzero(here).tolist()
            # left out in some best alignment: the parts before and after reach the best without it
            certain[piece] = not (ahead[piece] + behind[piece + 1] == best).any()
    return _of_calls(len(replayed), calls, certain, False)


def _lengths(one: Ints, other: Ints) -> NDArray[np.int32]:
    """Return the lengths of the longest common subsequences of all beginnings."""
    table = np.zeros((len(one) + 1, len(other) + 1), np.int32)
    for row, name in enumerate(one.tolist(), start=1):
        above = table[row - 1]
        fresh = above.copy()
        np.maximum(fresh[1:], above[:-1] + (other == name), out=fresh[1:])
        np.maximum.accumulate(fresh, out=table[row])
    return table


def interleaved(streams: Sequence[Ints], captured: Ints) -> list[Alignment] | None:
    """Align several streams with the one sequence in which their work was captured; None where none fits.

    Each stream keeps its order; how the streams took turns is not known. Every captured call has to be of
    exactly one stream.
    """
    if sum(map(len, streams)) != len(captured):
        return None
    if len(streams) == 1:
        return [identity(len(captured))] if np.array_equal(streams[0], captured) else None
    steps = _reachable(streams, captured)
    if steps is None:
        return None
    found: list[list[set[int]]] = [[set() for _ in stream] for stream in streams]
    live = {tuple(map(len, streams))}
    # from the end backwards: only what leads to the end is possible
    for call in range(len(captured) - 1, -1, -1):
        before = set()
        for state in live:
            for number, stream in enumerate(streams):
                at = state[number] - 1
                if at < 0 or stream[at] != captured[call]:
                    continue
                earlier = (*state[:number], at, *state[number + 1 :])
                if earlier in steps[call]:
                    before.add(earlier)
                    found[number][at].add(call)
        live = before
    return [_alignment_of(options) for options in found]


def _alignment_of(possible: list[set[int]]) -> Alignment:
    calls = {piece: sorted(options) for piece, options in enumerate(possible)}
    return _of_calls(len(possible), calls, np.ones(len(possible), bool), True)


def _reachable(streams: Sequence[Ints], captured: Ints) -> list[set[tuple[int, ...]]] | None:
    """Return after each captured call how far the streams can be; None when the end is not reached."""
    names = [stream.tolist() for stream in streams]
    steps: list[set[tuple[int, ...]]] = [{(0,) * len(streams)}]
    for name in captured.tolist():
        reached = {state for before in steps[-1] for state in _turns(before, names, name)}
        if not reached or len(reached) > _MAX_STATES:
            return None
        steps.append(reached)
    return steps


def _turns(state: tuple[int, ...], names: list[list[int]], name: int) -> Iterator[tuple[int, ...]]:
    for number, stream in enumerate(names):
        at = state[number]
        if at < len(stream) and stream[at] == name:
            yield (*state[:number], at + 1, *state[number + 1 :])
