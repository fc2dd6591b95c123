"""A static picture of a trace in plain markup, for viewers that run no scripts.

Notebook viewers drop scripts, style sheets and inline SVG from outputs that they do not trust, and keep
elements with inline styles: so the strip of tracks is made of these. The text form is for terminals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchtrt_viz.analysis.catalogue import TABLES, Table
from torchtrt_viz.analysis.core.humanize import count
from torchtrt_viz.analysis.table_order import table_order
from torchtrt_viz.report.columns import duration, one_line, show
from torchtrt_viz.report.graph_tables import gpu_first
from torchtrt_viz.report.markup import escape
from torchtrt_viz.report.meta import warnings_of
from torchtrt_viz.scene.scene import Scene
from torchtrt_viz.scene.tracks import Track

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["SYNTHETIC", "scene_html", "static_html", "static_text", "table_html"]

_BINS = 160
_SHADES = 8
_COLORS = {"host": ((47, 109, 181), "HOST time"), "gpu": ((196, 86, 11), "GPU time")}
SYNTHETIC = (
    ' <span style="background:#b3005e;color:#fff;padding:0 6px;border-radius:3px">SYNTHETIC DATA</span>'
)


def static_html(trace: TraceData, *, tracks: int = 12, rows: int = 10) -> str:
    """Return a summary of a trace that survives every viewer's sanitiser: strip of tracks, top operators.

    Parameters
    ----------
    tracks
        Tracks in the strip, the busiest of each side first; the text says how many are not shown.
    rows
        Rows per table.
    """
    scene = Scene.of(trace)
    parts = [f'<div style="font-size:13px"><b>{escape(_headline(trace))}</b>']
    if trace.meta.get("synthetic"):
        parts.append(SYNTHETIC)
    parts += [_strip(scene, section, tracks) for section in ("host", "gpu")]
    for name in table_order(trace, "picture"):
        table = TABLES[name]
        frame = _top(trace, table, rows)
        if frame is not None:
            parts.append(table_html(frame, name, heading=table.title, rows=rows))
    notes = warnings_of(trace, limit=5)
    if notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in notes)
        said = count(len(trace.meta["warnings"]), "warning")
        parts.append(f"<details><summary>{said} from loading</summary><ul>")
        parts.append(f"{items}</ul></details>")
    parts.append("</div>")
    return "".join(parts)


def scene_html(scene: Scene, *, tracks: int = 12) -> str:
    """Return what a timeline draws as a strip of tracks, for where no script or no kernel runs."""
    words = " · ".join(_headline(part.trace) for part in scene.parts)
    synthetic = any(part.trace.meta.get("synthetic") for part in scene.parts)
    strips = "".join(_strip(scene, section, tracks) for section in ("host", "gpu"))
    return f'<div style="font-size:13px"><b>{escape(words)}</b>{SYNTHETIC if synthetic else ""}{strips}</div>'


def static_text(trace: TraceData, *, rows: int = 10, width: int = 64) -> str:
    """Return the same as plain text: a line per track, then the top operators and kernels."""
    scene = Scene.of(trace)
    lines = [_headline(trace) + ("  [SYNTHETIC DATA]" if trace.meta.get("synthetic") else "")]
    for section in ("host", "gpu"):
        shown, left = _busiest(scene, section, 12)
        if not shown:
            continue
        lines.append(f"{_COLORS[section][1]}")
        for track in shown:
            levels = np.ceil(_busy(scene, track, width) * 8).astype(int)
            bar = "".join(" ▁▂▃▄▅▆▇█"[level] for level in levels)
            lines.append(f"  {_cut(track.label, 24):<24} |{bar}| {duration(track.busy_ns)} busy")
        if left:
            lines.append(f"  {left} more tracks")
    for name in table_order(trace, "picture"):
        table = TABLES[name]
        frame = _top(trace, table, rows)
        if frame is not None:
            lines += [table.title, *_aligned(frame, name)]
    lines += [f"warning: {note}" for note in warnings_of(trace, limit=5)]
    return "\n".join(lines)


def _headline(trace: TraceData) -> str:
    words = [f"{len(trace.spans):,} spans on {len(trace.tracks):,} tracks"]
    if trace.duration_ns is not None:
        words.append(duration(trace.duration_ns))
    if trace.meta.get("format"):
        words.insert(0, str(trace.meta["format"])[:40])
    return " · ".join(words)


def _busiest(scene: Scene, section: str, limit: int) -> tuple[list[Track], int]:
    """Return the busiest tracks in the order of the screen, and how many others there are."""
    tracks = [track for track in scene.tracks if track.section == section and track.busy_ns]
    chosen = sorted(tracks, key=lambda track: -track.busy_ns)[:limit]
    return [track for track in tracks if track in chosen], len(tracks) - len(chosen)


def _busy(scene: Scene, track: Track, bins: int) -> np.ndarray:
    busy, _, _ = scene.index.columns(
        scene.origin_ns, scene.origin_ns + scene.length_ns, bins, track.collapsed
    )
    shares: np.ndarray = np.clip(busy / (scene.length_ns / bins), 0, 1)
    return shares


def _strip(scene: Scene, section: str, limit: int) -> str:
    shown, left = _busiest(scene, section, limit)
    if not shown:
        return ""
    (red, green, blue), words = _COLORS[section]
    out = [
        f'<div style="margin-top:6px;font-weight:600;color:rgb({red},{green},{blue})">{words}</div>',
    ]
    for track in shown:
        shades = np.ceil(_busy(scene, track, _BINS) * _SHADES).astype(int)
        changes = np.flatnonzero(np.diff(shades)) + 1
        cells = []
        for begin, end in zip([0, *changes], [*changes, _BINS], strict=True):
            shade = int(shades[begin])
            color = (
                f"background:rgba({red},{green},{blue},{0.15 + 0.85 * shade / _SHADES:.2f});" if shade else ""
            )
            cells.append(f'<div style="{color}width:{(end - begin) / _BINS * 100:.3f}%;height:14px"></div>')
        share = track.busy_ns / scene.length_ns * 100
        out.append(
            '<div style="display:flex;align-items:center;margin:1px 0">'
            f'<div style="width:190px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;flex:none"'
            f' title="{escape(track.label)}">{escape(track.label)}</div>'
            '<div style="flex:1;display:flex;font-size:0;border:1px solid rgba(128,128,128,0.35)">'
            f"{''.join(cells)}</div>"
            '<div style="width:150px;flex:none;padding-left:8px">'
            f"{duration(track.busy_ns)} ({share:.0f} %)</div>"
            "</div>"
        )
    if left:
        out.append(f"<div>{left} more tracks are not shown</div>")
    return "".join(out)


def _top(trace: TraceData, table: Table, rows: int) -> pd.DataFrame | None:
    frame = table(trace)
    if frame.empty:
        return None
    if table.schema.name == "operators":
        frame = gpu_first(frame)
    kept = [column for column in table.brief if not frame[column].isna().all()]
    return frame[kept].head(rows)


def table_html(frame: pd.DataFrame, name: str, *, heading: str = "", rows: int = 10) -> str:
    """Return the first rows of a table, without empty columns, as markup that survives every sanitiser.

    Parameters
    ----------
    name
        Which table it is, for the titles of its columns.
    heading
        Shown above it.
    rows
        At most so many; the text says how many are not shown.
    """
    left = len(frame) - rows
    frame = frame.head(rows)
    columns = show(frame.loc[:, frame.notna().any().to_numpy()] if len(frame) else frame, name, readable=True)
    cell = "padding:1px 10px;vertical-align:top;text-align:"
    text = "left;max-width:480px;overflow-wrap:break-word"
    number = "right;white-space:nowrap"
    head = "".join(
        f'<th style="{cell}{number if c.numeric else text}">{escape(c.title)}</th>' for c in columns
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{cell}{number if c.numeric else text}">{escape(c.texts[row])}</td>' for c in columns
        )
        + "</tr>"
        for row in range(len(frame))
    )
    title = f'<div style="margin-top:8px;font-weight:600">{escape(heading)}</div>' if heading else ""
    return (
        f'{title}<div style="overflow-x:auto">'
        f'<table style="border-collapse:collapse;font-size:12px"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
        + (f"<div>{count(left, 'row')} more, not shown</div>" if left > 0 else "")
    )


def _cut(text: str, width: int) -> str:
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1] + "…"


def _aligned(frame: pd.DataFrame, name: str) -> list[str]:
    columns = show(frame, name, readable=True)
    texts = [[c.title, *(_cut(text, 48) for text in c.texts)] for c in columns]
    widths = [max(map(len, column)) for column in texts]
    lines = []
    for row in range(len(frame) + 1):
        cells = [
            text[row].rjust(width) if c.numeric else text[row].ljust(width)
            for text, width, c in zip(texts, widths, columns, strict=True)
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines
