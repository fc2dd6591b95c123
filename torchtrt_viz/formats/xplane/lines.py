"""Rows of the timeline: which lines of which planes are one, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.producers.rules import GPU, Place
from torchtrt_viz.model import schema

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Rows", "rows_of"]


@dataclass(frozen=True)
class Rows:
    """Tracks made of lines.

    Attributes
    ----------
    of_line
        Track of each line.
    first
        The line that each track is described by.
    """

    of_line: NDArray[np.int32]
    first: list[int]


def rows_of(lines: Mapping[str, NDArray[Any]], used: NDArray[np.bool_]) -> Rows:
    """Lines of one plane with the same id and name are one timeline; lines without events have no track."""
    known: dict[tuple[int, int, int], int] = {}
    first: list[int] = []
    of_line = np.full(len(used), -1, np.int32)
    keys = zip(lines["plane"].tolist(), lines["id"].tolist(), lines["name"].tolist(), strict=True)
    for line, key in enumerate(keys):
        if not used[line]:
            continue
        if key not in known:
            known[key] = len(first)
            first.append(line)
        of_line[line] = known[key]
    return Rows(of_line, first)


def tracks_frame(
    rows: Rows,
    names: Sequence[tuple[str, str]],
    places: Sequence[Place | None],
    processes: Sequence[str | None],
    rank: int,
    operators_of: Sequence[int],
) -> pd.DataFrame:
    """Return ``trace.tracks``: one of each row, then one for the operators stated on each of some of them.

    Parameters
    ----------
    names, places, processes
        Names of plane and line, what they say, and the process, of each line.
    operators_of
        Tracks on which operators are stated.
    """
    import pandas as pd

    order = [*rows.first, *(rows.first[track] for track in operators_of)]
    kept = len(rows.first)
    made: dict[str, list[Any]] = {column: [] for column in ("label", "type", "domain", "thread", "device")}
    for at, line in enumerate(order):
        place, (plane, text) = places[line], names[line]
        domain = None if place is None else place.domain
        device = None if place is None else place.device
        stream = None if place is None else place.stream
        on_stream = domain == GPU and (stream is not None or device is not None)
        label = text or plane or "line without a name"
        if domain == GPU:
            label = f"{plane.removeprefix('/device:')} {label}"
        if at >= kept:
            where = f"GPU {device}" if device is not None else plane
            label = f"{where} ops, stream {stream}" if stream is not None else f"{where} ops"
        made["label"].append(label)
        made["type"].append("other" if at >= kept else "stream" if on_stream else "thread")
        made["domain"].append(None if domain is None else schema.DOMAINS[domain])
        made["thread"].append(text if stream is None else stream)
        made["device"].append(device)
    return schema.TRACKS.frame(
        {
            **made,
            "device": pd.array(made["device"], dtype="Int32"),
            "process": [processes[line] for line in order],
            "process_name": [names[line][0] or None for line in order],
            "rank": rank,
            # what states the operators of a stream stands below it
            "sort_index": [*range(0, 2 * kept, 2), *(2 * track + 1 for track in operators_of)],
        },
        len(order),
    )
