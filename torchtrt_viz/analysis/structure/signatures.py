"""A number for each subtree, equal where two subtrees have the same labels in the same order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.structure.tree import Tree

__all__ = ["chains", "signatures"]

Hashes = NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)


def _mix(values: Hashes) -> Hashes:
    """Spread the bits of each value (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def signatures(tree: Tree, labels: Hashes) -> Hashes:
    """Return the signature of each node's subtree.

    What has equal signatures is compared label by label before it is taken for equal; a collision costs time.
    """
    out = _mix(labels + _ODD)
    order = np.argsort(tree.depth, kind="stable")
    bounds = np.searchsorted(tree.depth[order], np.arange(1, int(tree.depth.max()) + 2))
    for begin, stop in reversed(list(pairwise(bounds.tolist()))):
        level = order[begin:stop]  # siblings stand together, in order
        parent = tree.parent[level]
        new = np.ones(len(level), bool)
        new[1:] = np.diff(parent) != 0
        first = np.maximum.accumulate(np.where(new, np.arange(len(level)), 0))
        place = (np.arange(len(level)) - first + 1).astype(np.uint64)
        np.add.at(out, parent, _mix(out[level] + place * _ODD))
    return out


def chains(tree: Tree, labels: Hashes) -> Hashes:
    """Return a number for the labels from the root down to each node, whichever of equal siblings it is."""
    out = _mix(labels + _ODD)
    order = np.argsort(tree.depth, kind="stable")
    bounds = np.searchsorted(tree.depth[order], np.arange(1, int(tree.depth.max()) + 2))
    for begin, stop in pairwise(bounds.tolist()):
        level = order[begin:stop]
        out[level] = _mix(out[level] + _mix(out[tree.parent[level]]))
    return out
