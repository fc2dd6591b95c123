"""Print the verdict on a trace, and say which tables follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.analysis.answers.judgement import judge
from torchtrt_viz.analysis.catalogue import TABLES
from torchtrt_viz.analysis.table_order import table_order
from torchtrt_viz.cli.output import console, heading
from torchtrt_viz.cli.streams import say
from torchtrt_viz.report.verdict.session_words import session_words
from torchtrt_viz.report.verdict.text import verdict_lines, verdict_text

if TYPE_CHECKING:
    from torchtrt_viz.analysis.session.overview_frames import OverviewFrames
    from torchtrt_viz.trace import Trace

__all__ = ["print_session_verdict", "print_verdict", "tables_behind"]

_IN_WORDS = ("verdict", "explain")


def print_verdict(trace: Trace) -> None:
    """Print bars and findings; bold and dim only on a terminal that has them."""
    out = console()
    heading(f"verdict: {TABLES['verdict'].title}")
    colored = out.is_terminal and out.color_system is not None
    say(verdict_text(judge(trace), width=min(out.width, 110), color=colored))


def print_session_verdict(made: OverviewFrames) -> None:
    """Print the verdict over the ranks of a session."""
    out = console()
    heading(TABLES["verdict"].title)
    colored = out.is_terminal and out.color_system is not None
    say("\n".join(verdict_lines(session_words(made), width=min(out.width, 110), color=colored)))


def tables_behind(trace: Trace) -> list[str]:
    """Return the tables that the terminal shows after a verdict, the one that explains most first."""
    return [name for name in table_order(trace, "terminal") if name not in _IN_WORDS]
