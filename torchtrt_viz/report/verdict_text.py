"""A verdict as plain text: bars, findings with what proves them, and the expressions for their tables."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from torchtrt_viz.analysis.core.humanize import duration
from torchtrt_viz.model.places import trace_start
from torchtrt_viz.report.columns import duration as exact
from torchtrt_viz.report.columns import one_line

if TYPE_CHECKING:
    from torchtrt_viz.analysis.answers.busy_bars import Bar
    from torchtrt_viz.analysis.answers.judgement import Judgement
    from torchtrt_viz.analysis.findings.finding import Finding

__all__ = ["NOTHING", "bar_words", "place_words", "saving_words", "verdict_text", "window_words"]

_BAR = 20
NOTHING = "Nothing stands out: no finding is larger than noise."


def window_words(judged: Judgement) -> str:
    """Say how long the window is, and how many iterations it holds."""
    if judged.window_ns is None:
        return "sums without a time axis"
    steps = f", {judged.steps:,} {judged.steps_of}" if judged.steps else ""
    return f"{duration(judged.window_ns)}{steps}"


def bar_words(bar: Bar) -> str:
    """Write what a bar shows: share of the window and time, or why there is none."""
    if bar.busy_ns is None:
        return bar.note
    share = "" if bar.pct is None else f"{bar.pct:.3g} % busy, "
    return f"{share}{duration(bar.busy_ns)}"


def saving_words(judged: Judgement, finding: Finding) -> str:
    """Say what a finding could save and on what basis, or why that cannot be said."""
    basis = one_line(finding.basis)
    if finding.could_save_ns is None:
        return f"saving not known: {basis}"
    share = judged.saving_pct(finding)
    of = "the window" if finding.placed and judged.window_ns else one_line(finding.of)
    part = "" if share is None else f", {share:.3g} % of {of}"
    return f"could save {duration(finding.could_save_ns)}{part}: {basis}"


def place_words(judged: Judgement, finding: Finding) -> str:
    """Say where on the time axis a finding is seen best, from the trace's start; empty without a place."""
    view = finding.evidence.view(judged.trace)
    origin = trace_start(judged.trace.spans)
    if view is None or origin is None:
        return ""
    begin = max(0, view[0] - origin)
    return f"at {exact(begin)}, {duration(view[1] - view[0])} in sight"


def verdict_text(judged: Judgement, *, width: int = 100, color: bool = False) -> str:
    """Return the verdict as lines of at most ``width`` characters, expressions excepted.

    Parameters
    ----------
    width
        Of a line; expressions are never broken, so that they can be copied.
    color
        Whether a terminal's bold and dim are used.
    """
    bold, dim, plain = ("\033[1m", "\033[2m", "\033[0m") if color else ("", "", "")
    lines = []
    label = max((len(bar.label) for bar in judged.bars), default=4)
    for at, bar in enumerate(judged.bars):
        drawn = ""
        if bar.pct is not None:
            full = min(_BAR, max(1 if bar.pct > 0 else 0, round(bar.pct / 100 * _BAR)))
            drawn = "#" * full + "." * (_BAR - full) + "  "
        words = f"  ({window_words(judged)})" if at == 0 else ""
        lines.append(f"{bold}{bar.label:<{label}}{plain}  {drawn}{bar_words(bar)}{words}")
    if not judged.findings:
        lines.append(NOTHING)
    for number, finding in enumerate(judged.findings, start=1):
        lead = f"{number}  "
        head = textwrap.wrap(one_line(finding.head), max(20, width - len(lead))) or [""]
        lines.append(f"{lead}{bold}{head[0]}{plain}")
        lines += [f"   {bold}{rest}{plain}" for rest in head[1:]]
        for words in (finding.text, saving_words(judged, finding)):
            lines += [f"   {line}" for line in textwrap.wrap(one_line(words), max(20, width - 3))]
        place = place_words(judged, finding)
        lines.append(f"   {dim}{one_line(finding.frame)}{f'    ({place})' if place else ''}{plain}")
    return "\n".join(lines)
