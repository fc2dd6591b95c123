"""Which traces are recordings of graphs' captures, and of which replays.

Engines write a trace for each capture, beside the traces of their work: into a folder ``capture_traces``,
under names of their own, with a list of sizes and modes. Where neither name nor folder tells, calls within
the traces do: one captures, another launches what was captured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.json_values import text, whole
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.rank_files import RankFile
from torchtrt_viz.model.repair import Repair

__all__ = ["DETAILS", "as_captures", "with_captures"]

DETAILS = "execution_details.json"
"""Name of the list of sizes and modes that lies beside captures."""

_FOLDERS = ("capture_traces", "graph_capture", "graph_captures")
_BEGINS, _LAUNCHES = b"StreamBeginCapture", b"GraphLaunch"
_LOOKED_INTO = 64 << 20
_MOST_LOOKED_INTO = 64
"""Up to so many traces, of so many bytes together as stored, are looked into for their roles."""
_DETAILS_BYTES = 4 << 20
_LARGEST_BATCH = 10_000_000


def with_captures(
    ranks: Sequence[RankFile], others: Sequence[Source], *, by_content: bool, anywhere: bool
) -> tuple[list[RankFile], list[Repair]]:
    """Give each replay the recordings of captures that can be its own, and take these off the list.

    Parameters
    ----------
    others
        Files that are no traces: lists of sizes and modes among them.
    by_content
        Look into traces of which no name tells their role.
    anywhere
        Captures may lie anywhere: the caller named the files one by one.

    Returns
    -------
    list of RankFile
        The others, those that have captures with them.
    list of Repair
        Captures of which no replay is there, where any is.
    """
    roles = [_is_capture(rank) for rank in ranks]
    if by_content and not any(roles):
        roles = _by_content(ranks)
    captures = as_captures([rank for rank, role in zip(ranks, roles, strict=True) if role], others)
    replays = [rank for rank, role in zip(ranks, roles, strict=True) if not role]
    if not captures or not any(rank.what in ("trace", "partial") for rank in replays):
        return list(ranks), []
    out = []
    used: set[str] = set()
    for rank in replays:
        mine = _of(rank, captures, anywhere) if rank.what in ("trace", "partial") else ()
        used.update(capture.path for capture in mine)
        out.append(replace(rank, captures=(*rank.captures, *mine)))
    left = [capture for capture in captures if capture.path not in used]
    notes = [
        Repair(
            "graph_capture_unused", "no replay of its rank lies beside this recording of captures", one.path
        )
        for one in left
    ]
    return [*out, *left], notes


def as_captures(ranks: Iterable[RankFile], others: Sequence[Source]) -> list[RankFile]:
    """Return traces as recordings of captures, with the sizes and modes that a list beside them states."""
    said = _details(others)
    out = []
    for rank in ranks:
        folder, _, name = rank.path.replace("!", "/").rpartition("/")
        batch, mode = said.get((folder, name), (None, None))
        out.append(replace(rank, what="capture", batch=batch, mode=mode))
    return out


def _is_capture(rank: RankFile) -> bool:
    folder = rank.path.replace("!", "/").rpartition("/")[0].rpartition("/")[2]
    return rank.what == "capture" or (rank.what == "trace" and folder in _FOLDERS)


def _by_content(ranks: Sequence[RankFile]) -> list[bool]:
    """Say of each trace whether it captures graphs and launches none, while another launches some.

    Only traces are looked into that share their rank with another one, or say none: a capture and its replay
    are of one process.
    """
    none = [False] * len(ranks)
    several = {rank for rank, count in Counter(one.rank for one in ranks).items() if count > 1}
    sources = [
        rank.source
        if rank.rank in several and (rank.what, rank.format, rank.state) == ("trace", "kineto", "ok")
        else None
        for rank in ranks
    ]
    known = [source for source in sources if source is not None]
    stored = sum(source.stored_bytes or 0 for source in known)
    if not 2 <= len(known) <= _MOST_LOOKED_INTO or stored > _LOOKED_INTO:
        return none
    calls = [(False, False) if source is None else _calls_in(source) for source in sources]
    if not any(launches for _, launches in calls):
        return none
    return [begins and not launches for begins, launches in calls]


def _calls_in(source: Source) -> tuple[bool, bool]:
    """Whether calls that begin a capture, and that launch a graph, are in a trace's text."""
    begins = launches = False
    rest = b""
    try:
        for block in source.blocks():
            seen = rest + block
            begins = begins or _BEGINS in seen
            launches = launches or _LAUNCHES in seen
            if launches:
                break
            rest = seen[-len(_BEGINS) :]
    except TraceFormatError:
        pass  # what is damaged shows when it is read
    return begins, launches


def _of(replay: RankFile, captures: Sequence[RankFile], anywhere: bool) -> tuple[RankFile, ...]:
    """Return the captures that can be of a replay: of its rank, and lying nearest to it."""
    same = [
        capture for capture in captures if None in (capture.rank, replay.rank) or capture.rank == replay.rank
    ]
    near: dict[int, list[RankFile]] = {}
    here = _folders(replay.path)
    for capture in same:
        base = _folders(capture.path)
        if base and base[-1] in _FOLDERS:
            base = base[:-1]
        if base == here[: len(base)] or here == base[: len(here)]:
            near.setdefault(min(len(base), len(here)), []).append(capture)
    if near:
        return tuple(near[max(near)])
    return tuple(same) if anywhere else ()


def _folders(path: str) -> list[str]:
    return path.replace("\\", "/").replace("!", "/").split("/")[:-1]


def _details(others: Sequence[Source]) -> dict[tuple[str, str], tuple[int | None, str | None]]:
    """Return size and mode of captures by folder and name, from the lists beside them."""
    import orjson

    out: dict[tuple[str, str], tuple[int | None, str | None]] = {}
    for source in others:
        if source.filename != DETAILS:
            continue
        try:
            entries = orjson.loads(source.read(limit=_DETAILS_BYTES))
        except (TraceFormatError, orjson.JSONDecodeError):
            continue  # a list that cannot be read tells nothing
        folder = source.name.replace("!", "/").rpartition("/")[0]
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping) and isinstance(entry.get("file"), str):
                out[folder, entry["file"]] = (
                    whole(entry.get("batch_size"), 1, _LARGEST_BATCH),
                    text(entry.get("mode")) or None,
                )
    return out
