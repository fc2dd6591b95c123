"""Saved traces and sessions: a folder of tables with a document, which says all that there is to say."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.saved.document import SESSION_FORMAT, begins_document, read_document
from torchtrt_viz.formats.saved.layout import SESSION, TRACE, TRACES, partition_of
from torchtrt_viz.loading.inputs import Named
from torchtrt_viz.loading.rank_files import RankFile
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.session_data import SessionData
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["SavedRankFile", "load_saved", "saved_document"]

_HEAD_BYTES = 512
_STATES = ("ok", "damaged", "staged", "missing")


@dataclass(frozen=True)
class SavedRankFile(RankFile):
    """One recording of a saved session.

    Attributes
    ----------
    saved
        Its document; None for a recording that could not be read when the session was saved.
    recording
        Its number in every table of the session.
    """

    saved: Source | None = None
    recording: int = -1

    def load(self, options: LoadOptions) -> TraceData:
        """Read the recording as it was saved.

        Raises
        ------
        TraceFormatError
            When it was not there to be saved, or its tables are damaged.
        """
        if self.saved is None:
            raise TraceFormatError(
                self.error or "the recording could not be read when the session was saved",
                path=self.path,
                hint="session.ranks says for every rank what is there",
            )
        return read_source(self.saved, replace(options, rank=self.rank, warnings=[]), "saved")


def saved_document(named: Named) -> Source | None:
    """Return the document of the saved trace or session that was named, or whose folder was; else None."""
    if len(named.labels) != 1 or named.what == "several":
        return None
    depth = 1 if named.what == "folder" else 0
    for file in named.files:
        if file.source.filename in (TRACE, SESSION) and (not depth or file.name.count("/") == depth):
            return file.source
    return None


def load_saved(
    document: Source, named: Named, options: LoadOptions, engine: str | None
) -> TraceData | SessionData:
    """Load what was saved.

    Raises
    ------
    TraceFormatError
        When it is damaged, or of a later version.
    """
    if not begins_document(document.head(_HEAD_BYTES), SESSION_FORMAT):
        return read_source(document, options, "saved")
    # slow to import: it needs numpy
    from torchtrt_viz.formats.saved.plain import NotPlain, from_plain

    if not document.on_disk:
        raise TraceFormatError(
            "a saved session is read from a folder on disk",
            path=document.name,
            expected="a folder",
            found="a file in an archive, compressed, or behind a URL",
            hint="Unpack or copy the whole folder, and load that",
        )
    said = read_document(document, SESSION_FORMAT)
    entries = said.get("recordings")
    try:
        meta = from_plain(said.get("meta"))
        files = [_recording(document, row, entry) for row, entry in enumerate(entries or [])]
        checked = isinstance(meta, dict) and isinstance(entries, list)
        if not checked or not all(isinstance(each, Repair) for each in meta.get("warnings", [None])):
            raise NotPlain("no recordings, or no meta data of a session")
        session = SessionData(files, options=options, engine=engine, paths=named.labels)
        session.meta = {**session.meta, **meta}
        for key in ("sources", "manifests", "other_files"):
            if not isinstance(session.meta[key], list):
                raise NotPlain(f"meta[{key!r}] is no list")
    except (NotPlain, TypeError) as error:
        raise TraceFormatError(
            "the document of the saved session is damaged",
            path=document.name,
            expected="what was saved",
            found=str(error)[:200],
            hint="Copy the whole folder again, or save the session again",
        ) from error
    folder = document.path.absolute().parent
    session.dataset = str(folder)
    # slow to import: it needs numpy
    from torchtrt_viz.formats.saved.rank_tables import KeptTables

    session.tables = KeptTables(folder)
    return session


def _recording(document: Source, row: int, entry: Any) -> SavedRankFile:
    # slow to import: it needs numpy
    from torchtrt_viz.formats.saved.plain import NotPlain, from_plain

    if not isinstance(entry, dict):
        raise NotPlain(f"recording {row} is no object")
    values: dict[str, Any] = {}
    for one in fields(RankFile):
        if one.name not in entry or one.name in ("source", "archive", "members", "captures"):
            continue
        value = from_plain(entry[one.name])
        if not _fits(value, str(one.type)):
            raise NotPlain(f"{one.name} of recording {row} is {type(value).__name__}")
        values[one.name] = value
    if not isinstance(values.get("path"), str) or values.get("state", "ok") not in _STATES:
        raise NotPlain(f"recording {row} has no path, or no state that is known")
    partition = entry.get("partition")
    saved = None
    if partition is not None:
        if partition != partition_of(values.get("rank"), values.get("cycle"), row):
            raise NotPlain(f"partition {str(partition)[:80]!r} is not that of recording {row}")
        saved = Source(document.path.absolute().parent / TRACES / partition / TRACE)
    return SavedRankFile(source=None, saved=saved, recording=row, **values)


def _fits(value: Any, declared: str) -> bool:
    if declared.startswith("tuple"):
        return isinstance(value, tuple) and all(type(each) is str for each in value)
    if value is None:
        return "None" in declared
    if declared.startswith("int"):
        return type(value) is int and abs(value) < 1 << 63
    return type(value) is str
