"""What pip fetched, read from its log: files and megabytes, from the network or from its cache."""

from __future__ import annotations

import re
from pathlib import Path

_UNITS = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}
_FETCHED = re.compile(r"^\s*(?:Downloading|Using cached) (\S+) \(([\d.]+) (bytes|kB|MB|GB)\)", re.MULTILINE)
_LOCAL = re.compile(r"^\s*Processing (\S+\.whl)", re.MULTILINE)


def fetched(log: str, own: Path | None = None) -> dict[str, float]:
    """File -> megabytes that a machine without a cache would download.

    Wheels that the index hands out as local files count like downloads; ``own``, the wheel under test,
    does not.
    """
    files = {
        name.rsplit("/", 1)[-1]: float(size) * _UNITS[unit] for name, size, unit in _FETCHED.findall(log)
    }
    for name in _LOCAL.findall(log):
        path = Path(name)
        if path.is_file() and (own is None or path.name != own.name):
            files[path.name] = path.stat().st_size / 1e6
    return files


def distributions(files: dict[str, float]) -> set[str]:
    """Names of the packages whose wheels or sources are among the files, as an index spells them."""
    return {name.split("-")[0].replace("_", "-").lower() for name in files if not name.endswith(".metadata")}
