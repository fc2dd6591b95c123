"""From rows of a table back to the spans that they were made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.catalogue import TABLES, SpansOf

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["KNOWN", "rows_of"]


KNOWN: dict[str, SpansOf] = {name: table.spans for name, table in TABLES.items() if table.spans is not None}
"""The tables whose rows stand for spans."""


def rows_of(
    trace: TraceData, table: str, selection: pd.DataFrame, by: Sequence[str] = ()
) -> NDArray[np.int64]:
    """Return the rows of ``trace.spans`` that the chosen rows of a table were made of.

    Parameters
    ----------
    table
        One of `KNOWN`.
    selection
        Chosen rows of that table.
    by
        Further attributes that the table was grouped by.
    """
    source = KNOWN[table]
    spans = trace.spans
    kinds = spans["kind"].isin(list(source.kinds)).to_numpy()
    if source.domain is not None:
        kinds = kinds & (spans["domain"] == source.domain).to_numpy()
    column = spans[source.field]
    codes = column.cat.codes.to_numpy()
    position = {str(text): code for code, text in enumerate(column.cat.categories)}
    instance_codes = spans["run_id"].cat.codes.to_numpy()
    instances = {str(text): code for code, text in enumerate(spans["run_id"].cat.categories)}
    attributes: dict[str, NDArray[Any]] = {}
    out: list[NDArray[np.int64]] = []
    for record in selection.to_dict("records"):
        here = kinds & (codes == position.get(str(record[source.column]), -2))
        if source.instance is not None and str(record[source.instance]) in instances:
            here = here & (instance_codes == instances[str(record[source.instance])])
        for name in by:
            here = here & _has(trace, attributes, name, record[name])
        out.append(np.flatnonzero(here))
    return np.unique(np.concatenate(out)) if out else np.empty(0, np.int64)


def _has(trace: TraceData, known: dict[str, NDArray[Any]], name: str, wanted: Any) -> NDArray[np.bool_]:
    # slow to import: it needs pandas
    from torchtrt_viz.analysis.core.attributes import attribute

    if name not in known:
        known[name] = attribute(trace, np.arange(len(trace.spans)), name)
    missing = wanted is None or wanted != wanted
    return np.array([(value is None) if missing else value == wanted for value in known[name]], np.bool_)
