"""A result file of rocprofv3, parsed: one mapping per process.

The document is parsed whole. One that stops in the middle is cut behind its last whole record and closed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import orjson

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import DamagedStreamError
from torchtrt_viz.formats.rocprof.cut import closed
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source

__all__ = ["MAX_BYTES", "ROOT", "processes_of"]

ROOT = "rocprofiler-sdk-tool"
MAX_BYTES = 4 << 30
"""Longest document that is parsed: its values take several times as much memory."""

_EXPECTED = f'an object with a list "{ROOT}" of processes'
_BLOCK = 1 << 20
#: What is escaped, halves of a pair together; a half alone stands for no character.
_SURROGATE = re.compile(
    rb"(\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


def processes_of(source: Source, options: LoadOptions) -> list[dict[str, Any]]:
    """Return what the file holds of each process.

    Raises
    ------
    TraceFormatError
        When it is too long, or no such document; with ``options.strict`` also for any damage.
    """
    data = _content(source, options)
    document = _parsed(data, source.name, options)
    found = document.get(ROOT) if isinstance(document, dict) else None
    if isinstance(found, dict):  # schemas describe a single one so
        found = [found]
    if not isinstance(found, list):
        raise TraceFormatError(
            "not a result of rocprofv3",
            path=source.name,
            offset=0,
            expected=_EXPECTED,
            found=f"{type(found if isinstance(document, dict) else document).__name__} in its place",
            hint="Load the file that rocprofv3 --output-format json wrote (NAME_results.json)",
        )
    processes = [process for process in found if isinstance(process, dict)]
    if len(processes) < len(found):
        lost = len(found) - len(processes)
        options.repaired(
            Repair("not_a_process", "entries that are no processes were left out", source.name, 0, lost)
        )
    return processes


def _content(source: Source, options: LoadOptions) -> bytes:
    """Read the whole content; of a damaged stream what precedes the damage."""
    parts: list[bytes] = []
    total = 0
    try:
        for block in source.blocks(_BLOCK):
            total += len(block)
            if total > MAX_BYTES:
                raise TraceFormatError(
                    "the document is too long to be parsed",
                    path=source.name,
                    offset=MAX_BYTES,
                    expected=f"at most {MAX_BYTES} bytes",
                    found="more",
                    hint="Record fewer steps, or into a database, which is read by columns: rocprofv3 "
                    "--output-format rocpd",
                )
            parts.append(block)
    except DamagedStreamError as error:
        if not total:
            raise
        text = "the compressed content is damaged; what precedes the damage was read"
        options.repaired(Repair("damaged_stream", text, source.name, error.offset))
    data = b"".join(parts)
    if options.progress is not None:
        options.progress(total, total)
    return data.removeprefix(b"\xef\xbb\xbf")


def _parsed(data: bytes, name: str, options: LoadOptions) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        first = error
    mended = data
    try:
        data.decode()
    except UnicodeDecodeError as error:
        text = "bytes that are not UTF-8 were replaced by U+FFFD"
        mended = data.decode("utf-8", "replace").encode()
        fault = Repair("invalid_utf8", text, name, error.start)
        found = _tolerant(mended)
        if found is not None:
            options.repaired(fault)
            return found
        options.warnings.append(fault)
    found = _tolerant(mended)
    if found is not None:
        text = "numbers that JSON does not have (NaN, Infinity, or beyond 64 bits) were read as they stand"
        options.warnings.append(Repair("odd_number", text, name))
        return found
    cut = closed(mended)
    found = None if cut is None else _tolerant(cut[0])
    if cut is None or found is None:
        raise TraceFormatError(
            "the JSON of rocprofv3 is damaged",
            path=name,
            offset=len(data[: first.pos].encode() if isinstance(data, str) else data[: first.pos]),
            expected=_EXPECTED,
            found=f"{first.msg} in a file of {len(data)} bytes",
            hint="Record again; or load another form of the same recording: rocprofv3 --output-format "
            "rocpd pftrace",
        )
    text = "the file stops before its end: whole records before that were kept"
    options.repaired(Repair("truncated", text, name, cut[1]))
    return found


def _tolerant(data: bytes) -> Any:
    """Parse what Python's own parser takes, which is a little more; None for what it does not."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    if _SURROGATE.search(data) is not None:
        data = _SURROGATE.sub(lambda found: found[0] if found[1] else rb"\ufffd", data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
