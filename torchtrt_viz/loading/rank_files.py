"""One trace of one rank: where it lies, whose it is, and in what state.

Evidence about a rank is taken in this order: the session's manifest, what the archive or the trace itself
says, the file's name and folders. Ranks are kept apart by (session, host, role, instance, rank): rank 0
of the prefill workers and rank 0 of the decode workers are two ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.kineto.rank_header import RankHeader
from torchtrt_viz.formats.session.manifest import RANK_META, parse_rank_meta
from torchtrt_viz.formats.session.rank_names import RankName
from torchtrt_viz.graphs.batch import captured_in_file
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.loading.with_graphs import with_graphs
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    from torchtrt_viz.graphs.join import Capture

__all__ = ["RAW_TRACE", "RankFile", "fields_of", "identity_of", "read_archive_meta", "recordings"]

RAW_TRACE = "raw/trace.json"

_SMALL = 1 << 20


@dataclass(frozen=True)
class RankFile:
    """One trace of one rank (one recording cycle), or the want of it.

    Attributes
    ----------
    session, host, role, instance, rank
        Whose it is; None where nothing says so.
    node
        Word of the path that stands for a machine, whatever the machine is called.
    cycle
        Recording cycle, from 0.
    stage
        Part of the work, where a rank writes one file for each.
    state
        "ok", "damaged" (something is there, but not whole), "staged" (recorded, not packed yet) or "missing".
    error
        What is wrong, for every state but "ok".
    source
        The trace's bytes; None when it is missing.
    path
        Where it lies, or should.
    format
        Loader that reads it; "engine set" for the files in `members`.
    archive
        Archive of this package's layout that holds it.
    batch, mode
        Batch size and mode, where it records the capture of graphs and something states them.
    captures
        Recordings of the captures of the graphs that it may replay.
    """

    source: Source | None
    path: str
    format: str | None = None
    session: str | None = None
    host: str | None = None
    role: str | None = None
    instance: str | None = None
    node: str | None = None
    rank: int | None = None
    cycle: int | None = None
    stage: str | None = None
    pid: int | None = None
    device: str | None = None
    world_size: int | None = None
    writer: str | None = None
    what: str = "trace"
    stamp: int | None = None
    state: str = "ok"
    error: str | None = None
    archive: Source | None = None
    members: tuple[Source, ...] = ()
    start_unix_ns: int | None = None
    stop_unix_ns: int | None = None
    cut_at_start: tuple[str, ...] = ()
    cut_at_stop: tuple[str, ...] = ()
    batch: int | None = None
    mode: str | None = None
    captures: tuple[RankFile, ...] = ()

    @property
    def key(self) -> tuple[str | None, str | None, str | None, str | None, int | None]:
        """What identifies the rank."""
        return self.session, self.host, self.role, self.instance, self.rank

    def load(self, options: LoadOptions) -> TraceData:
        """Read the trace; its warnings are its own.

        Raises
        ------
        TraceFormatError
            When it is missing, or nothing of it can be read.
        """
        options = replace(options, rank=self.rank, warnings=[])
        if self.members:
            # slow to import: many modules, which other traces do not need
            from torchtrt_viz.formats.engine.file_set import read_set

            trace = read_set([member.local() for member in self.members], options)
        elif self.source is None:
            raise TraceFormatError(
                self.error or "the trace of this rank is missing",
                path=self.path,
                hint="session.ranks says for every rank what is there",
            )
        else:
            trace = read_source(self.source, options, self.format)
            merged = trace.meta.get("merged_ranks", [])
            if merged and self.what != "merged":
                trace.meta["warnings"].append(
                    Repair(
                        "merged_ranks",
                        f"the file holds the recordings of {len(merged)} ranks and was taken for one: "
                        "load it by itself to have them as a session",
                        self.path,
                        count=len(merged),
                    )
                )
        found: dict[str, Any] = {
            "rank": self.rank,
            "role": self.role,
            "host": self.host,
            "instance": self.instance,
            "session": self.session,
            "cycle": self.cycle,
            "stage": self.stage,
        }
        trace.meta.update({key: value for key, value in found.items() if value is not None})
        return with_graphs(trace, recordings(self.captures, options), options)


@dataclass(frozen=True)
class _Recording:
    """A recording of captures that is read when it is wanted."""

    file: RankFile
    options: LoadOptions

    @property
    def name(self) -> str:
        return self.file.path

    @property
    def batch(self) -> int | None:
        return (
            captured_in_file(self.file.path.rpartition("/")[2])
            if self.file.batch is None
            else self.file.batch
        )

    @property
    def mode(self) -> str | None:
        return self.file.mode

    def read(self) -> TraceData:
        return self.file.load(replace(self.options, graphs=False, progress=None))


def recordings(captures: Iterable[RankFile], options: LoadOptions) -> list[Capture]:
    """Return recordings of captures as a replay is joined with them."""
    return [_Recording(capture, options) for capture in captures]


def identity_of(meta: dict[str, Any]) -> dict[str, Any]:
    """Fields of a `RankFile` out of ``rank.json``."""
    out = {
        "session": meta.get("session_id"),
        **{
            name: meta.get(name)
            for name in (
                "rank",
                "cycle",
                "role",
                "host",
                "instance",
                "pid",
                "device",
                "world_size",
                "start_unix_ns",
                "stop_unix_ns",
            )
        },
        "cut_at_start": tuple(meta.get("cut_at_start") or ()),
        "cut_at_stop": tuple(meta.get("cut_at_stop") or ()),
    }
    return {key: value for key, value in out.items() if value is not None}


def _from_name(name: RankName | None) -> dict[str, Any]:
    if name is None:
        return {}
    instance = None
    if "dp" in name.dims and len(name.dims) > 1 and name.rank is not None:
        instance = f"dp{name.dims['dp']}"  # every data-parallel replica counts its ranks from 0
    elif name.rank is None and name.dims:
        instance = "_".join(f"{dim}{index}" for dim, index in name.dims.items())
    out = {
        "rank": name.rank,
        "cycle": name.cycle,
        "role": name.role,
        "host": name.host or name.node,
        "node": name.node,
        "pid": name.pid,
        "instance": instance,
        "session": name.run,
        "stage": name.stage,
        "stamp": name.stamp,
        "writer": name.writer,
        "what": name.what,
    }
    return {key: value for key, value in out.items() if value is not None}


#: What programs write where they do not know: two of these are not the same machine, role or session.
_UNKNOWN = (
    *("", "unknown", "none", "null", "n/a", "na", "-", "?"),
    *("localhost", "localhost.localdomain", "127.0.0.1"),
)


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if not isinstance(v, str) or v.strip().lower() not in _UNKNOWN}


def fields_of(name: RankName | None, header: RankHeader | None) -> dict[str, Any]:
    """Fields of a `RankFile` out of a file's name and of what a trace says about itself."""
    fields = _from_name(name)
    if header is not None:
        said = {key: value for key, value in header.__dict__.items() if value is not None}
        if name is not None and name.node is not None and said.get("host", name.node) != name.node:
            fields.setdefault("instance", name.node)  # folders of nodes are apart whatever the machines say
        if fields.get("session") is not None and fields["session"] == said.get("host"):
            fields.pop("session")  # "host-a.rank0.json" names the machine and no run
        if fields.get("pid") is not None:
            said.pop("pid", None)  # the header's is only the first event's
        if header.rank is not None and name is not None and name.rank is None:
            fields.pop("instance", None)  # the parallel dimensions only stood in for the rank
        fields.update(_known(said))
    return _known(fields)


def read_archive_meta(source: Source) -> dict[str, Any] | None:
    """Read ``rank.json`` of an archive of this package's layout; None for any other archive.

    Raises
    ------
    TraceFormatError
        When the archive is damaged before that member, which is its first.
    """
    meta = source.inside(RANK_META)
    try:
        data = meta.read(limit=_SMALL)
    except TraceFormatError as error:
        if "no such member" in str(error):
            return None
        raise
    return parse_rank_meta(data, meta.name)
