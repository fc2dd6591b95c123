"""Rows of a comparison of structures: which nodes of either tree each stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.structure import CHANGES, MATCHES
from torchtrt_viz.analysis.structure.alignment import Alignment
from torchtrt_viz.analysis.structure.labels import Vocabulary
from torchtrt_viz.analysis.structure.signatures import chains
from torchtrt_viz.analysis.structure.tree import Tree

__all__ = ["Rows"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """The rows: pairs of nodes, then regions; or groups of these that differ in numbers only.

    Attributes
    ----------
    of
        For either tree the row of each node; each node is in one row.
    top
        For either tree the first, outermost node of each row, -1 none.
    nodes
        For either tree the number of nodes in each row.
    change, match
        Positions in `CHANGES` and `MATCHES`.
    part
        For each row its first pair or region.
    places
        Pairs or regions in each row.
    """

    of: tuple[Ints, Ints]
    top: tuple[Ints, Ints]
    nodes: tuple[Ints, Ints]
    change: Ints
    match: Ints
    part: Ints
    places: Ints

    def __len__(self) -> int:
        return len(self.change)

    @classmethod
    def of_alignment(cls, found: Alignment, sizes: tuple[int, int]) -> Rows:
        """Make the rows of an alignment of trees with so many nodes."""
        pairs, regions = found.pairs, found.regions
        count = len(pairs) + len(regions)
        of = []
        for side, size in enumerate(sizes):
            row = np.full(size, -1, np.int64)
            row[pairs[:, side]] = np.arange(len(pairs))
            for at, region in enumerate(regions):
                row[region.of(side)] = len(pairs) + at
            of.append(row)
        return cls._made(
            (of[0], of[1]),
            np.append(found.change, [CHANGES.index(region.change) for region in regions]).astype(np.int64),
            np.append(found.match, [MATCHES.index(region.match) for region in regions]).astype(np.int64),
            np.arange(count),
            np.ones(count, np.int64),
        )

    @classmethod
    def _made(cls, of: tuple[Ints, Ints], change: Ints, match: Ints, part: Ints, places: Ints) -> Rows:
        count = len(change)
        tops = []
        for row in of:
            top = np.full(count, -1, np.int64)
            top[row[::-1]] = np.arange(len(row))[::-1]
            tops.append(top)
        nodes_a, nodes_b = (np.bincount(row, minlength=count) for row in of)
        return cls(of, (tops[0], tops[1]), (nodes_a, nodes_b), change, match, part, places)

    def merged(self, trees: tuple[Tree, Tree], names: Vocabulary) -> tuple[Rows, Ints]:
        """Merge rows whose names and paths differ in numbers only; also return the new row of each."""
        keys = [self.change, self.match]
        for tree, of, top in zip(trees, self.of, self.top, strict=True):
            chain = chains(tree, names.hashes(tree.label))
            # what is in a region tells it from others at the same place
            inside = np.zeros(len(self), np.uint64)
            np.add.at(inside, of, chain)
            keys += [np.where(top >= 0, chain[top].view(np.int64), 0)]
            if (self.nodes[0] + self.nodes[1] > 2).any():
                keys.append(inside.view(np.int64))
        order = np.lexsort(keys[::-1])
        new = np.ones(len(order), bool)
        new[1:] = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.cumsum(new) - 1
        first = np.full(int(new.sum()), len(order), np.int64)
        np.minimum.at(first, numbers, np.arange(len(order)))
        rows = self._made(
            (numbers[self.of[0]], numbers[self.of[1]]),
            self.change[first],
            self.match[first],
            first,
            np.bincount(numbers, minlength=len(first)),
        )
        return rows, numbers

    def tree_order(self, a: Tree, b: Tree) -> Ints:
        """Return the rows in the order of a's tree; what only b has follows what stands before it in b."""
        top_a, top_b = self.top
        known = top_a >= 0
        place = np.full(len(b), -1, np.int64)
        both = known & (top_b >= 0)
        place[top_b[both]] = top_a[both]
        last = np.maximum.accumulate(np.where(place >= 0, np.arange(len(b)), 0))
        behind = np.maximum(place[last], 0)
        at = np.where(known, top_a, behind[top_b])
        out: Ints = np.lexsort((np.where(known, -1, top_b), at))
        return out
