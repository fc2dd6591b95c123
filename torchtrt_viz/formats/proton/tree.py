"""The nodes of a tree, one after the other, with what they say checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Node", "Tree", "tree_of"]

_TIME = re.compile(r"time \((ns|us|ms|s)\)", re.IGNORECASE)
_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
#: 146 years; longer sums are damage.
_LONGEST_NS = 1 << 62
_METADATA = "__proton_launch_metadata"
_LONGEST_NAME = 1 << 16


@dataclass
class Node:
    """One node.

    Attributes
    ----------
    parent
        Position of the node above, -1 none.
    time_ns
        Its own time; None: it has none.
    own_work
        Whether it is of what Proton did for itself.
    inclusive_ns
        Its own time and that of all nodes below it, without what Proton did for itself.
    """

    name: str
    parent: int
    metrics: dict[str, Any]
    time_ns: int | None = None
    own_work: bool = False
    inclusive_ns: int = 0


@dataclass
class Tree:
    """All nodes, each behind the one above it; devices by type and number; and what could not be used."""

    nodes: list[Node] = field(default_factory=list)
    devices: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    not_nodes: int = 0
    bad_times: int = 0


def tree_of(document: Any) -> Tree:
    """Flatten a document: a list of trees, and what is known of the devices."""
    tree = Tree()
    waiting: list[tuple[Any, int]] = []
    for each in reversed(document if isinstance(document, list) else [document]):
        if isinstance(each, dict) and ("frame" in each or "children" in each):
            waiting.append((each, -1))
        elif isinstance(each, dict) and each and all(isinstance(known, dict) for known in each.values()):
            for kind, numbered in each.items():
                known = {number: said for number, said in numbered.items() if isinstance(said, dict)}
                tree.devices.setdefault(kind, {}).update(known)
        elif each != {}:
            tree.not_nodes += 1
    while waiting:
        each, parent = waiting.pop()
        at = _add(tree, each, parent)
        children = each.get("children") if at >= 0 else None
        for child in reversed(children if isinstance(children, list) else []):
            waiting.append((child, at))
    for node in reversed(tree.nodes):  # whatever lies below stands behind
        node.inclusive_ns += node.time_ns or 0
        above = tree.nodes[node.parent] if node.parent >= 0 else None
        if above is not None and above.own_work == node.own_work:
            above.inclusive_ns += node.inclusive_ns
    return tree


def _add(tree: Tree, each: Any, parent: int) -> int:
    """Add a node; returns its position, -1 for what is none."""
    frame = each.get("frame") if isinstance(each, dict) else None
    name = frame.get("name") if isinstance(frame, dict) else None
    metrics = each.get("metrics", {}) if isinstance(each, dict) else None
    if not isinstance(name, str) or not isinstance(metrics, dict):
        tree.not_nodes += 1
        return -1
    above = tree.nodes[parent] if parent >= 0 else None
    own_work = name.startswith(_METADATA) or (above is not None and above.own_work)
    node = Node(name[:_LONGEST_NAME], parent, metrics, own_work=own_work)
    stated = next(((found[1], value) for key, value in metrics.items() if (found := _TIME.match(key))), None)
    if stated is not None:
        node.time_ns = _whole_ns(stated[1], _NS[stated[0].lower()])
        if node.time_ns is None:
            tree.bad_times += 1
    # the root, and scopes around kernels, repeat the key with 0
    if node.time_ns == 0 and not metrics.get("count"):
        node.time_ns = None
    tree.nodes.append(node)
    return len(tree.nodes) - 1


def _whole_ns(value: Any, unit: int) -> int | None:
    """Return a time in ns; None for what is no time."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not 0 <= value < _LONGEST_NS / unit:  # not a number is not, either
        return None
    return round(value * unit)
