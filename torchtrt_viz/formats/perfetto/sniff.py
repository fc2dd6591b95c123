"""Telling a Perfetto protobuf trace by its first bytes.

A trace is a run of ``packet`` fields (number 1, length-delimited: byte 0x0A), and a packet a message of
fields whose numbers and wire types are known. A newline is 0x0A too, so that the first packets have to hold
together as packets.
"""

from __future__ import annotations

__all__ = ["looks_like_perfetto"]

_PACKET = 0x0A
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
#: Fields of TracePacket that are not messages, with their wire types; every other known number is a message.
_SCALARS = {
    3: _VARINT,  # trusted_uid
    8: _VARINT,  # timestamp
    10: _VARINT,  # trusted_packet_sequence_id
    13: _VARINT,  # sequence_flags
    41: _VARINT,
    42: _VARINT,
    58: _VARINT,  # timestamp_clock_id
    79: _VARINT,
    87: _VARINT,
    98: _VARINT,
}
_LAST_FIELD = 1000
_SHORT = 1 << 12
#: First bytes of the packets that writers make: timestamp, sequence, track event, interned data, ...
_USUAL_FIRST = (0x32, 0x40, 0x50, 0x5A, 0x62, 0x68)


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return (value, index behind it), the index -1 when it is cut or too long."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


def _packet_holds(data: bytes, at: int, end: int, cut: bool) -> bool:
    """Tell whether ``data[at:end]`` reads as a TracePacket; ``cut``: its end is missing."""
    while at < end:
        tag, at = _varint(data, at, end)
        if at < 0:
            return cut
        number, wire = tag >> 3, tag & 7
        if not 0 < number <= _LAST_FIELD or wire != _SCALARS.get(number, _LENGTH):
            return False
        if wire == _VARINT:
            _, at = _varint(data, at, end)
            if at < 0:
                return cut
        else:
            size, at = _varint(data, at, end)
            if at < 0:
                return cut
            at += size
            if at > end:
                return cut
    return True


def looks_like_perfetto(head: bytes) -> bool:
    """Tell whether ``head`` begins a Perfetto trace.

    The first packet has to hold together, as far as it is there; what is damaged later is for the reader.
    """
    if not head or head[0] != _PACKET:
        return False
    size, begin = _varint(head, 1, len(head))
    if begin < 0 or size == 0 or begin >= len(head):
        return False
    end = begin + size
    cut = end > len(head)
    if cut and len(head) < _SHORT and head[begin] not in _USUAL_FIRST:
        return False  # a short file that ends in its first packet: too little to tell by
    return _packet_holds(head, begin, min(end, len(head)), cut)
