"""Two trees aligned: which nodes of one run are which of the other.

From the roots down, the children of two nodes that belong together are aligned in order: first identical
subtrees, between them equal names, between those names of one family (`sequences.common`); then what is left
of equal names in another order, what resembles each other in one gap, and the kernels of one operator. What
remains below two such nodes is aligned in order of execution across levels (a wrapper more or less, another
module around it), and fused operators with those that their names list. At last identical subtrees that are
left anywhere. Identical subtrees are paired whole, so that the effort follows what differs.

Where both ways are equally good, the order of the sides decides; the sides are put into an order that depends
on the trees alone, so that swapping them mirrors the result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.structure import CHANGES, MATCHES
from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.structure import fusion
from torchtrt_viz.analysis.structure.labels import OUTSIDE, Vocabulary, words
from torchtrt_viz.analysis.structure.sequences import common
from torchtrt_viz.analysis.structure.sides import Side
from torchtrt_viz.analysis.structure.tree import Tree

__all__ = ["Alignment", "align"]

Ints = NDArray[np.int64]

_ALIKE = 0.6  # share of words, or of what is inside, that two names in one gap have in common
_KEPT = 8  # nodes that two subtrees have together, for which it pays to keep how they were aligned
_CLIMB = 2  # levels that what is left below two nodes goes up, to be found on another one there
_GAP = 40  # nodes of a longer gap are not compared each with each


class Region(NamedTuple):
    """Several nodes that are one thing, of either run."""

    a: Ints
    b: Ints
    change: str
    match: str

    def of(self, side: int) -> Ints:
        """Return the nodes of one side, 0 or 1."""
        return self.b if side else self.a


@dataclass(frozen=True)
class Alignment:
    """What belongs together.

    Attributes
    ----------
    pairs
        Nodes of either run that are each other, two columns.
    change, match
        What became of each pair, and how it was found (positions in `CHANGES` and `MATCHES`).
    regions
        Groups of nodes that became, or came from, groups; and those that only one run has.
    """

    pairs: Ints
    change: Ints
    match: Ints
    regions: list[Region]

    def mirrored(self) -> Alignment:
        """Return the same with the sides swapped."""
        other = {"fused": "split", "split": "fused", "added": "lost", "lost": "added"}
        return Alignment(
            self.pairs[:, ::-1],
            self.change,
            self.match,
            [Region(r.b, r.a, other.get(r.change, r.change), r.match) for r in self.regions],
        )


def align(a: Tree, b: Tree, names: Vocabulary) -> Alignment:
    """Align the trees of two runs, whose labels are numbered in one vocabulary."""
    left, right = Side(a, names), Side(b, names)
    swapped = left.rank() > right.rank()
    if swapped:
        left, right = right, left
    found = _Aligner(left, right, names).run()
    return found.mirrored() if swapped else found


@dataclass(frozen=True)
class _Done:
    """How two subtrees were aligned: pairs as distances from their roots, and regions alike."""

    size: tuple[int, int]
    a: Ints
    b: Ints
    change: Ints
    match: Ints
    regions: list[Region]

    @classmethod
    def of(cls, aligner: _Aligner, x: int, y: int, regions: list[Region]) -> _Done:
        """Note how the subtrees of two nodes were aligned."""
        mine = x + np.flatnonzero(aligner.a.other[aligner.a.whole(x)] >= 0)
        return cls(
            (int(aligner.a.tree.size[x]), int(aligner.b.tree.size[y])),
            mine - x,
            aligner.a.other[mine] - y,
            aligner.change[mine],
            aligner.match[mine],
            [Region(one.a - x, one.b - y, one.change, one.match) for one in regions],
        )

    def fits(self, x: int, y: int, a: Side, b: Side) -> bool:
        """Say whether two other subtrees are as large, and free below their roots."""
        return (
            self.size == (a.tree.size[x], b.tree.size[y])
            and bool(a.free[a.whole(x)][1:].all())
            and bool(b.free[b.whole(y)][1:].all())
        )


_Gap = Callable[[Ints, Ints], None]


class _Aligner:
    def __init__(self, a: Side, b: Side, names: Vocabulary) -> None:
        self.a, self.b, self.names = a, b, names
        self.change = np.full(len(a.tree), -1, np.int64)
        self.match = np.full(len(a.tree), -1, np.int64)
        self.regions: list[Region] = []
        self.todo: list[tuple[int, int]] = []
        self.seen: dict[tuple[int, int], _Done] = {}
        self.outside = [code for code, kind in enumerate(names.kinds) if kind == OUTSIDE]

    def run(self) -> Alignment:
        self.pair(0, 0, "same", "exact")
        self.threads()
        self.down()
        self.left_over()
        self.anywhere()
        self.rest()
        pairs = np.flatnonzero(self.a.other >= 0)
        return Alignment(
            np.stack((pairs, self.a.other[pairs]), axis=1),
            self.change[pairs],
            self.match[pairs],
            self.regions,
        )

    # -- pairing -------------------------------------------------------------------------------------

    def pair(self, x: int, y: int, change: str, match: str) -> None:
        """Pair two nodes, or two identical subtrees whole; their children are aligned later."""
        a, b = self.a, self.b
        if not (a.free[x] and b.free[y]):
            return
        if change == "same" and a.label[x] != b.label[y] and not (a.place[x] and b.place[y]):
            change = "renamed"
        code = CHANGES.index(change), MATCHES.index(match)
        held = self.seen.get((int(a.signature[x]), int(b.signature[y])))
        if held is not None and held.fits(x, y, a, b):
            self.again(held, x, y, *code)
            return
        alike = self.identical(x, y)
        mine, theirs = (a.whole(x), b.whole(y)) if alike else (slice(x, x + 1), slice(y, y + 1))
        a.other[mine] = np.arange(theirs.start, theirs.stop)
        b.other[theirs] = np.arange(mine.start, mine.stop)
        a.free[mine] = b.free[theirs] = False
        self.change[mine], self.match[mine] = code
        if not alike:
            self.todo.append((x, y))

    def identical(self, x: int, y: int) -> bool:
        """Say whether two subtrees are the same, node by node, and free."""
        a, b = self.a, self.b
        if a.signature[x] != b.signature[y] or a.tree.size[x] != b.tree.size[y]:
            return False
        mine, theirs = a.whole(x), b.whole(y)
        return bool(
            np.array_equal(a.plain[mine], b.plain[theirs])
            and np.array_equal(a.tree.parent[mine][1:] - x, b.tree.parent[theirs][1:] - y)
            and a.free[mine].all()
            and b.free[theirs].all()
        )

    def down(self) -> None:
        """Align the children of what was paired, and theirs; what was done is kept for equal subtrees."""
        a, b = self.a, self.b
        open_: list[tuple[int, int, int, int]] = []
        while self.todo or open_:
            if open_ and len(self.todo) == open_[-1][0]:
                _, regions, x, y = open_.pop()
                key = int(a.signature[x]), int(b.signature[y])
                self.seen[key] = _Done.of(self, x, y, self.regions[regions:])
                continue
            x, y = self.todo.pop()
            if not (x or y):
                continue
            held = self.seen.get((int(a.signature[x]), int(b.signature[y])))
            if held is not None and held.fits(x, y, a, b):
                self.again(held, x, y, int(self.change[x]), int(self.match[x]))
                continue
            if self.worth_keeping(x, y):
                open_.append((len(self.todo), len(self.regions), x, y))
            self.children(x, y)

    def worth_keeping(self, x: int, y: int) -> bool:
        """Say whether two subtrees are large, occur more than once, and nothing in them is aligned yet."""
        a, b = self.a, self.b
        mine, theirs = a.whole(x), b.whole(y)
        return bool(
            a.tree.size[x] + b.tree.size[y] >= _KEPT
            and a.repeated[x]
            and b.repeated[y]
            and int(np.count_nonzero(a.free[mine])) == a.tree.size[x] - 1
            and int(np.count_nonzero(b.free[theirs])) == b.tree.size[y] - 1
        )

    def again(self, held: _Done, x: int, y: int, change: int, match: int) -> None:
        """Align two subtrees as equal ones were."""
        a, b = self.a, self.b
        mine, theirs = held.a + x, held.b + y
        a.other[mine], b.other[theirs] = theirs, mine
        a.free[mine] = b.free[theirs] = False
        self.change[mine], self.match[mine] = held.change, held.match
        self.change[x], self.match[x] = change, match
        for region in held.regions:
            self.region(region.a + x, region.b + y, region.change, region.match)

    def threads(self) -> None:
        """Pair the threads, whose numbers mean nothing: by what runs on them."""
        a, b = self.a, self.b
        mine, theirs = a.tree.children(0), b.tree.children(0)
        for x in mine[np.isin(a.label[mine], self.outside)].tolist():
            for y in theirs[b.label[theirs] == a.label[x]].tolist():
                self.pair(x, y, "same", "exact")
        mine, theirs = (
            _longest(side, nodes[side.free[nodes] & (side.tree.size[nodes] > 1)])
            for side, nodes in ((a, mine), (b, theirs))
        )
        for x, y in _same_keys(a.signature, b.signature, mine, theirs):
            self.pair(x, y, "same", "exact")
        mine, theirs = mine[a.free[mine]], theirs[b.free[theirs]]
        size = len(self.names.loose)
        inside = [
            [np.bincount(side.loose[side.whole(node)], minlength=size) for node in nodes[:_GAP].tolist()]
            for side, nodes in ((a, mine), (b, theirs))
        ]
        scores = [
            (-int(np.minimum(left, right).sum()), at + to, at, to)
            for at, left in enumerate(inside[0])
            for to, right in enumerate(inside[1])
        ]
        for _, _, at, to in sorted(scores):
            self.pair(int(mine[at]), int(theirs[to]), "same", "similar")
        mine, theirs = (
            _longest(side, nodes[side.free[nodes] & ~outside])
            for side in (a, b)
            for nodes in (side.tree.children(0),)
            for outside in (np.isin(side.label[nodes], self.outside),)
        )
        for x, y in zip(mine.tolist(), theirs.tolist(), strict=False):
            self.pair(x, y, "same", "position")

    # -- below two nodes that belong together --------------------------------------------------------

    def children(self, x: int, y: int) -> None:
        """Align the children of two nodes."""
        a, b = self.a, self.b
        mine, theirs = a.tree.children(x), b.tree.children(y)
        mine, theirs = mine[a.free[mine]], theirs[b.free[theirs]]
        if not (len(mine) and len(theirs)):
            return
        for left, right, match in self.in_order(mine, theirs, self.replaced):
            self.pair(left, right, "same" if match != "family" else "renamed", match)
        for keys in ((a.signature, b.signature), (a.label, b.label)):
            still, too = mine[a.free[mine] & ~a.idle[mine]], theirs[b.free[theirs] & ~b.idle[theirs]]
            for at, to in _same_keys(*keys, still, too):
                # the order in which one operator's kernels start is no matter of structure
                self.pair(at, to, "same" if a.work[at] else "moved", "order")
        self.lone_modules(mine, theirs)
        if a.operator[x] and b.operator[y]:
            self.kernels(mine, theirs)

    def in_order(self, mine: Ints, theirs: Ints, gap: _Gap) -> Iterator[tuple[int, int, str]]:
        """Yield what is equal in order: identical subtrees, between them names, between those families."""
        a, b = self.a, self.b
        levels = ((a.signature, b.signature), (a.label, b.label), (a.loose, b.loose))
        yield from _nested(mine, theirs, levels, gap)

    def replaced(self, mine: Ints, theirs: Ints) -> None:
        """Align what is in one gap: fused operators first, which resemble each of their parts."""
        self.fused(mine, theirs)
        if len(mine) <= _GAP and len(theirs) <= _GAP:
            self.wrapped(mine, theirs)
            self.resembling(mine, theirs)

    def wrapped(self, mine: Ints, theirs: Ints) -> None:
        """Pair what one run has in a gap with what the other one has inside something in the gap."""
        a, b = self.a, self.b
        for one, other, outer, nodes in ((a, b, mine, theirs), (b, a, theirs, mine)):
            for x in outer.tolist():
                if one.idle[x] or one.work[x] or not one.free[x]:
                    continue
                for y in nodes.tolist():
                    inside = other.within(y, int(one.label[x])) if other.free[y] else -1
                    if inside >= 0:
                        left, right = (x, inside) if one is a else (inside, x)
                        self.pair(left, right, "moved", "order")
                        break

    def resembling(self, mine: Ints, theirs: Ints) -> None:
        """Pair what has most words of the name, or most of its inside, in common; in one gap."""
        a, b = self.a, self.b
        mine, theirs = mine[a.free[mine] & ~a.work[mine]], theirs[b.free[theirs] & ~b.work[theirs]]
        scores = []
        for at, x in enumerate(mine.tolist()):
            for to, y in enumerate(theirs.tolist()):
                if self.names.kinds[a.label[x]] == self.names.kinds[b.label[y]]:
                    score = self.likeness(x, y)
                    if score >= _ALIKE:
                        scores.append((-score, abs(at - to), at, to))
        for _, _, at, to in sorted(scores):
            self.pair(int(mine[at]), int(theirs[to]), "renamed", "similar")

    def likeness(self, x: int, y: int) -> float:
        """Return the share of words, or of labels inside, that two nodes have in common."""
        exact = self.names.exact
        left, right = words(exact[self.a.label[x]]), words(exact[self.b.label[y]])
        common_words = 2 * len(left & right) / max(1, len(left) + len(right))
        mine, theirs = self.a.inside(x), self.b.inside(y)
        count = sum(mine.values()) + sum(theirs.values())
        shared = sum(min(number, theirs.get(label, 0)) for label, number in mine.items())
        return max(common_words, 2 * shared / count if count else 0.0)

    def lone_modules(self, mine: Ints, theirs: Ints) -> None:
        """Pair the only modules inside two nodes, whatever their names: one wraps, or replaces, the other."""
        a, b = self.a, self.b
        left, right = mine[a.module[mine]], theirs[b.module[theirs]]
        if len(left) == len(right) == 1:
            self.pair(int(left[0]), int(right[0]), "renamed", "position")

    def kernels(self, mine: Ints, theirs: Ints) -> None:
        """Pair the kernels of one operator: they do its work, whatever their names."""
        a, b = self.a, self.b
        left, right = mine[a.free[mine] & a.work[mine]], theirs[b.free[theirs] & b.work[theirs]]
        if len(left) == len(right):
            for x, y in zip(left.tolist(), right.tolist(), strict=True):
                self.pair(x, y, "renamed", "position")
        elif len(left) and len(right):
            self.region(left, right, "fused" if len(left) > len(right) else "split", "position")

    # -- across levels -------------------------------------------------------------------------------

    def left_over(self) -> None:
        """Align what is left below each pair of nodes, the innermost first; the rest one level up."""
        pools: dict[int, tuple[list[int], list[int]]] = {}
        above = []
        for side in (self.a, self.b):
            nodes = np.flatnonzero(side.free & ~side.idle & ~side.place)
            up = nearest(side.tree.parent, ~side.free)
            above.append(up)
            for node, group in zip(nodes.tolist(), self.groups(side, up[nodes]), strict=True):
                pools.setdefault(group, ([], []))[side is self.b].append(node)
        climbed: dict[tuple[bool, int], int] = {}
        waiting = [-group for group in pools]
        heapify(waiting)
        while waiting:
            group = -heappop(waiting)
            mine, theirs = pools.pop(group)
            if group < 0:
                continue
            if mine and theirs:
                self.across(np.array(sorted(mine)), np.array(sorted(theirs)))
            for side, left, up in ((self.a, mine, above[0]), (self.b, theirs, above[1])):
                here = group if side is self.a else int(self.a.other[group])
                if here < 0 or up[here] < 0:
                    continue
                (target,) = self.groups(side, up[[here]])
                for node in left:
                    count = climbed.get((side is self.b, node), 0)
                    if side.free[node] and count < _CLIMB and 0 <= target < group:
                        climbed[side is self.b, node] = count + 1
                        if target not in pools:
                            pools[target] = ([], [])
                            heappush(waiting, -target)
                        pools[target][side is self.b].append(node)

    def groups(self, side: Side, nodes: Ints) -> list[int]:
        """Return a's node of each aligned one, -1 where there is none."""
        found = nodes if side is self.a else self.b.other[nodes]
        out: list[int] = np.where((nodes >= 0) & (side.other[nodes] >= 0), found, -1).tolist()
        return out

    def across(self, mine: Ints, theirs: Ints) -> None:
        """Align what is left below two nodes in order of execution, whatever stands around it."""
        a, b = self.a, self.b
        mine, theirs = a.outer_work(mine), b.outer_work(theirs)
        found = list(self.in_order(mine, theirs, self.fused))
        for x, y, match in found:
            self.pair(x, y, "moved", match if match == "family" else "order")
        self.down()

    def fused(self, mine: Ints, theirs: Ints) -> None:
        """Join fused operators in a gap with those that their names list, or that they replace."""
        a, b = self.a, self.b
        for one, other, many, few, change in ((a, b, mine, theirs, "fused"), (b, a, theirs, mine, "split")):
            many, few = many[one.free[many]], few[other.free[few]]
            for parts, whole, match in fusion.joined(one, many, other, few, self.names):
                left, right = one.free_in(parts), other.free_in([whole])
                if not (len(left) and len(right)):
                    continue
                pair = (left, right) if one is a else (right, left)
                single = len(parts) == 1
                self.region(*pair, "renamed" if single else change, match)

    def anywhere(self) -> None:
        """Pair identical subtrees of several nodes, or with device time, that are left anywhere."""
        a, b = self.a, self.b
        mine, theirs = (
            np.flatnonzero(side.free & ~side.idle & ~side.place & (side.tree.size > 1)) for side in (a, b)
        )
        for x, y in _same_keys(a.signature, b.signature, mine, theirs):
            if self.identical(x, y):
                self.pair(x, y, "moved", "elsewhere")
        self.down()

    # -- what only one run has -----------------------------------------------------------------------

    def region(self, mine: Ints, theirs: Ints, change: str, match: str) -> None:
        """Note that nodes of one run became nodes of the other."""
        self.a.free[mine] = False
        self.b.free[theirs] = False
        self.regions.append(Region(mine, theirs, change, match))

    def rest(self) -> None:
        """Make regions of what is left: what lies inside each other is one."""
        none = np.zeros(0, np.int64)
        for side, change in ((self.a, "lost"), (self.b, "added")):
            nodes = np.flatnonzero(side.free)
            parent = side.tree.parent
            top = side.free & ~np.where(parent >= 0, side.free[parent], False)
            of = np.where(top, np.arange(len(top)), nearest(np.where(side.free, parent, -1), top))[nodes]
            order = np.argsort(of, kind="stable")
            bounds = np.flatnonzero(np.diff(of[order], prepend=-1, append=-1))
            for begin, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                inside = nodes[order[begin:stop]]
                self.regions.append(
                    Region(inside, none, change, "none")
                    if side is self.a
                    else Region(none, inside, change, "none")
                )


def _longest(side: Side, nodes: Ints) -> Ints:
    """Return threads by the host time on them, longest first."""
    time = side.tree.inclusive(side.tree.host.sums(len(side.tree)))[nodes]
    out: Ints = nodes[np.argsort(-time, kind="stable")]
    return out


def _same_keys(keys_a: Ints, keys_b: Ints, mine: Ints, theirs: Ints) -> list[tuple[int, int]]:
    """Return nodes of equal keys, the n-th of one side with the n-th of the other."""
    waiting: dict[int, list[int]] = defaultdict(list)
    for y in theirs[::-1].tolist():
        waiting[int(keys_b[y])].append(y)
    out = []
    for x in mine.tolist():
        held = waiting.get(int(keys_a[x]))
        if held:
            out.append((x, held.pop()))
    return out


def _nested(
    mine: Ints, theirs: Ints, levels: Sequence[tuple[Ints, Ints]], gap: _Gap
) -> Iterator[tuple[int, int, str]]:
    if not (len(mine) and len(theirs)):
        return
    if not levels:
        gap(mine, theirs)
        return
    match = "family" if len(levels) == 1 else "exact"
    keys_a, keys_b = levels[0]
    at = to = 0
    for x, y in (*common(keys_a[mine], keys_b[theirs]), (len(mine), len(theirs))):
        yield from _nested(mine[at:x], theirs[to:y], levels[1:], gap)
        if x < len(mine):
            yield int(mine[x]), int(theirs[y]), match
        at, to = x + 1, y + 1
