"""``--json``: what a command prints becomes one document on standard output, its errors too."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import click
from click.core import ParameterSource

from torchtrt_viz.errors import TorchTrtVizError

if TYPE_CHECKING:
    from torchtrt_viz.evidence.envelope import Evidence

__all__ = ["Asked", "asked_for_json", "json_option", "write_failure"]

_FLAG = "--json"


@dataclass(frozen=True)
class Asked:
    """A document was asked for.

    Attributes
    ----------
    arguments
        What the command was given, for the document.
    """

    arguments: dict[str, Any]


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--json``, ``--budget`` and ``--cursor`` to a command.

    The command gets ``asked``: None, or an `Asked`; then it returns an `Evidence` and prints nothing. What
    it, or a program that it runs, prints all the same goes to stderr.
    """

    @click.option(_FLAG, "as_json", is_flag=True, help="Print one JSON document.")
    @click.option("--budget", type=click.IntRange(1), metavar="BYTES", help="Largest document, with --json.")
    @click.option("--cursor", help="Go on where an earlier document ended: its budget.cursor.")
    @functools.wraps(function)
    def command(as_json: bool, budget: int | None, cursor: str | None, **given: Any) -> Any:
        if not as_json:
            if budget is not None or cursor is not None:
                raise click.UsageError("--budget and --cursor are for --json")
            return function(asked=None, **given)
        context = click.get_current_context()
        name = str(context.info_name)
        arguments = {
            key: _plain(value)
            for key, value in given.items()
            if context.get_parameter_source(key) is ParameterSource.COMMANDLINE
        }
        with _stdout_reserved() as stream:
            # slow to import: a help needs none of it
            from torchtrt_viz.evidence.envelope import failure
            from torchtrt_viz.evidence.paging import document

            try:
                found: Evidence = function(asked=Asked(arguments), **given)
                written = document(found, budget=budget, cursor=cursor)
            except click.ClickException as error:
                found = failure(name, error, error.exit_code, arguments)
                written = document(found)
            except TorchTrtVizError as error:
                found = failure(name, error, 2, arguments)
                written = document(found)
            except Exception as error:  # a fault of this package: programs get to know it, too
                traceback.print_exc()
                found = failure(name, error, 1, arguments)
                written = document(found)
            stream.write(written + b"\n")
            stream.flush()
        return found.status

    return command


def asked_for_json(arguments: list[str] | None) -> bool:
    """Tell whether a document was asked for, of arguments that could not be read."""
    given = sys.argv[1:] if arguments is None else arguments
    return _FLAG in given[: given.index("--") if "--" in given else None]


def write_failure(error: click.ClickException, arguments: list[str] | None) -> None:
    """Write the document about options that cannot be."""
    # slow to import: a help needs none of it
    from torchtrt_viz.evidence.envelope import failure
    from torchtrt_viz.evidence.paging import document

    context = getattr(error, "ctx", None)
    name = context.info_name if context is not None and context.parent is not None else "trtprofile"
    given = sys.argv[1:] if arguments is None else arguments
    found = failure(str(name), error, error.exit_code, {"arguments": list(given)})
    with _stdout_reserved() as stream:
        stream.write(document(found) + b"\n")
        stream.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, (str, int, float, bool)) else str(value)


@contextlib.contextmanager
def _stdout_reserved() -> Iterator[BinaryIO]:
    """Keep stdout for the document: what is printed meanwhile, by libraries too, goes to stderr."""
    sys.stdout.flush()
    try:
        number = sys.stdout.fileno()
    except (io.UnsupportedOperation, OSError, ValueError):  # replaced, as in tests and notebooks
        buffer = io.BytesIO()
        with contextlib.redirect_stdout(sys.stderr):
            yield buffer
        sys.stdout.write(buffer.getvalue().decode())
        return
    kept = os.dup(number)
    try:
        with os.fdopen(os.dup(kept), "wb") as stream:
            os.dup2(sys.stderr.fileno(), number)
            try:
                yield stream
            finally:
                sys.stdout.flush()
                os.dup2(kept, number)
    finally:
        os.close(kept)
