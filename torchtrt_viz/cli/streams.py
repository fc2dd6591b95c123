"""The standard streams of a command: any locale, a reader that goes away, and stdout as a file."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from torchtrt_viz.errors import OutputError

__all__ = ["PIPE_CLOSED", "STDOUT", "any_locale", "detach", "say", "write_to_stdout"]

STDOUT = Path("-")
"""What users write for standard output where a file is asked for."""

PIPE_CLOSED = 141
"""Exit status when the reader of the output has gone, as of a program that SIGPIPE ended."""


def any_locale() -> None:
    """Let the streams show characters that their encoding lacks as near ones, instead of failing."""
    # slow to import for a help, which imports no other room
    from torchtrt_viz.report.characters import NEAR_CHARACTERS

    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # replaced by something else, or closed
            stream.reconfigure(errors=NEAR_CHARACTERS)  # type: ignore[union-attr]


def say(text: object = "", *, err: bool = False) -> None:
    """Print a line; in the stream's own encoding, also where that is ASCII."""
    print(text, file=sys.stderr if err else sys.stdout)


def detach() -> None:
    """Let nothing more be said on stdout: its reader has gone, and what is buffered has nowhere to go."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def write_to_stdout(suffix: str, write: Callable[[Path], object]) -> None:
    """Have a file of that suffix written, and copy it to stdout once it is whole.

    Raises
    ------
    OutputError
        When stdout is a terminal and the file is none to read there, and when nothing can be written.
    """
    if suffix in (".parquet", ".xlsx", ".pftrace") and sys.stdout.isatty():
        raise OutputError(f"a {suffix} file is not shown on a terminal: redirect the output, or name a file")
    with tempfile.TemporaryDirectory(prefix="trtprofile-") as folder:
        path = Path(folder, f"output{suffix}")
        write(path)
        sys.stdout.flush()
        with path.open("rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)
        sys.stdout.buffer.flush()
