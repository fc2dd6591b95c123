"""Times of the rows of a comparison of structures: sums, and what changed beyond noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.groups import exact_sums
from torchtrt_viz.analysis.core.statistics import holm, winsorised_means
from torchtrt_viz.analysis.core.tables import floats, text
from torchtrt_viz.analysis.runs.verdicts import SAMPLES, judged, tested
from torchtrt_viz.analysis.structure.rows import Rows
from torchtrt_viz.analysis.structure.tree import Entries, Tree

__all__ = ["Times"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: What takes less of its domain's time in both runs is not tested: each test costs the others some power.
_WORTH = 0.001


class Times:
    """The times of each row, on either side and domain."""

    def __init__(
        self, trees: tuple[Tree, Tree], parts: Rows, rows: Rows, row_of: Ints, *, skip_warmup: bool
    ) -> None:
        """Take the pairs and regions, the rows that they are merged to, and the row of each."""
        self._trees, self._parts, self._rows, self._row_of = trees, parts, rows, row_of
        numbers = [
            np.array(tree.iterations if skip_warmup else tree.all_iterations, np.int64) for tree in trees
        ]
        self.basis = "iteration" if all(map(len, numbers)) else "run"
        self.count = [len(part) if self.basis == "iteration" else 0 for part in numbers]
        self._numbers = numbers
        self._own: dict[tuple[int, str], tuple[Ints, Mask]] = {}

    def _entries(self, side: int, domain: str) -> Entries:
        tree = self._trees[side]
        return tree.host if domain == "host" else tree.gpu

    def own(self, side: int, domain: str) -> tuple[Ints, Mask]:
        """Return what each row took itself in the whole run, ns, and whether it has any such time."""
        if (side, domain) not in self._own:
            entries = self._entries(side, domain)
            row = self._rows.of[side][entries.node]
            count = len(self._rows)
            some = np.zeros(count, bool)
            some[row] = True
            self._own[side, domain] = exact_sums(row, entries.ns, count), some
        return self._own[side, domain]

    def inclusive(self, side: int, domain: str) -> tuple[Ints, Mask]:
        """Return what each row took with all that is inside."""
        tree = self._trees[side]
        entries = self._entries(side, domain)
        size = len(tree)
        sums, count = entries.sums(size), np.bincount(entries.node, minlength=size)
        whole, some = tree.inclusive(sums), tree.inclusive(count) > 0
        of, top = self._parts.of[side], self._parts.top[side]
        # a region is what its nodes are, not what was found elsewhere inside of them
        node = (self._parts.nodes[side] == 1) & (top >= 0)
        parts = len(self._parts)
        value = np.where(node, whole[top], exact_sums(of, sums, parts))
        known = np.where(node, some[top], np.bincount(of, weights=count, minlength=parts) > 0)
        rows = len(self._rows)
        any_ = np.zeros(rows, bool)
        any_[self._row_of[known]] = True
        return exact_sums(self._row_of, value, rows), any_

    def samples(self, side: int, domain: str) -> list[Floats]:
        """Return what each row took in each iteration in which it ran; without iterations its sum."""
        count = len(self._rows)
        entries = self._entries(side, domain)
        row = self._rows.of[side][entries.node]
        if self.basis == "run":
            own, some = self.own(side, domain)
            return [
                np.array([value] if any_ else [], np.float64) for value, any_ in zip(own, some, strict=True)
            ]
        numbers = self._numbers[side]
        place = np.searchsorted(numbers, entries.iteration)
        inside = numbers[np.minimum(place, len(numbers) - 1)] == entries.iteration
        key = row[inside] * len(numbers) + place[inside]
        cell, at = np.unique(key, return_inverse=True)
        value = exact_sums(at.reshape(-1), entries.ns[inside], len(cell)).astype(np.float64)
        bounds = np.searchsorted(cell // len(numbers), np.arange(1, count))
        return np.split(value, bounds) if count else []

    def tests(self, *, alpha: float, min_change_pct: float, confidence: float, seed: int) -> dict[str, Any]:
        """Return the columns that say what changed."""
        count = len(self._rows)
        out: dict[str, Any] = {}
        p_values: list[tuple[str, Ints, Floats]] = []
        held: dict[str, tuple[Floats, Floats, Floats, Floats, list[list[Floats]]]] = {}
        for domain in ("host", "gpu"):
            sides = [self.samples(side, domain) for side in (0, 1)]
            length = np.array([[len(part) for part in side] for side in sides]).reshape(2, count)
            mean = np.full((2, count), np.nan)
            for side in (0, 1):
                ran = np.flatnonzero(length[side])
                mean[side, ran] = winsorised_means([sides[side][row] for row in ran.tolist()])
            worth = self._worth(domain)
            look = np.flatnonzero((length >= SAMPLES).all(axis=0) & worth)
            low, high = np.full(count, np.nan), np.full(count, np.nan)
            if len(look):
                mine, theirs = ([side[row] for row in look.tolist()] for side in sides)
                ends = tested(mine, theirs, confidence, seed)
                low[look], high[look] = ends[0] - 1.0, ends[1] - 1.0
                p_values.append((domain, look, ends[2]))
            held[domain] = mean[0], mean[1], low, high, sides
            out[f"_{domain}"] = length
        corrected = holm(np.concatenate([p for *_, p in p_values]).tolist()) if p_values else []
        p: dict[str, Floats] = {domain: np.full(count, np.nan) for domain in held}
        begin = 0
        for domain, look, found in p_values:
            p[domain][look] = corrected[begin : begin + len(found)]
            begin += len(found)
        lengths = {domain: out.pop(f"_{domain}") for domain in held}
        for domain, (before, after, low, high, _) in held.items():
            out |= self._columns(domain, before, after, low, high, p[domain], alpha, min_change_pct)
        for side, label in enumerate("ab"):
            out[f"{label}_samples"] = np.maximum(lengths["host"][side], lengths["gpu"][side]).astype(np.int64)
        return out

    def _worth(self, domain: str) -> Mask:
        out = np.zeros(len(self._rows), bool)
        for side in (0, 1):
            own, _ = self.own(side, domain)
            out |= own >= _WORTH * max(1, int(own.sum()))
        return out

    def _columns(
        self,
        domain: str,
        before: Floats,
        after: Floats,
        low: Floats,
        high: Floats,
        p: Floats,
        alpha: float,
        min_change_pct: float,
    ) -> dict[str, Any]:
        has = [self.own(side, domain)[1] for side in (0, 1)]
        some = has[0] | has[1]
        with np.errstate(invalid="ignore", divide="ignore"):
            change = np.where(before > 0, after / before - 1.0, np.nan)
        verdicts: list[str | None] = []
        for row in range(len(some)):
            if not some[row]:
                verdicts.append(None)
            elif not has[0][row]:
                verdicts.append("added")
            elif not has[1][row]:
                verdicts.append("removed")
            elif before[row] == after[row]:
                verdicts.append("same")
            else:
                known = None if np.isnan(p[row]) else float(p[row])
                verdicts.append(
                    judged(change[row], low[row], high[row], known, alpha, min_change_pct / 100.0)
                )
        return {
            f"a_{domain}_mean_ns": floats(before),
            f"b_{domain}_mean_ns": floats(after),
            f"{domain}_delta_ns": floats(np.nan_to_num(after) - np.nan_to_num(before), some),
            f"{domain}_change_pct": floats(100.0 * change),
            f"{domain}_low_pct": floats(100.0 * low),
            f"{domain}_high_pct": floats(100.0 * high),
            f"{domain}_verdict": text(verdicts),
            f"{domain}_p_value": floats(p),
        }
