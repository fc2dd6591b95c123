"""Colours of the timeline against WCAG 2.1, level AA: text 4.5 to 1, outlines and edges 3 to 1."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from torchtrt_viz.scene import assets


def parsed(color):
    """Return red, green, blue (0 to 1) and opacity of "#rrggbb" or "rgba(r, g, b, a)"."""
    if color.startswith("#"):
        return [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)], 1.0
    red, green, blue, alpha = map(float, re.findall(r"[\d.]+", color))
    return [red / 255, green / 255, blue / 255], alpha


def over(color, back, opacity=1.0):
    (top, alpha), (below, _) = parsed(color), parsed(back)
    alpha *= opacity
    mixed = [alpha * a + (1 - alpha) * b for a, b in zip(top, below, strict=True)]
    return "#" + "".join(f"{round(255 * part):02x}" for part in mixed)


def luminance(color):
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parsed(color)[0]]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(scope="module", params=[False, True], ids=["light", "dark"])
def theme(request):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    module = json.dumps((assets.STATIC / "theme.js").as_uri())
    program = (
        f"import {{ colors }} from {module}; console.log(JSON.stringify(colors({json.dumps(request.param)})))"
    )
    command = [node, "--input-type=module", "-e", program]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_black_on_white_is_21():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # as published examples have it


def test_text_can_be_read(theme):
    pairs = [("text", "back"), ("text", "panel"), ("muted", "back"), ("muted", "panel"), ("strong", "panel")]
    pairs += [("back", "muted"), ("back", "strong"), ("back", "text")]  # chips, badges, tooltips
    found = {f"{a} on {b}": contrast(theme[a], theme[b]) for a, b in pairs}
    for side in ("host", "gpu"):
        colors = theme[side]
        found[f"{side} title"] = contrast(colors["name"], colors["band"])
        found[f"{side} badge"] = contrast(theme["back"], colors["name"])
        found[f"{side} label"] = contrast(theme["text"], colors["back"])
        found[f"{side} note"] = contrast(theme["muted"], colors["back"])
        for at, fill in enumerate(colors["fill"]):
            found[f"{side} span {at}"] = contrast(colors["text"], fill)
        # what a search does not find is drawn so
        found[f"{side} dimmed"] = contrast(theme["muted"], over(theme["dim"], colors["back"], 0.45))
    assert {what: ratio for what, ratio in found.items() if ratio < 4.5} == {}


def test_edges_and_outlines_can_be_seen(theme):
    found = {"focus": contrast(theme["host"]["name"], theme["panel"])}
    for side in ("host", "gpu"):
        colors = theme[side]
        found[f"{side} selected"] = contrast(theme["strong"], colors["back"])
        found[f"{side} hovered"] = contrast(theme["ink"], colors["back"])
        for at, fill in enumerate(colors["fill"]):
            found[f"{side} edge {at}"] = contrast(over(colors["edge"], fill), colors["back"])
    assert {what: ratio for what, ratio in found.items() if ratio < 3} == {}


def test_the_style_sheet_has_the_same_colours(theme):
    css = (assets.STATIC / "timeline.css").read_text()
    block = re.search(
        r"\.tv-root\.tv-dark \{(.*?)\}" if theme["dark"] else r"\.tv-root \{(.*?)\}", css, re.DOTALL
    )
    values = dict(re.findall(r"--tv-([\w-]+): (#\w+);", block[1]))
    names = {
        "back": "back",
        "panel": "panel",
        "text": "text",
        "muted": "muted",
        "line": "line",
        "strong": "strong",
    }
    assert {name: values[name] for name in names} == {name: theme[key] for name, key in names.items()}
    for side in ("host", "gpu"):
        assert values[side] == theme[side]["name"]
        assert values[f"{side}-back"] == theme[side]["back"]
        assert values[f"{side}-band"] == theme[side]["band"]
    assert values["focus"] == theme["host"]["name"]
