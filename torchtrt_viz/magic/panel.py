"""`CapturePanel`: start and stop a capture by hand, and see what it recorded."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchtrt_viz.capture.options import Option, options_table
from torchtrt_viz.errors import MissingDependencyError, TorchTrtVizError
from torchtrt_viz.report.markup import escape

try:
    import ipywidgets
except ImportError as error:
    raise MissingDependencyError("ipywidgets", "lab", "show the capture panel") from error

if TYPE_CHECKING:
    from torchtrt_viz.captures import Capture
    from torchtrt_viz.trace import Trace

__all__ = ["CapturePanel"]

_TICK_SECONDS = 0.5
_ACTIVITIES = ("auto", "none", "cpu", "cuda", "cpu,cuda")


class CapturePanel(ipywidgets.VBox):  # type: ignore[misc]
    """Options of a capture, a start and a stop button, and the result with its timeline and tables.

    Press start, run cells, press stop. The options are those of :func:`torchtrt_viz.profile`; tooltips
    explain the fields.

    Attributes
    ----------
    capture : Capture or None
        The capture that runs or ran last.
    trace : Trace or None
        What the last finished capture recorded.

    Notes
    -----
    A notebook may deliver a click in a thread of its own, while torch records the thread that starts it:
    starting and stopping therefore happen in the thread that made the panel, between two cells. A stop that
    is pressed while a cell runs takes effect when the cell ends.
    """

    def __init__(self) -> None:
        self.capture: Capture | None = None
        self.trace: Trace | None = None
        self._home = threading.get_ident()
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None  # no event loop to wait for: act at once
        self.fields: dict[str, Any] = {option.name: _field(option) for option in options_table()}
        self.start_button = ipywidgets.Button(description="start", icon="circle", button_style="success")
        self.stop_button = ipywidgets.Button(description="stop", icon="stop", disabled=True)
        self.status = ipywidgets.HTML()
        self.result = ipywidgets.VBox()
        self.start_button.on_click(lambda _: self._at_home(self.start))
        self.stop_button.on_click(lambda _: self._at_home(self.stop))
        self.fields["format"].observe(lambda _: self._show_prefix(), "value")
        self._show_prefix()
        first = ("level", "format", "activities", "path_prefix")
        super().__init__(
            children=[
                ipywidgets.HBox([self.fields[name] for name in first]),
                ipywidgets.HBox([field for name, field in self.fields.items() if name not in first]),
                ipywidgets.HBox([self.start_button, self.stop_button, self.status]),
                self.result,
            ]
        )

    def __repr__(self) -> str:
        return f"<CapturePanel: {self.capture!r}>"

    @property
    def options(self) -> dict[str, Any]:
        """The options as they stand in the fields, for :func:`torchtrt_viz.profile`."""
        values = {name: field.value for name, field in self.fields.items()}
        values["path_prefix"] = values["path_prefix"].strip() or None
        return values

    def start(self) -> None:
        """Start a capture with the options in the fields; what is wrong with them shows in the panel."""
        # slow to import: it needs numpy
        from torchtrt_viz.captures import profile

        try:
            capture = profile(**self.options)
            capture.start()
        except TorchTrtVizError as error:
            self._say(str(error), bad=True)
            return
        self.capture = capture
        self._running(True)
        threading.Thread(target=self._tick, args=(capture,), daemon=True).start()

    def stop(self) -> None:
        """Stop the capture and show what it recorded."""
        capture = self.capture
        if capture is None:
            return
        self._say("reading what was recorded…")
        try:
            capture.stop()
            self.trace = capture.trace
        except TorchTrtVizError as error:
            self._say(str(error), bad=True)
            self._running(capture.state == "running")
            return
        self._running(False)
        for child in self.result.children:
            child.close()
        self.result.children = self._views(self.trace)
        said = [f"{capture.wall_seconds:.2f} s, {len(self.trace.spans):,} spans", *capture.problems]
        self._say("; ".join(said), bad=bool(capture.problems))

    def _views(self, trace: Trace) -> tuple[Any, ...]:
        # slow to import: it needs anywidget
        from torchtrt_viz.widgets.explore import Explorer

        if trace.spans.empty:
            return (ipywidgets.HTML("Nothing was recorded: run something between start and stop."),)
        return (Explorer(trace),)

    def _at_home(self, action: Callable[[], None]) -> None:
        """Run in the thread that made the panel: now if this is it, else when it is free."""
        if self._loop is None or threading.get_ident() == self._home:
            action()
            return
        if action == self.stop:
            self._say("stops when the running cell ends…")
        self._loop.call_soon_threadsafe(action)

    def _tick(self, capture: Capture) -> None:
        while capture is self.capture and capture.state == "running":
            if self.stop_button.disabled is False:
                self._say(f"recording for {capture.wall_seconds:.0f} s")
            time.sleep(_TICK_SECONDS)

    def _running(self, on: bool) -> None:
        self.start_button.disabled = on
        self.stop_button.disabled = not on
        for field in self.fields.values():
            field.disabled = on
        if not on:
            self._show_prefix()

    def _show_prefix(self) -> None:
        # Only formats with sidecar files have a place to put them.
        self.fields["path_prefix"].disabled = self.fields["format"].value == "etdump"

    def _say(self, text: str, bad: bool = False) -> None:
        color = ' style="color:#b3005e"' if bad else ""
        self.status.value = f"<span{color}>{escape(text)}</span>"


def _field(option: Option) -> Any:
    style = {"description_width": "initial"}
    common = {"description": option.name, "tooltip": option.help, "style": style}
    if option.kind == "flag":
        return ipywidgets.Checkbox(value=bool(option.default), indent=False, **common)
    if option.name == "activities":
        return ipywidgets.Dropdown(options=_ACTIVITIES, value=option.default, **common)
    if option.kind == "choice":
        return ipywidgets.Dropdown(options=option.choices, value=option.default, **common)
    return ipywidgets.Text(value=option.default or "", placeholder="folder", **common)
