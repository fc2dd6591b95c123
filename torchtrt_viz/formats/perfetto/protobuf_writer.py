"""The protobuf form: columns handed to the native encoder, written in portions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from torchtrt_viz._native import native
from torchtrt_viz.formats.perfetto.codes import distinct_codes
from torchtrt_viz.formats.perfetto.own_fields import METADATA_NAME, VERSION
from torchtrt_viz.formats.perfetto.writer_args import encode_annotations, plain
from torchtrt_viz.formats.perfetto.writer_layout import Layout, clean, layout
from torchtrt_viz.model import schema
from torchtrt_viz.model.nesting import nest_observed
from torchtrt_viz.model.optional_ints import filled

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["write_protobuf"]

_PORTION = 1_000_000
# uuids of tracks: what they stand for is in the upper bits
_GROUP, _LANE, _COUNTER = 1 << 40, 2 << 40, 3 << 40
_NOTE = "aggregate records are sums over calls: they have no place on a time axis and are not drawn"
# Lanes of a track: 0 and up hold what was measured; what is on the others is said in their name.
_UNFINISHED, _FIRST_MODELED = -1, 1 << 20
_MODELED_CATEGORY = len(schema.KINDS) + len(schema.DOMAINS)


def write_protobuf(trace: TraceData, file: Path, *, args: bool) -> None:
    """Write ``trace`` to ``file``."""
    _Export(trace, args).write(file)


class _Export:
    """One trace on its way into a file."""

    def __init__(self, trace: TraceData, with_args: bool) -> None:
        self._trace = trace
        self._with_args = with_args
        self._plan: Layout = layout(trace)
        self._tracks: list[dict[str, Any]] = []
        self._lane_uuid: dict[tuple[int, int], int] = {}
        self._lane_rows: dict[int, int] = {}
        self._counter_said: dict[int, dict[str, Any]] = {}
        for group in self._plan.groups:
            self._add_track(_GROUP | group.order, 0, group.name, process=True, pid=group.pid, explicit=True)

    def write(self, file: Path) -> None:
        """Write everything."""
        trace, plan = self._trace, self._plan
        names = _Texts()
        runs = _Texts()
        spans = trace.spans.iloc[plan.placed]
        unfinished = trace.instants["state"] == "unfinished"
        points = trace.instants[~unfinished]
        columns = self._span_columns(spans, trace.instants[unfinished], names, runs)
        instants = self._instant_columns(points, names)
        counters = self._counter_columns()
        origin = min(
            (
                int(times.min())
                for times in (columns["start_ns"], instants["ts_ns"], counters["ts_ns"])
                if len(times)
            ),
            default=0,
        )
        writer = native("perfetto").Writer(
            columns,
            instants,
            counters,
            self._flow_columns(),
            names.texts,
            [*schema.KINDS, *schema.DOMAINS, "modeled"],
            runs.texts,
            origin,
        )
        if self._with_args:
            found = encode_annotations(trace.args.read(plan.placed))
            writer.set_arguments(found + [b""] * (len(columns["lane"]) - len(found)))
        base = trace.meta.get("base_ns")
        unix = None if not isinstance(base, int) else base + origin
        metadata = self._metadata(origin, writer.flows_left_out, writer.written_rows())
        with file.open("wb") as out:
            out.write(writer.head(self._tracks, unix, METADATA_NAME, metadata))
            for begin in range(0, writer.events, _PORTION):
                out.write(writer.packets(begin, min(begin + _PORTION, writer.events)))

    # -- tracks ----------------------------------------------------------------------------------------

    def _add_track(
        self,
        uuid: int,
        parent: int,
        name: str,
        *,
        process: bool = False,
        thread: bool = False,
        counter: bool = False,
        pid: int = 0,
        tid: int = 0,
        unit: str = "",
        order: int = 0,
        explicit: bool = False,
        description: str = "",
    ) -> None:
        self._tracks.append(
            {
                "uuid": uuid,
                "parent": parent,
                "name": name,
                "process": process,
                "thread": thread,
                "counter": counter,
                "pid": pid,
                "tid": tid,
                "unit": unit,
                "order": order,
                "explicit_order": explicit,
                "description": description,
            }
        )

    def _lane(self, track: int, lane: int) -> int:
        """Return the uuid of a lane, made when it is first used.

        Lane 0 of a thread is the thread's own track; further lanes are named tracks below it. Lanes of other
        tracks are tracks of one name and parent, which Perfetto shows as one.
        """
        known = self._lane_uuid.get((track, lane))
        if known is not None:
            return known
        plan = self._plan
        group = plan.groups[plan.group_of[track]]
        uuid = _LANE | len(self._lane_uuid)
        self._lane_uuid[(track, lane)] = uuid
        self._lane_rows[uuid] = track
        name, order = plan.name_of[track], plan.order_of[track]
        if lane >= _FIRST_MODELED:
            name += " (modeled)"
        elif lane == _UNFINISHED:
            name += " (unfinished)"
        if self._trace.tracks["type"].iloc[track] != "thread":
            self._add_track(uuid, _GROUP | group.order, name, order=order)
        elif lane == 0:
            self._add_track(
                uuid,
                _GROUP | group.order,
                name,
                thread=True,
                pid=group.pid,
                tid=plan.tid_of[track],
                order=order,
            )
        else:
            self._add_track(uuid, self._lane(track, 0), name, order=order)
        return uuid

    def _lanes(self, tracks: np.ndarray, lanes: np.ndarray) -> np.ndarray:
        """Return the uuid of the lane of each event; lane -1 is that of slices without an end."""
        import pandas as pd

        keys = (tracks.astype(np.int64) << 32) + lanes.astype(np.int64) + 1  # lanes begin at -1
        inverse, distinct = pd.factorize(keys)
        uuids = [self._lane(int(key >> 32), int(key & 0xFFFFFFFF) - 1) for key in distinct]
        return np.array(uuids, dtype=np.uint64)[inverse]

    # -- columns ---------------------------------------------------------------------------------------

    def _span_columns(
        self, spans: pd.DataFrame, unfinished: pd.DataFrame, names: _Texts, runs: _Texts
    ) -> dict[str, np.ndarray]:
        """Columns of measured spans, and after them of slices without an end, each sort on its own lanes."""
        extra = len(unfinished)
        none = np.full(extra, -1, np.int64)
        tracks = spans["track"].to_numpy()
        modeled = np.concatenate([self._plan.modeled, np.zeros(extra, bool)])
        return {
            "lane": np.concatenate(
                [
                    self._lanes(tracks, self._plan.lane + _FIRST_MODELED * self._plan.modeled),
                    self._lanes(unfinished["track"].to_numpy(), np.full(extra, _UNFINISHED)),
                ]
            ),
            "name": np.concatenate([names.codes(spans["name"]), names.codes(unfinished["name"])]),
            "category": np.concatenate([_codes(spans["kind"]), _codes(unfinished["kind"])]),
            "domain": np.concatenate([_codes(spans["domain"]), _codes(unfinished["domain"])])
            + len(schema.KINDS),
            "timing": np.where(modeled, _MODELED_CATEGORY, -1).astype(np.int32),
            "start_ns": np.concatenate(
                [spans["start_ns"].to_numpy(dtype=np.int64), unfinished["ts_ns"].to_numpy(dtype=np.int64)]
            ),
            "dur_ns": np.concatenate([spans["dur_ns"].to_numpy(dtype=np.int64), none]),
            "correlation": np.concatenate([filled(spans["correlation"]), none]),
            "external_id": np.concatenate([filled(spans["external_id"]), none]),
            "iteration": np.concatenate([filled(spans["iteration"]).astype(np.int32), none.astype(np.int32)]),
            "run": np.concatenate([runs.codes(spans["run_id"]), none.astype(np.int32)]),
        }

    def _instant_columns(self, instants: pd.DataFrame, names: _Texts) -> dict[str, np.ndarray]:
        return {
            "lane": self._lanes(instants["track"].to_numpy(), np.zeros(len(instants), np.int64)),
            "name": names.codes(instants["name"]),
            "category": _codes(instants["kind"]),
            "domain": _codes(instants["domain"]) + len(schema.KINDS),
            "ts_ns": np.ascontiguousarray(instants["ts_ns"].to_numpy(dtype=np.int64)),
        }

    def _counter_columns(self) -> dict[str, np.ndarray]:
        counters = self._trace.counters
        uuids: dict[tuple[int, str, str | None], int] = {}
        plan = self._plan
        lane = np.zeros(len(counters), np.uint64)
        units = counters["unit"].astype(object).where(counters["unit"].notna(), None)
        for index, (track, name, unit) in enumerate(
            zip(counters["track"], counters["name"], units, strict=True)
        ):
            key = (int(track), clean(name), None if unit is None else clean(unit))
            if key not in uuids:
                uuid = uuids[key] = _COUNTER | len(uuids)
                group = plan.groups[plan.group_of[key[0]]]
                self._add_track(uuid, _GROUP | group.order, key[1], counter=True, unit=key[2] or "")
                self._lane_rows[uuid] = key[0]
                self._counter_said[uuid] = {"name": key[1], "unit": key[2]}
            lane[index] = uuids[key]
        return {
            "lane": lane,
            "ts_ns": np.ascontiguousarray(counters["ts_ns"].to_numpy(dtype=np.int64)),
            "value": np.ascontiguousarray(counters["value"].to_numpy(dtype=np.float64)),
        }

    def _flow_columns(self) -> dict[str, np.ndarray]:
        flows = self._trace.flows
        new_row = np.full(len(self._trace.spans), -1, np.int64)
        new_row[self._plan.placed] = np.arange(len(self._plan.placed))

        def rows(column: str) -> np.ndarray:
            old = filled(flows[column])
            return np.where(old >= 0, new_row[old], -1) if len(new_row) else np.full(len(old), -1, np.int64)

        return {"source": rows("source"), "target": rows("target")}

    # -- metadata --------------------------------------------------------------------------------------

    def _metadata(self, origin: int, flows_left_out: int, written: np.ndarray) -> bytes:
        trace = self._trace
        document = {
            "version": VERSION,
            "note": _NOTE,
            "origin_ns": origin,
            "base_ns": trace.meta.get("base_ns"),
            "clock": clean(trace.meta.get("clock", "unknown")),
            "rank": trace.meta.get("rank"),
            "synthetic": bool(trace.meta.get("synthetic")),
            "flows_left_out": flows_left_out,
            "tracks": [
                {key: _json_value(value) for key, value in row.items()}
                for row in trace.tracks.to_dict("records")
            ],
            "lanes": {str(uuid): row for uuid, row in self._lane_rows.items()},
            "counters": {str(uuid): said for uuid, said in self._counter_said.items()},
            "nesting": self._nesting(written),
            "aggregates": self._aggregates(),
        }
        return orjson.dumps(document)

    def _nesting(self, written: np.ndarray) -> dict[str, Any]:
        """Parents, depths and self times that do not follow from times alone, by position in the file.

        Formats that record the tree of their events, or model their times, nest otherwise than times say.
        """
        spans = self._trace.spans.iloc[self._plan.placed]
        columns = {
            "depth": spans["depth"].to_numpy(dtype=np.int64),
            "self_ns": spans["self_ns"].to_numpy(dtype=np.int64),
        }
        above = spans["parent"].to_numpy(dtype=np.int64)
        place = np.full(len(self._trace.spans) + 1, -1, np.int64)
        place[self._plan.placed] = np.arange(len(spans))
        parent = place[above]  # of -1, the last entry: -1
        told = nest_observed(
            spans["track"].to_numpy(),
            spans["start_ns"].to_numpy(dtype=np.int64),
            spans["dur_ns"].to_numpy(),
            ~self._plan.modeled,
        )
        other = (told[0] != parent) | (told[1] != columns["depth"]) | (told[2] != columns["self_ns"])
        own = written[written < len(spans)]
        position = np.full(len(spans) + 1, -1, np.int64)
        position[own] = np.arange(len(own))
        rows = own[other[own]]
        return {
            "spans": len(own),
            "rows": position[rows].tolist(),
            "parent": position[parent[rows]].tolist(),
            **{name: values[rows].tolist() for name, values in columns.items()},
        }

    def _aggregates(self) -> list[dict[str, Any]]:
        spans = self._trace.spans
        unplaced = np.ones(len(spans), bool)
        unplaced[self._plan.placed] = False
        rows = np.flatnonzero(unplaced)
        keys = [
            "name",
            "kind",
            "domain",
            "timing",
            "track",
            "dur_ns",
            "correlation",
            "external_id",
            "iteration",
        ]
        out = [
            {str(key): _json_value(value) for key, value in row.items()}
            for row in spans.iloc[rows][[*keys, "run_id"]].to_dict("records")
        ]
        if self._with_args:
            for entry, found in zip(out, self._trace.args.read(rows), strict=True):
                entry["args"] = plain(found)
        return out


def _codes(column: pd.Series) -> np.ndarray:
    return column.cat.codes.to_numpy().astype(np.int32)


def _json_value(value: object) -> Any:
    import pandas as pd

    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, (np.integer, np.bool_)):
        return int(value)
    return value if isinstance(value, (int, float)) else clean(value)


class _Texts:
    """Texts by number, over several columns."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._known: dict[str, int] = {}

    def codes(self, column: pd.Series) -> np.ndarray:
        """Return the number of each row's text, -1 where it is missing."""
        categories = column.cat.categories
        table = np.full(len(categories) + 1, -1, np.int32)
        own = column.cat.codes.to_numpy()
        for code in distinct_codes(own)[0]:
            if code >= 0:
                text = clean(categories[code])
                if text not in self._known:
                    self._known[text] = len(self.texts)
                    self.texts.append(text)
                table[code] = self._known[text]
        return table[own]
