"""Writing files that are whole or not there at all: to a reader, after a failure, and after a restart."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path

from torchtrt_viz.errors import OutputError

__all__ = ["fsync_folder", "write_atomically", "write_whole"]

#: Bytes, text (written as UTF-8), or a function that writes the file whose path it is given.
Content = bytes | str | Callable[[Path], object]


def write_atomically(path: str | PathLike[str], content: Content) -> Path:
    """Write a file that a user asked for, as `write_whole` does; return its path.

    Raises
    ------
    OutputError
        When the folder is not there or the file cannot be written.
    """
    target = Path(path)
    try:
        write_whole(target, content, durable=False)
    except OSError as error:
        raise OutputError.of(target, error) from error
    return target


def write_whole(path: Path, content: Content, *, durable: bool = True) -> None:
    """Write ``content`` to a temporary file beside ``path``, and put it in its place in one step.

    A reader sees the old file or the new one, never half of it. When writing fails, the old one stays and the
    temporary file goes; one that a killed process left is named ``.NAME.*``.

    Parameters
    ----------
    content
        Bytes, text (as UTF-8), or a function that writes the file at the path that it is given, which has
        the suffix of ``path``.
    durable
        Also survive a loss of power; without it only the loss of the process. Takes some milliseconds.

    Raises
    ------
    OSError
        When it cannot be written.
    """
    # writers go by the suffix; what is written here can say what it is
    suffix = path.suffix if callable(content) else ".tmp"
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(3).hex()}{suffix}")
    # made as any new file is, with the rights that the user's umask leaves
    with temporary.open("xb") as stream:
        try:
            if callable(content):
                content(temporary)
            else:
                stream.write(content.encode() if isinstance(content, str) else content)
                stream.flush()
            if durable:
                _fsync(temporary)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    if durable:
        fsync_folder(path.parent)


def _fsync(file: Path) -> None:
    """Bring a file's content to the disk, whoever wrote it."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder survive a loss of power, where the file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems refuse it for folders
    finally:
        os.close(descriptor)
