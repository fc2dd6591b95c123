"""Exact statistics of groups of rows, over whole columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Groups", "Statistics", "exact_sums"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_EXACT = 2**53  # integers up to here are exact in float64
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class Statistics:
    """One value per group: ``quantiles`` holds one array per quantile asked for."""

    count: Ints
    total: Ints
    mean: Floats
    minimum: Ints
    maximum: Ints
    quantiles: list[Floats]


class Groups:
    """Rows in groups.

    Attributes
    ----------
    codes
        Group of each row, 0 to ``size - 1``.
    labels
        One row per group: the values that its rows have in common.
    """

    def __init__(self, codes: Ints, labels: pd.DataFrame) -> None:
        self.codes = codes
        self.labels = labels
        self.size = len(labels)

    @classmethod
    def by(cls, columns: Mapping[str, Any]) -> Groups:
        """Group rows that agree in every column.

        A column is a Series, a Categorical or an array. Groups are numbered in the order of the columns'
        codes; only groups that have rows exist. A missing value is a group of its own.
        """
        codes: Ints | None = None
        sizes: list[int] = []
        values: list[pd.Index] = []
        for column in columns.values():
            column_codes, uniques = _factorize(column)
            column_codes += 1  # 0 is "missing"
            size = len(uniques) + 1
            if codes is None:
                codes = column_codes
            elif _product(sizes) * size > _INT64_MAX:
                raise OverflowError("too many combinations of group columns")
            else:
                codes = codes * size + column_codes
            sizes.append(size)
            values.append(uniques)
        if codes is None:
            raise ValueError("no column to group by")
        present, compact = _compact(codes, _product(sizes))
        labels: dict[str, Any] = {}
        rest = present
        for name, size, uniques in reversed(list(zip(columns, sizes, values, strict=True))):
            labels[name] = _take(uniques, rest % size - 1)
            rest = rest // size
        frame = pd.DataFrame({name: labels[name] for name in columns})
        return cls(compact, frame)

    def count(self, where: NDArray[np.bool_] | None = None) -> Ints:
        """Rows per group, of those where ``where`` is true."""
        codes = self.codes if where is None else self.codes[where]
        return np.bincount(codes, minlength=self.size).astype(np.int64)

    def total(self, values: Ints, where: NDArray[np.bool_] | None = None) -> Ints:
        """Exact sum per group of an integer column."""
        codes = self.codes if where is None else self.codes[where]
        values = values if where is None else values[where]
        return exact_sums(codes, values, self.size)

    def minimum(self, values: Ints) -> Ints:
        """Smallest value per group."""
        out = np.full(self.size, _INT64_MAX, np.int64)
        np.minimum.at(out, self.codes, values)
        return out

    def maximum(self, values: Ints) -> Ints:
        """Largest value per group."""
        out = np.full(self.size, -_INT64_MAX, np.int64)
        np.maximum.at(out, self.codes, values)
        return out

    def std(self, values: Ints) -> Floats:
        """Sample standard deviation per group, NaN for groups of one row."""
        count = self.count()
        mean = np.divide(self.total(values), count, out=np.zeros(self.size), where=count > 0)
        square = np.bincount(self.codes, weights=(values - mean[self.codes]) ** 2, minlength=self.size)
        with np.errstate(invalid="ignore", divide="ignore"):
            out: Floats = np.sqrt(square / np.where(count > 1, count - 1, np.nan))
        return out

    def sorted(self, values: Ints) -> tuple[Ints, Ints]:
        """Return the values sorted within their groups, and where each group begins (size + 1 offsets)."""
        offsets = np.concatenate(([0], np.cumsum(self.count())))
        return _sort_within(self.codes, values, self.size), offsets

    def quantiles(self, values: Ints, quantiles: Sequence[float]) -> list[Floats]:
        """Quantiles per group, interpolated linearly between neighbours; NaN for empty groups."""
        ordered, offsets = self.sorted(values)
        return [_quantile(ordered, offsets, q) for q in quantiles]

    def statistics(self, values: Ints, quantiles: Sequence[float] = (0.5,)) -> Statistics:
        """Statistics of an integer column in each group; of empty groups 0, means and quantiles NaN."""
        ordered, offsets = self.sorted(values)
        count = np.diff(offsets)
        total = self.total(values)
        some = count > 0
        return Statistics(
            count=count,
            total=total,
            mean=np.divide(total, count, out=np.full(self.size, np.nan), where=some),
            minimum=_at(ordered, offsets[:-1], some),
            maximum=_at(ordered, offsets[1:] - 1, some),
            quantiles=[_quantile(ordered, offsets, q) for q in quantiles],
        )

    def first_row(self) -> Ints:
        """Return the first row of each group."""
        out = np.full(self.size, -1, np.int64)
        out[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
        return out


def exact_sums(codes: Ints, values: Ints, size: int) -> Ints:
    """Sum an int64 column per code without rounding."""
    if len(values) == 0:
        return np.zeros(size, np.int64)
    bound = max(abs(int(values.max())), abs(int(values.min()))) * len(values)
    if bound < _EXACT:
        return np.bincount(codes, weights=values, minlength=size).astype(np.int64)
    out = np.zeros(size, np.int64)
    np.add.at(out, codes, values)
    return out


def _factorize(column: Any) -> tuple[Ints, pd.Index]:
    if isinstance(column, pd.Series):
        column = column.array
    if isinstance(column, pd.Categorical):
        return column.codes.astype(np.int64), column.categories
    codes, uniques = pd.factorize(column, sort=False)
    return codes.astype(np.int64), pd.Index(uniques)


def _product(sizes: Sequence[int]) -> int:
    out = 1
    for size in sizes:
        out *= size
    return out


def _compact(codes: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the codes that occur, sorted, and every row's position among them."""
    if size <= max(4 * len(codes), 1 << 20):
        present = np.flatnonzero(np.bincount(codes, minlength=size) if len(codes) else np.zeros(size))
        position = np.zeros(size, np.int64)
        position[present] = np.arange(len(present))
        return present, position[codes]
    present, inverse = np.unique(codes, return_inverse=True)
    return present, inverse.reshape(-1)


def _take(uniques: pd.Index, codes: Ints) -> Any:
    if (codes >= 0).all():
        return uniques.take(codes).to_numpy() if uniques.dtype != object else uniques.take(codes).array
    values = uniques.to_numpy(dtype=object)
    out = np.full(len(codes), None, dtype=object)
    known = codes >= 0
    out[known] = values[codes[known]]
    return out


def _sort_within(codes: Ints, values: Ints, size: int) -> Ints:
    if len(values) == 0:
        return np.zeros(0, np.int64)
    low = int(values.min())
    width = int(values.max()) - low + 1
    if size * width <= _INT64_MAX:
        key = codes * width + (values - low)
        key.sort()
        ordered: Ints = key % width + low
        return ordered
    return values[np.lexsort((values, codes))]


def _at(ordered: Ints, position: Ints, some: NDArray[np.bool_]) -> Ints:
    out = np.zeros(len(position), np.int64)
    out[some] = ordered[position[some]]
    return out


def _quantile(ordered: Ints, offsets: Ints, q: float) -> Floats:
    count = np.diff(offsets)
    out = np.full(len(count), np.nan)
    some = count > 0
    place = q * (count[some] - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, count[some] - 1)
    start = offsets[:-1][some]
    low, high = ordered[start + below], ordered[start + above]
    out[some] = low + (high - low) * (place - below)
    return out
