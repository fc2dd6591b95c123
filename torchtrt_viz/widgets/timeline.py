"""`Timeline`: the interactive timeline of a trace, for notebooks."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.errors import MissingDependencyError, OptionError
from torchtrt_viz.formats.io.whole_file import write_atomically
from torchtrt_viz.report.picture import write_svg
from torchtrt_viz.scene import assets
from torchtrt_viz.scene.chosen import chosen_events, instants_of
from torchtrt_viz.scene.scene import Rows, Scene
from torchtrt_viz.scene.service import Service
from torchtrt_viz.widgets.static_form import KeepsStaticForm, kept_id

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingDependencyError(
        error.name or "anywidget", "lab", "show the timeline in a notebook"
    ) from error

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Timeline"]

_log = logging.getLogger(__name__)


class Timeline(KeepsStaticForm, anywidget.AnyWidget):  # type: ignore[misc]
    """The timeline of a trace, or of several, to zoom, pan, search and select by hand and from Python.

    Host tracks and GPU tracks are separate sections, drawn differently. Sums that have no place on the time
    axis are listed below them. Press ``?`` in the widget for its keys.

    Parameters
    ----------
    trace
        A `Trace`, a `Session`, or a list of traces (one group of tracks each).
    height
        Height of the lanes in pixels; fewer lanes take less.
    theme
        "auto" follows the notebook, or "light", "dark".
    color_by
        "name" gives every name its colour, "kind" every kind of work.
    whole_limit
        Traces of up to so many events are sent to the browser whole, which then zooms without the kernel.
        Larger ones stay in the kernel, which sends what the screen can show.
    align
        How several traces share the axis: "clock" by the wall clocks that they record (which nobody
        corrects), "start" lets each begin at 0.

    Attributes
    ----------
    selection : pandas.DataFrame
        The events that are selected in the widget, as rows of ``trace.spans``.
    view : tuple of int
        Start and end of what is in sight, in ns on the trace's own base.

    Examples
    --------
    >>> w = trace.timeline()
    >>> w                                  # show it, select something
    >>> w.selection.groupby("name", observed=True)["dur_ns"].sum()
    >>> w.zoom(1_000_000, 2_000_000)       # ns on the trace's base
    >>> w.find("gemm")                     # marks the matches and returns them
    >>> w.highlight(trace.spans.query("dur_ns > 1_000_000"))
    """

    _esm = assets.module("widget")
    _css = assets.style("timeline")

    view_range = traitlets.List(traitlets.Float(), help="ns from the first event").tag(sync=True)
    selected = traitlets.Dict(help="what is selected, as the front end says it").tag(sync=True)
    arrangement = traitlets.Dict(help="collapsed, hidden, pinned, folded and ordered tracks").tag(sync=True)
    search = traitlets.Unicode("", help="text that the user searched for").tag(sync=True)
    marks = traitlets.Dict(help="what Python marked").tag(sync=True)
    color_by = traitlets.Enum(("name", "kind"), "name").tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), "auto").tag(sync=True)
    height = traitlets.Int(420, help="height of the lanes in pixels").tag(sync=True)
    still = traitlets.Unicode("", help="static picture, shown while no kernel answers").tag(sync=True)
    kept = traitlets.Unicode(help="name of the static form that the notebook keeps").tag(sync=True)

    def __init__(
        self,
        trace: TraceData | Sequence[TraceData] | Any,
        *,
        height: int = 420,
        theme: str = "auto",
        color_by: str = "name",
        whole_limit: int = 300_000,
        align: str = "clock",
    ) -> None:
        if theme not in ("auto", "light", "dark"):
            raise OptionError("theme", theme, "one of 'auto', 'light', 'dark'")
        if color_by not in ("name", "kind"):
            raise OptionError("color_by", color_by, "one of 'name', 'kind'")
        if not 60 <= height <= 10_000:
            raise OptionError("height", height, "60 to 10000 pixels")
        self.scene = Scene.of(trace, align)
        self.service = Service(self.scene, whole_limit)
        self._pictures: dict[str, str] = {}
        # slow to import: it needs pandas
        from torchtrt_viz.report.static_html import scene_html

        super().__init__(
            height=height, theme=theme, color_by=color_by, still=scene_html(self.scene), kept=kept_id()
        )
        self.on_msg(self._on_message)
        self.observe(self._searched, "search")

    def __repr__(self) -> str:
        events = self.scene.blocks[-1].end if self.scene.blocks else 0
        return f"<Timeline of {events} events on {len(self.scene.tracks)} tracks>"

    def static_form(self) -> str:
        """Return the strip of tracks as markup that needs neither scripts nor style sheets."""
        return str(self.still)

    # -- what is in sight ----------------------------------------------------------------------------

    @property
    def view(self) -> tuple[int, int]:
        """Start and end of what is in sight, in ns on the trace's own base."""
        origin = self.scene.origin_ns
        if len(self.view_range) != 2:
            return origin, self.scene.end_ns
        return origin + round(self.view_range[0]), origin + round(self.view_range[1])

    def zoom(self, start_ns: int | None = None, end_ns: int | None = None) -> None:
        """Show the time from ``start_ns`` to ``end_ns``, in ns on the trace's own base.

        A missing end means that of the trace; ``zoom()`` shows everything.

        Raises
        ------
        OptionError
            When the end does not come after the start.
        """
        start = self.scene.origin_ns if start_ns is None else int(start_ns)
        end = self.scene.end_ns if end_ns is None else int(end_ns)
        if end <= start:
            raise OptionError("end_ns", end, f"more than start_ns, which is {start}")
        self.view_range = [float(start - self.scene.origin_ns), float(end - self.scene.origin_ns)]

    # -- what is selected ----------------------------------------------------------------------------

    @property
    def selection(self) -> pd.DataFrame:
        """The selected events, as many as the widget says: rows of ``trace.spans``, with their index.

        A box selects every event on its lanes that touches its time, whole. Where instants are among them,
        they are rows as well, without a duration, and a first column ``event`` ("span", "instant") says whose
        index a row has; `selected_instants` gives them as rows of ``trace.instants``.
        """
        return chosen_events(self.scene, self._selected_rows())

    @property
    def selected_instants(self) -> pd.DataFrame:
        """The selected events without a duration: rows of ``trace.instants``."""
        import pandas as pd

        frames = [frame for _, frame in instants_of(self.scene, self._selected_rows())]
        if not frames:
            return self.scene.parts[0].trace.instants.iloc[:0]
        return frames[0] if len(frames) == 1 else pd.concat(frames)

    def _selected_rows(self) -> Rows:
        selected = dict(self.selected)
        if selected.get("kind") == "span":
            return np.array([int(selected["row"])], np.int64)
        if selected.get("kind") == "box":
            known = len(self.scene.lane_track)
            lanes = {lane for lane in map(int, selected["lanes"]) if 0 <= lane < known}
            return self.scene.rows_within(int(selected["t0"]), int(selected["t1"]), lanes)
        return np.empty(0, np.int64)

    def select(
        self, start_ns: int | None = None, end_ns: int | None = None, tracks: str | None = None
    ) -> pd.DataFrame:
        """Select the events between two times, on the tracks whose label contains ``tracks``; return them.

        Without arguments nothing is selected.
        """
        if start_ns is None and end_ns is None and tracks is None:
            self.selected = {}
            return self.selection
        origin = self.scene.origin_ns
        start = 0 if start_ns is None else int(start_ns) - origin
        end = self.scene.length_ns if end_ns is None else int(end_ns) - origin
        if end < start:
            raise OptionError("end_ns", end_ns, f"not before start_ns, which is {start_ns}")
        chosen = [
            track
            for track in self.scene.tracks
            if tracks is None or tracks.casefold() in track.label.casefold()
        ]
        if not chosen:
            labels = ", ".join(sorted({track.label for track in self.scene.tracks})[:20])
            raise OptionError("tracks", tracks, f"part of the label of a track: {labels}")
        lanes = [lane.lane for track in chosen for lane in track.lanes]
        self.selected = {"kind": "box", "t0": start, "t1": end, "lanes": lanes}
        return self.selection

    # -- what is marked ------------------------------------------------------------------------------

    def find(self, name: str) -> pd.DataFrame:
        """Mark every span whose name contains ``name``, whatever the case, and return these spans.

        The others are dimmed; N and Shift+N in the widget go from match to match.
        """
        text = str(name)
        count = self.service.mark(text=text)
        self._marked(text, f"{count:,} {'match' if count == 1 else 'matches'}", count)
        with self.hold_trait_notifications():
            self.search = text
        hits = self.service.matching(text)
        return self._spans_named(hits)

    def highlight(self, what: pd.DataFrame | pd.Series | Iterable[int] | None) -> int:
        """Mark spans and dim the others; returns how many events are marked.

        Parameters
        ----------
        what
            Rows of ``trace.spans`` (a frame or series with its index, or row numbers), or a table with a
            column ``name``, such as ``trace.operators().head()``: then every span of these names. None
            clears the marks.
        """
        self.search = ""  # clears the marks of a search, here and in the front end
        if what is None:
            self.service.mark()
            self._marked("", "", 0)
            return 0
        names = _names_of(what)
        if names is not None:
            wanted = set(names)
            mask = np.fromiter((name in wanted for name in self.scene.names), np.uint8, len(self.scene.names))
            count = self.service.mark(names=mask)
            label = f"{count:,} highlighted ({len(wanted):,} {'name' if len(wanted) == 1 else 'names'})"
        else:
            count = self.service.mark(rows=self._scene_rows(what))
            label = f"{count:,} highlighted"
        self._marked("", label, count)
        return count

    def _marked(self, text: str, label: str, count: int) -> None:
        version = int(self.marks.get("version", 0)) + 1
        self.marks = {"version": version, "text": text, "label": label, "count": count}

    def _scene_rows(self, what: Any) -> Rows:
        index = what.index if hasattr(what, "iloc") else None  # a list has a method of this name
        if len(self.scene.parts) > 1:
            if index is None or "part" not in getattr(what, "columns", ()):
                raise TypeError(
                    "with several traces, highlight() needs a frame with a column 'part', as w.selection has"
                )
            found = [
                self._part_rows(what[what["part"] == part.label], number)
                for number, part in enumerate(self.scene.parts)
            ]
            return np.concatenate(found)
        if "event" in getattr(what, "columns", ()):
            return self._part_rows(what, 0)
        rows = np.asarray(list(what) if index is None else index)
        if rows.dtype.kind not in "iu" and len(rows):
            raise TypeError(
                "highlight() needs rows of trace.spans (with their index), row numbers, or a table with a "
                f"column 'name'; got an index of {rows.dtype}"
            )
        return self.scene.scene_rows(rows.astype(np.int64))

    def _part_rows(self, what: pd.DataFrame, part: int) -> Rows:
        """Translate rows of a selection of one trace; instants are told by the column ``event``."""
        if "event" not in what.columns:
            return self.scene.scene_rows(what.index.to_numpy(), part)
        instant = (what["event"] == "instant").to_numpy()
        return np.concatenate(
            [
                self.scene.scene_rows(what.index[~instant].to_numpy(), part),
                self.scene.scene_rows(what.index[instant].to_numpy(), part, "instants"),
            ]
        )

    def _spans_named(self, names: Any) -> pd.DataFrame:
        wanted = {name for name, hit in zip(self.scene.names, names, strict=True) if hit}
        rows = []
        for number, part in enumerate(self.scene.parts):
            column = part.trace.spans["name"]
            codes = [code for code, name in enumerate(column.cat.categories) if str(name) in wanted]
            here = np.flatnonzero(np.isin(column.cat.codes.to_numpy(), codes))
            rows.append(self.scene.scene_rows(here, number))
        return self.scene.frame(np.concatenate(rows))

    def _searched(self, change: dict[str, Any]) -> None:
        # The front end searches by itself when it holds everything; the marks of both sides stay the same.
        self.service.mark(text=change["new"])

    # -- pictures ------------------------------------------------------------------------------------

    def save_picture(self, path: str | PathLike[str]) -> None:
        """Save what the browser shows as PNG; the file appears when the browser has answered."""
        from os import fspath

        number = uuid.uuid4().hex
        self._pictures[number] = fspath(path)
        self.send({"event": "picture", "id": number})

    def write_svg(self, path: str | PathLike[str], *, width: int = 1200) -> Path:
        """Write what is in sight as SVG, with the tracks as they are arranged; needs no browser.

        Parameters
        ----------
        width
            Of the picture in pixels.
        """
        start, end = self.view
        return write_svg(
            self.scene,
            path,
            start_ns=start,
            end_ns=max(end, start + 1),
            width=width,
            arrangement=self.arrangement,
        )

    # -- messages ------------------------------------------------------------------------------------

    def _on_message(self, _: Any, content: dict[str, Any], buffers: list[Any]) -> None:
        """Answer the front end; may run in another thread than the cells."""
        if content.get("op") == "picture":
            path = self._pictures.pop(str(content.get("id")), None)
            if path is not None and buffers:
                write_atomically(path, bytes(buffers[0]))
            return
        try:
            answer, buffers = self.service.answer(content)
        except Exception as error:  # the front end waits for an answer whatever happens
            _log.exception("timeline request %r failed", content.get("op"))
            answer, buffers = {"error": f"{type(error).__name__}: {error}"}, []
        self.send({**answer, "reply": content.get("id")}, buffers)


def _names_of(what: Any) -> list[str] | None:
    """Return the names that a table speaks of, or None when it is made of rows of the spans."""
    columns = getattr(what, "columns", None)
    if columns is None:
        return None
    if "start_ns" in columns:
        return None
    if "name" in columns:
        return [str(name) for name in what["name"]]
    if what.index.name == "name":
        return [str(name) for name in what.index]
    raise TypeError(
        "highlight() needs rows of trace.spans or a table with a column 'name'; "
        f"got the columns {list(columns)}"
    )
