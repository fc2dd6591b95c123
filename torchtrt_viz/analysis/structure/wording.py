"""Names, paths and reasons of the rows of a comparison of structures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.structure import CHANGES, MATCHES
from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.analysis.structure.alignment import Alignment
from torchtrt_viz.analysis.structure.labels import THREAD, WORK, Vocabulary
from torchtrt_viz.analysis.structure.rows import Rows
from torchtrt_viz.analysis.structure.tree import Tree

__all__ = ["Wording"]

Ints = NDArray[np.int64]

_LEVELS = 24  # of a longer path the middle is left out
_PART = 80  # characters of a name in a path
_NAMED = 6  # parts of a fused operator that are named


class Wording:
    """What the rows say."""

    def __init__(self, trees: tuple[Tree, Tree], names: Vocabulary, found: Alignment, rows: Rows) -> None:
        self._trees, self._names, self._found, self._rows = trees, names, found, rows
        self._paths: tuple[dict[tuple[int, bool], str], dict[tuple[int, bool], str]] = ({}, {})
        # the only thread on which anything ran need not be named in every path
        self._only = [_only_thread(tree, names) for tree in trees]

    def columns(self) -> dict[str, Any]:
        """Return the columns of text."""
        kinds = np.array(self._names.kinds, dtype=object)
        label = self._first_label()
        return {
            "kind": text(kinds[label]),
            "a_name": self._column(0, self._row_name),
            "b_name": self._column(1, self._row_name),
            "a_path": self._column(0, self._row_path),
            "b_path": self._column(1, self._row_path),
            "why": text([self._why(row, int(label[row])) for row in range(len(self._rows))]),
        }

    def depth(self) -> Ints:
        """Return how deep each row is."""
        top_a, top_b = self._rows.top
        a, b = self._trees
        return np.where(top_a >= 0, a.depth[top_a], b.depth[top_b])

    def _first_label(self) -> Ints:
        top_a, top_b = self._rows.top
        a, b = self._trees
        return np.where(top_a >= 0, a.label[top_a], b.label[top_b])

    def _column(self, side: int, of: Any) -> Any:
        top = self._rows.top[side].tolist()
        return text([None if node < 0 else of(side, row, node) for row, node in enumerate(top)])

    def _name(self, side: int, node: int) -> str:
        tree = self._trees[side]
        name = self._names.exact[tree.label[node]]
        return f"{name}[{int(tree.number[node])}]" if tree.several[node] else name

    def _numbered(self, side: int, row: int, node: int) -> str:
        """Return the name with its number, unless the row stands for several places."""
        if self._rows.places[row] > 1:
            return self._names.exact[int(self._trees[side].label[node])]
        return self._name(side, node)

    def _row_name(self, side: int, row: int, node: int) -> str:
        at = int(self._rows.part[row]) - len(self._found.pairs)
        if at < 0 or CHANGES[self._rows.change[row]] in ("added", "lost"):
            return self._numbered(side, row, node)
        region = self._found.regions[at].of(side)
        inside = np.zeros(len(self._trees[side]), bool)
        inside[region] = True
        outer = region[~inside[self._trees[side].parent[region]]].tolist()
        said = ", ".join(self._numbered(side, row, one) for one in outer[:_NAMED])
        return said if len(outer) <= _NAMED else f"{said} and {len(outer) - _NAMED} more"

    def _row_path(self, side: int, row: int, node: int) -> str:
        parent = int(self._trees[side].parent[node])
        several = bool(self._rows.places[row] > 1)
        known = self._paths[side]
        if (parent, several) not in known:
            known[parent, several] = self._path(side, parent, several)
        return known[parent, several]

    def _path(self, side: int, node: int, several: bool) -> str:
        tree = self._trees[side]
        parts: list[str] = []
        while node > 0 and node != self._only[side]:
            name = self._names.exact[tree.label[node]] if several else self._name(side, node)
            parts.append(name if len(name) <= _PART else f"{name[: _PART - 1]}…")
            node = int(tree.parent[node])
        parts.reverse()
        if len(parts) > _LEVELS:
            parts = [*parts[:4], "…", *parts[4 - _LEVELS :]]
        return " > ".join(parts)

    def _why(self, row: int, label: int) -> str:
        change, match = CHANGES[self._rows.change[row]], MATCHES[self._rows.match[row]]
        work = self._names.kinds[label] in WORK
        if match == "family":
            family = self._names.loose[int(self._names.loose_of(np.array([label]))[0])]
            place = "next in order of execution" if change == "moved" else "same place"
            return f"{place}, {'kernels' if work else 'operators'} of one family: {family}"
        if match == "position":
            if change in ("fused", "split"):
                mine, theirs = (int(self._rows.nodes[side][row] // self._rows.places[row]) for side in (0, 1))
                return f"the same operator's work: {mine} pieces in the first run, {theirs} in the second"
            return "work of the same operator" if work else "the only module there in either run"
        if match == "order":
            return (
                "same operator, started in another order"
                if work and change == "same"
                else ("same name, at another place or level, in order of execution")
            )
        if match == "listed":
            return "the name lists what it is made of"
        return {
            "exact": "same name, same place",
            "similar": "same place, most words or most of the inside in common",
            "elsewhere": "identical, at another place",
            "composed": "known to replace these operators",
            "none": "only in the first run" if change == "lost" else "only in the second run",
        }[match]


def _only_thread(tree: Tree, names: Vocabulary) -> int:
    """Return the only thread with nodes in it, -1 where there are several or none."""
    threads = [
        node
        for node in tree.children(0).tolist()
        if names.kinds[tree.label[node]] == THREAD and tree.size[node] > 1
    ]
    return threads[0] if len(threads) == 1 else -1
