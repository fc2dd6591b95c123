"""Engines as a trace: aggregate spans of layers, measured spans of timed runs, operators of phases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.accounting import accounting_of
from torchtrt_viz.formats.engine.build import Group, build_engine, group_parts
from torchtrt_viz.formats.engine.info import EngineInfo
from torchtrt_viz.formats.engine.parts import Part, PhaseOps, read_parts, refuse_untimed
from torchtrt_viz.formats.engine.spans import SpanRows
from torchtrt_viz.formats.engine.torchtrt_calls import Calls
from torchtrt_viz.formats.io.gc_paused import collector_paused
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source

__all__ = ["read_file", "read_set", "trace_of_parts"]

_NO_CLOCK = "none: the records are sums over calls and have no place on a time axis"
_RUN_CLOCK = (
    "start of the timed run: host times and GPU times each count from their own instant, taken one after the "
    "other; they are not aligned further"
)
_CALL_CLOCK = "monotonic clock of the host that ran the engine"
_MOST_DRIFT_NS = 10_000_000
_PHASE_CLOCK = "start of the phase in the last call; not aligned with anything else"


def read_set(sources: Sequence[Source], options: LoadOptions, format: str | None = None) -> TraceData:
    """Read the files that describe engines (one set of `group_sets`) into one trace.

    Parameters
    ----------
    sources
        The files; one that cannot be read is left out with a warning unless it is the only one.
    options
        Options of the load; with ``strict`` a file that cannot be read raises.
    format
        Value of ``meta["format"]``; None: "torchtrt" when Torch-TensorRT wrote any of it, else "trex".

    Raises
    ------
    TraceFormatError
        When none of the files can be read.
    """
    parts: list[Part] = []
    failed: list[TraceFormatError] = []
    with collector_paused():
        for source in sources:
            try:
                parts += read_parts(source, options)
            except TraceFormatError as error:
                if options.strict:
                    raise
                failed.append(error)
        if failed and not parts:
            raise failed[0]
        for lost in failed:
            options.repaired(Repair("unreadable_file", str(lost), path=lost.path, offset=lost.offset))
        names = [source.name for source in sources]
        return trace_of_parts(parts, options, names, format, unreadable=len(failed))


def read_file(source: Source, options: LoadOptions, kind: str | None, format: str) -> TraceData:
    """Read one file about engines, known to be of ``kind`` (None: tell), into a trace.

    Raises
    ------
    TraceFormatError
        When nothing of it is whole, or it is about no engine.
    """
    with collector_paused():
        parts = read_parts(source, options, kind)
        refuse_untimed(parts, source.name)
        return trace_of_parts(parts, options, [source.name], format)


def trace_of_parts(
    parts: Iterable[Part],
    options: LoadOptions,
    sources: list[str],
    format: str | None = None,
    *,
    unreadable: int = 0,
) -> TraceData:
    """Join parts into engines, and engines into a trace; ``unreadable`` files gave no parts."""
    parts = list(parts)
    groups = group_parts(parts)
    engines: list[EngineInfo] = []
    calls = [part.content for group in groups for part in group.calls]
    rank = options.rank
    said = {part.rank for part in calls if part.rank is not None}
    if rank is None and len(said) == 1:
        (rank,) = said
    rows = SpanRows(rank=-1 if rank is None else rank)
    clocks = _clocks(groups)
    taken: set[str] = set()
    clock = _NO_CLOCK
    timed = False
    for group in groups:
        engine = build_engine(group, _unique(group, taken))
        if group.is_engine:
            engines.append(engine)
            if group.profile is not None:
                engine.layers["span"] = rows.add_layers(engine)
        for part in group.calls:
            rows.add_calls(engine, part.content)
            clock = _CALL_CLOCK
        if engine.timing is not None and len(engine.timing):
            if timed:
                options.repaired(
                    Repair(
                        "second_clock",
                        "the timed inferences of this engine have another start than those of the first: "
                        "they are in engine.timing and not among the spans",
                        path=engine.files.get("timing"),
                    )
                )
            else:
                rows.add_timing(engine)
                clock, timed = _RUN_CLOCK, True
        for part in group.phases:
            ops: PhaseOps = part.content
            rows.add_phase(engine, ops, measured=clocks == 1)
            if clocks == 1 and ops.names:
                clock = _PHASE_CLOCK
    names = {engine.producer for engine in engines}
    if format is None:
        ours = any(g.phases or g.calls for g in groups)
        format = "torchtrt" if "torch_tensorrt" in names or ours else "trex"
    spans = rows.spans()
    return TraceData(
        spans=spans,
        tracks=rows.tracks(),
        flows=rows.flows(),
        args=rows.args(),
        meta={
            "format": format,
            "sources": sources,
            "base_ns": _base(calls, options) if clock == _CALL_CLOCK else None,
            "clock": clock,
            "rank": rank,
            "versions": _versions(groups),
            "engines": engines,
            "loose": [_loose(group) for group in groups if not group.is_engine],
            "warnings": options.warnings,
            "accounting": accounting_of(
                [part.tally for part in parts if part.tally is not None], spans, unreadable
            ),
        },
    )


def _clocks(groups: list[Group]) -> int:
    """Count the files that have a time axis: each counts from a start of its own."""
    phases = sum(1 for group in groups for part in group.phases if part.content.names)
    phases += any(group.calls for group in groups)  # these share one
    return phases + sum(1 for group in groups if group.timing is not None and len(group.timing.content))


def _base(calls: list[Calls], options: LoadOptions) -> int | None:
    """Unix ns at time 0, when all files that say it agree: one machine wrote them, since it was started."""
    bases = [part.base_ns for part in calls if part.base_ns is not None]
    if not bases or max(bases) - min(bases) > _MOST_DRIFT_NS:
        if bases:
            options.repaired(
                Repair(
                    "second_clock",
                    "the engines were recorded on different machines, or before and after a restart of one: "
                    "their times are each engine's own and are not aligned",
                )
            )
        return None
    return min(bases)


def _unique(group: Group, taken: set[str]) -> str:
    profile = None if group.profile is None else group.profile.content
    ids: set[str] = {part.content.engine_id for part in group.calls if part.content.engine_id}
    if len(ids) == 1 and not ids & taken:
        taken |= ids
        return ids.pop()
    name = (profile.engine if profile is not None and profile.engine else group.name) or "engine"
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name} ({number})"
    taken.add(unique)
    return unique


def _versions(groups: list[Group]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for group in groups:
        for part in group.metadata:
            out.update(part.content.get("versions", {}))
    return out


def _loose(group: Group) -> dict[str, Any]:
    """What metadata files without an engine say."""
    out: dict[str, Any] = {"name": group.name}
    for part in group.metadata:
        out.update(part.content)
    if group.devices:
        out["devices"] = [device for part in group.devices for device in part.content]
    return out
