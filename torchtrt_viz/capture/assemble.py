"""From what a capture left to one trace: every part read, placed on one time base, and joined."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz import schema
from torchtrt_viz.capture.artifacts import keep_alive, load_program
from torchtrt_viz.capture.runtime import versions
from torchtrt_viz.capture.torch_activity import MARK
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.merge import merge
from torchtrt_viz.trace import Repair, Trace

if TYPE_CHECKING:
    from torchtrt_viz.capture.profile import Capture

__all__ = ["assemble", "place_torch"]


def assemble(capture: Capture) -> Trace:
    """Return everything that a stopped capture recorded as one trace.

    ``meta["capture"]`` holds options, begin and end (Unix ns), and the error that ended the block;
    ``meta["warnings"]`` what could not be recorded (code ``not_captured``).
    """
    parts: list[Trace] = []
    problems = list(capture.problems)
    if capture._torch_file is not None and capture._torch is not None:
        try:
            parts.append(_torch_trace(capture._torch_file, capture._torch.marks))
        except TorchTrtVizError as error:
            problems.append(f"torch's activity cannot be read: {error}")
    if capture._folder is not None:
        for recorded in capture._recorded:
            try:
                parts.append(load_program(recorded, Path(capture._folder.name)))
            except TorchTrtVizError as error:
                problems.append(f"what {recorded.name} recorded cannot be read: {error}")
    trace = merge(parts) if parts else _empty()
    trace.meta["format"] = "capture"
    trace.meta["versions"] = {**trace.meta["versions"], **versions()}
    trace.meta["warnings"] = [
        *trace.meta["warnings"],
        *(Repair("not_captured", problem) for problem in problems),
    ]
    trace.meta["capture"] = {
        "options": capture.options.as_dict(),
        "begin_unix_ns": capture.begin_unix_ns,
        "end_unix_ns": capture.end_unix_ns,
        "error": None if capture.error is None else f"{type(capture.error).__name__}: {capture.error}",
    }
    return trace if capture._folder is None else keep_alive(trace, capture._folder)


def _empty() -> Trace:
    none: dict[str, Any] = {}
    spans = schema.SPANS.frame({c: np.zeros(0, np.int64) for c in ("track", "start_ns", "dur_ns", "self_ns")})
    tracks = schema.TRACKS.frame({c: [] for c in ("label", "process", "thread")})
    return Trace(spans=spans, tracks=tracks, meta={"clock": "nothing was captured", **none})


def _torch_trace(path: Path, marks: list[tuple[int, int]]) -> Trace:
    from torchtrt_viz.loaders import load_source
    from torchtrt_viz.loaders.options import LoadOptions
    from torchtrt_viz.loaders.source import Source

    return place_torch(load_source(Source(path), LoadOptions(), "kineto"), marks)


def place_torch(trace: Trace, marks: list[tuple[int, int]]) -> Trace:
    """Check torch's clock against ours by the marks, correct it where it is off, and take the marks out.

    Each mark is a span of which we know the Unix times before and after. The spans of a trace in which torch
    placed a mark outside of its interval are moved by the least amount that puts it inside.

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
    base = trace.meta["base_ns"]
    if len(rows) == 0:
        trace.meta["warnings"].append(
            Repair(
                "not_captured",
                "torch's recording does not hold the marks of this capture: another profiler took its place, "
                "and part of the block is missing",
            )
        )
        return trace
    starts = np.sort(trace.spans["start_ns"].to_numpy(dtype=np.int64)[rows])
    if base is not None and len(starts) == len(marks):
        low = max(before - (base + int(start)) for (before, _), start in zip(marks, starts, strict=True))
        high = min(after - (base + int(start)) for (_, after), start in zip(marks, starts, strict=True))
        # what has to be added to torch's times lies between low and high
        shift = 0 if low <= 0 <= high else (low + high) // 2 if low <= high else low
        trace.meta["base_ns"] = base + shift
        width = max(high - low, 0)
        trace.meta["clock"] = (
            f"{trace.meta['clock']}; checked against the process's clocks at begin and end: "
            + (f"moved by {shift} ns, " if shift else "")
            + f"right to within {width} ns"
        )
    keep = np.ones(len(trace.spans), bool)
    keep[rows] = False
    return trace.select(keep)
