"""The recordings of a saved capture, put together as one trace of one process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.capture.document import DOCUMENT, MARK, read_document, recording
from torchtrt_viz.formats.capture.engine_columns import read_engine_columns
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.model import schema
from torchtrt_viz.model.merge import merge
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.select import select
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["DOCUMENT", "MARK", "load_capture", "place_torch"]


def load_capture(source: Source, options: LoadOptions) -> TraceData:
    """Load the saved capture of which ``source`` is the document.

    A recording that cannot be read is left out and reported.

    Raises
    ------
    TraceFormatError
        When the document is damaged, or of a later version; with ``strict`` also for a recording.
    """
    document = read_document(source)
    options.warnings.extend(Repair("not_captured", text) for text in _texts(document.get("problems")))
    parts: list[TraceData] = []
    for what, load in _recordings(source, document, options):
        try:
            parts.append(load())
        except TraceFormatError as error:
            options.repaired(Repair("recording_unreadable", f"{what} is left out: {error}", error.path))
    begin = document.get("begin_unix_ns")
    base = begin if isinstance(begin, int) and begin > 0 else None
    trace = merge(parts, base_ns=base) if parts else _empty()
    kept = [w for part in parts for w in part.meta["warnings"]]
    trace.meta["format"] = "capture"
    trace.meta["rank"] = options.rank
    versions = document.get("versions")
    if isinstance(versions, dict):
        trace.meta["versions"].update({str(k): str(v) for k, v in versions.items()})
    trace.meta["warnings"] = list(dict.fromkeys([*options.warnings, *kept, *trace.meta["warnings"]]))
    trace.meta["capture"] = {
        key: document.get(key) for key in ("options", "begin_unix_ns", "end_unix_ns", "error")
    }
    return trace


def _recordings(
    source: Source, document: dict[str, Any], options: LoadOptions
) -> list[tuple[str, Callable[[], TraceData]]]:
    """List what the document names: what to call it, and what loads it."""
    out: list[tuple[str, Callable[[], TraceData]]] = []
    torch = document.get("torch")
    if isinstance(torch, dict) and isinstance(torch.get("trace"), str):
        out.append(("torch's activity", partial(_torch, source, torch, options)))
    for program in document.get("programs") or []:
        if isinstance(program, dict):
            out.append(("a program's recording", partial(_program, source, program, options)))
    if isinstance(document.get("engines"), str):
        out.append(("the recording of engines", partial(_engines, source, document["engines"], options)))
    for names in document.get("layer_sets") or []:
        out.append(("the layers of an engine", partial(_layer_set, source, names, options)))
    return out


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _there(document: Source, name: object) -> Source:
    """The file of that name beside the document."""
    found = recording(document, name)
    if found is None:
        raise TraceFormatError(
            "no such file", path=f"{document.folder}/{name}", hint="Copy the whole folder of the capture"
        )
    return found.local()


def _part_options(options: LoadOptions, etrecord: Any = None) -> LoadOptions:
    return LoadOptions(strict=options.strict, etrecord=etrecord, progress=options.progress, rank=options.rank)


def _torch(document: Source, torch: dict[str, Any], options: LoadOptions) -> TraceData:
    trace = read_source(_there(document, torch["trace"]), _part_options(options), "kineto")
    marks = torch.get("marks_unix_ns")
    pairs = marks if isinstance(marks, list) else []
    return place_torch(
        trace, [(m[0], m[1]) for m in pairs if isinstance(m, list) and [type(x) for x in m] == [int, int]]
    )


def _program(document: Source, program: dict[str, Any], options: LoadOptions) -> TraceData:
    dump = _there(document, program.get("etdump"))
    name = program.get("etrecord")
    record = None if name is None else recording(document, name)
    if name is not None and record is None:
        options.repaired(
            Repair("missing_etrecord", "the program's ETRecord is gone", f"{document.folder}/{name}")
        )
    etrecord = options.etrecord or (None if record is None else record.local())
    return read_source(dump, _part_options(options, etrecord), "etdump")


def _engines(document: Source, name: str, options: LoadOptions) -> TraceData:
    return read_engine_columns(_there(document, name), _part_options(options))


def _layer_set(document: Source, names: Any, options: LoadOptions) -> TraceData:
    # slow to import: many modules, which other recordings do not need
    from torchtrt_viz.formats.engine.file_set import read_set

    sources = [_there(document, name) for name in (names if isinstance(names, list) else [names])]
    if len(sources) == 1:
        return read_source(sources[0], _part_options(options))
    return read_set(sources, _part_options(options))


def _empty() -> TraceData:
    spans = schema.SPANS.frame(
        {name: np.zeros(0, np.int64) for name in ("track", "start_ns", "dur_ns", "self_ns")}
    )
    tracks = schema.TRACKS.frame({name: [] for name in ("label", "process", "thread")})
    return TraceData(spans=spans, tracks=tracks, meta={"clock": "nothing was captured"})


def place_torch(trace: TraceData, marks: list[tuple[int, int]]) -> TraceData:
    """Check torch's clock against the process's by the marks, correct it where it is off, take the marks out.

    Each mark is a span of which the Unix times before and after are known. Where torch placed a mark outside
    of its interval, its times are moved by the least amount that puts it inside.

    Parameters
    ----------
    marks
        Unix ns before and after each mark, in the order in which they were made.

    Returns
    -------
    Trace
        ``meta["clock"]`` says what was measured.
    """
    names = trace.spans["name"]
    codes = np.flatnonzero(names.cat.categories == MARK)
    rows = np.flatnonzero(np.isin(names.cat.codes.to_numpy(), codes)) if len(codes) else np.zeros(0, np.int64)
    if len(rows) == 0:
        trace.meta["warnings"].append(
            Repair(
                "not_captured",
                "torch's recording does not hold the marks of this capture: another profiler took its place, "
                "and part of the block is missing",
            )
        )
        return trace
    base = trace.meta["base_ns"]
    starts = np.sort(trace.spans["start_ns"].to_numpy(dtype=np.int64)[rows])
    if base is not None and len(starts) == len(marks):
        low = max(before - (base + int(start)) for (before, _), start in zip(marks, starts, strict=True))
        high = min(after - (base + int(start)) for (_, after), start in zip(marks, starts, strict=True))
        # what has to be added to torch's times lies between low and high; crossed: the clocks drift apart
        shift = 0 if low <= 0 <= high else min(low, high, key=abs) if low <= high else (low + high) // 2
        trace.meta["base_ns"] = base + shift
        trace.meta["clock"] = (
            f"{trace.meta['clock']}; checked against the process's clock at begin and end: "
            + (f"moved by {shift} ns, " if shift else "")
            + f"right to within {abs(high - low)} ns"
        )
    keep = np.ones(len(trace.spans), bool)
    keep[rows] = False
    return select(trace, keep)
