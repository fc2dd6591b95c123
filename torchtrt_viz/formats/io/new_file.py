"""New files of a capture or an export: never over what is there unless the caller says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchtrt_viz.errors import CaptureError, OutputError
from torchtrt_viz.formats.io.whole_file import write_atomically

__all__ = ["write_file", "write_json"]


def write_json(path: Path, value: object, *, force: bool = False) -> None:
    """Write a value as JSON."""
    import orjson

    write_file(path, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS), force=force)


def write_file(path: Path, content: bytes | Callable[[Path], Any], *, force: bool = False) -> None:
    """Write a file whole or not at all: under a temporary name in its folder, then renamed.

    Parameters
    ----------
    content
        The bytes, or a function that writes the file at the path that it is given.
    force
        Replace an existing file.

    Raises
    ------
    CaptureError
        When the file exists and ``force`` is not set, or cannot be written.
    """
    if path.exists() and not force:
        raise CaptureError(f"{path} exists already: give another place, or force=True to overwrite it")
    try:
        write_atomically(path, content)
    except OutputError as error:
        raise CaptureError(str(error)) from error
