"""What is written, told by the name of the file or by an option; both have to agree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from torchtrt_viz.cli.streams import STDOUT

__all__ = ["agreed"]


def agreed(
    to: str | None,
    output: Path | None,
    endings: Mapping[str, tuple[str, ...]],
    *,
    default: str | None = None,
) -> str:
    """Return what is to be written.

    Parameters
    ----------
    to
        What the option ``--to`` says.
    output
        The file; None or standard output have no ending that says anything.
    endings
        What can be written -> the endings of its files.
    default
        What is written where neither says it; None: an error.

    Raises
    ------
    click.UsageError
        When neither says it, when the ending is no known one, and when the two differ.
    """
    known = ", ".join(f"{ending} ({what})" for what, all_of in endings.items() for ending in all_of)
    if output is None or output == STDOUT:
        if to is None and default is None:
            raise click.UsageError(f"--to says what to write: {', '.join(endings)}")
        return to or str(default)
    ending = output.suffix.lower()
    told = [what for what, all_of in endings.items() if ending in all_of]
    if not told:
        said = f"has the ending {ending}" if ending else "has no ending"
        raise click.UsageError(f"{output} {said}; what can be written ends in {known}")
    if to is not None and to not in told:
        raise click.UsageError(
            f"--to {to} and {output} do not agree: {' or '.join(endings[to])} is for {to}, "
            f"{ending} for {told[0]}"
        )
    return to or told[0]
