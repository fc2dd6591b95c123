"""The folders that a server may read, and nothing else: no links out of them, no URLs, no devices."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchtrt_viz.errors import OptionError

__all__ = ["Folders"]

_MOST_ENTRIES = 200_000
_WANTED = "a file or folder below the folders of this server, as the tool `traces` names it"


class Folders:
    """The folders that may be read.

    Parameters
    ----------
    folders
        Existing folders. Each is known by its name; of two of one name the second is ``name-2``.

    Raises
    ------
    OptionError
        For what is no folder.
    """

    def __init__(self, folders: Sequence[str | os.PathLike[str]]) -> None:
        self.by_name: dict[str, Path] = {}
        for folder in folders:
            real = Path(os.path.realpath(folder))
            if not real.is_dir():
                raise OptionError("folder", str(folder), "an existing folder")
            if real in self.by_name.values():
                continue
            base = name = real.name or "root"
            number = 1
            while name in self.by_name:
                number += 1
                name = f"{base}-{number}"
            self.by_name[name] = real

    def find(self, name: object) -> Path:
        """Return the real path of what a client names: ``FOLDER/path``, or the path itself.

        With one folder its name may be left out.

        Raises
        ------
        OptionError
            For what lies outside, what a link inside leads out to, and what is neither file nor folder.
        """
        if not isinstance(name, str) or not name or len(name) > 4096 or "\0" in name or "://" in name:
            raise OptionError("trace", str(name)[:80], _WANTED)
        found = next((path for path in self._meant(name) if path is not None and path.exists()), None)
        if found is None:
            raise OptionError("trace", name, f"{_WANTED}: there is none of this name")
        self._readable(found, name)
        return found

    def name(self, path: Path) -> str:
        """Return how clients name a path inside."""
        for name, folder in self.by_name.items():
            if path == folder:
                return name
            if path.is_relative_to(folder):
                return f"{name}/{path.relative_to(folder)}"
        return str(path)

    def inside(self, path: Path) -> bool:
        """Whether a real path lies in one of the folders."""
        return any(path.is_relative_to(folder) for folder in self.by_name.values())

    def walk(self, below: Path) -> Iterator[Path]:
        """Yield the regular files below a folder in order; not hidden ones, nor links that lead out."""
        for folder, folders, names in os.walk(below):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(folder, name)
                real = Path(os.path.realpath(path))
                if not name.startswith(".") and self.inside(real) and real.is_file():
                    yield path

    def _meant(self, name: str) -> Iterator[Path | None]:
        """Yield the real paths that a name can mean, those inside only."""
        first, _, rest = name.partition("/")
        candidates = []
        if first in self.by_name:
            candidates.append(self.by_name[first] / rest)
        if os.path.isabs(name):
            candidates.append(Path(name))
        elif len(self.by_name) == 1:
            candidates.append(next(iter(self.by_name.values())) / name)
        for candidate in candidates:
            try:
                real = Path(os.path.realpath(candidate))
            except (OSError, ValueError):
                continue
            yield real if self.inside(real) else None

    def _readable(self, path: Path, name: str) -> None:
        """Refuse what is no file or folder, and a folder from which a link leads out."""
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return
        if not stat.S_ISDIR(mode):
            raise OptionError("trace", name, f"{_WANTED}: this is neither")
        count = 0
        for folder, folders, names in os.walk(path):
            count += len(names)
            if count > _MOST_ENTRIES:
                raise OptionError("trace", name, f"a folder of at most {_MOST_ENTRIES} files")
            for entry in (*folders, *names):
                inner = os.path.join(folder, entry)
                if os.path.islink(inner) and not self.inside(Path(os.path.realpath(inner))):
                    raise OptionError(
                        "trace",
                        name,
                        f"a folder without links that lead out of it: {entry} does; name its files",
                    )
