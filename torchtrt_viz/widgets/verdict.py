"""`VerdictPanel`: the verdict on a trace above its timeline, with buttons that lead there."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from torchtrt_viz.analysis.answers.judgement import judge
from torchtrt_viz.errors import MissingDependencyError
from torchtrt_viz.report.verdict.html import static_verdict
from torchtrt_viz.report.verdict.words import NOTHING, verdict_words
from torchtrt_viz.scene import assets

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingDependencyError(error.name or "anywidget", "lab", "show a verdict in a notebook") from error

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData
    from torchtrt_viz.widgets.timeline import Timeline

__all__ = ["VerdictPanel"]

_log = logging.getLogger(__name__)


class VerdictPanel(anywidget.AnyWidget):  # type: ignore[misc]
    """Bars and findings of a trace; [show] brings a finding into sight, [frame] hands over its expression.

    Parameters
    ----------
    timeline
        Timeline of the same trace, on which findings are shown.
    theme
        As for the timeline.
    """

    _esm = assets.module("verdict")
    _css = assets.style("verdict")

    words = traitlets.Dict(help="bars and findings in words").tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), "auto").tag(sync=True)

    def __init__(self, trace: TraceData, timeline: Timeline | None = None, *, theme: str = "auto") -> None:
        self.trace = trace
        self.timeline = timeline
        self.judged = judge(trace)
        self._words = verdict_words(self.judged)
        told = asdict(self._words)
        for finding in told["findings"]:
            finding["shown"] = finding["shown"] and timeline is not None
        super().__init__(words={**told, "nothing": NOTHING}, theme=theme)
        self.on_msg(self._on_message)

    def __repr__(self) -> str:
        return f"<VerdictPanel of {len(self.judged.findings)} findings>"

    def static_form(self) -> str:
        """Return the verdict as markup that needs neither scripts nor style sheets."""
        return static_verdict(self._words)

    def show(self, number: int) -> None:
        """Mark and select the spans of a finding (1 is the first) in the timeline, and zoom to the worst.

        Raises
        ------
        IndexError
            When there is no such finding.
        """
        if not 1 <= number <= len(self.judged.findings):
            raise IndexError(f"finding {number}: there are {len(self.judged.findings)}")
        evidence = self.judged.findings[number - 1].evidence
        view = evidence.view(self.trace)
        if self.timeline is None:
            return
        if len(evidence.rows):
            self.timeline.show(evidence.rows.tolist(), zoom=False)
        if view is not None:
            self.timeline.zoom(view[0], max(view[1], view[0] + 1), absolute=True)

    def expression(self, number: int) -> str:
        """Return the expression for the table of a finding, as it runs in this notebook."""
        frame = self.judged.findings[number - 1].frame
        name = _name_of(self.trace)
        return frame if name in (None, "trace") else f"trace = {name}\n{frame}"

    def _on_message(self, _: Any, content: dict[str, Any], buffers: list[Any]) -> None:
        number = content.get("number")
        if not isinstance(number, int) or not 0 <= number < len(self.judged.findings):
            return
        try:
            if content.get("op") == "show":
                self.show(number + 1)
            elif content.get("op") == "frame":
                self.send({"event": "frame", "number": number, "text": self.expression(number + 1)})
        except Exception:  # a message has no cell to fail in
            _log.exception("verdict request %r failed", content.get("op"))


def _name_of(trace: TraceData) -> str | None:
    """Return an expression for the trace in the user's notebook; None where none is known."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        return None
    held = list(shell.user_ns.items())
    for name, value in held:
        if value is trace and not name.startswith("_"):
            return str(name)
    for name, value in held:
        made = getattr(type(value), "__module__", "") == "torchtrt_viz.captures"
        if made and not name.startswith("_") and getattr(value, "trace", None) is trace:
            return f"{name}.trace"
    return None
