"""Every file below what the caller named: folders, archives, archives in archives, lists.

Names of members are labels. Nothing is written to disk, under a member's name or any other; a member is
read as a stream when somebody wants its bytes.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import TAR_BLOCK, Source, archive_kind, archive_members
from torchtrt_viz.formats.session.manifest import STAGING

__all__ = ["MAX_FILES", "File", "MemberSource", "expand", "walk"]

MAX_FILES = 200_000
"""Refuse folders and archives with more files than this: no capture has so many."""

# Programs and tensors are zip archives too; their members are no traces.
_CLOSED = (".etrecord", ".pt2", ".pt", ".pth", ".pte", ".npz", ".whl", ".jar", ".xlsx", ".safetensors")
_MAX_DEPTH = 2


@dataclass(frozen=True)
class File:
    """One file as found.

    Attributes
    ----------
    name
        Path from the folder that the caller named (its own name included), members after ``!``.
    source
        Its bytes.
    folder
        Folder on disk that it lies in (or in whose archive it lies).
    """

    name: str
    source: Source
    folder: Path

    @property
    def slashed(self) -> str:
        """The name with archives as folders, for patterns of names."""
        return self.name.replace("!", "/")


class MemberSource(Source):
    """A member of a tar archive that is itself a member of an archive."""

    def __init__(self, outer: Source, member: str) -> None:
        super().__init__(f"{outer.name}!{member}")
        self._outer = outer
        self._inner = member

    @property
    def filename(self) -> str:
        """Last part of the member's name."""
        return self._inner.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def on_disk(self) -> bool:
        """Never: the bytes lie in an archive."""
        return False

    @property
    def stored_bytes(self) -> int | None:
        """Unknown without reading the archive."""
        return None

    @contextmanager
    def _raw(self) -> Iterator[BinaryIO]:
        try:
            with (
                self._outer.open() as stream,
                tarfile.open(fileobj=stream, mode="r|", bufsize=TAR_BLOCK) as tar,
            ):
                for entry in tar:
                    if entry.name == self._inner and entry.isfile():
                        yield cast(BinaryIO, tar.extractfile(entry))
                        return
        except (tarfile.TarError, NotImplementedError) as error:
            raise TraceFormatError("the archive is damaged", path=self.name, found=str(error)) from error
        raise TraceFormatError("the archive has no such member", path=self.name)


def closed(name: str) -> bool:
    """Whether an archive of this name is a program, a record or tensors, and not a bundle of traces."""
    return name.lower().endswith(_CLOSED)


def walk(path: Path) -> Iterator[File]:
    """Yield the files of a folder in the order of their names, or the file itself.

    Hidden folders are passed over (but for the staging folder of a session), links to folders not followed.

    Raises
    ------
    TraceFormatError
        For a path that does not exist, a folder that may not be read, or one with too many files.
    """
    if not path.is_dir():
        if not path.exists():
            raise TraceFormatError("no such file or folder", path=path, hint="Check the path")
        yield File(path.name, Source(path), path.parent)
        return

    def refuse(error: OSError) -> None:
        raise TraceFormatError(
            "the folder may not be read", path=error.filename, hint="Check its permissions"
        ) from error

    count = 0
    top = path.resolve().name
    for folder, folders, names in os.walk(path, onerror=refuse):
        folders[:] = sorted(f for f in folders if not f.startswith(".") or f == STAGING)
        below = os.path.relpath(folder, path)
        prefix = top if below == "." else f"{top}/{below}"
        for name in sorted(names):
            full = Path(folder, name)
            if not full.is_file():  # sockets, pipes and dangling links are no traces
                continue
            count += 1
            if count > MAX_FILES:
                raise TraceFormatError(
                    "the folder holds too many files",
                    path=path,
                    expected=f"at most {MAX_FILES}",
                    hint="Name the folder of one capture, or list its files",
                )
            yield File(f"{prefix}/{name}", Source(full), Path(folder))


def expand(file: File, depth: int = 0) -> list[File] | None:
    """List the members of an archive, those of archives within it included; None for any other file.

    Raises
    ------
    TraceFormatError
        When it is an archive but damaged, or holds too many members.
    """
    if closed(file.source.filename):
        return None
    kind = archive_kind(file.source)
    if kind is None:
        return None
    if kind == "zip" and depth:
        raise TraceFormatError(
            "a zip archive within an archive is not read",
            path=file.source.name,
            hint="Unpack the outer archive",
        )
    members = archive_members(file.source)
    if len(members) > MAX_FILES:
        raise TraceFormatError(
            "the archive holds too many members", path=file.source.name, expected=f"at most {MAX_FILES}"
        )
    out = []
    for name, _ in members:
        source: Source = (
            MemberSource(file.source, name)
            if file.source.member is not None or isinstance(file.source, MemberSource)
            else Source(file.source.path, name)
        )
        inner = File(f"{file.name}!{name}", source, file.folder)
        nested = expand(inner, depth + 1) if depth + 1 < _MAX_DEPTH and _bundled(name) else None
        out += [inner] if nested is None else nested
    return out


def _bundled(name: str) -> bool:
    """Whether a member's name says that it is an archive: only those are opened, the rest being traces."""
    return name.lower().endswith((".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip"))
