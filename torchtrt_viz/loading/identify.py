"""What each file is, found out once, by its content; its name settles what the content leaves open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Literal

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.files import kind_of
from torchtrt_viz.formats.flight_recorder.sniff import world_size
from torchtrt_viz.formats.io.foreign import told_by_head
from torchtrt_viz.formats.io.foreign_file import Foreign
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.io.stored import IN_MEMORY_BYTES
from torchtrt_viz.formats.kineto.rank_header import RankHeader, read_rank_header
from torchtrt_viz.formats.kineto.sniff import begins_merged, is_kineto_header
from torchtrt_viz.formats.nsys.vocabulary import table_of_file
from torchtrt_viz.formats.saved.document import SESSION_FORMAT, TRACE_FORMAT, begins_document
from torchtrt_viz.formats.session.health import archive_damage, document_damage
from torchtrt_viz.formats.session.manifest import MANIFEST, Manifest, parse_manifest
from torchtrt_viz.formats.session.rank_names import RankName, read_dump_name, read_rank_name
from torchtrt_viz.formats.xplane.whole import WITHOUT_EVENTS, xplane_damage
from torchtrt_viz.loading.rank_files import identity_of, read_archive_meta
from torchtrt_viz.loading.rank_sidecar import read_sidecar
from torchtrt_viz.loading.saved_files import saved_header, without_tables
from torchtrt_viz.loading.sniffing import sniff_head
from torchtrt_viz.loading.unwrapping import unwrapped
from torchtrt_viz.loading.walk import File, closed, expand

__all__ = ["Identified", "identify"]

CHECK_BYTES = 64 << 20
"""Collections up to this size as stored are read to their end when opened, so that damage shows at once."""

_SET_FORMATS = ("trex", "torchtrt", "trtexec")
_MANIFEST_BYTES = 64 << 20
_OF_EVERY_EXPORT = ("StringIds.parquet", "TARGET_INFO_SESSION_START_TIME.parquet", "META_DATA_EXPORT.parquet")
_XPLANE_ENDING = re.compile(r"\.xplane\.pb(\.gz)?$")
_UNFINISHED = "the export of this trace was never finished (its writer died, or the disk was full)"

_TRACES = ("trace", "rank archive", "engine file", "lost trace")

Kind = Literal[
    "trace", "rank archive", "engine file", "manifest", "etrecord", "sidecar", "lost trace", "other"
]


@dataclass(frozen=True)
class Identified:
    """A file, and what it turned out to be.

    Attributes
    ----------
    kind
        "trace", "rank archive" (of this package's layout), "engine file" (one of a set about an engine),
        "manifest" (of a session), "etrecord", "sidecar" (of a rank), "lost trace" (by its name
        one, and unreadable), or "other" (no trace that is known).
    format
        What reads a trace.
    name
        What its name says about the rank whose it is; None when it says nothing.
    header
        What a trace says about its own rank.
    said
        What the archive's description or the sidecar says about the rank, as fields of its entry.
    damage
        What is wrong with it, None for nothing.
    error
        The error with which it was refused.
    foreign
        What it is that is no trace, where that is known.
    beginning
        Digest of a trace's first 64 KiB: equal for files that may have the same content.
    merged
        Whether it begins as a file into which several ranks were merged.
    """

    file: File
    kind: Kind
    format: str | None = None
    name: RankName | None = None
    header: RankHeader | None = None
    said: dict[str, Any] | None = None
    manifest: Manifest | None = None
    damage: str | None = None
    error: TraceFormatError | None = None
    foreign: Foreign | None = None
    beginning: bytes | None = None
    merged: bool = False

    @property
    def source(self) -> Source:
        """Its bytes."""
        return self.file.source


def identify(files: Sequence[File], format: str | None) -> list[Identified]:
    """Find out what each file is; archives are replaced by what is in them.

    Parameters
    ----------
    format
        What the caller said that they are, None unknown.
    """
    whole = sum(file.source.stored_bytes or 0 for file in files) <= CHECK_BYTES
    return [found for file in _one_per_export(files) for found in _identify(file, format, whole)]


def _one_per_export(files: Sequence[File]) -> list[File]:
    """Leave out tables of a saved trace, and those of an export of Nsight Systems but one for the folder."""
    files = without_tables(files)
    exports = {file.source.folder for file in files if file.source.filename in _OF_EVERY_EXPORT}
    out: list[File] = []
    seen: set[str] = set()
    for file in files:
        folder = file.source.folder
        if folder in exports and file.source.filename.endswith(".parquet"):
            if folder in seen or table_of_file(file.source.filename) is None:
                continue
            seen.add(folder)
        out.append(file)
    return out


def _identify(file: File, format: str | None, whole: bool) -> Iterator[Identified]:
    size = file.source.stored_bytes
    # small files behind URLs are fetched once for all questions; the copy is let go with this frame
    near = file.source.local() if size is not None and 0 < size <= IN_MEMORY_BYTES else None
    name = read_rank_name(file.slashed)
    if file.source.filename == MANIFEST and (manifest := _manifest(file)) is not None:
        yield manifest
    elif file.source.filename.lower().endswith(".etrecord"):
        yield Identified(file, "etrecord")
    elif size == 0:
        yield _unreadable(file, name, "empty file: its writer was stopped, or the disk was full")
    else:
        look = None
        try:
            look = file.source.look()
            source, _ = unwrapped(file.source, look)
            if source is not file.source:
                look = source.look()
            bundle = None if closed(file.source.filename) else look.archive
            if bundle is None:
                yield _single(file, source, look.head, name, format, whole)
            else:
                yield from _archive(File(file.name, source), bundle, name, format, whole)
        except TraceFormatError as error:
            foreign = None if look is None else told_by_head(look.head, file.source.filename)
            yield replace(_unreadable(file, name, str(error), error, foreign), foreign=foreign)
    del near


def _unreadable(
    file: File,
    name: RankName | None,
    damage: str,
    error: TraceFormatError | None = None,
    foreign: Foreign | None = None,
) -> Identified:
    """A file that nothing reads: a lost trace when its name says that it was one, else not ours.

    What stands in place of a trace (a pointer, an error page) is a lost trace too; what profilers write
    beside traces (a database, a snapshot) is none.
    """
    by_folder = name is not None and name.writer in (
        "other",
        "jax",
        "torch_npu",
    )  # files of any kind lie there
    weak = by_folder and "trace" not in file.source.filename.lower()
    known = foreign is not None and not foreign.in_place_of_a_trace
    other = name is None or weak or known or name.what in ("table", "memory")
    return Identified(file, "other" if other else "lost trace", name=name, damage=damage, error=error)


def _manifest(file: File) -> Identified | None:
    """Read a session's manifest; None for something else of that name."""
    try:
        manifest = parse_manifest(file.source.read(limit=_MANIFEST_BYTES), file.source.name)
    except TraceFormatError as error:
        return Identified(file, "manifest", damage=f"the manifest is not used: {error}")
    return None if manifest is None else Identified(file, "manifest", manifest=manifest)


def _archive(
    file: File, kind: str, name: RankName | None, format: str | None, whole: bool
) -> list[Identified]:
    """Find out what is in an archive."""
    if name is not None and name.writer == "torchtrt_viz" and file.source.member is None:
        meta = read_archive_meta(file.source)
        if meta is not None:
            damage = archive_damage(file.source) if whole else None
            return [
                Identified(
                    file,
                    "rank archive",
                    "kineto",
                    said=identity_of(meta),
                    damage=damage,
                    beginning=_digest(file.source.head()),
                )
            ]
    near = file.source.local()  # of an archive behind a URL one copy serves all members
    members = expand(file, kind)
    if _is_program(members):
        foreign = Foreign("a checkpoint or program of torch (zip)", "It is no trace", False)
        return [Identified(file, "other", error=foreign.refused(file.source.name), foreign=foreign)]
    out = [found for member in _one_per_export(members) for found in _identify(member, format, whole)]
    del near
    if name is not None and not any(found.kind in _TRACES for found in out):
        error = TraceFormatError("the archive holds no trace", path=file.source.name)
        out.append(_unreadable(file, name, str(error), error))
    return out


def _is_program(members: Sequence[File]) -> bool:
    """Whether an archive is one of torch's own, whatever it is called."""
    return {"data.pkl", "version"} <= {member.source.filename for member in members[:1000]}


def _single(
    file: File, source: Source, head: bytes, name: RankName | None, format: str | None, whole: bool
) -> Identified:
    """Find out what a file is that is no archive; ``source`` is the content without needless wrappings."""
    if format is None:
        saved = begins_document(head, TRACE_FORMAT) or begins_document(head, SESSION_FORMAT)
        if (
            not (saved or is_kineto_header(head))
            and (said := read_sidecar(head, source.filename)) is not None
        ):
            return Identified(file, "sidecar", said=said)
        if kind_of(head, source.filename) is not None:
            return Identified(file, "engine file", name=name)
        format = sniff_head(head, source.filename, source.name)
    elif format in _SET_FORMATS:
        return Identified(file, "engine file", name=name)
    if name is None:  # a trace under an ending that no writer of ranks is known to use
        name = read_rank_name(f"{file.slashed.removesuffix('.gz').rpartition('.')[0]}.json")
    header = damage = None
    if format == "flight_recorder":
        name = read_dump_name(file.slashed)
        header = RankHeader(world_size=world_size(head))
    if format == "saved":
        if begins_document(head, SESSION_FORMAT):
            return Identified(file, "other")  # the recordings of the session have documents of their own
        header = saved_header(source)
    if format == "kineto":
        header = read_rank_header(source)
        damage = document_damage(source, whole=whole)
    if format == "xplane":
        # named as the trace-event file that the same profiler writes beside it
        name = read_rank_name(_XPLANE_ENDING.sub(".trace.json.gz", file.slashed)) or name
        damage, holds_events = xplane_damage(source) if whole else (None, True)
        if not holds_events:
            refused = WITHOUT_EVENTS.refused(source.name)
            return Identified(file, "other", error=refused, foreign=WITHOUT_EVENTS)
    if name is not None and name.what == "partial":
        damage = _UNFINISHED
    return Identified(
        file,
        "trace",
        format,
        name,
        header,
        damage=damage,
        beginning=_digest(head),
        merged=format == "kineto" and begins_merged(head),
    )


def _digest(head: bytes) -> bytes:
    return blake2b(head, digest_size=16).digest()
