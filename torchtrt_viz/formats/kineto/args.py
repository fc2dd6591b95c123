"""Arguments of trace events, read from the file when somebody asks.

The decoder keeps the byte offset of every event. A plain file is read at those places; of a compressed one
the stream is passed once more, up to the last event that is wanted.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.gc_paused import collector_paused
from torchtrt_viz.formats.io.source import Source

__all__ = ["EventArgs", "FileEvents"]

_FIRST_READ = 1 << 12
_BLOCK = 1 << 20
_LONGEST_EVENT = 64 << 20
_DEEPEST = 200
_LONG_INTEGER = re.compile(rb"[0-9]{19}")  # orjson makes a float of an integer beyond 64 bits


class FileEvents:
    """Reads the events at given byte offsets of the file that a trace was loaded from."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._stamp = source.stamp()

    def read(self, offsets: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return the events at ``offsets``, in their order.

        Raises
        ------
        TraceFormatError
            When the file is gone, or not the one that was loaded any more.
        """
        if not len(offsets):
            return []
        wanted, positions = np.unique(offsets, return_inverse=True)
        events = [self._parsed(text) for text in self._texts(wanted)]
        return [events[position] for position in positions.ravel()]

    def values(self, offsets: NDArray[np.int64], key: str) -> tuple[NDArray[np.int32], list[bytes]]:
        """Return one argument of the events at ``offsets``: a code per event, and the JSON text of each code.

        Code -1: the event has no such argument; -2: its text has to be mended first, `read` can.
        """
        if not len(offsets):
            return np.zeros(0, np.int32), []
        wanted, positions = np.unique(offsets, return_inverse=True)
        codes, texts = native("kineto").argument_texts(list(self._texts(wanted)), key)
        return codes[positions.ravel()], texts

    def details(self, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int32], list[bytes]]:
        """Return all arguments of the events at ``offsets`` as text: a code per event, and each code's text.

        Codes are those of `values`. The text is as it stands in the file, and was not looked into.
        """
        if not len(offsets):
            return np.zeros(0, np.int32), []
        wanted, positions = np.unique(offsets, return_inverse=True)
        # an event whose arguments are the event: its argument "args" is what is asked for
        within = [b'{"args":%b}' % text for text in self._texts(wanted)]
        codes, texts = native("kineto").argument_texts(within, "args")
        return codes[positions.ravel()], texts

    def _texts(self, wanted: NDArray[np.int64]) -> Iterator[bytes]:
        """Read the text of the events at sorted offsets."""
        if self._source.stamp() != self._stamp:
            raise TraceFormatError(
                "the file has changed since the trace was loaded",
                path=self._source.name,
                hint="Details of events are read from the file when they are asked for: load it again",
            )
        return self._from_disk(wanted) if self._source.on_disk else self._from_stream(wanted)

    def _from_disk(self, wanted: NDArray[np.int64]) -> Iterator[bytes]:
        """Read runs of events that lie close together at once."""
        gaps = np.flatnonzero(np.diff(wanted) > _FIRST_READ) + 1
        descriptor = os.open(self._source.path, os.O_RDONLY)
        try:
            for run in np.split(wanted, gaps):
                done = 0
                while done < len(run):
                    first = int(run[done])
                    # As many of the run's events as fit into a block.
                    many = max(1, int(np.searchsorted(run[done:], first + _BLOCK)))
                    size = int(run[done + many - 1]) - first + _FIRST_READ
                    done += yield from self._block(descriptor, first, size, run[done : done + many])
        finally:
            os.close(descriptor)

    def _block(self, descriptor: int, first: int, size: int, offsets: NDArray[np.int64]) -> Any:
        while True:
            block = os.pread(descriptor, size, first)
            last = len(block) < size
            texts = native("kineto").events_at(block, first, offsets[offsets < first + len(block)], last)
            whole = texts.index(None) if None in texts else len(texts)
            if whole or last or size > _LONGEST_EVENT:
                break
            size *= 4  # an event longer than what was read
        yield from texts[:whole]
        if not whole:  # shorter than when it was loaded, or without an end
            yield b""
            return 1
        return whole

    def _from_stream(self, wanted: NDArray[np.int64]) -> Iterator[bytes]:
        held, base, done = b"", 0, 0
        for block in self._blocks():
            held += block
            reach = base + len(held)
            done_now = yield from self._within(
                held, base, wanted[done : np.searchsorted(wanted, reach)], False
            )
            done += done_now
            if done == len(wanted):
                return
            # Keep what an unfinished event needs.
            keep = min(int(wanted[done]), reach)
            if keep == reach or reach - keep > _LONGEST_EVENT:
                keep = reach
            held, base = held[keep - base :], keep
        yield from self._within(held, base, wanted[done:], True)

    def _blocks(self) -> Iterator[bytes]:
        try:
            yield from self._source.blocks(_BLOCK)
        except TraceFormatError:
            return  # the damage that was there when the trace was loaded

    def _within(self, held: bytes, base: int, offsets: NDArray[np.int64], last: bool) -> Any:
        inside = offsets[(offsets >= base) & (offsets < base + len(held))]
        texts = native("kineto").events_at(held, base, inside, last)
        whole = texts.index(None) if None in texts else len(texts)
        yield from texts[:whole]
        if last:
            yield from [b""] * (len(offsets) - whole)
            return len(offsets)
        return whole

    def _parsed(self, text: bytes) -> dict[str, Any]:
        import orjson

        event = None
        if _LONG_INTEGER.search(text) is None:
            try:
                event = orjson.loads(text)
            except orjson.JSONDecodeError:
                event = None
        if event is None:
            try:
                event = json.loads(native("kineto").normalize(text, _DEEPEST))
            except (ValueError, RecursionError):
                return {}
        return event if isinstance(event, dict) else {}


class EventArgs:
    """Arguments by row of a frame.

    Parameters
    ----------
    events
        The file.
    offsets
        Byte offset of each row's event.
    ends
        Row -> byte offset of the end event, for spans made of a begin and an end: their arguments are joined.
    durations
        Rows whose duration could not be used: the raw value is added under "dur".
    """

    def __init__(
        self,
        events: FileEvents,
        offsets: NDArray[np.int64],
        ends: dict[int, int] | None = None,
        durations: NDArray[np.bool_] | None = None,
    ) -> None:
        self._events = events
        self._offsets = offsets
        self._ends = ends or {}
        self._durations = durations

    def read(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        rows = np.asarray(rows, dtype=np.int64)
        events = self._events.read(self._offsets[rows])
        out = [_arguments(event) for event in events]
        if self._durations is not None:
            for position in np.flatnonzero(self._durations[rows]).tolist():
                event = events[position]
                if "dur" in event:
                    out[position].setdefault("dur", event["dur"])
        if self._ends:
            ended = [position for position, row in enumerate(rows.tolist()) if row in self._ends]
            offsets = np.array([self._ends[int(rows[position])] for position in ended], dtype=np.int64)
            for position, end in zip(ended, self._events.read(offsets), strict=True):
                out[position] = {**out[position], **_arguments(end)}
        return out

    def values(self, rows: NDArray[np.int64], key: str) -> tuple[NDArray[np.int64], list[Any]]:
        """Return one argument of many rows: a code per row (-1 none), and the value of each code."""
        rows = np.asarray(rows, dtype=np.int64)
        found, texts = self._events.values(self._offsets[rows], key)
        codes = found.astype(np.int64)
        values: list[Any] = []
        for code, text in enumerate(texts):
            try:
                values.append(json.loads(text))
            except (ValueError, RecursionError):
                values.append(None)
                codes[found == code] = -2
        # what is joined from two events, or has to be mended, is read event by event
        slow = codes == -2
        if self._ends:
            slow |= np.isin(rows, np.fromiter(self._ends, np.int64, len(self._ends)))
        if key == "dur" and self._durations is not None:
            slow |= self._durations[rows]
        at = np.flatnonzero(slow)
        codes[at] = -1
        for position, details in zip(at.tolist(), self.read(rows[at]), strict=True):
            if key in details:
                codes[position] = len(values)
                values.append(details[key])
        return codes, values

    def texts(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
        """Return the arguments of many rows as JSON text: a code per row (-1 none, -2 ask `read`)."""
        rows = np.asarray(rows, dtype=np.int64)
        found, texts = self._events.details(self._offsets[rows])
        with collector_paused():
            told = [_plain_object(text) for text in texts]
        # code -> code of the text that is kept; the last two entries are those of -2 and -1
        table = np.array([*(place if text else _CODES[text] for place, text in enumerate(told)), -2, -1])
        codes = table[found]
        if self._ends:
            codes[np.isin(rows, np.fromiter(self._ends, np.int64, len(self._ends)))] = -2
        if self._durations is not None:
            codes[self._durations[rows]] = -2
        return codes, [text or "" for text in told]


_CODES = {None: -2, "": -1}


def _plain_object(text: bytes) -> str | None:
    """Return JSON text of an object as it can be kept; "" for an empty one, None where it has to be read."""
    import orjson

    if _LONG_INTEGER.search(text) is not None or b'"$' in text:
        return None
    try:
        value = orjson.loads(text)
        return (text.decode() if value else "") if isinstance(value, dict) else None
    except (orjson.JSONDecodeError, UnicodeDecodeError):
        return None


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    args = event.get("args")
    if isinstance(args, dict):
        return dict(args)
    return {} if args is None else {"args": args}
