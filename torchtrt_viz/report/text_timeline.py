"""A timeline as lines of text: a lane per track, host and GPU apart, for terminals."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass

import numpy as np

from torchtrt_viz.report.characters import can_show, shown_in_encoding
from torchtrt_viz.report.columns import duration, one_line
from torchtrt_viz.report.fitting import clipped
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.scene.tracks import Track

__all__ = ["terminal_width", "text_timeline"]

_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:-=+*%#"
_NARROWEST, _WIDEST = 40, 400
_SIDES = (("host", "HOST time"), ("gpu", "GPU time"))
_SHARE = 8  # "  100.0 %" without its bar
_LABELLED = 6  # cells; a shorter span has no room for its name
_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class _Style:
    """What the drawing is made of."""

    shades: str
    edge: str
    encoding: str


def text_timeline(
    scene: Scene,
    *,
    width: int | None = None,
    encoding: str | None = None,
    view: tuple[int, int] | None = None,
    tracks: int = 8,
) -> str:
    """Draw what lies in sight.

    A cell's character says how much of its time the track was busy. Below a track stand the names of spans
    that are long enough to have one. Host and GPU have sections of their own; sums without a place in time
    are not drawn.

    Parameters
    ----------
    width
        Characters a line, at least 40; by default as wide as the terminal, or as the variable COLUMNS says.
    encoding
        That of the place where it is shown; by default stdout's. Where it lacks block characters, plain
        ASCII is drawn.
    view
        Start and end on the scene's clock; by default everything.
    tracks
        At most so many of each side, the busiest; a line says how many are not shown.
    """
    known = encoding or getattr(sys.stdout, "encoding", None) or "ascii"
    blocks = can_show(_BLOCKS, known)
    style = _Style(_BLOCKS if blocks else _ASCII, "│" if can_show("│", known) and blocks else "|", known)
    columns = min(max(terminal_width() if width is None else width, _NARROWEST), _WIDEST)
    begin, end = view or (scene.origin_ns, scene.origin_ns + scene.length_ns)
    end = max(end, begin + 1)
    sides = [(words, *_busiest(scene, side, tracks)) for side, words in _SIDES]
    shown = [track for _, chosen, _ in sides for track in chosen]
    longest = max([len(one_line(track.label)) for track in shown], default=0)
    label = max(9, min(longest, 24, columns // 4))
    cells = columns - label - _SHARE - 2
    lines = _axis(begin - scene.origin_ns, end - scene.origin_ns, cells, label)
    for words, chosen, left in sides:
        if not chosen:
            continue
        lines.append(words)
        group = ""
        for track in chosen:
            if track.group != group and len({other.group for other in chosen}) > 1:
                group = track.group
                lines.append(clipped(f" {one_line(group)}", columns))
            lines += _lane(scene, track, begin, end, label, cells, style)
        if left:
            lines.append(f"{left} more track{'' if left == 1 else 's'} with less")
    if not shown:
        lines = ["nothing in it has a place on a time axis"]
    return "\n".join(shown_in_encoding(line.rstrip(), style.encoding) for line in lines)


def terminal_width() -> int:
    """Return the width that the variable COLUMNS states, else the terminal's, else 100."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdigit() and int(stated):
        return int(stated)
    return shutil.get_terminal_size((100, 24)).columns


def _busiest(scene: Scene, side: str, limit: int) -> tuple[list[Track], int]:
    """Return the busiest tracks of a side in the order of the screen, and how many others have work."""
    tracks = [track for track in scene.tracks if track.section == side and track.busy_ns]
    chosen = {id(track) for track in sorted(tracks, key=lambda track: -track.busy_ns)[:limit]}
    return [track for track in tracks if id(track) in chosen], max(0, len(tracks) - limit)


def _lane(
    scene: Scene, track: Track, begin: int, end: int, label: int, cells: int, style: _Style
) -> list[str]:
    busy, _, _ = scene.index.columns(begin, end, cells, track.collapsed)
    shares = np.clip(busy * cells / (end - begin), 0, 1)
    levels = np.ceil(shares * (len(style.shades) - 1)).astype(int)
    bar = "".join(style.shades[level] for level in levels)
    name = clipped(one_line(track.label), label).ljust(label)
    share = 100 * float(busy.sum()) / (end - begin)
    lines = [f"{name} {style.edge}{bar}{style.edge}{share:5.1f} %"]
    names = _names(scene, track, begin, end, cells)
    if names.strip():
        lines.append(f"{' ' * label} {style.edge}{names}")
    return lines


def _names(scene: Scene, track: Track, begin: int, end: int, cells: int) -> str:
    """Return a line of names, from the lane of the track on which most spans have room for theirs."""
    best: list[tuple[int, int, str]] = []
    for lane in track.lanes:
        if lane.role != "spans":
            continue
        _, rows, _ = scene.index.columns(begin, end, cells, lane.lane)
        found = _runs(scene, np.asarray(rows))
        # an outer span with the whole line to itself says less than those inside it
        if len(found) > len(best):
            best = found
    line = [" "] * cells
    for first, length, name in best:
        text = clipped(name, length - 1)
        line[first : first + len(text)] = text
    return "".join(line)


def _runs(scene: Scene, rows: np.ndarray) -> list[tuple[int, int, str]]:
    """Return (first cell, cells, name) of spans that fill several cells one after the other."""
    edges = np.flatnonzero(np.diff(rows)) + 1
    out = []
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(rows)], strict=True):
        row = int(rows[first])
        if row >= 0 and last - first >= _LABELLED:
            part, block, frame_row = scene.event(row)
            frame = part.trace.spans if block.frame == "spans" else part.trace.instants
            out.append((first, last - first, one_line(frame["name"].iloc[frame_row])))
    return out


def _axis(begin: int, end: int, cells: int, label: int) -> list[str]:
    """Return a line of times since the trace's start, at round numbers."""
    span = end - begin
    step = next(
        size * 10**power
        for power in range(25)
        for size in _STEPS
        if size * 10**power * max(1, cells // 14) >= span
    )
    line = [" "] * (cells + 1)
    at = -(-begin // step) * step
    while at <= end:
        cell = (at - begin) * cells // span
        text = duration(at)
        if cell + len(text) <= cells:
            line[cell : cell + len(text)] = text
        at += step
    return [f"{'time'.ljust(label)} {' '}{''.join(line)}"]
