"""The verdict on a capture: how busy each side was, and what could make it shorter."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from torchtrt_viz.analysis.answers.busy_bars import Bar, busy_bars, step_words
from torchtrt_viz.analysis.columns.answers import VERDICT
from torchtrt_viz.analysis.core.tables import floats, integers, text
from torchtrt_viz.analysis.findings.finding import Finding
from torchtrt_viz.analysis.findings.looks import ALL
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Judgement", "judge", "verdict"]

_SAVING_PCT = 1.0
_STAKE_PCT = 3.0
_OF_A_KIND = 2
_UNSAID = 2  # findings whose saving cannot be said that keep a place
_CAVEATS = ("unexplained", "nothing recorded", "doubt")  # about the recording: last, in this order


@dataclass(frozen=True)
class Judgement:
    """What a verdict says, with the spans that prove it.

    Attributes
    ----------
    trace
        The capture.
    window_ns
        Its length; None without a time axis.
    steps, steps_of
        How many iterations it holds, and the word for them.
    bars
        Busy share of the host and of each device.
    findings
        The findings, in their order.
    """

    trace: TraceData
    window_ns: int | None
    steps: int
    steps_of: str
    bars: tuple[Bar, ...]
    findings: tuple[Finding, ...]

    def frame(self) -> pd.DataFrame:
        """Return the findings as the frame `verdict`."""
        found = self.findings
        views = [finding.evidence.view(self.trace) for finding in found]
        saving = [None if one.could_save_ns is None else float(one.could_save_ns) for one in found]
        made = pd.DataFrame(
            {
                "number": pd.Series(range(1, len(found) + 1), dtype="int64"),
                "finding": text([one.head for one in found]),
                "evidence": text([one.text for one in found]),
                "could_save_ns": floats([_nan(value) for value in saving]),
                "could_save_pct": floats([_nan(self.saving_pct(one)) for one in found]),
                "basis": text([one.basis for one in found]),
                "at_stake_ns": floats([one.impact_ns if one.impact_ns else float("nan") for one in found]),
                "at_stake_pct": floats([100.0 * one.share for one in found]),
                "of": text([one.of for one in found]),
                "domain": text([one.domain for one in found]),
                "kind": text([one.kind for one in found]),
                "spans": integers(
                    [len(one.evidence.rows) for one in found], [len(one.evidence.rows) > 0 for one in found]
                ),
                "start_ns": integers([0 if view is None else view[0] for view in views], _known(views)),
                "end_ns": integers([0 if view is None else view[1] for view in views], _known(views)),
                "remedy": text([one.remedy for one in found]),
                "frame": text([one.frame for one in found]),
            }
        )
        made = VERDICT.typed(made)
        made.attrs.update(
            window_ns=self.window_ns,
            steps=self.steps,
            bars=[
                {"label": bar.label, "busy_ns": bar.busy_ns, "pct": bar.pct, "note": bar.note}
                for bar in self.bars
            ],
        )
        return made

    def saving_pct(self, finding: Finding) -> float | None:
        """Return the share that a finding could save, of the window or else of what it is a share of."""
        saving = finding.could_save_ns
        if saving is None:
            return None
        if finding.placed and self.window_ns:
            return 100.0 * saving / self.window_ns
        return 100.0 * finding.share * saving / finding.impact_ns if finding.impact_ns else None


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _known(views: list[tuple[int, int] | None]) -> list[bool]:
    return [view is not None for view in views]


def judge(trace: TraceData, *, top: int = 7) -> Judgement:
    """Return the verdict on a capture, with the spans behind each finding; as :func:`verdict`."""
    if not isinstance(top, int) or isinstance(top, bool) or top < 1:
        raise OptionError("top", top, "a number of findings, 1 or more")
    window, bars = busy_bars(trace)
    steps, noun = step_words(trace)
    made = Judgement(trace, window, steps, noun, tuple(bars), ())
    found = [finding for look in ALL for finding in look(trace)]
    stakes = [one for one in found if _matters(made, one)]
    saving = [one for one in stakes if one.kind not in _CAVEATS and one.could_save_ns is not None]
    unsaid = [one for one in stakes if one.kind not in _CAVEATS and one.could_save_ns is None]
    caveats = sorted(
        (one for one in stakes if one.kind in _CAVEATS), key=lambda one: _CAVEATS.index(one.kind)
    )
    first = _of_each_kind(sorted(saving, key=lambda one: -(made.saving_pct(one) or 0.0)))
    rest = _of_each_kind(sorted(unsaid, key=lambda one: -one.weight(window)))
    last = caveats[: max(0, top - 1)][-2:]
    room = top - len(last)
    kept = first[: max(1, room - min(_UNSAID, len(rest)))]
    chosen = (*kept, *rest[: room - len(kept)], *last)[:top]
    return Judgement(trace, window, steps, noun, tuple(bars), chosen)


def _matters(made: Judgement, finding: Finding) -> bool:
    """Say whether a finding is worth a line: by what it could save, else by what is at stake."""
    if finding.kind == "doubt":
        return True
    saving = made.saving_pct(finding)
    if saving is not None:
        return saving >= _SAVING_PCT
    least = _SAVING_PCT if finding.kind == "queueing" else _STAKE_PCT
    return 100.0 * finding.weight(made.window_ns) >= least


def _of_each_kind(findings: list[Finding]) -> list[Finding]:
    """Leave out what several devices or engines repeat: the largest of each kind stay."""
    seen: Counter[str] = Counter()
    out = []
    for finding in findings:
        seen[finding.kind] += 1
        if seen[finding.kind] <= _OF_A_KIND:
            out.append(finding)
    return out


@returns(VERDICT)
def verdict(trace: TraceData, *, top: int = 7) -> pd.DataFrame:
    """Say where the time of a capture went, and what could make it shorter.

    Parameters
    ----------
    top
        How many findings at most.

    Returns
    -------
    pandas.DataFrame
        One row per finding, the most time that could be saved first; none when nothing stands out.

        Findings whose saving cannot be said come after those, by their time at stake; reasons to doubt a
        number come last. What noise could turn around is left out. ``attrs`` holds ``window_ns``, ``steps``
        and ``bars`` (label, busy_ns, pct and note of the host and of each device, which are never added).

    Raises
    ------
    OptionError
        For a ``top`` below 1.

    Examples
    --------
    >>> table = tv.analysis.verdict(trace)
    >>> [bar["label"] for bar in table.attrs["bars"]]
    ['HOST', 'GPU']
    """
    return judge(trace, top=top).frame()
