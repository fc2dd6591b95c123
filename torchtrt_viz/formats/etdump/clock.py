"""Where an ETDump lies in time: its ticks, and the sidecar that the capture writes beside it.

An ETDump holds ticks of the runtime's clock and neither their unit nor their origin, nor which method a run
executed. The capture therefore writes ``<name>.etdp.json``::

    {
      "anchor": {"ticks": 123, "unix_ns": 1700000000000000000, "tick_numerator": 1, "tick_denominator": 1},
      "blocks": [{"name": "Default", "method": "forward"},
                 {"name": "Execute", "method": "forward", "thread": 7, "status": "ok"}],
      "engines": [{"engine_id": "...", "method": "forward", "delegate_index": 0, "runtime": "host"}],
      "versions": {"executorch": "1.5.1"}
    }

``ticks * tick_numerator / tick_denominator`` is ns since the origin of the clock. ``anchors`` (a list) may
stand for ``anchor``, and ``ticks_before`` with ``ticks_after`` for ``ticks``; a block's ``status`` is ok,
failed or unfinished. Every key may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.model.repair import Repair

__all__ = ["Block", "Clock", "Sidecar", "read_sidecar", "ticks_to_ns", "unwrap"]

MAX_SIDECAR_BYTES = 256 << 20
_INT64_MAX = (1 << 63) - 1
_WRAP = 1 << 32


@dataclass(frozen=True)
class Block:
    """What the capture knows about one run of the dump."""

    name: str | None = None
    method: str | None = None
    thread: int | None = None
    status: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Clock:
    """``ns = ticks * numerator / denominator``; ``origin_unix_ns``: Unix time of tick 0, None unknown."""

    numerator: int = 1
    denominator: int = 1
    origin_unix_ns: int | None = None


@dataclass(frozen=True)
class Sidecar:
    """A sidecar, checked; ``name`` is its path."""

    name: str
    clock: Clock | None = None
    blocks: tuple[Block, ...] | None = None
    engines: dict[str, dict[str, Any]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def ticks_to_ns(ticks: NDArray[np.uint64], clock: Clock) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return times in ns, and which of them are in the range of a signed 64-bit count of ns.

    Exact: whole multiples of the denominator and the rest are scaled apart. What is out of range is 0.
    """
    numerator, denominator = clock.numerator, clock.denominator
    most = _INT64_MAX // numerator * denominator if numerator > denominator else _INT64_MAX
    fits = ticks <= np.uint64(min(most, _INT64_MAX))
    if not fits.all():
        ticks = np.where(fits, ticks, np.uint64(0))
    ns = ticks.astype(np.int64) if numerator == denominator else _scaled(ticks, numerator, denominator)
    return ns, fits


def _scaled(ticks: NDArray[np.uint64], numerator: int, denominator: int) -> NDArray[np.int64]:
    whole, rest = np.divmod(ticks, np.uint64(denominator))
    return (whole * np.uint64(numerator) + rest * np.uint64(numerator) // np.uint64(denominator)).astype(
        np.int64
    )


def unwrap(
    start: NDArray[np.uint64], end: NDArray[np.uint64], own: NDArray[np.bool_]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], int]:
    """Undo the wrap-around of a 32-bit tick counter; return start, end and how often it wrapped.

    Events are written when they end, so that ends rise but for what delegates log afterwards. A counter that
    never exceeds 32 bits and falls by more than half its range has wrapped. Only the runtime's ``own`` events
    prove that: a delegate may count another clock.
    """
    if len(end) == 0 or int(end.max()) >= _WRAP or int(start.max()) >= _WRAP:
        return start, end, 0
    runtime = end[own]
    if not (runtime[1:] + np.uint64(_WRAP >> 1) < runtime[:-1]).any():
        return start, end, 0
    falls = end[1:] + np.uint64(_WRAP >> 1) < end[:-1]
    rises = end[:-1] + np.uint64(_WRAP >> 1) < end[1:]
    if not falls.any():
        return start, end, 0
    # an event that a delegate logs late may still carry a time from before the wrap
    epoch = np.concatenate(([0], np.cumsum(falls.astype(np.int64) - rises.astype(np.int64))))
    epoch -= min(0, int(epoch.min()))
    wide_end = end + (epoch * _WRAP).astype(np.uint64)
    length = (end - start) & np.uint64(_WRAP - 1)
    known = wide_end >= length
    wide_start = np.where(known, wide_end - length, start)
    return wide_start, wide_end, int(epoch.max())


def read_sidecar(source: Source) -> tuple[Sidecar | None, list[Repair]]:
    """Return the sidecar of an ETDump, None when there is none, and what is wrong in it."""
    repairs: list[Repair] = []
    for candidate in _candidates(source):
        try:
            content = candidate.read(MAX_SIDECAR_BYTES)
        except TraceFormatError as error:
            if candidate.member is None or "no such member" not in str(error):
                repairs.append(Repair("sidecar", f"the sidecar cannot be read: {error}", candidate.name))
            continue
        try:
            document = json.loads(content)
        except (ValueError, RecursionError) as error:
            repairs.append(Repair("sidecar", f"the sidecar is not JSON: {error}", candidate.name))
            return None, repairs
        return _checked(document, candidate.name, repairs), repairs
    return None, repairs


def _candidates(source: Source) -> Iterator[Source]:
    names = [f"{source.filename}.json"]
    if source.member is None and source.filename.endswith((".gz", ".zst")):
        names.append(f"{source.filename.rpartition('.')[0]}.json")
    for name in names:
        candidate = source.beside(name)
        if candidate is not None:
            yield candidate


def _checked(document: object, name: str, repairs: list[Repair]) -> Sidecar | None:
    def wrong(what: str) -> None:
        repairs.append(Repair("sidecar", f"the sidecar's {what}: that part of it is not used", name))

    if not isinstance(document, dict):
        wrong("top level is not an object")
        return None
    clock = None
    anchors = document.get("anchors", document.get("anchor"))
    if anchors is not None:
        found = [_clock(anchor) for anchor in (anchors if isinstance(anchors, list) else [anchors])]
        good = [entry for entry in found if entry is not None]
        if good:
            # of several readings, the one with the least time between its two clocks
            clock = min(good, key=lambda entry: entry[0])[1]
        elif found:
            wrong("anchor has no whole numbers 'ticks' and 'unix_ns', or no positive tick ratio")
    blocks = document.get("blocks")
    if blocks is not None and not (isinstance(blocks, list) and all(isinstance(b, dict) for b in blocks)):
        wrong("'blocks' is not a list of objects")
        blocks = None
    engines = document.get("engines")
    versions = document.get("versions")
    return Sidecar(
        name,
        clock,
        None if blocks is None else tuple(_block(block) for block in blocks),
        {
            engine["engine_id"]: engine
            for engine in (engines if isinstance(engines, list) else ())
            if isinstance(engine, dict) and isinstance(engine.get("engine_id"), str)
        },
        {str(key): str(value) for key, value in versions.items()} if isinstance(versions, dict) else {},
    )


def _clock(anchor: object) -> tuple[int, Clock] | None:
    """Return (uncertainty in ticks, clock) of one anchor; None when it is not one."""
    if not isinstance(anchor, dict):
        return None
    read = anchor.get("ticks_before", anchor.get("ticks"))
    values = (
        read,
        anchor.get("ticks_after", read),
        anchor.get("unix_ns"),
        anchor.get("tick_numerator", 1),
        anchor.get("tick_denominator", 1),
    )
    numbers = [value for value in values if type(value) is int and 0 <= value <= _INT64_MAX]
    if len(numbers) != len(values):
        return None
    before, after, unix_ns, numerator, denominator = numbers
    if not (0 < numerator < _WRAP and 0 < denominator < _WRAP) or after < before:
        return None
    ticks = (before + after) // 2
    return after - before, Clock(numerator, denominator, unix_ns - ticks * numerator // denominator)


def _block(block: dict[str, Any]) -> Block:
    def text(key: str) -> str | None:
        value = block.get(key)
        return value if isinstance(value, str) and value else None

    thread = block.get("thread")
    return Block(
        text("name"),
        text("method"),
        thread if type(thread) is int else None,
        text("status"),
        text("error"),
    )
