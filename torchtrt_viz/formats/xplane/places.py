"""Where and what the events of a line are, told by the names of plane and line, by statistics and by names.

The names of planes and lines are in the one table of writers' names (`producers.rules`). XLA marks what an
event is with statistics: a copy has ``memcpy_details``, an operator ``hlo_op``, a step ``step_num``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.producers.rules import GPU, HOST, Place, columns_of, place_of
from torchtrt_viz.formats.producers.work_names import kind_by_rules, kind_on_device, kind_on_host
from torchtrt_viz.formats.xplane.stats import StatsOfEvents
from torchtrt_viz.model.schema import KINDS

__all__ = ["COUNTERS", "Placed", "line_places", "placed"]

COUNTERS = "_counters_"
"""Name of the lines whose events are values of counters."""

_OTHER, _KERNEL, _ANNOTATION, _OPERATOR, _STEP = (
    KINDS.index(kind) for kind in ("other", "kernel", "annotation", "operator", "step")
)
#: Statistics that say what a device's event is, the strongest last.
_OF_DEVICE = (
    ("Memset_details", "memset"),
    ("memset_details", "memset"),
    ("memcpy_details", "memcpy"),
    ("memalloc_details", "memory"),
    ("MemFree_details", "memory"),
    ("MemoryResidency_details", "memory"),
    ("nvtx_range", "annotation"),
)
#: Operators of TensorFlow: the name in the graph, a colon, the type.
_TENSORFLOW = re.compile(r"[A-Za-z0-9.][\w./-]*:[A-Z][A-Za-z0-9]*(#|$)")
#: Operators of HLO that only hold others: on a TPU these lie within them on the same line.
_HOLDING = frozenset({"while", "conditional", "call"})
_LONGEST = 4096


@dataclass(frozen=True)
class Placed:
    """Columns of events: positions in ``schema.KINDS``, ``DOMAINS`` (-1 unsaid) and ``TIMINGS``."""

    kind: NDArray[np.int8]
    domain: NDArray[np.int8]
    timing: NDArray[np.int8]


def line_places(names: Sequence[tuple[str, str]]) -> list[Place | None]:
    """Return what the names of each line (plane, line) say; None where they say nothing."""
    return [place_of(plane, line) for plane, line in names]


def placed(
    places: Sequence[Place | None],
    line: NDArray[np.int32],
    name: NDArray[np.int64],
    stats: StatsOfEvents,
    strings: Sequence[str],
) -> Placed:
    """Classify events.

    Parameters
    ----------
    line
        Row of ``places`` of each event.
    name
        Number of each event's name in ``strings``, -1 none.
    """
    on, does, timing = (values[line] for values in columns_of(places))
    kind = np.where(does >= 0, does, np.where(on == HOST, _ANNOTATION, _OTHER)).astype(np.int8)
    measured = timing == 0
    work = (on == GPU) & measured & (kind == _KERNEL)
    kind = _by_name(kind, on, work, name, strings)
    for statistic, means in _OF_DEVICE:
        kind[stats.has(statistic) & (on == GPU) & measured] = KINDS.index(means)
    holds = np.isin(
        stats.texts("hlo_category"), [code for word in _HOLDING if (code := stats.code(word)) is not None]
    )
    kind[work & holds] = _ANNOTATION
    host = (on == HOST) & (kind == _ANNOTATION)
    kind[host & stats.has("hlo_op")] = _OPERATOR
    kind[host & stats.has("step_num")] = _STEP
    return Placed(kind, on, timing)


def _by_name(
    kind: NDArray[np.int8],
    domain: NDArray[np.int8],
    work: NDArray[np.bool_],
    name: NDArray[np.int64],
    strings: Sequence[str],
) -> NDArray[np.int8]:
    """Tell copies and collectives from kernels; Python frames, operators and runtime calls from ranges."""
    table: dict[bool, NDArray[np.int8]] = {}
    for device in (True, False):
        rows = work if device else (domain == HOST) & (kind == _ANNOTATION)
        out = np.full(len(strings) + 1, -1, np.int8)
        for code in np.unique(name[rows]).tolist():
            text = strings[code][:_LONGEST] if code >= 0 else ""
            out[code] = _on_device(text) if device else _on_host(text)
        table[device] = out
        found = out[name]
        kind = np.where(rows & (found >= 0), found, kind).astype(np.int8)
    return kind


def _on_device(text: str) -> int:
    found = kind_on_device(text)
    return found if found >= 0 else kind_by_rules(_KERNEL, text)


def _on_host(text: str) -> int:
    found = kind_on_host(text)
    if found >= 0:
        return found
    return _OPERATOR if _TENSORFLOW.match(text) else -1
