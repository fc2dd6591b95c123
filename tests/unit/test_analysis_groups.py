"""Grouped statistics against pandas and plain Python, also where float64 would round."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from torchtrt_viz.analysis.core.groups import Groups


@pytest.mark.parametrize("seed", range(5))
def test_statistics_equal_pandas(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 400
    name = pd.Categorical.from_codes(rng.integers(-1, 6, n), categories=list("abcdefg"))
    number = rng.integers(0, 3, n)
    values = rng.integers(0, 10**6, n)
    groups = Groups.by({"name": name, "number": number})
    wanted = (
        pd.DataFrame({"name": name.astype(object), "number": number, "value": values})
        .groupby(["name", "number"], dropna=False)["value"]
        .agg(["count", "sum", "mean", "median", "min", "max", "std", lambda v: v.quantile(0.9)])
        .reset_index()
    )
    expected = {("" if pd.isna(row[0]) else row[0], row[1]): row[2:] for row in wanted.to_numpy().tolist()}
    found = groups.statistics(values, (0.5, 0.9))
    std = groups.std(values)
    assert groups.size == len(expected)
    for position, (label, b) in enumerate(groups.labels.itertuples(index=False)):
        count, total, mean, median, low, high, deviation, p90 = expected["" if pd.isna(label) else label, b]
        assert found.count[position] == count
        assert found.total[position] == total
        assert found.minimum[position] == low
        assert found.maximum[position] == high
        assert found.mean[position] == pytest.approx(mean)
        assert found.quantiles[0][position] == pytest.approx(median)
        assert found.quantiles[1][position] == pytest.approx(p90)
        assert std[position] == pytest.approx(deviation, nan_ok=True)


def test_sums_do_not_round() -> None:
    values = np.array([2**53, 1, 1, 2**60 + 1, -(2**60)], dtype=np.int64)
    groups = Groups.by({"key": np.zeros(5, np.int64)})
    assert groups.total(values).tolist() == [2**53 + 3]
    assert groups.statistics(values).minimum.tolist() == [-(2**60)]


def test_values_too_far_apart_for_one_key_are_still_sorted_within_groups() -> None:
    values = np.array([2**62, -(2**62), 7, 5, 2**61], dtype=np.int64)
    groups = Groups.by({"key": np.array([3, 3, 9, 9, 3])})
    ordered, offsets = groups.sorted(values)
    assert ordered.tolist() == [-(2**62), 2**61, 2**62, 5, 7]
    assert offsets.tolist() == [0, 3, 5]


def test_no_rows_make_no_groups() -> None:
    groups = Groups.by({"name": pd.Categorical([], categories=["x"])})
    assert groups.size == 0
    assert groups.statistics(np.zeros(0, np.int64)).count.tolist() == []
    assert list(groups.labels.columns) == ["name"]
