"""The docstring of a function that returns a frame: its columns, from the schema that documents them."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import TypeVar

from torchtrt_viz.model.schema import FrameSchema

__all__ = ["columns_section", "returns"]

F = TypeVar("F", bound=Callable[..., object])

_WIDTH = 100


def columns_section(schema: FrameSchema) -> str:
    """Return the columns of a frame as a section of a docstring: name, dtype, unit, meaning."""
    lines = ["Columns", "-------"]
    for column in schema.columns:
        unit = f", {column.unit}" if column.unit else ""
        lines.append(f"{column.name} : {column.dtype}{unit}")
        lines += textwrap.wrap(
            column.meaning, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
        )
    return "\n".join(lines)


def returns(schema: FrameSchema) -> Callable[[F], F]:
    """Note which frame a function returns, and add the frame's columns to the function's docstring.

    ``help()`` and Jupyter's ``?`` then show every column with its unit, and the meaning is written once.
    """

    def documented(function: F) -> F:
        if function.__doc__ is not None:  # it is None under python -OO
            function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{columns_section(schema)}\n"
        function.returns_frame = schema  # type: ignore[attr-defined]
        return function

    return documented
