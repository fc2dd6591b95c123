"""Widgets where only text is shown: a terminal's Python or IPython prompt, and print()."""

from __future__ import annotations

import sys

__all__ = ["at_plain_prompt"]


def at_plain_prompt() -> bool:
    """Whether values are shown by Python's own interactive prompt, which asks for nothing but ``repr``."""
    shell = sys.modules.get("IPython")
    return hasattr(sys, "ps1") and (shell is None or shell.get_ipython() is None)
