"""Several files put together: a trace, the files about an engine, or a session of many ranks.

What is there decides: a manifest, or several traces, make a session; one trace with the files that belong to
it (an ETRecord, an engine's sidecars) makes a trace; so do the files that describe one engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.dumps import DUMP, dumps_of_ranks
from torchtrt_viz.loading.graph_captures import with_captures
from torchtrt_viz.loading.grouping import Grouped
from torchtrt_viz.loading.inputs import Named
from torchtrt_viz.loading.merged_ranks import expanded, session_of
from torchtrt_viz.loading.rank_files import RankFile
from torchtrt_viz.loading.rank_identity import tell_apart
from torchtrt_viz.loading.session_files import apply_manifests
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.session_data import SessionData
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["put_together"]


def put_together(
    found: Grouped,
    named: Named,
    options: LoadOptions,
    engine: str | None,
    by_hand: Sequence[RankFile] = (),
) -> TraceData | SessionData:
    """Make of the files what they are together.

    Parameters
    ----------
    named
        What the caller named.
    engine
        "dask" makes a lazy session.
    by_hand
        Recordings of graphs' captures that the caller named.

    Returns
    -------
    TraceData
        When there is one trace, or one engine's files.
    SessionData
        When there are several traces, or a manifest.

    Raises
    ------
    TraceFormatError
        When nothing is a trace; with ``options.strict`` also when one is damaged or missing.
    """
    options.report(found.repairs)
    options.warnings.extend(found.notes)
    if options.graphs:
        ranks, unused = with_captures(
            found.ranks,
            found.others,
            by_content=not found.manifests,
            anywhere=named.what == "several",
        )
        if by_hand:
            ranks = [replace(rank, captures=(*rank.captures, *_of_rank(rank, by_hand))) for rank in ranks]
        options.warnings.extend(unused)
        found = replace(found, ranks=tuple(ranks))
    single = None if engine is not None or found.manifests else _single(found)
    if single is not None:
        trace = _one(single, found, options)
        return session_of(trace, list(named.labels), options) or trace
    known, merged = expanded(apply_manifests(found.manifests, list(found.ranks)), options)
    known, unnumbered = dumps_of_ranks(known)
    ranks, collisions, notes = tell_apart([*known, *found.engines])
    options.warnings.extend([*merged, *unnumbered, *notes])
    if not ranks:
        raise _nothing(named, found)
    options.report([*collisions, *(_lost(rank) for rank in ranks if rank.state not in ("ok", "staged"))])
    return SessionData(
        ranks,
        manifests=[manifest for _, manifest in found.manifests],
        options=options,
        engine=engine,
        paths=named.labels,
        other_files=[source.name for source in (*found.others, *found.records)],
    )


def _of_rank(replay: RankFile, captures: Sequence[RankFile]) -> list[RankFile]:
    if replay.what in ("capture", DUMP):
        return []
    return [one for one in captures if None in (one.rank, replay.rank) or one.rank == replay.rank]


def _single(found: Grouped) -> RankFile | None:
    """Return the only trace, or the only engine where there are no traces; None when there is a choice."""
    if not found.ranks:
        return found.engines[0] if len(found.engines) == 1 else None
    traces = [rank for rank in found.ranks if rank.what in ("trace", "merged", DUMP)] or found.ranks
    if len(traces) == 1 and (not found.engines or traces[0].format == "etdump"):
        return traces[0]
    return None


def _one(rank: RankFile, found: Grouped, options: LoadOptions) -> TraceData:
    """Load the only trace, with the files that belong to it."""
    if rank.format == "etdump" and options.etrecord is None:
        options = replace(options, etrecord=_record_for(rank, found.records))
    trace = rank.load(options)
    options.warnings.extend(w for w in trace.meta["warnings"] if w not in options.warnings)
    trace.meta["warnings"] = options.warnings
    if found.engine_files and not rank.members:
        trace.meta["sidecars"] = [source.name for source in found.engine_files]
    return trace


def _record_for(rank: RankFile, records: Sequence[Source]) -> Source | None:
    """Find the ETRecord that lies beside an ETDump: of the same stem, or the only one in its folder."""
    if rank.source is None:
        return None
    folder, stem = rank.source.folder, rank.source.filename.split(".")[0]
    beside = [record for record in records if record.folder == folder]
    same = [record for record in beside if record.filename.rpartition(".")[0] == stem]
    chosen = same or (beside if len(beside) == 1 else [])
    return chosen[0] if chosen else None


def _lost(rank: RankFile) -> Repair:
    code = "missing_rank" if rank.state == "missing" else "damaged_rank"
    return Repair(code, rank.error or f"the trace is {rank.state}", path=rank.path)


def _named(source: Source, found: Grouped) -> str:
    what = found.foreign.get(source.name)
    return source.filename if what is None else f"{source.filename}: {what}"


def _nothing(named: Named, found: Grouped) -> TraceFormatError:
    if found.failures and (named.one_file or len(found.failures) == len(found.others) == len(found.foreign)):
        return found.failures[0]
    labels = named.labels
    several = "" if len(labels) == 1 else f" and {len(labels) - 1} more"
    seen = ", ".join(_named(source, found) for source in found.others[:5])
    return TraceFormatError(
        f"no trace in here{several}",
        path=labels[0],
        expected="trace files, archives of them, or the files that describe an engine",
        found=f"{len(found.others)} other files ({seen}{', ...' if len(found.others) > 5 else ''})"
        if found.others
        else "nothing",
        hint="Name the format to read a single file in spite of this: load(path, format=...)",
    )
