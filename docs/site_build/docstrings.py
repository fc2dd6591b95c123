"""An extension of griffe: docstrings that are written for Python's own help, as Markdown."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from griffe import Extension, Function, Object

_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([^`]+)`")
_LITERAL = re.compile(r"::[ \t]*(?=\n[ \t]*\n)")
_TABLE = re.compile(r"^(={3,} +=[= ]*\n(?:.*\n)*?={3,} +=[= ]*)$(?!\n\S)", re.MULTILINE)
_GROUP = re.compile(r"^(\w+(?:, \w+)+)\n((?:[ \t]+\S.*\n?)+)", re.MULTILINE)
_RETURNS = "returns("


class Docstrings(Extension):
    """Turns roles, literal blocks and tables into Markdown, and leads to the columns of a returned frame."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is None:
            return
        text = _ROLE.sub(r"`\1`", obj.docstring.value)
        text = _LITERAL.sub(":", text)
        text = _TABLE.sub(r"```text\n\1\n```", text)
        text = _GROUP.sub(_one_by_one, text)
        frame = _frame_of(obj) if isinstance(obj, Function) else None
        if frame is not None:
            text += f"\n\nNotes\n-----\nThe columns are those of [{frame}][schema.{_anchor(frame)}].\n"
        obj.docstring.value = text


def _one_by_one(group: re.Match[str]) -> str:
    """Give each parameter of a shared entry its own: griffe would give all the first one's type."""
    text = group[2].rstrip("\n")
    return "".join(f"{name}\n{text}\n" for name in group[1].split(", "))


def _anchor(frame: str) -> str:
    """Return where the page of frames (pages.py) has this one."""
    return re.sub(r"[^\w.]+", "-", frame).strip("-")


def _frame_of(function: Function) -> str | None:
    """Return the name of the frame that the decorator `returns` names."""
    for decorator in function.decorators:
        source = str(decorator.value)
        if source.startswith(_RETURNS):
            schema: Any = import_module(function.module.path)
            for part in source[len(_RETURNS) : -1].split("."):
                schema = getattr(schema, part)
            return str(schema.name)
    return None
