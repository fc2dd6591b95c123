"""Exit statuses of ``trtprofile compare``; 2 is for unusable input, as in every subcommand."""

from __future__ import annotations

__all__ = ["DIFFERENT_PROGRAMS", "NOTHING_COMPARABLE", "REGRESSION"]

REGRESSION = 1
NOTHING_COMPARABLE = 3
DIFFERENT_PROGRAMS = 4
