"""Text as tools really write it: byte order marks, UTF-16 from a Windows shell, bytes that are no UTF-8."""

from __future__ import annotations

import codecs

__all__ = ["decode_text", "decoded_head", "encoding_of"]


def encoding_of(data: bytes) -> tuple[str, int]:
    """Tell the encoding of ``data`` and the length of its byte order mark.

    UTF-16 and UTF-32 without a mark are recognised by the zero bytes of their first characters, which are
    ASCII in every document of this field.
    """
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8", 3
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # the first begins as UTF-16's mark does
        return "utf-32-le" if data[0] else "utf-32-be", 4
    if data.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le", 2
    if data.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be", 2
    zero = [byte == 0 for byte in data[:4]]
    if zero == [True, True, True, False]:
        return "utf-32-be", 0
    if zero == [False, True, True, True]:
        return "utf-32-le", 0
    if zero == [True, False, True, False]:
        return "utf-16-be", 0
    if zero == [False, True, False, True]:
        return "utf-16-le", 0
    return "utf-8", 0


def decode_text(data: bytes) -> tuple[str, str, int | None]:
    """Decode ``data`` to (text, encoding, byte offset of the first undecodable byte or None).

    Undecodable bytes become U+FFFD. The mark is not part of the text.
    """
    encoding, skip = encoding_of(data)
    try:
        return data[skip:].decode(encoding), encoding, None
    except UnicodeDecodeError as error:
        return data[skip:].decode(encoding, errors="replace"), encoding, skip + error.start


def decoded_head(head: bytes) -> str:
    """Decode the first part of a file, which may end in the middle of a character."""
    return decode_text(head)[0]
