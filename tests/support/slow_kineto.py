"""A slow reader of trace-event JSON, independent of the one under test: Python's json, one event at a time.

It keeps what a file means as plain Python values: times as decimals of microseconds times a thousand, ids as
they stand. Of a file that stops it keeps the events that are whole.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

__all__ = ["SlowTrace", "hta_rounded", "nanoseconds", "raw_events", "read_slowly"]


def uncompressed(path: Path) -> bytes:
    """Return the content of a file, of a gzip file as far as it goes."""
    data = path.read_bytes()
    return zlib.decompressobj(wbits=31).decompress(data) if data[:2] == b"\x1f\x8b" else data


def raw_events(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return (top-level values, events as json reads them, events with numbers as their text)."""
    text = uncompressed(path).decode("utf-8", "replace").removeprefix("\ufeff")
    plain = json.JSONDecoder(strict=False)
    exact = json.JSONDecoder(strict=False, parse_float=str, parse_int=str)
    key = '"traceEvents"'
    header: dict[str, Any] = {}
    at = text.find("[") if text.lstrip().startswith("[") else text.index("[", text.index(key) + len(key))
    events, texts = [], []
    at += 1
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text) or text[at] == "]":
            break
        try:
            event, end = plain.raw_decode(text, at)
            number_texts, _ = exact.raw_decode(text, at)
        except json.JSONDecodeError:
            break
        events.append(event)
        texts.append(number_texts)
        at = end
    if at < len(text):
        try:
            whole = plain.decode(text)
        except json.JSONDecodeError:
            whole = {}
        header = {k: v for k, v in whole.items() if k != "traceEvents"} if isinstance(whole, dict) else {}
    return header, events, texts


def nanoseconds(text: str) -> int:
    """Return a decimal text of microseconds as integer nanoseconds."""
    return int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_EVEN))


def hta_rounded(ts: str, dur: str) -> tuple[Decimal, Decimal]:
    """Start and duration in us as HolisticTraceAnalysis rounds them: start up, end down, to whole us."""
    start = Decimal(ts)
    end = (start + Decimal(dur)).to_integral_value("ROUND_FLOOR")
    start = start.to_integral_value("ROUND_CEILING")
    return start, end - start


@dataclass
class SlowTrace:
    """What a file holds, as lists of (tuple, ...)."""

    header: dict[str, Any] = field(default_factory=dict)
    #: name, start ns, duration ns, correlation, external id, process, thread, category, args
    spans: list[tuple[Any, ...]] = field(default_factory=list)
    #: name, time ns, process, thread, args
    instants: list[tuple[Any, ...]] = field(default_factory=list)
    #: phase, category, id, time ns, process, thread
    flows: list[tuple[Any, ...]] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)
    #: start and duration of kernels as the file writes them
    kernels: list[tuple[str, str]] = field(default_factory=list)


def identity(value: Any) -> Any:
    """One value for an id, whether it is written as a number or as its text."""
    if isinstance(value, str) and value.removeprefix("-").isdigit():
        return int(value)
    return value


def read_slowly(path: Path) -> SlowTrace:
    """Read complete events, instants, flows and metadata."""
    header, events, texts = raw_events(path)
    out = SlowTrace(header)
    for event, numbers in zip(events, texts, strict=True):
        args = event.get("args") or {}
        phase = event.get("ph")
        where = (identity(event.get("pid")), identity(event.get("tid")))
        if phase == "X" and float(numbers.get("dur", "-1")) >= 0:
            external = args.get("External id", args.get("external id", -1))
            out.spans.append(
                (
                    event.get("name"),
                    nanoseconds(numbers["ts"]),
                    nanoseconds(numbers["dur"]),
                    args.get("correlation", -1),
                    external,
                    *where,
                    event.get("cat"),
                    args,
                )
            )
            if event.get("cat") in ("kernel", "Kernel"):
                out.kernels.append((numbers["ts"], numbers["dur"]))
        elif phase in ("X", "i"):
            out.instants.append((event.get("name"), nanoseconds(numbers["ts"]), *where, args))
        elif phase in ("s", "t", "f"):
            out.flows.append((phase, event.get("cat"), event["id"], nanoseconds(numbers["ts"]), *where))
        elif phase == "M":
            out.metadata.append(event)
    return out
