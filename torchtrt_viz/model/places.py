"""Where each span ran, as columns beside its track: process, thread, device, stream; and time from the start.

They follow from ``track`` and ``trace.tracks``, so that a loader need not make them, and a code per row is
all they cost: a text is held once per track.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.model.optional_ints import filled, optional_ints
from torchtrt_viz.model.schema import SPANS, TIMINGS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["add_places", "process_label", "trace_start", "without_places"]

_LOCK = threading.Lock()  # a notebook's widget and its cells may ask at the same time
_FROM = ("track", "timing", "start_ns")
_DERIVED = tuple(column.name for column in SPANS.columns if column.derived)


def process_label(process: Any, name: Any) -> str | None:
    """Return how a process is shown, its name and its id where there are both; None when nothing is known."""
    words = [str(word) for word in (name, process) if isinstance(word, (str, int)) and str(word).strip()]
    if len(words) == 2 and words[0] in words[1]:  # some formats name it with its id
        words.pop(0)
    return " ".join(words) or None


def add_places(spans: pd.DataFrame, tracks: pd.DataFrame) -> None:
    """Add the columns to the frame itself, those that it lacks."""
    if all(name in spans.columns for name in _DERIVED) or any(name not in spans.columns for name in _FROM):
        return
    with _LOCK:
        for name, values in _places(spans, tracks).items():
            if name not in spans.columns:
                spans.insert(len(spans.columns), name, values)


def without_places(spans: pd.DataFrame) -> pd.DataFrame:
    """Return the frame without these columns."""
    return spans.drop(columns=[name for name in _DERIVED if name in spans.columns])


def _places(spans: pd.DataFrame, tracks: pd.DataFrame) -> dict[str, Any]:
    track = spans["track"].to_numpy()
    if len(track) and (track.max() >= len(tracks) or track.min() < -1):
        track = np.where((track >= 0) & (track < len(tracks)), track, -1)
    names = tracks["process_name"] if "process_name" in tracks else [None] * len(tracks)
    threads = [_text(thread) for thread in tracks["thread"]]
    is_stream = [kind == "stream" for kind in tracks["type"]]
    device = np.append(filled(tracks["device"]), -1).astype(np.int32)
    return {
        "process": _by_track(
            [process_label(*each) for each in zip(tracks["process"], names, strict=True)], track
        ),
        "thread": _by_track(
            [None if of else thread for thread, of in zip(threads, is_stream, strict=True)], track
        ),
        "device": optional_ints(device[track]),
        "stream": _by_track(
            [thread if of else None for thread, of in zip(threads, is_stream, strict=True)], track
        ),
        "t_ns": _since_start(spans),
    }


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int)) else None


def _by_track(texts: Sequence[str | None], track: NDArray[Any]) -> pd.Categorical:
    import pandas as pd

    known: dict[str, int] = {}
    codes = [-1 if text is None else known.setdefault(text, len(known)) for text in texts]
    table = np.array([*codes, -1], np.min_scalar_type(-max(1, len(known))))  # the last one is of track -1
    return pd.Categorical.from_codes(
        table[track], categories=pd.Index(list(known), dtype="str"), validate=False
    )


def trace_start(spans: pd.DataFrame) -> int | None:
    """Return the first start of a measured span (of any, where none was measured) in ns; None without any."""
    import pandas as pd

    start = spans["start_ns"]
    measured = spans["timing"].cat.codes.to_numpy() == TIMINGS.index("measured")
    first = (start if measured.all() or not measured.any() else start[measured]).min()
    return None if pd.isna(first) else int(first)


def _since_start(spans: pd.DataFrame) -> pd.Series:
    first, start = trace_start(spans), spans["start_ns"]
    if first is None:
        return start
    limits = np.iinfo(np.int64)
    if int(start.max()) - first > limits.max or int(start.min()) - first < limits.min:
        # the sum of what both can be at most: centuries, which only damage brings about
        fits = [limits.min <= int(value) - first <= limits.max for value in start.dropna()]
        start = start.astype("Int64")
        start.loc[start.dropna().index[~np.array(fits)]] = None
    return start - first
