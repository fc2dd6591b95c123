"""What a page says about a session's origin, and about ranks that are damaged or missing.

As with traces, only what is named here goes into a page that may be passed on; files are named without the
folders above the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from os import PathLike, path
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote

from torchtrt_viz.report.columns import one_line

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.session_data import SessionData

__all__ = [
    "artifact_link",
    "file_name",
    "moment",
    "not_here",
    "not_whole",
    "session_facts",
    "session_name",
    "without_folders",
]

_SHOWN = 8


def session_name(session: SessionData) -> str:
    """Return words for the page's heading."""
    ids = sorted({str(s) for s in session.ranks["session"].dropna()})
    sources = [PurePath(str(source)).name for source in session.meta["sources"]]
    name = ids[0] if len(ids) == 1 else ", ".join(sources[:2])
    return f"Session {name}" if name else "Session"


def session_facts(session: SessionData) -> list[tuple[str, str]]:
    """Return label and text of what is known about the whole session."""
    ranks = session.ranks
    keys = ["session", "rank", "role", "instance", "host"]
    known = ranks[ranks["what"].isin(["trace", "partial", "dump"])]
    known = known if len(known) else ranks
    distinct = known.drop_duplicates(keys)
    out = [("recordings", f"{len(ranks):,}"), ("ranks", f"{len(distinct):,}")]
    roles = Counter(str(role) for role in distinct["role"].dropna())
    if roles:
        out.append(("roles", ", ".join(f"{roles[role]:,} {role}" for role in sorted(roles, key=_role_order))))
    for column, label in (("host", "hosts"), ("session", "session ids"), ("writer", "written by")):
        values = sorted({str(value) for value in known[column].dropna()})
        if values:
            out.append((label, _listed(values)))
    cycles = known["cycle"].dropna()
    if len(cycles) and cycles.nunique() > 1:
        out.append(("cycles", f"{cycles.nunique():,}"))
    worlds = known["world_size"].dropna().unique()
    if len(worlds) == 1:
        out.append(("world size", f"{int(worlds[0]):,}"))
    states = sorted({manifest.state for manifest in session.meta["manifests"]})
    if states:
        out.append(("manifest says", _listed(states)))
    begin = known["start_unix_ns"].dropna()
    if len(begin) and (told := moment(int(begin.min()))):
        out.append(("recorded from", told))
    return out


def _role_order(role: str) -> tuple[int, str]:
    return {"prefill": 0, "decode": 1}.get(role, 2), role


def _listed(values: list[str]) -> str:
    more = f" and {len(values) - _SHOWN:,} more" if len(values) > _SHOWN else ""
    return ", ".join(values[:_SHOWN]) + more


def moment(ns: int) -> str | None:
    """Write a Unix time as a moment in UTC; None for one that no calendar has."""
    try:
        return f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return None


def not_whole(session: SessionData) -> pd.DataFrame:
    """Return the recordings that are missing, damaged or not packed, and why.

    Columns: ``rank``, ``role``, ``host``, ``cycle``, ``state``, ``file``, ``why``.
    """
    ranks = session.ranks
    bad = ranks[ranks["state"] != "ok"]
    out = bad[["rank", "role", "host", "cycle", "state"]].reset_index(drop=True)
    out["file"] = [file_name(p) for p in bad["path"]]
    out["why"] = [
        without_folders(str(error), [str(p), *map(str, session.meta["sources"])])
        for error, p in zip(bad["error"], bad["path"], strict=True)
    ]
    return out


def not_here(session: SessionData) -> str:
    """Say which ranks of the recorded world size left no file and are in no manifest; "" when none."""
    ranks = session.ranks
    worlds = ranks["world_size"].dropna().unique()
    if len(worlds) != 1 or not 0 < int(worlds[0]) <= 1_000_000:
        return ""
    absent = sorted(set(range(int(worlds[0]))) - {int(rank) for rank in ranks["rank"].dropna()})
    if not absent:
        return ""
    numbers = ", ".join(map(str, absent[:20])) + (", …" if len(absent) > 20 else "")
    return (
        f"Of the {int(worlds[0]):,} ranks of the recordings' process group, {len(absent):,} left nothing "
        f"here: {numbers}"
    )


def file_name(name: object) -> str:
    """Name a recording by its file, its folder where that tells ranks apart, and its member in an archive."""
    outer, _, member = str(name).partition("!")
    parts = PurePath(outer).parts
    short = "/".join(parts[-2:]) if len(parts) > 2 and parts[-2].startswith("rank-") else PurePath(outer).name
    return f"{short}!{member}" if member else short


def without_folders(text: str, paths: Iterable[str]) -> str:
    """Return text in which these paths are named by their last parts only."""
    for place in sorted(paths, key=len, reverse=True):
        if PurePath(place).is_absolute() or "/" in place:
            text = text.replace(place, file_name(place))
    return one_line(text)


def artifact_link(artifact: object, page: str | PathLike[str] | None) -> str | None:
    """Return the address of a recording relative to the page; None when it is too far away for a link.

    A page inside the session's folder or beside it links to the recordings; one written elsewhere would
    reveal folder names that do not belong in it.
    """
    if page is None:
        return None
    outer = str(artifact).partition("!")[0]
    relative = path.relpath(path.abspath(outer), path.dirname(path.abspath(page)))
    parts = PurePath(relative).parts
    if PurePath(relative).is_absolute() or parts.count("..") > 1:
        return None
    return "./" + quote(PurePath(relative).as_posix())
