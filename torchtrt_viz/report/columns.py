"""How tables are displayed: column titles that say host or GPU, values with units.

The frames keep plain numbers in one unit; here they become text. All views (page, notebook, terminal, widget)
use the same words, and what was not collected is never shown as 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torchtrt_viz.analysis.catalogue import FRAMES
from torchtrt_viz.analysis.core.readable import engine_names, layer_name
from torchtrt_viz.charts.written import byte_size, duration, number, one_line

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.schema import Column

__all__ = ["MISSING", "Shown", "duration", "missing", "number", "one_line", "quantity", "show", "title"]

MISSING = "–"
"""Stands for what was not collected; never 0."""

Kind = Literal["text", "name", "duration", "percent", "count", "number", "bytes"]

_KINDS: dict[str, Kind] = {"ns": "duration", "%": "percent", "byte": "bytes"}
_SUFFIXES = (("_ns", "ns"), ("_pct", "%"), ("_bytes", "byte"))
"""How names of columns that no schema documents tell their units."""


@dataclass(frozen=True)
class Shown:
    """One displayed column: its title, the sort of its values, and every value as text.

    ``values`` keeps the numbers for sorting and bars, None where there is no number.
    """

    column: str
    title: str
    kind: Kind
    texts: list[str]
    values: list[float | None]
    keys: list[str] | None = None
    """Where the texts are readable names instead: the names that they stand for."""

    @property
    def numeric(self) -> bool:
        """Whether it is aligned and sorted as numbers."""
        return self.kind not in ("text", "name")


def _documented(column: str, table: str) -> Column | None:
    schema = FRAMES.get(table)
    return None if schema is None else next((one for one in schema.columns if one.name == column), None)


def _unit(column: str, table: str) -> str:
    """Return the unit of a column: as documented, else as its name tells."""
    known = _documented(column, table)
    if known is not None:
        return known.unit
    return {"ns": "ns", "pct": "%", "bytes": "byte"}.get(
        column, next((unit for suffix, unit in _SUFFIXES if column.endswith(suffix)), "")
    )


def title(column: str, table: str = "") -> str:
    """Return the words over a column; a duration's title in a documented table says host or GPU."""
    known = _documented(column, table)
    if known is not None and known.title:
        return known.title
    for suffix, unit in _SUFFIXES:
        if column.endswith(suffix):
            return column.removesuffix(suffix).replace("_", " ") + (" %" if unit == "%" else "")
    return {"pct": "share", "ns": "time"}.get(column, column.replace("_", " "))


def show(
    frame: pd.DataFrame, table: str = "", *, limit: int | None = None, readable: bool = False
) -> list[Shown]:
    """Return every column of a table as it is shown, at most ``limit`` rows of it.

    With ``readable`` engines and delegates lose their hashes, and layers are named by their module.
    """
    rows = frame if limit is None else frame.head(limit)
    units = rows["unit"].tolist() if {"unit", "value"} <= set(rows.columns) else None
    out = []
    for column in rows.columns:
        name = str(column)
        values = rows[column].tolist()
        kind = _kind(name, rows[column], _unit(name, table))
        if units is not None and name == "value":
            texts = [quantity(value, str(unit)) for value, unit in zip(values, units, strict=True)]
            out.append(Shown(name, "value", "number", texts, [_plain(value) for value in values]))
            continue
        if units is not None and name == "unit":
            continue  # the values carry the unit
        texts = [_text(value, kind) for value in values]
        keys = None
        if readable and (name in _ENGINES or (name == "name" and table == "layers")):
            keys, texts = texts, _readable(name, texts, rows)
        numbers: list[float | None] = [None] * len(values)
        if kind not in ("text", "name"):
            numbers = [_plain(value) for value in values]
        out.append(Shown(name, title(name, table), kind, texts, numbers, keys))
    return out


_ENGINES = ("engine", "delegate", "run_id")


def _readable(column: str, texts: list[str], frame: pd.DataFrame) -> list[str]:
    if column == "name":
        return [layer_name(text) for text in texts]
    names = engine_names(texts, frame if {"engine", "module"} <= set(frame.columns) else None)
    return [names.get(text, text) for text in texts]


def _kind(column: str, values: pd.Series, unit: str) -> Kind:
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        return "name" if column == "name" else "text"
    return _KINDS.get(unit) or ("count" if pd.api.types.is_integer_dtype(values.dtype) else "number")


def missing(value: Any) -> bool:
    """Whether a cell has no value."""
    import pandas as pd

    if value is None or value is pd.NA:
        return True
    return isinstance(value, float) and math.isnan(value)


def _plain(value: Any) -> float | None:
    if missing(value) or isinstance(value, (str, bool, dict, list, tuple)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _text(value: Any, kind: Kind) -> str:
    if missing(value):
        return MISSING
    if kind == "duration":
        return duration(float(value))
    if kind == "percent":
        return f"{float(value):.1f} %"
    if kind == "bytes":
        return byte_size(float(value))
    if kind == "count":
        return f"{int(value):,}"
    if kind == "number":
        return number(float(value))
    if isinstance(value, (list, tuple)):
        return ", ".join(str(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {part}" for key, part in value.items())
    return str(value)


def quantity(value: Any, unit: str) -> str:
    """Return a value with its unit, scaled where the unit can be."""
    if missing(value):
        return MISSING
    if isinstance(value, (str, bool)):
        return str(value)
    if unit == "ns":
        return duration(float(value))
    if unit in ("bytes", "B"):
        return byte_size(float(value))
    text = number(float(value))
    return f"{text} {unit}".strip()
