"""Which captured graph a launch replays, and how its work is aligned with it; refused where unclear."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.humanize import count
from torchtrt_viz.graphs.align import Alignment, align, identity, interleaved, shared
from torchtrt_viz.graphs.batch import fits
from torchtrt_viz.graphs.captured import CapturedGraph, Node
from torchtrt_viz.graphs.launched import GraphLaunch
from torchtrt_viz.graphs.names import Names
from torchtrt_viz.model.graph_rows import MATCHES

__all__ = ["LEAST_SHARED", "Plan", "choose"]

Ints = NDArray[np.int64]

LEAST_SHARED = 0.95
"""Work and calls that differ are of one graph only if at least so much of either has a counterpart."""
EXACT, ORDERED, BY_NAME = range(len(MATCHES))


@dataclass(frozen=True)
class Plan:
    """What a launch's work is, piece by piece.

    Attributes
    ----------
    graph
        The captured graph; None where none was accepted.
    nodes
        What the pieces belong to.
    owner
        Innermost node of each piece, -1 none.
    match
        How each piece was matched (position in `MATCHES`), -1 not.
    ambiguous
        How many pieces several calls of the capture come into question for, of different operators.
    note
        Why something was not matched, "" when all was.
    """

    graph: CapturedGraph | None
    nodes: tuple[Node, ...]
    owner: Ints
    match: NDArray[np.int8]
    ambiguous: int = 0
    note: str = ""


@dataclass(frozen=True)
class _Fit:
    """A captured graph that a launch may replay."""

    graph: CapturedGraph
    alignment: Alignment
    match: int


@dataclass
class _Sequence:
    """Launches that ran the same work in the same order."""

    first: GraphLaunch
    fits: list[_Fit] = field(default_factory=list)
    note: str = ""


def choose(
    launched: Sequence[GraphLaunch],
    captured: Sequence[CapturedGraph],
    names: Names,
    sizes: Collection[int] = (),
) -> list[Plan]:
    """Return a plan for each launch.

    A capture whose batch size contradicts the one that the replay's range states is refused, and one whose
    work differs in more than a twentieth. Of several that fit, the order of launches within a step against
    that of the captures within their recording decides; then what all of them agree on is kept.

    Parameters
    ----------
    sizes
        Batch sizes that the engine is known to have captured, beside those of ``captured``.
    """
    sequences: dict[tuple[bytes, bytes], _Sequence] = {}
    for launch in launched:
        if launch.signature not in sequences:
            sequences[launch.signature] = _fitting(launch, captured, names)
    read = {graph.batch for graph in captured if graph.batch is not None}
    known = read | set(sizes)
    possible = []
    notes = []
    for launch in launched:
        sequence = sequences[launch.signature]
        agreeing = _serving(sequence.fits, launch.batch, known, read)
        refused = sorted(
            {fit.graph.batch for fit in sequence.fits if fit not in agreeing and fit.graph.batch}
        )
        notes.append(
            f"the captures with this work are of batch size {', '.join(map(str, refused))}; the replay "
            f"states {launch.batch}: refused"
            if refused and not agreeing
            else sequence.note
        )
        possible.append(agreeing)
    _by_position(launched, possible)
    made: dict[tuple[Any, ...], Plan] = {}
    out = []
    for launch, options, note in zip(launched, possible, notes, strict=True):
        key = (launch.signature, tuple(id(fit) for fit in options), note)
        if key not in made:
            made[key] = _plan(launch, options, note)
        out.append(made[key])
    return out


def _serving(
    found: Sequence[_Fit], step: int | None, known: Collection[int], read: Collection[int]
) -> list[_Fit]:
    """Return the fits whose batch size serves the step.

    An engine may launch a larger graph than a step needs: ranks that work together pad to the same size. It
    shows where each smaller graph that serves the step was read, and its work is another.
    """
    out = [
        fit
        for fit in found
        if fit.graph.batch is None or step is None or fits(fit.graph.batch, step, known)
    ]  # fmt: skip
    if out or step is None or len(known) < 2:
        return out
    larger = min((size for fit in found if (size := fit.graph.batch or 0) > step), default=None)
    if larger is None or any(size not in read for size in known if step <= size < larger):
        return []
    return [fit for fit in found if fit.graph.batch == larger]


def _fitting(launch: GraphLaunch, captured: Sequence[CapturedGraph], names: Names) -> _Sequence:
    """Find the captured graphs with this work: the same work where there is any, else nearly the same."""
    out = _Sequence(launch)
    bare = names.without_names(launch.codes)
    streams = [np.flatnonzero(launch.streams == number) for number in np.unique(launch.streams)]
    for graph in captured:
        codes = launch.codes if graph.named else bare
        if len(codes) != len(graph.codes) or shared(codes, graph.codes) < len(codes):
            continue
        if not graph.named and len(streams) > 1:
            out.note = "the capture does not name its kernels, and the replay ran on several streams"
            continue
        aligned = interleaved([codes[stream] for stream in streams], graph.codes)
        if aligned is not None:
            whole = _put_together(aligned, streams, len(codes))
            out.fits.append(_Fit(graph, whole, EXACT if graph.named else ORDERED))
    if out.fits:
        out.note = ""
    elif captured and not out.note:
        _nearly(out, launch, [graph for graph in captured if graph.named], streams)
    return out


def _nearly(
    out: _Sequence, launch: GraphLaunch, captured: Sequence[CapturedGraph], streams: list[Ints]
) -> None:
    """Take the captured graph that has the most in common, if that is nearly everything."""
    size = len(launch.codes)
    common = [shared(launch.codes, graph.codes) for graph in captured]
    out.note = "no capture has this work in this order"
    if not common:
        return
    close = []
    for graph, alike in zip(captured, common, strict=True):
        if alike < LEAST_SHARED * max(size, len(graph.codes)):
            continue
        found = align(launch.codes, graph.codes) if len(streams) == 1 else _unique_names(launch, graph)
        if found is not None and np.count_nonzero(found.position >= 0) + len(
            found.options
        ) >= LEAST_SHARED * max(size, len(graph.codes)):
            close.append(_Fit(graph, found, ORDERED if len(streams) == 1 else BY_NAME))
    best = max((fit.alignment.matched for fit in close), default=0)
    out.fits = [fit for fit in close if fit.alignment.matched == best]
    if out.fits:
        theirs = len(out.fits[0].graph.codes)
        out.note = (
            f"{size} pieces of work against {theirs} captured calls: what has no counterpart is left out"
        )
    else:
        most = max(range(len(common)), key=common.__getitem__)
        out.note = (
            f"no capture has this work: the nearest has {common[most]} of its {size} pieces among "
            f"{len(captured[most].codes)} captured calls"
        )


def _unique_names(launch: GraphLaunch, graph: CapturedGraph) -> Alignment:
    """Align by names that occur once on either side: how streams took turns is not known."""
    names, first, often = np.unique(graph.codes, return_index=True, return_counts=True)
    once = dict(zip(names[often == 1].tolist(), first[often == 1].tolist(), strict=True))
    mine, times = np.unique(launch.codes, return_counts=True)
    alone = set(mine[times == 1].tolist())
    position = np.array(
        [once.get(code, -1) if code in alone else -1 for code in launch.codes.tolist()], np.int64
    )
    return Alignment(position, {}, position >= 0, False)


def _put_together(aligned: Sequence[Alignment], streams: Sequence[Ints], size: int) -> Alignment:
    if len(aligned) == 1 and aligned[0].whole and not aligned[0].options:
        return identity(size)
    position = np.full(size, -1, np.int64)
    options: dict[int, Ints] = {}
    for part, stream in zip(aligned, streams, strict=True):
        position[stream] = part.position
        options.update({int(stream[piece]): found for piece, found in part.options.items()})
    return Alignment(position, options, np.ones(size, bool), True)


def _by_position(launched: Sequence[GraphLaunch], possible: list[list[_Fit]]) -> None:
    """Narrow what is possible by the order of the launches within their steps.

    The graphs of a recording are launched in the order in which they were captured, each once a step. Where
    the launches of a step lie in that order in one way only, in one recording only, this is it.
    """
    windows: dict[int, list[int]] = {}
    for number, launch in enumerate(launched):
        windows.setdefault(launch.step, []).append(number)
    for members in windows.values():
        if not any(len(possible[number]) > 1 for number in members):
            continue
        found: dict[int, list[_Fit | None]] = {number: [] for number in members}
        for source in dict.fromkeys(fit.graph.source for number in members for fit in possible[number]):
            own = {
                number: fits
                for number in members
                if (fits := {fit.graph.number: fit for fit in possible[number] if fit.graph.source == source})
            }
            for number, fit in zip(own, _placed(list(own.values())), strict=False):
                found[number].append(fit)
        for number, told in found.items():
            if len(told) == 1 and told[0] is not None:
                possible[number] = [told[0]]


def _placed(launches: Sequence[dict[int, _Fit]]) -> list[_Fit | None]:
    """Return the graph of one recording for each launch of a step, None for one that has several places.

    Launches may go through the recording's graphs several times over. Empty when they cannot go at all.
    """
    of = next(iter(launches[0].values())).graph.of
    rounds = [launches]
    if len(launches) > of and len(launches) % of == 0:
        rounds = [launches[begin : begin + of] for begin in range(0, len(launches), of)]
    out: list[_Fit | None] = []
    for part in rounds:
        first = _earliest(part)
        last = _earliest([{-number: fit for number, fit in fitting.items()} for fitting in reversed(part)])
        if first is None or last is None:
            return []
        out += [
            fitting[low] if low == -high else None
            for fitting, low, high in zip(part, first, reversed(last), strict=True)
        ]
    return out


def _earliest(options: Sequence[dict[int, _Fit]]) -> list[int] | None:
    out: list[int] = []
    for own in options:
        later = [number for number in own if not out or number > out[-1]]
        if not later:
            return None
        out.append(min(later))
    return out


def _plan(launch: GraphLaunch, options: Sequence[_Fit], note: str) -> Plan:
    size = len(launch.pieces)
    nothing = np.full(size, -1, np.int64)
    if not options:
        return Plan(None, (), nothing, nothing.astype(np.int8), 0, note)
    first = options[0]
    nodes = list(first.graph.nodes)
    owner, match = nothing.copy(), np.full(size, -1, np.int8)
    ambiguous = 0
    made: dict[tuple[Any, ...], int] = {}
    same = [_calls(fit, size) for fit in options]
    alone = len(options) == 1 or len({_describe(fit.graph) for fit in options}) == 1
    for piece in range(size):
        places = [
            (fit.graph, int(fit.graph.owner[call]))
            for fit, calls in zip(options[:1] if alone else options, same, strict=False)
            for call in calls.get(piece, ())
        ]
        if not places:
            # with certainty of no call, or left out in one of the best alignments
            ambiguous += any(
                piece in fit.alignment.options or fit.alignment.position[piece] >= 0 for fit in options
            )
            continue
        distinct = {(id(graph), node) for graph, node in places}
        if len(distinct) == 1:
            owner[piece] = places[0][1]
            match[piece] = first.match if first.alignment.position[piece] >= 0 else max(first.match, ORDERED)
            continue
        agreed = _agreed(places)
        if agreed is None:
            ambiguous += 1
            continue
        key = (agreed.name, repr(sorted(agreed.details.items(), key=str)))
        if key not in made:
            made[key] = len(nodes)
            nodes.append(agreed)
        owner[piece], match[piece] = made[key], BY_NAME
    if ambiguous:
        several = f" in {len(options)} captures" if not alone and len(options) > 1 else ""
        work = count(ambiguous, "piece")
        note = f"{work} of work can be of several captured calls{several}: not matched" + (
            f"; {note}" if note else ""
        )
    return Plan(first.graph, tuple(nodes), owner, match, ambiguous, note)


def _calls(fit: _Fit, size: int) -> dict[int, list[int]]:
    """Return the captured calls that each piece of work can be of, for those that are of one for certain."""
    found = fit.alignment
    out: dict[int, list[int]] = {}
    for piece in range(size):
        if found.certain[piece]:
            if found.position[piece] >= 0:
                out[piece] = [int(found.position[piece])]
            elif piece in found.options:
                out[piece] = found.options[piece].tolist()
    return out


def _describe(graph: CapturedGraph) -> tuple[Any, ...]:
    """Return what is equal for captures that say the same of each call."""
    return (
        graph.batch,
        graph.codes.tobytes(),
        tuple(
            None if node < 0 else (graph.nodes[node].name, repr(graph.nodes[node].details))
            for node in graph.owner.tolist()
        ),
    )


def _agreed(places: Sequence[tuple[CapturedGraph, int]]) -> Node | None:
    """Return the operator that all calls in question are of, with what is the same for all of them."""
    found = [(graph, graph.operator_of(node)) for graph, node in places]
    if any(node < 0 for _, node in found):
        return None
    operators = [graph.nodes[node] for graph, node in found]
    if len({operator.name for operator in operators}) > 1:
        return None
    first = operators[0]
    details = {
        key: value
        for key, value in first.details.items()
        if all(operator.details.get(key) == value for operator in operators[1:])
    }
    return Node(first.name, first.kind, -1, details)
