"""Which tracks are of one thread of the operating system, whoever recorded them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.model.optional_ints import filled

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["CALLS", "known_text", "os_threads"]

CALLS = ("thread", "method", "delegate", "engine", "other")
"""Types of tracks on which a thread's calls lie; streams, asynchronous ranges and counters are no threads."""


def os_threads(trace: TraceData) -> NDArray[np.int64]:
    """Return for every track the first track of the same thread.

    Tracks are of one thread when process and thread agree. A recorder that does not name its process means
    the one process in which others saw that thread. Engines' tracks that name no thread are one sequence of
    calls per engine. What is not known is equal to nothing.
    """
    tracks = trace.tracks
    process = [known_text(value) for value in tracks["process"]]
    thread = [known_text(value) for value in tracks["thread"]]
    kind = tracks["type"].astype(object).to_list()
    ranks = filled(tracks["rank"])
    several = len(np.unique(ranks[ranks >= 0])) > 1
    rank = ranks.tolist() if several else [0] * len(tracks)
    host = (tracks["domain"] == "host").to_numpy(dtype=bool, na_value=False)
    processes: dict[tuple[int, str], set[str]] = {}
    for at, (name, within) in enumerate(zip(thread, process, strict=True)):
        if host[at] and name is not None and within is not None:
            processes.setdefault((rank[at], name), set()).add(within)
    out = np.arange(len(tracks))
    first: dict[tuple[Any, ...], int] = {}
    for at, (name, within) in enumerate(zip(thread, process, strict=True)):
        if not host[at] or kind[at] not in CALLS:
            continue
        if name is not None:
            seen = processes.get((rank[at], name), set())
            if within is None and len(seen) > 1:
                continue
            key: tuple[Any, ...] = ("thread", rank[at], within or next(iter(seen), None), name)
        elif within is not None and kind[at] in ("delegate", "engine"):
            key = ("engine", rank[at], within)
        else:
            continue
        out[at] = first.setdefault(key, at)
    return out


def known_text(value: object) -> str | None:
    """Return a number or a name as text; None for what is missing or empty."""
    import pandas as pd

    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return None
    return str(value) or None
