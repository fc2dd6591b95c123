"""Whether a trace file is whole, found out without parsing it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import TAR_BLOCK, Source
from torchtrt_viz.formats.session.manifest import INVENTORY, parse_inventory

__all__ = ["ArchiveCheck", "archive_damage", "check_archive", "document_damage", "tail_is_whole"]

_TAIL = 4096
_END = re.compile(rb"[}\]]\s*\Z")


def tail_is_whole(tail: bytes) -> bool:
    """Whether the last bytes of a JSON document close it."""
    return _END.search(tail.rstrip(b"\0")) is not None


def document_damage(source: Source, *, whole: bool) -> str | None:
    """Tell what is wrong with a trace-event JSON file, None for nothing.

    Parameters
    ----------
    whole
        Read compressed content to its end. Otherwise only uncompressed files are looked at, at their end.
    """
    if source.head(16).lstrip().startswith(b"["):
        return None  # a bare array of events may lawfully end anywhere between two of them
    tail = b""
    if source.on_disk:
        size = source.path.stat().st_size
        with source.path.open("rb") as stream:
            stream.seek(max(0, size - _TAIL))
            tail = stream.read()
    elif whole:
        try:
            for block in source.blocks():
                tail = (tail + block)[-_TAIL:]
        except TraceFormatError as error:
            return error.found if error.found and "damaged" in str(error) else str(error)
    else:
        return None
    return None if tail_is_whole(tail) else "the trace ends in the middle of an event"


@dataclass(frozen=True)
class ArchiveCheck:
    """What one reading of an archive of this package's layout found."""

    damage: str | None
    """What is wrong with it; None when every member agrees with the inventory."""
    members: dict[str, tuple[int, str]]
    """Member -> (bytes, SHA-256) as read, without the inventory."""
    inventory: bytes
    """The inventory's text; empty where there is none."""


def archive_damage(source: Source) -> str | None:
    """Compare an archive of this package's layout with its inventory; None when every member agrees."""
    return check_archive(source).damage


def check_archive(source: Source) -> ArchiveCheck:
    """Read an archive of this package's layout once, to its end, and compare it with its inventory."""
    import tarfile

    seen: dict[str, tuple[int, str]] = {}
    text = b""

    def found(damage: str | None) -> ArchiveCheck:
        return ArchiveCheck(damage, seen, text)

    listed: dict[str, tuple[int, str]] | None = None
    try:
        with source.open() as stream, tarfile.open(fileobj=stream, mode="r|", bufsize=TAR_BLOCK) as tar:
            for entry in tar:
                content = tar.extractfile(entry) if entry.isfile() else None
                if content is None or entry.name in seen:
                    return found(f"unexpected member {entry.name!r}")
                if entry.name == INVENTORY:
                    text = content.read(64 << 20)
                    listed = parse_inventory(text, f"{source.name}!{INVENTORY}")
                    continue
                digest, size = hashlib.sha256(), 0
                while block := content.read(TAR_BLOCK):
                    digest.update(block)
                    size += len(block)
                seen[entry.name] = (size, digest.hexdigest())
    except TraceFormatError as error:
        return found(str(error))
    except tarfile.TarError as error:
        return found(f"the archive is damaged: {error}")
    if listed is None:
        return found("the archive has no inventory: it was not finished")
    if seen != listed:
        wrong = sorted(n for n in seen.keys() | listed.keys() if seen.get(n) != listed.get(n))
        return found(f"members differ from the inventory: {', '.join(wrong)}")
    return found(None)
