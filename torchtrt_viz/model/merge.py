"""Several recordings of one process as one trace on one time base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.errors import OptionError, TorchTrtVizError
from torchtrt_viz.model.args import Args
from torchtrt_viz.model.optional_ints import filled, optional_ints
from torchtrt_viz.model.places import without_places
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["merge", "stack"]

ALIGNMENTS = ("clock", "start")


def merge(traces: Sequence[TraceData], align: str = "clock", *, base_ns: int | None = None) -> TraceData:
    """Put several recordings of one process into one trace.

    Rows are kept in the order of ``traces``. Tracks, parents, correlations, external ids and flows are
    renumbered, so that links stay within the recording that made them: ids of one recorder mean nothing to
    another.

    Parameters
    ----------
    traces
        Recordings of the same process.
    align
        ``"clock"`` places each by the wall clock of its base (``meta["base_ns"]``). A recording that has
        times but no known base cannot be placed: it is left out and reported in ``meta["warnings"]``
        (code ``unaligned``) and ``meta["unaligned"]``, never guessed.
        ``"start"`` lets all begin at 0, for comparison; ``meta["clock"]`` says that this is no alignment.
    base_ns
        Unix time (ns) that becomes 0 of the merged trace; None: the earliest base. With ``"clock"`` only.

    Returns
    -------
    Trace
        ``meta["base_ns"]`` is its base; ``meta["parts"]`` lists each recording's format, sources,
        base, and range of rows of ``spans``.

    Raises
    ------
    OptionError
        For an unknown ``align`` or no traces.
    TorchTrtVizError
        When no recording can be placed.
    """
    traces = list(traces)
    if align not in ALIGNMENTS:
        raise OptionError("align", align, f"one of {', '.join(ALIGNMENTS)}")
    if not traces:
        raise OptionError("traces", [], "at least one trace")
    base, shifts, left_out = _place(traces, align, base_ns)
    parts = [(trace, shift) for trace, shift in zip(traces, shifts, strict=True) if shift is not None]
    if not parts:
        raise TorchTrtVizError(
            "none of the traces says when it was recorded (meta['base_ns'] is None): they cannot be put on "
            "one time axis; merge(..., align='start') lets all begin at 0"
        )
    merged = TraceData(
        spans=_spans(parts),
        tracks=stack([trace.tracks for trace, _ in parts]),
        instants=_events(parts, "instants", "ts_ns"),
        counters=_events(parts, "counters", "ts_ns"),
        flows=_flows(parts),
        meta=_meta(parts, base, align, left_out),
        args=_Joined([trace.args for trace, _ in parts]),
        instant_args=_Joined([trace.instant_args for trace, _ in parts]),
    )
    return merged


class _Joined:
    """Arguments of several frames, one after the other."""

    def __init__(self, parts: list[Args]) -> None:
        self._parts = parts
        self._ends = np.cumsum([len(part) for part in parts])

    def read(self, rows: np.ndarray) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = [{} for _ in rows]
        owner = np.searchsorted(self._ends, rows, side="right")
        for number, part in enumerate(self._parts):
            places = np.flatnonzero(owner == number)
            if len(places):
                begin = int(self._ends[number]) - len(part)
                for place, found in zip(places, part.read(rows[places] - begin), strict=True):
                    out[place] = found
        return out


def _has_times(trace: TraceData) -> bool:
    return bool(len(trace.measured) or len(trace.instants) or len(trace.counters))


def _place(
    traces: list[TraceData], align: str, wanted: int | None
) -> tuple[int | None, list[int | None], list[TraceData]]:
    """Base of the merged trace, and for each trace what is added to its times; None: it has no place."""
    if align == "start":
        return None, [-_first(trace) for trace in traces], []
    timed = [trace for trace in traces if _has_times(trace)]
    known = [int(trace.meta["base_ns"]) for trace in timed if trace.meta["base_ns"] is not None]
    base = min(known, default=None)
    if known and wanted is not None:
        base = wanted
    if base is None and len(timed) <= 1:
        # at most one recording has times at all: there is nothing to align
        return None, [0] * len(traces), []
    shifts: list[int | None] = []
    left_out = []
    for trace in traces:
        if not _has_times(trace):
            shifts.append(0)
        elif trace.meta["base_ns"] is None or base is None:
            shifts.append(None)
            left_out.append(trace)
        else:
            shifts.append(int(trace.meta["base_ns"]) - base)
    return base, shifts, left_out


def _first(trace: TraceData) -> int:
    starts = [
        int(frame[column].min())
        for frame, column in (
            (trace.measured, "start_ns"),
            (trace.instants, "ts_ns"),
            (trace.counters, "ts_ns"),
        )
        if len(frame)
    ]
    return min(starts, default=0)


def _column(frames: list[pd.DataFrame], name: str) -> Any:
    """One column of several frames, categories united."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    columns = [frame[name] for frame in frames]
    if isinstance(columns[0].dtype, pd.CategoricalDtype):
        first = columns[0].cat.categories
        if all(first.equals(column.cat.categories) for column in columns):
            codes = np.concatenate([column.cat.codes.to_numpy() for column in columns])
            return pd.Categorical.from_codes(codes, categories=first)
        used = [column.array for column in columns if len(column.cat.categories)]
        if len(used) == len(columns):
            return union_categoricals([column.array for column in columns])
        # a column that nobody filled has categories of no type
        text = pd.Index([], dtype="str")
        return union_categoricals(
            [
                column.array if len(column.cat.categories) else column.array.set_categories(text)
                for column in columns
            ]
        )
    dtypes = {str(column.dtype) for column in columns}
    if len(dtypes) > 1 and dtypes <= {"int64", "Int64", "int32", "Int32"}:
        columns = [column.astype("Int64") for column in columns]
    return pd.concat(columns, ignore_index=True).array


def stack(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Put frames under each other; categories are united, integers stay integers."""
    import pandas as pd

    names = list(frames[0].columns)
    names += [name for frame in frames[1:] for name in frame.columns if name not in names]
    full = [frame if set(names) <= set(frame.columns) else frame.reindex(columns=names) for frame in frames]
    out = pd.DataFrame(index=pd.RangeIndex(sum(len(frame) for frame in frames)))
    for name in names:
        values = _column(full, name)
        # a Series of the same dtype: pandas would take an object array for something else
        out[name] = pd.Series(values, dtype=values.dtype, copy=False)
    return out


def _offsets(lengths: list[int]) -> list[int]:
    return [0, *np.cumsum(lengths)[:-1].tolist()]


def _shifted_ids(values: np.ndarray, offset: int) -> np.ndarray:
    return np.where(values >= 0, values + offset, values)


def _spans(parts: list[tuple[TraceData, int]]) -> pd.DataFrame:
    frames = [without_places(trace.spans) for trace, _ in parts]  # of the merged trace they are others
    out = stack(frames)
    rows = _offsets([len(frame) for frame in frames])
    tracks = _offsets([len(trace.tracks) for trace, _ in parts])
    correlation = external = 0
    track, parent, linked, outer, start = [], [], [], [], []
    for (trace, shift), row, first_track in zip(parts, rows, tracks, strict=True):
        spans = trace.spans
        track.append(spans["track"].to_numpy() + np.int32(first_track))
        parent.append(_shifted_ids(spans["parent"].to_numpy(), row))
        ids, outer_ids = filled(spans["correlation"]), filled(spans["external_id"])
        linked.append(_shifted_ids(ids, correlation))
        outer.append(_shifted_ids(outer_ids, external))
        correlation += _span_of_ids(ids)
        external += _span_of_ids(outer_ids)
        start.append(spans["start_ns"] + shift)
    import pandas as pd

    if len({str(values.dtype) for values in start}) > 1:
        start = [values.astype("Int64") for values in start]
    out["track"] = np.concatenate(track).astype(np.int32)
    out["parent"] = np.concatenate(parent).astype(np.int64)
    out["correlation"] = optional_ints(np.concatenate(linked).astype(np.int64))
    out["external_id"] = optional_ints(np.concatenate(outer).astype(np.int64))
    out["start_ns"] = pd.concat(start, ignore_index=True)
    return out


def _span_of_ids(values: np.ndarray) -> int:
    """How far the next recording's ids have to move to be others."""
    return int(values.max()) + 1 if len(values) and values.max() >= 0 else 0


def _events(parts: list[tuple[TraceData, int]], name: str, time: str) -> pd.DataFrame:
    frames = [getattr(trace, name) for trace, _ in parts]
    out = stack(frames)
    tracks = _offsets([len(trace.tracks) for trace, _ in parts])
    shifts = [shift for _, shift in parts]
    out["track"] = np.concatenate(
        [_shifted_ids(frame["track"].to_numpy(), first) for frame, first in zip(frames, tracks, strict=True)]
    ).astype(np.int32)
    out[time] = np.concatenate(
        [frame[time].to_numpy() + shift for frame, shift in zip(frames, shifts, strict=True)]
    ).astype(np.int64)
    return out


def _flows(parts: list[tuple[TraceData, int]]) -> pd.DataFrame:
    frames = [trace.flows for trace, _ in parts]
    out = stack(frames)
    rows = _offsets([len(trace.spans) for trace, _ in parts])
    for end in ("source", "target"):
        out[end] = optional_ints(
            np.concatenate(
                [_shifted_ids(filled(frame[end]), row) for frame, row in zip(frames, rows, strict=True)]
            ).astype(np.int64)
        )
    ids, offset = [], 0
    for frame in frames:
        values = filled(frame["id"])
        ids.append(_shifted_ids(values, offset))
        offset += _span_of_ids(values)
    out["id"] = optional_ints(np.concatenate(ids).astype(np.int64))
    return out


def _meta(
    parts: list[tuple[TraceData, int]], base: int | None, align: str, left_out: list[TraceData]
) -> dict[str, Any]:
    traces = [trace for trace, _ in parts]
    ranks = {trace.meta["rank"] for trace in traces}
    formats = list(dict.fromkeys(str(trace.meta["format"]) for trace in traces))
    warnings = [warning for trace in traces for warning in trace.meta["warnings"]]
    for trace in left_out:
        warnings.append(
            Repair(
                "unaligned",
                "left out of the merged trace: nothing says when it was recorded, and times are not guessed",
                path=(trace.meta["sources"] or [None])[0],
            )
        )
    if align == "start":
        clock = "every recording begins at 0: their times are not aligned with one another"
    elif base is not None:
        clock = "Unix time of each recording's own base; " + "; ".join(
            dict.fromkeys(f"{trace.meta['format']}: {trace.meta['clock']}" for trace in traces)
        )
    else:
        clock = "; ".join(dict.fromkeys(str(trace.meta["clock"]) for trace in traces))
    rows = _offsets([len(trace.spans) for trace in traces])
    return {
        "format": "+".join(formats),
        "sources": [source for trace in traces for source in trace.meta["sources"]],
        "base_ns": base,
        "clock": clock,
        "rank": ranks.pop() if len(ranks) == 1 else None,
        "versions": {k: v for trace in reversed(traces) for k, v in trace.meta["versions"].items()},
        "synthetic": any(bool(trace.meta["synthetic"]) for trace in traces),
        "warnings": warnings,
        "parts": [
            {
                "format": trace.meta["format"],
                "sources": list(trace.meta["sources"]),
                "base_ns": trace.meta["base_ns"],
                "first_span": row,
                "spans": len(trace.spans),
            }
            for trace, row in zip(traces, rows, strict=True)
        ],
        "unaligned": [list(trace.meta["sources"]) for trace in left_out],
    }
