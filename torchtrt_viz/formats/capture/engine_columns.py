"""``engines.json`` of a saved capture: what engines recorded that no ETDump of the capture holds.

Engines of programs that another runtime loaded, and of opaque packages, report to the capture itself. The
file holds their spans as columns (``torchtrt_viz._native.capture.Columns``), times in ns of the process's
monotonic clock, with an anchor that places that clock in Unix time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.model import schema
from torchtrt_viz.model.args import MappingArgs
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["read_engine_columns"]

_MAX_BYTES = 1 << 31
_INTEGERS = ("engine", "call", "kind", "name", "start_ns", "end_ns", "thread", "timing", "on_device")
_KINDS = ("delegate", "phase", "layer")


def read_engine_columns(source: Source, options: LoadOptions) -> TraceData:
    """Read ``engines.json``: one track per thread, and one per engine for device work.

    Raises
    ------
    TraceFormatError
        When the file is no such document.
    """
    import orjson

    try:
        document = orjson.loads(source.read(_MAX_BYTES))
    except orjson.JSONDecodeError as error:
        raise TraceFormatError(
            "not JSON",
            path=source.name,
            offset=error.pos,
            found=str(error),
            expected="columns of engine spans",
        ) from error
    columns, names, labels, timings, engines = _checked(document, source.name)
    anchor = document.get("anchor")
    base = None
    if isinstance(anchor, dict) and type(anchor.get("unix_ns")) is type(anchor.get("monotonic_ns")) is int:
        base = anchor["unix_ns"] - anchor["monotonic_ns"]
    if document.get("dropped"):
        options.repaired(
            Repair("dropped", "the recording was full, later spans were dropped", source.name, None,
                   int(document["dropped"]))
        )  # fmt: skip
    threads, track = np.unique(columns["thread"], return_inverse=True)
    device = columns["on_device"] != 0
    owners, where = np.unique(columns["engine"][device], return_inverse=True)
    track = track.astype(np.int32)
    track[device] = (len(threads) + where).astype(np.int32)
    # spans of a track in the order of their starts, outermost first: what nesting is found from
    order = np.lexsort((-columns["end_ns"], columns["start_ns"], track))
    columns = {key: values[order] for key, values in columns.items()}
    track, device = track[order], device[order]
    start, dur = columns["start_ns"], columns["end_ns"] - columns["start_ns"]
    parent, depth, self_ns, _ = native("columns").nest(track, start, dur)
    # a time of the device has a duration of its own; its place is where the host gave the work away
    measured = np.isin(columns["timing"], [timings.index(t) for t in ("measured",) if t in timings])
    ids = [str(engine.get("engine_id", index)) for index, engine in enumerate(engines)]
    spans = schema.SPANS.frame(
        {
            "name": _named(columns["name"], labels),
            "kind": [_KINDS[k] for k in columns["kind"]],
            "domain": np.where(device, schema.DOMAINS.index("gpu"), schema.DOMAINS.index("host")),
            "timing": np.where(measured, schema.TIMINGS.index("measured"), schema.TIMINGS.index("modeled")),
            "track": track,
            "start_ns": start,
            "dur_ns": dur,
            "self_ns": self_ns,
            "depth": depth,
            "parent": parent,
            "iteration": columns["call"].astype(np.int32),
            "rank": -1 if options.rank is None else options.rank,
            "run_id": _named(columns["engine"], ids),
        },
        length=len(start),
    )
    tracks = schema.TRACKS.frame(
        {
            "label": [f"engines, thread {t}" for t in threads] + [f"engine {ids[e]}" for e in owners],
            "type": ["thread"] * len(threads) + ["engine"] * len(owners),
            "domain": ["host"] * len(threads) + ["gpu"] * len(owners),
            "process": None,
            "thread": [str(t) for t in threads] + [None] * len(owners),
            "rank": -1 if options.rank is None else options.rank,
        },
        length=len(threads) + len(owners),
    )
    about = [_about(engine) for engine in engines]
    args = {
        row: {"id": names[name], "timing": timings[timing], "call": int(call), **about[engine]}
        for row, (name, timing, call, engine) in enumerate(
            zip(columns["name"], columns["timing"], columns["call"], columns["engine"], strict=True)
        )
    }
    return TraceData(
        spans=spans,
        tracks=tracks,
        meta={
            "format": "engines",
            "sources": [source.name],
            "base_ns": base,
            "clock": "the process's monotonic clock, placed in Unix time by an anchor",
            "rank": options.rank,
            "warnings": options.warnings,
            "engines": {key: engine for key, engine in zip(ids, engines, strict=True)},
        },
        args=MappingArgs(args),
    )


def _about(engine: dict[str, Any]) -> dict[str, Any]:
    found = {
        "engine": engine.get("engine_id"),
        "engine_runtime": engine.get("runtime"),
        "backend": "TensorRTBackend",
    }
    return {**found, "method": engine.get("method"), "owner": engine.get("owner")}


def _named(codes: NDArray[np.int64], texts: list[str]) -> Any:
    """A categorical of texts that may repeat."""
    import pandas as pd

    unique = list(dict.fromkeys(texts))
    place = {text: number for number, text in enumerate(unique)}
    table = np.array([place[text] for text in texts] or [0], np.int32)
    values = table[codes] if len(codes) else np.zeros(0, np.int32)
    return pd.Categorical.from_codes(values, categories=pd.Index(unique, dtype="str"))


def _checked(
    document: object, name: str
) -> tuple[dict[str, NDArray[np.int64]], list[str], list[str], list[str], list[dict[str, Any]]]:
    def wrong(what: str, expected: str) -> TraceFormatError:
        return TraceFormatError(
            what, path=name, expected=expected, hint="Capture again, or leave the file out"
        )

    if not isinstance(document, dict):
        raise wrong("the top level", "an object")
    lists: dict[str, list[Any]] = {}
    for key, kind in (("names", str), ("labels", str), ("timings", str), ("engines", dict)):
        values = document.get(key)
        if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
            raise wrong(key, f"a list of {kind.__name__}")
        lists[key] = values
    columns: dict[str, NDArray[np.int64]] = {}
    length = None
    for key in _INTEGERS:
        values = document.get(key)
        if not isinstance(values, list) or not all(type(value) is int for value in values):
            raise wrong(key, "a list of whole numbers")
        try:
            columns[key] = np.array(values, np.int64)
        except OverflowError:
            raise wrong(key, "whole numbers of 64 bits") from None
        length = len(values) if length is None else length
        if len(values) != length:
            raise wrong(key, f"{length} values, as in {_INTEGERS[0]}")
    limits = {"engine": len(lists["engines"]), "name": len(lists["names"]), "timing": len(lists["timings"])}
    for key, limit in {**limits, "kind": len(_KINDS)}.items():
        if len(columns[key]) and (columns[key].min() < 0 or columns[key].max() >= limit):
            raise wrong(key, f"values from 0 to {limit - 1}")
    if len(lists["labels"]) != len(lists["names"]):
        raise wrong("labels", f"{len(lists['names'])} values, as in names")
    if (columns["end_ns"] < columns["start_ns"]).any():
        raise wrong("end_ns", "no span that ends before it starts")
    return columns, lists["names"], lists["labels"], lists["timings"], lists["engines"]
