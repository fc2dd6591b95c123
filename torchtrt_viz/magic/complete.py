"""Tab completion of the magics' options, their choices, and names of captures to compare with."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from torchtrt_viz.magic.options import MAGIC, flags

__all__ = ["complete", "install", "uninstall"]

_LINE = re.compile(rf"\s*%%?{MAGIC}\s")


def complete(shell: Any, context: Any) -> dict[str, Any]:
    """Return what may stand at the cursor, as a matcher of IPython's completer."""
    from IPython.core.completer import SimpleCompletion

    text = str(context.text_until_cursor).rpartition("\n")[2]
    found = _candidates(shell, text) if _LINE.match(text) else None
    if found is None:
        return {"completions": []}
    current = _word(text)
    return {
        "completions": [SimpleCompletion(text=word, type="param") for word in found],
        "matched_fragment": current,
        "suppress": True,  # Python's own names mean nothing here
    }


def _word(text: str) -> str:
    return "" if text[-1:].isspace() else text.rsplit(None, 1)[-1]


def _candidates(shell: Any, text: str) -> list[str] | None:
    """Return the words that fit, None where this completer has nothing to say."""
    current = _word(text)
    words = text.split()
    previous = words[-2] if current else words[-1]
    table = flags()
    for names, choices, takes_value in table:
        if previous in names and takes_value:
            if choices is not None:
                return [choice for choice in choices if choice.startswith(current)]
            if previous == "--compare":
                return [name for name in ("last", *_captures(shell)) if name.startswith(current)]
            return None
    if current.startswith("-"):
        return [name for names, _, _ in table for name in names if name.startswith(current)]
    if not current and text.lstrip().startswith("%%"):
        return [names[-1] for names, _, _ in table]
    return None


def _captures(shell: Any) -> list[str]:
    """Return the user's names that are bound to captures or traces."""
    # slow to import: it needs numpy
    from torchtrt_viz.trace import Trace

    return [
        name
        for name, value in shell.user_ns.items()
        if not name.startswith("_") and (isinstance(value, Trace) or type(value).__name__ == "Capture")
    ]


class _Matcher:
    """The completer as an object that can be recognised and removed again."""

    matcher_api_version = 2
    matcher_priority = 50
    matcher_identifier = "torchtrt_viz"

    def __init__(self, shell: Any) -> None:
        self._complete = partial(complete, shell)
        self.__qualname__ = f"{__name__}.complete"  # IPython looks for it, as functions have it

    def __call__(self, context: Any) -> dict[str, Any]:
        return self._complete(context)


def install(shell: Any) -> None:
    """Add the completer."""
    uninstall(shell)
    shell.Completer.custom_matchers.append(_Matcher(shell))


def uninstall(shell: Any) -> None:
    """Take the completer out."""
    matchers = shell.Completer.custom_matchers
    matchers[:] = [matcher for matcher in matchers if not isinstance(matcher, _Matcher)]
