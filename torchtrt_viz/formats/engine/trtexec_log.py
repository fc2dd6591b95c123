"""What a log tells of an engine: trtexec's sections and tables, inspector text, lines of a user's profiler.

Recognised are

- sections ``=== Inference Options ===`` and the like;
- averages and the performance summary of timed runs (:mod:`.log_lines.statistics`, TensorRT 5 to 11);
- the layer table of ``--dumpProfile``, with the layer's name first (to TensorRT 9) or last (from 10);
- layer information as one line per layer (``Name: a, LayerType: kgen, Inputs: [...], ...``), or as JSON
  between other lines;
- ``Timing:   12.768us -> layer`` and ``layer: 0.0128ms``, as Python programs print from an IProfiler.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from torchtrt_viz.formats.engine.log_lines.inspector_text import parse_layer_line
from torchtrt_viz.formats.engine.log_lines.marks import LONGEST_LINE, NAME_TIME
from torchtrt_viz.formats.engine.log_lines.statistics import Statistics
from torchtrt_viz.formats.engine.trex_profile import Profile

__all__ = ["OF_LINES", "Log", "parse_log"]

#: What is left out of a log.
OF_LINES = ("lines of more than 1 MiB", "rows of a layer table without its columns")

_PREFIX = re.compile(
    r"(?:\x1b\[[\d;]*m)*(?:\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] ?)?(?P<marks>(?:\[(?:TRT|[VIWEF])\] ?){0,2})"
)
_STAMP_WITHIN = re.compile(r"(?<=[^\s\]])(?=\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[[VIWEF]\])")
_ANSI_END = re.compile(r"(?:\x1b\[[\d;]*m)+$")
_SECTION = re.compile(r"=== (.+?) ===")
_PROFILE_SECTION = re.compile(r"Profile(?: \((\d{1,15}) iterations ?\))?")
_RUNNING = re.compile(r"&&&& RUNNING\b")
_TACTIC = re.compile(r"Tactic(?: Name)?: .*\bTime: [\d.eE+-]+")
_ANY_TIME = re.compile(r"(?<![\w.])[\d.]+(?:[eE][+-]?\d+)? ?(?:us|ms|sec|seconds|milliseconds|qps|s)\b")
_TIMING = re.compile(r"Timing:\s*([\d.]+)\s*us -> (.*)")
_NUMBERS_FIRST = re.compile(r"\s*((?:[\d.]+%?\s+){3,4})(\S.*)")
_NUMBERS_LAST = re.compile(r"((?:\s+[\d.]+%?){3,4})\s*$")
_OPTION_SECTIONS = {
    "model options": "model_options",
    "build options": "build_options",
    "inference options": "inference_options",
    "reporting options": "reporting_options",
    "system options": "system_options",
    "device information": "device",
}


@dataclass
class Log:
    """Contents of one log.

    ``runs`` has an entry per run of trtexec: its sections of options, and its figures under ``performance``.
    ``lines`` counts the lines that were read by their sort,
    ``unread`` those with times or rates that were not, ``left_out`` those that could not be.
    """

    runs: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    layers: list[dict[str, Any]] = field(default_factory=list)
    bindings: list[str] = field(default_factory=list)
    version: str | None = None
    lines: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    no_throughput: int = 0


def parse_log(text: str) -> Log:
    """Read everything that is known from the lines of a log."""
    out = Log()
    reader = _Lines(out)
    for line in text.split("\n"):  # splitlines() would also split at the 0x1E in Metadata
        if len(line) <= LONGEST_LINE:
            # lines that were pasted together without their ends
            for part in _STAMP_WITHIN.split(line) if line.count("] [") > 1 else (line,):
                reader.take(part.rstrip("\r"))
        else:
            out.left_out[OF_LINES[0]] += 1
    reader.end_block()
    statistics = reader.statistics
    reader.end_run()
    out.lines.update(statistics.lines)
    out.unread.update(statistics.unread)
    out.no_throughput = statistics.no_throughput
    return out


class _Lines:
    """Line by line, with what the present section or table is."""

    def __init__(self, out: Log) -> None:
        self._out = out
        self._section: dict[str, Any] | None = None
        self._table: Profile | None = None
        self._names_first = False
        self._in_bindings = False
        self._block: dict[str, list[float]] = {}
        self._block_lines = 0
        self._sections: dict[str, dict[str, Any]] = {}
        self._figures = 0  # runs whose figures are in the log's runs
        self.statistics = Statistics()

    def end_run(self) -> None:
        """Keep what the lines of a run of trtexec say; figures without options may be of several."""
        self.statistics.new_run()
        figures = self.statistics.runs[self._figures :]
        self._figures = len(self.statistics.runs)
        first, *others = figures or [{}]
        whole = {**self._sections, **({"performance": first} if first else {})}
        self._out.runs += [run for run in (whole, *({"performance": other} for other in others)) if run]
        self._section, self._sections = None, {}

    def take(self, line: str) -> None:
        prefix = _PREFIX.match(line)
        assert prefix is not None
        bare = prefix.end() == 0
        # trtexec prints what is its own as information; other marks are the library's, or of another level
        own = prefix["marks"].strip() in ("", "[I]")
        content = line[prefix.end() :].rstrip()
        if content.endswith("m"):
            content = _ANSI_END.sub("", content).rstrip()
        if bare and not self.statistics.in_block and self._layer_time(content):
            return
        if self._block:
            self.end_block()
        if content.startswith("=== "):
            self._open_section(content)
        elif self._table is not None:
            self._table_row(content)
        elif content.startswith("Name: ") and (layer := parse_layer_line(content)) is not None:
            self._out.layers.append(layer)
            self._out.lines["layers"] += 1
        elif content == "Bindings:":
            self._in_bindings = bool(self._out.layers)
        elif self._in_bindings:
            self._in_bindings = bool(content)
            if content:
                self._out.bindings.append(content)
                self._out.lines["bindings"] += 1
        elif _RUNNING.match(content):
            self.end_run()
        elif self.statistics.take(content):
            self._section = None
        elif not (own and self._option(content)):
            self._unread(content)
        if content.startswith("TensorRT version: "):
            self._out.version = content[len("TensorRT version: ") :]

    def _unread(self, content: str) -> None:
        """Count what holds a time or a rate and was not read."""
        if _TACTIC.search(content):
            self._out.unread["times of tactics, from building the engine"] += 1
        elif _ANY_TIME.search(content):
            self._out.unread["other lines with times"] += 1

    def _open_section(self, content: str) -> None:
        self._section, self._table = None, None
        self.statistics.take("")  # a block of figures ends here
        found = _SECTION.match(content)
        if found is None:
            return
        title = found.group(1)
        profile = _PROFILE_SECTION.match(title)
        if profile is not None:
            self._table = Profile(
                producer="trtexec", count=int(profile.group(1)) if profile.group(1) else None
            )
        elif title.lower() in _OPTION_SECTIONS:
            self._section = self._sections.setdefault(_OPTION_SECTIONS[title.lower()], {})

    def _option(self, content: str) -> bool:
        """Take a line of a section of options; a line that cannot be one ends the section."""
        if self._section is None:
            return False
        key, colon, value = content.partition(":")
        if not colon:
            # sections end with an empty line or another text, save that of the device, which has two parts
            if content or self._section is not self._sections.get("device"):
                self._section = None
            return False
        self._section[key.strip()] = value.strip()
        self._out.lines["options"] += 1
        return True

    # -- tables ----------------------------------------------------------------------------------------

    def _table_row(self, content: str) -> None:
        table = self._table
        assert table is not None
        if not content.strip():
            self._close_table()
            return
        if "Layer" in content and "Time" in content and "(ms)" in content:
            self._names_first = content.strip().startswith("Layer")
            return
        if self._names_first:
            numbers = _NUMBERS_LAST.search(content)
            name = content[: numbers.start()].strip() if numbers else ""
        else:
            numbers = _NUMBERS_FIRST.fullmatch(content)
            name = numbers.group(2).strip() if numbers else ""
        values = [] if numbers is None else [_number(v.rstrip("%")) for v in numbers.group(1).split()]
        if not values or any(v is None for v in values):
            self._out.left_out[OF_LINES[1]] += 1
            return
        self._out.lines["layer times"] += 1
        total, average, *middle, share = values
        if name == "Total":
            self._close_table()
            return
        table.add(name, total, average, middle[0] if middle else None, share, table.count)

    def _close_table(self) -> None:
        if self._table is not None and self._table.names:
            self._table.notes.append(
                "the times come from a printed table: totals to 0.01 ms, layers without time left out"
            )
            self._out.profiles.append(self._table)
            self._table = None

    def _layer_time(self, content: str) -> bool:
        """Take a line that a user's profiler printed; consecutive ones are one run of an engine."""
        timing = _TIMING.fullmatch(content)
        if timing is not None:
            name, milliseconds = timing.group(2), _number(timing.group(1))
            milliseconds = None if milliseconds is None else milliseconds / 1000
        else:
            named = NAME_TIME.fullmatch(content) if self._section is None and self._table is None else None
            if named is None:
                return False
            name, milliseconds = named.group(1), _number(named.group(2))
        if milliseconds is None:
            return False
        self._block.setdefault(name, []).append(milliseconds)
        self._block_lines += 1
        return True

    def end_block(self) -> None:
        """Close tables and blocks that the end of the log, or another line, ends."""
        self._close_table()
        if self._block_lines >= 2 or (self._block and not self._out.profiles):
            profile = Profile(producer="iprofiler")
            for name, times in self._block.items():
                profile.add(
                    name,
                    sum(times),
                    sum(times) / len(times),
                    median(times),
                    None,
                    len(times),
                    {"readings_ms": times},
                )
            counts = set(profile.counts)
            profile.count = counts.pop() if len(counts) == 1 else None
            self._out.profiles.append(profile)
            self._out.lines["layer times"] += self._block_lines
        elif self._block:
            self._out.unread["a single layer time"] += self._block_lines
        self._block, self._block_lines = {}, 0


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
