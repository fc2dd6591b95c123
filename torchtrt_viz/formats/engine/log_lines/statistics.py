"""What trtexec prints of the runs that it timed, from TensorRT 5 to 11.

::

    Average over 10 runs is 25.9 ms (host walltime is 26.1 ms, 99% percentile time is 25.97).   (5, 6)
    Average on 10 runs - GPU latency: 3.1 ms - Host latency: 3.6 ms (end to end 6.1 ms, enqueue 0.5 ms)
    Average on 10 runs - GPU latency: 3.1 ms - Host latency: 3.6 ms (enqueue 0.5 ms)            (from 8.4)
    Host Latency                                                                                (7)
    min: 3.4 ms (end to end 3.9 ms)
    percentile: 3.8 ms at 99% (end to end 6.9 ms at 99%)
    throughput: 383.698 qps
    Latency: min = 0.49 ms, max = 0.5 ms, mean = 0.49 ms, median = 0.49 ms, percentile(99%) = 0.5 ms

Every figure is named by the word beside it, never by its place: the enqueue times of TensorRT 7 have no mean.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

__all__ = ["HEADS", "SCALARS", "TIMES_OF_ENGINE", "Statistics"]

#: What is said of the engine before it runs.
TIMES_OF_ENGINE = frozenset({"build_s", "load_s"})

#: Head of a line or block of figures -> name in ``EngineInfo.performance``.
HEADS = {
    "latency": "latency_ms",
    "host latency": "latency_ms",
    "end-to-end host latency": "end_to_end_ms",
    "enqueue time": "enqueue_ms",
    "h2d latency": "h2d_ms",
    "gpu compute time": "gpu_compute_ms",
    "gpu compute": "gpu_compute_ms",
    "d2h latency": "d2h_ms",
}
#: Head of a single figure -> name, in qps or s.
SCALARS = {
    "throughput": "throughput_qps",
    "total host walltime": "host_walltime_s",
    "walltime": "host_walltime_s",
    "total gpu compute time": "gpu_compute_s",
    "total compute time": "gpu_compute_s",
}
_END_TO_END = "end_to_end_ms"
_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
_VALUE = r"([-+]?[\w.]+(?:[eE][-+]?\d+)?)"
_NAME = r"(min|max|mean|average|avg|median|percentile ?\( ?([\d.]+) ?%\))"
_ONE_LINE = re.compile(rf"{_NAME} = {_VALUE} (ms|us|s)\b")
_OF_BLOCK = re.compile(
    rf"(?:{_NAME}|percentile): {_VALUE} (ms|us|s)\*?(?: at ([\d.]+)%)?"
    rf"(?: \(end to end {_VALUE} (ms|us|s)\*?(?: at ([\d.]+)%)?\))?$",
    re.IGNORECASE,
)
_SCALAR = re.compile(rf"([A-Za-z][\w ]*): {_VALUE} (qps|ms|s)\b")
_AVERAGES = re.compile(r"Average (?:on|over) (\d{1,12}) runs\b(.*)", re.IGNORECASE)
#: Figures of an average line: what stands in front of the number -> name.
_AVERAGE = (
    ("gpu_compute_ms", re.compile(rf"(?:GPU latency: |^ is ){_VALUE} ms")),
    ("latency_ms", re.compile(rf"Host latency: {_VALUE} ms")),
    ("end_to_end_ms", re.compile(rf"end to end {_VALUE} ms")),
    ("enqueue_ms", re.compile(rf"enqueue {_VALUE} ms")),
    ("host_walltime_ms", re.compile(rf"host walltime is {_VALUE} ms")),
    ("percentile_ms", re.compile(rf"% percentile time is {_VALUE}")),
)
_QUERIES = re.compile(r"(Warmup completed|Timing trace has) (\d{1,12}) queries over ([\d.]+) (?:ms|s)\b")
_ENGINE = re.compile(
    rf"Engine (built|generated|generation completed|loaded|deserialized|deserialization completed) in "
    rf"{_VALUE} (?:sec|seconds)\b"
)
_PERCENT_OF_AVERAGE = re.compile(r"([\d.]+)% percentile time")


class Statistics:
    """Collects what the lines say, one mapping per run of trtexec.

    Attributes
    ----------
    runs
        For each run the shape of ``EngineInfo.performance``.
    lines
        Sort of line -> how many were read.
    unread
        Sort of line -> how many hold figures and could not be read.
    """

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.lines: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self.no_throughput = 0
        self._run: dict[str, Any] = {}
        self._head: str | None = None

    @property
    def in_block(self) -> bool:
        """Whether the head of a block of figures was read, and nothing else since."""
        return self._head is not None

    def new_run(self) -> None:
        """Begin another run of trtexec: what comes is not about the one before."""
        self._head = None
        if self._run:
            self.runs.append(self._run)
        self._run = {}

    def take(self, content: str) -> bool:
        """Take a line; return whether it is one of these."""
        return (
            self._one_line(content)
            or self._block(content)
            or self._averages(content)
            or self._queries(content)
            or self._scalar(content)
            or self._engine(content)
            or self._left_block()
        )

    def _left_block(self) -> bool:
        self._head = None
        return False

    def _hold(self, key: str, value: Any) -> None:
        """Keep what a run has once; a second time it is another run's."""
        if key in self._run:
            head = self._head
            self.new_run()
            self._head = head
        self._run[key] = value

    def _one_line(self, content: str) -> bool:
        head, colon, rest = content.partition(": ")
        if not colon or " = " not in rest or not (found := _ONE_LINE.findall(rest)):
            return False
        figures: dict[str, float] = {}
        for name, percent, text, unit in found:
            _put(figures, _named(name, percent), text, unit)
        self._hold(HEADS.get(head.strip().lower(), head.strip()), figures)
        self.lines["statistics"] += 1
        return True

    def _block(self, content: str) -> bool:
        plain = content.rstrip(":").strip().lower()
        if plain in HEADS:
            self._head = HEADS[plain]
            self._hold(self._head, {})
            self.lines["statistics"] += 1
            return True
        found = _OF_BLOCK.match(content)
        if found is None:
            return False
        name, percent, text, unit, at, end_text, end_unit, end_at = found.groups()
        if self._head is None:
            # the head is missing, as in what grep leaves of a log: nothing says what these are times of
            self.unread["statistics without a head"] += 1
            return True
        _put(self._run[self._head], _named(name, percent or at), text, unit)
        if end_text is not None:
            _put(self._run.setdefault(_END_TO_END, {}), _named(name, percent or end_at), end_text, end_unit)
        self.lines["statistics"] += 1
        return True

    def _averages(self, content: str) -> bool:
        found = _AVERAGES.match(content)
        if found is None:
            return False
        row: dict[str, float] = {"runs": int(found.group(1))}
        for name, pattern in _AVERAGE:
            figure = pattern.search(found.group(2))
            if figure is not None:
                _put(row, name, figure.group(1), "ms")
        if (percent := _PERCENT_OF_AVERAGE.search(content)) is not None and "percentile_ms" in row:
            row[f"p{percent.group(1)}_ms"] = row.pop("percentile_ms")
        if len(row) == 1:
            self.unread["averages"] += 1
            return True
        self._run.setdefault("averages", []).append(row)
        self.lines["averages"] += 1
        return True

    def _queries(self, content: str) -> bool:
        found = _QUERIES.match(content)
        if found is None:
            return False
        warm = found.group(1).lower().startswith("warmup")
        self._hold("warmup_queries" if warm else "queries", int(found.group(2)))
        self.lines["queries"] += 1
        return True

    def _scalar(self, content: str) -> bool:
        found = _SCALAR.match(content)
        key = None if found is None else SCALARS.get(found.group(1).strip().lower())
        if found is None or key is None:
            return False
        value = _number(found.group(2))
        if value is not None and found.group(3) == "ms":
            value /= 1e3
        self.lines["totals"] += 1
        if value == 0 and key == "throughput_qps":
            # TensorRT 7 multiplies by the batch, which is 0 for networks of explicit batch
            self.no_throughput += 1
        elif value is not None:
            self._hold(key, value)
        return True

    def _engine(self, content: str) -> bool:
        found = _ENGINE.match(content)
        value = None if found is None else _number(found.group(2))
        if found is None or value is None:
            return False
        key = "load_s" if found.group(1).startswith(("load", "deser")) else "build_s"
        self._run[key] = value
        self.lines["totals"] += 1
        return True


def _named(name: str | None, percent: str | None) -> str:
    low = (name or "percentile").lower()
    if low.startswith("percentile"):
        return "percentile" if percent is None else f"p{percent}"
    return "mean" if low in ("average", "avg") else low


def _put(figures: dict[str, float], name: str, text: str, unit: str) -> None:
    value = _number(text)
    if value is not None:
        figures[name] = value * _MS[unit]


def _number(text: str) -> float | None:
    """Return a finite number, None for what is none: trtexec prints inf and nan for runs without queries."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
