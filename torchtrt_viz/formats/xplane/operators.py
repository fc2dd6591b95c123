"""Operators that work on a device names as its own: rows of their own, and the links to their work.

XLA runs compiled programs: no operator runs on the host. The events of a device name the operator that they
were compiled from: the path in JAX's or TensorFlow's program (``name``, ``tf_op``), else the HLO operator.
Work of one stream that follows one another and names the same operator of the same module is one row, from
the first start to the last end, as xprof shows it ("Framework Ops"). Rows are modeled, and in no sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.xplane.stats import StatsOfEvents

__all__ = ["Operators", "operators_of_work"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Operators:
    """Rows of operators.

    Attributes
    ----------
    name
        What each is called: a position in ``texts``.
    first
        An event of each, whose statistics are its own.
    of_work
        For each piece of work (in the order given) its row, -1 none.
    """

    texts: list[str]
    name: Ints
    track: NDArray[np.int32]
    start: Ints
    end: Ints
    own: Ints
    first: Ints
    of_work: Ints


def operator_names(stats: StatsOfEvents, strings: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return what operator each event names: a position in a list of texts, -1 none."""
    texts: dict[str, int] = {}
    path, op, hlo = stats.texts("name"), stats.texts("tf_op"), stats.texts("hlo_op")

    def told(code: int) -> int:
        text = strings[code].strip()
        # the part behind the colon is the type, which XLA leaves empty; the name of the module says nothing
        before, colon, _ = text.rpartition(":")
        text = before if colon and "/" in before else text.removesuffix(":")
        return -1 if not text or text == "XlaModule" else texts.setdefault(text, len(texts))

    out = np.full(len(path), -1, np.int64)
    for column in (path, op, hlo):
        left = np.flatnonzero((out < 0) & (column >= 0))
        known, inverse = np.unique(column[left], return_inverse=True)
        out[left] = np.array([told(code) for code in known.tolist()] or [0], np.int64)[inverse.reshape(-1)]
    return out, list(texts)


def operators_of_work(
    stats: StatsOfEvents,
    strings: Sequence[str],
    events: Ints,
    track: NDArray[np.int32],
    start: Ints,
    end: Ints,
) -> Operators | None:
    """Return the operators of pieces of work; None where none names one.

    Parameters
    ----------
    events
        The event of each piece.
    """
    names, texts = operator_names(stats, strings)
    name = names[events]
    order = np.lexsort((start, track))
    order = order[name[order] >= 0]
    if not len(order):
        return None
    module = stats.texts("hlo_module")[events][order]
    same = np.ones(len(order), bool)
    for column in (name[order], track[order], module):
        same[1:] &= column[1:] == column[:-1]
    same[0] = False
    row = np.cumsum(~same) - 1
    first = np.flatnonzero(~same)
    of_work = np.full(len(events), -1, np.int64)
    of_work[order] = row
    own = np.zeros(len(first), np.int64)
    np.add.at(own, row, (end - start)[order])
    return Operators(
        texts,
        name[order][first],
        track[order][first],
        start[order][first],
        np.maximum.reduceat(end[order], first),
        own,
        events[order][first],
        of_work,
    )
