"""``capture.json``, the document of a saved capture: its names, version, validation and writing.

::

    {"format": "torchtrt_viz.capture", "version": 1,
     "begin_unix_ns": ..., "end_unix_ns": ..., "options": {...}, "versions": {...},
     "error": "ValueError: ..." or null, "problems": ["...", ...],
     "programs": [{"etdump": "net.etdp", "etrecord": "net.etrecord" or null, ...}, ...],
     "torch": {"trace": "torch.pt.trace.json" or null, "marks_unix_ns": [[before, after], ...]} or null,
     "engines": "engines.json" or null,
     "layer_sets": [["engine.profile.json", "engine.graph.json"], ...]}

Recordings are named relative to the document and lie in its folder; a name that leads elsewhere is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.io.whole_file import write_atomically

__all__ = ["DOCUMENT", "MARK", "is_document", "read_document", "recording", "write_document"]

DOCUMENT = "capture.json"
"""Name of the document in the folder of a saved capture."""

MARK = "torchtrt_viz.capture"
"""Name of the spans by which a capture ties torch's clock to the process's own."""

_FORMAT = "torchtrt_viz.capture"
_VERSION = 1
_MAX_BYTES = 64 << 20
_HEAD_BYTES = 512


def is_document(source: Source) -> bool:
    """Tell whether a file is the document of a saved capture, by its name and its first bytes."""
    return source.filename == DOCUMENT and f'"{_FORMAT}"'.encode() in source.head(_HEAD_BYTES)


def read_document(source: Source) -> dict[str, Any]:
    """Read ``capture.json``.

    Raises
    ------
    TraceFormatError
        When it is damaged, something else, or of a later version.
    """
    import orjson

    try:
        document = orjson.loads(source.read(_MAX_BYTES))
    except orjson.JSONDecodeError as error:
        raise TraceFormatError(
            "the document of the capture is not JSON", path=source.name, offset=error.pos, found=str(error)
        ) from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise TraceFormatError(
            "not the document of a capture", path=source.name, expected=f'"format": "{_FORMAT}"'
        )
    version = document.get("version")
    if version != _VERSION:
        raise TraceFormatError(
            "written by another version of the package",
            path=source.name,
            expected=f"version {_VERSION}",
            found=str(version)[:40],
            hint="Load the recordings in the folder one by one, or update torchtrt-viz",
        )
    return document


def recording(document: Source, name: object) -> Source | None:
    """Return the file of that name beside the document, None when there is none.

    Raises
    ------
    TraceFormatError
        When the name, which may be hostile, leads out of the document's folder.
    """
    if not isinstance(name, str) or not name or Path(name).name != name or name in (".", ".."):
        raise TraceFormatError(
            "a recording's name leads out of the folder", path=document.name, found=repr(name)[:80]
        )
    return document.beside(name)


def write_document(
    folder: Path,
    *,
    begin_unix_ns: int,
    end_unix_ns: int,
    options: Mapping[str, Any],
    versions: Mapping[str, str],
    error: str | None = None,
    problems: Sequence[str] = (),
    programs: Sequence[Mapping[str, Any]] = (),
    torch: Mapping[str, Any] | None = None,
    engines: str | None = None,
    layer_sets: Sequence[Sequence[str]] = (),
    start_seconds: float | None = None,
    stop_seconds: float | None = None,
) -> Path:
    """Write ``capture.json`` into a folder that holds the recordings; a document that is there is replaced.

    Parameters
    ----------
    begin_unix_ns, end_unix_ns
        When the block began and ended.
    options, versions
        How it was recorded, and by what.
    error
        "ValueError: ..." when the block raised.
    problems
        What could not be captured, a sentence each.
    programs
        For each program the names of its ``etdump`` and ``etrecord`` (or None), and what else is known of it.
    torch
        ``trace``: name of torch's recording or None; ``marks_unix_ns``: times before and after each mark.
    engines
        Name of the columns of engines, None when there are none.
    layer_sets
        Names of the files about each engine.
    start_seconds, stop_seconds
        What starting and stopping cost.

    Returns
    -------
    Path
        The document.

    Raises
    ------
    OutputError
        When it cannot be written.
    """
    import orjson

    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "options": dict(options),
        "begin_unix_ns": begin_unix_ns,
        "end_unix_ns": end_unix_ns,
        "start_seconds": start_seconds,
        "stop_seconds": stop_seconds,
        "error": error,
        "problems": list(problems),
        "programs": [dict(program) for program in programs],
        "torch": None if torch is None else dict(torch),
        "engines": engines,
        "layer_sets": [list(names) for names in layer_sets],
        "versions": dict(versions),
    }
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    return write_atomically(folder / DOCUMENT, text)
