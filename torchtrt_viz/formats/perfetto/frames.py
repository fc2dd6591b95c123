"""The native decoder's columns as a `Trace`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.perfetto.codes import distinct_codes
from torchtrt_viz.formats.perfetto.own_fields import OwnMetadata, read_own
from torchtrt_viz.formats.perfetto.tracks import TrackTable
from torchtrt_viz.formats.perfetto.unpack import unpack
from torchtrt_viz.model import schema
from torchtrt_viz.model.nesting import nest_observed
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.formats.io.source import Source

__all__ = ["classify", "read_trace"]

_PROBLEMS = {
    "truncated": "the trace stops or is damaged here: packets before it were read",
    "damaged_packet": "packets that do not read as packets were left out",
    "damaged_message": "messages inside of packets are damaged and were left out",
    "missing_state": "events that rely on state lost with earlier packets were left out",
    "missing_string": "interned names that the trace does not define are empty",
    "no_time": "events without a time, or with one that does not fit, were left out",
    "other_clock": "events on clocks that no snapshot relates to the trace's were left out",
    "legacy_phase": "legacy events of phases that are not read were left out",
    "compressed": "compressed packets inside of compressed packets were left out",
    "end_without_begin": "ends of slices that never began were left out",
    "unfinished": "slices without an end are instants with state unfinished",
}
_CLOCKS = {
    1: "realtime (Unix time)",
    2: "realtime, coarse",
    3: "monotonic",
    4: "monotonic, coarse",
    5: "monotonic, raw",
    6: "boottime",
}
#: Category -> (kind, domain), as PyTorch's profiler names them; a category of this package's own is a kind.
_CATEGORIES: dict[str, tuple[str, str]] = {
    "cpu_op": ("operator", "host"),
    "operator": ("operator", "host"),
    "user_annotation": ("annotation", "host"),
    "gpu_user_annotation": ("annotation", "gpu"),
    "cuda_runtime": ("runtime", "host"),
    "cuda_driver": ("runtime", "host"),
    "runtime": ("runtime", "host"),
    "kernel": ("kernel", "gpu"),
    "concurrent_kernel": ("kernel", "gpu"),
    "gpu_memcpy": ("memcpy", "gpu"),
    "memcpy": ("memcpy", "gpu"),
    "gpu_memset": ("memset", "gpu"),
    "memset": ("memset", "gpu"),
    "python_function": ("python", "host"),
}


def classify(category: str) -> tuple[str, str]:
    """Return (kind, domain) of an event by its categories, ("other", "host") for unknown ones.

    The categories "gpu" and "host" name the domain; this package writes one of them with every event.
    """
    words = [word.strip() for word in category.split(",")]
    kind, domain = next(
        (_CATEGORIES[w.lower()] for w in words if w.lower() in _CATEGORIES), ("other", "host")
    )
    if kind == "other":
        kind = next((w for w in words if w in schema.KINDS), "other")
    for word in words:
        if word in schema.DOMAINS:
            domain = word
    return kind, domain


def read_trace(source: Source, options: LoadOptions) -> TraceData:
    """Read a Perfetto trace.

    Raises
    ------
    TraceFormatError
        When no packet of it is whole.
    """
    decoded = _decode(source, options)
    problems = decoded.problems()
    if decoded.packets == problems.get("damaged_packet", (0, 0))[0]:  # 0 of 0 included
        raise TraceFormatError(
            "no packet of the trace is whole",
            path=source.name,
            offset=(problems.get("truncated") or (0, 0))[1],
            expected="packets of track events (byte 0x0A and a length)",
            found=f"{source.stored_bytes} bytes without one",
            hint="Write the trace again; if it is still being written, stop the tracing session first",
        )
    for code, (count, offset) in problems.items():
        options.repaired(Repair(code, _PROBLEMS[code], source.name, offset, count))
    return _Frames(decoded, source, options).trace()


def _decode(source: Source, options: LoadOptions) -> Any:
    data = source.read()
    if options.progress is not None:
        options.progress(len(data), len(data))
    return native("perfetto").decode(unpack(data, source.name, options))


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

    def trace(self) -> TraceData:
        """Return the trace."""
        own = self._own
        shift, base = self._time_axis()
        kinds, domains = self._kinds(self._spans["category"])
        instant_kinds, instant_domains = self._kinds(self._instants["category"])
        row_of, tracks = self._tracks(domains, instant_domains)
        spans = self._span_frame(row_of, shift, kinds, domains)
        kept = _Decoded(self._source, self._decoded)
        flows = self._decoded.flows()
        count = len(flows["id"])
        return TraceData(
            spans=spans,
            tracks=tracks,
            instants=schema.INSTANTS.frame(
                {
                    "name": self._names(self._instants["name"]),
                    "kind": instant_kinds,
                    "domain": instant_domains,
                    "track": row_of[self._instants["track"]],
                    "ts_ns": self._instants["ts_ns"] - shift,
                    "state": self._instants["unfinished"].astype(np.int8),
                    "rank": np.full(len(instant_kinds), self._rank, np.int32),
                },
                len(instant_kinds),
            ),
            counters=self._counter_frame(row_of, shift),
            flows=schema.FLOWS.frame({"name": "flow" if count else [], **flows}, count),
            args=_Arguments(kept, "span_arguments", len(kinds), [] if own is None else own.aggregates),
            instant_args=_Arguments(kept, "instant_arguments", len(instant_kinds), []),
            meta={
                "format": "perfetto",
                "sources": [self._source.name],
                "base_ns": base,
                "clock": self._clock(own),
                "rank": None if self._rank < 0 else self._rank,
                "synthetic": own is not None and own.synthetic,
                "packets": self._decoded.packets,
                "packets_not_read": self._decoded.other_packets(),
                "warnings": self._options.warnings,
            },
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

    def _kinds(self, category: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes of kind and domain of events by their categories' codes."""
        distinct, inverse = distinct_codes(category)
        told = [classify("" if code < 0 else self._strings[code]) for code in distinct]
        kinds = np.array([schema.KINDS.index(kind) for kind, _ in told], np.int8)
        domains = np.array([schema.DOMAINS.index(domain) for _, domain in told], np.int8)
        return kinds[inverse], domains[inverse]

    def _timings(self, category: np.ndarray) -> np.ndarray:
        """Return the codes of timing: modeled for what this package marked so, else measured."""
        distinct, inverse = distinct_codes(category)
        modeled = schema.TIMINGS.index("modeled")
        codes = [
            modeled
            if self._own is not None and code >= 0 and "modeled" in self._strings[code].split(",")
            else 0
            for code in distinct
        ]
        table = np.array(codes, np.int8)
        out: np.ndarray = table[inverse]
        return out

    def _tracks(self, domains: np.ndarray, instant_domains: np.ndarray) -> tuple[np.ndarray, pd.DataFrame]:
        """Return (row of each of the decoder's tracks, frame of tracks)."""
        total = len(self._track_columns["uuid"])
        own = self._own
        used = np.zeros(total, bool)
        on_gpu = np.zeros(total, bool)
        for columns, where in ((self._spans, domains), (self._instants, instant_domains)):
            used[columns["track"]] = True
            on_gpu[columns["track"][where == schema.DOMAINS.index("gpu")]] = True
        used[self._counters["track"]] = True
        if own is not None:
            uuids = self._track_columns["uuid"]
            lanes = np.array([own.lanes.get(int(uuid), -1) for uuid in uuids], np.int32)
            if not (lanes[used] < 0).any():
                columns = {key: [track[key] for track in own.tracks] for key in schema.TRACKS.names}
                return lanes, schema.TRACKS.frame(columns, len(own.tracks))
            self._own = None  # somebody edited the trace: what it says of tracks no longer holds
        table = TrackTable(self._track_columns, self._strings, used)
        gpu = np.zeros(len(table), bool)
        gpu[table.row[on_gpu & used]] = True
        return table.row, table.frame(gpu, self._rank)

    def _span_frame(
        self, row_of: np.ndarray, shift: int, kinds: np.ndarray, domains: np.ndarray
    ) -> pd.DataFrame:
        import pandas as pd

        spans = self._spans
        track = row_of[spans["track"]].astype(np.int32, copy=False)
        start = spans["start_ns"] - shift
        timing = self._timings(spans["category"])
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
                "kind": kinds,
                "domain": domains,
                "timing": timing,
                "track": track,
                "start_ns": start,
                "dur_ns": spans["dur_ns"],
                "self_ns": own_time,
                "depth": depth,
                "parent": parent,
                "correlation": spans["correlation"],
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
            self._decoder = _decode(self._source, LoadOptions())
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
