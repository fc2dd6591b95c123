"""A replay joined with the recordings of its graphs' captures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from torchtrt_viz.analysis.core.humanize import count, duration
from torchtrt_viz.analysis.core.links import launches, of_graphs
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.graphs.annotations import annotated, node_ids
from torchtrt_viz.graphs.batch import fits
from torchtrt_viz.graphs.captured import CapturedGraph, captured_graphs
from torchtrt_viz.graphs.choose import Plan, choose
from torchtrt_viz.graphs.launched import GraphLaunch, graph_launches, launches_graphs
from torchtrt_viz.graphs.names import BEGIN_CAPTURE, Names
from torchtrt_viz.graphs.recover import add_recovered
from torchtrt_viz.model.graph_rows import MATCHES
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Capture", "Joined", "join"]

_REASONS = 5
"""So many reasons for missing operators are told one by one, those of the most time."""


class Capture(Protocol):
    """A recording of captures that has not been read yet."""

    @property
    def name(self) -> str:
        """How it is named."""
        ...

    @property
    def batch(self) -> int | None:
        """Batch size that its name or a file beside it states."""
        ...

    @property
    def mode(self) -> str | None:
        """Mode that a file beside it states."""
        ...

    def read(self) -> TraceData:
        """Return the recording."""
        ...


@dataclass(frozen=True)
class Joined:
    """A replay with what was recovered, and what has to be said about it."""

    trace: TraceData
    repairs: tuple[Repair, ...] = ()
    notes: tuple[Repair, ...] = ()


def join(trace: TraceData, captures: Sequence[Capture] = ()) -> Joined:
    """Give the work of a trace's graph launches the operators of their capture.

    Captures are the given ones and those within the trace itself; where a launch has none, annotations that
    torch wrote at its kernels. ``meta["graphs"]`` of the result counts what was matched. A trace without
    launches of graphs, or for which nothing is known of them, is returned as it is.
    """
    if not launches_graphs(trace):
        return Joined(trace, notes=_useless(captures))
    names = Names()
    found = launches(trace)
    node = node_ids(trace, found.work.row[of_graphs(trace, found)])
    launched = graph_launches(trace, names, node)
    if not launched:
        return Joined(trace, notes=_useless(captures))
    captured: list[CapturedGraph] = []
    if any(BEGIN_CAPTURE.search(str(name)) for name in trace.spans["name"].cat.categories):
        captured += captured_graphs(trace, names, _source(trace))
    wanted, refusal = _wanted(captures, launched)
    repairs = _read(wanted, names, captured)
    sizes = {capture.batch for capture in captures if capture.batch is not None}
    plans = choose(launched, captured, names, sizes)
    larger = _larger(captures, wanted, launched, plans)
    if larger:
        repairs += _read(larger, names, captured)
        plans = choose(launched, captured, names, sizes)
        wanted = [*wanted, *larger]
    if refusal:
        plans = [_refused(plan, refusal) for plan in plans]
    scopes = None if node is None else annotated(trace, launched, node)
    if scopes is not None:
        plans = [plan if plan.graph is not None else scope for plan, scope in zip(plans, scopes, strict=True)]
    elif not captured and not captures:
        return Joined(trace)
    out = add_recovered(trace, launched, plans)
    out.meta["graphs"] = _counts(launched, plans, captures, captured)
    return Joined(
        out, tuple(repairs), (*_unmatched(trace, launched, plans), *_unused(wanted, captured, plans))
    )


def _read(captures: Iterable[Capture], names: Names, captured: list[CapturedGraph]) -> list[Repair]:
    """Add the graphs of recordings to ``captured``; returns what could not be read."""
    repairs = []
    for capture in captures:
        try:
            captured += captured_graphs(capture.read(), names, capture.name, capture.batch, capture.mode)
        except TraceFormatError as error:
            repairs.append(Repair("damaged_graph_capture", f"the capture is not used: {error}", capture.name))
    return repairs


def _larger(
    captures: Sequence[Capture],
    wanted: Sequence[Capture],
    launched: Sequence[GraphLaunch],
    plans: Sequence[Plan],
) -> list[Capture]:
    """Return the captures of larger batch sizes than steps without a graph need, where any were read."""
    least = min(
        (
            launch.batch
            for launch, plan in zip(launched, plans, strict=True)
            if plan.graph is None and launch.batch
        ),
        default=None,
    )
    if least is None or not wanted:
        return []
    return [
        capture for capture in captures if capture not in wanted and capture.batch and capture.batch > least
    ]  # fmt: skip


def _source(trace: TraceData) -> str:
    return str(trace.meta["sources"][0]) if trace.meta["sources"] else ""


def _useless(captures: Sequence[Capture]) -> tuple[Repair, ...]:
    return tuple(
        Repair(
            "graph_capture_unused",
            "the trace has no work of a graph launch that this recording of captures could explain",
            capture.name,
        )
        for capture in captures
    )


def _wanted(captures: Sequence[Capture], launched: Iterable[GraphLaunch]) -> tuple[list[Capture], str]:
    """Return the captures that can be of a launch by their batch sizes, and why it is none of them."""
    steps = {launch.batch for launch in launched}
    sizes = {capture.batch for capture in captures if capture.batch is not None}
    out = [
        capture
        for capture in captures
        if capture.batch is None
        or any(step is None or fits(capture.batch, step, sizes) for step in steps)
    ]  # fmt: skip
    if out or not captures:
        return out, ""
    return [], (
        f"the captures are of batch size {', '.join(map(str, sorted(sizes)))}; the replay states "
        f"{', '.join(map(str, sorted(step for step in steps if step is not None)))}: refused"
    )


def _refused(plan: Plan, refusal: str) -> Plan:
    if plan.graph is not None:
        return plan
    return Plan(None, plan.nodes, plan.owner, plan.match, plan.ambiguous, refusal)


def _counts(
    launched: Sequence[GraphLaunch],
    plans: Sequence[Plan],
    captures: Sequence[Capture],
    captured: Sequence[CapturedGraph],
) -> dict[str, object]:
    matches = np.concatenate([plan.match for plan in plans])
    recordings = dict.fromkeys([*(graph.source for graph in captured), *(one.name for one in captures)])
    return {
        "launches": len(launched),
        "pieces": len(matches),
        **{match: int((matches == code).sum()) for code, match in enumerate(MATCHES)},
        "none": int((matches < 0).sum()),
        "ambiguous": sum(plan.ambiguous for plan in plans),
        "captures": [
            {
                "path": name,
                "graphs": sum(graph.source == name for graph in captured),
                "launches": sum(plan.graph is not None and plan.graph.source == name for plan in plans),
            }
            for name in recordings
        ],
    }


def _unmatched(trace: TraceData, launched: Sequence[GraphLaunch], plans: Sequence[Plan]) -> list[Repair]:
    """Say what has no operator, one note for each reason."""
    dur = trace.spans["dur_ns"].to_numpy()
    found: dict[str, list[int]] = {}
    for launch, plan in zip(launched, plans, strict=True):
        left = plan.match < 0
        if left.any():
            sums = found.setdefault(plan.note or "they are not among the captured calls", [0, 0, 0])
            sums[0] += int(left.sum())
            sums[1] += 1
            sums[2] += int(dur[launch.pieces[left]].sum())
    largest = sorted(found.items(), key=lambda one: -one[1][2])
    out = [_without_operator(trace, reason, *sums) for reason, sums in largest[:_REASONS]]
    rest = [sums for _, sums in largest[_REASONS:]]
    if rest:
        reason = f"{len(rest)} more reasons, which trace.graphs() gives launch by launch"
        out.append(_without_operator(trace, reason, *map(sum, zip(*rest, strict=True))))
    return out


def _without_operator(trace: TraceData, reason: str, pieces: int, launched: int, total: int) -> Repair:
    work = f"{count(pieces, 'piece')} of GPU work ({duration(total)})"
    calls = count(launched, "graph launch", "graph launches")
    return Repair(
        "graph_work_unmatched",
        f"{work} of {calls} {'has' if pieces == 1 else 'have'} no operator: {reason}",
        _source(trace) or None,
        count=pieces,
    )


def _unused(
    wanted: Sequence[Capture], captured: Sequence[CapturedGraph], plans: Sequence[Plan]
) -> list[Repair]:
    """Name the recordings of captures of which nothing was used, where nothing else says so."""
    used = {plan.graph.source for plan in plans if plan.graph is not None}
    some = {graph.source for graph in captured}
    return [
        Repair(
            "graph_capture_unused",
            "no graph launch replays a graph of this recording" if capture.name in some
            else "the recording holds no captured launch",
            capture.name,
        )
        for capture in wanted
        if capture.name not in used
    ]  # fmt: skip
