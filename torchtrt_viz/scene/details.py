"""The details of one event in a timeline: every field in words, its arguments, and its links."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Any

import numpy as np

from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.places import process_label
from torchtrt_viz.scene.scene import Place, Scene

__all__ = ["Link", "details", "linked_rows", "links"]

MAX_LINKS = 300
_MAX_ARGS = 60
_MAX_TEXT = 2_000


@dataclass(frozen=True)
class Link:
    """An arrow between the chosen event and another one.

    ``outgoing`` is True when the arrow starts at the chosen event; ``name`` is the flow's name, or
    "correlation" where only the producer's correlation id connects the two.
    """

    place: Place
    name: str
    outgoing: bool
    text: str

    def to_dict(self, origin_ns: int) -> dict[str, Any]:
        """Return the link as the front end reads it."""
        return {
            "row": self.place.row,
            "lane": self.place.lane,
            "start": self.place.start_ns - origin_ns,
            "dur": self.place.dur_ns,
            "name": self.name,
            "out": self.outgoing,
            "text": self.text,
        }


def details(scene: Scene, row: int) -> dict[str, Any]:
    """Describe one event: ``fields`` and ``args`` as lists of [label, text], in the order to show them.

    Times are given in ns, as numbers; labels say whether a duration was spent on the host or on the GPU.
    """
    import pandas as pd

    part, block, frame_row = scene.event(row)
    trace = part.trace
    spans = block.frame == "spans"
    event = (trace.spans if spans else trace.instants).iloc[frame_row]
    track = trace.tracks.iloc[int(event["track"])]
    domain = str(event["domain"])
    fields: list[list[Any]] = [["kind", str(event["kind"])]]
    times: dict[str, int] = {}
    if spans:
        start = int(event["start_ns"]) + part.shift_ns
        times["dur"] = int(event["dur_ns"])
        times["self"] = int(event["self_ns"])
        if str(event["timing"]) != "measured":
            fields.append(["timing", str(event["timing"])])
    else:
        start = int(event["ts_ns"]) + part.shift_ns
        fields.append(["state", str(event["state"])])
    times["start"] = start - scene.origin_ns
    fields.append(["track", str(track["label"])])
    process = process_label(track["process"], track.get("process_name"))
    if process is not None:
        fields.append(["process", process])
    if part.label:
        fields.append(["trace", part.label])
    fields += [["start on the trace's base", f"{start - part.shift_ns} ns"]]
    base = trace.meta.get("base_ns")
    if base is not None:
        fields.append(["wall clock", _wall_clock(int(base) + start - part.shift_ns)])
    for label, column in (
        ("rank", "rank"),
        ("iteration", "iteration"),
        ("run", "run_id"),
        ("depth", "depth"),
        ("correlation id", "correlation"),
        ("external id", "external_id"),
    ):
        value = event.get(column)
        if value is None or pd.isna(value):
            continue
        fields.append([label, str(value)])
    args = trace.args if spans else trace.instant_args
    return {
        "row": row,
        "name": str(event["name"]),
        "domain": domain,
        "span": spans,
        "times": times,
        "fields": fields,
        "args": _texts(args[frame_row]) if len(args) else [],
        "frame_row": frame_row,
    }


def _wall_clock(unix_ns: int) -> str:
    from datetime import datetime

    seconds, rest = divmod(unix_ns, 10**9)
    try:
        day = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return f"{unix_ns} ns since 1970"
    return f"{day:%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"


def _texts(args: dict[str, Any]) -> list[list[str]]:
    out = [[str(key), _short(value)] for key, value in list(args.items())[:_MAX_ARGS]]
    if len(args) > _MAX_ARGS:
        out.append(["", f"{len(args) - _MAX_ARGS} more"])
    return out


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + f" ... ({len(text)} characters)"


def linked_rows(scene: Scene, row: int) -> list[tuple[int, str, bool]]:
    """Return (scene row, flow name, outgoing) of everything that the trace links to one span.

    Flows come first; where a launch and its device work carry the same correlation id and no flow joins
    them, that is a link as well.
    """
    part, block, frame_row = scene.event(row)
    if block.frame != "spans":
        return []
    found: dict[int, tuple[str, bool]] = {}
    flows = part.trace.flows
    if len(flows):
        source, target = filled(flows["source"]), filled(flows["target"])
        for ends, others, outgoing in ((source, target, True), (target, source, False)):
            for at in np.flatnonzero(ends == frame_row):
                if others[at] >= 0:
                    name = flows["name"].iloc[at]
                    found.setdefault(int(others[at]), (str(name) if name == name else "flow", outgoing))
    spans = part.trace.spans
    ids = filled(spans["correlation"])
    correlation = int(ids[frame_row])
    if correlation > 0:
        domain = spans["domain"].cat.codes.to_numpy()
        same = np.flatnonzero(ids == correlation)
        for other in same[domain[same] != domain[frame_row]]:
            found.setdefault(int(other), ("correlation", bool(domain[frame_row] == 0)))
    others_rows = scene.scene_rows(np.fromiter(found, np.int64, len(found)), block.part)
    back = {int(scene_row): int(block.frame_rows(np.array([scene_row]))[0]) for scene_row in others_rows}
    return [(scene_row, *found[frame]) for scene_row, frame in back.items()]


def links(scene: Scene, row: int, limit: int = MAX_LINKS) -> tuple[list[Link], int]:
    """Return the links of one span with their places (at most ``limit``), and how many there are."""
    rows = linked_rows(scene, row)
    out = []
    for other, name, outgoing in rows[:limit]:
        place = scene.locate(other)
        if place is not None:
            part, _, frame_row = scene.event(other)
            out.append(Link(place, name, outgoing, str(part.trace.spans["name"].iloc[frame_row])))
    return out, len(rows)
