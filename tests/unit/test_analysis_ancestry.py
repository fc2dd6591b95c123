"""Walks along the parent column against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from torchtrt_viz.analysis.core.ancestry import nearest, outermost, recursive


def _forest(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([-1 if i == 0 or rng.random() < 0.1 else int(rng.integers(0, i)) for i in range(n)])


def _walk(parent: np.ndarray, row: int) -> list[int]:
    out = []
    row = int(parent[row])
    while row >= 0:
        out.append(row)
        row = int(parent[row])
    return out


@pytest.mark.parametrize("seed", range(10))
def test_nearest_and_outermost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent = _forest(seed, 300)
    keep = rng.random(300) < 0.3
    expected = [next((a for a in _walk(parent, i) if keep[a]), -1) for i in range(300)]
    assert nearest(parent, keep).tolist() == expected
    assert outermost(parent, keep).tolist() == [bool(keep[i] and expected[i] < 0) for i in range(300)]


@pytest.mark.parametrize("seed", range(10))
def test_recursive(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent = _forest(seed, 300)
    keep = rng.random(300) < 0.5
    code = np.where(keep, rng.integers(0, 4, 300), -1)
    rows = np.flatnonzero(keep)
    expected = [any(keep[a] and code[a] == code[i] for a in _walk(parent, i)) for i in rows]
    assert recursive(rows, nearest(parent, keep), code).tolist() == expected


def test_a_chain_of_a_hundred_thousand_is_walked_in_few_rounds() -> None:
    n = 100_000
    keep = np.zeros(n, bool)
    keep[0] = True
    assert (nearest(np.arange(-1, n - 1), keep)[1:] == 0).all()


def test_a_circle_is_an_error() -> None:
    with pytest.raises(ValueError, match="circle"):
        nearest(np.array([1, 0]), np.zeros(2, bool))
