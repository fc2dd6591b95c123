"""Statistics that tell a change from noise: robust tests, corrected for many looks, and the bootstrap.

The tests and the bootstrap take many pairs of samples at once; pairs of the same lengths are worked out
together. Student's t comes from SciPy. Two things do not:

- `holm`: SciPy does not have it (``scipy.stats.false_discovery_control`` bounds another kind of error).
- The resampling in `bootstrap_ratios`: ``scipy.stats.bootstrap`` gathers every value of every resample. A
  mean only asks how often each value was drawn, so all pairs of one length are one matrix product: 4 times
  faster at 10 values a side, 8 times at 100. The tests hold the two against each other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "bootstrap_ratios",
    "holm",
    "resampling_weights",
    "student_tail",
    "trimmed_tests",
    "winsorise",
    "winsorised_means",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCKS = 400  # longer series are resampled in so many blocks
_ASSUMED = 1.0  # correlation of neighbours that is assumed at least, divided by their number
_TOGETHER = 256  # rows that are worked out at once,
_VALUES = 1 << 18  # unless they have more values than this
TRIM = 0.1  # share of the smallest and of the largest values that the test sets aside


def trimmed_tests(a: Sequence[Floats], b: Sequence[Floats]) -> Floats:
    """Return for each pair of durations the two-sided p-value that their centres agree (1.0 with too few).

    Yuen's test on logarithms: Welch's test with the extremes trimmed, so that single hiccups neither hide
    nor make a change. Successive durations depend on each other; a positive correlation of neighbours
    shrinks the number of values that count. A clock that counts in coarse steps cannot tell a difference of
    about a step, however often it is read.
    """
    out = np.ones(len(a))
    for rows, (left, right) in _by_length([x[x > 0] for x in a], [x[x > 0] for x in b]):
        if left.shape[1] < 3 or right.shape[1] < 3:
            continue
        mean_a, variance_a, free_a = _centre(np.log(left))
        mean_b, variance_b, free_b = _centre(np.log(right))
        scatter = variance_a + variance_b
        step = _clock_step(np.concatenate((left, right), axis=1))
        variance = scatter + ((step / np.exp(mean_a)) ** 2 + (step / np.exp(mean_b)) ** 2) / 12.0
        difference = np.abs(mean_a - mean_b)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(difference > 0, difference / np.sqrt(variance), 0.0)
            welch = scatter**2 / (variance_a**2 / free_a + variance_b**2 / free_b)
        freedom = np.where(scatter > 0, welch, free_a + free_b)
        out[rows] = 2.0 * student_tail(t, freedom)
    return out


def _by_length(*sides: Sequence[Floats]) -> Iterator[tuple[Ints, tuple[Floats, ...]]]:
    """Yield positions whose samples have the same lengths, and for each side their samples as rows."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for position, samples in enumerate(zip(*sides, strict=True)):
        groups[tuple(map(len, samples))].append(position)
    for lengths, positions in sorted(groups.items()):
        count = max(1, min(_TOGETHER, _VALUES // max(1, *lengths)))
        for at in range(0, len(positions), count):
            some = positions[at : at + count]
            yield np.array(some), tuple(np.stack([side[n] for n in some]) for side in sides)


def _clock_step(values: Floats) -> Floats:
    """Return for each row the largest step, ns, that divides all its values; 0 if they are no integers."""
    whole = np.rint(values)
    integers = (np.abs(values - whole) < 1e-6).all(axis=1) & (np.abs(whole).max(axis=1) < 2**53)
    whole[~integers] = 0.0
    out: Floats = np.gcd.reduce(whole.astype(np.int64), axis=1).astype(np.float64)
    return out


def _centre(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return for each row its trimmed mean, the mean's squared standard error, and degrees of freedom."""
    count = values.shape[1]
    cut = int(TRIM * count)
    left = count - 2 * cut
    mean = np.sort(values, axis=1)[:, cut : count - cut].mean(axis=1)
    winsorised = winsorise(values)
    spread = ((winsorised - winsorised.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    wider = inflation(winsorised)
    return mean, spread / (left * (left - 1)) * wider, np.maximum(1.0, left / wider - 1.0)


def winsorise(values: Floats) -> Floats:
    """Return each row with its smallest and largest tenth drawn in to what remains."""
    cut = int(TRIM * values.shape[-1])
    if cut == 0:
        return values
    ordered = np.sort(values, axis=-1)
    out: Floats = np.clip(values, ordered[..., cut, None], ordered[..., -1 - cut, None])
    return out


def winsorised_means(samples: Sequence[Floats]) -> Floats:
    """Return the mean of each sample, its smallest and largest tenth drawn in."""
    out = np.empty(len(samples))
    for rows, (values,) in _by_length(samples):
        out[rows] = winsorise(values).mean(axis=1)
    return out


def inflation(values: Floats) -> Floats:
    """Return for each row by how much correlation between neighbours widens the error of its mean, 1 or more.

    The correlation of neighbours is estimated with the correction for its bias in short series; what is
    too short to show any is taken to have a little.
    """
    count = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    whole = (centred**2).sum(axis=1)
    with np.errstate(invalid="ignore"):
        correlation = (centred[:, 1:] * centred[:, :-1]).sum(axis=1) / whole
    correlation += (1.0 + 4.0 * np.maximum(correlation, 0.0)) / count
    correlation = np.clip(correlation, _ASSUMED / count, 0.9)
    return np.where(whole > 0, (1.0 + correlation) / (1.0 - correlation), 1.0)


def student_tail(t: Floats | float, freedom: Floats | float) -> Floats:
    """Return the probability that Student's t with ``freedom`` degrees of freedom exceeds ``t >= 0``."""
    from scipy.special import stdtr  # slow to import; scipy.stats, whose t calls it, is three times slower

    out: Floats = stdtr(freedom, -np.asarray(t, np.float64))
    return out


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for looking at all of them: any one below alpha is a finding.

    S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6
    (1979): the smallest of n is multiplied by n, the next by n - 1, ..., and none is less than one before.
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    out = np.empty(len(p))
    out[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return [float(value) for value in out]


def bootstrap_ratios(
    a: Sequence[Floats],
    b: Sequence[Floats],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Floats:
    """Return for each pair a confidence interval of the ratio of two means, b / a: two columns, low and high.

    Both are winsorised and resampled. Long series are resampled in blocks of neighbours. The interval is
    widened where neighbours depend on each other, as in `trimmed_tests`. NaN with fewer than two values on
    either side, or without any time in ``a``.
    """
    out = np.full((len(a), 2), math.nan)
    tail = (1.0 - confidence) / 2.0
    for rows, (left, right) in _by_length(a, b):
        if left.shape[1] < 2 or right.shape[1] < 2:
            continue
        timed = left.mean(axis=1) > 0
        below = _resampled_means(winsorise(left[timed]), resamples, seed)
        above = _resampled_means(winsorise(right[timed]), resamples, seed + 1)
        ratio = above / np.where(below > 0, below, np.nan)
        limits = np.quantile(ratio, (tail, 1.0 - tail), axis=1).T
        for row in np.flatnonzero(np.isnan(ratio).any(axis=1)):  # rare, and slow
            limits[row] = np.nanquantile(ratio[row], (tail, 1.0 - tail))
        out[rows[timed]] = limits
    return out


def _resampled_means(values: Floats, resamples: int, seed: int) -> Floats:
    """Return the means of the resamples of each row, one column a resample."""
    if values.shape[1] > _BLOCKS:
        ends = np.linspace(0, values.shape[1], _BLOCKS + 1).astype(np.int64)
        reach = np.concatenate((np.zeros((len(values), 1)), np.cumsum(values, axis=1)), axis=1)
        values = np.diff(reach[:, ends], axis=1) / np.diff(ends)
    count = values.shape[1]
    mean = values.mean(axis=1, keepdims=True)
    # resampling n values underestimates the scatter of their mean by (n - 1) / n
    widen = np.sqrt(count / (count - 1) * inflation(values))[:, None]
    out: Floats = mean + (values @ resampling_weights(count, resamples, seed) - mean) * widen
    return out


@lru_cache(maxsize=16)
def resampling_weights(count: int, resamples: int, seed: int) -> Floats:
    """Return how often each value is drawn in each resample; the same for all series of one length."""
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), size=resamples)
    out: Floats = drawn.T / count
    return out
