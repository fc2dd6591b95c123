"""Events of a scene as one frame: spans, and instants as rows without a duration."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.model import schema
from torchtrt_viz.model.merge import stack
from torchtrt_viz.model.places import add_places, trace_start

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData
    from torchtrt_viz.scene.scene import Scene

__all__ = ["chosen_events", "instants_of"]


def chosen_events(scene: Scene, rows: NDArray[np.int64]) -> pd.DataFrame:
    """Return the events at scene rows, spans first, in the order of the files.

    Spans alone are rows of ``trace.spans`` with their index. Where instants are among them, a first column
    ``event`` says which frame a row (and its index) is of, and the durations of instants are ``<NA>``.
    """
    import pandas as pd

    spans = scene.frame(rows)
    parts = [
        (number, _like_spans(scene.parts[number].trace, frame)) for number, frame in instants_of(scene, rows)
    ]
    if not parts:
        return spans
    frames = [spans.assign(event="span")] if len(spans) else []
    for number, frame in parts:
        if len(scene.parts) > 1:
            frame.insert(0, "part", scene.parts[number].label)
        frames.append(frame.assign(event="instant"))
    out = stack(frames)
    out.index = cast("pd.Index", pd.Index(np.concatenate([frame.index.to_numpy() for frame in frames])))
    out.insert(0, "event", out.pop("event"))
    return out


def instants_of(scene: Scene, rows: NDArray[np.int64]) -> list[tuple[int, pd.DataFrame]]:
    """Return the instants among scene rows, as rows of ``trace.instants``, by the number of the part."""
    ordered = np.sort(rows)
    out = []
    for block in scene.blocks:
        low, high = np.searchsorted(ordered, [block.begin, block.end])
        if block.frame == "instants" and high > low:
            instants = scene.parts[block.part].trace.instants
            out.append((block.part, instants.iloc[block.frame_rows(ordered[low:high])]))
    return out


def _like_spans(trace: TraceData, instants: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    columns = {name: instants[name].array for name in ("name", "kind", "domain", "track", "rank")}
    zeros = np.zeros(len(instants), np.int64)
    start = instants["ts_ns"].to_numpy()
    frame = schema.SPANS.frame(
        {
            **columns,
            "track": instants["track"].to_numpy(),
            "start_ns": start,
            "dur_ns": zeros,
            "self_ns": zeros,
        },
        len(instants),
    )
    for name in ("dur_ns", "self_ns"):
        frame[name] = pd.array([pd.NA] * len(frame), dtype="Int64")
    add_places(frame, trace.tracks)
    begin = trace_start(trace.spans)
    first = trace.instants["ts_ns"].min() if begin is None else begin
    frame["t_ns"] = start - int(first)
    frame.index = instants.index
    return frame
