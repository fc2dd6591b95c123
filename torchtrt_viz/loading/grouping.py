"""Which of the identified files belong together: ranks' traces, engines, and what goes with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.files import group_sets
from torchtrt_viz.formats.io.source import Source, folder_of
from torchtrt_viz.formats.session.manifest import Manifest
from torchtrt_viz.loading.copies import without_copies
from torchtrt_viz.loading.identify import Identified
from torchtrt_viz.loading.pages import pages_aside
from torchtrt_viz.loading.rank_files import RAW_TRACE, RankFile, fields_of
from torchtrt_viz.loading.rank_identity import numbered_ranks, ranks_beside
from torchtrt_viz.model.repair import Repair

__all__ = ["Grouped", "group"]


@dataclass(frozen=True)
class Grouped:
    """Files that belong together.

    Attributes
    ----------
    ranks
        The traces, each with what its name, its header and a sidecar beside it say.
    engines
        The sets of files about engines, as entries like those of ranks.
    engine_files
        The files of all sets.
    manifests
        (folder, manifest) of each session.
    records
        ETRecords.
    others
        Files that are no traces.
    repairs
        What could not be used.
    notes
        What was left out, and why: no damage.
    foreign
        Name of a file that is no trace -> what it is, where that is known.
    failures
        The errors with which files were refused.
    """

    ranks: tuple[RankFile, ...]
    engines: tuple[RankFile, ...]
    engine_files: tuple[Source, ...]
    manifests: tuple[tuple[str, Manifest], ...]
    records: tuple[Source, ...]
    others: tuple[Source, ...]
    repairs: tuple[Repair, ...]
    notes: tuple[Repair, ...]
    foreign: dict[str, str]
    failures: tuple[TraceFormatError, ...]


def group(found: Sequence[Identified]) -> Grouped:
    """Put together what belongs together."""
    found, copies = without_copies(pages_aside(found))
    damaged = [entry for entry in found if entry.kind == "manifest" and entry.manifest is None]
    engine_files = [entry for entry in found if entry.kind == "engine file"]
    traces = [entry for entry in found if entry.kind in ("trace", "rank archive", "lost trace")]
    others = [entry.source.name for entry in found if entry.kind == "other"]
    ranks = ranks_beside([_rank(entry) for entry in traces], others)
    ranks, numbered = numbered_ranks(ranks, [entry.name for entry in traces])
    return Grouped(
        ranks=tuple(_told_by_sidecars(ranks, [entry for entry in found if entry.kind == "sidecar"])),
        engines=tuple(_engines(engine_files)),
        engine_files=tuple(entry.source for entry in engine_files),
        manifests=tuple((entry.file.folder, entry.manifest) for entry in found if entry.manifest is not None),
        records=tuple(entry.source for entry in found if entry.kind == "etrecord"),
        others=tuple(entry.source for entry in found if entry.kind == "other" or entry in damaged),
        repairs=tuple(
            Repair("damaged_manifest", entry.damage or "", path=entry.source.name) for entry in damaged
        ),
        notes=(*copies, *numbered, *(_not_read(entry) for entry in found if _worth_a_note(entry))),
        foreign={entry.source.name: entry.foreign.what for entry in found if entry.foreign is not None},
        failures=tuple(entry.error for entry in found if entry.error is not None),
    )


def _worth_a_note(entry: Identified) -> bool:
    return entry.kind == "other" and entry.foreign is not None and entry.foreign.beside_traces


def _not_read(entry: Identified) -> Repair:
    assert entry.foreign is not None
    return Repair("not_a_trace", f"not read: {entry.foreign.what}. {entry.foreign.hint}", entry.source.name)


def _rank(entry: Identified) -> RankFile:
    """Make the entry of a trace."""
    state = "ok" if entry.damage is None else "damaged"
    if entry.kind == "rank archive":
        return RankFile(
            source=entry.source.inside(RAW_TRACE),
            path=entry.source.name,
            format=entry.format,
            archive=entry.source,
            writer="torchtrt_viz",
            state=state,
            error=entry.damage,
            **(entry.said or {}),
        )
    fields = fields_of(entry.name, entry.header)
    if entry.merged or fields.get("what") == "merged":  # its header is the first rank's
        fields = {"what": "merged", **{key: fields[key] for key in ("session", "writer") if key in fields}}
    return RankFile(
        source=entry.source,
        path=entry.source.name,
        format=entry.format,
        state=state,
        error=entry.damage,
        **fields,
    )


def _told_by_sidecars(ranks: list[RankFile], sidecars: list[Identified]) -> list[RankFile]:
    """Add to each rank what a small JSON file beside it says about it (clock readings, role, host)."""
    out = list(ranks)
    for entry in sidecars:
        said = entry.said or {}
        for i, rank in enumerate(out):
            beside = folder_of(rank.path.split("!")[0]) == entry.file.folder
            agrees = all(
                getattr(rank, name) in (None, said.get(name)) or (name == "pid" and "pid" not in said)
                for name in ("rank", "role", "pid")
            )
            if beside and agrees:
                unsaid = {k: v for k, v in said.items() if getattr(rank, k) in (None, ())}
                out[i] = replace(rank, **unsaid)
    return out


def _engines(files: Iterable[Identified]) -> list[RankFile]:
    """Make one entry of each set of files that describe an engine."""
    members = {entry.source.name: entry for entry in files}
    out = []
    for name, sources in group_sets(entry.source for entry in members.values()).items():
        told = members[sources[0].name].name
        out.append(
            RankFile(
                source=None,
                path=str(name),
                format="engine set",
                members=tuple(sources),
                rank=None if told is None else told.rank,
                role=None if told is None else told.role,
                what="engine",
            )
        )
    return out
