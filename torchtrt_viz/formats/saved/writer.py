"""Writing a trace: its frames, details and meta data, each file whole, and the document last."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from torchtrt_viz.errors import OutputError
from torchtrt_viz.formats.io.whole_file import write_atomically
from torchtrt_viz.formats.saved.details import write_details
from torchtrt_viz.formats.saved.document import SESSION_FORMAT, TRACE_FORMAT, begins_document, begun_with
from torchtrt_viz.formats.saved.layout import (
    ARGS,
    CATEGORIES,
    FRAMES,
    NUMBERED,
    SESSION,
    TRACE,
    in_dataset,
    in_folder,
    partition_of,
)
from torchtrt_viz.formats.saved.plain import NotPlain, dumps, to_plain
from torchtrt_viz.formats.saved.tables import write_table
from torchtrt_viz.model.arrow_frames import NoArrowType, Stored, described, to_arrow
from torchtrt_viz.model.places import add_places

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["put_in_place", "save_recording", "save_trace", "target_of"]

_HEAD = 512


def save_trace(trace: TraceData, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a trace to a folder: see :meth:`torchtrt_viz.Trace.save`."""
    target = target_of(path, force=force)
    building = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(3).hex()}.saving")
    try:
        building.mkdir()
        _write(trace, target, lambda table: in_folder(building, table), building / TRACE, {})
        put_in_place(building, target)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError.of(target, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return target


def target_of(path: str | os.PathLike[str], *, force: bool) -> Path:
    """Return the folder to write, which may only be there when it was saved before and ``force`` is set.

    Raises
    ------
    OutputError
        When something is there.
    """
    target = Path(os.path.abspath(path))  # resolves no links: the name is the user's
    if not os.path.lexists(target):
        return target
    if not force:
        raise OutputError(
            f"{path} exists already: give another name, or force=True to replace what was saved"
        )
    if not _is_saved(target):
        raise OutputError(f"{path} is no saved trace or session, and is not replaced: give another name")
    return target


def _is_saved(folder: Path) -> bool:
    for name, format in ((TRACE, TRACE_FORMAT), (SESSION, SESSION_FORMAT)):
        document = folder / name
        if document.is_file():
            with document.open("rb") as stream:
                return begins_document(stream.read(_HEAD), format)
    return False


def put_in_place(building: Path, target: Path) -> None:
    """Give what was built its name; what bears it goes only when the new one is there."""
    if not os.path.lexists(target):
        building.rename(target)
        return
    old = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(3).hex()}.replaced")
    target.rename(old)
    try:
        building.rename(target)
    except OSError:
        old.rename(target)
        raise
    if old.is_symlink():
        old.unlink()
    else:
        shutil.rmtree(old, ignore_errors=True)


def save_recording(
    trace: TraceData, root: str, recording: int, rank: int | None, cycle: int | None
) -> dict[str, int]:
    """Write one recording into a session that is being saved; return the rows of its frames."""
    partition = partition_of(rank, cycle, recording)
    base = Path(root)

    def place(table: str) -> Path:
        file = in_dataset(base, table, partition)
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    document = place("traces").with_name(TRACE)
    try:
        return _write(trace, base, place, document, {"rank": rank})
    except OSError as error:
        raise OutputError.of(base, error) from error


def _write(
    trace: TraceData,
    target: Path,
    locate: Callable[[str], Path],
    document: Path,
    partitioned: dict[str, Any],
) -> dict[str, int]:
    """Write all tables and then the document.

    Parameters
    ----------
    partitioned
        Columns that names of folders hold, and their value: frames leave them out where they say the same.
    """
    said: dict[str, Any] = {}
    categories: list[tuple[str, str, tuple[str, ...]]] = []
    written: list[Path] = []

    def place(table: str) -> Path:
        written.append(locate(table))
        return written[-1]

    try:
        for name in FRAMES:
            frame = getattr(trace, name)
            if name == "spans":
                add_places(frame, trace.tracks)
            constant = {
                column: value
                for column, value in partitioned.items()
                if column in frame and _is_everywhere(frame[column], value)
            }
            frame = frame.drop(columns=list(constant))
            said[name], held = _frame(name, frame, place(name), constant)
            categories += held
        meta = _meta(trace, document, written, categories)
    except (NoArrowType, NotPlain) as error:
        raise OutputError(
            f"{target} cannot be written: {error}. Take it out of the trace, or make plain values of it"
        ) from error
    _table(_categories(categories), place(CATEGORIES))
    details = {}
    for name, args in zip(ARGS, (trace.args, trace.instant_args), strict=True):
        found = 0

        def write(path: Path, args: Any = args) -> None:
            nonlocal found
            found = write_details(args, path)

        write_atomically(place(name), write)
        details[name] = found
    content = {
        **begun_with(TRACE_FORMAT),
        **_whose(trace),
        "digest": _digest(written),
        "frames": said,
        "details": details,
        "meta": meta,
    }
    write_atomically(document, json.dumps(content, ensure_ascii=True, allow_nan=False, indent=1))
    return {name: one["rows"] for name, one in said.items()}


def _digest(files: list[Path]) -> str:
    """Return what is equal for equal tables: copies of a saved trace are told by it."""
    digest = blake2b(digest_size=16)
    for file in sorted(files):
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _whose(trace: TraceData) -> dict[str, Any]:
    """Return what tells this recording from others; it stands before what may be long."""
    out: dict[str, Any] = {}
    for name in ("rank", "cycle"):
        value = trace.meta.get(name)
        out[name] = value if type(value) is int and value >= 0 else None
    for name in ("session", "role", "host", "instance", "stage"):
        value = trace.meta.get(name)
        out[name] = value if isinstance(value, str) else None
    return out


def _is_everywhere(column: pd.Series, value: Any) -> bool:
    missing = column.isna()
    return bool(missing.all() if value is None else not missing.any() and (column == value).all())


def _table(table: pa.Table, path: Path) -> None:
    write_atomically(path, lambda file: write_table(table, file))


def _frame(
    name: str, frame: pd.DataFrame, path: Path, constant: dict[str, Any] | None = None
) -> tuple[dict[str, Any], list[tuple[str, str, tuple[str, ...]]]]:
    """Write a frame; return what the document says of it, and its categories."""
    schema = FRAMES.get(name)
    table, stored = to_arrow(frame, dumps=dumps, schema=schema)
    if name in NUMBERED:
        about = {"meaning": "number of the row, which other tables refer to"}
        row = pa.field("row", pa.int64(), False, about)
        table = table.add_column(0, row, pa.array(np.arange(len(frame))))
    _table(table, path)
    derived = () if schema is None else {column.name for column in schema.columns if column.derived}
    kept: dict[str, Stored] = {column: how for column, how in stored.items() if column not in derived}
    categories = [
        (name, column, how.categories) for column, how in kept.items() if how.categories is not None
    ]
    said: dict[str, Any] = {"rows": len(frame), "columns": described(kept)}
    if constant:
        said["constant"] = constant
    return said, categories


def _categories(categories: list[tuple[str, str, tuple[str, ...]]]) -> pa.Table:
    sizes = [len(names) for _, _, names in categories]
    columns = {
        "frame": [frame for (frame, _, _), size in zip(categories, sizes, strict=True) for _ in range(size)],
        "column": [name for (_, name, _), size in zip(categories, sizes, strict=True) for _ in range(size)],
        "code": [code for size in sizes for code in range(size)],
        "value": [value for _, _, names in categories for value in names],
    }
    types = {"frame": pa.string(), "column": pa.string(), "code": pa.int64(), "value": pa.string()}
    return pa.table({name: pa.array(columns[name], type_) for name, type_ in types.items()})


def _meta(
    trace: TraceData,
    document: Path,
    written: list[Path],
    categories: list[tuple[str, str, tuple[str, ...]]],
) -> Any:
    """Return the meta data as plain values; frames among them get files of their own."""
    count = 0

    def keep(frame: pd.DataFrame) -> dict[str, Any]:
        nonlocal count
        name = f"meta-{count}"
        count += 1
        if list(frame.columns) != [str(column) for column in frame.columns] or not frame.columns.is_unique:
            raise NotPlain(f"a frame of the meta data has columns that are no texts, or twice ({name})")
        written.append(document.with_name(f"{name}.parquet"))
        said, held = _frame(name, frame.reset_index(drop=True), written[-1])
        categories.extend(held)
        index = frame.index
        if not (isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1):
            said["index"] = to_plain(index.tolist(), where=f"index of {name}")
            said["index_name"] = to_plain(index.name, where=f"name of the index of {name}")
        if frame.attrs:
            said["attrs"] = to_plain(dict(frame.attrs), keep, where=f"attrs of {name}")
        return {"name": name, **said}

    return to_plain(trace.meta, keep, where="meta")
