"""Statistics that tell a change from noise: robust tests, corrected for many looks, and the bootstrap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["bootstrap_ratio", "holm", "student_tail", "trimmed_test", "winsorise"]

Floats = NDArray[np.float64]

_BLOCKS = 400  # longer series are resampled in so many blocks
_ASSUMED = 1.0  # correlation of neighbours that is assumed at least, divided by their number
TRIM = 0.1  # share of the smallest and of the largest values that the test sets aside


def trimmed_test(a: Floats, b: Floats) -> float:
    """Return the two-sided p-value that two sets of durations have the same centre (1.0 with too few).

    Yuen's test on logarithms: Welch's test with the extremes trimmed, so that single hiccups neither hide
    nor make a change. Successive durations depend on each other; a positive correlation of neighbours
    shrinks the number of values that count. A clock that counts in coarse steps cannot tell a difference of
    about a step, however often it is read.
    """
    left, right = _centre(np.log(a[a > 0])), _centre(np.log(b[b > 0]))
    if left is None or right is None:
        return 1.0
    (mean_a, variance_a, free_a), (mean_b, variance_b, free_b) = left, right
    scatter = variance_a + variance_b
    step = _clock_step(a, b)
    variance = scatter + ((step / math.exp(mean_a)) ** 2 + (step / math.exp(mean_b)) ** 2) / 12.0
    if variance <= 0 or mean_a == mean_b:
        return 1.0 if mean_a == mean_b else 0.0
    freedom = free_a + free_b
    if scatter > 0:
        freedom = scatter**2 / (variance_a**2 / free_a + variance_b**2 / free_b)
    return 2.0 * student_tail(abs(mean_a - mean_b) / math.sqrt(variance), freedom)


def _clock_step(a: Floats, b: Floats) -> float:
    """Return the largest step of which all durations are whole numbers, ns; 0 where they are not integers."""
    values = np.concatenate((a, b))
    whole = np.rint(values)
    if not (np.abs(values - whole) < 1e-6).all() or np.abs(whole).max() >= 2**53:
        return 0.0
    return float(np.gcd.reduce(whole.astype(np.int64)))


def _centre(values: Floats) -> tuple[float, float, float] | None:
    """Return trimmed mean, its squared standard error, and degrees of freedom; None for fewer than three."""
    count = len(values)
    if count < 3:
        return None
    cut = int(TRIM * count)
    kept = count - 2 * cut
    mean = float(np.sort(values)[cut : count - cut].mean())
    winsorised = winsorise(values)
    spread = float(((winsorised - winsorised.mean()) ** 2).sum())
    wider = inflation(winsorised)
    variance = spread / (kept * (kept - 1)) * wider
    return mean, variance, max(1.0, kept / wider - 1.0)


def winsorise(values: Floats) -> Floats:
    """Return the values with the smallest and largest tenth drawn in to what remains."""
    cut = int(TRIM * len(values))
    if cut == 0:
        return values
    ordered = np.sort(values)
    out: Floats = np.clip(values, ordered[cut], ordered[-1 - cut])
    return out


def inflation(values: Floats) -> float:
    """Return by how much correlation between neighbours widens the error of a mean, 1 or more.

    The correlation of neighbours is estimated with the correction for its bias in short series; what is
    too short to show any is taken to have a little.
    """
    count = len(values)
    centred = values - values.mean()
    whole = float((centred**2).sum())
    if whole <= 0:
        return 1.0
    correlation = float((centred[1:] * centred[:-1]).sum()) / whole
    correlation += (1.0 + 4.0 * max(correlation, 0.0)) / count
    correlation = min(max(correlation, _ASSUMED / count), 0.9)
    return (1.0 + correlation) / (1.0 - correlation)


def student_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t with ``freedom`` degrees of freedom exceeds ``t >= 0``."""
    if math.isinf(t):
        return 0.0
    return 0.5 * _beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)


def _beta(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function, by its continued fraction."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - front * _fraction(1.0 - x, b, a) / b
    return front * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    out = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for step in (even, odd):
            d = 1.0 + step * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + step / (c if abs(c) > tiny else tiny)
            out *= d * c
        if abs(d * c - 1.0) < 1e-14:
            break
    return out


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for looking at all of them (Holm): any one below alpha is a finding."""
    order = np.argsort(p_values, kind="stable")
    out = np.ones(len(p_values))
    worst = 0.0
    for rank, position in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - rank) * float(p_values[position])))
        out[position] = worst
    return [float(value) for value in out]


def bootstrap_ratio(
    a: Floats, b: Floats, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Return a confidence interval of the ratio b / a of two means, NaN with fewer than two values each.

    Both are winsorised and resampled. Long series are resampled in blocks of neighbours. The interval is
    widened where neighbours depend on each other, as in `trimmed_test`.
    """
    if len(a) < 2 or len(b) < 2 or not a.mean() > 0:
        return math.nan, math.nan
    below = _resampled_means(winsorise(a), resamples, seed)
    above = _resampled_means(winsorise(b), resamples, seed + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = above / np.where(below > 0, below, np.nan)
    tail = (1.0 - confidence) / 2.0
    low, high = np.nanquantile(ratio, (tail, 1.0 - tail))
    return float(low), float(high)


def _resampled_means(values: Floats, resamples: int, seed: int) -> Floats:
    if len(values) > _BLOCKS:
        ends = np.linspace(0, len(values), _BLOCKS + 1).astype(np.int64)
        reach = np.concatenate(([0.0], np.cumsum(values)))
        values = np.diff(reach[ends]) / np.diff(ends)
    count = len(values)
    mean = values.mean()
    # resampling n values underestimates the scatter of their mean by (n - 1) / n
    widen = math.sqrt(count / (count - 1) * inflation(values))
    out: Floats = mean + (_weights(count, resamples, seed) @ values - mean) * widen
    return out


@lru_cache(maxsize=16)
def _weights(count: int, resamples: int, seed: int) -> Floats:
    """Return how often each value is drawn in each resample; the same for all series of one length."""
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), size=resamples)
    out: Floats = drawn / count
    return out
