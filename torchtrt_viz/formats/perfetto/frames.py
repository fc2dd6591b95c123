"""The native decoder's columns as a `Trace`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.foreign_protobuf import foreign_protobuf
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.perfetto.accounting import accounting_of, unread_in_words
from torchtrt_viz.formats.perfetto.codes import distinct_codes
from torchtrt_viz.formats.perfetto.own_fields import OwnMetadata, read_own
from torchtrt_viz.formats.perfetto.places import Placed, place, says_domain, track_places
from torchtrt_viz.formats.perfetto.sniff import looks_like_perfetto
from torchtrt_viz.formats.perfetto.tracks import TrackNames, TrackTable
from torchtrt_viz.formats.perfetto.unpack import unpack
from torchtrt_viz.model import schema
from torchtrt_viz.model.nesting import nest_observed
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.formats.producers.rules import Place

__all__ = ["read_trace"]

_PROBLEMS = {
    "truncated": "the trace stops or is damaged here: packets before it were read",
    "damaged_packet": "packets that do not read as packets were left out",
    "damaged_message": "messages inside of packets are damaged and were left out",
    "missing_state": "events that rely on state lost with earlier packets were left out",
    "missing_string": "interned names that the trace does not define are empty",
    "no_time": "events without a time, or with one that does not fit, were left out",
    "other_clock": "events on clocks that no snapshot relates to the trace's were left out",
    "legacy_phase": "legacy events of phases that are not read",
    "compressed": "compressed packets inside of compressed packets were left out",
    "legacy_flow": "flows in the form of the trace-event format (bind_id) were not read",
    "no_value": "events of counters without a value were left out",
    "end_without_begin": "ends of slices that never began were left out",
    "unfinished": "slices without an end are instants with state unfinished",
}
_HEAD_BYTES = 1 << 16
_EXPECTED = "packets with times, sequences, events or descriptors of tracks"
#: Packets that hold events or describe where they lie.
_EVENTS = frozenset({11, 43, 44, 52, 53, 60, 63, 65, 71, 129})
#: Nothing is damaged: the trace holds more than is read.
_WHOLE = frozenset({"legacy_flow"})
_CLOCKS = {
    1: "realtime (Unix time)",
    2: "realtime, coarse",
    3: "monotonic",
    4: "monotonic, coarse",
    5: "monotonic, raw",
    6: "boottime",
}


def read_trace(source: Source, options: LoadOptions) -> TraceData:
    """Read a Perfetto trace.

    Raises
    ------
    TraceFormatError
        When no packet of it is whole.
    """
    decoded, head = _decode(source, options)
    problems = decoded.problems()
    if decoded.packets == problems.get("damaged_packet", (0, 0))[0]:  # 0 of 0 included
        _refuse_named(head, source)
        raise TraceFormatError(
            "no packet of the trace is whole",
            path=source.name,
            offset=(problems.get("truncated") or (0, 0))[1],
            expected="packets of track events (byte 0x0A and a length)",
            found=f"{source.stored_bytes} bytes without one",
            hint="Write the trace again; if it is still being written, stop the tracing session first",
        )
    _refuse_foreign(decoded, head, source)
    for code, (count, offset) in problems.items():
        found = Repair(code, _PROBLEMS[code], source.name, offset, count)
        if code in _WHOLE:
            options.warnings.append(found)
        else:
            options.repaired(found)
    return _Frames(decoded, source, options).trace()


def _decode(source: Source, options: LoadOptions) -> tuple[Any, bytes]:
    """Return the decoder that holds the whole trace, and the first bytes as stored."""
    data = source.read()
    if options.progress is not None:
        options.progress(len(data), len(data))
    head = data[:_HEAD_BYTES]
    return native("perfetto").decode(unpack(data, source.name, options)), head


def _refuse_foreign(decoded: Any, head: bytes, source: Source) -> None:
    """Refuse a protobuf file of something else, which reads as packets without anything in them.

    Raises
    ------
    TraceFormatError
        With what the file is, where that can be told.
    """
    accounting = decoded.accounting()
    damaged = accounting["left_out"].get("damaged_packet", (0, 0))[0]
    if looks_like_perfetto(head) or (damaged and accounting["identified"]):
        return
    if any(field in _EVENTS for field in accounting["read"]):
        return
    _refuse_named(head, source)
    raise TraceFormatError(
        "not a Perfetto trace",
        path=source.name,
        offset=0,
        expected=_EXPECTED,
        found="another protobuf file",
        hint="Load the file that the profiler wrote",
    )


def _refuse_named(head: bytes, source: Source) -> None:
    """Refuse a file of which it can be told what it is.

    Raises
    ------
    TraceFormatError
        With what it is, and what to load.
    """
    foreign = foreign_protobuf(head, source.filename)
    if foreign is not None:
        raise TraceFormatError(
            "not a Perfetto trace",
            path=source.name,
            offset=0,
            expected=_EXPECTED,
            found=foreign.what,
            hint=foreign.hint,
        )


class _Frames:
    """Builds the frames of one decoded trace."""

    def __init__(self, decoded: Any, source: Source, options: LoadOptions) -> None:
        self._decoded = decoded
        self._source = source
        self._options = options
        self._strings: list[str] = decoded.strings()
        self._spans = decoded.spans()
        self._instants = decoded.instants()
        self._counters = decoded.counters()
        self._track_columns = decoded.tracks()
        self._own = read_own(decoded.metadata())
        self._rank = -1
        if options.rank is not None:
            self._rank = options.rank
        elif self._own is not None and self._own.rank is not None:
            self._rank = self._own.rank
        self._names_of_tracks = TrackNames(self._track_columns, self._strings)
        self._settle_own()

    def trace(self) -> TraceData:
        """Return the trace."""
        own = self._own
        shift, base = self._time_axis()
        places = None
        if own is None:
            categorised = says_domain(self._spans["category"], self._strings)
            places = track_places(self._names_of_tracks, self._used, categorised=categorised)
        placed = place(self._spans, self._strings, places)
        points = place(self._instants, self._strings, places)
        row_of, tracks = self._tracks(placed.domain, points.domain, places)
        spans = self._span_frame(row_of, shift, placed)
        kept = _Decoded(self._source, self._decoded)
        flows = self._decoded.flows()
        count = len(flows["id"])
        frames = {
            "spans": spans,
            "instants": self._instant_frame(row_of, shift, points),
            "counters": self._counter_frame(row_of, shift),
            "flows": schema.FLOWS.frame({"name": "flow" if count else [], **flows}, count),
        }
        accounting = accounting_of(
            self._decoded.accounting(),
            {name: len(frame) for name, frame in frames.items()},
            self._spans["dur_ns"],
        )
        self._warn(accounting, placed, places)
        return TraceData(
            **frames,
            tracks=tracks,
            args=_Arguments(kept, "span_arguments", len(placed.kind), [] if own is None else own.aggregates),
            instant_args=_Arguments(kept, "instant_arguments", len(points.kind), []),
            meta={
                "format": "perfetto",
                "sources": [self._source.name],
                "base_ns": base,
                "clock": self._clock(own),
                "rank": None if self._rank < 0 else self._rank,
                "synthetic": own is not None and own.synthetic,
                "packets": self._decoded.packets,
                "packets_not_read": {
                    field: count for field, (count, _) in self._decoded.accounting()["unread"].items()
                },
                "accounting": accounting,
                "producers": {
                    "rows": dict(Counter(p.producer for p in places or () if p is not None)),
                    "placed_by_name": placed.by_name,
                    "derived": placed.derived,
                },
                "warnings": self._options.warnings,
            },
        )

    def _warn(self, accounting: dict[str, Any], placed: Placed, places: list[Place | None] | None) -> None:
        """Say what was not read, and how much lies where nothing says host or GPU."""
        warnings, name = self._options.warnings, self._source.name
        words, number = unread_in_words(accounting)
        if number:
            warnings.append(
                Repair("unread_packets", f"packets of kinds that are not read: {words}", name, count=number)
            )
        rows = accounting["rows"]
        if not rows["spans"] + rows["instants"] + rows["counters"]:
            text = "the trace holds no slice, instant or counter of a kind that is read"
            warnings.append(Repair("no_events", text, name))
        if places is None:
            return
        unsaid = ~placed.said
        if placed.said.any() or self._track_columns["gpu"].any():
            # something says what ran on a device; threads are threads, and other tracks may be anything
            lanes = np.array([self._names_of_tracks.is_lane(i) for i in range(len(places))], bool)
            unsaid &= lanes[self._spans["track"]]
        count = int(unsaid.sum())
        if count:
            warnings.append(
                Repair(
                    "domain_unsaid",
                    "neither categories nor names of tracks, threads and processes say what ran on a device: "
                    "these events are taken as work of the host",
                    name,
                    count=count,
                )
            )

    def _time_axis(self) -> tuple[int, int | None]:
        """Return (time of the trace where ``start_ns`` is 0, Unix time there)."""
        if self._own is not None:
            return -self._own.origin_ns, self._own.base_ns
        starts = [
            int(times.min())
            for times in (self._spans["start_ns"], self._instants["ts_ns"], self._counters["ts_ns"])
            if len(times)
        ]
        first = min(starts, default=0)
        offset = self._decoded.unix_offset
        return first, None if offset is None else first + offset

    def _clock(self, own: OwnMetadata | None) -> str:
        if own is not None:
            return own.clock
        clock = self._decoded.clock
        return f"first event, on the trace's clock: {_CLOCKS.get(clock, f'clock {clock}')}"

    # -- columns ---------------------------------------------------------------------------------------

    def _names(self, codes: np.ndarray) -> pd.Categorical:
        return _categorical(codes, self._strings, "(unnamed)")

    def _timings(self, placed: Placed) -> np.ndarray:
        """Return the codes of timing: modeled for what this package marked so and for derived rows."""
        if self._own is None:
            return placed.timing
        distinct, inverse = distinct_codes(self._spans["category"])
        modeled = schema.TIMINGS.index("modeled")
        codes = [
            modeled if code >= 0 and "modeled" in self._strings[code].split(",") else 0 for code in distinct
        ]
        table = np.array(codes, np.int8)
        out: np.ndarray = table[inverse]
        return out

    def _settle_own(self) -> None:
        """Believe what this package wrote of tracks only where every track in use is one of those."""
        total = len(self._track_columns["uuid"])
        self._used = np.zeros(total, bool)
        for columns in (self._spans, self._instants, self._counters):
            self._used[columns["track"]] = True
        if self._own is not None:
            uuids = self._track_columns["uuid"]
            self._lanes = np.array([self._own.lanes.get(int(uuid), -1) for uuid in uuids], np.int32)
            if (self._lanes[self._used] < 0).any():
                self._own = None  # somebody edited the trace

    def _tracks(
        self, domains: np.ndarray, instant_domains: np.ndarray, places: list[Place | None] | None
    ) -> tuple[np.ndarray, pd.DataFrame]:
        """Return (row of each of the decoder's tracks, frame of tracks)."""
        if self._own is not None:
            columns = {key: [track[key] for track in self._own.tracks] for key in schema.TRACKS.names}
            return self._lanes, schema.TRACKS.frame(columns, len(self._own.tracks))
        on_gpu = self._track_columns["gpu"].astype(bool)
        for events, where in ((self._spans, domains), (self._instants, instant_domains)):
            on_gpu[events["track"][where == schema.DOMAINS.index("gpu")]] = True
        table = TrackTable(self._names_of_tracks, self._used, places or [])
        gpu = np.zeros(len(table), bool)
        gpu[table.row[on_gpu & self._used]] = True
        return table.row, table.frame(gpu, self._rank)

    def _instant_frame(self, row_of: np.ndarray, shift: int, placed: Placed) -> pd.DataFrame:
        instants = self._instants
        count = len(placed.kind)
        return schema.INSTANTS.frame(
            {
                "name": self._names(instants["name"]),
                "kind": placed.kind,
                "domain": placed.domain,
                "track": row_of[instants["track"]],
                "ts_ns": instants["ts_ns"] - shift,
                "state": instants["unfinished"].astype(np.int8),
                "rank": np.full(count, self._rank, np.int32),
            },
            count,
        )

    def _span_frame(self, row_of: np.ndarray, shift: int, placed: Placed) -> pd.DataFrame:
        import pandas as pd

        spans = self._spans
        track = row_of[spans["track"]].astype(np.int32, copy=False)
        start = spans["start_ns"] - shift
        timing = self._timings(placed)
        correlation = spans["correlation"]
        if self._own is None:  # as ROCm's tools call it
            correlation = np.where(correlation == -1, spans["corr_id"], correlation)
        # what was not observed takes no time off what was
        parent, depth, own_time = nest_observed(track, start, spans["dur_ns"], timing == 0)
        if self._own is not None and self._own.nesting and self._own.spans == len(start):
            said = self._own.nesting
            parent[said["rows"]] = said["parent"]
            depth[said["rows"]] = said["depth"]
            own_time[said["rows"]] = np.clip(said["self_ns"], 0, spans["dur_ns"][said["rows"]])
        frame = schema.SPANS.frame(
            {
                "name": self._names(spans["name"]),
                "kind": placed.kind,
                "domain": placed.domain,
                "timing": timing,
                "track": track,
                "start_ns": start,
                "dur_ns": spans["dur_ns"],
                "self_ns": own_time,
                "depth": depth,
                "parent": parent,
                "correlation": correlation,
                "external_id": spans["external_id"],
                "iteration": spans["iteration"],
                "rank": np.full(len(start), self._rank, np.int32),
                "run_id": _categorical(spans["run"], self._strings, None),
            },
            len(start),
        )
        if self._own is None or not self._own.aggregates:
            return frame
        rows = self._own.aggregates
        extra = schema.SPANS.frame(
            {
                **{
                    key: [row[key] for row in rows]
                    for key in ("name", "kind", "domain", "timing", "track", "dur_ns", "correlation")
                },
                "external_id": [row["external_id"] for row in rows],
                "iteration": [row["iteration"] for row in rows],
                "self_ns": [row["dur_ns"] for row in rows],
                "start_ns": pd.array([pd.NA] * len(rows), dtype="Int64"),
                "rank": np.full(len(rows), self._rank, np.int32),
                "run_id": pd.Categorical([row["run_id"] for row in rows]),
            },
            len(rows),
        )
        return _stacked(frame, extra)

    def _counter_frame(self, row_of: np.ndarray, shift: int) -> pd.DataFrame:
        counters = self._counters
        columns = self._track_columns
        names, units = columns["name"].copy(), columns["unit"].copy()
        strings = list(self._strings)
        if self._own is not None:
            for index, uuid in enumerate(columns["uuid"]):
                said = self._own.counters.get(int(uuid))
                if said is not None:
                    strings += [said[0], said[1] or ""]
                    names[index] = len(strings) - 2
                    units[index] = len(strings) - 1 if said[1] is not None else -1
        count = len(counters["ts_ns"])
        return schema.COUNTERS.frame(
            {
                "name": _categorical(names[counters["track"]], strings, "(unnamed)"),
                "track": row_of[counters["track"]],
                "ts_ns": counters["ts_ns"] - shift,
                "value": counters["value"],
                "unit": _categorical(units[counters["track"]], strings, None),
                "rank": np.full(count, self._rank, np.int32),
            },
            count,
        )


def _categorical(codes: np.ndarray, strings: list[str], missing: str | None) -> pd.Categorical:
    """Make a categorical of the strings in use; code -1 is ``missing``, or a missing value for None."""
    import pandas as pd

    distinct, inverse = distinct_codes(codes)
    texts = [missing if code < 0 else strings[code] for code in distinct]
    # bytes that are no UTF-8 were replaced, so that two codes may have one text
    places: dict[str, int] = {}
    new = np.array([-1 if t is None else places.setdefault(t, len(places)) for t in texts], np.int32)
    return pd.Categorical.from_codes(
        new[inverse] if len(codes) else np.empty(0, np.int32), categories=pd.Index(list(places), dtype="str")
    )


def _united(above: pd.Categorical, below: pd.Categorical) -> pd.Categorical:
    """Concatenate two categoricals; the categories of the first come first."""
    import pandas as pd

    if list(above.categories) == list(below.categories):
        codes = np.concatenate([above.codes, below.codes])
        return pd.Categorical.from_codes(codes, categories=above.categories)
    places = {text: code for code, text in enumerate(above.categories)}
    new = [places.setdefault(text, len(places)) for text in below.categories]
    table = np.array([*new, -1], np.int32)
    codes = np.concatenate([above.codes.astype(np.int32), table[below.codes]])
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(places), dtype="str"))


def _stacked(frame: pd.DataFrame, extra: pd.DataFrame) -> pd.DataFrame:
    """Append rows, with categories united and ``start_ns`` nullable."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in frame.columns:
        above, below = frame[name].array, extra[name].array
        if isinstance(above, pd.Categorical):
            columns[name] = _united(above, below)
        elif name == "start_ns":
            columns[name] = pd.concat([frame[name].astype("Int64"), extra[name]], ignore_index=True).array
        else:
            columns[name] = pd.concat([frame[name], extra[name]], ignore_index=True).array
    return pd.DataFrame(columns)


class _Decoded:
    """The decoder; a copy elsewhere (pickle) is decoded there once more, when somebody asks."""

    def __init__(self, source: Source, decoder: Any) -> None:
        self._source = source
        self._stamp = source.stamp()
        self._decoder = decoder

    def read(self, what: str, rows: np.ndarray) -> Iterable[bytes]:
        """Return the arguments of rows, as JSON.

        Raises
        ------
        TraceFormatError
            When the file is gone, or not the one that was loaded any more.
        """
        if self._decoder is None:
            if self._source.stamp() != self._stamp:
                raise TraceFormatError(
                    "the file has changed since the trace was loaded",
                    path=self._source.name,
                    hint="Load it again",
                )
            self._decoder, _ = _decode(self._source, LoadOptions())
        found: Iterable[bytes] = getattr(self._decoder, what)(rows)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_decoder": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> _Decoded:
        return self  # nothing of it changes


class _Arguments:
    """Arguments on demand: from the decoder, and for aggregate rows from the metadata."""

    def __init__(self, decoded: _Decoded, what: str, count: int, aggregates: list[dict[str, Any]]) -> None:
        self._decoded = decoded
        self._what = what
        self._count = count
        self._aggregates = aggregates

    def read(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        placed = rows < self._count
        texts = iter(self._decoded.read(self._what, np.ascontiguousarray(rows[placed], dtype=np.int64)))
        out: list[dict[str, Any]] = []
        for row, native_row in zip(rows, placed, strict=True):
            if native_row:
                out.append(json.loads(next(texts).decode("utf-8", "replace"), strict=False))
            else:
                out.append(dict(self._aggregates[int(row) - self._count]["args"]))
        return out
