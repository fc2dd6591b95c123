"""Fused operators, and those of the other run that they stand for.

A fused operator's or kernel's name lists what is in it: ``triton_poi_fused_add_relu_0``, ``linear_relu``,
``fused_add_rms_norm``. Some operators are known to replace several without saying so (attention, norms:
`families.COMPOSED`). Either way the parts must be there, in the same gap of the aligned order of execution.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.structure.families import ACTIVATIONS, COMPOSED
from torchtrt_viz.analysis.structure.labels import Vocabulary, fused_words, generated_name, split_words
from torchtrt_viz.analysis.structure.sides import Side

__all__ = ["joined"]

Ints = NDArray[np.int64]


def joined(
    one: Side, many: Ints, other: Side, few: Ints, names: Vocabulary
) -> Iterator[tuple[list[int], int, str]]:
    """Yield what is fused: the parts in one run, the whole in the other, and how it is known.

    Parameters
    ----------
    one, many
        The run in which they may be apart, and its nodes in a gap, in order of execution.
    other, few
        The run in which they may be one, and its nodes in the same gap.
    """
    parts = _outermost(one, many, names)
    known = frozenset(name for _, name in parts)
    wholes = []
    covered = -1
    for node in few.tolist():
        if node < covered:
            continue
        listed, match = _lists(names, int(other.label[node]), int(other.loose[node]), known)
        if listed:
            wholes.append((node, listed, match))
            covered = node + int(other.tree.size[node])
    taken: list[list[int]] = [[] for _ in wholes]
    at = 0
    last = -1
    for node, name in parts:
        if node < last:  # inside of what was taken
            continue
        to = next((n for n in range(at, len(wholes)) if name in wholes[n][1]), None)
        if to is not None:
            at = to
            taken[to].append(node)
            last = node + int(one.tree.size[node])
    for (node, listed, match), mine in zip(wholes, taken, strict=True):
        if mine and (match != "composed" or _complete(one, mine, names, listed)):
            yield mine, node, match


def _outermost(side: Side, nodes: Ints, names: Vocabulary) -> list[tuple[int, str]]:
    """Return the operators among some nodes with their plain names, in order."""
    return [
        (node, names.loose[side.loose[node]])
        for node in nodes.tolist()
        if side.operator[node] and not side.idle[node]
    ]


def _lists(names: Vocabulary, label: int, loose: int, known: frozenset[str]) -> tuple[frozenset[str], str]:
    """Return which operators a fused one stands for, and how that is known; none if it is none."""
    exact, plain = names.exact[label], names.loose[loose]
    parts = fused_words(exact)
    found, used = split_words(parts, known)
    said = generated_name(exact) or (len(found) > 1 and (used == len(parts) or "fused_" in exact))
    if found and said:
        listed = frozenset(found)
        return listed | (ACTIVATIONS if "activation" in listed else frozenset()), "listed"
    needed, may = COMPOSED.get(plain, (frozenset(), frozenset()))
    if needed and needed <= known and plain not in known:
        return may, "composed"
    return frozenset(), "none"


def _complete(side: Side, nodes: list[int], names: Vocabulary, may: frozenset[str]) -> bool:
    """Say whether what a composed operator needs is among the nodes, and more than that alone."""
    have = {names.loose[side.loose[node]] for node in nodes}
    needed = next((needed for needed, all_ in COMPOSED.values() if all_ == may), frozenset())
    return len(nodes) > 1 and needed <= have
