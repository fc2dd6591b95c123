"""One of two trees that are being aligned: what its nodes are, and which are still free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.structure.labels import MODULE, OUTSIDE, THREAD, WORK, Vocabulary
from torchtrt_viz.analysis.structure.signatures import signatures
from torchtrt_viz.analysis.structure.tree import Tree

__all__ = ["Side"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_DEEPER = 3  # levels that a wrapper may add
_LOOK = 200  # nodes inside another that are looked at to say what is in it


class Side:
    """One tree, and what is known of its nodes."""

    def __init__(self, tree: Tree, names: Vocabulary) -> None:
        self.tree = tree
        self.label = tree.label
        self.loose = names.loose_of(tree.label)
        hashes = names.hashes(tree.label)
        self.signature = signatures(tree, hashes).view(np.int64)
        _, which, count = np.unique(self.signature, return_inverse=True, return_counts=True)
        self.repeated: Mask = (count > 1)[which.reshape(-1)]
        kinds = np.array(names.kinds, dtype=object)[tree.label]
        self.work: Mask = np.isin(kinds, WORK)
        self.operator: Mask = kinds == "operator"
        self.module: Mask = kinds == MODULE
        self.place: Mask = np.isin(kinds, ("run", THREAD, OUTSIDE))
        self.idle: Mask = names.metadata_only()[tree.label]
        self.plain = np.where(self.place, -1, tree.label)
        self.other = np.full(len(tree), -1, np.int64)
        self.free: Mask = np.ones(len(tree), bool)

    def rank(self) -> tuple[int, list[int]]:
        """Return what orders the sides, whatever the order of threads."""
        return len(self.tree), sorted(self.signature[self.tree.children(0)].tolist())

    def outer_work(self, nodes: Ints) -> Ints:
        """Leave out the kernels of operators that are among the nodes: they go where those go."""
        inside = np.zeros(len(self.free), bool)
        inside[nodes] = self.operator[nodes]
        out: Ints = nodes[~(self.work[nodes] & inside[self.tree.parent[nodes]])]
        return out

    def whole(self, node: int) -> slice:
        """Return the nodes of a subtree."""
        return slice(node, node + int(self.tree.size[node]))

    def free_in(self, nodes: Sequence[int]) -> Ints:
        """Return the nodes of some subtrees that are not aligned yet."""
        parts = [node + np.flatnonzero(self.free[self.whole(node)]) for node in nodes]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)

    def within(self, node: int, label: int) -> int:
        """Return the first free node of a label little deeper inside another, -1 none."""
        below = slice(node + 1, node + min(int(self.tree.size[node]), _LOOK))
        found = node + 1 + np.flatnonzero((self.label[below] == label) & self.free[below])
        near = found[self.tree.depth[found] <= self.tree.depth[node] + _DEEPER]
        return int(near[0]) if len(near) else -1

    def inside(self, node: int) -> dict[int, int]:
        """Return how often each loose label is below a node, of the first few."""
        size = min(int(self.tree.size[node]), _LOOK)
        below = self.loose[node + 1 : node + size][~self.idle[node + 1 : node + size]]
        labels, count = np.unique(below, return_counts=True)
        return dict(zip(labels.tolist(), count.tolist(), strict=True))
