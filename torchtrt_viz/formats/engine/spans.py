"""Rows of ``trace.spans`` that come from engines, collected column by column."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.model import schema
from torchtrt_viz.model.nesting import nest_observed

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.formats.engine.info import EngineInfo
    from torchtrt_viz.formats.engine.parts import PhaseOps
    from torchtrt_viz.formats.engine.torchtrt_calls import Calls

__all__ = ["SpanRows"]

_NS_PER_MS = 1_000_000
_MAX_NS = 2**62
_MOST_ROUNDING_NS = 1_000
_LAYER_ARGS = (
    "count",
    "total_ms",
    "average_ms",
    "median_ms",
    "percentage",
    "percentage_recorded",
    "type",
    "precision",
    "in_shapes",
    "out_shapes",
    "tactic",
    "module",
    "explanation",
)
#: (name, kind, start column, end column, duration column) of the GPU's side of a timed inference. trtexec
#: gives each a stream of its own, so that the copies of one inference overlap the computation of another.
_GPU_SPANS = (
    ("H2D", "memcpy", "startH2dMs", "endH2dMs", "h2dMs"),
    ("GPU compute", "phase", "startComputeMs", "endComputeMs", "computeMs"),
    ("D2H", "memcpy", "startD2hMs", "endD2hMs", "d2hMs"),
)


class _Block:
    """Consecutive rows of one sort."""

    def __init__(
        self, names: list[str], kind: str, domain: str, timing: str, track: int, run_id: str
    ) -> None:
        self.names = names
        self.kind = kind
        self.domain = domain
        self.timing = timing
        self.track = track
        self.run_id = run_id
        count = len(names)
        self.start: np.ndarray | None = None
        self.dur = np.zeros(count, np.int64)
        self.correlation = np.full(count, -1, np.int64)
        self.iteration = np.full(count, -1, np.int32)
        self.args: Any = None


class SpanRows:
    """Collects spans, tracks, flows and arguments of a trace of engines."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._blocks: list[_Block] = []
        self._count = 0
        self._tracks: list[tuple[str, str, str, str | None, str | None]] = []
        self._flows: list[tuple[np.ndarray, np.ndarray]] = []
        self._call_tracks: dict[tuple[str, str], int] = {}

    def _track(self, label: str, type: str, domain: str, process: str | None, thread: str | None) -> int:
        self._tracks.append((label, type, domain, process, thread))
        return len(self._tracks) - 1

    def _add(self, block: _Block) -> int:
        """Append a block; return its first row."""
        first = self._count
        self._blocks.append(block)
        self._count += len(block.names)
        return first

    def add_layers(self, engine: EngineInfo) -> np.ndarray:
        """Append the timed layers as aggregate spans; return for each layer its row, -1 for none."""
        layers = engine.layers
        times = layers["total_ms"].to_numpy(dtype=float, na_value=np.nan)
        averages = layers["average_ms"].to_numpy(dtype=float, na_value=np.nan)
        times = np.where(np.isnan(times), averages, times)
        kept = np.flatnonzero(~np.isnan(times))
        track = self._track(f"{engine.name} layers", "engine", engine.domain, engine.run_id, None)
        names = layers["name"].to_numpy(dtype=object)[kept].tolist()
        block = _Block(names, "layer", engine.domain, "aggregate", track, engine.run_id)
        block.dur = np.minimum(np.rint(times[kept] * _NS_PER_MS), _MAX_NS).astype(np.int64)
        block.args = _LayerArgs(layers, kept)
        out = np.full(len(layers), -1, np.int64)
        out[kept] = self._add(block) + np.arange(len(kept))
        return out

    def add_timing(self, engine: EngineInfo) -> None:
        """Append timed inferences as measured spans: enqueue on the host, the rest on the GPU.

        Copies and computation have a track each, and more where inferences overlap (trtexec --streams).
        Copies are left out when every one of them took no time (trtexec --noDataTransfers).
        """
        timing = engine.timing
        assert timing is not None
        enqueue = self._timed(
            engine, timing, ("enqueue", "runtime", "startEnqMs", "endEnqMs", ""), "host", "thread", "enqueue"
        )
        for span in _GPU_SPANS:
            if span[1] == "memcpy" and not (_column(timing, span[4]) > 0).any():
                continue
            rows = self._timed(engine, timing, span, "gpu", "stream", span[0])
            if rows is not None and span[0] == "GPU compute" and enqueue is not None:
                both = (enqueue >= 0) & (rows >= 0)
                self._flows.append((enqueue[both], rows[both]))

    def _timed(
        self,
        engine: EngineInfo,
        timing: pd.DataFrame,
        span: tuple[str, str, str, str, str],
        domain: str,
        type: str,
        lane: str,
    ) -> np.ndarray | None:
        """Append one sort of measured span; return for each inference its row, -1 for none."""
        name, kind, start_column, end_column, dur_column = span
        start, end = _column(timing, start_column), _column(timing, end_column)
        # the duration has its own column, with more digits than the difference of two times
        dur = _column(timing, dur_column)
        dur = np.where(np.isnan(dur), end - start, dur)
        good = np.flatnonzero((dur >= 0) & (np.abs(start) < 9e12) & (dur < 9e12))
        if not len(good):
            return None
        begin = np.rint(start[good] * _NS_PER_MS).astype(np.int64)
        length = np.rint(dur[good] * _NS_PER_MS).astype(np.int64)
        side = _side_by_side(begin, length)
        out = np.full(len(timing), -1, np.int64)
        for number in range(int(side.max()) + 1):
            here = np.flatnonzero(side == number)
            label = lane if not number else f"{lane} ({number + 1})"
            track = self._track(f"{engine.name} {label}", type, domain, engine.run_id, label)
            block = _Block([name] * len(here), kind, domain, "measured", track, engine.run_id)
            block.start, block.dur = begin[here], length[here]
            block.correlation = good[here].astype(np.int64)
            block.iteration = good[here].astype(np.int32)
            out[good[here]] = self._add(block) + np.arange(len(here))
        return out

    def add_phase(self, engine: EngineInfo, ops: PhaseOps, *, measured: bool) -> None:
        """Append the operators inside a phase of the last call.

        Each file counts from its own start, so that they have a place on the time axis only where no other
        file has one (``measured``); else they are sums over one call.
        """
        if not ops.names:
            return
        phase = ops.phase or "host"
        track = self._track(f"{engine.name} {phase} phase", "thread", "host", engine.run_id, phase)
        timing = "measured" if measured else "aggregate"
        block = _Block(ops.names, "operator", "host", timing, track, engine.run_id)
        start = np.asarray(ops.start_us, dtype=float)
        if measured:
            block.start = np.rint(start * 1000).astype(np.int64)
        block.dur = np.rint(np.asarray(ops.dur_us, dtype=float) * 1000).astype(np.int64)
        block.args = [{"phase": phase, "count": 1, "start_in_phase_us": float(at)} for at in start]
        self._add(block)

    def add_calls(self, engine: EngineInfo, calls: Calls) -> None:
        """Append layers and phases of single calls, which have a start on the host's clock.

        Layers, phases, and what ran on the GPU have a track each. A modeled start is the place that the
        writer gave, and not observed; a time of the device that has no place stays without one.
        """
        places: dict[tuple[str, str, str], list[int]] = {}
        for index, key in enumerate(zip(calls.kinds, calls.domains, calls.timings, strict=True)):
            places.setdefault(key, []).append(index)
        for (kind, domain, timing), rows in places.items():
            lane = "GPU" if domain == "gpu" else "layers" if kind == "layer" else "calls"
            type = "stream" if domain == "gpu" else "engine" if kind == "layer" else "delegate"
            track = self._call_tracks.get((engine.run_id, lane))
            if track is None:
                track = self._track(f"{engine.name} {lane}", type, domain, engine.run_id, None)
                self._call_tracks[(engine.run_id, lane)] = track
            block = _Block([calls.names[i] for i in rows], kind, domain, timing, track, engine.run_id)
            if timing != "aggregate":
                block.start = np.array([calls.start_ns[i] for i in rows], np.int64)
            block.dur = np.array([calls.dur_ns[i] for i in rows], np.int64)
            block.iteration = np.array([calls.calls[i] for i in rows], np.int32)
            block.args = [calls.details[i] for i in rows]
            self._add(block)

    # -- frames ----------------------------------------------------------------------------------------

    def spans(self) -> pd.DataFrame:
        """Return the frame of spans."""
        import pandas as pd

        if not self._count:
            return schema.SPANS.frame({}, 0)
        blocks = [block for block in self._blocks if block.names]
        sizes = [len(block.names) for block in blocks]

        def codes(values: tuple[str, ...], attribute: str) -> np.ndarray:
            return np.repeat([values.index(getattr(block, attribute)) for block in blocks], sizes)

        placed = np.repeat([block.start is not None for block in blocks], sizes)
        measured = np.repeat([block.timing == "measured" for block in blocks], sizes)
        start = np.concatenate(
            [np.zeros(len(block.names), np.int64) if block.start is None else block.start for block in blocks]
        )
        track = np.repeat([block.track for block in blocks], sizes).astype(np.int32)
        dur = np.concatenate([block.dur for block in blocks])
        parent, depth, own = nest_observed(track, start, dur, placed & measured)
        return schema.SPANS.frame(
            {
                "name": _named([name for block in blocks for name in block.names]),
                "kind": codes(schema.KINDS, "kind"),
                "domain": codes(schema.DOMAINS, "domain"),
                "timing": codes(schema.TIMINGS, "timing"),
                "track": track,
                "start_ns": start if placed.all() else pd.arrays.IntegerArray(start, ~placed),
                "dur_ns": dur,
                "self_ns": own,
                "depth": depth,
                "parent": parent,
                "correlation": np.concatenate([block.correlation for block in blocks]),
                "iteration": np.concatenate([block.iteration for block in blocks]),
                "rank": np.full(self._count, self._rank, np.int32),
                "run_id": pd.Categorical.from_codes(
                    np.repeat(
                        pd.factorize(np.array([block.run_id for block in blocks], dtype=object))[0], sizes
                    ),
                    categories=pd.Index(list(dict.fromkeys(block.run_id for block in blocks)), dtype="str"),
                ),
            },
            self._count,
        )

    def tracks(self) -> pd.DataFrame:
        """Return the frame of tracks."""
        labels, types, domains, processes, threads = (
            zip(*self._tracks, strict=True) if self._tracks else [()] * 5
        )
        return schema.TRACKS.frame(
            {
                "label": list(labels),
                "type": list(types),
                "domain": list(domains),
                "process": list(processes),
                "thread": list(threads),
                "rank": np.full(len(labels), self._rank, np.int32),
                "sort_index": np.arange(len(labels)),
            },
            len(labels),
        )

    def flows(self) -> pd.DataFrame:
        """Return the frame of flows: enqueue to computation of the same inference."""
        if not self._flows:
            return schema.FLOWS.frame({}, 0)
        source = np.concatenate([flow[0] for flow in self._flows])
        target = np.concatenate([flow[1] for flow in self._flows])
        return schema.FLOWS.frame(
            {"name": "launch", "source": source, "target": target, "id": np.arange(len(source))}, len(source)
        )

    def args(self) -> _BlockArgs:
        """Return the source of the spans' arguments."""
        return _BlockArgs([block for block in self._blocks if block.names])


def _side_by_side(start: np.ndarray, dur: np.ndarray) -> np.ndarray:
    """Number the lanes of spans of one sort, so that those of a lane do not overlap.

    Durations have more digits than starts: an overlap of 1 us is none.
    """
    out = np.zeros(len(start), np.int64)
    order = np.argsort(start, kind="stable")
    ends = start + dur - _MOST_ROUNDING_NS
    if not len(start) or (np.maximum.accumulate(ends[order])[:-1] <= start[order][1:]).all():
        return out
    free: list[tuple[int, int]] = [(int(ends[order[0]]), 0)]
    lanes = 1
    for row in order[1:].tolist():
        if free[0][0] <= start[row]:
            lane = heapq.heappop(free)[1]
        else:
            lane, lanes = lanes, lanes + 1
        out[row] = lane
        heapq.heappush(free, (int(ends[row]), lane))
    return out


def _named(names: list[str]) -> pd.Categorical:
    """Make a categorical with the names in the order in which they first occur."""
    import pandas as pd

    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    rows = np.fromiter((codes[name] for name in names), dtype=np.int32, count=len(names))
    return pd.Categorical.from_codes(rows, categories=pd.Index(list(codes), dtype="str"))


def _column(timing: pd.DataFrame, name: str) -> np.ndarray:
    if name not in timing:
        return np.full(len(timing), np.nan)
    return timing[name].to_numpy(dtype=float)


class _LayerArgs:
    """Arguments of one engine's layers, taken from its frame on demand."""

    def __init__(self, layers: pd.DataFrame, rows: np.ndarray) -> None:
        self._layers = layers
        self._rows = rows

    def __getitem__(self, index: int) -> dict[str, Any]:
        import pandas as pd

        layer = self._layers.iloc[int(self._rows[index])]
        out = {name: layer[name] for name in _LAYER_ARGS if not pd.isna(layer[name])}
        extra = layer["attributes"]
        return {**out, **({"attributes": extra} if extra else {})}


class _BlockArgs:
    """Arguments by row: finds the block, and asks it."""

    def __init__(self, blocks: list[_Block]) -> None:
        self._blocks = blocks
        self._ends = np.cumsum([len(block.names) for block in blocks])

    def read(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        out: list[dict[str, Any]] = []
        for row in rows:
            at = int(np.searchsorted(self._ends, row, side="right"))
            block = self._blocks[at]
            index = int(row) - (int(self._ends[at - 1]) if at else 0)
            out.append({} if block.args is None else dict(block.args[index]))
        return out
