"""Small traces written down event by event, for the tests of the analyses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz._native import native
from torchtrt_viz.model import schema
from torchtrt_viz.model.args import MappingArgs
from torchtrt_viz.trace import Trace


class Builder:
    """Collects tracks and spans; `build` nests them as the loaders do."""

    def __init__(self) -> None:
        self.tracks: list[dict[str, Any]] = []
        self.spans: list[dict[str, Any]] = []
        self.flows: list[tuple[str, int, int, int]] = []
        self.counters: list[dict[str, Any]] = []
        self.instants: list[dict[str, Any]] = []
        self.details: dict[int, dict[str, Any]] = {}
        self.instant_details: dict[int, dict[str, Any]] = {}

    def track(self, label: str, type: str = "thread", domain: str = "host", **rest: Any) -> int:
        self.tracks.append({"label": label, "type": type, "domain": domain, **rest})
        return len(self.tracks) - 1

    def stream(self, number: int, device: int = 0) -> int:
        return self.track(f"stream {number}", "stream", "gpu", device=device, thread=number)

    def span(
        self, name: str, start: int | None, dur: int, track: int, kind: str = "operator", **rest: Any
    ) -> int:
        row = len(self.spans)
        self.details[row] = rest.pop("args", {})
        rest.setdefault("domain", self.tracks[track]["domain"])
        rest.setdefault("timing", "measured" if start is not None else "aggregate")
        self.spans.append(
            {"name": name, "start_ns": start, "dur_ns": dur, "track": track, "kind": kind, **rest}
        )
        return row

    def counter(self, name: str, ts: int, value: float, track: int, unit: str | None = None) -> None:
        self.counters.append({"name": name, "ts_ns": ts, "value": value, "track": track, "unit": unit})

    def instant(self, name: str, ts: int, track: int, kind: str = "other", **args: Any) -> None:
        self.instant_details[len(self.instants)] = args
        self.instants.append({"name": name, "ts_ns": ts, "track": track, "kind": kind})

    def flow(self, name: str, source: int, target: int, id: int = -1) -> None:
        self.flows.append((name, source, target, id))

    def build(self, **meta: Any) -> Trace:
        n = len(self.spans)
        columns: dict[str, Any] = {}
        for column in schema.SPANS.columns:
            if column.name in ("self_ns", "parent", "depth") or column.derived:
                continue
            values = [span.get(column.name, column.default) for span in self.spans]
            if column.name == "start_ns":
                missing = any(value is None for value in values)
                columns["start_ns"] = (
                    pd.array(values, dtype="Int64") if missing else np.array(values, dtype=np.int64)
                )
            elif column.optional:
                columns[column.name] = np.array(
                    [-1 if value is None else value for value in values], np.int64
                )
            elif column.dtype == "category":
                if column.name == "run_id" and all(value is None for value in values):
                    continue
                columns[column.name] = (
                    pd.Categorical(values) if column.categories is None else np.array(values, dtype=object)
                )
            else:
                columns[column.name] = np.array(values, dtype=column.dtype)
        measured = np.array([span["timing"] == "measured" for span in self.spans], dtype=bool)
        rows = np.flatnonzero(measured)
        parent, depth = np.full(n, -1, np.int64), np.zeros(n, np.int32)
        self_ns = np.array([span["dur_ns"] for span in self.spans], dtype=np.int64)
        if len(rows):
            start = np.array([self.spans[row]["start_ns"] for row in rows], dtype=np.int64)
            track = np.array([self.spans[row]["track"] for row in rows], dtype=np.int32)
            nested_parent, nested_depth, nested_self, _ = native("columns").nest(track, start, self_ns[rows])
            parent[rows] = np.where(nested_parent >= 0, rows[np.maximum(nested_parent, 0)], -1)
            depth[rows] = nested_depth
            self_ns[rows] = nested_self
        for row, span in enumerate(self.spans):
            if "parent" in span:
                parent[row] = span["parent"]
            if "self_ns" in span:
                self_ns[row] = span["self_ns"]
        columns.update(parent=parent, depth=depth, self_ns=self_ns)
        return Trace(
            spans=schema.SPANS.frame(columns, n),
            tracks=_frame(schema.TRACKS, self.tracks),
            instants=_frame(schema.INSTANTS, self.instants),
            counters=_frame(schema.COUNTERS, self.counters),
            flows=schema.FLOWS.frame(
                {
                    "name": [flow[0] for flow in self.flows],
                    "source": np.array([flow[1] for flow in self.flows], dtype=np.int64),
                    "target": np.array([flow[2] for flow in self.flows], dtype=np.int64),
                    "id": np.array([flow[3] for flow in self.flows], dtype=np.int64),
                },
                len(self.flows),
            ),
            meta={"format": "test", "synthetic": True, **meta},
            args=MappingArgs(self.details),
            instant_args=MappingArgs(self.instant_details),
        )


def _frame(shape: schema.FrameSchema, records: list[dict[str, Any]]) -> pd.DataFrame:
    columns = {
        column.name: [record.get(column.name, column.default) for record in records]
        for column in shape.columns
        if any(column.name in record for record in records)
    }
    return shape.frame(columns, len(records))
