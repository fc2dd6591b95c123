"""Names of events: the export's table of strings, and one list of names for all spans."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.nsys.distinct import combinations, distinct
from torchtrt_viz.formats.nsys.export import Export, Table
from torchtrt_viz.formats.producers.categories import NAME_RULES
from torchtrt_viz.formats.sqlite.database import Values
from torchtrt_viz.model.schema import KINDS

__all__ = ["Names", "call_name", "kinds_by_name"]

Codes = NDArray[np.int32]

_VERSION = re.compile(r"_v\d{4,}(?=$|_)")
_UNNAMED = "(unnamed)"


def call_name(text: str) -> str:
    """Return a call of the CUDA runtime as other tools name it: without the version that it was added in."""
    return _VERSION.sub("", text)


class Names:
    """Strings by their number in the export, and the names of spans by their code."""

    def __init__(self, export: Export) -> None:
        self.texts: list[str] = []
        self._code_of: dict[str, int] = {}
        self._ids = np.zeros(0, np.int64)
        self._strings: list[str] = []
        self._of_id = np.zeros(0, np.int32)
        if "StringIds" in export.tables:
            table = Table(export, "StringIds", {"id": "integer", "value": "text"})
            ids, values = table.integers("id"), table.take("value")
            if values is not None:
                order = np.argsort(ids, kind="stable")
                self._ids, self._of_id = ids[order], values.values[order]
                self._strings = values.texts or []

    def add(self, text: str) -> int:
        """Return the code of a name."""
        code = self._code_of.get(text)
        if code is None:
            code = self._code_of[text] = len(self.texts)
            self.texts.append(text)
        return code

    def string(self, number: int) -> str | None:
        """Return a string of the export by its number."""
        at = int(np.searchsorted(self._ids, number))
        if at == len(self._ids) or self._ids[at] != number or self._of_id[at] < 0:
            return None
        return self._strings[int(self._of_id[at])]

    def of_ids(
        self, ids: NDArray[np.int64], named: Callable[[str], str] = str, missing: str = _UNNAMED
    ) -> Codes:
        """Return the code of the name of each number of a string."""
        numbers, inverse = distinct(ids)
        codes = [self.add(missing if (text := self.string(n)) is None else named(text)) for n in numbers]
        return np.array([*codes, 0], np.int32)[inverse]

    def of_codes(self, columns: Sequence[NDArray[np.int64]], named: Callable[..., str]) -> Codes:
        """Return the code of the name that the numbers of each row give."""
        rows, inverse = combinations(columns)
        return np.array([*(self.add(named(*row)) for row in rows), 0], np.int32)[inverse]

    def of_texts(self, values: Values) -> Codes:
        """Return the code of each text, -1 where there is none."""
        table = np.array([*(self.add(text) for text in values.texts or ()), -1], np.int32)
        codes: Codes = table[values.values]
        return codes


def kinds_by_name(names: Sequence[str], codes: Codes, kind: str) -> NDArray[np.int8]:
    """Return the kind of each span: that of its table, or what its name says more exactly."""
    of_table = KINDS.index(kind)
    rules = [(how, text, to) for how, text, of, to in NAME_RULES if of == of_table]
    out = np.full(len(names) + 1, of_table, np.int8)
    for code in np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(names))).tolist():
        name = names[code].partition("(")[0] if kind == "kernel" else names[code]
        for how, text, to in rules:
            found = (
                name == text
                if how == "equals"
                else name.startswith(text)
                if how == "starts"
                else text in name
            )
            if found:
                out[code] = to
                break
    found_kinds: NDArray[np.int8] = out[codes]
    return found_kinds
