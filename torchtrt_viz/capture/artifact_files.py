"""A capture's own summary, and its artifacts in a folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtrt_viz.capture.overhead import program_event_ns, torch_event_ns
from torchtrt_viz.errors import CaptureError, TraceFormatError
from torchtrt_viz.formats.capture.document import DOCUMENT
from torchtrt_viz.formats.etdump.slim_etrecord import slim_etrecord
from torchtrt_viz.formats.io.new_file import write_file, write_json
from torchtrt_viz.runtime.modules import versions

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.capture.shared_types import FinishedCapture

__all__ = ["save", "summary", "write_artifacts"]

#: Spans of engines that no program of the capture owns.
_ENGINES = "engines.json"


def summary(capture: FinishedCapture) -> pd.DataFrame:
    """Return the summary of a stopped capture: see :meth:`torchtrt_viz.captures.Capture.summary`."""
    import pandas as pd

    if capture.state != "stopped":
        raise CaptureError(f"the capture is {capture.state}: its summary is there when the block is left")
    rows: list[tuple[str, Any, str, str]] = [
        (
            "level",
            capture.options.level,
            "",
            "nothing was captured" if capture.options.level == "off" else "",
        ),
        ("block", round(capture.wall_seconds * 1e3, 3), "ms", _ending(capture)),
    ]
    recorded = capture._recorded
    runs = sum(item.runs for item in recorded)
    failed = sum(block.get("status") == "failed" for item in recorded for block in item.blocks)
    events = sum(item.events for item in recorded)
    rows += [
        ("programs", len(recorded), "", ", ".join(item.program.name for item in recorded)),
        ("program runs", runs, "", f"{failed} failed" if failed else ""),
        ("program events", events, "", ""),
    ]
    torch_events = _torch_events(capture)
    rows.append(("torch events", torch_events if torch_events is not None else pd.NA, "", ""))
    rows += _costs(capture, events, torch_events)
    rows += [("not captured", pd.NA, "", problem) for problem in capture.problems]
    return pd.DataFrame(rows, columns=["item", "value", "unit", "note"])


def _ending(capture: FinishedCapture) -> str:
    error = capture.error
    return "" if error is None else f"the block raised {type(error).__name__}; the trace ends there"


def _torch_events(capture: FinishedCapture) -> int | None:
    if capture._torch_file is None:
        return None
    parts = capture.recorded.meta.get("parts", [])
    return sum(int(part["spans"]) for part in parts if part["format"] == "kineto")


def _costs(
    capture: FinishedCapture, events: int, torch_events: int | None
) -> list[tuple[str, Any, str, str]]:
    import pandas as pd

    rows: list[tuple[str, Any, str, str]] = [
        ("start", round(capture.start_seconds * 1e3, 3), "ms", "before the block"),
        ("stop", round(capture.stop_seconds * 1e3, 3), "ms", "after the block"),
    ]
    if capture._torch is not None:
        synchronized = capture._torch.synchronized
        rows.append(
            ("device synchronisations", int(synchronized), "", "the one at the end" if synchronized else "")
        )
    inside = 0.0
    notes = []
    if events:
        price = program_event_ns()
        inside += events * price
        notes.append(f"{events} program events at {price:.0f} ns")
    if torch_events:
        options = capture.options
        torch_price = torch_event_ns(
            options.record_shapes, options.with_stack, options.profile_memory, options.with_flops
        )
        if torch_price is None:
            notes.append("torch's events not counted: a profiler is recording now, ask again later")
        else:
            inside += torch_events * torch_price
            notes.append(f"{torch_events} torch events at {torch_price:.0f} ns")
    wall_ns = capture.wall_seconds * 1e9
    share = f"; {100 * inside / wall_ns:.1f} % of the block" if wall_ns else ""
    estimate = round(inside / 1e6, 3) if notes else pd.NA
    rows.append(("recording inside the block", estimate, "ms", "; ".join(notes) + (share if notes else "")))
    return rows


def save(capture: FinishedCapture, folder: Path, *, force: bool) -> Path:
    """Write the artifacts: see :meth:`torchtrt_viz.captures.Capture.save`."""
    if capture.state != "stopped":
        raise CaptureError(f"the capture is {capture.state}: its artifacts are there when the block is left")
    there = [name for name in _names(capture) if (folder / name).exists()]
    if there and not force:
        raise CaptureError(
            f"{folder} holds {', '.join(there)} already: give another folder, or force=True to overwrite them"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaptureError(f"{folder} cannot be made: {error.strerror or error}") from error
    write_artifacts(capture, folder, force=force)
    return folder


def _names(capture: FinishedCapture) -> list[str]:
    names = [DOCUMENT]
    for recorded in capture._recorded:
        names += [f"{recorded.name}.etdp", f"{recorded.name}.etdp.json"]
        if recorded.etrecord is not None:
            names.append(f"{recorded.name}.etrecord")
    if capture._torch_file is not None:
        names.append(capture._torch_file.name)
    if capture._columns is not None:
        names.append(_ENGINES)
    return names + [name for files in capture._layer_sets for name in files]


def write_artifacts(capture: FinishedCapture, folder: Path, *, force: bool) -> None:
    """Write every artifact and, last, ``capture.json`` into an existing folder."""
    problems = list(capture.problems)
    programs = []
    for recorded in capture._recorded:
        recorded.write(folder, force=force)
        record = None
        if recorded.etrecord is not None:
            record = f"{recorded.name}.etrecord"
            try:
                slim_etrecord(recorded.etrecord, folder / record, force=force)
            except TraceFormatError as error:
                problems.append(f"no operator types and source lines for {recorded.name}: {error}")
                record = None
        programs.append(
            {
                "etdump": f"{recorded.name}.etdp",
                "program": str(recorded.program),
                "etrecord": record,
                "runs": recorded.runs,
                "events": recorded.events,
            }
        )
    torch: dict[str, Any] | None = None
    if capture._torch is not None:
        source = capture._torch_file
        if source is not None and source.parent != folder:
            write_file(folder / source.name, lambda part: shutil.copyfile(source, part), force=force)
        torch = {
            "trace": None if source is None else source.name,
            "marks_unix_ns": capture._torch.marks,
        }
    if capture._columns is not None:
        write_json(folder / _ENGINES, capture._columns, force=force)
    for files in capture._layer_sets:
        for name, content in files.items():
            write_file(folder / name, content, force=force)
    document = {
        "format": "torchtrt_viz.capture",
        "version": 1,
        "options": capture.options.as_dict(),
        "begin_unix_ns": capture.begin_unix_ns,
        "end_unix_ns": capture.end_unix_ns,
        "start_seconds": capture.start_seconds,
        "stop_seconds": capture.stop_seconds,
        "error": None if capture.error is None else f"{type(capture.error).__name__}: {capture.error}",
        "problems": problems,
        "programs": programs,
        "torch": torch,
        "engines": None if capture._columns is None else _ENGINES,
        "layer_sets": [list(files) for files in capture._layer_sets],
        "versions": versions(),
    }
    write_json(folder / DOCUMENT, document, force=force)
