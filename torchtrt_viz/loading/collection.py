"""Folders, archives and lists of files: a trace, the files about an engine, or a session of many ranks.

What is there decides: a manifest, or several traces, make a `Session`; one trace with the files that
belong to it (an ETRecord, an engine's sidecars) makes a `Trace`; so do the files that describe one
engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchtrt_viz.errors import OptionError, TraceFormatError
from torchtrt_viz.formats.engine.file_set import group_sets, is_set_member
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.session.health import archive_damage, document_damage
from torchtrt_viz.formats.session.manifest import MANIFEST, Manifest, parse_manifest
from torchtrt_viz.formats.session.rank_names import read_rank_name
from torchtrt_viz.loading.capture_folder import find_capture, load_capture
from torchtrt_viz.loading.rank_files import (
    RAW_TRACE,
    RankFile,
    describe,
    identity_of,
    read_archive_meta,
    read_sidecar,
)
from torchtrt_viz.loading.session_files import apply_manifests, number_cycles
from torchtrt_viz.loading.sniffing import sniff
from torchtrt_viz.loading.walk import File, expand, walk
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.session_data import SessionData
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["load_collection"]

CHECK_BYTES = 64 << 20
"""Collections up to this size as stored are read to their end when opened, so that damage shows at once."""

_SET_FORMATS = ("trex", "torchtrt", "trtexec")


@dataclass
class _Found:
    """What the files turned out to be."""

    ranks: list[RankFile] = field(default_factory=list)
    manifests: list[tuple[Path, Manifest]] = field(default_factory=list)
    sidecars: list[tuple[File, dict[str, object]]] = field(default_factory=list)
    records: list[File] = field(default_factory=list)
    members: list[File] = field(default_factory=list)
    others: list[File] = field(default_factory=list)
    failures: list[TraceFormatError] = field(default_factory=list)


def load_collection(
    paths: Sequence[Path],
    options: LoadOptions,
    *,
    format: str | None = None,
    engine: str | None = None,
) -> TraceData | SessionData:
    """Load everything below ``paths``.

    Parameters
    ----------
    paths
        Folders, archives and files.
    format
        Read every file as this format, instead of sniffing; files that the names tell apart stay ranks.
    engine
        "dask" makes a lazy session.

    Returns
    -------
    Trace
        When there is one trace, or one engine's files.
    Session
        When there are several traces, or a manifest.

    Raises
    ------
    TraceFormatError
        When nothing below the paths is a trace; with ``options.strict`` also when one is damaged or missing.
    """
    if not paths:
        raise OptionError("paths", [], "name at least one file or folder")
    if len(paths) == 1 and format is None and engine is None:
        saved = find_capture(Path(paths[0]))
        if saved is not None:
            return load_capture(saved, options)
    files = [file for path in paths for file in walk(Path(path))]
    total = sum(f.source.stored_bytes or 0 for f in files)
    found = _Found()
    for file in files:
        _sort_in(file, found, options, format, whole=total <= CHECK_BYTES)
    ranks = _with_sidecars(found)
    sets = _sets(found.members, options)
    if not ranks and not found.manifests and len(sets) == 1 and engine is None:
        return sets[0].load(options)
    alone = [r for r in ranks if r.what == "trace"] or ranks
    if (
        len(alone) == 1
        and not found.manifests
        and engine is None
        and (not sets or alone[0].format == "etdump")
    ):
        return _one(alone[0], found, options)
    ranks = apply_manifests(found.manifests, ranks)
    ranks = number_cycles(ranks + sets, options)
    if not ranks:
        raise _nothing(paths, found)
    for rank in ranks:
        if rank.state not in ("ok", "staged"):
            options.repaired(
                Repair(
                    "missing_rank" if rank.state == "missing" else "damaged_rank",
                    rank.error or f"the trace is {rank.state}",
                    path=rank.path,
                )
            )

    return SessionData(
        ranks,
        manifests=[manifest for _, manifest in found.manifests],
        options=options,
        engine=engine,
        paths=list(paths),
        other_files=[file.source.name for file in (*found.others, *found.records)],
    )


def _nothing(paths: Sequence[Path], found: _Found) -> TraceFormatError:
    if len(paths) == 1 and paths[0].is_file() and found.failures:
        return found.failures[0]
    several = "" if len(paths) == 1 else f" and {len(paths) - 1} more"
    seen = ", ".join(file.source.filename for file in found.others[:5])
    return TraceFormatError(
        f"no trace in here{several}",
        path=paths[0],
        expected="trace files, archives of them, or the files that describe an engine",
        found=f"{len(found.others)} other files ({seen}{', ...' if len(found.others) > 5 else ''})"
        if found.others
        else "nothing",
        hint="Name the format to read a single file in spite of this: load(path, format=...)",
    )


def _one(rank: RankFile, found: _Found, options: LoadOptions) -> TraceData:
    """Load the only trace, with the files that belong to it."""
    if rank.format == "etdump" and options.etrecord is None:
        record = _record_for(rank, found.records)
        if record is not None:
            options = replace(options, etrecord=record)
    trace = rank.load(options)
    options.warnings.extend(w for w in trace.meta["warnings"] if w not in options.warnings)
    if found.members:
        trace.meta["sidecars"] = [file.source.name for file in found.members]
    return trace


def _record_for(rank: RankFile, records: Sequence[File]) -> Path | None:
    """Find the ETRecord that lies beside an ETDump: of the same stem, or the only one in its folder."""
    if rank.source is None or rank.source.member is not None:
        return None
    beside = [
        r for r in records if r.source.member is None and r.source.path.parent == rank.source.path.parent
    ]
    same = [r for r in beside if r.source.path.stem == rank.source.path.name.split(".")[0]]
    chosen = same or (beside if len(beside) == 1 else [])
    return chosen[0].source.path if chosen else None


def _sort_in(file: File, found: _Found, options: LoadOptions, format: str | None, *, whole: bool) -> None:
    """Find out what a file is."""
    name = file.source.filename
    if name == MANIFEST and _is_manifest(file, found, options):
        return
    if name.lower().endswith(".etrecord"):
        found.records.append(file)
        return
    if file.source.stored_bytes == 0:
        _sort_unreadable(file, found, "empty file: its writer was stopped, or the disk was full")
        return
    try:
        if _sort_archive(file, found, options, format, whole=whole):
            return
        _sort_single(file, found, format, whole=whole)
    except TraceFormatError as error:
        found.failures.append(error)
        _sort_unreadable(file, found, str(error))


def _is_manifest(file: File, found: _Found, options: LoadOptions) -> bool:
    """Take in a session's manifest; False when the file is something else of that name."""
    try:
        manifest = parse_manifest(file.source.read(limit=64 << 20), file.source.name)
    except TraceFormatError as error:
        options.repaired(
            Repair("damaged_manifest", f"the manifest is not used: {error}", path=file.source.name)
        )
        found.others.append(file)
        return True
    if manifest is None:
        return False
    found.manifests.append((file.folder, manifest))
    return True


def _sort_archive(
    file: File, found: _Found, options: LoadOptions, format: str | None, *, whole: bool
) -> bool:
    """Take in an archive; False when the file is none."""
    name = read_rank_name(file.slashed)
    if name is not None and name.writer == "torchtrt_viz" and file.source.member is None:
        meta = read_archive_meta(file.source)
        if meta is not None:
            damage = archive_damage(file.source) if whole else None
            found.ranks.append(
                RankFile(
                    source=Source(file.source.path, RAW_TRACE),
                    path=file.source.name,
                    format="kineto",
                    archive=file.source,
                    writer="torchtrt_viz",
                    state="ok" if damage is None else "damaged",
                    error=damage,
                    **identity_of(meta),
                )
            )
            return True
    members = expand(file)
    if members is None:
        return False
    before = len(found.ranks) + len(found.members)
    for member in members:
        _sort_in(member, found, options, format, whole=whole)
    if len(found.ranks) + len(found.members) == before and name is not None:
        raise TraceFormatError("the archive holds no trace", path=file.source.name)
    return True


def _sort_single(file: File, found: _Found, format: str | None, *, whole: bool) -> None:
    """Take in a file that is no archive."""
    if format is None and (meta := read_sidecar(file)) is not None:
        found.sidecars.append((file, meta))
        return
    known = format
    if known in _SET_FORMATS or (known is None and is_set_member(file.source)):
        found.members.append(file)
        return
    if known is None:
        known = sniff(file.source)
    rank = describe(file, known)
    damage = document_damage(file.source, whole=whole) if known == "kineto" else None
    if rank.what == "partial":
        damage = "the export of this trace was never finished (its writer died, or the disk was full)"
    if damage is not None:
        rank = replace(rank, state="damaged", error=damage)
    found.ranks.append(rank)


def _sort_unreadable(file: File, found: _Found, error: str) -> None:
    """A file that no loader knows: a damaged rank when its name says that it was one, else not ours."""
    name = read_rank_name(file.slashed)
    weak = name is not None and name.writer == "other" and "trace" not in file.source.filename.lower()
    if name is None or weak or name.what in ("table", "memory"):
        found.others.append(file)
        return
    rank = describe(file, None)
    found.ranks.append(replace(rank, state="damaged", error=error))


def _with_sidecars(found: _Found) -> list[RankFile]:
    """Add to each rank what a small JSON file beside it says about it (clock readings, role, host)."""
    out = list(found.ranks)
    for file, meta in found.sidecars:
        said = identity_of(meta)
        for i, rank in enumerate(out):
            beside = Path(rank.path.split("!")[0]).parent == file.folder
            agrees = all(
                getattr(rank, name) in (None, said.get(name)) or (name == "pid" and "pid" not in said)
                for name in ("rank", "role", "pid")
            )
            if beside and agrees:
                unsaid = {k: v for k, v in said.items() if getattr(rank, k) in (None, ())}
                out[i] = replace(rank, **unsaid)
    return out


def _sets(files: Iterable[File], options: LoadOptions) -> list[RankFile]:
    """Make one entry of each group of files that describe an engine."""
    members = {file.source.name: file for file in files}
    if not members:
        return []
    out = []
    for name, sources in group_sets([f.source for f in members.values()]).items():
        first = members[sources[0].name]
        told = read_rank_name(first.slashed)
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
