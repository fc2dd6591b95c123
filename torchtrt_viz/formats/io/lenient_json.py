"""JSON as profilers write it: strict and fast where the text is JSON, tolerant where it nearly is.

Writers in this field leave names unescaped, print ``-nan``, end lists with a comma, put log lines around
the document, and are killed in the middle of a record. `parse_json` tries the fast parser first and falls
back only as far as the text asks; every departure from RFC 8259 is reported as a repair.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.lenient_scan import Scan
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.text_forms import decode_text
from torchtrt_viz.model.repair import Repair

__all__ = ["MAX_DOCUMENT_BYTES", "documents", "parse_json", "parse_json_text"]

MAX_DOCUMENT_BYTES = 256 << 20
"""Largest document that is parsed whole (the layer information of 11,000 layers takes about 10 MB)."""

#: Where a known document begins inside a log.
DOCUMENT_START = re.compile(
    r'\{\s*"(?:Layers|Bindings|I/O Tensors|ProfilingVerbosity|Engine Metadata|Name|LayerType'
    r'|performance_summary|model_options|build_options)"\s*:'
    r'|\[\s*\{\s*"(?:count|name|Name|LayerType|startEnqMs|startInMs)"\s*:'
)
_MARGIN = " \t\r\n\0\ufeff"
_PLAUSIBLE = re.compile(r'\{\s*["}]|\[\s*["{\[\]]')
_NEXT_OBJECT = re.compile(r"\s*,\s*\{")
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json(data: bytes, name: str, options: LoadOptions) -> Any:
    """Parse a document.

    Parameters
    ----------
    data
        Uncompressed content.
    name
        Label for messages.
    options
        Receives the repairs; with ``strict`` the first one is raised.

    Returns
    -------
    object
        Plain lists, mappings, strings and numbers; NaN for ``-nan``; ``[]`` for content without any
        value (no bytes, only white space, or the ``]`` that an empty Torch-TensorRT trace consists of).

    Raises
    ------
    TraceFormatError
        When there is no document, or nothing of it is whole.
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        raise TraceFormatError(
            "the document is too large",
            path=name,
            expected=f"at most {MAX_DOCUMENT_BYTES} bytes",
            found=f"{len(data)} bytes",
        )
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    text, encoding, bad = decode_text(data)
    if bad is not None:
        options.repaired(Repair("encoding", f"bytes that are not {encoding} were replaced", name, bad))
    return parse_json_text(text, name, options, encoding=encoding)


def parse_json_text(
    text: str, name: str, options: LoadOptions, *, encoding: str = "utf-8", base: int = 0
) -> Any:
    """Parse a document that has been decoded; ``base`` is the byte offset of the text in its file."""

    def place(index: int) -> int:
        return base + len(text[:index].encode(encoding, errors="replace"))

    stripped = text.strip(_MARGIN)
    if stripped in ("", "]", "[]"):
        if stripped == "]":
            options.repaired(
                Repair(
                    "empty_form",
                    "the list has no opening bracket: a Torch-TensorRT trace without layers",
                    name,
                    0,
                )
            )
        return []
    if encoding != "utf-8":
        try:
            return orjson.loads(text)
        except (orjson.JSONDecodeError, UnicodeEncodeError):
            pass
    start, wrapped = _start(text)
    if start is None:
        raise TraceFormatError(
            "there is no JSON document in it",
            path=name,
            offset=base,
            expected="{ or [",
            found=repr(stripped[:40]),
        )
    value, end = _standard(text, start) if not wrapped else (None, None)
    if end is None:
        scan = Scan(text, start, wrapped=wrapped)
        value, end = scan.run()
        for code, (message, first, count) in scan.repairs.items():
            options.repaired(Repair(code, message, name, place(first), count))
        if scan.nothing_whole:
            raise TraceFormatError(
                "nothing in the document is whole",
                path=name,
                offset=place(scan.failed_at),
                expected=scan.expected,
                found=repr(text[scan.failed_at : scan.failed_at + 24]) or "the end of the file",
                hint="Write it again; if it is being written, wait until its writer is done",
            )
    if text[:start].strip(_MARGIN + ","):
        options.repaired(Repair("text_around", "text before the document was passed over", name, base))
    if end is not None and text[end:].strip(_MARGIN):
        options.repaired(Repair("text_around", "text after the document was passed over", name, place(end)))
    return _without_surrogates(value) if "\\ud" in text or "\\uD" in text else value


def documents(text: str, name: str, options: LoadOptions, base: int = 0) -> Iterator[tuple[Any, int, int]]:
    """Yield (document, begin, end) of each layer, profile or timing document inside a log."""
    at = 0
    while (known := DOCUMENT_START.search(text, at)) is not None:
        begin = known.start()
        value, end = _standard(text, begin)
        if end is None:
            scan = Scan(text, begin)
            value, end = scan.run()
            end = max(end, begin + 1)
            if scan.nothing_whole:
                at = begin + 1
                continue
            for code, (message, first, count) in scan.repairs.items():
                offset = base + len(text[:first].encode("utf-8", errors="replace"))
                options.repaired(Repair(code, message, name, offset, count))
        yield _without_surrogates(value), begin, end
        at = end


def _start(text: str) -> tuple[int | None, bool]:
    """Find the document: its index, and whether it is a run of values without the list around them."""
    at = len(text) - len(text.lstrip(_MARGIN))
    if text.startswith(",", at):
        return at + 1, True
    if _PLAUSIBLE.match(text, at):
        return at, False
    known = DOCUMENT_START.search(text, at)
    return (None if known is None else known.start()), False


def _standard(text: str, start: int) -> tuple[Any, int | None]:
    """Parse with the standard library: control characters, NaN and Infinity are let through."""
    try:
        value, end = json.JSONDecoder(strict=False, parse_int=_integer).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, None
    # `{...}, {...}` is a list that lost its brackets: not for this parser
    if _NEXT_OBJECT.match(text, end):
        return None, None
    return value, end


def _integer(digits: str) -> int | float:
    """Read an integer; beyond 64 bits a real number, as the fast parser has it."""
    number = int(digits) if len(digits) < 40 else float(digits)
    return number if -(2**63) <= number < 2**64 else float(number)


def _without_surrogates(value: object) -> Any:
    """Replace lone surrogates, which no encoder takes, by U+FFFD (without recursion)."""
    holder = [value]
    work: list[tuple[Any, Any]] = [(holder, 0)]
    while work:
        container, key = work.pop()
        item = container[key]
        if isinstance(item, str):
            if _SURROGATE.search(item):
                container[key] = _SURROGATE.sub("\ufffd", item)
        elif isinstance(item, list):
            work.extend((item, i) for i in range(len(item)))
        elif isinstance(item, dict):
            for name in [k for k in item if _SURROGATE.search(k)]:
                item[_SURROGATE.sub("\ufffd", name)] = item.pop(name)
            work.extend((item, k) for k in item)
    return holder[0]
