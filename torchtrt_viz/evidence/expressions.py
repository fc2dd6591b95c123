"""The Python that makes a table again, as text that runs after ``import torchtrt_viz as tv``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["PRELUDE", "Condition", "call", "chosen", "loading"]

PRELUDE = "import torchtrt_viz as tv"


@dataclass(frozen=True)
class Condition:
    """A condition on a column: ``op`` is one of ==, !=, <, <=, >, >=, contains."""

    column: str
    op: str
    value: Any

    @property
    def text(self) -> str:
        """The condition on a frame ``f``, as pandas has it; a missing value fits none."""
        column = f"f[{self.column!r}]"
        fits = f"({column} {self.op} {self.value!r})"
        if self.op == "contains":
            fits = f"{column}.astype(str).str.contains({self.value!r}, case=False, regex=False)"
        return f"({fits} & {column}.notna())"


def loading(paths: Sequence[object], **options: Any) -> str:
    """Return the call that loads what a command was given."""
    named = [str(path) for path in paths]
    return call("tv", "load", named[0] if len(named) == 1 else named, **options)


def call(owner: str, name: str, *values: Any, **options: Any) -> str:
    """Return a call; options without a value (None, False, empty) are left out."""
    given = [repr(value) for value in values]
    given += [f"{key}={value!r}" for key, value in options.items() if value not in (None, False, (), [])]
    return f"{owner}.{name}({', '.join(given)})"


def chosen(
    table: str,
    *,
    where: Iterable[Condition] = (),
    sort: str | None = None,
    descending: bool = True,
    columns: Sequence[str] = (),
) -> str:
    """Return the expression of some rows of a table, in an order, and some of its columns."""
    conditions = " & ".join(condition.text for condition in where)
    made = f"(lambda f: f[({conditions}).fillna(False).astype(bool)])({table})" if conditions else table
    if sort is not None:
        made += f".sort_values({sort!r}, ascending={not descending!r}, kind='stable')"
    return f"{made}[{list(columns)!r}]" if columns else made


def arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command that say something."""
    return {key: value for key, value in given.items() if value not in (None, False, (), [], "")}
