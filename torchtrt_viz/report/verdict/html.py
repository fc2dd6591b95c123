"""A verdict as markup: for a page, where buttons lead to its timeline, and for notebooks without scripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from torchtrt_viz.charts.written import escaped as escape
from torchtrt_viz.report.verdict.words import NOTHING, verdict_words

if TYPE_CHECKING:
    from torchtrt_viz.analysis.answers.judgement import Judgement
    from torchtrt_viz.analysis.findings.finding import Finding
    from torchtrt_viz.report.verdict.words import VerdictWords
    from torchtrt_viz.scene.scene import Scene

__all__ = ["static_verdict", "verdict_markup", "verdict_section"]

_MARKED = 1_000  # rows that a page marks for one finding
_COLORS = {"host": "#2f6db5", "gpu": "#c4560b"}


def verdict_section(judged: Judgement, scene: Scene) -> str:
    """Return the section of a page; its buttons show the evidence on the page's timeline, and copy."""
    requests = [_request(judged, finding, scene) for finding in judged.findings]
    return verdict_markup(verdict_words(judged), requests)


def verdict_markup(words: VerdictWords, requests: list[str | None], section: str = "verdict") -> str:
    """Return the section for these words; ``requests`` say what each finding shows, None nothing."""
    items = []
    for finding, request in zip(words.findings, requests, strict=True):
        show = (
            f'<button type="button" data-show="{escape(request)}" title="mark it in the timeline">'
            "show</button>"
            if request
            else ""
        )
        copy = (
            f'<button type="button" data-copy="{escape(finding.frame)}" '
            f'title="copy: {escape(finding.frame)}">frame</button>'
        )
        table = f' <a href="#{escape(finding.table)}">table</a>' if finding.table else ""
        items.append(
            f'<li class="finding {escape(finding.domain)}"><div class="act">{show}{copy}</div>'
            f"<b>{escape(finding.head)}</b><p>{escape(finding.evidence)}{table}</p>"
            f'<p class="saving" title="{escape(finding.remedy)}">{escape(finding.saving)}</p></li>'
        )
    found = f"<ol>{''.join(items)}</ol>" if items else f"<p>{escape(NOTHING)}</p>"
    bars = "".join(
        f'<div class="busy {escape(bar.domain)}"><b>{escape(bar.label)}</b>'
        + (
            f'<span class="bar"><i style="width:{min(100.0, bar.pct):.2f}%"></i></span>'
            if bar.pct is not None
            else ""
        )
        + f"<span>{escape(bar.words)}</span></div>"
        for bar in words.bars
    )
    return (
        f'<section id="{section}" class="verdict"><h2>Verdict</h2><p class="note">{escape(words.window)}</p>'
        f"{bars}{found}</section>"
    )


def _request(judged: Judgement, finding: Finding, scene: Scene) -> str | None:
    """Return what the page's timeline is asked to show, as JSON; None where it has no place."""
    view = finding.evidence.view(judged.trace)
    if view is None:
        return None
    request: dict[str, object] = {"t0": view[0] - scene.origin_ns, "t1": view[1] - scene.origin_ns}
    rows = finding.evidence.rows
    if len(rows):
        request["rows"] = scene.scene_rows(rows[:_MARKED]).tolist()
    return json.dumps(request, separators=(",", ":"))


def static_verdict(words: VerdictWords) -> str:
    """Return the verdict in plain elements with inline styles, which every viewer keeps."""
    parts = [f'<div style="opacity:0.8">{escape(words.window)}</div>']
    for bar in words.bars:
        drawn = ""
        if bar.pct is not None:
            color = _COLORS[bar.domain]
            drawn = (
                '<div style="flex:0 1 240px;min-width:60px;height:12px;'
                'border:1px solid rgba(128,128,128,0.5)">'
                f'<div style="height:12px;width:{min(100.0, bar.pct):.2f}%;background:{color}"></div></div>'
            )
        parts.append(
            '<div style="display:flex;align-items:center;gap:8px;margin:2px 0">'
            f'<div style="width:52px;flex:none;font-weight:600">{escape(bar.label)}</div>{drawn}'
            f"<div>{escape(bar.words)}</div></div>"
        )
    if not words.findings:
        parts.append(f"<div>{escape(NOTHING)}</div>")
    for number, finding in enumerate(words.findings, start=1):
        place = f" ({escape(finding.place)})" if finding.place else ""
        parts.append(
            '<div style="margin:6px 0 0 0;padding-left:22px;text-indent:-22px;max-width:960px">'
            f'<span style="display:inline-block;width:18px;text-indent:0">{number}.</span> '
            f"<b>{escape(finding.head)}</b>"  # apart without styles too: "3" and "55 %" are not 355 %
            f'<div style="text-indent:0">{escape(finding.evidence)}</div>'
            f'<div style="text-indent:0;opacity:0.8">{escape(finding.saving)}</div>'
            '<div style="text-indent:0;opacity:0.8;font-family:monospace;font-size:11px;'
            'overflow-wrap:anywhere">'
            f"{escape(finding.frame)}{place}</div></div>"
        )
    return "".join(parts)
