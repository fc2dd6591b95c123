"""Compressed packets of a Perfetto trace, replaced by the packets inside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import MAX_EXPANSION, MAX_READ_BYTES
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions

__all__ = ["unpack"]

_FREE_BYTES = 64 << 20
_BLOCK = 1 << 20


def unpack(data: bytes, name: str, options: LoadOptions) -> bytes:
    """Return the trace with every compressed packet (zlib or zstandard) unpacked in its place.

    Packets that are themselves inside of compressed ones stay as they are. A compressed packet that is
    damaged gives what comes before the damage.

    Raises
    ------
    TraceFormatError
        When the packets expand without bound.
    """
    found = native("perfetto").find_compressed(data)
    if not found:
        return data
    limit = min(max(_FREE_BYTES, MAX_EXPANSION * len(data)), MAX_READ_BYTES)
    parts: list[bytes] = []
    total = at = damaged = 0
    first_damage: int | None = None
    for begin, end, content, size, zstd in found:
        parts.append(data[at:begin])
        total += begin - at
        at = end
        inside, whole = _inflate(data[content : content + size], zstd, limit - total)
        if inside is None:
            raise TraceFormatError(
                "the compressed packets expand without bound",
                path=name,
                offset=begin,
                expected=f"at most {limit} bytes",
                found="more",
                hint="Decompress the trace with Perfetto's traceconv if you trust it",
            )
        if not whole:
            damaged += 1
            first_damage = begin if first_damage is None else first_damage
        parts.append(inside)
        total += len(inside)
    parts.append(data[at:])
    if damaged:
        options.repaired(
            Repair(
                "damaged_packet",
                "compressed packets are damaged: what precedes the damage was read",
                name,
                first_damage,
                damaged,
            )
        )
    return b"".join(parts)


def _inflate(data: bytes, zstd: bool, limit: int) -> tuple[bytes | None, bool]:
    """Return (content, whether it is whole); content None when it is longer than ``limit``."""
    import zstandard
    from isal import isal_zlib

    out: list[bytes] = []
    total = 0
    try:
        if zstd:
            reader: Any = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(data)
            while block := reader.read(_BLOCK):
                total += len(block)
                if total > limit:
                    return None, False
                out.append(block)
            return b"".join(out), True
        engine = isal_zlib.decompressobj()
        while data:
            block = engine.decompress(data, _BLOCK)
            total += len(block)
            if total > limit:
                return None, False
            out.append(block)
            data = engine.unconsumed_tail
            if engine.eof:
                break
            if not block and not data:
                break
        return b"".join(out), bool(engine.eof)
    except (cast(type[Exception], isal_zlib.error), zstandard.ZstdError):
        return b"".join(out), False
