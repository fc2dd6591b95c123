"""Every file below what the caller named: folders, archives, archives in archives, lists.

Names of members are labels. Nothing is written to disk, under a member's name or any other; a member is
read as a stream when somebody wants its bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import Source, archive_kind, archive_members, folder_of
from torchtrt_viz.formats.session.manifest import STAGING

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.remote import Remote

__all__ = ["MAX_FILES", "File", "closed", "expand", "walk", "walk_remote"]

MAX_FILES = 200_000
"""Refuse folders and archives with more files than this: no capture has so many."""

# Programs and tensors are zip archives too; their members are no traces.
_CLOSED = (".etrecord", ".pt2", ".pt", ".pth", ".pte", ".npz", ".whl", ".jar", ".xlsx", ".safetensors")
#: What macOS and Windows leave beside files; "._name" and the folder __MACOSX are AppleDouble companions.
_COMPANIONS = (".DS_Store", "Thumbs.db", "desktop.ini", "ehthumbs.db", ".localized")
_MAX_DEPTH = 2
_MAX_FOLDERS = 64


@dataclass(frozen=True)
class File:
    """One file as found.

    Attributes
    ----------
    name
        Path from the folder that the caller named (its own name included), members after ``!``.
    source
        Its bytes.
    """

    name: str
    source: Source

    @property
    def folder(self) -> str:
        """Folder, on disk or behind a URL, that it lies in (or in whose archive it lies)."""
        return folder_of(self.source.stored_name)

    @property
    def slashed(self) -> str:
        """The name with archives as folders, for patterns of names."""
        return self.name.replace("!", "/")


def _is_companion(name: str) -> bool:
    """Whether a file system or a file manager made this file; ``name`` is as deep as it is known."""
    *folders, base = name.replace("\\", "/").split("/")
    return base.startswith("._") or base in _COMPANIONS or "__MACOSX" in folders


def closed(name: str) -> bool:
    """Whether an archive of this name is a program, a record or tensors, and not a bundle of traces."""
    return name.lower().endswith(_CLOSED)


def walk(path: Path) -> Iterator[File]:
    """Yield the files of a folder on disk in the order of their names.

    Hidden folders are passed over (but for the staging folder of a session), links to folders not followed.

    Raises
    ------
    TraceFormatError
        For a folder that may not be read, or one with too many files.
    """

    def refuse(error: OSError) -> None:
        raise TraceFormatError(
            "the folder may not be read", path=error.filename, hint="Check its permissions"
        ) from error

    count = 0
    top = path.resolve().name
    for folder, folders, names in os.walk(path, onerror=refuse):
        folders[:] = sorted(f for f in folders if _visited(f))
        below = os.path.relpath(folder, path)
        prefix = top if below == "." else f"{top}/{below}"
        for name in sorted(names):
            full = Path(folder, name)
            if _is_companion(name) or not full.is_file():  # sockets, pipes and dangling links are no traces
                continue
            count += 1
            if count > MAX_FILES:
                raise _too_many(str(path))
            yield File(f"{prefix}/{name}", Source(full))


def walk_remote(root: Remote) -> Iterator[File]:
    """Yield the files of a folder behind a URL, as `walk` does.

    Raises
    ------
    TraceFormatError
        For a folder that cannot be listed, or one with too many files.
    """
    count = 0
    waiting = [(root, root.name.rstrip("/").rpartition("/")[2], 0)]
    while waiting:
        folder, prefix, depth = waiting.pop()
        entries = folder.entries()
        for entry in entries:
            base = entry.name.rpartition("/")[2]
            if not entry.is_folder and not _is_companion(base):
                count += 1
                if count > MAX_FILES:
                    raise _too_many(root.name)
                yield File(f"{prefix}/{base}", Source(entry))
        if depth < _MAX_FOLDERS:  # a file system may contain itself
            below = [entry for entry in entries if entry.is_folder]
            named = [(entry, entry.name.rpartition("/")[2]) for entry in reversed(below)]
            waiting += [(entry, f"{prefix}/{base}", depth + 1) for entry, base in named if _visited(base)]


def _visited(folder: str) -> bool:
    return (not folder.startswith(".") and folder != "__MACOSX") or folder == STAGING


def _too_many(path: str) -> TraceFormatError:
    return TraceFormatError(
        "the folder holds too many files",
        path=path,
        expected=f"at most {MAX_FILES}",
        hint="Name the folder of one capture, or list its files",
    )


def expand(file: File, kind: str, depth: int = 0) -> list[File]:
    """List the members of an archive of that kind, those of archives within it included.

    Raises
    ------
    TraceFormatError
        When it is damaged, or holds too many members.
    """
    if kind == "zip" and depth:
        raise TraceFormatError(
            "a zip archive within an archive is not read",
            path=file.source.name,
            hint="Unpack the outer archive",
        )
    members = archive_members(file.source, kind)
    if len(members) > MAX_FILES:
        raise TraceFormatError(
            "the archive holds too many members", path=file.source.name, expected=f"at most {MAX_FILES}"
        )
    out = []
    for name, _ in members:
        if _is_companion(name):
            continue
        inner = File(f"{file.name}!{name}", file.source.inside(name))
        nested = archive_kind(inner.source) if depth + 1 < _MAX_DEPTH and _bundled(name) else None
        out += [inner] if nested is None else expand(inner, nested, depth + 1)
    return out


def _bundled(name: str) -> bool:
    """Whether a member's name says that it is an archive: only those are opened, the rest being traces."""
    return name.lower().endswith((".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip"))
