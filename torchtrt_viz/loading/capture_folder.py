"""The folder of a saved capture: ``capture.json`` with the recordings of one process, as one trace.

``capture.json`` (written by :meth:`torchtrt_viz.capture.profile.Capture.save`)::

    {"format": "torchtrt_viz.capture", "version": 1,
     "begin_unix_ns": ..., "end_unix_ns": ..., "options": {...}, "versions": {...},
     "error": "ValueError: ..." or null, "problems": ["...", ...],
     "programs": [{"etdump": "net.etdp", "etrecord": "net.etrecord" or null, ...}, ...],
     "torch": {"trace": "torch.pt.trace.json" or null, "marks_unix_ns": [[before, after], ...]} or null,
     "engines": "engines.json" or null,
     "layer_sets": [["engine.profile.json", "engine.graph.json"], ...]}

Files are named relative to the folder and lie in it; a name that leads elsewhere is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.file_set import read_set
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.model import schema
from torchtrt_viz.model.merge import merge
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.select import select
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["DOCUMENT", "MARK", "find_capture", "load_capture", "place_torch"]

DOCUMENT = "capture.json"
_FORMAT = "torchtrt_viz.capture"
_VERSION = 1
_MAX_BYTES = 64 << 20
#: Name of the spans by which a capture ties torch's clock to the process's own.
MARK = "torchtrt_viz.capture"


def find_capture(path: Path) -> Path | None:
    """Return the folder of the saved capture that ``path`` (it, or its ``capture.json``) is; else None."""
    document = path / DOCUMENT if path.is_dir() else path
    if document.name != DOCUMENT or not document.is_file():
        return None
    with document.open("rb") as stream:
        head = stream.read(512)
    return document.parent if f'"{_FORMAT}"'.encode() in head else None


def load_capture(folder: Path, options: LoadOptions) -> TraceData:
    """Load a saved capture; a recording that cannot be read is left out and reported.

    Raises
    ------
    TraceFormatError
        When ``capture.json`` is damaged, or of a later version; with ``strict`` also for a recording.
    """
    document = _read_document(folder)
    parts: list[TraceData] = []
    for problem in _texts(document.get("problems")):
        options.warnings.append(Repair("not_captured", problem))

    def take(what: str, load: Any) -> None:
        try:
            parts.append(load())
        except TraceFormatError as error:
            options.repaired(Repair("recording_unreadable", f"{what} is left out: {error}", error.path))

    torch = document.get("torch")
    if isinstance(torch, dict) and isinstance(torch.get("trace"), str):
        take("torch's activity", lambda: _torch(folder, torch, options))
    for program in document.get("programs") or []:
        if isinstance(program, dict):
            take("a program's recording", lambda program=program: _program(folder, program, options))
    if isinstance(document.get("engines"), str):
        take("the recording of engines", lambda: _engines(folder, document["engines"], options))
    for names in document.get("layer_sets") or []:
        take("the layers of an engine", lambda names=names: _layer_set(folder, names, options))
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


def _read_document(folder: Path) -> dict[str, Any]:
    import orjson

    path = folder / DOCUMENT
    source = Source(path)
    try:
        document = orjson.loads(source.read(_MAX_BYTES))
    except orjson.JSONDecodeError as error:
        raise TraceFormatError(
            "the document of the capture is not JSON", path=path, offset=error.pos, found=str(error)
        ) from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise TraceFormatError("not the document of a capture", path=path, expected=f'"format": "{_FORMAT}"')
    version = document.get("version")
    if version != _VERSION:
        raise TraceFormatError(
            "written by another version of the package",
            path=path,
            expected=f"version {_VERSION}",
            found=str(version)[:40],
            hint="Load the recordings in the folder one by one, or update torchtrt-viz",
        )
    return document


def _inside(folder: Path, name: Any) -> Path:
    """The file of that name in the folder; names from a document may be hostile."""
    if not isinstance(name, str) or not name or Path(name).name != name or name in (".", ".."):
        raise TraceFormatError(
            "a recording's name leads out of the folder", path=folder / DOCUMENT, found=repr(name)[:80]
        )
    return folder / name


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _part_options(options: LoadOptions, etrecord: Path | None = None) -> LoadOptions:
    return LoadOptions(strict=options.strict, etrecord=etrecord, progress=options.progress, rank=options.rank)


def _torch(folder: Path, torch: dict[str, Any], options: LoadOptions) -> TraceData:
    trace = read_source(Source(_inside(folder, torch["trace"])), _part_options(options), "kineto")
    marks = torch.get("marks_unix_ns")
    pairs = marks if isinstance(marks, list) else []
    return place_torch(
        trace, [(m[0], m[1]) for m in pairs if isinstance(m, list) and [type(x) for x in m] == [int, int]]
    )


def _program(folder: Path, program: dict[str, Any], options: LoadOptions) -> TraceData:
    path = _inside(folder, program.get("etdump"))
    record = program.get("etrecord")
    etrecord = _inside(folder, record) if record is not None else None
    if etrecord is not None and not etrecord.is_file():
        options.repaired(Repair("missing_etrecord", "the program's ETRecord is gone", str(etrecord)))
        etrecord = None
    if options.etrecord is not None:
        etrecord = Path(options.etrecord)
    return read_source(Source(path), _part_options(options, etrecord), "etdump")


def _engines(folder: Path, name: str, options: LoadOptions) -> TraceData:
    from torchtrt_viz.formats.capture.engine_columns import read_engine_columns

    return read_engine_columns(Source(_inside(folder, name)), _part_options(options))


def _layer_set(folder: Path, names: Any, options: LoadOptions) -> TraceData:
    paths = [_inside(folder, name) for name in (names if isinstance(names, list) else [names])]
    if len(paths) == 1:
        return read_source(Source(paths[0]), _part_options(options))
    return read_set([Source(path) for path in paths], _part_options(options))


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
