"""Colours of charts. Cool ones are host time, warm ones GPU time.

Every mark has at least 3:1 against the backgrounds of both themes, and white text on it 4.5:1: one list
serves both, and only text and lines change. Neighbours in a list differ in lightness.
"""

from __future__ import annotations

from torchtrt_viz.errors import OptionError

__all__ = ["GPU", "HOST", "ON_MARK", "REST", "THEMES", "color", "css_class", "style", "theme_colors"]

HOST = ("#3375c3", "#1d7271", "#716abc", "#176e92", "#61768b", "#4c61b9", "#2c8262", "#8053a7")
GPU = ("#b65b0e", "#b73c2e", "#946f0f", "#905a30", "#c04f59", "#796527", "#c0520e", "#955647")
REST = "#6b7681"
ON_MARK = "#ffffff"
"""Text on any mark."""

THEMES: dict[str, dict[str, str]] = {
    "light": {
        "back": "#ffffff",
        "text": "#1c2128",
        "muted": "#5b6570",
        "line": "#d5dae0",
        "panel": "#f6f7f9",
    },
    "dark": {"back": "#14171b", "text": "#e4e8ec", "muted": "#9aa5b1", "line": "#343b44", "panel": "#1c2026"},
}


def color(key: str) -> str:
    """Return the colour of ``host0`` to ``host7``, ``gpu0`` to ``gpu7`` or ``rest``."""
    if key == "rest":
        return REST
    return (HOST if key.startswith("host") else GPU)[int(key[-1])]


def theme_colors(theme: str) -> dict[str, str]:
    """Return the colours of text, lines and background.

    Raises
    ------
    OptionError
        For a theme that there is not.
    """
    if theme not in THEMES:
        raise OptionError("theme", theme, "one of 'auto', 'light', 'dark'")
    return THEMES[theme]


def _variables(theme: str) -> str:
    return "".join(f"--c-{name}:{value};" for name, value in THEMES[theme].items())


def style(theme: str = "auto") -> str:
    """Return the style sheet of pictures.

    ``auto`` follows what is around the picture: ``data-theme`` of the page, a class ``tv-dark`` or
    ``tv-light`` on the picture, else the system's setting.
    """
    if theme == "auto":
        themes = (
            f".tv-pic{{{_variables('light')}}}"
            f"@media (prefers-color-scheme:dark){{.tv-pic{{{_variables('dark')}}}}}"
            f':root[data-theme="light"] .tv-pic,.tv-pic.tv-light{{{_variables("light")}}}'
            f':root[data-theme="dark"] .tv-pic,.tv-pic.tv-dark{{{_variables("dark")}}}'
        )
    else:
        theme_colors(theme)
        themes = f".tv-pic{{{_variables(theme)}}}"
    marks = "".join(
        f".tv-pic .{side[0]}{at}{{fill:{value};background:{value};stroke:{value}}}"
        for side, values in (("host", HOST), ("gpu", GPU))
        for at, value in enumerate(values)
    )
    return f"{themes}{marks}.tv-pic .r{{fill:{REST};background:{REST};stroke:{REST}}}{_RULES}"


def css_class(key: str) -> str:
    """Return the class that `style` gives a colour."""
    return "r" if key == "rest" else key[0] + key[-1]


_RULES = (
    ".tv-pic{color:var(--c-text);margin:0;"
    "font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}"
    ".tv-pic svg{display:block;overflow:hidden}.tv-scroll>svg{margin:0 auto}"
    ".tv-pic rect{stroke:none}.tv-pic rect.box{stroke:var(--c-muted)}"
    ".tv-pic text{fill:var(--c-text);font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}"
    ".tv-pic text.m{fill:var(--c-muted);font-size:11px}"
    ".tv-pic text.o{fill:#fff;font-size:11px}"
    ".tv-pic text.e{text-anchor:end}.tv-pic text.c{text-anchor:middle}"
    ".tv-pic line.g{stroke:var(--c-line)}"
    ".tv-pic path.l,.tv-pic line.l{fill:none;stroke-width:2}"
    ".tv-pic .d{stroke-dasharray:5 4}"
    ".tv-pic .t{fill:var(--c-line);opacity:.45}"
    ".tv-pic circle{stroke:var(--c-back)}.tv-pic circle:hover,.tv-pic rect:hover{opacity:.75}"
    ".tv-pic .box{fill:var(--c-panel)}"
    ".tv-pic path.k{fill:none;stroke:var(--c-muted);stroke-width:1.5}"
    ".tv-pic .x{display:none}"
    ".tv-pic text.h{paint-order:stroke;stroke:var(--c-back);stroke-width:4px}"
    ".tv-pic .f text{font-style:italic}"
    ".tv-scroll{max-height:680px;overflow:auto;border:1px solid var(--c-line);border-radius:3px}"
    ".tv-pic .tv-dim{opacity:.25}.tv-pic svg.b,.tv-pic .n,.tv-pic .f{cursor:pointer}"
    ".tv-pic svg.tv-now rect,.tv-pic g.tv-now rect.box{stroke:var(--c-text);stroke-width:2}"
    ".tv-pic path.tv-now{stroke:var(--c-text);stroke-width:2.5}"
    ".tv-pic svg:focus-visible,.tv-scroll:focus-visible{outline:2px solid var(--c-muted);outline-offset:1px}"
    ".tv-bar{display:flex;flex-wrap:wrap;gap:4px 6px;align-items:center;margin:2px 0 6px}"
    ".tv-bar input{width:170px}"
    ".tv-bar input,.tv-bar button{font:inherit;color:var(--c-text);background:var(--c-panel);"
    "border:1px solid var(--c-muted);border-radius:3px;padding:2px 8px;min-height:24px}"
    ".tv-bar button{cursor:pointer;min-width:26px}.tv-count{color:var(--c-muted);min-width:64px}"
    ".tv-said{flex:1 1 100%;margin:0;min-height:1.4em;overflow-wrap:anywhere}"
    ".tv-pic [data-show]{cursor:pointer}.tv-pic text[data-show]:hover{text-decoration:underline}"
    ".tv-bar [aria-selected=true]{border-width:2px;font-weight:600}"
    ".tv-charts{background:var(--c-back);padding:6px 10px 10px}"
    ".tv-charts .tv-title{font-size:15px;margin:6px 0 2px}"
    ".tv-charts .tv-says{color:var(--c-muted);margin:0 0 6px;overflow-wrap:anywhere}"
    ".tv-charts summary{cursor:pointer;margin-top:6px}"
    ".tv-show{font:inherit;color:var(--c-text);background:var(--c-panel);border:1px solid var(--c-muted);"
    "border-radius:3px;padding:2px 8px;min-height:24px;margin:2px 0 6px}"
    ".tv-legend{display:flex;flex-wrap:wrap;gap:2px 16px;list-style:none;margin:2px 0 6px;padding:0}"
    ".tv-legend li{display:flex;align-items:center;gap:6px}"
    ".tv-legend i{width:12px;height:12px;flex:none}"
)
