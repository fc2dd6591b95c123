"""Graphs that a recording saw captured: which calls put work into them, and which operator made each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import nearest
from torchtrt_viz.analysis.core.attributes import attribute
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.links import launches
from torchtrt_viz.analysis.core.masks import among, ends, ints, measured, names_matching, strings
from torchtrt_viz.graphs.batch import captured_as
from torchtrt_viz.graphs.names import BEGIN_CAPTURE, END_CAPTURE, LAUNCHES, Names
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["CapturedGraph", "Node", "captured_graphs"]

Ints = NDArray[np.int64]

_MODULE = re.compile(r"^nn\.Module: ")
#: Arguments of an operator that hold for its replay as well; addresses and ids do not.
_LASTING = ("Input Dims", "Input dims", "Input type", "Input Strides", "Concrete Inputs")
_PLACES = ("module", "source", "stack")


@dataclass(frozen=True)
class Node:
    """A call that enclosed captured launches: an operator, a module, a range.

    Attributes
    ----------
    parent
        Number of the node around it, -1 none; nodes stand in the order in which they began.
    details
        What is known of it: shapes, types, module, source line, stack.
    """

    name: str
    kind: str
    parent: int
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CapturedGraph:
    """One graph of a recording of captures.

    Attributes
    ----------
    source
        The recording.
    label
        What it is called.
    batch, mode
        Batch size and mode, None where nothing states them.
    number, of
        Position among the graphs of its recording, and how many there are.
    codes
        Name of the work of each captured call (`Names`), in the order of the calls.
    named
        Whether launches name their kernels; where not, order and number alone can be compared.
    nodes
        What enclosed the calls of all graphs of the recording.
    owner
        The innermost node of each call, -1 none.
    ended
        Whether the end of the capture was recorded.
    """

    source: str
    label: str
    batch: int | None
    mode: str | None
    number: int
    of: int
    codes: Ints
    named: bool
    nodes: tuple[Node, ...]
    owner: Ints
    ended: bool = True

    def operator_of(self, node: int) -> int:
        """Return the innermost operator at or above a node, -1 none."""
        while node >= 0 and self.nodes[node].kind != "operator":
            node = self.nodes[node].parent
        return node


@dataclass(frozen=True)
class _Interval:
    """A stretch of time in which a thread captured."""

    begin: int
    end: int
    thread: int
    ended: bool


def captured_graphs(
    trace: TraceData, names: Names, source: str, batch: int | None = None, mode: str | None = None
) -> list[CapturedGraph]:
    """Return the graphs that a recording saw captured, in the order of their captures.

    A capture is what lies between the calls that begin and end it. In a recording without such calls
    everything that was launched and did not run is taken for one graph. Launches that ran at once (a warm-up
    before the capture) are of none.

    Parameters
    ----------
    source
        How the recording is named in results.
    batch, mode
        What was said about the recording; None: what its ranges say.
    """
    rows = _captured_calls(trace)
    if not len(rows):
        return []
    start = ints(trace.spans["start_ns"])
    rows = rows[np.argsort(start[rows], kind="stable")]
    thread = host_nesting(trace).thread[rows]
    stretches = _intervals(trace)
    place = _place(start[rows], thread, stretches)
    if not stretches:
        place[:] = 0
        stretches = [_Interval(int(start.min()), int(ends(trace).max()) + 1, -1, True)]
    kernels = _kernel_names(trace, rows)
    calls = [str(name) for name in strings(trace.spans["name"])[rows]]
    codes = names.of_calls(calls, kernels)
    nodes, owner = _nodes(trace, rows, stretches)
    used = [number for number in range(len(stretches)) if (place == number).any()]
    out = []
    for position, number in enumerate(used):
        mine = np.flatnonzero(place == number)
        said = _said(trace, stretches[number])
        label, known = said if said is not None else ("", None)
        size = batch if batch is not None else known[0] if known else None
        out.append(
            CapturedGraph(
                source=source,
                label=label,
                batch=size,
                mode=mode if mode is not None else known[1] if known else None,
                number=position,
                of=len(used),
                codes=codes[mine],
                named=not (codes[mine] == names.unnamed).any(),
                nodes=nodes,
                owner=owner[mine],
                ended=stretches[number].ended,
            )
        )
    return out


def _captured_calls(trace: TraceData) -> Ints:
    """Return the launching calls for which no work ran; of calls inside each other the outer one."""
    spans = trace.spans
    call = (
        names_matching(spans["name"], LAUNCHES)
        & among(spans["kind"], ("runtime",))
        & among(spans["domain"], ("host",))
        & measured(trace)
    )
    outer = call & (nearest(host_nesting(trace).parent, call) < 0)
    ran = np.zeros(len(spans), bool)
    host = launches(trace).host
    ran[host[host >= 0]] = True
    return np.flatnonzero(outer & ~ran)


def _intervals(trace: TraceData) -> list[_Interval]:
    """Return when threads captured, in order; a capture whose end is missing lasts until the next one."""
    spans = trace.spans
    here = among(spans["domain"], ("host",)) & measured(trace)
    begins = np.flatnonzero(names_matching(spans["name"], BEGIN_CAPTURE) & here)
    stops = np.flatnonzero(names_matching(spans["name"], END_CAPTURE) & here)
    if not len(begins):
        return []
    start, thread = ints(spans["start_ns"]), host_nesting(trace).thread
    last = int(ends(trace)[here].max()) + 1
    out = []
    for row in begins.tolist():
        begin = int(start[row])
        after = start[stops[thread[stops] == thread[row]]]
        following = start[begins[thread[begins] == thread[row]]]
        end = int(after[after > begin].min()) if (after > begin).any() else last
        until = int(following[following > begin].min()) if (following > begin).any() else last
        out.append(_Interval(begin, min(end, until), int(thread[row]), end <= until and end < last))
    return sorted(out, key=lambda found: found.begin)


def _place(start: Ints, thread: Ints, stretches: list[_Interval]) -> Ints:
    """Return the stretch that each call lies in: its own thread's, else the only one of any; -1 none."""
    out = np.full(len(start), -1, np.int64)
    elsewhere = np.full(len(start), -1, np.int64)
    several = np.zeros(len(start), bool)
    for number, stretch in enumerate(stretches):
        inside = (start >= stretch.begin) & (start < stretch.end)
        own = inside & (thread == stretch.thread)
        out[own] = number
        several |= inside & (elsewhere >= 0)
        elsewhere[inside] = number
    free = (out < 0) & ~several
    out[free] = elsewhere[free]
    return out


def _kernel_names(trace: TraceData, rows: Ints) -> list[str | None]:
    codes, values = trace.args.values(rows, "kernel")
    names = [str(value) if isinstance(value, str) and value else None for value in values]
    return [None if code < 0 else names[code] for code in codes.tolist()]


def _said(trace: TraceData, stretch: _Interval) -> tuple[str, tuple[int, str]] | None:
    """Return the range that names a capture, and what it says: the innermost one around its beginning."""
    spans = trace.spans
    ranges = among(spans["kind"], ("annotation",)) & among(spans["domain"], ("host",)) & measured(trace)
    start = ints(spans["start_ns"])
    around = np.flatnonzero(ranges & (start <= stretch.begin) & (ends(trace) >= stretch.begin))
    names = strings(spans["name"])
    for row in around[np.argsort(-start[around], kind="stable")].tolist():
        known = captured_as(str(names[row]))
        if known is not None:
            return str(names[row]), known
    return None


def _nodes(trace: TraceData, rows: Ints, stretches: list[_Interval]) -> tuple[tuple[Node, ...], Ints]:
    """Return what enclosed the calls, and the innermost of it for each.

    Ranges and operators that began before a capture are left out: around a replay they are on the host.
    """
    spans = trace.spans
    start = ints(spans["start_ns"])
    host = among(spans["domain"], ("host",)) & measured(trace)
    module = host & among(spans["kind"], ("python",)) & names_matching(spans["name"], _MODULE)
    inside = host & among(spans["kind"], ("operator", "annotation"))
    inside[inside] = _place(start[inside], host_nesting(trace).thread[inside], stretches) >= 0
    above = nearest(host_nesting(trace).parent, module | inside)
    innermost = above[rows]
    used: set[int] = set()
    level = np.unique(innermost[innermost >= 0])
    while len(level):
        used.update(level.tolist())
        level = np.unique(above[level])
        level = np.array([row for row in level.tolist() if row >= 0 and row not in used], np.int64)
    kept = np.array(sorted(used, key=lambda row: (int(start[row]), _depth(above, row))), np.int64)
    number = {row: position for position, row in enumerate(kept.tolist())}
    names, kinds = strings(spans["name"])[kept], strings(spans["kind"])[kept]
    details = _details(trace, kept)
    nodes = tuple(
        Node(str(name), str(kind), number.get(int(above[row]), -1), found)
        for row, name, kind, found in zip(kept.tolist(), names, kinds, details, strict=True)
    )
    owner = np.array([number.get(int(row), -1) for row in innermost], np.int64)
    return nodes, owner


def _depth(above: Ints, row: int) -> int:
    depth = 0
    while above[row] >= 0:
        row, depth = int(above[row]), depth + 1
    return depth


def _details(trace: TraceData, rows: Ints) -> list[dict[str, Any]]:
    if not len(rows):
        return []
    out = [
        {key: found[key] for key in _LASTING if found.get(key)} for found in trace.args.read(rows)
    ]  # fmt: skip
    for name in _PLACES:
        for found, value in zip(out, attribute(trace, rows, name), strict=True):
            if isinstance(value, str):
                found[name] = value
    return out
