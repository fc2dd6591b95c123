"""Which events of a scene a search is for: its terms, tried over whole columns."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.errors import QueryError
from torchtrt_viz.model import schema
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.scene.query import FIELDS, Node
from torchtrt_viz.scene.track_words import track_texts

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.scene.scene import Block, Scene

__all__ = ["by_name_alone", "matching_names", "matching_rows"]

Mask = NDArray[np.bool_]
_MOST_ARGUMENTS = 500_000  # events whose arguments one search reads
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBER = re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")


def by_name_alone(node: Node) -> bool:
    """Say whether a search looks at nothing but names: then one answer per name is enough."""
    if node["op"] == "term":
        return bool(node["field"] == "name")
    return all(by_name_alone(part) for part in node["of"])


def matching_names(
    node: Node, names: Sequence[str], containing: Callable[[str], NDArray[np.uint8]]
) -> NDArray[np.uint8]:
    """Return one byte per name: 1 where a search by name alone finds it.

    Parameters
    ----------
    containing
        Says which of the names contain a text, whatever the case.
    """

    def tried(term: Node, _: Mask | None) -> Mask:
        if term["rel"] == "contains":
            return containing(term["values"][0]).astype(bool)
        return _each(term, names)

    return _joined(node, tried, None, len(names)).astype(np.uint8)


def matching_rows(node: Node, scene: Scene, text: str) -> NDArray[np.uint8]:
    """Return one byte per row of the scene: 1 where the search finds it.

    Parameters
    ----------
    text
        The search as it was written, for errors.

    Raises
    ------
    QueryError
        When the arguments of too many events would have to be read.
    """
    out = np.zeros(scene.blocks[-1].end if scene.blocks else 0, np.uint8)
    for block in scene.blocks:
        columns = _Columns(scene, block, text)
        out[block.begin : block.end] = _joined(node, columns.term, None, len(columns))
    return out


def _joined(node: Node, term: Callable[[Node, Mask | None], Mask], where: Mask | None, length: int) -> Mask:
    """Join the answers of terms; ``where`` says which events matter, for those that are slow to try."""
    if node["op"] == "term":
        return term(node, where)
    if node["op"] == "not":
        return ~_joined(node["of"][0], term, where, length)
    both = node["op"] == "and"
    out = np.full(length, both)
    for part in sorted(node["of"], key=_reads_arguments):
        open_ = out if both else ~out
        found = _joined(part, term, open_ if where is None else where & open_, length)
        out = out & found if both else out | found
    return out


def _reads_arguments(node: Node) -> bool:
    if node["op"] == "term":
        return bool(node["field"] == "args")
    return any(_reads_arguments(part) for part in node["of"])


def _each(term: Node, texts: Sequence[str | None]) -> Mask:
    """Try a term on texts, whatever the case; None is a text that is missing."""
    test, negative = _test(term)
    return np.array([(text is not None and test(text)) != negative for text in texts], bool)


def _test(term: Node) -> tuple[Callable[[str], bool], bool]:
    """Return what is tried on a text, and whether the term is fulfilled where that fails."""
    rel, values = term["rel"], [str(value) for value in term["values"]]
    if rel in ("~", "!~"):
        search = re.compile(values[0], re.IGNORECASE).search
        return lambda text: search(text) is not None, rel == "!~"
    exact = {value.casefold() for value in values}
    wanted = values[0].casefold()
    if rel == "contains":
        return lambda text: wanted in text.casefold(), False
    return lambda text: text.casefold() in exact, rel == "!="


def _compared(term: Node, numbers: NDArray[Any], known: Mask | None = None) -> Mask:
    rel, values = term["rel"], term["values"]
    found: Mask
    if rel == "in":
        found = (numbers >= values[0]) & (numbers <= values[1])
    elif rel in ("=", "!="):
        found = np.isin(numbers, values) if len(values) > 1 else numbers == values[0]
    else:
        found = _COMPARE[rel](numbers, values[0])
    if known is not None:
        found = found & known
    return ~found if rel == "!=" else found


class _Columns:
    """The columns of one block of a scene, those that a search asks for."""

    def __init__(self, scene: Scene, block: Block, text: str) -> None:
        self._part = scene.parts[block.part]
        self._origin = scene.origin_ns
        self._spans = block.frame == "spans"
        self._rows = block.rows
        self._length = block.end - block.begin
        self._text = text
        trace = self._part.trace
        self._frame: pd.DataFrame = trace.spans if self._spans else trace.instants

    def __len__(self) -> int:
        return self._length

    def term(self, term: Node, where: Mask | None) -> Mask:
        """Try one term on every row; where ``where`` is false, any answer is right."""
        name = term["field"]
        if name == "args":
            return self._arguments(term, where)
        field = FIELDS[name]
        if name in ("name", "kind", "domain", "timing", "run"):
            return self._by_category(term, "run_id" if name == "run" else name)
        if name == "event":
            return np.full(self._length, _each(term, ["span" if self._spans else "instant"])[0])
        if field.type == "time":
            return self._by_time(term, name)
        if name in ("iteration", "depth", "correlation"):
            if name not in self._frame.columns:
                return np.full(self._length, term["rel"] == "!=")
            column: pd.Series = self._frame[str(name)]
            numbers = filled(column)
            known = None if name == "depth" else self._taken(numbers >= 0)
            return _compared(term, self._taken(numbers), known)
        per_track = self._by_track(term, name)
        mine: Mask = per_track[self._taken(self._frame["track"].to_numpy())]
        return mine

    def _taken(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self._rows is None else values[self._rows]

    def _by_category(self, term: Node, column: str) -> Mask:
        if column not in self._frame.columns:
            texts: list[str | None] = [None]
            codes = np.zeros(self._length, np.int8)
        else:
            known = self._frame[column].cat
            texts = [*(str(text) for text in known.categories), None]  # code -1 is the last one
            if column == "domain":
                texts[-1] = schema.DOMAINS[0]  # where it is drawn
            if column == "name":
                texts[-1] = ""
            codes = self._taken(known.codes.to_numpy())
        return _each(term, texts)[codes]

    def _by_time(self, term: Node, name: str) -> Mask:
        if not self._spans and name in ("dur", "self"):
            return np.full(self._length, term["rel"] == "!=")
        if name in ("dur", "self"):
            return _compared(term, self._taken(self._frame[f"{name}_ns"].to_numpy()))
        start = self._frame["start_ns" if self._spans else "ts_ns"]
        values = start.to_numpy() if start.dtype == np.int64 else filled(start)
        times = self._taken(values).astype(np.int64, copy=False) + (self._part.shift_ns - self._origin)
        if name == "end" and self._spans:
            times = times + self._taken(self._frame["dur_ns"].to_numpy())
        return _compared(term, times)

    def _by_track(self, term: Node, name: str) -> Mask:
        """Return the answer for every row of the tracks, and for none."""
        tracks = self._part.trace.tracks
        if name in ("device", "rank"):
            numbers = np.append(filled(tracks[name]), -1)
            return _compared(term, numbers, numbers >= 0)
        return _each(term, [*self._track_texts[name], None])

    @cached_property
    def _track_texts(self) -> dict[str, list[str | None]]:
        return track_texts(self._part.trace.tracks)

    def _arguments(self, term: Node, where: Mask | None) -> Mask:
        trace = self._part.trace
        args = trace.args if self._spans else trace.instant_args
        negative = term["rel"] in ("!=", "!~")
        out = np.full(self._length, negative)
        if not len(args):
            return out
        wanted = np.arange(self._length) if where is None else np.flatnonzero(where)
        rows = wanted if self._rows is None else self._rows[wanted]
        if term["key"]:
            codes, values = args.values(rows, term["key"])
            answers = np.array([*(_of_value(term, value) for value in values), negative], bool)
            out[wanted] = answers[codes]
            return out
        if len(wanted) > _MOST_ARGUMENTS:
            at = max(0, self._text.lower().find("args"))
            raise QueryError(
                self._text,
                at,
                f"a further term beside this one: the arguments of {len(wanted):,} events would be read, "
                f"and at most {_MOST_ARGUMENTS:,} are",
            )
        test, _ = _test(term)
        out[wanted] = [
            any(test(f"{name}: {value}") for name, value in found.items()) != negative
            for found in args.read(rows)
        ]
        return out


def _of_value(term: Node, value: object) -> bool:
    """Try a term on the value of one argument."""
    if term["rel"] in ("<", "<=", ">", ">="):
        text = str(value)
        return bool(_NUMBER.fullmatch(text)) and bool(_COMPARE[term["rel"]](float(text), term["values"][0]))
    return bool(_each(term, [str(value)])[0])
