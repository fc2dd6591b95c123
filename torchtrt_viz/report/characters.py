"""Text for places that do not know every character: a near one, one for one, else its number."""

from __future__ import annotations

import codecs

__all__ = ["NEAR_CHARACTERS", "can_show", "shown_in_encoding"]

# One character for one, so that what was aligned stays aligned.
_NEAR = str.maketrans("µμ…–—−·•×≥≤→←│▁▂▃▄▅▆▇█", "uu~---.*x><><|..--==##")


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    out = []
    for character in error.object[error.start : error.end]:
        near = character.translate(_NEAR)
        if not near.isascii():
            code = ord(character)
            # half a surrogate stands for a byte of a file's name that is no text in the system's encoding
            near = f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else ascii(character)[1:-1]
        out.append(near)
    return "".join(out), error.end


NEAR_CHARACTERS = "torchtrt_viz.near"
"""Name of the error handler for streams (``stream.reconfigure(errors=NEAR_CHARACTERS)``)."""

codecs.register_error(NEAR_CHARACTERS, _nearest)


def can_show(characters: str, encoding: str | None) -> bool:
    """Tell whether an encoding has all of these characters."""
    try:
        characters.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def shown_in_encoding(text: str, encoding: str | None) -> str:
    """Return the text as a stream of that encoding shows it."""
    if can_show(text, encoding):
        return text
    try:
        return text.encode(encoding or "ascii", NEAR_CHARACTERS).decode(encoding or "ascii")
    except LookupError:
        return text.encode("ascii", NEAR_CHARACTERS).decode("ascii")
