"""Layer times: ``trtexec --exportProfile``, Torch-TensorRT's engine traces, and dumps of a user's profiler.

Four shapes carry the same thing, a time for each layer summed over calls:

- ``[{"count": N}, {"name", "timeMs", "averageMs", "medianMs", "percentage"}, ...]`` (trtexec; ``medianMs``
  from TensorRT 8.5, the header sometimes missing);
- the same without header and median (Torch-TensorRT, format trex);
- ``[{"name", "ph": "X", "ts", "dur", "pid": "E Engine Execution"}, ...]`` (Torch-TensorRT, format perfetto):
  ``dur`` is the total in microseconds over every call since profiling was switched on, ``ts`` a running sum
  and no time at all, and the number of calls is not recorded;
- ``{layer: [ms, ...]}`` or ``{layer: [[ms, when], ...]}``: every reading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.json_values import finite, list_of, whole
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.model.repair import Repair

__all__ = ["ENGINE_EXECUTION", "Profile", "read_engine_trace", "read_profile", "read_readings"]

ENGINE_EXECUTION = " Engine Execution"


@dataclass
class Profile:
    """Times of an engine's layers; the lists run in parallel, None where nothing is recorded.

    Attributes
    ----------
    count
        Calls that the totals sum over, None when unknown.
    counts
        Calls of each layer, where they differ or are known one by one.
    engine
        Engine's name in the file.
    records
        Records of the file that it was made of.
    """

    names: list[str] = field(default_factory=list)
    total_ms: list[float | None] = field(default_factory=list)
    average_ms: list[float | None] = field(default_factory=list)
    median_ms: list[float | None] = field(default_factory=list)
    percentage: list[float | None] = field(default_factory=list)
    counts: list[int | None] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)
    count: int | None = None
    producer: str = "unknown"
    runtime: str = "tensorrt"
    engine: str | None = None
    notes: list[str] = field(default_factory=list)
    records: int = 0

    def add(
        self,
        name: str,
        total: float | None,
        average: float | None = None,
        middle: float | None = None,
        percentage: float | None = None,
        count: int | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        """Append one layer."""
        self.names.append(name)
        self.total_ms.append(total)
        self.average_ms.append(average)
        self.median_ms.append(middle)
        self.percentage.append(percentage)
        self.counts.append(count)
        self.details.append(details or {})


def _time(value: object) -> float | None:
    """Return a time or share of 0 or more, None for anything else (``-nan`` of an empty profile, text)."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    number = finite(value, math.inf)
    return number if number is not None and number >= 0 else None


def _count(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return whole(value, 0, 2**62)


_FIELDS = ("name", "timeMs", "averageMs", "medianMs", "percentage", "count")


def read_profile(value: object, name: str, options: LoadOptions) -> Profile:
    """Read the shapes with ``timeMs`` and ``averageMs``.

    Raises
    ------
    TraceFormatError
        When the document is not a list.
    """
    rows = list_of(
        value,
        "layer times",
        name,
        '[{"count": N}, {"name": ..., "timeMs": ...}, ...]',
        single=True,
        hint="Write it with trtexec --exportProfile=FILE",
    )
    out = Profile()
    wrong = unusable = 0
    for row in rows:
        if not isinstance(row, dict):
            wrong += 1
            continue
        if "engine_runtime" in row:
            out.runtime = _runtime(row["engine_runtime"])
        named = row.get("name", row.get("layerName"))
        if named is None:
            if "count" in row:
                out.count = _count(row["count"])
            elif "engine_runtime" not in row:
                wrong += 1
            continue
        total, average = _time(row.get("timeMs")), _time(row.get("averageMs"))
        unusable += total is None and average is None
        extra = {k: v for k, v in row.items() if k not in _FIELDS and k != "layerName"}
        out.add(
            str(named),
            total,
            average,
            _time(row.get("medianMs")),
            _time(row.get("percentage")),
            _count(row.get("count")),
            extra,
        )
    if wrong and wrong == len(rows):
        raise TraceFormatError(
            "no layer times in it",
            path=name,
            expected='[{"count": N}, {"name": ..., "timeMs": ...}, ...]',
            found=f"{wrong} entries without a layer's name",
            hint="Write it with trtexec --exportProfile=FILE",
        )
    out.records = len(rows) - wrong
    _report(out, name, options, wrong, unusable)
    out.producer = (
        "trtexec" if out.count is not None or any(m is not None for m in out.median_ms) else "unknown"
    )
    if out.count is None and out.names and all(c is None for c in out.counts):
        _infer_count(out)
    return out


def _report(out: Profile, name: str, options: LoadOptions, wrong: int, unusable: int) -> None:
    if wrong:
        options.repaired(
            Repair("not_a_record", "entries that are no records were left out", name, count=wrong)
        )
    if unusable:
        options.repaired(
            Repair(
                "no_time", "layers whose time is not a number are listed without a time", name, count=unusable
            )
        )
    if not out.names:
        out.notes.append("the profile has no layers: the engine ran without a profiler, or reported none")


def _infer_count(out: Profile) -> None:
    """Tell the number of calls from total over average, when the rows agree on it."""
    ratios = [
        total / average
        for total, average in zip(out.total_ms, out.average_ms, strict=True)
        if total and average
    ]
    if not ratios:
        return
    count = round(median(ratios))
    # both figures are printed with six significant digits
    if count >= 1 and all(abs(ratio - count) <= max(2e-5 * count, 1e-5) for ratio in ratios):
        out.count = count
        out.notes.append(f"the number of calls ({count}) is not in the file: it is total over average time")


def _runtime(value: object) -> str:
    return "host" if isinstance(value, str) and value.lower() == "host" else "tensorrt"


def read_engine_trace(value: object, name: str, options: LoadOptions) -> list[Profile]:
    """Read a Torch-TensorRT engine trace, a list of trace events, into one profile per engine.

    Raises
    ------
    TraceFormatError
        When the document is not a list.
    """
    if isinstance(value, dict) and isinstance(value.get("traceEvents"), list):
        value = value["traceEvents"]
    events = list_of(
        value,
        "events of a Torch-TensorRT engine",
        name,
        '[{"name": ..., "ph": "X", "dur": ..., "pid": "... Engine Execution"}, ...]',
    )
    engines: dict[str, Profile] = {}
    wrong = unusable = described = 0
    for event in events:
        if not isinstance(event, dict) or "name" not in event:
            wrong += 1
            continue
        if event.get("ph") == "M":
            described += 1
            continue
        label = str(event.get("pid", ""))
        out = engines.get(label)
        if out is None:
            engine = label[: -len(ENGINE_EXECUTION)] if label.endswith(ENGINE_EXECUTION) else label
            out = engines[label] = Profile(producer="torch_tensorrt", engine=engine or None)
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        if "engine_runtime" in args:
            out.runtime = _runtime(args["engine_runtime"])
        total = _time(event.get("dur"))
        total = None if total is None else total / 1000
        unusable += total is None
        count = _count(args.get("count"))
        average = _time(args.get("averageMs"))
        if average is None and count and total is not None:
            average = total / count
        known = {k: v for k, v in args.items() if k not in ("count", "averageMs", "medianMs", "percentage")}
        out.add(
            str(event["name"]),
            total,
            average,
            _time(args.get("medianMs")),
            _time(args.get("percentage")),
            count,
            known,
        )
    found = list(engines.values()) or [Profile(producer="torch_tensorrt")]
    for out in found:
        out.records = len(out.names)
        counts = set(out.counts)
        if len(counts) == 1:
            out.count = counts.pop()
        if out.names and None in out.counts:
            out.notes.append(
                "the times are totals over every call since profiling was switched on; the trace does not "
                "say how many (one at least), so there are no averages"
            )
    found[0].records += described
    _report(found[0], name, options, wrong, unusable)
    return found


def read_readings(value: object, name: str, options: LoadOptions) -> Profile:
    """Read ``{layer: [ms, ...]}`` or ``{layer: [[ms, when], ...]}``.

    Raises
    ------
    TraceFormatError
        When the document is no mapping.
    """
    if not isinstance(value, dict):
        raise TraceFormatError(
            "no layer readings in it", path=name, expected="{layer: [ms, ...]}", found=type(value).__name__
        )
    out = Profile(producer="iprofiler")
    wrong = 0
    for layer, readings in value.items():
        times, when = [], []
        for reading in readings if isinstance(readings, list) else [readings]:
            pair = reading if isinstance(reading, list) else [reading]
            time = _time(pair[0]) if pair else None
            if time is None:
                wrong += 1
                continue
            times.append(time)
            when.append(pair[1] if len(pair) > 1 else None)
        total = math.fsum(times) if times else None
        out.records += len(times)
        details: dict[str, Any] = {"readings_ms": times}
        if any(w is not None for w in when):
            details["reported_at"] = when
        out.add(
            str(layer),
            total,
            None if total is None else total / len(times),
            median(times) if times else None,
            None,
            len(times),
            details,
        )
    if wrong:
        options.repaired(Repair("no_time", "readings that are no times were left out", name, count=wrong))
    counts = {c for c in out.counts if c}
    out.count = counts.pop() if len(counts) == 1 else None
    if len(counts) > 1:
        out.notes.append("the layers have different numbers of readings")
    return out
