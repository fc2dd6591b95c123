"""Writing a session: a recording at a time, here or on the workers of a cluster, and the document last.

Everything is written to ``.NAME.saving`` beside the target, and gets its name when all is there. A recording
counts once its own document is written, so that saving goes on where it was stopped when the same session is
saved to the same name again.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from torchtrt_viz.errors import OutputError, TraceFormatError
from torchtrt_viz.formats.io.whole_file import write_atomically
from torchtrt_viz.formats.saved.document import SESSION_FORMAT, VERSION, begun_with
from torchtrt_viz.formats.saved.layout import RANKS, SESSION, TRACE, TRACES, partition_of
from torchtrt_viz.formats.saved.plain import NotPlain, dumps, to_plain
from torchtrt_viz.formats.saved.tables import write_table
from torchtrt_viz.formats.saved.writer import put_in_place, save_recording, target_of
from torchtrt_viz.model.arrow_frames import NoArrowType, to_arrow
from torchtrt_viz.model.rank_tasks import RankTrace, ReadOptions, run_calls
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Recording", "save_session"]

_STARTED = "saving.json"
_LOCK = "saving.lock"
_PASSED_OVER = ("source", "archive", "members", "captures", "whole", "part", "saved", "recording")

Recording = tuple[int, RankTrace]
"""A recording's number in the session, and what the session knows of it."""


def save_session(
    path: str | os.PathLike[str],
    recordings: Sequence[Recording],
    *,
    load: Callable[[int], TraceData],
    options: ReadOptions,
    described: Callable[[], tuple[pd.DataFrame, Sequence[RankTrace], dict[str, Any]]],
    unreadable: Callable[[int, str], None],
    tasks: bool,
    force: bool,
    progress: Callable[[int, int], None] | None,
) -> Path:
    """Write a session to a folder: see :meth:`torchtrt_viz.Session.save`.

    Parameters
    ----------
    recordings
        Those that can be read.
    load
        Reads one of them here.
    described
        Returns the ranks as a frame and as they are, and the session's meta data, when all was read.
    unreadable
        Is told of a recording that cannot be read, and why.
    tasks
        Write each recording in a task of the current cluster.
    """
    target = target_of(path, force=force)
    building = target.with_name(f".{target.name}.saving")
    try:
        with _ours(building, target):
            _begin(building, recordings)
            left = [(row, file) for row, file in recordings if not _document(building, row, file).is_file()]
            done = len(recordings) - len(left)
            if progress is not None and done:
                progress(done, len(recordings))
            results = _on_tasks(left, options, building) if tasks else _here(left, load, building)
            for (row, file), error in zip(left, results, strict=True):
                done += 1
                if error is not None:
                    unreadable(row, error)
                elif not _document(building, row, file).is_file():
                    raise OutputError(
                        f"{building} is not the workers' folder: what they wrote is not there. Save to a "
                        "folder that all machines share"
                    )
                if progress is not None:
                    progress(done, len(recordings))
            _finish(building, *described())
        put_in_place(building, target)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError.of(target, error) from error
    return target


@contextmanager
def _ours(building: Path, target: Path) -> Iterator[None]:
    """Hold the folder that is built; of two processes that save to one name, the second is refused."""
    building.mkdir(exist_ok=True)
    with (building / _LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OutputError(
                f"{target} is being saved by another process: wait, or give another name"
            ) from error
        yield


def _begin(building: Path, recordings: Sequence[Recording]) -> None:
    """Go on with what is there when it is of the same recordings; else begin anew."""
    mark = json.dumps({"version": VERSION, "of": _fingerprint(recordings)})
    started = building / _STARTED
    if started.is_file() and started.read_text() == mark:
        return
    for entry in building.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != _LOCK:
            entry.unlink()
    write_atomically(started, mark)


def _fingerprint(recordings: Sequence[Recording]) -> str:
    digest = blake2b(digest_size=16)
    for row, file in recordings:
        sources = [getattr(file, name, None) for name in ("source", "archive", "saved")]
        stamps = [
            source.stamp() for source in (*sources, *getattr(file, "members", ())) if source is not None
        ]
        digest.update(
            repr((row, file.path, file.key, file.cycle, stamps)).encode("utf-8", "backslashreplace")
        )
    return digest.hexdigest()


def _document(root: Path, row: int, file: RankTrace) -> Path:
    return root / TRACES / partition_of(file.rank, file.cycle, row) / TRACE


def _here(left: Sequence[Recording], load: Callable[[int], TraceData], root: Path) -> Iterator[str | None]:
    for row, file in left:
        try:
            trace = load(row)
        except TraceFormatError as error:
            yield str(error)
            continue
        save_recording(trace, str(root), row, file.rank, file.cycle)
        del trace  # one at a time
        yield None


def _on_tasks(left: Sequence[Recording], options: ReadOptions, root: Path) -> Iterable[str | None]:
    apart = options.elsewhere()
    return run_calls([(_save_one, (file, apart, str(root), row)) for row, file in left])


def _save_one(file: RankTrace, options: ReadOptions, root: str, row: int) -> str | None:
    """Read one recording and write it: the whole work of a task."""
    try:
        trace = file.load(options)
    except TraceFormatError as error:
        return str(error)
    save_recording(trace, root, row, file.rank, file.cycle)
    return None


def _finish(building: Path, ranks: pd.DataFrame, files: Sequence[RankTrace], meta: dict[str, Any]) -> None:
    entries = []
    for row, file in enumerate(files):
        there = _document(building, row, file).is_file()
        said = {
            one.name: to_plain(getattr(file, one.name), where=one.name)
            for one in fields(file)
            if one.name not in _PASSED_OVER
        }
        entries.append({"partition": partition_of(file.rank, file.cycle, row) if there else None, **said})
    try:
        table, _ = to_arrow(ranks, dumps=dumps)
        held = to_plain(meta, where="meta")
    except (NoArrowType, NotPlain) as error:
        raise OutputError(f"{building} cannot be finished: {error}") from error
    number = pa.field("recording", pa.int64(), False, {"meaning": "number of the recording in every table"})
    table = table.add_column(0, number, pa.array(range(len(ranks)), pa.int64()))
    write_atomically(building / f"{RANKS}.parquet", lambda path: write_table(table, path))
    content = {**begun_with(SESSION_FORMAT), "recordings": entries, "meta": held}
    write_atomically(building / SESSION, json.dumps(content, ensure_ascii=True, allow_nan=False, indent=1))
    (building / _STARTED).unlink()
    (building / _LOCK).unlink()
