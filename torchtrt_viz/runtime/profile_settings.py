"""What the delegate's profile can be set to: levels, formats and the path prefix, wherever they are given."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from os import PathLike, fspath

from torchtrt_viz.errors import OptionError

__all__ = ["FORMATS", "LEVELS", "MAX_VALUE_BYTES", "check_choice", "check_path_prefix"]

#: How much of a delegate's call is recorded; each level holds all that stand before it.
LEVELS: tuple[str, ...] = ("off", "delegate", "phases", "layers")
#: Where engine layers go: into the ETDump, or into sidecar files as well.
FORMATS: tuple[str, ...] = ("etdump", "perfetto", "trex")
#: Longest text that an executorch backend option can hold, in UTF-8 bytes (without its NUL).
MAX_VALUE_BYTES = 255


def check_choice(key: str, value: object, choices: Sequence[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    Raises
    ------
    OptionError
        Otherwise; it names the value meant, where one is close.
    """
    if isinstance(value, str) and value in choices:
        return value
    near = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    text = f"one of {', '.join(choices)}"
    raise OptionError(key, value, f"{text} (did you mean {near[0]!r}?)" if near else text)


def check_path_prefix(key: str, value: object) -> str:
    """Return a path prefix as text.

    Raises
    ------
    OptionError
        When it is no path, empty, holds a NUL, or is longer than a backend option can hold.
    """
    if not isinstance(value, (str, PathLike)):
        raise OptionError(key, value, "a path (text or os.PathLike)")
    text = fspath(value)
    if not isinstance(text, str) or not text.strip():
        raise OptionError(key, value, "a non-empty path")
    if "\0" in text:
        raise OptionError(key, value, "a path without NUL characters")
    size = len(text.encode("utf-8", "surrogateescape"))
    if size > MAX_VALUE_BYTES:
        raise OptionError(key, text[:40] + "...", f"at most {MAX_VALUE_BYTES} bytes of UTF-8; it has {size}")
    return text
