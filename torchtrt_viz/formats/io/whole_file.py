"""Writing files that are whole or not there at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from os import PathLike
from pathlib import Path

from torchtrt_viz.errors import OutputError

__all__ = ["write_atomically"]


def write_atomically(path: str | PathLike[str], content: bytes | str | Callable[[Path], None]) -> Path:
    """Write ``content`` to ``path`` through a temporary file beside it.

    A reader sees the old file or the new one, never half of it; when writing fails, the old one stays.

    Parameters
    ----------
    content
        Bytes, text (as UTF-8), or a function that writes the file whose path it is given.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    OutputError
        When the folder is not there or the file cannot be written.
    """
    target = Path(path)
    try:
        return _written(target, content)
    except OSError as error:
        raise OutputError.of(target, error) from error


def _written(target: Path, content: bytes | str | Callable[[Path], None]) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            if isinstance(content, (bytes, str)):
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
        if callable(content):
            content(temporary)
        # mkstemp makes private files; a report is as readable as any other new file of the user's
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return target
