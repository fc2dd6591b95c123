"""The documents of saved traces and sessions: JSON that is small, checked, and written last."""

from __future__ import annotations

import json
import re
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import Source

__all__ = ["SESSION_FORMAT", "TRACE_FORMAT", "VERSION", "begins_document", "begun_with", "read_document"]

TRACE_FORMAT = "torchtrt_viz.saved_trace"
SESSION_FORMAT = "torchtrt_viz.saved_session"

VERSION = 1
"""What is written, and the latest that is read."""

_MAX_BYTES = 256 << 20
_BEGIN = rb'\s*\{\s*"format"\s*:\s*"%s"'


def begins_document(head: bytes, format: str) -> bool:
    """Tell whether a file begins as such a document."""
    return re.match(_BEGIN % re.escape(format.encode()), head) is not None


def begun_with(format: str) -> dict[str, Any]:
    """Return the first entries of a new document."""
    return {"format": format, "version": VERSION}


def read_document(source: Source, format: str) -> dict[str, Any]:
    """Read a document.

    Raises
    ------
    TraceFormatError
        When it is damaged, something else, or of a later version.
    """
    try:
        document = json.loads(source.read(_MAX_BYTES), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise TraceFormatError(
            "the document of what was saved is not JSON",
            path=source.name,
            offset=getattr(error, "pos", None),
            expected="the whole document, as it was written",
            found=str(error)[:200],
            hint="Copy the whole folder again, or save the trace again",
        ) from error
    if not isinstance(document, dict) or document.get("format") != format:
        raise TraceFormatError(
            "not the document of what was saved", path=source.name, offset=0, expected=f'"format": "{format}"'
        )
    version = document.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        later = type(version) is int and version > VERSION
        raise TraceFormatError(
            "saved by a later version of the package" if later else "of no version that is known",
            path=source.name,
            expected=f"version {VERSION} or earlier",
            found=f"version {str(version)[:40]}",
            hint="Update torchtrt-viz: pip install -U torchtrt-viz" if later else "Save the trace again",
        )
    return document


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
