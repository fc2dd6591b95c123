"""Busy shares of many ranks as strips of plain markup, for viewers that show neither scripts nor images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.report.columns import duration
from torchtrt_viz.report.markup import escape

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["rank_label", "strip", "strips_of_ranks"]

_SHADES = 8
_NAME = "width:190px;flex:none;overflow:hidden;white-space:nowrap;text-overflow:ellipsis"
_COLORS = {"host": ((47, 109, 181), "HOST"), "gpu": ((196, 86, 11), "GPU")}


def strip(shares: bytes, domain: str, height: int = 12) -> str:
    """Return one strip: neighbours of one shade are one element."""
    (red, green, blue), _ = _COLORS[domain]
    values = np.frombuffer(shares, np.uint8).astype(np.int64)
    shades = -(-values * _SHADES // 255)
    changes = np.flatnonzero(np.diff(shades)) + 1
    cells = []
    for begin, end in zip([0, *changes], [*changes, len(shades)], strict=True):
        shade = int(shades[begin])
        color = f"background:rgba({red},{green},{blue},{0.15 + 0.85 * shade / _SHADES:.2f});" if shade else ""
        width = (end - begin) / len(shades) * 100
        cells.append(f'<div style="{color}width:{width:.2f}%;height:{height}px"></div>')
    return "".join(cells)


def strips_of_ranks(strips: pd.DataFrame, limit: int) -> str:
    """Return the strips of up to ``limit`` recordings, the host's and the GPU's under each other.

    All have one scale: the longest recording fills the width, the others less.
    """
    longest = max(int(strips["length_ns"].max()), 1) if len(strips) else 1
    keys = ["session", "rank", "role", "instance", "host", "cycle", "stage"]
    rows: list[str] = []
    groups = list(strips.groupby(keys, dropna=False, sort=False))
    sessions = strips["session"].nunique(dropna=False) > 1
    several = strips["cycle"].nunique(dropna=True) > 1
    for _, part in groups[:limit]:
        first = part.iloc[0]
        label = rank_label(first, sessions, several)
        for number, (_, side) in enumerate(part.iterrows()):
            (red, green, blue), words = _COLORS[str(side["domain"])]
            busy = 100 * int(side["busy_ns"]) / max(int(side["length_ns"]), 1)
            name = escape(label) if number == 0 else ""
            color = f"rgb({red},{green},{blue})"
            rows.append(
                '<div style="display:flex;align-items:center;margin:1px 0">'
                f'<div style="{_NAME}" title="{name}">{name}</div>'
                f'<div style="width:48px;flex:none;font-weight:600">'
                f'<span style="border-left:4px solid {color};padding-left:4px">{words}</span></div>'
                '<div style="flex:1;min-width:40px"><div style="display:flex;font-size:0;'
                f"border:1px solid rgba(128,128,128,0.35);box-sizing:border-box;"
                f'width:{100 * int(side["length_ns"]) / longest:.2f}%">'
                f"{strip(side['shares'], str(side['domain']))}</div></div>"
                f'<div style="width:150px;flex:none;padding-left:8px;white-space:nowrap">{busy:.0f} % of '
                f"{escape(duration(int(side['length_ns'])))}</div></div>"
            )
    return "".join(rows)


def rank_label(row: Any, with_session: bool, with_cycle: bool) -> str:
    """Name a recording: its rank and role, and what else tells it from the others shown."""
    import pandas as pd

    words = ["rank ?" if pd.isna(row["rank"]) else f"rank {int(row['rank'])}"]
    if pd.isna(row["rank"]) and not pd.isna(row["session"]):
        words = [str(row["session"])]
    words += [str(row[column]) for column in ("role", "stage") if not pd.isna(row[column])]
    if with_cycle and not pd.isna(row["cycle"]):
        words.append(f"cycle {int(row['cycle'])}")
    if with_session and not pd.isna(row["rank"]) and not pd.isna(row["session"]):
        words.append(f"of {row['session']}")
    return " ".join(words)
