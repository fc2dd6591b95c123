"""The native decoder's columns as a trace."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import DamagedStreamError
from torchtrt_viz.formats.session.rank_names import read_rank_name
from torchtrt_viz.formats.xplane.about import clock_of, described, processes_of
from torchtrt_viz.formats.xplane.accounting import accounting_of
from torchtrt_viz.formats.xplane.args import EventArgs
from torchtrt_viz.formats.xplane.counters import counters_of
from torchtrt_viz.formats.xplane.flows import handed_over
from torchtrt_viz.formats.xplane.lines import rows_of, tracks_frame
from torchtrt_viz.formats.xplane.operators import Operators, operators_of_work
from torchtrt_viz.formats.xplane.places import COUNTERS, line_places, placed
from torchtrt_viz.formats.xplane.stats import ABSENT, Stats, StatsOfEvents
from torchtrt_viz.formats.xplane.times import times_of
from torchtrt_viz.model import schema
from torchtrt_viz.model.nesting import nest_observed
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.stated_rows import STATED
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source

__all__ = ["read_space"]

Ints = NDArray[np.int64]

_PROBLEMS = {
    "truncated": "the file stops or is damaged here: what precedes was read",
    "damaged_plane": "planes, lines or descriptions that do not read to their end: what precedes was read",
    "damaged_event": "events that do not read as events were left out",
    "damaged_stat": "statistics of events that do not read as such were left out",
}
_MEASURED, _AGGREGATE, _MODELED = (
    schema.TIMINGS.index(name) for name in ("measured", "aggregate", "modeled")
)
_HOST, _GPU = schema.DOMAINS.index("host"), schema.DOMAINS.index("gpu")
_WORK = [schema.KINDS.index(kind) for kind in ("kernel", "memcpy", "memset", "communication")]
_STEP, _OPERATOR = schema.KINDS.index("step"), schema.KINDS.index("operator")
_MOST_NAMED = 12


def read_space(source: Source, options: LoadOptions) -> TraceData:
    """Read an XSpace.

    Raises
    ------
    TraceFormatError
        When no plane of it holds an event; with ``options.strict`` also for any damage.
    """
    data, damage = _content(source, options)
    space = native("xplane").decode(data)
    del data
    if damage is not None:
        text = "the compressed content is damaged; what precedes the damage was read"
        options.repaired(Repair("damaged_stream", text, source.name, damage.offset))
    if not len(space["lines"]["id"]) or not len(space["events"]["kind"]):
        raise _nothing(space, source)
    for code, (count, offset) in space["problems"].items():
        options.repaired(Repair(code, _PROBLEMS[code], source.name, offset, count))
    return _Frames(space, source, options).trace()


def _content(source: Source, options: LoadOptions) -> tuple[bytes, DamagedStreamError | None]:
    """Return the content, as far as it can be unpacked."""
    blocks: list[bytes] = []
    damage = None
    try:
        blocks.extend(source.blocks())
    except DamagedStreamError as error:
        if not blocks:
            raise
        damage = error
    data = b"".join(blocks)
    if options.progress is not None:
        options.progress(len(data), len(data))
    return data, damage


def _nothing(space: dict[str, Any], source: Source) -> TraceFormatError:
    strings = space["strings"]
    planes = [strings[code] or "a plane without a name" for code in space["planes"]["name"].tolist()]
    said = [*space["errors"], *space["warnings"]]
    truncated = space["problems"].get("truncated")
    found = f"planes without events: {', '.join(planes[:_MOST_NAMED])}" if planes else "no plane"
    if said:
        found += f"; the profiler says: {' '.join(said[0].split())[:200]}"
    return TraceFormatError(
        "the XPlane holds no event",
        path=source.name,
        offset=truncated[1] if truncated else 0,
        expected="planes of hosts and devices with lines of events",
        found=found,
        hint="Profile while the program runs: with jax.profiler.trace(FOLDER): ...",
    )


class _Frames:
    """Builds the frames of one decoded space."""

    def __init__(self, space: dict[str, Any], source: Source, options: LoadOptions) -> None:
        self._space, self._source, self._options = space, source, options
        self._strings: list[str] = space["strings"]
        self._lines, self._kinds, self._events = space["lines"], space["kinds"], space["events"]
        counts = np.diff(self._lines["event_begin"])
        self._line = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self._stats = StatsOfEvents(
            Stats(self._events["stats"], self._strings),
            Stats(self._kinds["stats"], self._strings),
            self._events["kind"],
            self._strings,
        )
        self._planes = Stats(space["planes"]["stats"], self._strings)
        said = read_rank_name(source.name.replace("!", "/"))
        of_name = None if said is None else said.rank
        self._rank = options.rank if options.rank is not None else -1 if of_name is None else of_name
        plane_names = self._texts(space["planes"]["name"])
        own, shown = self._texts(self._lines["name"]), self._texts(self._lines["display_name"])
        self._names = [
            (plane_names[plane], display or name)
            for plane, name, display in zip(self._lines["plane"].tolist(), own, shown, strict=True)
        ]
        self._plane_names = plane_names
        self._places = line_places(self._names)
        self._rows = rows_of(self._lines, counts > 0)

    def _texts(self, codes: NDArray[np.uint32]) -> list[str]:
        return [self._strings[code].strip() for code in codes.tolist()]

    def trace(self) -> TraceData:
        """Return the trace."""
        events = self._events
        name, texts, long_names, unnamed = self._event_names()
        found = placed(self._places, self._line, name, self._stats, texts)
        times = times_of(
            events["place"], events["at"], events["dur_ps"], self._lines["timestamp_ns"][self._line]
        )
        counter = np.array([line == COUNTERS for _, line in self._names], bool)[self._line]
        counters, counted = counters_of(
            self._stats, name, texts, times, counter & times.span, self._rows.of_line[self._line], self._rank
        )
        rows = np.flatnonzero((times.span & ~counted) | times.aggregate)
        wrong = np.flatnonzero(times.invalid)
        track = self._rows.of_line[self._line]
        aggregate = times.aggregate[rows]
        timing = np.where(aggregate, _AGGREGATE, found.timing[rows]).astype(np.int8)
        start, dur = times.start[rows], times.dur[rows]
        on_work = (found.domain[rows] == _GPU) & (timing == _MEASURED) & np.isin(found.kind[rows], _WORK)
        work = np.flatnonzero(on_work)
        stated = operators_of_work(
            self._stats, self._strings, rows[work], track[rows[work]], start[work], (start + dur)[work]
        )
        operator_tracks = [] if stated is None else np.unique(stated.track).tolist()
        columns: dict[str, NDArray[Any]] = {
            "track": track[rows],
            "start_ns": start,
            "dur_ns": dur,
            "kind": found.kind[rows],
            "domain": found.domain[rows],
            "timing": timing,
            "correlation": self._correlation()[rows],
            "iteration": self._iterations(rows, found.kind, track, times.start, times.dur),
        }
        spans = self._span_frame(columns, name[rows], texts, stated, operator_tracks)
        instants = schema.INSTANTS.frame(
            {
                "name": _named(name[wrong], texts),
                "kind": found.kind[wrong],
                "domain": found.domain[wrong],
                "track": track[wrong],
                "ts_ns": times.start[wrong],
                "state": np.full(len(wrong), schema.STATES.index("invalid"), np.int8),
                "rank": self._rank,
            },
            len(wrong),
        )
        flows = self._flow_frame(rows, len(rows), work, stated)
        frames = {"spans": spans, "instants": instants, "counters": counters, "flows": flows}
        planes = Counter(self._plane_names[int(plane)] for plane in self._lines["plane"][self._line])
        of_planes = {plane: planes.get(plane, 0) for plane in self._plane_names}
        accounting = accounting_of(
            self._space,
            {key: len(frame) for key, frame in frames.items()},
            dur,
            events["dur_ps"][rows],
            of_planes,
        )
        self._warn(len(wrong), unnamed, found.domain[rows], self._line[rows])
        processes = processes_of(self._space, self._planes, self._plane_names)
        base, clock = clock_of(self._planes, self._lines["timestamp_ns"][np.unique(self._line)])
        own_times = (events["place"], events["at"], events["dur_ps"])
        return TraceData(
            **frames,
            tracks=tracks_frame(
                self._rows,
                self._names,
                self._places,
                [processes[plane] for plane in self._lines["plane"].tolist()],
                self._rank,
                operator_tracks,
            ),
            args=EventArgs(self._stats, *self._events_of(rows, stated), long_names, own_times),
            instant_args=EventArgs(self._stats, wrong, long_names, own_times),
            meta={
                "format": "xplane",
                "sources": [self._source.name],
                **described(self._space, self._planes, self._plane_names),
                "base_ns": base,
                "clock": clock,
                "rank": None if self._rank < 0 else self._rank,
                "warnings": self._options.warnings,
                "accounting": accounting,
                "planes": of_planes,
                "producers": {"rows": dict(Counter(p.producer for p in self._places if p is not None))},
            },
        )

    def _event_names(self) -> tuple[Ints, list[str], list[str | None], int]:
        """Return names as positions in a list of texts, the texts, long names, and how many are lost."""
        kinds, kind = self._kinds, self._events["kind"]
        empty = np.array([not text for text in self._strings], bool)
        shown = kinds["display_name"].astype(np.int64)
        named = kinds["name"].astype(np.int64)
        code = np.where(empty[shown], named, shown) if len(shown) else shown
        texts = list(self._strings)
        long_names = [
            self._strings[given] if given != used and not empty[given] else None
            for given, used in zip(named.tolist(), code.tolist(), strict=True)
        ]
        lost = kind < 0
        name = np.where(lost, -1, code[np.maximum(kind, 0)] if len(code) else -1)
        ids, inverse = np.unique(self._events["kind_id"][lost], return_inverse=True)
        name[lost] = len(texts) + inverse.reshape(-1)
        texts += [f"event {number} (its name is not in the file)" for number in ids.tolist()]
        step_name = self._stats.texts("step_name")
        name = np.where(step_name >= 0, step_name, name)
        texts = [text or "(unnamed)" for text in texts]
        return name, texts, long_names, int(lost.sum())

    def _correlation(self) -> Ints:
        found = self._stats.integers("correlation_id")
        return np.where((found > 0) & (found != ABSENT), found, -1)

    def _iterations(
        self,
        rows: Ints,
        kind: NDArray[np.int8],
        track: NDArray[np.int32],
        start: Ints,
        dur: Ints,
    ) -> NDArray[np.int32]:
        """Return the number of the step around each span on its thread; -1 without one."""
        out = np.full(len(rows), -1, np.int32)
        number = self._stats.integers("step_num")
        steps = rows[(kind[rows] == _STEP) & (number[rows] >= 0) & (number[rows] < 1 << 31)]
        for thread in np.unique(track[steps]).tolist():
            mine = steps[track[steps] == thread]
            mine = mine[np.argsort(start[mine], kind="stable")]
            here = np.flatnonzero(track[rows] == thread)
            at = np.searchsorted(start[mine], start[rows[here]], side="right") - 1
            step = mine[np.maximum(at, 0)]
            inside = (at >= 0) & (start[rows[here]] + dur[rows[here]] <= start[step] + dur[step])
            out[here[inside]] = number[step[inside]]
        return out

    def _span_frame(
        self,
        columns: dict[str, NDArray[Any]],
        name: Ints,
        texts: list[str],
        stated: Operators | None,
        operator_tracks: list[int],
    ) -> pd.DataFrame:
        parent, depth, own = nest_observed(
            columns["track"], columns["start_ns"], columns["dur_ns"], columns["timing"] == _MEASURED
        )
        columns |= {"parent": parent, "depth": depth, "self_ns": own}
        if stated is not None:
            count = len(stated.name)
            track_of = np.searchsorted(np.array(operator_tracks), stated.track) + len(self._rows.first)
            of_stated = {
                "track": track_of.astype(np.int32),
                "start_ns": stated.start,
                "dur_ns": stated.end - stated.start,
                "self_ns": stated.own,
                "kind": np.full(count, _OPERATOR, np.int8),
                "domain": np.full(count, _GPU, np.int8),
                "timing": np.full(count, _MODELED, np.int8),
                "correlation": np.full(count, -1, np.int64),
                "iteration": np.full(count, -1, np.int32),
                "parent": np.full(count, -1, np.int64),
                "depth": np.zeros(count, np.int32),
            }
            columns = {key: np.concatenate([values, of_stated[key]]) for key, values in columns.items()}
            name = np.concatenate([name, stated.name + len(texts)])
            texts = texts + stated.texts
        start = columns["start_ns"]
        aggregate = columns["timing"] == _AGGREGATE
        given: Any = start
        if aggregate.any():  # a sum has no place in time
            given = pd.arrays.IntegerArray(np.where(aggregate, 0, start), aggregate)
        return schema.SPANS.frame(
            {**columns, "start_ns": given, "name": _named(name, texts), "rank": self._rank}, len(name)
        )

    def _flow_frame(self, rows: Ints, count: int, work: Ints, stated: Operators | None) -> pd.DataFrame:
        source, target, identity = handed_over(self._stats, rows)
        name = np.zeros(len(source), np.int8)
        if stated is not None:
            known = np.flatnonzero(stated.of_work >= 0)
            source = np.concatenate([source, stated.of_work[known] + count])
            target = np.concatenate([target, work[known]])
            identity = np.concatenate([identity, np.full(len(known), -1, np.int64)])
            name = np.concatenate([name, np.ones(len(known), np.int8)])
        known_names = ["handed over"] if stated is None else ["handed over", STATED]
        names = pd.Categorical.from_codes(name, categories=pd.Index(known_names, dtype="str"))
        return schema.FLOWS.frame(
            {"name": names, "source": source, "target": target, "id": identity}, len(source)
        )

    def _events_of(self, rows: Ints, stated: Operators | None) -> tuple[Ints]:
        return (rows if stated is None else np.concatenate([rows, stated.first]),)

    def _warn(self, invalid: int, unnamed: int, domain: NDArray[np.int8], line: NDArray[np.int32]) -> None:
        path, options = self._source.name, self._options
        if invalid:
            text = "events with a negative duration, or times beyond centuries, are instants, state invalid"
            options.repaired(Repair("invalid_duration", text, path, count=invalid))
        if unnamed:
            text = "events whose description is not in the file have no name and no common statistics"
            options.repaired(Repair("missing_string", text, path, count=unnamed))
        for kind, said in (("error", self._space["errors"]), ("warning", self._space["warnings"])):
            for text, count in Counter(" ".join(each.split())[:1000] for each in said).most_common(20):
                message = f"the profiler says of its recording ({kind}): {text}"
                options.warnings.append(Repair("diagnostic", message, path, count=count))
        unsaid = np.flatnonzero(domain < 0)
        if len(unsaid):
            planes = sorted({self._names[at][0] for at in np.unique(line[unsaid]).tolist()})
            text = (
                "planes of a kind that is not known, so that nothing says where their time was spent: "
                f"{', '.join(planes[:_MOST_NAMED])}"
            )
            options.warnings.append(Repair("domain_unsaid", text, path, count=len(unsaid)))


def _named(codes: Ints, texts: list[str]) -> pd.Categorical:
    """Make names of positions in a list that may hold a text twice, and texts that nobody uses."""
    used, inverse = np.unique(codes, return_inverse=True)
    known: dict[str, int] = {}
    table = np.array([known.setdefault(texts[code], len(known)) for code in used.tolist()], np.int32)
    return pd.Categorical.from_codes(
        table[inverse.reshape(-1)] if len(codes) else np.zeros(0, np.int32),
        categories=pd.Index(list(known), dtype="str"),
        validate=False,
    )
