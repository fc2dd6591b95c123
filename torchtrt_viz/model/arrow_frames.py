"""Frames as Arrow tables and back: the same values, dtypes, categories and missing values on both sides.

Integers and floats are handed over without a copy. What Arrow has no type for (tuples, mappings) becomes
JSON text, by a function that the caller gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas.api.types import is_extension_array_dtype

if TYPE_CHECKING:
    from torchtrt_viz.model.schema import FrameSchema

__all__ = ["JSON", "NULLABLE", "NUMBERS", "OBJECTS", "NoArrowType", "Stored", "column_from_arrow", "to_arrow"]

JSON = "json"
"""What is said of a column whose cells are JSON text."""

OBJECTS = "object"
"""What is said of categories that are no texts of pandas' own dtype."""

NUMBERS = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "bool"),
)
NULLABLE = {
    **{name: name.lower() for name in ("Int8", "Int16", "Int32", "Int64")},
    **{f"UInt{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "Float32": "float32",
    "Float64": "float64",
    "boolean": "bool",
}
"""pandas' nullable dtypes, and the numpy dtype of their values."""


class NoArrowType(ValueError):
    """A column holds what cannot be stored."""


@dataclass(frozen=True)
class Stored:
    """How a column is stored.

    Attributes
    ----------
    dtype
        Its dtype in pandas: one of `NUMBERS` or `NULLABLE`, "category", "string", "str" or "object".
    text
        `JSON` where the cells are JSON text, `OBJECTS` where the categories are objects in pandas, else "".
    categories
        The categories of a categorical column, in order.
    """

    dtype: str
    text: str = ""
    categories: tuple[str, ...] | None = None


def to_arrow(
    frame: pd.DataFrame, *, dumps: Callable[[Any], str] | None = None, schema: FrameSchema | None = None
) -> tuple[pa.Table, dict[str, Stored]]:
    """Return a frame as a table, and how each column is stored; the index is left out.

    Parameters
    ----------
    dumps
        Makes JSON text of a cell that is no text; None: such a column cannot be stored.
    schema
        Documents the columns: unit and meaning become metadata of the fields.

    Raises
    ------
    NoArrowType
        For a column that cannot be stored.
    """
    arrays: list[pa.Array] = []
    fields: list[pa.Field] = []
    stored: dict[str, Stored] = {}
    for name in frame.columns:
        try:
            array, how = _array(frame[name], dumps)
        except (pa.ArrowException, UnicodeError, TypeError) as error:
            raise NoArrowType(f"column {name!r} of dtype {frame[name].dtype}: {error}") from error
        arrays.append(array)
        fields.append(pa.field(str(name), array.type, metadata=_about(schema, str(name), how)))
        stored[str(name)] = how
    # what pandas itself would write, so that read_parquet gives nullable integers and categories
    own = pa.Schema.from_pandas(frame.iloc[:0], preserve_index=False).metadata or {}
    kept = {b"pandas": own[b"pandas"]} if b"pandas" in own else None
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=kept)), stored


def _about(schema: FrameSchema | None, name: str, how: Stored) -> dict[str, str] | None:
    about = {"dtype": how.dtype}
    if how.text:
        about["encoding"] = how.text
    column = None if schema is None else next((one for one in schema.columns if one.name == name), None)
    if column is not None:
        about |= {"meaning": column.meaning, **({"unit": column.unit} if column.unit else {})}
    return about


def _array(column: pd.Series, dumps: Callable[[Any], str] | None) -> tuple[pa.Array, Stored]:
    dtype = str(column.dtype)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _dictionary(column)
    if dtype in NULLABLE:
        values: Any = column.array
        return pa.array(values._data, mask=values._mask), Stored(dtype)
    if dtype in NUMBERS:
        return pa.array(column.to_numpy(), from_pandas=False), Stored(dtype)
    if dtype in ("str", "string", "object"):
        return _texts(column, dtype, dumps)
    raise NoArrowType(f"column {column.name!r} has the dtype {dtype}, which is not stored")


def _dictionary(column: pd.Series) -> tuple[pa.Array, Stored]:
    categories = column.cat.categories
    names = list(categories)
    if column.cat.ordered or not all(isinstance(name, str) for name in names):
        raise NoArrowType(f"column {column.name!r} has categories that are ordered, or no texts")
    codes = column.cat.codes.to_numpy()
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    texts = pa.array(names, pa.string())
    text = OBJECTS if categories.dtype == object else ""
    return pa.DictionaryArray.from_arrays(indices, texts), Stored("category", text, tuple(names))


def _texts(column: pd.Series, dtype: str, dumps: Callable[[Any], str] | None) -> tuple[pa.Array, Stored]:
    if dtype != "object":
        array = pa.array(column, from_pandas=True)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        return array.cast(pa.string()), Stored(dtype)
    cells = column.tolist()
    if all(cell is None or type(cell) is str for cell in cells):
        try:
            return pa.array(cells, pa.string()), Stored(dtype)
        except UnicodeError:  # half of a surrogate pair, which is no text that UTF-8 can hold
            pass
    if dumps is None:
        raise NoArrowType(f"column {column.name!r} holds what is no text")
    return pa.array([dumps(cell) for cell in cells], pa.string()), Stored(dtype, JSON)


def column_from_arrow(
    array: pa.ChunkedArray, how: Stored, *, loads: Callable[[str], Any] | None = None
) -> Any:
    """Return the column that `to_arrow` made an array of, as a frame takes it.

    Raises
    ------
    NoArrowType
        When the array is of another type, lacks values, or holds what is not among the categories.
    """
    if how.dtype == "category":
        return _categorical(array, how.categories or (), how.text)
    if how.dtype in NULLABLE:
        return _nullable(array, how.dtype)
    if how.dtype in NUMBERS:
        values = _numbers(array, how.dtype)
        if array.null_count:
            raise NoArrowType(f"{array.null_count} values are missing in a column of dtype {how.dtype}")
        return values
    if how.dtype in ("str", "string", "object"):
        return _from_texts(array, how, loads)
    raise NoArrowType(f"the dtype {how.dtype[:40]!r} is not one that is stored")


def _numbers(array: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
    wanted = pa.bool_() if dtype == "bool" else pa.from_numpy_dtype(np.dtype(dtype))
    if array.type != wanted:
        raise NoArrowType(f"values of type {array.type}, not {wanted}")
    filled = array.fill_null(False if dtype == "bool" else 0) if array.null_count else array
    chunks = [chunk.to_numpy(zero_copy_only=False) for chunk in filled.chunks]
    # a copy: arrays of Arrow may not be written to, columns of frames may
    whole: NDArray[Any] = np.concatenate(chunks) if chunks else np.empty(0, dtype)
    return whole


def _nullable(array: pa.ChunkedArray, dtype: str) -> Any:
    values = _numbers(array, NULLABLE[dtype])
    missing = (
        np.concatenate([chunk.is_null().to_numpy(zero_copy_only=False) for chunk in array.chunks])
        if array.null_count
        else np.zeros(len(values), bool)
    )
    made: Any = {"F": pd.arrays.FloatingArray, "b": pd.arrays.BooleanArray}.get(
        dtype[0], pd.arrays.IntegerArray
    )
    if array.null_count and dtype[0] in "IU":
        values[missing] = np.iinfo(values.dtype).max if dtype[0] == "U" else -1
    return made(values, missing)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _categorical(array: pa.ChunkedArray, categories: tuple[str, ...], text: str) -> pd.Categorical:
    if not pa.types.is_dictionary(array.type):
        if not _is_text(array.type):
            raise NoArrowType(f"values of type {array.type}, not text")
        array = array.dictionary_encode()
    if not _is_text(array.type.value_type):
        raise NoArrowType(f"values of type {array.type.value_type}, not text")
    known = {name: code for code, name in enumerate(categories)}
    width = np.min_scalar_type(-max(1, len(categories)))
    parts = []
    for chunk in array.chunks:
        names = chunk.dictionary.to_pylist()
        missing = next((name for name in names if name not in known), None)
        if missing is not None:
            raise NoArrowType(f"{str(missing)[:60]!r}, which is none of the {len(categories)} categories")
        table = np.array([*(known[name] for name in names), -1], np.int64).astype(width)
        indices = chunk.indices.fill_null(len(names)) if chunk.indices.null_count else chunk.indices
        places = indices.to_numpy(zero_copy_only=False)
        if len(places) and (places.min() < 0 or places.max() > len(names)):
            raise NoArrowType("codes outside of the dictionary")
        parts.append(table[places])
    codes = np.concatenate(parts) if parts else np.empty(0, width)
    index = pd.Index(list(categories), dtype=object if text == OBJECTS else "str")
    made: pd.Categorical = pd.Categorical.from_codes(codes, categories=index, validate=False)
    return made


def _from_texts(array: pa.ChunkedArray, how: Stored, loads: Callable[[str], Any] | None) -> Any:
    if not _is_text(array.type):
        raise NoArrowType(f"values of type {array.type}, not text")
    cells = array.to_pylist()
    if how.text == JSON:
        if loads is None or None in cells:
            raise NoArrowType("a cell without its JSON text")
        cells = [loads(cell) for cell in cells]
    if how.dtype == "object":
        out = np.empty(len(cells), dtype=object)
        out[:] = cells
        return pd.Series(out, dtype=object)  # pandas 3 would make its own texts of an array
    if how.dtype == "str" and not is_extension_array_dtype(pd.Series([], dtype="str").dtype):
        return np.array(cells, dtype=object)  # pandas 2 has no such dtype: its texts are objects
    make: Any = pd.array  # the stubs know only literal dtypes
    return make(cells, dtype=how.dtype)


def described(stored: Mapping[str, Stored]) -> list[list[str]]:
    """Return how columns are stored, as a list for a document."""
    return [[name, how.dtype, *([how.text] if how.text else [])] for name, how in stored.items()]
