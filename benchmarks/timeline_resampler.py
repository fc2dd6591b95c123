"""plotly-resampler on spans, for `timeline_peers.py`: run by a Python that has plotly < 7 and the package.

    python timeline_resampler.py spans.npz        # lane, start, dur; prints one JSON object

A lane becomes a line that is high while a span runs and low in between: the closest that a tool for time
series comes to a timeline. Zooms are asked for as the figure in the notebook asks for them.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
import plotly.graph_objects as go
from plotly.utils import PlotlyJSONEncoder
from plotly_resampler import FigureResampler
from plotly_resampler.aggregation import NoGapHandler

POINTS = 3_000  # a trace: two for each pixel column of a window 1,500 wide
WIDTH = 1500
LANES = 40


def line_of(start, dur):
    """Points of one lane, in which no two spans overlap: up at every start, down at every end."""
    x = np.column_stack([start, start, start + dur, start + dur]).astype(float).ravel()
    y = np.tile([0.0, 1.0, 1.0, 0.0], len(start))
    return x, y


def busy_shares(x, y, edges):
    """Mean height of a line in every pixel column."""
    area = np.r_[0, np.cumsum(np.diff(x) * (y[1:] + y[:-1]) / 2)]
    return np.diff(np.interp(edges, x, area)) / np.diff(edges)


def main() -> None:
    columns = np.load(sys.argv[1])
    lane, start, dur = columns["lane"], columns["start"], columns["dur"]
    first, last = float(start.min()), float((start + dur).max())
    begin = time.process_time()
    figure = FigureResampler(go.Figure(), default_n_shown_samples=POINTS, default_gap_handler=NoGapHandler())
    exact = []
    for height, number in enumerate(np.argsort(-np.bincount(lane), kind="stable")[:LANES]):
        x, y = line_of(start[lane == number], dur[lane == number])
        exact.append((x, y))
        figure.add_trace(go.Scattergl(mode="lines"), hf_x=x, hf_y=y + 1.2 * height)
    built = time.process_time() - begin
    edges = np.linspace(first, last, WIDTH + 1)
    wrong = [
        np.abs(busy_shares(np.asarray(shown.x, float), np.asarray(shown.y, float) - 1.2 * k, edges)
               - busy_shares(x, y, edges)).mean()
        for k, (shown, (x, y)) in enumerate(zip(figure.data, exact, strict=True))
    ]  # fmt: skip
    zooms, sizes = [], []
    for run in range(5):
        low = first + (last - first) * (0.1 + 0.15 * run)
        begin = time.process_time()
        update = figure.construct_update_data_patch(
            {"xaxis.range[0]": low, "xaxis.range[1]": low + (last - first) / 10}
        )
        text = json.dumps(update, cls=PlotlyJSONEncoder)
        zooms.append((time.process_time() - begin) * 1e3)
        sizes.append(len(text))
    print(
        json.dumps(
            {
                "build_s": built,
                "zoom_ms": zooms,
                "bytes": sizes,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
                "wrong": float(np.mean(wrong)),
            }
        )
    )


if __name__ == "__main__":
    main()
