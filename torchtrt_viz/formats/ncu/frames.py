"""A page as a trace: a span per kernel, its metrics as arguments and as a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.text_forms import decode_text
from torchtrt_viz.formats.ncu.numbers import number
from torchtrt_viz.formats.ncu.page import Kernel, Metric, Page, page_of
from torchtrt_viz.formats.producers.work_names import kind_by_rules
from torchtrt_viz.model import schema
from torchtrt_viz.model.args import MappingArgs
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source

__all__ = ["read_page"]

_KERNEL, _GPU = schema.KINDS.index("kernel"), schema.DOMAINS.index("gpu")
_AGGREGATE, _TICKS = schema.TIMINGS.index("aggregate"), schema.TIMINGS.index("ticks")
_TIMES: tuple[str, ...] = (
    *("gpu__time_duration.sum", "gpu__time_duration_measured_user.sum", "Duration"),
    *("gpu__time_duration.avg", "gpu__time_duration.max"),
)
_CYCLES = ("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max", "Elapsed Cycles", "sm__cycles_elapsed.avg")
_NS = {"nsecond": 1, "ns": 1, "nanosecond": 1, "usecond": 1e3, "us": 1e3, "microsecond": 1e3}
_NS |= {"msecond": 1e6, "ms": 1e6, "millisecond": 1e6, "second": 1e9, "s": 1e9}
_LONGEST_NS = 1 << 53
_VECTOR = re.compile(r"\(?\s*(\d{1,10})\s*,\s*(\d{1,10})\s*,\s*(\d{1,10})\s*\)?")
_SAID = {"Context": "context", "CC": "compute capability", "Process Name": "process name", "ID": "ncu id"}


def read_page(source: Source, options: LoadOptions) -> TraceData:
    """Read a page.

    Raises
    ------
    TraceFormatError
        When it holds no kernel.
    """
    data = source.read()
    if options.progress is not None:
        options.progress(len(data), len(data))
    text, encoding, bad = decode_text(data)
    if bad is not None:
        options.repaired(Repair("encoding", f"bytes that are not {encoding} were replaced", source.name, bad))
    page = page_of(text)
    if not page.kernels:
        raise _nothing(page, source)
    _report(page, source.name, options)
    return _trace(page, source, options)


def _nothing(page: Page, source: Source) -> TraceFormatError:
    if page.errors:
        found, hint = f"the tool says: {page.errors[0][:300]}", "Mend what it says, and profile again"
    elif page.layout is None:
        found = "output of Nsight Compute without its CSV page"
        hint = "Print the page: ncu --csv --page raw PROGRAM, or ncu --import REPORT --csv --page raw"
    else:
        found, hint = "a header without rows", "Profile kernels that the program runs"
    return TraceFormatError(
        "the page holds no kernel",
        path=source.name,
        offset=0,
        expected='rows below "ID","Process ID","Process Name","Host Name","Kernel Name",...',
        found=found,
        hint=hint,
    )


def _report(page: Page, path: str, options: LoadOptions) -> None:
    for kind, said in (("error", page.errors), ("warning", page.warnings)):
        for text in dict.fromkeys(said[:20]):
            message = f"Nsight Compute says ({kind}): {text}"
            options.warnings.append(Repair("diagnostic", message, path, count=said.count(text)))
    if page.truncated:
        options.repaired(Repair("truncated", "the page ends in the middle of a row", path))
    if page.other_rows:
        text = "lines behind the header that are no rows of the page (the program's own output, or damage)"
        options.repaired(Repair("text_around", text, path, page.first_other, page.other_rows))


def _trace(page: Page, source: Source, options: LoadOptions) -> TraceData:
    kernels = page.kernels
    count = len(kernels)
    durations, timings = zip(*(_time(kernel) for kernel in kernels), strict=True)
    dur = np.array(durations, np.int64)
    places, tracks = _tracks(kernels, -1 if options.rank is None else options.rank)
    untimed = sum(timing == _TICKS for timing in timings)
    if untimed:
        text = (
            "kernels without a time among their metrics are in no sum: collect gpu__time_duration.sum, or "
            "the section SpeedOfLight"
        )
        options.warnings.append(Repair("no_time", text, source.name, count=untimed))
    spans = schema.SPANS.frame(
        {
            "name": [kernel.said["Kernel Name"] for kernel in kernels],
            "kind": np.array([kind_by_rules(_KERNEL, k.said["Kernel Name"]) for k in kernels], np.int8),
            "domain": np.full(count, _GPU, np.int8),
            "timing": np.array(timings, np.int8),
            "track": np.array(places, np.int32),
            "start_ns": pd.array([None] * count, dtype="Int64"),
            "dur_ns": dur,
            "self_ns": dur,
            "rank": -1 if options.rank is None else options.rank,
        },
        count,
    )
    metrics = _metrics(kernels)
    return TraceData(
        spans=spans,
        tracks=tracks,
        meta={
            "format": "ncu",
            "sources": [source.name],
            "clock": "none: each kernel was measured by itself",
            "rank": options.rank,
            "warnings": options.warnings,
            "ncu": {"layout": page.layout, "metrics": metrics},
            "accounting": {
                "unit": "rows",
                "in_file": page.rows + page.units + page.other_rows,
                "read": page.rows + page.units,
                "repaired": 0,
                "left_out": {"text_around": page.other_rows} if page.other_rows else {},
                "unread": {},
                "bookkeeping": {
                    name: number for name, number in (("units", page.units), ("rules", page.rules)) if number
                },
                "rows": {"spans": count, "metrics": len(metrics)},
                "span_ns": int(dur[np.array(timings) == _AGGREGATE].sum()),
            },
        },
        args=MappingArgs([_args(kernel, page) for kernel in kernels]),
    )


def _time(kernel: Kernel) -> tuple[int, int]:
    """Return duration and timing of a kernel: ns, or else elapsed cycles."""
    for name in _TIMES:
        for metric in kernel.metrics:
            unit = _NS.get(metric.unit.lower())
            if metric.name == name and unit is not None and metric.value is not None:
                total = metric.value * unit * max(1.0, _invocations(kernel))
                if 0 <= total < _LONGEST_NS:
                    return round(total), _AGGREGATE
    for name in _CYCLES:
        for metric in kernel.metrics:
            if metric.name == name and metric.value is not None and 0 <= metric.value < _LONGEST_NS:
                return round(metric.value), _TICKS
    return 0, _TICKS


def _invocations(kernel: Kernel) -> float:
    """Return how many executions a row of a summary is the average of."""
    return number(kernel.said.get("Invocations", ""), False) or 1.0


def _args(kernel: Kernel, page: Page) -> dict[str, Any]:
    said = kernel.said
    out: dict[str, Any] = {name: said[key] for key, name in _SAID.items() if said.get(key)}
    for key, name in (("Grid Size", "grid"), ("Block Size", "block")):
        found = _VECTOR.fullmatch(said.get(key, ""))
        if found is not None:
            out[name] = [int(each) for each in found.groups()]
    out["count"] = int(min(_invocations(kernel), 1e15))
    if said.get("ID") in page.passes:
        out["passes"] = page.passes[said["ID"]]
    taken: dict[str, Metric] = {}
    for metric in kernel.metrics:
        # of one name the details page has several metrics, in sections of their own
        name = (
            metric.name
            if taken.setdefault(metric.name, metric) is metric
            else f"{metric.section}: {metric.name}"
        )
        out[name] = metric.text if metric.value is None else metric.value
    return out


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _tracks(kernels: Sequence[Kernel], rank: int) -> tuple[list[int], pd.DataFrame]:
    known: dict[tuple[str, ...], int] = {}
    keys = [
        tuple(k.said.get(each, "") for each in ("Host Name", "Process ID", "Device", "Stream"))
        for k in kernels
    ]
    places = [known.setdefault(key, len(known)) for key in keys]
    names = {key: kernel.said.get("Process Name") for key, kernel in zip(keys, kernels, strict=True)}
    rows = [(key, _number(key[2])) for key in known]
    labels = [
        " ".join(
            word
            for word in (f"GPU {device}" if device is not None else "", f"stream {key[3]}" if key[3] else "")
            if word
        )
        or "GPU"
        for key, device in rows
    ]
    tracks = schema.TRACKS.frame(
        {
            "label": labels,
            "type": "stream",
            "domain": "gpu",
            "process": [key[1] or None for key, _ in rows],
            "thread": [key[3] or None for key, _ in rows],
            "device": pd.array([device for _, device in rows], dtype="Int32"),
            "rank": rank,
            "sort_index": list(range(len(rows))),
            "process_name": [names[key] or None for key, _ in rows],
        },
        len(rows),
    )
    return places, tracks


def _metrics(kernels: Sequence[Kernel]) -> pd.DataFrame:
    """Return all metrics, a row each: row of ``spans``, section, metric, unit, value, text."""
    rows = [
        (at, metric.section or None, metric.name, metric.unit or None, metric.value, metric.text)
        for at, kernel in enumerate(kernels)
        for metric in kernel.metrics
    ]
    columns = ["span", "section", "metric", "unit", "value", "text"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["span"] = frame["span"].astype("int64")
    frame["value"] = frame["value"].astype("float64")
    return frame
