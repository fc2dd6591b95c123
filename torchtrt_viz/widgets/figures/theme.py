"""Which theme figures have when nobody says: that of plotly's template, else that of the notebook.

A plotly figure keeps its colours wherever it is shown, and Python does not see the notebook around it. Our
widgets do, and note it here.
"""

from __future__ import annotations

from torchtrt_viz.charts.palette import THEMES
from torchtrt_viz.errors import OptionError

__all__ = ["note_theme", "theme_of"]

_noted = ""


def note_theme(theme: str) -> None:
    """Remember the theme of the notebook that shows a widget."""
    global _noted
    _noted = theme if theme in THEMES else ""


def theme_of(theme: str, template: str | None) -> str:
    """Return "light" or "dark" for what was asked for; ``template`` is plotly's default one.

    Raises
    ------
    OptionError
        For a theme that there is not.
    """
    if theme in THEMES:
        return theme
    if theme != "auto":
        raise OptionError("theme", theme, "one of 'auto', 'light', 'dark'")
    if "dark" in (template or ""):
        return "dark"
    return _noted or "light"
