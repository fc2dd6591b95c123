"""What a saved notebook keeps of a widget: its static form, an output of its own above the widget.

A notebook prefers an output's widget form to every other and shows an error where the widget is gone, so a
static form inside the widget's own output is never seen there. The front end hides it while the widget lives.
"""

from __future__ import annotations

import uuid
from typing import Any

__all__ = ["KeepsStaticForm", "kept_id"]

_NOTE = (
    '<div style="font-size:11px;opacity:0.75">Static form, kept in the notebook. '
    "Run the cell for the live one.</div>"
)


def kept_id() -> str:
    """Return a new value of the trait ``kept``, by which a front end knows the static form of its widget."""
    return uuid.uuid4().hex


class KeepsStaticForm:
    """Mixin of widgets that publish their static form when they are displayed; it comes before the widget."""

    #: names the static form; the front end hides the nearest form of that name; empty: nothing is kept
    kept: Any
    #: whether another output holds the static form already
    kept_elsewhere = False

    def static_form(self) -> str:
        """Return markup that needs neither scripts nor style sheets."""
        raise NotImplementedError

    def text_form(self) -> str:
        """Return what a terminal shows."""
        return repr(self)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Show the widget; where it cannot be shown, the static form is seen instead."""
        bundle = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if bundle is None:
            return None
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        if not self.kept or self.kept_elsewhere:
            return data, metadata
        from IPython.core.getipython import get_ipython

        form = self.static_form()
        shell = get_ipython()
        if getattr(shell, "kernel", None) is None:  # nowhere to put an output of its own
            return {**data, "text/plain": self.text_form(), "text/html": form}, metadata
        shell.display_pub.publish({"text/html": f'<div class="tv-kept-{self.kept}">{form}{_NOTE}</div>'})
        return data, metadata
