"""How the log of an engine is told from other text.

Apart from the parser, so that telling what a trace is does not import it.
"""

from __future__ import annotations

import re

__all__ = ["LONGEST_LINE", "NAME_TIME", "looks_like_log"]

LONGEST_LINE = 1 << 20
"""Longer lines are not looked at."""

NAME_TIME = re.compile(r"(\S.*): ([\d.]+) ?ms\s*")
"""A line of a user's profiler: ``layer: 0.0128ms``."""

_MARKS = re.compile(
    r"&&&& (?:RUNNING|PASSED|FAILED)|=== (?:Model|System|Build|Inference|Reporting) Options ==="
    r"|=== Performance summary|=== Profile|^Timing:\s*[\d.]+\s*us -> |Layer Information:"
    r"|^Name: .*, LayerType: \w+, Inputs: \["
    r"|^(?:\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] )?(?:\[I\] )?Average (?:on|over) \d+ runs\b"
    r"|^(?:\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] )?(?:\[I\] )?(?:GPU Compute(?: Time)?|(?:Host )?Latency)"
    r"(?:: min = [\d.]+ ms|[ \r]*\n(?:\[\S+\] )?(?:\[I\] )?min: [\d.]+ ms)",
    re.MULTILINE,
)


def looks_like_log(head: str) -> bool:
    """Tell whether text is a log that `.trtexec_log.parse_log` can read something from."""
    if _MARKS.search(head):
        return True
    run = 0
    for line in head.split("\n", 400)[:400]:
        run = run + 1 if len(line) < LONGEST_LINE and NAME_TIME.fullmatch(line.rstrip()) else 0
        if run >= 3:
            return True
    return False
