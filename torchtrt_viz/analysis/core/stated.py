"""Operators that a recording states for its device work, as a trace holds them: who owns which work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.cache import kept
from torchtrt_viz.analysis.core.masks import among
from torchtrt_viz.model.optional_ints import filled
from torchtrt_viz.model.stated_rows import STATED
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Stated", "stated"]

_INPUTS = {"spans": ("timing",), "flows": ("name", "source", "target")}


@dataclass(frozen=True)
class Stated:
    """What a recording states, each array with an entry per span.

    Attributes
    ----------
    rows
        Whether the span stands for a stated operator.
    owner
        The stated operator of a piece of work; -1 elsewhere.
    """

    rows: NDArray[np.bool_]
    owner: NDArray[np.int64]


def stated(trace: TraceData) -> Stated | None:
    """Return the operators that the recording states; None for a trace without any."""
    if STATED not in trace.flows["name"].cat.categories:
        return None
    return kept(trace, "stated", _INPUTS, lambda: _stated(trace))


def _stated(trace: TraceData) -> Stated:
    size = len(trace.spans)
    source, target = filled(trace.flows["source"]), filled(trace.flows["target"])
    links = among(trace.flows["name"], (STATED,)) & (source >= 0) & (target >= 0)
    rows, owner = np.zeros(size, bool), np.full(size, -1, np.int64)
    rows[source[links]] = True
    rows &= among(trace.spans["timing"], ("modeled",))
    owner[target[links]] = source[links]
    for part in (rows, owner):
        part.flags.writeable = False  # several analyses look at the same
    return Stated(rows, owner)
