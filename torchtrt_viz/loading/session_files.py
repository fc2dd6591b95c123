"""Manifests applied to the files that were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from torchtrt_viz.formats.session.manifest import STAGING, CycleRecord, Manifest, RankRecord, confined
from torchtrt_viz.loading.rank_files import RankFile

__all__ = ["apply_manifests"]

_PENDING = ("queued", "parsing", "packing", "verifying", "failed", "interrupted")


def apply_manifests(manifests: Sequence[tuple[str, Manifest]], ranks: list[RankFile]) -> list[RankFile]:
    """Let each manifest speak for the ranks below its folder, and list what it expects and nobody found."""
    out = list(ranks)
    for folder, manifest in manifests:
        out = _apply(folder, manifest, out)
    return out


def _real(name: str) -> str:
    """The file or folder that a name means, links followed; two names of one file give the same."""
    return name if "://" in name else str(Path(name).resolve())


def _within(folder: str, name: str) -> str | None:
    """The file of that name in a session's folder; None for a name, perhaps hostile, that leads out of it."""
    if "://" not in folder:
        inside = confined(Path(folder), name)
        return None if inside is None else str(inside)
    parts = PurePosixPath(name)
    leads_out = not name or parts.is_absolute() or ".." in parts.parts or "://" in name or "\\" in name
    return None if leads_out else f"{folder}/{parts}"


def _apply(folder: str, manifest: Manifest, ranks: list[RankFile]) -> list[RankFile]:
    root = _real(folder)
    at = {_real(r.path.split("!")[0]): i for i, r in enumerate(ranks)}
    out = list(ranks)
    staged_below: set[int] = set()
    for record in manifest.ranks:
        said = _said(record, manifest)
        if not record.cycles:
            known = [
                i for i, r in enumerate(ranks) if r.rank == record.rank and r.session == manifest.session_id
            ]
            for i in known:
                out[i] = replace(out[i], **said)
            if not known and record.state != "nothing_recorded":
                out.append(_missing(folder, record, None, said))
        for cycle in record.cycles:
            path = None if cycle.archive is None else _within(folder, cycle.archive)
            index = None if path is None else at.get(path)
            staged = None if index is not None or cycle.staging is None else _staged(root, cycle, at)
            if index is not None:
                out[index] = _agreeing(out[index], cycle, said)
            elif staged is not None:
                staged_below.add(staged)
                out[staged] = replace(
                    out[staged], **said, cycle=cycle.cycle, state="staged", error=_why_staged(cycle)
                )
            else:
                out.append(_missing(folder, record, cycle, said))
    return [_unpacked(r, root) if i not in staged_below else r for i, r in enumerate(out)]


def _said(record: RankRecord, manifest: Manifest) -> dict[str, Any]:
    """What the manifest says about a rank, as fields of a `RankFile`."""
    said = {
        "session": manifest.session_id or None,
        "cut_at_start": tuple(record.cut_at_start),
        "cut_at_stop": tuple(record.cut_at_stop),
        **{
            name: getattr(record, name)
            for name in ("rank", "role", "host", "instance", "pid", "device", "start_unix_ns", "stop_unix_ns")
        },
    }
    return {key: value for key, value in said.items() if value not in (None, ())}


def _agreeing(rank: RankFile, cycle: CycleRecord, said: dict[str, Any]) -> RankFile:
    """Give a found archive what the manifest says, and hold its size against it."""
    rank = replace(rank, **said, cycle=cycle.cycle)
    size = None if rank.archive is None else rank.archive.stored_bytes
    if rank.state == "ok" and cycle.bytes is not None and size is not None and size != cycle.bytes:
        return replace(
            rank,
            state="damaged",
            error=f"the archive has {size} bytes, the manifest says {cycle.bytes}: copy it again",
        )
    return rank


def _staged(root: str, cycle: CycleRecord, at: dict[str, int]) -> int | None:
    """Find the raw trace of a cycle that was recorded and is not packed yet."""
    name = Path(cycle.staging or "").name
    for path, index in at.items():
        inside = PurePosixPath(path)
        if name in inside.parts and inside.is_relative_to(root):
            return index
    return None


def _why_staged(cycle: CycleRecord) -> str:
    at = f" at {cycle.stage}" if cycle.stage else ""
    why = f": {cycle.error}" if cycle.error else ""
    return f"recorded, not packed ({cycle.state}{at}{why}); torchtrt_viz.serving.recover(folder) finishes it"


def _unpacked(rank: RankFile, root: str) -> RankFile:
    """Mark a raw trace in a staging folder that no manifest entry speaks for."""
    path = PurePosixPath(rank.path.split("!")[0])
    staged = rank.state == "ok" and STAGING in path.parts
    if not staged or not PurePosixPath(_real(str(path))).is_relative_to(root):
        return rank
    return replace(
        rank,
        state="staged",
        error="recorded, not packed: torchtrt_viz.serving.recover(folder) finishes it",
    )


def _missing(folder: str, record: RankRecord, cycle: CycleRecord | None, said: dict[str, Any]) -> RankFile:
    """Make the entry of a rank or cycle that is expected and not there."""
    path, error = folder, record.error
    if cycle is not None:
        inside = _within(folder, cycle.archive) if cycle.archive else None
        path = folder if inside is None else inside
        error = cycle.error or error
        if cycle.archive and inside is None:
            error = f"the manifest names {cycle.archive[:120]!r}, which is outside of the session's folder"
        elif cycle.archive and error is None:
            where = f"host {record.host or '?'}" + (f" in {record.storage}" if record.storage else "")
            error = f"the archive is not here; it was written on {where}: copy it into this folder"
        elif cycle.state in _PENDING and error is None:
            error = f"not packed when the manifest was written ({cycle.state})"
    if error is None:
        error = f"the rank's state is {record.state!r}: it delivered no profile"
    return RankFile(
        source=None,
        path=path,
        state="missing",
        error=error,
        **said,
        cycle=None if cycle is None else cycle.cycle,
    )
