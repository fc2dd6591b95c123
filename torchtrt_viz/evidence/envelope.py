"""The document: what was asked, what it was read from, the tables, and what is missing from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtrt_viz._version import __version__
from torchtrt_viz.errors import MissingDependencyError, OptionError, TorchTrtVizError, TraceFormatError
from torchtrt_viz.evidence.expressions import PRELUDE
from torchtrt_viz.evidence.values import Bound, plain

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.schema import Column, FrameSchema

__all__ = ["NAME", "VERSION", "Evidence", "Sheet", "failure", "json_schema"]

NAME = "torchtrt_viz.evidence"
VERSION = 1
"""Grows when a field changes its meaning or goes; new fields may come at any time."""

_TYPES = {"category": "string", "text": "string", "string": "string", "bool": "boolean", "boolean": "boolean"}


@dataclass(frozen=True)
class Sheet:
    """One table of a document.

    Attributes
    ----------
    name
        Of its schema: ``operators``, ``session.ranks``.
    frame
        Its rows; the labels of the index are the rows' ids.
    schema
        Its columns: units and meanings.
    title
        What it shows, in words.
    expression
        Python that returns the frame in which ``.loc[id]`` is a row; None where it was not kept.
    row_count
        Rows of the whole table, where ``frame`` has some of them only.
    """

    name: str
    frame: pd.DataFrame
    schema: FrameSchema | None = None
    title: str = ""
    expression: str | None = None
    row_count: int | None = None

    def head(self) -> dict[str, Any]:
        """Return everything but the rows."""
        coverage = self.frame.attrs.get("coverage")
        return {
            "name": self.name,
            "title": self.title,
            "expression": self.expression,
            "columns": [self._column(position) for position in range(self.frame.shape[1])],
            "coverage": str(coverage) if coverage else None,
            "row_count": len(self.frame) if self.row_count is None else self.row_count,
            "first_row": 0,
            "row_ids": [],
            "rows": [],
        }

    def rows(self, begin: int, end: int, bound: Bound) -> tuple[list[Any], list[list[Any]]]:
        """Return the ids and the values of some rows."""
        part = self.frame.iloc[begin:end]
        columns = [part.iloc[:, position].tolist() for position in range(part.shape[1])]
        values = [[plain(value, bound) for value in row] for row in zip(*columns, strict=True)]
        return [plain(label, bound) for label in part.index.tolist()], values

    def _column(self, position: int) -> dict[str, Any]:
        name = str(self.frame.columns[position])
        known = next((c for c in self.schema.columns if c.name == name), None) if self.schema else None
        values = self.frame.iloc[:, position]
        return {
            "name": name,
            "type": _type(known, values),
            "unit": (known.unit if known else "") or None,
            "state": _state(known, values),
            "meaning": known.meaning if known else None,
        }


def _type(known: Column | None, values: pd.Series) -> str:
    dtype = str(values.dtype).lower() if known is None or known.dtype == "any" else known.dtype.lower()
    if dtype in _TYPES:
        return _TYPES[dtype]
    if dtype.startswith(("int", "uint")):
        return "integer"
    if dtype.startswith("float"):
        return "number"
    return "string" if dtype == "str" else "any"


def _state(known: Column | None, values: pd.Series) -> str:
    """Tell what was collected: a column without any value was not."""
    if len(values) and not values.notna().any():
        return "NA"
    return "modeled" if known is not None and known.modeled else "measured"


@dataclass
class Evidence:
    """What a command found.

    Attributes
    ----------
    command
        Its name.
    arguments
        What it was asked, without what only pages.
    sources
        What the tables were read from (`sources.source_of`).
    tables
        In the order of their worth.
    facts
        Results that are no tables.
    files
        What was written.
    warnings
        What loading repaired or could not know (`sources.warnings_of`).
    status
        Exit status that the command ends with.
    """

    command: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    sources: list[dict[str, Any]] = field(default_factory=list)
    tables: list[Sheet] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    status: int = 0
    error: dict[str, Any] | None = None

    def wrote(self, what: str, path: Path) -> None:
        """Note a file or folder that was written."""
        size = path.stat().st_size if path.is_file() else None
        self.files.append({"what": what, "path": str(path), "bytes": size})

    def _prelude(self) -> str:
        """Return what comes before an expression; those in rows of a verdict name the trace ``trace``."""
        if len(self.sources) != 1 or self.sources[0]["kind"] != "trace" or not self.sources[0]["expression"]:
            return PRELUDE
        return f"{PRELUDE}\ntrace = {self.sources[0]['expression']}"

    def shell(self, bound: Bound) -> dict[str, Any]:
        """Return the document without its tables."""
        shell: dict[str, Any] = {
            "schema": NAME,
            "version": VERSION,
            "package": __version__,
            "command": self.command,
            "arguments": self.arguments,
            "status": self.status,
            "error": self.error,
            "prelude": self._prelude(),
            "sources": self.sources,
            "facts": self.facts,
            "tables": [],
            "files": self.files,
            "warnings": self.warnings,
        }
        return {key: plain(value, bound) for key, value in shell.items()}


def failure(command: str, error: BaseException, status: int, arguments: Mapping[str, Any] = {}) -> Evidence:
    """Return the document that says why there is none."""
    said: dict[str, Any] = {"type": type(error).__name__, "message": str(error), "remedy": None}
    if isinstance(error, TraceFormatError):
        names = ("path", "offset", "expected", "found")
        said |= {name: getattr(error, name) for name in names} | {"remedy": error.hint}
    elif isinstance(error, OptionError):
        said |= {"option": error.key, "remedy": error.choices}
    elif isinstance(error, MissingDependencyError):
        said |= {"package": error.package, "remedy": str(error).rpartition(": ")[2]}
    elif not isinstance(error, TorchTrtVizError):
        said["message"] = str(getattr(error, "message", None) or error)
    return Evidence(command, arguments, status=status, error=said)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    import json  # whatever reads it wants plain dictionaries
    from importlib.resources import files

    text = files("torchtrt_viz.evidence").joinpath("schema.json").read_text(encoding="utf-8")
    made: dict[str, Any] = json.loads(text)
    return made


def only(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns of a frame, and what it says of its coverage."""
    part = frame[list(columns)]
    part.attrs.update(frame.attrs)
    return part
