"""Ways to turn a Kineto file into a table, one function each: what people use beside this package.

Every function takes the path of a file and returns (complete events, time of their kernels in us or None). It
makes the columns name, cat, ph, ts, dur, pid, tid, External id, correlation, stream and device, unless its
library decides otherwise. What a function needs is imported before the clock starts: see `PREPARE`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["LOADERS", "PREPARE"]

_TOP = ("name", "cat", "ph", "ts", "dur", "pid", "tid")
_ARGS = ("External id", "correlation", "stream", "device")

Result = tuple[int, "float | None"]


def _content(path: str) -> bytes:
    data = Path(path).read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _counted(frame: Any) -> Result:
    complete = frame[frame["ph"] == "X"]
    kernels = complete[complete["cat"] == "kernel"]
    return len(complete), float(kernels["dur"].astype(float).sum())


def _columns(events: list[dict[str, Any]]) -> Any:
    import pandas as pd

    columns: dict[str, list[Any]] = {key: [event.get(key) for event in events] for key in _TOP}
    args = [event.get("args") or {} for event in events]
    for key in _ARGS:
        columns[key] = [a.get(key, -1) for a in args]
    return pd.DataFrame(columns)


def torchtrt_viz(path: str) -> Result:
    """All frames of this package, with nesting, self time, flows, counters and steps."""
    import torchtrt_viz as tv

    trace = tv.load(path)
    spans = trace.spans
    kernels = spans[spans["kind"].isin(["kernel", "communication"])]
    return len(spans), kernels["dur_ns"].sum() / 1000


def json_pandas(path: str) -> Result:
    """Python's json, then a DataFrame of eleven columns."""
    return _counted(_columns(json.loads(_content(path))["traceEvents"]))


def orjson_pandas(path: str) -> Result:
    """orjson, then a DataFrame of eleven columns."""
    import orjson

    return _counted(_columns(orjson.loads(_content(path))["traceEvents"]))


def msgspec_typed(path: str) -> Result:
    """Decode with msgspec into typed structures, then a DataFrame of eleven columns."""
    import msgspec
    import pandas as pd

    decoder = _MSGSPEC.get("decoder")
    if decoder is None:
        args = msgspec.defstruct(
            "Args",
            [
                ("external", int, msgspec.field(default=-1, name="External id")),
                ("correlation", int, -1),
                ("stream", int | str, -1),
                ("device", int, -1),
            ],
        )
        event = msgspec.defstruct(
            "Event",
            [
                ("ph", str),
                ("name", str, ""),
                ("cat", str, ""),
                ("ts", float, 0.0),
                ("dur", float, -1.0),
                ("pid", int | str, -1),
                ("tid", int | str, -1),
                ("args", args | None, None),
            ],
        )
        trace = msgspec.defstruct("Trace", [("traceEvents", list[event])])  # type: ignore[valid-type]
        decoder = _MSGSPEC["decoder"] = msgspec.json.Decoder(trace)
    events = decoder.decode(_content(path)).traceEvents
    columns = {key: [getattr(e, key) for e in events] for key in _TOP}
    for name, key in (
        ("External id", "external"),
        ("correlation", "correlation"),
        ("stream", "stream"),
        ("device", "device"),
    ):
        columns[name] = [-1 if e.args is None else getattr(e.args, key) for e in events]
    return _counted(pd.DataFrame(columns))


_MSGSPEC: dict[str, Any] = {}


def polars_schema(path: str) -> Result:
    """Read with polars (read_json) with the schema given, events unnested."""
    import polars as pl

    args = pl.Struct(
        {"External id": pl.Int64, "correlation": pl.Int64, "stream": pl.Int64, "device": pl.Int64}
    )
    text, number = pl.String, pl.Float64
    event = pl.Struct(
        {
            "ph": text,
            "name": text,
            "cat": text,
            "ts": number,
            "dur": number,
            "pid": text,
            "tid": text,
            "args": args,
        }
    )
    frame = pl.read_json(_content(path), schema={"traceEvents": pl.List(event)})
    table = frame.explode("traceEvents").unnest("traceEvents").unnest("args")
    complete = table.filter(pl.col("ph") == "X")
    return complete.height, complete.filter(pl.col("cat") == "kernel")["dur"].sum()


def hta_parser(path: str) -> Result:
    """HolisticTraceAnalysis, its parser alone (parse_trace_dataframe, json)."""
    from hta.common.trace_parser import parse_trace_dataframe
    from hta.configs.parser_config import ParserConfig

    _, frame, symbols = parse_trace_dataframe(path, ParserConfig.get_default_cfg())
    kernel = symbols.get_sym_id_map().get("kernel", -2)
    return len(frame), float(frame.loc[frame["cat"] == kernel, "dur"].sum())


def hta_load(path: str) -> Result:
    """HolisticTraceAnalysis, what TraceAnalysis does to load a trace."""
    from hta.common.trace import Trace

    file = Path(path)
    trace = Trace(trace_files={0: file.name}, trace_dir=str(file.parent))
    trace.parse_traces(max_ranks=1, use_multiprocessing=False)
    trace.decode_symbol_ids()
    frame = trace.get_trace(0)
    return len(frame), float(frame.loc[frame["s_cat"] == "kernel", "dur"].sum())


def tracelens_load(path: str) -> Result:
    """TraceLens, TreePerfAnalyzer.from_file."""
    from TraceLens import TreePerfAnalyzer

    analyzer = TreePerfAnalyzer.from_file(path)
    events = analyzer.tree.events
    return len(events), float(sum(e["dur"] for e in events if e.get("cat") == "kernel"))


def isal_alone(path: str) -> Result:
    """Decompression by isal in blocks of a megabyte, and nothing else."""
    from isal import igzip

    size = 0
    with igzip.open(path) as stream:
        while block := stream.read(1 << 20):
            size += len(block)
    return size, None


LOADERS: dict[str, Callable[[str], Result]] = {
    "torchtrt_viz": torchtrt_viz,
    "msgspec, typed": msgspec_typed,
    "polars, schema": polars_schema,
    "orjson + pandas": orjson_pandas,
    "json + pandas": json_pandas,
    "HTA, parser": hta_parser,
    "HTA, load": hta_load,
    "TraceLens, load": tracelens_load,
    "isal, decompress only": isal_alone,
}

#: Modules to import before the clock starts.
PREPARE: dict[str, list[str]] = {
    # pandas imports the last two when it makes its first array of strings
    "torchtrt_viz": [
        "pandas",
        "torchtrt_viz.files",
        "torchtrt_viz.formats.kineto.reader",
        "pyarrow.pandas_compat",
        "pyarrow.vendored.version",
    ],
    "msgspec, typed": ["pandas", "msgspec"],
    "polars, schema": ["polars"],
    "orjson + pandas": ["pandas", "orjson"],
    "json + pandas": ["pandas"],
    "HTA, parser": ["hta.common.trace_parser"],
    "HTA, load": ["hta.common.trace"],
    "TraceLens, load": ["TraceLens"],
    "isal, decompress only": ["isal.igzip"],
}
