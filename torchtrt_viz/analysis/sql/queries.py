"""What a query sees: the events' frames by their names, and their details as ``args`` and ``instant_args``.

Over a session each of them begins with the columns that say whose a row is, and there is ``ranks``. Rows of
``spans``, ``tracks`` and ``instants`` have their number in ``row``: what ``spans.track``, ``spans.parent``,
``flows.source``, ``flows.target`` and ``args.row`` refer to (within a recording).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from torchtrt_viz.analysis.sql.reading import Parameters, answered, connection
from torchtrt_viz.model.arrow_frames import to_arrow
from torchtrt_viz.model.places import add_places
from torchtrt_viz.model.schema import EVENTS

if TYPE_CHECKING:
    import duckdb

    from torchtrt_viz.model.args import Args
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["session_sql", "trace_sql"]

_NUMBERED = ("spans", "tracks", "instants")
_DETAILS = ("args", "instant_args")
_TABLES = (*(schema.name for schema in EVENTS), *_DETAILS)
_TYPES = "{'rank': INTEGER, 'cycle': INTEGER, 'recording': BIGINT}"


def trace_sql(
    trace: TraceData,
    query: str,
    parameters: Parameters = None,
    *,
    timeout: float | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Run a query over one trace: see :meth:`torchtrt_viz.Trace.sql`."""
    with connection(progress=progress) as database:
        for schema in EVENTS:
            frame = getattr(trace, schema.name)
            if schema.name == "spans":
                add_places(frame, trace.tracks)
            table, _ = to_arrow(frame, dumps=str)
            if schema.name in _NUMBERED:
                table = table.add_column(0, "row", pa.array(np.arange(len(frame))))
            database.register(schema.name, table)
        for name, args in zip(_DETAILS, (trace.args, trace.instant_args), strict=True):
            # reading them takes longer than all the rest: only for queries that name them
            database.register(name, _details(args if _names(query, name) else None))
        return answered(database, query, parameters, timeout=timeout)


def _names(query: str, table: str) -> bool:
    return re.search(rf"\b{table}\b", query, re.IGNORECASE) is not None


def _details(args: Args | None) -> pa.Table:
    # slow to import with all that it needs
    import orjson

    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    rows: list[int] = []
    texts: list[str] = []
    for row, found in enumerate(() if args is None else args.read()):
        if found:
            rows.append(row)
            texts.append(orjson.dumps(found, default=str, option=options).decode())
    return pa.table({"row": pa.array(rows, pa.int64()), "args": pa.array(texts, pa.string())})


def session_sql(
    folder: str,
    recordings: Sequence[int],
    ranks: pd.DataFrame,
    query: str,
    parameters: Parameters = None,
    *,
    timeout: float | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Run a query over the dataset of a saved session: see :meth:`torchtrt_viz.Session.sql`.

    Parameters
    ----------
    folder
        Where the dataset lies.
    recordings
        Numbers of the recordings that the query sees, in the order of ``ranks``.
    ranks
        What the session says of them.
    """
    described = ranks.copy()
    described.insert(0, "recording", np.asarray(recordings, np.int64))
    table, _ = to_arrow(described, dumps=_text)
    with connection(folder, progress=progress) as database:
        database.register("ranks", table)
        for name in _TABLES:
            if _names(query, name):
                _view(database, folder, name, recordings)
        return answered(database, query, parameters, timeout=timeout)


def _view(database: duckdb.DuckDBPyConnection, folder: str, name: str, recordings: Sequence[int]) -> None:
    files = f"{folder}/{name}/*/*/*/{name}.parquet".replace("'", "''")
    seen = ", ".join(str(int(each)) for each in recordings) or "NULL"
    database.execute(
        f"CREATE VIEW {name} AS SELECT ranks.session, found.rank, ranks.role, ranks.instance, ranks.host, "
        "found.cycle, ranks.stage, found.* EXCLUDE (rank, cycle) "
        f"FROM read_parquet('{files}', hive_partitioning = true, hive_types = {_TYPES}) AS found "
        f"JOIN ranks USING (recording) WHERE found.recording IN ({seen})"
    )


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
