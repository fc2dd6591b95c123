"""What every event's numbers have to be before an algorithm follows them: positions in range, no circles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.saved.tables import damaged
from torchtrt_viz.model.optional_ints import filled

__all__ = ["check_events"]


def check_events(frames: Mapping[str, pd.DataFrame], file: Callable[[str], Source]) -> None:
    """Check positions, times and nesting.

    Parameters
    ----------
    file
        The file of a table, for messages.

    Raises
    ------
    TraceFormatError
        For the first number that cannot be; it names table, row and column.
    """

    def refuse(table: str, column: str, wrong: NDArray[np.bool_], values: Any, expected: str) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            found = f"{column} of {values[row]} in row {row}"
            raise damaged(file(table), table, found, expected)

    spans, tracks = frames["spans"], len(frames["tracks"])
    for table in ("spans", "instants", "counters"):
        track = frames[table]["track"].to_numpy()
        refuse(table, "track", (track < -1) | (track >= tracks), track, f"one of {tracks} tracks, or -1")
    for column in ("dur_ns", "depth"):
        values = spans[column].to_numpy()
        refuse("spans", column, values < 0, values, "0 or more")
    rows = len(spans)
    parent = spans["parent"].to_numpy()
    refuse("spans", "parent", (parent < -1) | (parent >= rows), parent, f"one of {rows} rows, or -1")
    refuse("spans", "parent", _in_circle(parent), parent, "parents that enclose their children")
    flows = frames["flows"]
    for column in ("source", "target"):
        values = filled(flows[column])
        refuse("flows", column, (values < -1) | (values >= rows), values, f"one of {rows} rows of spans")
    start, duration = filled(spans["start_ns"]), spans["dur_ns"].to_numpy()
    beyond = start > np.iinfo(np.int64).max - duration
    refuse("spans", "start_ns", beyond, start, "an end that an int64 holds")


def _in_circle(parent: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether following parents never ends: each step follows twice as many as the one before."""
    above = np.append(parent, -1)  # -1 leads to itself
    for _ in range(len(parent).bit_length() + 1):
        if (above < 0).all():
            break
        above = above[above]
    return above[:-1] >= 0
