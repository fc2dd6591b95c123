"""Whether noise could turn a finding around: how sure it is that one thing takes more time than the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.groups import exact_sums
from torchtrt_viz.analysis.core.statistics import resampling_weights

__all__ = ["Lead", "leader"]

Ints = NDArray[np.int64]

ENOUGH = 4  # iterations from which their scatter tells something
CLEAR = 1.2  # of fewer, what leads has to be so many times the next
_MISSES = 0.05  # share of resamples in which another one may lead
_RESAMPLES = 1000


@dataclass(frozen=True)
class Lead:
    """The part that takes the most time, against the others.

    Attributes
    ----------
    certain
        Whether it would lead in other runs as well, as far as the iterations tell.
    iterations
        How many there are; 0 none.
    low, high
        Interval of its share in percent (95 % of resamples of the iterations); None with too few.
    """

    certain: bool
    iterations: int
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> str:
        """The interval in words, to stand after the share; empty without one."""
        if self.low is None or self.high is None:
            return ""
        return f" ({self.low:.3g} to {self.high:.3g} % over {self.iterations} iterations)"


def leader(part: Ints, durations: Ints, iteration: Ints, size: int) -> Lead:
    """Say how sure it is that the part with the largest sum of durations leads.

    Parameters
    ----------
    part
        Number of the part that each duration belongs to, 0 to ``size - 1``.
    durations
        ns.
    iteration
        Number of the iteration that each belongs to, -1 none.
    """
    total = exact_sums(part, durations, size)
    order = np.argsort(-total, kind="stable")
    known = iteration >= 0
    numbers, column = np.unique(iteration[known], return_inverse=True)
    if len(numbers) < ENOUGH:
        next_one = int(total[order[1]]) if size > 1 else 0
        return Lead(bool(total[order[0]] >= CLEAR * next_one) if size else False, len(numbers))
    sums = np.zeros((size, len(numbers)))
    np.add.at(sums, (part[known], column.reshape(-1)), durations[known])
    drawn = sums @ resampling_weights(len(numbers), _RESAMPLES, 0)
    first = drawn[order[0]]
    others = np.delete(drawn, order[0], axis=0).max(axis=0, initial=0.0)
    whole = drawn.sum(axis=0)
    share = 100.0 * np.divide(first, whole, out=np.zeros(len(whole)), where=whole > 0)
    low, high = np.quantile(share, (0.025, 0.975))
    return Lead(bool((first <= others).mean() <= _MISSES), len(numbers), float(low), float(high))
