"""What a caller means by "these events": rows of frames and names of tables, as rows of a scene."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.scene.chosen import extent_of
from torchtrt_viz.scene.scene import Rows, Scene

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["named", "names_mask", "rows_named", "show_request", "wanted_rows"]

_MOST_ROWS = 20_000  # of a request on a page, which holds it as text


def named(what: Any) -> list[str] | None:
    """Return the names that a table speaks of, or None when it is made of rows of the spans."""
    columns = getattr(what, "columns", None)
    if columns is None or "start_ns" in columns:
        return None
    if "name" in columns:
        return [str(name) for name in what["name"]]
    if what.index.name == "name":
        return [str(name) for name in what.index]
    raise TypeError(
        "the timeline needs rows of trace.spans or a table with a column 'name'; "
        f"got the columns {list(columns)}"
    )


def wanted_rows(scene: Scene, what: pd.DataFrame | pd.Series | Iterable[int]) -> Rows:
    """Return the scene rows of rows of ``trace.spans``, of a selection, or of row numbers.

    Rows without a place on the time axis are left out.

    Raises
    ------
    TypeError
        For an index that is none of ``trace.spans``, and where several traces are shown and no column
        ``part`` says which one a row is of.
    """
    index: Any = (
        getattr(what, "index", None) if hasattr(what, "iloc") else None
    )  # a list has a method of this name
    if len(scene.parts) > 1:
        if index is None or "part" not in getattr(what, "columns", ()):
            raise TypeError("with several traces, rows need a column 'part', as w.selection has")
        found = [
            _part_rows(scene, what[what["part"] == part.label], number)  # type: ignore[index, call-overload]
            for number, part in enumerate(scene.parts)
        ]
        return np.concatenate(found)
    if "event" in getattr(what, "columns", ()):
        return _part_rows(scene, what, 0)
    rows = np.asarray(list(what) if index is None else index)
    if rows.dtype.kind not in "iu" and len(rows):
        raise TypeError(
            "the timeline needs rows of trace.spans (with their index), row numbers, or a table with a "
            f"column 'name'; got an index of {rows.dtype}"
        )
    return scene.scene_rows(rows.astype(np.int64))


def show_request(
    scene: Scene,
    what: pd.DataFrame | pd.Series | Iterable[int] | int,
    end_ns: int | None = None,
) -> dict[str, Any] | None:
    """Return what the timeline of a page is asked to show, as a dictionary for JSON; None for nothing.

    A page's element with this text as its attribute ``data-show`` shows it when it is clicked, and
    ``timeline.show(request)`` in ``static/timeline.js`` does so from a script: the events are marked,
    selected and zoomed to.

    Parameters
    ----------
    what
        As for `Timeline.show`: rows of ``trace.spans``, row numbers, a table with a column ``name``, or a
        start in ns from the trace's start, with ``end_ns``. Of more rows than a page holds in an attribute,
        the time that they span.
    """
    if isinstance(what, (int, np.integer)):
        return {"t0": int(what), "t1": scene.length_ns if end_ns is None else int(end_ns)}
    names = named(what)
    if names is not None:
        return {"names": names} if names else None
    rows = wanted_rows(scene, what)
    found = extent_of(scene, rows)
    if found is None:
        return None
    if len(rows) > _MOST_ROWS:
        return {"t0": found[0], "t1": found[1]}
    return {"rows": rows.tolist()}


def names_mask(scene: Scene, names: Iterable[str]) -> NDArray[np.uint8]:
    """Return one byte per name of the scene: 1 for these."""
    wanted = set(names)
    return np.fromiter((name in wanted for name in scene.names), np.uint8, len(scene.names))


def rows_named(scene: Scene, names: NDArray[np.uint8]) -> Rows:
    """Return the scene rows of the events whose name has a byte in ``names``."""
    wanted = {name for name, hit in zip(scene.names, names, strict=True) if hit}
    out = []
    for block in scene.blocks:
        trace = scene.parts[block.part].trace
        column = (trace.spans if block.frame == "spans" else trace.instants)["name"]
        codes = [code for code, name in enumerate(column.cat.categories) if str(name) in wanted]
        known = column.cat.codes.to_numpy()
        here = np.isin(known if block.rows is None else known[block.rows], codes)
        out.append(np.flatnonzero(here) + block.begin)
    return np.concatenate(out) if out else np.empty(0, np.int64)


def _part_rows(scene: Scene, what: Any, part: int) -> Rows:
    """Translate rows of a selection of one trace; instants are told by the column ``event``."""
    if "event" not in what.columns:
        return scene.scene_rows(what.index.to_numpy(), part)
    instant = (what["event"] == "instant").to_numpy()
    return np.concatenate(
        [
            scene.scene_rows(what.index[~instant].to_numpy(), part),
            scene.scene_rows(what.index[instant].to_numpy(), part, "instants"),
        ]
    )
