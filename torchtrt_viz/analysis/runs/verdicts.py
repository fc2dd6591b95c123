"""The guard of every comparison: what may be called slower or faster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.statistics import bootstrap_ratios, trimmed_tests
from torchtrt_viz.errors import OptionError

__all__ = ["SAMPLES", "VERDICTS", "check_limits", "judged", "tested"]

Floats = NDArray[np.float64]

VERDICTS = ("slower", "faster", "same", "unclear", "added", "removed")
SAMPLES = 3  # with fewer on either side nothing can be told


def check_limits(alpha: float, min_change_pct: float, confidence: float) -> None:
    """Refuse limits that mean nothing.

    Raises
    ------
    OptionError
        For a probability that is none, and a change below 0.
    """
    if not 0 < alpha < 1:
        raise OptionError("alpha", alpha, "a probability between 0 and 1")
    if not 0 < confidence < 1:
        raise OptionError("confidence", confidence, "a probability between 0 and 1")
    if not min_change_pct >= 0:
        raise OptionError("min_change_pct", min_change_pct, "0 or more percent")


def tested(
    a: Sequence[Floats], b: Sequence[Floats], confidence: float, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Return for pairs of samples the ends of the interval of b / a, and the p-value of no difference."""
    intervals = bootstrap_ratios(a, b, confidence=confidence, seed=seed)
    return intervals[:, 0], intervals[:, 1], trimmed_tests(a, b)


def judged(change: float, low: float, high: float, p: float | None, alpha: float, smallest: float) -> str:
    """Return the verdict on a change.

    Parameters
    ----------
    change, low, high
        Time in b against a, and the ends of its interval: 0 is no change, 0.1 is a tenth more.
    p
        Of no difference, corrected for all that was looked at; None without a test.
    alpha
        Largest ``p`` that convinces.
    smallest
        Smallest change that matters.
    """
    certain = p is not None and p < alpha
    if certain and low > 0 and change >= smallest:
        return "slower"
    if certain and high < 0 and change <= -smallest:
        return "faster"
    if low > -max(smallest, 1e-12) and high < max(smallest, 1e-12):
        return "same"
    return "unclear"
