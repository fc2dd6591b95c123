"""Where a call stands in the user's program, out of the frames that were recorded with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["CallSite", "CallSites"]

_MAX_FRAMES = 256
_MAX_TEXT = 1024
#: Frames of torch itself, of wrappers and of the interpreter: the call that a user wrote is further out.
_TORCH = re.compile(
    r"(?:site|dist)-packages[/\\]torch[/\\]|(?:^|[/\\])torch[/\\](?:distributed|nn|autograd|optim|utils|fx|_\w+)"
    r"(?:[/\\]|\.py$)|(?:^|[/\\])(?:typing_extensions|functools|contextlib)\.py$|^<(?!ipython|stdin)"
)
_PYTHON = re.compile(r"\.py$|^<(?:ipython|stdin)")


@dataclass(frozen=True)
class CallSite:
    """``source`` is the user's own innermost frame, as ``file:line (function)``; ``stack`` all frames."""

    source: str | None = None
    stack: str | None = None


class CallSites:
    """The sites of a dump; frames that several entries share are written once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], CallSite] = {}
        self._of_list: dict[int, CallSite] = {}
        self._texts: dict[int, tuple[str, str] | None] = {}

    def site(self, frames: object) -> CallSite:
        """Return the site of a list of frames, the innermost first; an empty one where none is recorded.

        The frames are kept in memory by the dump, so that their ids tell them apart.
        """
        if not isinstance(frames, list) or not frames:
            return CallSite()
        site = self._of_list.get(id(frames))
        if site is None:
            kept = frames[:_MAX_FRAMES]
            key = tuple(map(id, kept))
            site = self._known.get(key)
            if site is None:
                site = self._known[key] = self._written(kept, len(frames) - len(kept))
            self._of_list[id(frames)] = site
        return site

    def _written(self, frames: list[Any], more: int) -> CallSite:
        written = [text for frame in frames if (text := self._text(frame)) is not None]
        if not written:
            return CallSite()
        own = [(file, text) for file, text in written if not _TORCH.search(file)]
        python = [text for file, text in own if _PYTHON.search(file)]
        source = (python or [text for _, text in own] or [text for _, text in written])[0]
        lines = [text for _, text in written] + ([f"and {more} more"] if more else [])
        return CallSite(source, "\n".join(lines))

    def _text(self, frame: object) -> tuple[str, str] | None:
        found = self._texts.get(id(frame), ...)
        if found is ...:
            found = None
            if isinstance(frame, dict):
                file, line, name = frame.get("filename"), frame.get("line"), frame.get("name")
                if isinstance(file, str) and file:
                    where = f"{file[:_MAX_TEXT]}:{line}" if type(line) is int else file[:_MAX_TEXT]
                    text = f"{where} ({name[:_MAX_TEXT]})" if isinstance(name, str) and name else where
                    found = (file[:_MAX_TEXT], text)
            self._texts[id(frame)] = found
        return found
