"""The bytes of an ETDump as checked columns: what was damaged is reported, what has no duration set apart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.etdump.clock import Clock, ticks_to_ns, unwrap
from torchtrt_viz.formats.io.source import MAX_READ_BYTES, Source
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    from torchtrt_viz._native import etdump as native_etdump

__all__ = ["LAYER_ROLES", "Events", "Timed", "decode", "read_bytes", "timed"]

LAYER_ROLES = 7  # the first of the native reader's ROLES that is of a delegate's own events

_FAULTS = {
    "reference": "a reference that leads outside the file",
    "vtable": "a table whose layout record is outside the file or contradicts itself",
    "field": "a field outside its table",
    "vector": "a list that claims more elements than the file holds",
    "text": "a string that claims more bytes than the file holds",
    "overlap": "objects that overlap one another, as no writer makes them",
    "empty": "nothing where an event should be",
}
_LOST_LAYOUT = (
    "ExecuTorch writes the record of the layout last: without the end of the file nothing can be read. "
    "Copy it again, or capture again"
)
_WHOLE_COPY = "Copy the file again, or capture again"


@dataclass(frozen=True)
class Events:
    """Profile events that have a duration, one row each, in the file's order; times in ns.

    The native reader's columns (see ``_native/etdump.pyi``), with ticks turned into ns.
    """

    run: NDArray[np.int32]
    chain: NDArray[np.int32]
    instruction: NDArray[np.int32]
    name: NDArray[np.int32]
    delegate_name: NDArray[np.int32]
    delegate_id: NDArray[np.int32]
    role: NDArray[np.uint8]
    metadata_offset: NDArray[np.uint32]
    metadata_length: NDArray[np.uint32]
    start: NDArray[np.int64]
    dur: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.run)

    def where(self, mask: NDArray[np.bool_]) -> Events:
        """Return the rows where ``mask`` is true."""
        return replace(self, **{name: column[mask] for name, column in vars(self).items()})


@dataclass(frozen=True)
class Timed:
    """The events of a dump with their times in ns.

    Attributes
    ----------
    events
        Those that have a duration.
    invalid
        Those whose times are invalid: their start where it can be told (else 0), with a duration of 0.
    kept
        Rows of ``events`` among all events of the dump; None: they are all.
    repairs
        What was mended on the way.
    """

    events: Events
    invalid: Events
    kept: NDArray[np.int64] | None
    repairs: list[Repair]


def read_bytes(source: Source) -> bytes:
    """Read the whole file."""
    if source.on_disk:
        size = source.stored_bytes or 0
        if size > MAX_READ_BYTES:
            raise TraceFormatError(
                "too large for an ETDump",
                path=source.name,
                expected=f"at most {MAX_READ_BYTES} bytes: its references are 32 bits wide",
                found=f"{size} bytes",
            )
        data = source.path.read_bytes()
    else:
        data = source.read()
    if not data:
        raise TraceFormatError(
            "empty file",
            path=source.name,
            offset=0,
            expected="an ETDump",
            found="0 bytes",
            hint="ExecuTorch leaves an empty dump when several threads log through one tracer, "
            "or when the writer was stopped: capture again",
        )
    return data


def decode(data: bytes, name: str) -> tuple[native_etdump.Dump, list[Repair]]:
    """Decode the content of the file ``name``, and say what in it is damaged.

    Raises
    ------
    TraceFormatError
        When nothing is whole.
    """
    dump: native_etdump.Dump = native("etdump").decode(np.frombuffer(data, np.uint8))
    cut = dump["claimed_bytes"] > len(data)
    if dump["fatal"] is not None:
        kind, offset = dump["fatal"]
        if kind == "empty":
            raise TraceFormatError(
                "not an ETDump",
                path=name,
                offset=offset,
                expected="the identifier ED00 at byte 4 or 8",
                found=repr(data[:12]),
                hint="If it is another kind of trace, load it without format='etdump'",
            )
        raise TraceFormatError(
            "the ETDump is damaged",
            path=name,
            offset=offset,
            expected="the list of runs" if kind != "overlap" else "objects side by side",
            found=_FAULTS[kind] + _shortage(dump, data, cut),
            hint=_LOST_LAYOUT if cut else _WHOLE_COPY,
        )
    whole = sum(len(dump[part]["run"]) for part in ("events", "allocations", "debugs"))
    if dump["damage_count"] and not whole:
        kind, offset = dump["damages"][0]
        raise TraceFormatError(
            "the ETDump is damaged, and no event in it is whole",
            path=name,
            offset=offset,
            expected="a table of the ETDump schema",
            found=_FAULTS[kind] + _shortage(dump, data, cut),
            hint=_LOST_LAYOUT if cut else _WHOLE_COPY,
        )
    return dump, _damage(dump, len(data), name)


def _shortage(dump: native_etdump.Dump, data: bytes, cut: bool) -> str:
    return f", in {len(data)} of {dump['claimed_bytes']} bytes" if cut else ""


def _damage(dump: native_etdump.Dump, size: int, name: str) -> list[Repair]:
    """Say what was lost or mended in a dump of ``size`` bytes."""
    out: list[Repair] = []
    if dump["claimed_bytes"] > size:
        out.append(
            Repair(
                "truncated",
                f"the file ends after {size} of {dump['claimed_bytes']} bytes; whole events are kept",
                name,
                size,
            )
        )
    if dump["damage_count"]:
        kind, offset = dump["damages"][0]
        out.append(
            Repair(
                "damaged",
                f"objects that cannot be read were left out, the first for {_FAULTS[kind]}",
                name,
                offset,
                dump["damage_count"],
            )
        )
    if dump["trailing_bytes"]:
        out.append(
            Repair(
                "trailing_bytes",
                f"{dump['trailing_bytes']} bytes behind the dump are not another dump and were not read",
                name,
                dump["trailing_offset"],
            )
        )
    if dump["invalid_text"]:
        out.append(
            Repair(
                "invalid_text",
                "names that are not UTF-8: their wrong bytes are shown as U+FFFD",
                name,
                dump["invalid_text"][0][1],
                len(dump["invalid_text"]),
            )
        )
    return out


def timed(columns: native_etdump.Events, clock: Clock, name: str) -> Timed:
    """Turn ticks into ns, and set apart the events of the file ``name`` whose times are invalid."""
    repairs: list[Repair] = []
    start_ticks, end_ticks, wraps = unwrap(columns["start"], columns["end"], columns["role"] < LAYER_ROLES)
    if wraps:
        repairs.append(
            Repair(
                "clock_wrapped",
                "the tick counter has 32 bits and wrapped: times behind a wrap were moved",
                name,
                count=wraps,
            )
        )
    start, start_fits = ticks_to_ns(start_ticks, clock)
    end, end_fits = ticks_to_ns(end_ticks, clock)
    valid = start_fits & end_fits & (start_ticks <= end_ticks)
    dur = end
    dur -= start
    everything = Events(
        run=columns["run"],
        chain=columns["chain"],
        instruction=columns["instruction"],
        name=columns["name"],
        delegate_name=columns["delegate_name"],
        delegate_id=columns["delegate_id"],
        role=columns["role"],
        metadata_offset=columns["metadata_offset"],
        metadata_length=columns["metadata_length"],
        start=start,
        dur=dur,
    )
    if valid.all():
        return Timed(everything, everything.where(np.zeros(len(valid), bool)), None, repairs)
    invalid = everything.where(~valid)
    invalid.dur[:] = 0
    repairs.append(
        Repair(
            "invalid_duration",
            "events that end before they begin, or at a time beyond 64 bits of ns, are instants ('invalid')",
            name,
            count=len(invalid),
        )
    )
    return Timed(everything.where(valid), invalid, np.flatnonzero(valid), repairs)
