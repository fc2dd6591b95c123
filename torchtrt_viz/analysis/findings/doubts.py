"""What makes numbers of a capture doubtful: damage that was mended, impossible times, clocks that differ."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchtrt_viz.analysis.core.humanize import count
from torchtrt_viz.analysis.core.masks import among
from torchtrt_viz.analysis.device.launch import launch_stats
from torchtrt_viz.analysis.findings.finding import Evidence, Finding
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["doubts"]

_NAMED = 3


def doubts(trace: TraceData) -> Iterator[Finding]:
    """One finding for all reasons to doubt a number of this capture."""
    spans = trace.spans
    words = []
    warnings = trace.meta.get("warnings") or []
    odd = np.flatnonzero(among(spans["timing"], ("implausible",)))
    if len(odd):
        words.append(f"{count(len(odd), 'span')} with times that cannot be true stand in no sum")
    other = int(among(spans["timing"], ("ticks",)).sum())
    if other:
        words.append(f"{count(other, 'number')} of a unit that the file does not name stand in no sum")
    table = launch_stats(trace)
    early, calls = int(table["early"].sum()), int(table["calls"].sum())
    if early:
        words.append(
            f"{early:,} of {count(calls, 'launch', 'launches')} seem to come after their work: clocks differ"
        )
    if not words and not warnings:
        return
    said = [_cut(str(warning.message)) for warning in warnings[:_NAMED]]
    more = len(warnings) - len(said)
    if more > 0:
        said.append(f"and {count(more, 'more warning', 'more warnings')} from loading")
    text = "; ".join([*words, *said])
    number = len(words) + len(warnings)
    yield Finding(
        f"{text}.",
        0.0,
        len(odd) / max(1, len(spans)),
        "the spans",
        "host",
        "trace.meta['warnings']",
        "record again where a number matters",
        placed=False,
        kind="doubt",
        head=f"{count(number, 'reason')} to doubt a number",
        basis="it says how sure the others are",
        evidence=Evidence.of(trace, odd),
        frame="trace.analysis.repairs()" if warnings else _frame(len(odd)),
    )


def _frame(odd: int) -> str:
    if odd:
        return "trace.spans.query(\"timing == 'implausible'\")"
    return 'trace.analysis.launch_delays().query("queued_ns < 0")'


def _cut(text: str, limit: int = 160) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= limit else line[: limit - 1] + "…"
