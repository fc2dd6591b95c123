"""A timeline as SVG, drawn without a browser: for papers, issues and reports.

Scene, lanes and level of detail are those of the widget. Spans narrower than a pixel are drawn as pixel
columns whose opacity is the busy share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from torchtrt_viz.errors import OptionError
from torchtrt_viz.formats.io.whole_file import write_atomically
from torchtrt_viz.report.columns import duration
from torchtrt_viz.report.markup import escape
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.scene.tracks import Track

__all__ = ["svg", "write_svg"]

LABELS = 190
ROW = 18
HEAD = 22
_FAINTEST = 0.32
_CHARACTER = 6.9  # width of one, px
_COLORS: dict[str, dict[str, Any]] = {
    "host": {
        "name": "#1f5f9e",
        "back": "#f4f8fc",
        "band": "#dceaf7",
        "fill": ("#a9cbea", "#7fb0dc", "#93cfc9", "#b9bdea", "#9ad4ec", "#c0ccd8", "#8fa6da", "#a7dcc6"),
        "words": "HOST: durations are time on CPU threads",
    },
    "gpu": {
        "name": "#a4480a",
        "back": "#fdf7f0",
        "band": "#fae3cc",
        "fill": ("#f5b56b", "#e98f5c", "#f6d272", "#d7a263", "#f2a48e", "#e9bf9f", "#efc04a", "#dc9478"),
        "words": "GPU: durations are time on the device",
    },
}


def svg(
    scene: Scene,
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    width: int = 1200,
    arrangement: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return a picture of a stretch of time as the text of an SVG file.

    Parameters
    ----------
    start_ns, end_ns
        On the scene's clock; the whole length by default.
    width
        Of the picture in pixels, labels included.
    arrangement
        Tracks that are ``hidden`` or ``collapsed``, as `Timeline.arrangement` has them.

    Raises
    ------
    OptionError
        For an empty stretch of time or a width that leaves no room.
    """
    t0 = scene.origin_ns if start_ns is None else int(start_ns)
    t1 = scene.origin_ns + scene.length_ns if end_ns is None else int(end_ns)
    if t1 <= t0:
        raise OptionError("end_ns", t1, f"more than start_ns, which is {t0}")
    if not LABELS + 100 <= width <= 20_000:
        raise OptionError("width", width, f"{LABELS + 100} to 20000 pixels")
    arranged = arrangement or {}
    hidden, collapsed = set(arranged.get("hidden", ())), set(arranged.get("collapsed", ()))
    plot = width - LABELS
    out: list[str] = []
    y = HEAD
    for section in ("gpu", "host"):
        tracks = [track for track in scene.tracks if track.section == section and track.id not in hidden]
        if not tracks:
            continue
        out.append(_band(section, y, width))
        y += HEAD
        for track in tracks:
            lanes = [track.collapsed] if track.id in collapsed else [lane.lane for lane in track.lanes]
            out.append(_track(scene, track, lanes, t0, t1, plot, y))
            y += ROW * len(lanes) + 3
    synthetic = any(part.trace.meta.get("synthetic") for part in scene.parts)
    note = " · SYNTHETIC DATA" if synthetic else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 4}" '
        f'viewBox="0 0 {width} {y + 4}" font-family="DejaVu Sans, system-ui, sans-serif" font-size="11">'
        f'<rect width="{width}" height="{y + 4}" fill="#ffffff"/>'
        f"{''.join(out)}{_ruler(t0 - scene.origin_ns, t1 - scene.origin_ns, plot, y, note)}</svg>\n"
    )


def write_svg(scene: Scene, path: str | PathLike[str], **options: Any) -> Path:
    """Write `svg` to a file, whole or not at all."""
    return write_atomically(path, svg(scene, **options))


def _band(section: str, y: int, width: int) -> str:
    colors = _COLORS[section]
    return (
        f'<rect y="{y}" width="{width}" height="{HEAD - 2}" fill="{colors["band"]}"/>'
        f'<text x="8" y="{y + 14}" fill="{colors["name"]}" font-weight="bold">{colors["words"]}</text>'
    )


def _track(scene: Scene, track: Track, lanes: list[int], t0: int, t1: int, plot: int, y: int) -> str:
    colors = _COLORS[track.section]
    height = ROW * len(lanes)
    view: dict[str, Any] = scene.index.view(
        t0, t1, plot, np.array(lanes, np.int32), plot // 2, max(1, (t1 - t0) // plot * 24)
    )
    room = int((LABELS - 22) / _CHARACTER)
    label = track.label if len(track.label) <= room else track.label[: room - 1] + "…"
    out = [
        f'<rect y="{y}" width="{LABELS + plot}" height="{height}" fill="{colors["back"]}"/>',
        f'<rect y="{y}" width="4" height="{height}" fill="{colors["name"]}"/>',
        f'<text x="12" y="{y + 13}" fill="#1c2128">{escape(label)}</text>',
    ]
    column = 0
    for at in range(len(lanes)):
        top = y + at * ROW + 1
        if view["mode"][at] == 2:
            here = slice(column * plot, (column + 1) * plot)
            out.append(
                _cells(
                    scene, view["column_busy"][here], view["names"][view["column_name"][here]], colors, top
                )
            )
            column += 1
        for i in range(view["span_begin"][at], view["span_begin"][at + 1]):
            event = len(lanes) == len(track.lanes) and track.lanes[at].role == "instants"
            out.append(_span(scene, view, i, t0, t1, plot, colors, top, track.section == "gpu", event))
    return "".join(out)


def _fill(scene: Scene, name: int, colors: dict[str, Any]) -> str:
    fill: str = colors["fill"][int(scene.name_color[name]) % 8 if name >= 0 else 5]
    return fill


def _cells(scene: Scene, busy: Any, names: Any, colors: dict[str, Any], top: int) -> str:
    """Draw pixel columns; neighbours of one colour and strength (in sixteenths) are one rectangle."""
    strength = np.ceil(busy.astype(float) / 16).astype(int)
    fills = np.array([int(scene.name_color[n]) % 8 if n >= 0 else 5 for n in names])
    changes = np.flatnonzero((np.diff(strength) != 0) | (np.diff(fills) != 0)) + 1
    out = []
    for begin, end in zip([0, *changes], [*changes, len(busy)], strict=True):
        if strength[begin] == 0:
            continue
        alpha = _FAINTEST + (1 - _FAINTEST) * min(1.0, strength[begin] / 16)
        out.append(
            f'<rect x="{LABELS + begin}" y="{top}" width="{end - begin}" height="{ROW - 2}" '
            f'fill="{colors["fill"][fills[begin]]}" opacity="{alpha:.2f}"/>'
        )
    return "".join(out)


def _span(
    scene: Scene,
    view: dict[str, Any],
    i: int,
    t0: int,
    t1: int,
    plot: int,
    colors: dict[str, Any],
    top: int,
    gpu: bool,
    event: bool,
) -> str:
    scale = plot / (t1 - t0)
    length = float(view["span_dur"][i])
    x0 = max(0.0, (float(view["span_start"][i]) - t0) * scale)
    x1 = min(float(plot), (float(view["span_start"][i]) + length - t0) * scale)
    code = int(view["names"][view["span_name"][i]])
    name = scene.names[code] if code >= 0 else "(no name)"
    width = x1 - x0
    alpha = "" if width >= 1 else f' opacity="{_FAINTEST + (1 - _FAINTEST) * max(width, 0):.2f}"'
    words = "event" if event else f"{duration(length)} {'GPU' if gpu else 'host'} time"
    drawn = max(1.0, width - 0.5 if width > 3 else width)
    box = f'x="{LABELS + x0:.2f}" y="{top}" width="{drawn:.2f}" height="{ROW - 2}"'
    parts = [
        f"<g><title>{escape(name)}: {words}</title>",
        f'<rect {box} fill="{_fill(scene, code, colors)}"{alpha}/>',
    ]
    if gpu and width > 3:
        parts.append(
            f'<rect x="{LABELS + x0:.2f}" y="{top + ROW - 4}" width="{drawn:.2f}" height="2" '
            f'fill="{colors["name"]}"/>'
        )
    room = int((width - 6) / _CHARACTER)
    if room >= 4:
        text = name if len(name) <= room else name[: room - 1] + "…"
        parts.append(f'<text x="{LABELS + x0 + 3:.2f}" y="{top + 12}" fill="#10151b">{escape(text)}</text>')
    return "".join([*parts, "</g>"])


def _ruler(t0: int, t1: int, plot: int, bottom: int, note: str) -> str:
    step = _round_step((t1 - t0) / plot * 110)
    out = [f'<text x="8" y="14" fill="#5b6570">{duration(t1 - t0)} in sight{note}</text>']
    tick = math.ceil(t0 / step) * step
    while tick < t1:
        x = LABELS + (tick - t0) / (t1 - t0) * plot
        out.append(
            f'<rect x="{x:.2f}" y="{HEAD - 6}" width="1" height="{bottom - HEAD + 6}" fill="#5a6473" '
            f'opacity="0.18"/>'
            f'<text x="{x + 3:.2f}" y="14" fill="#5b6570">{duration(tick)}</text>'
        )
        tick += step
    return "".join(out)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(max(least, 1e-9)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * 0.999)
