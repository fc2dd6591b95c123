"""Tests of one pair and of many: against tables, against SciPy's own procedures, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from torchtrt_viz.analysis.core.statistics import (
    bootstrap_ratios,
    holm,
    student_tail,
    trimmed_tests,
    winsorised_means,
)

Floats = NDArray[np.float64]


def _alternating(rng: np.random.Generator, count: int, centre: float) -> Floats:
    """Return noise in which a low value follows each high one: no neighbours that go together."""
    values = np.sort(centre * np.exp(rng.normal(0, 0.02, count)))
    low, high = rng.permutation(values[: count // 2]), rng.permutation(values[count // 2 :])
    return np.stack((low, high), axis=1).ravel()


@pytest.mark.parametrize(
    ("t", "freedom", "expected"),
    [(0.0, 5, 0.5), (2.015048, 5, 0.05), (2.763769, 10, 0.01), (12.7062, 1, 0.025), (3.290527, 1e6, 0.0005)],
)
def test_student_tail_equals_the_tables(t: float, freedom: float, expected: float) -> None:
    assert student_tail(t, freedom) == pytest.approx(expected, rel=1e-4)


def test_student_tail_far_out_and_between_whole_degrees_of_freedom() -> None:
    # Cauchy's distribution (one degree of freedom) and that of two have closed forms
    assert student_tail(1e6, 1.0) == pytest.approx(math.atan(1e-6) / math.pi, rel=1e-9)
    assert student_tail(30.0, 2.0) == pytest.approx(0.5 * (1 - 30 / math.sqrt(902)), rel=1e-9)
    between = student_tail(np.full(3, 4.0), np.array([7.0, 7.4, 8.0]))
    assert between[0] > between[1] > between[2]
    assert student_tail(math.inf, 3.3) == 0.0


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


def test_without_memory_the_test_is_yuens() -> None:
    rng = np.random.default_rng(3)
    for factor in (1.0, 1.0005, 1.001):
        a, b = _alternating(rng, 20_000, 1e4), _alternating(rng, 16_000, factor * 1e4)
        yuen = stats.ttest_ind(np.log(a), np.log(b), equal_var=False, trim=0.1).pvalue
        # a little correlation is assumed at least: one part in ten thousand of the error here
        assert trimmed_tests([a], [b])[0] == pytest.approx(yuen, rel=0.02)


def test_without_memory_the_interval_is_that_of_the_plain_bootstrap() -> None:
    rng = np.random.default_rng(4)
    for count in (8, 30):
        sides = [_alternating(rng, count, 1e4), _alternating(rng, count, 1.1e4)]
        # the scatter that resampling misses, and the least correlation that is assumed
        widen = math.sqrt(count / (count - 1) * (1 + 1 / count) / (1 - 1 / count))
        trimmed = [np.clip(s, *np.sort(s)[[count // 10, -1 - count // 10]]) for s in sides]
        a, b = (s.mean() + (s - s.mean()) * widen for s in trimmed)
        expected = stats.bootstrap(
            (a, b), lambda x, y, axis: y.mean(axis) / x.mean(axis), n_resamples=20_000, method="percentile"
        ).confidence_interval
        ((low, high),) = bootstrap_ratios([sides[0]], [sides[1]], resamples=20_000)
        width = expected.high - expected.low
        assert low == pytest.approx(expected.low, abs=0.05 * width)
        assert high == pytest.approx(expected.high, abs=0.05 * width)


def test_many_pairs_of_all_lengths_are_as_each_alone() -> None:
    rng = np.random.default_rng(5)
    a = [1e4 * np.exp(rng.normal(0, 0.05, n)) for n in (0, 1, 2, 3, 12, 12, 12, 900, 12)]
    b = [1e4 * np.exp(rng.normal(0, 0.05, n)) for n in (5, 4, 3, 2, 12, 30, 12, 500, 12)]
    a[8] = np.zeros(12)
    p, limits, means = trimmed_tests(a, b), bootstrap_ratios(a, b), winsorised_means(b)
    for n, (x, y) in enumerate(zip(a, b, strict=True)):
        assert trimmed_tests([x], [y]) == pytest.approx(p[n])
        assert bootstrap_ratios([x], [y])[0] == pytest.approx(limits[n], nan_ok=True)
        assert winsorised_means([y]) == pytest.approx(means[n])
    assert p[[0, 1, 2, 3, 8]].tolist() == [1.0] * 5, "too few values, or none above zero"
    assert np.isnan(limits).all(axis=1).tolist() == [True, True, *[False] * 6, True]


def test_values_without_scatter() -> None:
    same, other = np.full(10, 5.5), np.full(10, 6.5)
    assert trimmed_tests([same, same], [same, other]) == pytest.approx([1.0, 0.0], abs=1e-9)
    assert bootstrap_ratios([same], [other])[0] == pytest.approx([13 / 11, 13 / 11])
