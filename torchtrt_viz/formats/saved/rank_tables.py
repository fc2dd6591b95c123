"""Tables of all ranks that are kept with a saved session, so that nothing has to be worked out again.

A thousand ranks are read in seconds as columns, and their tables take longer than that. What is kept is what
the functions over ranks returned, one Parquet file a function, and is used while the package's version is the
one that worked it out and all recordings are asked for. Without it, or where it is damaged, everything is
worked out as ever.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from torchtrt_viz._version import __version__
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.io.whole_file import write_atomically
from torchtrt_viz.formats.saved.document import begun_with, read_document
from torchtrt_viz.formats.saved.plain import NotPlain, dumps, loads
from torchtrt_viz.formats.saved.tables import read_columns, write_table
from torchtrt_viz.model.arrow_frames import NoArrowType, Stored, column_from_arrow, described, to_arrow
from torchtrt_viz.model.rank_tasks import Work
from torchtrt_viz.model.session_data import KeptFrames

__all__ = ["KeptTables", "keep_tables"]

FORMAT = "torchtrt_viz.saved_tables"
_FOLDER = "tables"
_DOCUMENT = "tables.json"


def _key(function: Callable[..., Any], options: dict[str, Any]) -> str:
    """Return what names a function with its options, those that were left to their defaults included."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    whole = {one.name: one.default for one in parameters if one.default is not one.empty} | options
    return f"{function.__module__}.{function.__qualname__} {dumps(dict(sorted(whole.items())))}"


def keep_tables(
    folder: Path,
    work: Work,
    rows: Sequence[int],
    frames: Sequence[Sequence[pd.DataFrame]],
    skipped: Sequence[tuple[int, str]],
) -> None:
    """Write the frames of all ranks into a saved session; its document comes last.

    Parameters
    ----------
    rows
        Rows of the session's ranks that the frames are of.
    frames
        For each function of ``work`` its frame of each rank.
    skipped
        Rows that could not be read, and why.
    """
    target = folder / _FOLDER
    target.mkdir(exist_ok=True)
    entries = []
    for number, ((function, options), of_ranks) in enumerate(zip(work, frames, strict=True)):
        counts = [len(frame) for frame in of_ranks]
        whole = pd.concat(of_ranks, ignore_index=True)
        try:
            table, stored = to_arrow(whole, dumps=dumps)
        except (NoArrowType, NotPlain):  # worked out again when it is asked for
            continue
        whose = pa.array(np.repeat(np.asarray(rows, np.int64), counts))
        table = table.append_column(pa.field("recording", pa.int64(), False), whose)
        name = f"{function.__name__}-{number}"
        write_atomically(target / f"{name}.parquet", partial(write_table, table))
        categories = {
            column: list(how.categories) for column, how in stored.items() if how.categories is not None
        }
        entries.append(
            {
                "key": _key(function, options),
                "file": name,
                "counts": counts,
                "columns": described(stored),
                "categories": categories,
            }
        )
    content = {
        **begun_with(FORMAT),
        "package": __version__,
        "rows": list(rows),
        "skipped": [list(each) for each in skipped],
        "tables": entries,
    }
    write_atomically(target / _DOCUMENT, json.dumps(content, ensure_ascii=True, indent=1))


class KeptTables:
    """The tables that lie with a saved session, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER

    def __call__(self, work: Work, what: Collection[str] | None, rows: list[int]) -> KeptFrames | None:
        """Return the frames of these functions; None when one was not kept, or not for these recordings."""
        path = self._folder / _DOCUMENT
        if what is not None or not path.is_file():
            return None
        try:
            said = read_document(Source(path), FORMAT)
            read, skipped = [int(row) for row in said["rows"]], [(int(r), str(e)) for r, e in said["skipped"]]
            if said.get("package") != __version__ or sorted([*read, *(row for row, _ in skipped)]) != rows:
                return None
            entries = {entry["key"]: entry for entry in said["tables"]}
            wanted = [entries[_key(function, options)] for function, options in work]
            made = [self._read(entry) for entry in wanted]
            counts = [[int(count) for count in entry["counts"]] for entry in wanted]
        except (TraceFormatError, NoArrowType, NotPlain, KeyError, TypeError, ValueError, pa.ArrowException):
            return None  # it is damaged, and can be worked out
        if any(
            len(one) != len(read) or sum(one) != len(frame) for one, frame in zip(counts, made, strict=True)
        ):
            return None
        return KeptFrames(read, made, counts, skipped)

    def _read(self, entry: Any) -> pd.DataFrame:
        name = str(entry["file"])
        if not name.replace("_", "").replace("-", "").isalnum():
            raise NotPlain(name)
        stored = {
            column[0]: Stored(
                column[1],
                column[2] if len(column) > 2 else "",
                tuple(entry["categories"][column[0]]) if column[1] == "category" else None,
            )
            for column in entry["columns"]
        }
        texts = [column for column, how in stored.items() if how.dtype == "category"]
        table = read_columns(Source(self._folder / f"{name}.parquet"), name, list(stored), texts)
        made = {column: column_from_arrow(table[column], how, loads=loads) for column, how in stored.items()}
        return pd.DataFrame(made, columns=list(stored), index=pd.RangeIndex(table.num_rows))
