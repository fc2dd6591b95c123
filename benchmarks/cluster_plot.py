"""The picture of a run of ``cluster.py``: seconds and peak memory over ranks, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 26, 46, 44
INK, MUTED, GRID = "#1c2128", "#5b6570", "#d5dae0"


def plot(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the picture of the measured sessions."""
    ranks = [float(r["ranks"]) for r in results]
    time = _chart(
        "Time of all tables over ranks, s",
        ranks,
        [
            ("CPU, all processes", "#2f6db5", [r["cpu_s"] for r in results]),
            ("wall", "#c4560b", [r["wall_s"] for r in results]),
        ],
        None,
    )
    memory = _chart(
        "Peak memory of a process, MB (bound: 1,000)",
        ranks,
        [
            ("client with scheduler", "#2f6db5", [r["client_peak"] / 1e6 for r in results]),
            ("largest worker", "#c4560b", [max(r["worker_peaks"]) / 1e6 for r in results]),
        ],
        1000.0,
    )
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {2 * WIDTH} {HEIGHT}" font-family="DejaVu Sans, system-ui, sans-serif" font-size="12">'
        f'<rect width="{2 * WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
        f'<g>{time}</g><g transform="translate({WIDTH},0)">{memory}</g></svg>\n',
        encoding="utf-8",
    )


def _ticks(most: float) -> list[float]:
    step = 10.0 ** len(str(int(most))) / 100
    while most / step > 6:
        step *= 2 if most / step <= 12 else 5
    return [step * i for i in range(int(most / step) + 2)]


def _chart(
    title: str, xs: list[float], lines: list[tuple[str, str, list[float]]], bound: float | None
) -> str:
    ys = _ticks(max([*(y for _, _, values in lines for y in values), bound or 0]))
    top, right = ys[-1], max(xs)

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + x / right * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM),
        )

    out = [f'<text x="{LEFT}" y="18" fill="{INK}" font-weight="bold">{title}</text>']
    for y in ys:
        _, height = at(0, y)
        out.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}" stroke="{GRID}"/>'
            f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end" fill="{MUTED}">{y:,.0f}</text>'
        )
    for x in sorted({0.0, *xs}):
        place, _ = at(x, 0)
        out.append(
            f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" fill="{MUTED}">'
            f"{x:,.0f}</text>"
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle" fill="{MUTED}">ranks</text>')
    if bound is not None:
        _, height = at(0, bound)
        out.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}" stroke="{INK}" '
            'stroke-dasharray="5 4"/>'
        )
    for number, (name, color, values) in enumerate(lines):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*p) for p in zip(xs, values, strict=True)))
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        for point in points.split():
            x, y = point.split(",")
            out.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{color}"/>')
        x = LEFT + number * 190
        out.append(
            f'<rect x="{x}" y="27" width="12" height="4" fill="{color}"/>'
            f'<text x="{x + 17}" y="33" fill="{INK}">{name}</text>'
        )
    return "".join(out)
