"""Columns of the tables about several runs, and about iterations of one."""

from __future__ import annotations

from torchtrt_viz.analysis.columns.sorts import count, ns, number, percent, text
from torchtrt_viz.model.schema import Column, FrameSchema

__all__ = ["COMPARE", "REGRESSIONS", "SERIES", "SERIES_VALUES", "VARIABILITY"]

_WHAT = (
    text(
        "level",
        "method, delegate, phase, layer, operator, kernel (whatever a device executes), annotation, step, "
        "runtime, memory, communication (on the host), python or other",
    ),
    text("name", "what ran"),
    text("run_id", "its instance; missing: none"),
    text("domain", "host or gpu"),
)

COMPARE = FrameSchema(
    "compare",
    (
        *_WHAT,
        Column(
            "verdict",
            "category",
            "slower, faster, same (any change is certainly below `min_change_pct`), unclear (neither), "
            "added or removed (in one run only)",
        ),
        percent("change_pct", "time in b against a; positive is slower; NA for added and removed"),
        percent("low_pct", "lower end of its confidence interval; NA with fewer than two samples"),
        percent("high_pct", "upper end of its confidence interval; NA with fewer than two samples"),
        ns(
            "a_ns",
            "mean time per iteration (or call) in the first run; NA where it did not run; of ten or more "
            "samples the smallest and largest tenth are drawn in to the rest first",
            "Float64",
        ),
        ns("b_ns", "the same of the second run", "Float64"),
        ns("delta_ns", "b_ns - a_ns; NA where it did not run in one of them", "Float64"),
        count("a_samples", "iterations (or calls) behind a_ns", "Int64"),
        count("b_samples", "iterations (or calls) behind b_ns", "Int64"),
        count("a_calls", "calls within them", "Int64"),
        count("b_calls", "calls within them", "Int64"),
        text("basis", "iteration, call, or mean (an average without scatter: never more than unclear)"),
        number(
            "p_value",
            "corrected for all rows of the table (Holm; a tenth of the false verdicts is kept for the levels "
            "that are not the program itself); NA without a test",
        ),
    ),
    "one row per thing that ran in either of two runs, by verdict, largest difference first",
)

REGRESSIONS = FrameSchema(
    "regressions", COMPARE.columns, "the rows of a comparison that are slower by a threshold or more"
)

SERIES_VALUES = FrameSchema(
    "series_values",
    (
        *_WHAT,
        count("run", "number of the run, from 0"),
        text("label", "its label"),
        ns("ns", "mean time per iteration (or call), the extreme tenths drawn in", "float64"),
        count("samples", "iterations (or calls) behind it"),
    ),
    "one row per run and thing that ran in it",
)

SERIES = FrameSchema(
    "series",
    (
        *_WHAT,
        Column(
            "verdict",
            "category",
            "slower or faster (from `since` on), unclear (no cut stands out against the noise), added or "
            "removed (`since` is the first run with, or without it)",
        ),
        percent("change_pct", "level from `since` on against the level before; NA for added and removed"),
        count("since", "first run at the new level; NA where nothing changed", "Int64"),
        text("label", "its label; missing where nothing changed"),
        ns("before_ns", "mean over the runs before; NA where it did not run", "Float64"),
        ns("after_ns", "mean over the runs from `since` on; NA where it did not run", "Float64"),
        percent(
            "noise_pct",
            "scatter from run to run on either side of the cut (coefficient of variation); NA with fewer "
            "than three runs",
        ),
        count("runs", "runs in which it ran", "Int64"),
        number("p_value", "corrected for all cuts and all rows; NA without a test"),
    ),
    "one row per thing that ran in any of several runs: where it became slower or faster for good",
)

VARIABILITY = FrameSchema(
    "variability",
    (
        text("name", "what ran"),
        text("run_id", "the instance that it belongs to; missing: none"),
        text("domain", "host or gpu"),
        text(
            "basis",
            "iteration: the numbers are of the time per iteration; call: of one call; mean: only an "
            "average was recorded, so that everything but mean_ns is NA",
        ),
        count("samples", "iterations (or calls) that the numbers come from"),
        ns("mean_ns", "mean of the samples", "Float64"),
        ns("median_ns", "median of the samples", "Float64"),
        ns(
            "p90_ns",
            "90th percentile, interpolated; of fewer than ten samples little more than the maximum",
            "Float64",
        ),
        ns(
            "p99_ns",
            "99th percentile, interpolated; of fewer than a hundred little more than the maximum",
            "Float64",
        ),
        ns("min_ns", "least of the samples", "Float64"),
        ns("max_ns", "most of the samples", "Float64"),
        ns("std_ns", "sample standard deviation; NA for one sample", "Float64"),
        percent(
            "cv_pct",
            "coefficient of variation: std_ns in percent of mean_ns; NA for one sample or a mean of 0",
        ),
        count("warmup", "warm-up iterations that were found in the capture (left out if `skip_warmup`)"),
    ),
    "one row per thing that ran: scatter over iterations",
)
