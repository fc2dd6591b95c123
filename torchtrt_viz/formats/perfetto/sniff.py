"""Telling a Perfetto protobuf trace by its first bytes.

A trace is a run of ``packet`` fields (number 1, length-delimited: byte 0x0A), and a packet a message of
fields whose numbers and wire types are known. Other protobuf files are lists of messages of field 1 too, and
a newline is 0x0A: packets have to hold together with the messages inside them, and one of the first has to
bear what only packets bear, a time, a sequence, an event or a descriptor.
"""

from __future__ import annotations

from torchtrt_viz.formats.io.foreign_protobuf import foreign_protobuf
from torchtrt_viz.formats.io.protobuf_head import LENGTH, VARINT, Wire, fields, varint
from torchtrt_viz.formats.perfetto.packet_kinds import KNOWN

__all__ = ["looks_like_perfetto"]

_PACKET = 0x0A
#: Fields of TracePacket that are not messages, with their wire types; every other known number is a message.
_SCALARS = {
    3: VARINT,  # trusted_uid
    8: VARINT,  # timestamp
    10: VARINT,  # trusted_packet_sequence_id
    13: VARINT,  # sequence_flags
    41: VARINT,
    42: VARINT,
    58: VARINT,  # timestamp_clock_id
    79: VARINT,
    87: VARINT,
    98: VARINT,
}
_BYTES = frozenset({36, 50, 133})
#: What marks a packet: timestamp, sequence, event, interned data, and what has a number so high that other
#: files, whose messages number their fields from 1, do not get there.
_MARKS = frozenset({8, 10, 11, 12, 59, *(number for number in KNOWN if number >= 33)})
_LAST_FIELD = 1999
_SHORT = 1 << 12
_MOST_PACKETS = 256
#: First bytes of the packets that writers make: timestamp, sequence, track event, interned data, ...
_USUAL_FIRST = (0x32, 0x40, 0x50, 0x5A, 0x62, 0x68)


def _holds(field: Wire) -> bool:
    """Tell whether a field is one of a packet, and its content a message where it has to be."""
    if field.number > _LAST_FIELD or field.wire != _SCALARS.get(field.number, LENGTH):
        return False
    if field.wire != LENGTH or field.number in _BYTES:
        return True
    inner = list(fields(field.content, 64))
    # the end of what is cut may lie inside of a number
    return None not in inner or (field.cut and None not in inner[:-1])


def looks_like_perfetto(head: bytes) -> bool:
    """Tell whether ``head`` begins a Perfetto trace.

    The first packet has to hold together, as far as it is there; what is damaged later is for the reader.
    """
    if not head or head[0] != _PACKET:
        return False
    size, begin = varint(head, 1, len(head))
    if begin < 0 or size == 0 or begin >= len(head):
        return False
    cut = begin + size > len(head)
    if cut and len(head) < _SHORT and head[begin] not in _USUAL_FIRST:
        return False  # a short file that ends in its first packet: too little to tell by
    marked = False
    for count, packet in enumerate(fields(head, _MOST_PACKETS)):
        if packet is None or packet.number != 1 or packet.wire != LENGTH:
            break
        inner = list(fields(packet.content))
        whole = all(field is not None and _holds(field) for field in (inner[:-1] if packet.cut else inner))
        if not whole:
            if count == 0:
                return False
            break
        if any(field is not None and field.number in _MARKS for field in inner):
            marked = True
            break
    return marked and foreign_protobuf(head) is None
