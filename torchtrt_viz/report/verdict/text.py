"""A verdict as plain text: bars, findings with what proves them, and the expressions for their tables."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from torchtrt_viz.charts.written import one_line
from torchtrt_viz.report.verdict.words import NOTHING, verdict_words

if TYPE_CHECKING:
    from torchtrt_viz.analysis.answers.judgement import Judgement
    from torchtrt_viz.report.verdict.words import VerdictWords

__all__ = ["verdict_lines", "verdict_text"]

_BAR = 20


def verdict_text(judged: Judgement, *, width: int = 100, color: bool = False) -> str:
    """Return the verdict as lines of at most ``width`` characters, expressions excepted.

    Parameters
    ----------
    width
        Of a line; expressions are never broken, so that they can be copied.
    color
        Whether a terminal's bold and dim are used.
    """
    return "\n".join(verdict_lines(verdict_words(judged), width=width, color=color))


def verdict_lines(words: VerdictWords, *, width: int = 100, color: bool = False) -> list[str]:
    """Return the words of a verdict as lines; the options are those of `verdict_text`."""
    bold, dim, plain = ("\033[1m", "\033[2m", "\033[0m") if color else ("", "", "")
    lines = []
    label = max((len(bar.label) for bar in words.bars), default=4)
    for at, bar in enumerate(words.bars):
        drawn = ""
        if bar.pct is not None:
            full = min(_BAR, max(1 if bar.pct > 0 else 0, round(bar.pct / 100 * _BAR)))
            drawn = "#" * full + "." * (_BAR - full) + "  "
        window = f"  ({words.window})" if at == 0 else ""
        lines.append(f"{bold}{bar.label:<{label}}{plain}  {drawn}{bar.words}{window}")
    if not words.findings:
        lines.append(NOTHING)
    for number, finding in enumerate(words.findings, start=1):
        lead = f"{number}  "
        head = textwrap.wrap(finding.head, max(20, width - len(lead))) or [""]
        lines.append(f"{lead}{bold}{head[0]}{plain}")
        lines += [f"   {bold}{rest}{plain}" for rest in head[1:]]
        for sentence in (finding.evidence, finding.saving):
            lines += [f"   {line}" for line in textwrap.wrap(sentence, max(20, width - 3))]
        place = f"    ({finding.place})" if finding.place else ""
        lines.append(f"   {dim}{one_line(finding.frame)}{place}{plain}")
    return lines
