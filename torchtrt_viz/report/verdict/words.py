"""What a verdict says, as words that every view shows: page, notebook, terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchtrt_viz.analysis.core.humanize import duration
from torchtrt_viz.charts.written import duration as exact
from torchtrt_viz.charts.written import one_line
from torchtrt_viz.model.places import trace_start

if TYPE_CHECKING:
    from torchtrt_viz.analysis.answers.busy_bars import Bar
    from torchtrt_viz.analysis.answers.judgement import Judgement
    from torchtrt_viz.analysis.findings.finding import Finding

__all__ = ["NOTHING", "BarWords", "FindingWords", "VerdictWords", "verdict_words"]

NOTHING = "Nothing stands out: no finding is larger than noise."


@dataclass(frozen=True)
class BarWords:
    """One bar: ``pct`` of the window is busy (None: no bar), ``words`` stand beside it."""

    label: str
    domain: str
    pct: float | None
    words: str


@dataclass(frozen=True)
class FindingWords:
    """One finding.

    Attributes
    ----------
    head, evidence, saving, remedy
        Sentences: the finding, what proves it, what it could save or why that is not known, what helps.
    domain
        host or gpu.
    frame
        Expression for the table behind it.
    place
        Where it is on the time axis; empty without a place.
    shown
        Whether a timeline has something to show for it.
    table
        Section of the page with the table behind it; empty: none.
    """

    head: str
    evidence: str
    saving: str
    remedy: str
    domain: str
    frame: str
    place: str
    shown: bool
    table: str = ""


@dataclass(frozen=True)
class VerdictWords:
    """A whole verdict."""

    window: str
    bars: tuple[BarWords, ...]
    findings: tuple[FindingWords, ...]


def verdict_words(judged: Judgement) -> VerdictWords:
    """Return the words for a verdict; no control characters, one line each."""
    origin = trace_start(judged.trace.spans)
    return VerdictWords(
        _window(judged),
        tuple(BarWords(bar.label, bar.domain, bar.pct, _bar(bar)) for bar in judged.bars),
        tuple(
            FindingWords(
                one_line(finding.head),
                one_line(finding.text),
                one_line(_saving(judged, finding)),
                one_line(finding.remedy),
                finding.domain,
                finding.frame,
                _place(judged, finding, origin),
                finding.evidence.view(judged.trace) is not None,
            )
            for finding in judged.findings
        ),
    )


def _window(judged: Judgement) -> str:
    """Say how long the window is, and how many iterations it holds."""
    if judged.window_ns is None:
        return "sums without a time axis"
    steps = f", {judged.steps:,} {judged.steps_of}" if judged.steps else ""
    return f"{duration(judged.window_ns)}{steps}"


def _bar(bar: Bar) -> str:
    """Write what a bar shows: share of the window and time, or why there is none."""
    if bar.busy_ns is None:
        return bar.note
    share = "" if bar.pct is None else f"{bar.pct:.3g} % busy, "
    return f"{share}{duration(bar.busy_ns)}"


def _saving(judged: Judgement, finding: Finding) -> str:
    """Say what a finding could save and on what basis, or why that cannot be said."""
    if finding.could_save_ns is None:
        return f"saving not known: {finding.basis}"
    share = judged.saving_pct(finding)
    of = "the window" if finding.placed and judged.window_ns else finding.of
    part = "" if share is None else f", {share:.3g} % of {of}"
    return f"could save {duration(finding.could_save_ns)}{part}: {finding.basis}"


def _place(judged: Judgement, finding: Finding, origin: int | None) -> str:
    """Say where on the time axis a finding is seen best, from the trace's start; empty without a place."""
    view = finding.evidence.view(judged.trace)
    if view is None or origin is None:
        return ""
    return f"at {exact(max(0, view[0] - origin))}, {duration(view[1] - view[0])} in sight"
