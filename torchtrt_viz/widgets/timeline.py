"""`Timeline`: the interactive timeline of a trace, for notebooks."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.errors import MissingDependencyError, OptionError, OutputError, QueryError
from torchtrt_viz.formats.io.whole_file import write_atomically
from torchtrt_viz.report.events.launch_stories import LaunchStories
from torchtrt_viz.report.picture import write_svg
from torchtrt_viz.report.text_timeline import text_timeline
from torchtrt_viz.scene import assets
from torchtrt_viz.scene.chosen import chosen_events, extent_of, instants_of
from torchtrt_viz.scene.scene import Rows, Scene
from torchtrt_viz.scene.service import Service, extent
from torchtrt_viz.scene.wanted import named, names_mask, rows_named, wanted_rows
from torchtrt_viz.widgets.static_form import KeepsStaticForm, kept_id
from torchtrt_viz.widgets.text_form import at_plain_prompt

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
        The events that are selected, whichever view selected them, as rows of ``trace.spans``.
    view : tuple of int
        Start and end of what is in sight, in ns from the trace's start; `view_ns` on its own base.

    Examples
    --------
    >>> w = trace.timeline()
    >>> w                                  # show it, select something
    >>> w.selection.groupby("name", observed=True)["dur_ns"].sum()
    >>> w.zoom(1_000_000, 2_000_000)       # ns from the trace's start
    >>> w.find("gemm")                     # marks and selects the matches, and returns them
    >>> w.show(trace.spans.nlargest(3, "dur_ns"))    # marks, selects and zooms to them
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
        self.service = Service(self.scene, whole_limit, LaunchStories(self.scene))
        self._pictures: dict[str, str] = {}
        self._views = 0  # browsers' views that show it
        self._choices = 0  # counts selections of single rows: equal ones in a row must still be told
        # slow to import: it needs pandas
        from torchtrt_viz.report.static_html import scene_html

        super().__init__(
            height=height, theme=theme, color_by=color_by, still=scene_html(self.scene), kept=kept_id()
        )
        self.on_msg(self._on_message)
        self.observe(self._searched, "search")

    def __str__(self) -> str:
        """Draw what is in sight as lines of text, as wide as the terminal (or COLUMNS) is."""
        return f"{self._line()}\n{text_timeline(self.scene, view=self.view)}"

    def __repr__(self) -> str:
        return str(self) if at_plain_prompt() else self._line()

    def text_form(self) -> str:
        """Return the lanes as text, for IPython in a terminal."""
        return str(self)

    def _line(self) -> str:
        events = self.scene.blocks[-1].end if self.scene.blocks else 0
        return f"<Timeline of {events} events on {len(self.scene.tracks)} tracks>"

    def static_form(self) -> str:
        """Return the strip of tracks as markup that needs neither scripts nor style sheets."""
        return str(self.still)

    # -- what is in sight ----------------------------------------------------------------------------

    @property
    def view(self) -> tuple[int, int]:
        """Start and end of what is in sight, in ns from the trace's start, as ``trace.spans["t_ns"]``."""
        if len(self.view_range) != 2:
            return 0, self.scene.length_ns
        return round(self.view_range[0]), round(self.view_range[1])

    @property
    def view_ns(self) -> tuple[int, int]:
        """The same in ns on the trace's own base, as ``trace.spans["start_ns"]``."""
        origin = self.scene.origin_ns
        return origin + self.view[0], origin + self.view[1]

    def zoom(self, start_ns: int | None = None, end_ns: int | None = None, *, absolute: bool = False) -> None:
        """Show the time from ``start_ns`` to ``end_ns``, in ns from the trace's start (0 on the axis).

        These are the times of ``trace.spans["t_ns"]``. A missing end means that of the trace; ``zoom()``
        shows everything.

        Parameters
        ----------
        absolute
            The times are on the trace's own base instead, as ``start_ns`` of the spans.

        Raises
        ------
        OptionError
            When the end does not come after the start, or the trace has nothing near these times.
        """
        start, end = self._range(start_ns, end_ns, absolute)
        if end <= start:
            raise OptionError("end_ns", end_ns, f"more than start_ns, which is {start_ns}")
        if end < self._bounds[0] or start > self._bounds[1]:
            other = "" if absolute else "; for times on the trace's own base say absolute=True"
            limits = "{} to {}".format(*(at + self._base(absolute) for at in self._bounds))
            raise OptionError("start_ns", start_ns, f"within the trace, {limits} ns{other}")
        self.view_range = [float(start), float(end)]

    @property
    def _bounds(self) -> tuple[int, int]:
        return tuple(extent(self.scene).values())  # type: ignore[return-value]

    def _base(self, absolute: bool) -> int:
        return self.scene.origin_ns if absolute else 0

    def _range(self, start_ns: int | None, end_ns: int | None, absolute: bool) -> tuple[int, int]:
        base = self._base(absolute)
        start = 0 if start_ns is None else int(start_ns) - base
        end = self.scene.length_ns if end_ns is None else int(end_ns) - base
        return start, end

    # -- what is selected ----------------------------------------------------------------------------

    @property
    def selection(self) -> pd.DataFrame:
        """The selected events, whichever view selected them: rows of ``trace.spans``, with their index.

        A click, a box (every event on its lanes that touches its time, whole), chosen rows of a table, `find`
        and `show` all select. Where instants are among them, they are rows as well, without a duration, and a
        first column ``event`` ("span", "instant") says whose index a row has; `selected_instants` gives them
        as rows of ``trace.instants``.
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
        if selected.get("kind") == "rows":
            return self.service.chosen
        if selected.get("kind") == "box":
            known = len(self.scene.lane_track)
            lanes = {lane for lane in map(int, selected["lanes"]) if 0 <= lane < known}
            return self.scene.rows_within(int(selected["t0"]), int(selected["t1"]), lanes)
        return np.empty(0, np.int64)

    def select(
        self,
        start_ns: int | None = None,
        end_ns: int | None = None,
        tracks: str | None = None,
        *,
        absolute: bool = False,
    ) -> pd.DataFrame:
        """Select the events between two times, on the tracks whose label contains ``tracks``; return them.

        Times count from the trace's start, or with ``absolute`` on its own base, as in `zoom`. Without
        arguments nothing is selected.
        """
        if start_ns is None and end_ns is None and tracks is None:
            self.selected = {}
            return self.selection
        start, end = self._range(start_ns, end_ns, absolute)
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

    def show(
        self,
        what: pd.DataFrame | pd.Series | Iterable[int] | int | None = None,
        end_ns: int | None = None,
        *,
        zoom: bool = True,
    ) -> pd.DataFrame:
        """Bring events into sight: mark them, select them, and zoom to them; return what is selected.

        Parameters
        ----------
        what
            What `highlight` takes: rows of ``trace.spans``, row numbers, or a table with a column ``name``.
            Or a start in ns from the trace's start, with ``end_ns``: then the time between them is shown
            and everything in it is selected. None clears marks and selection.
        zoom
            False leaves the time in sight as it is.

        Raises
        ------
        OptionError
            When none of the rows has a place on the time axis, as sums over calls have none.

        Examples
        --------
        >>> w.show(trace.kernels().head(1))       # every launch of the kernel that takes most time
        >>> w.show(1_000_000, 2_000_000)          # the second millisecond, and all that runs in it
        """
        if isinstance(what, (int, np.integer)):
            if zoom:
                self.zoom(int(what), end_ns)
            return self.select(int(what), end_ns)
        self.highlight(what)
        if what is None:
            return self.select()
        rows = self._marked_rows()
        if len(rows) == 0 and len(what):  # type: ignore[arg-type]
            raise OptionError("what", f"{len(what)} rows", "rows with a place on the time axis")  # type: ignore[arg-type]
        self._select_rows(rows)
        found = extent_of(self.scene, rows)
        if zoom and found is not None:
            margin = max(0.08 * (found[1] - found[0]), 500.0)
            self.view_range = [found[0] - margin, found[1] + margin]
        return self.selection

    def _select_rows(self, rows: Rows) -> None:
        if len(rows) == 0:
            self.selected = {}
        elif len(rows) == 1:
            self.selected = {"kind": "span", "row": int(rows[0])}
        else:
            self.service.choose(rows)
            self._choices += 1
            self.selected = {"kind": "rows", "version": self._choices, "count": len(rows)}

    def _marked_rows(self) -> Rows:
        names, rows = self.service.marks
        if rows is not None:
            return np.flatnonzero(rows)
        return np.empty(0, np.int64) if names is None else rows_named(self.scene, names)

    # -- what is marked ------------------------------------------------------------------------------

    def find(self, query: str) -> pd.DataFrame:
        """Mark and select the events that a search is for, and return them.

        The others are dimmed; N and Shift+N in the widget go from match to match. The widget's search box
        takes the same language: words are part of a name, whatever the case; fields say more, and ``and``,
        ``or``, ``not`` and brackets join them. `torchtrt_viz.scene.query` has all of it, the widget's help
        (``?``) a summary.

        Raises
        ------
        QueryError
            With the place in the query that cannot be read, and what is expected there.

        Examples
        --------
        >>> w.find("gemm")
        >>> w.find("kind:kernel dur>50us name~gemm|conv stream:7")
        >>> w.find("kind:runtime not cudaLaunchKernel start:1ms..2ms")
        >>> w.find('thread:4242 depth:0 or args."Input Dims":4096')
        """
        text = str(query)
        count = self.service.mark(text=text)
        self._marked(text, f"{count:,} {'match' if count == 1 else 'matches'}", count)
        with self.hold_trait_notifications():
            self.search = text
        self._select_rows(self._marked_rows())
        return self.selection

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
        names = named(what)
        if names is not None:
            different = len(set(names))
            count = self.service.mark(names=names_mask(self.scene, names))
            label = f"{count:,} highlighted ({different:,} {'name' if different == 1 else 'names'})"
        else:
            count = self.service.mark(rows=wanted_rows(self.scene, what))
            label = f"{count:,} highlighted"
        self._marked("", label, count)
        return count

    def _marked(self, text: str, label: str, count: int) -> None:
        version = int(self.marks.get("version", 0)) + 1
        self.marks = {"version": version, "text": text, "label": label, "count": count}

    def _searched(self, change: dict[str, Any]) -> None:
        # The front end searches by itself when it holds everything; the marks of both sides stay the same.
        try:
            self.service.mark(text=change["new"])
        except QueryError:  # it says so where it was typed
            self.service.mark()

    # -- pictures ------------------------------------------------------------------------------------

    def save_picture(self, path: str | PathLike[str]) -> None:
        """Save what the browser shows as PNG; the file appears when the browser has answered.

        Raises
        ------
        OutputError
            When no browser shows the timeline: `write_svg` needs none.
        """
        from os import fspath

        if self._views <= 0:
            raise OutputError(
                f"{fspath(path)} cannot be written: no browser shows this timeline, and it is the browser "
                "that draws the picture. Display the timeline first, or use write_svg(), which needs none"
            )
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
        start, end = self.view_ns
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
        if content.get("op") in ("shown", "hidden"):
            self._views += 1 if content["op"] == "shown" else -1
            return
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
