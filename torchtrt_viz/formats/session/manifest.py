"""The session layout on disk: names, ``manifest.json``, and what an archive of one cycle holds.

::

    <profile-dir>/<session-id>/manifest.json
                               rank-00000/cycle-00000.tar.gz
                               .staging/rank-00000-cycle-00000-<job>/     while a job is being processed

An archive holds ``rank.json`` (whose cycle it is, where it began and ended), ``summary.json``,
``operators.csv``, ``raw/trace.json``, where collected ``stacks.folded`` and ``memory_timeline.csv``, and
as its last member ``inventory.json`` with the size and SHA-256 of every other one.

Both sides use this module: :mod:`torchtrt_viz.serving` writes the layout, the loaders read it. What is
read is checked here and nowhere trusted: a manifest may come from anywhere.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from torchtrt_viz.errors import TraceFormatError

__all__ = [
    "INVENTORY",
    "INVENTORY_FORMAT",
    "MANIFEST",
    "MANIFEST_FORMAT",
    "RANK_FORMAT",
    "RANK_META",
    "STAGING",
    "CycleRecord",
    "Manifest",
    "RankRecord",
    "archive_path",
    "confined",
    "parse_inventory",
    "parse_manifest",
    "parse_rank_meta",
]

MANIFEST = "manifest.json"
MANIFEST_FORMAT = "torchtrt_viz.session/1"
INVENTORY = "inventory.json"
INVENTORY_FORMAT = "torchtrt_viz.inventory/1"
RANK_META = "rank.json"
RANK_FORMAT = "torchtrt_viz.rank/1"
STAGING = ".staging"

_MAX_BYTES = 64 << 20
_MAX_RANKS = 1_000_000
_SHA256 = re.compile(r"[0-9a-f]{64}")


def archive_path(rank: int, cycle: int) -> str:
    """Path of a cycle's archive below the session's folder."""
    return f"rank-{rank:05d}/cycle-{cycle:05d}.tar.gz"


def confined(folder: Path, name: str) -> Path | None:
    """Return ``folder/name`` when it stays inside ``folder``, links included; else None."""
    parts = PurePosixPath(name)
    if not name or parts.is_absolute() or ".." in parts.parts or "\0" in name or "\\" in name:
        return None
    try:
        inside = folder.resolve()
        path = (inside / name).resolve()
    except (OSError, RuntimeError):  # names that are too long, links that go round in a circle
        return None
    return path if path.is_relative_to(inside) else None


@dataclass
class CycleRecord:
    """One recording cycle of one rank, as the session knows it.

    Attributes
    ----------
    cycle
        Number within the rank, from 0.
    state
        queued, parsing, packing, verifying, published, cleanup_failed, failed or interrupted.
    archive
        Path below the session's folder once it is published.
    bytes, sha256
        Size and checksum of the archive.
    stage, error
        Where processing failed, and how.
    staging
        Folder that keeps the files of a cycle that is not published.
    cleanup_error
        Why staged files of a published cycle are still there.
    """

    cycle: int
    state: str
    archive: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    stage: str | None = None
    error: str | None = None
    staging: str | None = None
    cleanup_error: str | None = None


@dataclass
class RankRecord:
    """One rank that the session expects.

    Attributes
    ----------
    rank, role, instance, host, pid, device
        Whose profile it is. ``rank`` is unique within the session.
    state
        expected, recording, collected, nothing_recorded, failed, or missing (it never answered, or died).
    error
        What went wrong, for failed and missing ranks.
    start_unix_ns, stop_unix_ns
        The rank's own clock when recording began and ended.
    cut_at_start, cut_at_stop
        Requests that were in flight when recording began, and when it ended.
    storage
        Profile folder as the rank's host sees it, where it is not the session's own.
    """

    rank: int
    role: str | None = None
    instance: str | None = None
    host: str | None = None
    pid: int | None = None
    device: str | None = None
    state: str = "expected"
    error: str | None = None
    start_unix_ns: int | None = None
    stop_unix_ns: int | None = None
    cut_at_start: list[str] = field(default_factory=list)
    cut_at_stop: list[str] = field(default_factory=list)
    storage: str | None = None
    cycles: list[CycleRecord] = field(default_factory=list)


@dataclass
class Manifest:
    """A session: what was asked for, which ranks are expected, and what became of each."""

    session_id: str
    state: str = "collecting"
    mode: str = "steps"
    config: dict[str, Any] = field(default_factory=dict)
    created_unix_ns: int | None = None
    stopped_unix_ns: int | None = None
    package_version: str | None = None
    coordinator_host: str | None = None
    ranks: list[RankRecord] = field(default_factory=list)

    def incomplete_ranks(self) -> list[int]:
        """Ranks that have not (yet) delivered all that they recorded."""
        done = {"published", "cleanup_failed"}
        return [
            r.rank
            for r in self.ranks
            if r.state not in ("collected", "nothing_recorded")
            or any(c.state not in done for c in r.cycles)
            or (r.state == "collected" and not r.cycles)
        ]

    def failed_ranks(self) -> list[int]:
        """Ranks that failed or are missing."""
        return [
            r.rank
            for r in self.ranks
            if r.state in ("failed", "missing") or any(c.state == "failed" for c in r.cycles)
        ]

    def to_json(self) -> bytes:
        """Return the manifest as it lies on disk."""
        import orjson

        document = {
            "format": MANIFEST_FORMAT,
            **asdict(self),
            "incomplete_ranks": self.incomplete_ranks(),
            "failed_ranks": self.failed_ranks(),
        }
        return orjson.dumps(document, option=orjson.OPT_INDENT_2)


def _object(data: bytes, path: str, format: str) -> dict[str, Any] | None:
    """Parse a JSON object of one of our formats; None when it is something else."""
    import orjson

    if len(data) > _MAX_BYTES:
        raise TraceFormatError(
            "the description of a session is too large",
            path=path,
            expected=f"at most {_MAX_BYTES} bytes",
            found=f"{len(data)} bytes",
        )
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise TraceFormatError(
            "not whole JSON",
            path=path,
            found=str(error),
            hint="The folder can be loaded without this file: move it away",
        ) from error
    if not isinstance(document, dict):
        return None
    name = document.get("format")
    family = format.split("/")[0]
    if not isinstance(name, str) or name.split("/")[0] != family:
        return None
    if name != format:
        raise TraceFormatError(
            "written by another version of this package",
            path=path,
            expected=format,
            found=name[:80],
            hint="Upgrade torchtrt-viz to read it",
        )
    return document


class _Fields:
    """Checked access to the fields of an object that was read."""

    def __init__(self, value: object, path: str, what: str) -> None:
        if not isinstance(value, dict):
            raise TraceFormatError(f"{what} is not an object", path=path, found=type(value).__name__)
        self._value = value
        self._path = path
        self._what = what

    def _wrong(self, name: str, expected: str) -> TraceFormatError:
        found = repr(self._value.get(name))[:80]
        return TraceFormatError(
            f"{self._what}: wrong {name}", path=self._path, expected=expected, found=found
        )

    def text(self, name: str) -> str | None:
        value = self._value.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or len(value) > 65536:
            raise self._wrong(name, "text")
        return value

    def count(self, name: str, limit: int = 2**63 - 1) -> int | None:
        value = self._value.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
            raise self._wrong(name, f"a whole number from 0 to {limit}")
        return value

    def number(self, name: str) -> int:
        value = self.count(name, 2**31 - 1)
        if value is None:
            raise self._wrong(name, "a whole number")
        return value

    def items(self, name: str) -> list[Any]:
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > _MAX_RANKS:
            raise self._wrong(name, "a list")
        return value

    def texts(self, name: str) -> list[str]:
        values = self.items(name)
        if not all(isinstance(v, str) for v in values):
            raise self._wrong(name, "a list of texts")
        return values

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._value.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value


def _cycle(value: object, path: str) -> CycleRecord:
    f = _Fields(value, path, "cycle")
    return CycleRecord(
        cycle=f.number("cycle"),
        state=f.text("state") or "interrupted",
        archive=f.text("archive"),
        bytes=f.count("bytes"),
        sha256=f.text("sha256"),
        stage=f.text("stage"),
        error=f.text("error"),
        staging=f.text("staging"),
        cleanup_error=f.text("cleanup_error"),
    )


def _rank(value: object, path: str) -> RankRecord:
    f = _Fields(value, path, "rank")
    return RankRecord(
        rank=f.number("rank"),
        role=f.text("role"),
        instance=f.text("instance"),
        host=f.text("host"),
        pid=f.count("pid"),
        device=f.text("device"),
        state=f.text("state") or "expected",
        error=f.text("error"),
        start_unix_ns=f.count("start_unix_ns"),
        stop_unix_ns=f.count("stop_unix_ns"),
        cut_at_start=f.texts("cut_at_start"),
        cut_at_stop=f.texts("cut_at_stop"),
        storage=f.text("storage"),
        cycles=[_cycle(c, path) for c in f.items("cycles")],
    )


def parse_manifest(data: bytes, path: str) -> Manifest | None:
    """Read ``manifest.json``; None when the JSON is something else than a session's manifest.

    Raises
    ------
    TraceFormatError
        When it is not whole JSON, of another version, or has fields of the wrong kind.
    """
    document = _object(data, path, MANIFEST_FORMAT)
    if document is None:
        return None
    f = _Fields(document, path, "manifest")
    return Manifest(
        session_id=f.text("session_id") or "",
        state=f.text("state") or "collecting",
        mode=f.text("mode") or "steps",
        config=f.mapping("config"),
        created_unix_ns=f.count("created_unix_ns"),
        stopped_unix_ns=f.count("stopped_unix_ns"),
        package_version=f.text("package_version"),
        coordinator_host=f.text("coordinator_host"),
        ranks=[_rank(r, path) for r in f.items("ranks")],
    )


def parse_rank_meta(data: bytes, path: str) -> dict[str, Any] | None:
    """Read ``rank.json`` of an archive, its identifying fields checked; None for other JSON."""
    document = _object(data, path, RANK_FORMAT)
    if document is None:
        return None
    f = _Fields(document, path, "rank description")
    f.number("rank")
    f.number("cycle")
    for name in ("session_id", "role", "instance", "host", "device", "mode"):
        f.text(name)
    for name in ("pid", "start_unix_ns", "stop_unix_ns"):
        f.count(name)
    f.count("world_size", 2**31 - 1)
    for name in ("cut_at_start", "cut_at_stop"):
        f.texts(name)
    return document


def parse_inventory(data: bytes, path: str) -> dict[str, tuple[int, str]]:
    """Read ``inventory.json``: member name -> (size in bytes, SHA-256 in hex).

    Raises
    ------
    TraceFormatError
        When it is no inventory, or an entry is malformed.
    """
    document = _object(data, path, INVENTORY_FORMAT)
    if document is None:
        raise TraceFormatError("not an inventory", path=path, expected=INVENTORY_FORMAT)
    out: dict[str, tuple[int, str]] = {}
    for item in _Fields(document, path, "inventory").items("files"):
        f = _Fields(item, path, "inventory entry")
        name, size, digest = f.text("name"), f.count("bytes"), f.text("sha256")
        if not name or size is None or digest is None or not _SHA256.fullmatch(digest) or name in out:
            raise TraceFormatError("malformed inventory entry", path=path, found=repr(item)[:120])
        out[name] = (size, digest)
    return out
