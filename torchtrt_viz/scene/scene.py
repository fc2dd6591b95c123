"""`Scene`: what a timeline draws, built once from a trace and never changed.

A scene lays out the events of one trace, or of several (ranks), in lanes and indexes them natively. It knows
nothing of widgets: the notebook widget, the HTML report and the SVG picture all use it.

Rows of a scene number its events: first the spans of the first trace, then its instants, then the next
trace's. `Scene.spans` and `Scene.locate` translate between them and the frames.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model import schema
from torchtrt_viz.model.places import trace_start
from torchtrt_viz.model.trace_data import TraceData
from torchtrt_viz.scene.tracks import Role, Track, TrackKey, arrange

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz._native.columns import TimelineIndex
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Block", "Part", "Place", "Scene", "placed"]

Rows = NDArray[np.int64]
_MAX_PARTS = 256
_NO_KIND = len(schema.KINDS)
_ROLES: tuple[Role, ...] = ("spans", "modeled", "annotations", "instants", "implausible")


@dataclass(frozen=True)
class Part:
    """One trace of a scene.

    ``shift_ns`` is added to its times to bring them to the scene's clock; ``label`` tells it from the others
    ("" when it is alone).
    """

    trace: TraceData
    shift_ns: int = 0
    label: str = ""


@dataclass(frozen=True)
class Block:
    """A run of scene rows that come from one frame of one part; ``rows`` are the frame's rows (None: all)."""

    begin: int
    end: int
    part: int
    frame: Literal["spans", "instants"]
    rows: Rows | None

    def frame_rows(self, scene_rows: Rows) -> Rows:
        """Translate scene rows of this block to rows of its frame."""
        local = scene_rows - self.begin
        return local if self.rows is None else self.rows[local]


@dataclass(frozen=True)
class Place:
    """Where an event is drawn: its scene row and lane, start (scene clock) and duration in ns."""

    row: int
    lane: int
    start_ns: int
    dur_ns: int


@dataclass
class _Columns:
    """Input of the index, being collected."""

    track: list[NDArray[np.int32]] = field(default_factory=list)
    start: list[NDArray[np.int64]] = field(default_factory=list)
    dur: list[NDArray[np.int64]] = field(default_factory=list)
    name: list[NDArray[np.int32]] = field(default_factory=list)
    kind: list[NDArray[np.int8]] = field(default_factory=list)

    def add(
        self,
        track: NDArray[np.int32],
        start: NDArray[np.int64],
        dur: NDArray[np.int64],
        name: NDArray[np.int32],
        kind: NDArray[np.int8],
    ) -> None:
        for into, values in zip(
            (self.track, self.start, self.dur, self.name, self.kind),
            (track, start, dur, name, kind),
            strict=True,
        ):
            into.append(values)  # type: ignore[attr-defined]


class Scene:
    """Everything that a timeline of ``parts`` draws.

    Attributes
    ----------
    parts : list of Part
    index : TimelineIndex
        Lanes and their level of detail.
    tracks : list of Track
        In the order of the screen.
    names : list of str
        Every name once; the index's name codes point here.
    name_kind, name_color : uint8 arrays
        Per name: its kind (position in ``schema.KINDS``) and a colour number that depends on the text alone.
    kinds_of : dict
        Per section the kinds of its spans.
    note : str
        How several traces were placed on one axis; "" for one trace.
    origin_ns, end_ns : int
        First start and last end of what was observed, on the scene's clock: the axis counts from here, as
        ``trace.spans["t_ns"]`` does. What a recorder notes of itself may lie before and behind.
    first_ns, last_ns : int
        First start and last end of anything drawn.
    """

    def __init__(self, parts: Sequence[Part], note: str = "") -> None:
        if not parts:
            raise ValueError("a timeline needs at least one trace")
        self.note = note
        self.parts = list(parts)
        self.blocks: list[Block] = []
        self.names: list[str] = []
        self._name_codes: dict[str, int] = {}
        self.kinds_of: dict[str, set[str]] = {"host": set(), "gpu": set()}
        keys: list[TrackKey] = []
        columns = _Columns()
        for number, part in enumerate(self.parts):
            self._add_spans(number, part, keys, columns)
            self._add_instants(number, part, keys, columns)
        track, start, dur, name, kind = (
            _joined(values, dtype)
            for values, dtype in (
                (columns.track, np.int32),
                (columns.start, np.int64),
                (columns.dur, np.int64),
                (columns.name, np.int32),
                (columns.kind, np.int8),
            )
        )
        modeled = np.array([key.role == "modeled" for key in keys], bool)[track]
        self.name_kind = self._kinds_of_names(name, kind, modeled)
        flat = np.array([key.flat for key in keys], np.uint8)
        self.index: TimelineIndex = native("columns").TimelineIndex(track, start, dur, name, flat)
        self.first_ns: int
        self.last_ns: int
        self.first_ns, self.last_ns = self.index.bounds
        self.origin_ns, self.end_ns = _axis(self.parts, self.first_ns, self.last_ns)
        self.keys = keys
        self.lane_track, _, lane_kind, self.lane_begin, self.lane_end, self.lane_busy = self.index.lanes()
        self.lane_is_cover = lane_kind == 1
        self.tracks: list[Track] = arrange(self.parts, keys, self)

    @classmethod
    def of(cls, what: Any, align: str = "clock") -> Scene:
        """Make the scene of a trace, of a session, or of a list of traces.

        Several traces are placed by their own wall clocks (``align="clock"``) where all of them record one,
        else, and with ``align="start"``, each begins at 0; `note` says which. Clocks of different hosts are
        not corrected.

        Raises
        ------
        OptionError
            For an unknown ``align``, and for more traces than a screen can hold.
        """
        if isinstance(what, Scene):
            return what
        if align not in ("clock", "start"):
            raise OptionError("align", align, "one of 'clock', 'start'")
        if isinstance(what, TraceData):
            return cls([Part(what)])
        traces, labels = _several(what)
        if len(traces) == 1:
            return cls([Part(traces[0])])
        bases = [trace.meta.get("base_ns") for trace in traces]
        known = [int(base) for base in bases if base is not None]
        if align == "clock" and len(known) == len(traces):
            shifts = [base - min(known) for base in known]
            note = "traces placed by their own wall clocks, which are not corrected"
        else:
            shifts = [-_first(trace) for trace in traces]
            note = "each trace begins at 0" + (
                "" if align == "start" else ": not all of them record a wall clock"
            )
        parts = [Part(*part) for part in zip(traces, shifts, labels, strict=True)]
        return cls(parts, note)

    # -- building ------------------------------------------------------------------------------------

    def _add_spans(self, number: int, part: Part, keys: list[TrackKey], columns: _Columns) -> None:
        spans = part.trace.spans
        modeled = schema.TIMINGS.index("modeled")
        implausible = schema.TIMINGS.index("implausible")
        on_axis = placed(part.trace)
        rows = None if on_axis.all() else np.flatnonzero(on_axis)
        chosen = spans if rows is None else spans.iloc[rows]
        if chosen.empty:
            return
        kind = chosen["kind"].cat.codes.to_numpy().astype(np.int8, copy=False)
        domain = np.maximum(chosen["domain"].cat.codes.to_numpy(), 0)
        role = np.zeros(len(chosen), np.int32)
        of_chosen = chosen["timing"].cat.codes.to_numpy()
        role[of_chosen == modeled] = 1
        role[of_chosen == implausible] = _ROLES.index("implausible")
        ranges = (kind == schema.KINDS.index("annotation")) | (kind == schema.KINDS.index("step"))
        role[ranges & (domain == 1) & (role == 0)] = 2
        tracks = _virtual_tracks(number, part, chosen["track"].to_numpy(), domain, role, keys)
        self._note_kinds(domain, kind)
        self._add_block(number, "spans", len(chosen), rows)
        columns.add(
            tracks,
            _times(chosen["start_ns"], part.shift_ns),
            chosen["dur_ns"].to_numpy().astype(np.int64, copy=False),
            self._name_column(chosen["name"]),
            kind,
        )

    def _add_instants(self, number: int, part: Part, keys: list[TrackKey], columns: _Columns) -> None:
        instants = part.trace.instants
        if instants.empty:
            return
        domain = np.maximum(instants["domain"].cat.codes.to_numpy(), 0)
        role = np.full(len(instants), 3, np.int32)
        tracks = _virtual_tracks(number, part, instants["track"].to_numpy(), domain, role, keys)
        self._add_block(number, "instants", len(instants), None)
        columns.add(
            tracks,
            _times(instants["ts_ns"], part.shift_ns),
            np.zeros(len(instants), np.int64),
            self._name_column(instants["name"]),
            instants["kind"].cat.codes.to_numpy().astype(np.int8, copy=False),
        )

    def _note_kinds(self, domain: NDArray[np.int8], kind: NDArray[np.int8]) -> None:
        known = kind >= 0
        present = np.bincount(domain[known].astype(np.int64) * _NO_KIND + kind[known], minlength=2 * _NO_KIND)
        for number, side in enumerate(("host", "gpu")):
            here = np.flatnonzero(present[number * _NO_KIND : (number + 1) * _NO_KIND])
            self.kinds_of[side] |= {schema.KINDS[code] for code in here.tolist()}

    def _add_block(
        self, part: int, frame: Literal["spans", "instants"], length: int, rows: Rows | None
    ) -> None:
        begin = self.blocks[-1].end if self.blocks else 0
        self.blocks.append(Block(begin, begin + length, part, frame, rows))

    def _name_column(self, names: pd.Series) -> NDArray[np.int32]:
        """Codes of one categorical column in the scene's own list of names."""
        codes = names.cat.codes.to_numpy()
        texts = [str(text) for text in names.cat.categories]
        known = self._name_codes
        first = not known
        table = np.empty(len(texts) + 1, np.int32)
        table[-1] = -1  # code -1, no name
        for position, text in enumerate(texts):
            code = known.get(text)
            if code is None:
                code = known[text] = len(self.names)
                self.names.append(text)
            table[position] = code
        if first and len(self.names) == len(texts):
            return codes.astype(np.int32, copy=False)
        mapped: NDArray[np.int32] = table[codes]
        return mapped

    def _kinds_of_names(
        self, name: NDArray[np.int32], kind: NDArray[np.int8], modeled: NDArray[np.bool_]
    ) -> NDArray[np.uint8]:
        """Return the kind of one event of every name, of a recorded one where there is any."""
        out = np.full(len(self.names) + 1, _NO_KIND, np.int16)
        for some in (modeled, ~modeled):
            out[name[some]] = kind[some]
        out[out < 0] = _NO_KIND
        return out[:-1].astype(np.uint8)

    # -- what the lanes are --------------------------------------------------------------------------

    @cached_property
    def name_color(self) -> NDArray[np.uint8]:
        """One byte per name that depends on its text alone, so that a name looks alike in every trace."""
        return np.fromiter(
            (zlib.crc32(name.encode("utf-8", "replace")) & 0xFF for name in self.names),
            np.uint8,
            len(self.names),
        )

    @property
    def length_ns(self) -> int:
        """Length of the time axis, at least 1 ns."""
        return max(1, self.end_ns - self.origin_ns)

    def lanes_of(self, key: int) -> list[int]:
        """Return the lanes of one entry of `keys`, outermost first, without its cover."""
        return [int(lane) for lane in self._all_lanes(key) if not self.lane_is_cover[lane]]

    def collapsed_lane(self, key: int) -> int:
        """Return the lane that stands for all lanes of one entry of `keys`."""
        lanes = self._all_lanes(key)
        covers = lanes[self.lane_is_cover[lanes]]
        return int(covers[0]) if len(covers) else int(lanes[0])

    def _all_lanes(self, key: int) -> NDArray[np.int64]:
        return np.arange(*np.searchsorted(self.lane_track, [key, key + 1]))  # lanes come track after track

    # -- rows ----------------------------------------------------------------------------------------

    def block_of(self, row: int) -> Block:
        """Return the block that holds a scene row."""
        for block in self.blocks:
            if block.begin <= row < block.end:
                return block
        raise IndexError(f"row {row} of {self.blocks[-1].end if self.blocks else 0}")

    def event(self, row: int) -> tuple[Part, Block, int]:
        """Return the part, the block and the row in its frame of one scene row."""
        block = self.block_of(row)
        return self.parts[block.part], block, int(block.frame_rows(np.array([row], np.int64))[0])

    def frame(self, rows: Rows) -> pd.DataFrame:
        """Return the spans at scene rows as a frame, in the order of the file, part after part.

        The index is that of ``trace.spans``. Instants among the rows are left out. With several parts a
        first column ``part`` says which trace a row comes from.
        """
        import pandas as pd

        chosen = []
        ordered = np.sort(rows)
        for block in self.blocks:
            if block.frame != "spans":
                continue
            low, high = np.searchsorted(ordered, [block.begin, block.end])
            part = self.parts[block.part]
            frame = part.trace.spans.iloc[block.frame_rows(ordered[low:high])]
            if len(self.parts) > 1:
                frame = frame.copy()
                frame.insert(0, "part", part.label)
            if high > low or len(self.parts) == 1:
                chosen.append(frame)
        if not chosen:
            return self.parts[0].trace.spans.iloc[:0]
        return chosen[0] if len(chosen) == 1 else pd.concat(chosen)

    def clipped(self, t0: int, t1: int) -> tuple[int, int]:
        """Return times from the scene's origin on its clock, no further out than its events need."""
        limits = np.iinfo(np.int64)
        low = max(self.first_ns - 1, int(limits.min))
        high = min(max(self.last_ns, self.origin_ns + self.length_ns) + 1, int(limits.max))
        first, last = (min(max(t + self.origin_ns, low), high) for t in (t0, t1))
        return first, last

    def drawn(self, lanes: Iterable[int]) -> NDArray[np.int32]:
        """Return lanes each once, without covers, which stand for others."""
        distinct = sorted(set(lanes))
        return np.array([lane for lane in distinct if not self.lane_is_cover[lane]], np.int32)

    def rows_within(self, t0: int, t1: int, lanes: Iterable[int]) -> Rows:
        """Return the rows of the events on lanes that touch a time from the scene's origin."""
        return self.index.rows(*self.clipped(t0, t1), self.drawn(lanes))

    def scene_rows(
        self,
        frame_rows: Iterable[int] | Rows,
        part: int = 0,
        frame: Literal["spans", "instants"] = "spans",
    ) -> Rows:
        """Translate rows of a part's frame to scene rows; those without a place are left out."""
        wanted = np.unique(np.asarray(frame_rows, np.int64))
        for block in self.blocks:
            if block.part != part or block.frame != frame:
                continue
            if block.rows is None:
                at = wanted[(wanted >= 0) & (wanted < block.end - block.begin)]
            else:
                at = np.minimum(np.searchsorted(block.rows, wanted), len(block.rows) - 1)
                at = at[block.rows[at] == wanted]
            found: Rows = at + block.begin
            return found
        return np.empty(0, np.int64)

    def locate(self, row: int) -> Place | None:
        """Return where a scene row is drawn."""
        part, block, frame_row = self.event(row)
        if block.frame == "spans":
            event = part.trace.spans.iloc[frame_row]
            start = int(event["start_ns"]) + part.shift_ns
        else:
            event = part.trace.instants.iloc[frame_row]
            start = int(event["ts_ns"]) + part.shift_ns
        track = int(event["track"])
        for number, key in enumerate(self.keys):
            if key.part == block.part and key.track == track:
                found = self.index.locate(number, start, row)
                if found is not None:
                    return Place(*found)
        return None


def _several(what: Any) -> tuple[list[TraceData], list[str]]:
    """Return the traces of a session or a list, and a label for each."""
    if callable(getattr(what, "traces", None)):
        count = len(what)
        if count > _MAX_PARTS:
            raise OptionError(
                "trace",
                f"{count} ranks",
                f"at most {_MAX_PARTS}: choose some with session.select(rank=[...])",
            )
        found = list(what.traces())
        traces = [trace for _, trace in found]
        names = [_rank_label(file.rank, getattr(file, "role", None), n) for n, (file, _) in enumerate(found)]
    else:
        traces = list(what)
        names = [_rank_label(trace.meta.get("rank"), None, n) for n, trace in enumerate(traces)]
    if len(traces) > _MAX_PARTS:
        raise OptionError("trace", f"{len(traces)} traces", f"at most {_MAX_PARTS}")
    if len(set(names)) < len(names):
        names = [f"{name} #{number}" for number, name in enumerate(names)]
    return traces, names


def placed(trace: TraceData) -> NDArray[np.bool_]:
    """Say which spans have a place on the time axis: no sums, no missing times.

    An implausible span has one only inside the time of the measured ones, which it would otherwise stretch.
    """
    spans = trace.spans
    timing = spans["timing"].cat.codes.to_numpy()
    start = spans["start_ns"]
    out: NDArray[np.bool_] = timing != schema.TIMINGS.index("aggregate")
    if start.dtype != np.int64:
        out &= start.notna().to_numpy()
    unlikely = np.flatnonzero(out & (timing == schema.TIMINGS.index("implausible")))
    if len(unlikely):
        measured = trace.measured
        out[unlikely] = False
        if len(measured):
            first, last = measured["start_ns"].min(), (measured["start_ns"] + measured["dur_ns"]).max()
            begin = start.iloc[unlikely].to_numpy(dtype=np.int64)
            end = begin + spans["dur_ns"].to_numpy()[unlikely]
            out[unlikely] = (begin >= first) & (end <= last)
    return out


def _axis(parts: Sequence[Part], first: int, last: int) -> tuple[int, int]:
    """Return where the time axis begins and ends: first start and last end of what was observed.

    Without anything observed, those of all that is drawn.
    """
    recorder = schema.TIMINGS.index("modeled"), schema.KINDS.index("other")
    begins, ends = [], []
    for part in parts:
        spans = part.trace.spans
        begin = trace_start(spans)
        if begin is None:
            continue
        timing, kind = (spans[name].cat.codes.to_numpy() for name in ("timing", "kind"))
        work = placed(part.trace) & ~((timing == recorder[0]) & (kind == recorder[1]))
        if not work.any():
            continue
        start, dur = spans["start_ns"], spans["dur_ns"]
        if not work.all():
            start, dur = start[work], dur[work]
        begins.append(begin + part.shift_ns)
        ends.append(
            int((start.to_numpy(dtype=np.int64) + dur.to_numpy(dtype=np.int64)).max()) + part.shift_ns
        )
    if not begins or min(begins) < first or min(begins) >= max(ends):
        return first, last
    return min(begins), min(max(ends), last)


def _rank_label(rank: Any, role: Any, number: int) -> str:
    label = f"trace {number}" if rank is None or int(rank) < 0 else f"rank {int(rank)}"
    return f"{label} {role}" if role else label


def _first(trace: TraceData) -> int:
    return int(trace.measured["start_ns"].min()) if len(trace.measured) else 0


def _joined(values: list[Any], dtype: Any) -> Any:
    if not values:
        return np.empty(0, dtype)
    joined = values[0] if len(values) == 1 else np.concatenate(values)
    return np.ascontiguousarray(joined, dtype=dtype)


def _times(column: pd.Series, shift: int) -> NDArray[np.int64]:
    times = column.to_numpy(dtype=np.int64)
    return times if shift == 0 else times + shift


def _virtual_tracks(
    number: int,
    part: Part,
    track: NDArray[np.int32],
    domain: NDArray[np.int8],
    role: NDArray[np.int32],
    keys: list[TrackKey],
) -> NDArray[np.int32]:
    """Split tracks by domain and role, append the new ones to ``keys`` and return every event's entry there.

    Host and GPU time never share a lane, even where a file puts both on one track.
    """
    roles = len(_ROLES)
    combined = (track.astype(np.int64) * 2 + domain) * roles + role
    present = np.flatnonzero(np.bincount(combined, minlength=1))
    table = np.zeros(int(present[-1]) + 1, np.int32)
    tracks = part.trace.tracks
    kinds = tracks["type"].astype(object).to_numpy()
    for value in present:
        rest, which = divmod(int(value), roles)
        of_track, of_domain = divmod(rest, 2)
        gpu = of_domain == 1
        table[value] = len(keys)
        keys.append(
            TrackKey(
                part=number,
                track=of_track,
                domain="gpu" if gpu else "host",
                role=_ROLES[which],
                flat=which == 3 or (gpu and which == 0) or kinds[of_track] == "async",
            )
        )
    laid_out: NDArray[np.int32] = table[combined]
    return laid_out
