"""Integers that may be missing: nullable columns around whole arrays, and the arrays back out of them.

Decoders and algorithms write -1 where there is none, frames say ``<NA>``. Neither way copies the values of a
trace of millions of events more than once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MISSING", "filled", "optional_ints", "parts"]

MISSING = -1
"""What stands for "none" in arrays."""


def optional_ints(values: NDArray[Any]) -> pd.arrays.IntegerArray:
    """Return an array as a nullable column, ``<NA>`` where it is -1; the values are not copied."""
    import pandas as pd

    return pd.arrays.IntegerArray(values, values == MISSING)


def parts(column: pd.Series) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return the values of an integer column, and where it is missing (None: nowhere); not to be written to.

    What stands among the values where the column is missing means nothing.
    """
    array: Any = column.array
    # pandas has no public way to the two arrays that does not copy them
    values, mask = getattr(array, "_data", None), getattr(array, "_mask", None)
    if not isinstance(values, np.ndarray) or not isinstance(mask, np.ndarray):
        return column.to_numpy(), None
    return values, mask if mask.any() else None


def filled(column: pd.Series) -> NDArray[np.int64]:
    """Return an integer column as int64, -1 where it is missing; not to be written to.

    Frames of earlier versions have -1 in columns of dtype int64: they come out the same.
    """
    values, mask = parts(column)
    if mask is None:
        out = values.astype(np.int64, copy=False).view()
    else:
        out = np.where(mask, np.int64(MISSING), values)
    out.flags.writeable = False
    return out
