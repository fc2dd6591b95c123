"""Chosen events of a scene: as one frame, spans and instants alike, and in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.model import schema
from torchtrt_viz.model.merge import stack
from torchtrt_viz.model.places import add_places, trace_start

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData
    from torchtrt_viz.scene.scene import Scene

__all__ = ["chosen_events", "extent_of", "instants_of", "totals_of"]

_TOP_NAMES = 60


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


def extent_of(scene: Scene, rows: NDArray[np.int64]) -> tuple[int, int] | None:
    """Return first start and last end of events, from the scene's origin; None for no events."""
    ends = [(int(start.min()), int((start + dur).max())) for _, start, dur in _timed(scene, rows)]
    return (min(begin for begin, _ in ends), max(end for _, end in ends)) if ends else None


def totals_of(scene: Scene, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Return what chosen events are: how many, from when to when, and by name, host and GPU apart.

    The totals are those that a box has, with whole durations; nested spans count again.
    """
    sides: dict[str, dict[str, list[int]]] = {}
    for (frame, mine), _, dur in _timed(scene, rows):
        names, domains = frame["name"].cat, frame["domain"].cat.codes.to_numpy()[mine]
        codes = names.codes.to_numpy()[mine].astype(np.int64)
        for number, side in enumerate(("host", "gpu")):
            here = np.maximum(domains, 0) == number
            count = np.bincount(codes[here] + 1, minlength=len(names.categories) + 1)
            inside = np.zeros(len(count), np.int64)
            np.add.at(inside, codes[here] + 1, dur[here])
            for code in np.flatnonzero(count).tolist():
                text = "" if code == 0 else str(names.categories[code - 1])
                entry = sides.setdefault(side, {}).setdefault(text, [0, 0])
                entry[0] += int(count[code])
                entry[1] += int(inside[code])
    begin, end = extent_of(scene, rows) or (0, 0)
    totals = []
    for side in sorted(sides, reverse=True):  # host, then gpu
        ordered = sorted(sides[side].items(), key=lambda item: -item[1][1])
        totals.append(
            {
                "side": side,
                "events": sum(count for _, (count, _) in ordered),
                "names": len(ordered),
                "rows": [[text, count, inside] for text, (count, inside) in ordered[:_TOP_NAMES]],
            }
        )
    return {"events": len(rows), "t0": begin, "t1": end, "totals": totals}


def _timed(
    scene: Scene, rows: NDArray[np.int64]
) -> list[tuple[tuple[pd.DataFrame, NDArray[np.int64]], NDArray[np.int64], NDArray[np.int64]]]:
    """Return, per frame, the frame and its rows among these, their start from the origin, and duration."""
    ordered = np.sort(rows)
    out = []
    for block in scene.blocks:
        low, high = np.searchsorted(ordered, [block.begin, block.end])
        if high == low:
            continue
        part = scene.parts[block.part]
        mine = block.frame_rows(ordered[low:high])
        spans = block.frame == "spans"
        frame = part.trace.spans if spans else part.trace.instants
        start = frame["start_ns" if spans else "ts_ns"].array[mine].astype(np.int64)
        dur = frame["dur_ns"].to_numpy()[mine].astype(np.int64) if spans else np.zeros(len(mine), np.int64)
        out.append(((frame, mine), np.asarray(start) + part.shift_ns - scene.origin_ns, dur))
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
