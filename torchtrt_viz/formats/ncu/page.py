"""The text of a page as kernels with their metrics."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torchtrt_viz.formats.ncu.numbers import decimal_comma, number

__all__ = ["Kernel", "Metric", "Page", "page_of"]

_FIRST = ("Process ID", "Process Name", "Host Name")
_KERNEL: tuple[str, ...] = (
    "ID",
    *_FIRST,
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
)
_KERNEL += ("Device", "CC", "Invocations")
_METRIC = ("Section Name", "Metric Name", "Metric Unit", "Metric Value", "Minimum", "Maximum", "Average")
_RULE = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
_NVTX = re.compile(r"(thread|Id)\b.*Domain:", re.IGNORECASE)
_SAID = re.compile(r"==(PROF|ERROR|WARNING)== (.*)")
_PASSES = re.compile(r'Profiling "[^"]*" - (\d{1,9}): .*?(\d{1,9}) pass(?:es)?')
_MOST_LINES = 64
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Metric:
    """One metric of a kernel: its value as printed, and as a number where it is one."""

    section: str
    name: str
    unit: str
    text: str
    value: float | None


@dataclass
class Kernel:
    """One profiled execution of a kernel, or the sum of several (``invocations``)."""

    said: dict[str, str]
    metrics: list[Metric] = field(default_factory=list)


@dataclass
class Page:
    """What a file holds.

    Attributes
    ----------
    layout
        "raw" (a column per metric), "list" (a row per metric) or "summary"; None without a header.
    rows
        Records behind a header that are of the page; ``other_rows`` those of another form, which are the
        program's own output or damage.
    """

    kernels: list[Kernel] = field(default_factory=list)
    layout: str | None = None
    rows: int = 0
    units: int = 0
    rules: int = 0
    other_rows: int = 0
    first_other: int = 0
    passes: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    truncated: bool = False


def _records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (offset of the line, fields): a record ends where its quotes are closed."""
    at = 0
    lines = text.split("\n")
    row = 0
    while row < len(lines):
        begin, many = at, 1
        line = lines[row]
        while line.count('"') % 2 and many < _MOST_LINES and row + many < len(lines):
            line += "\n" + lines[row + many]
            many += 1
        if line.count('"') % 2:  # no record: the program's own output, or cut
            line, many = lines[row], 1
        at += sum(len(each) + 1 for each in lines[row : row + many])
        row += many
        yield begin, _fields(line)


def _fields(line: str) -> list[str]:
    line = line.removesuffix("\r")
    if len(line) > _LONGEST:
        return []
    try:
        return next(csv.reader([line.replace("\r", " ")]), [])
    except csv.Error:
        return []


def page_of(text: str) -> Page:
    """Read the text of a page."""
    page = Page()
    header: list[str] | None = None
    units: Sequence[str] = ()
    raw: list[tuple[int, dict[str, str], Sequence[str]]] = []
    for offset, fields in _records(text.removeprefix("\ufeff")):
        if len(fields) == 1 or not fields:
            _note(page, fields[0] if fields else "", header is not None, offset)
        elif _is_header(fields):
            header, units = fields, ()
            page.layout = page.layout or _layout(fields)
        elif header is None:
            _note(page, ",".join(fields), False, offset)
        elif len(fields) != len(header):
            _other(page, offset)
        elif _layout(header) == "raw" and not fields[header.index("Kernel Name")].strip():
            units = fields
            page.units += 1
        else:
            raw.append((offset, dict(zip(header, fields, strict=True)), units))
    _kernels(page, raw)
    last = text.rstrip("\r\n").rpartition("\n")[2]
    page.truncated = header is not None and last.count('"') % 2 == 1
    return page


def _is_header(fields: Sequence[str]) -> bool:
    at = 1 if fields[0] == "ID" else 0
    return tuple(fields[at : at + 3]) == _FIRST and "Kernel Name" in fields


def _layout(header: Sequence[str]) -> str:
    if "Metric Name" in header:
        return "list" if "Metric Value" in header else "summary"
    return "raw"


def _note(page: Page, line: str, behind_header: bool, offset: int) -> None:
    """Keep what the tool says; of the program's output only that it is there."""
    said = _SAID.match(line.strip())
    if said is not None:
        if said[1] == "ERROR":
            page.errors.append(said[2][:1000])
        elif said[1] == "WARNING":
            page.warnings.append(said[2][:1000])
        passes = _PASSES.search(said[2])
        if passes is not None:
            page.passes[passes[1]] = int(passes[2])
    elif behind_header and line.strip():
        _other(page, offset)


def _other(page: Page, offset: int) -> None:
    if page.other_rows == 0:
        page.first_other = offset
    page.other_rows += 1


def _kernels(page: Page, raw: Sequence[tuple[int, dict[str, str], Sequence[str]]]) -> None:
    """Make kernels of the records; those of one kernel follow one another, or have its id."""
    comma = decimal_comma(value for _, row, _ in raw for value in _values(row))
    known: dict[tuple[str, ...], Kernel] = {}
    for offset, row, units in raw:
        said = {key: row[key].strip() for key in _KERNEL if key in row}
        if not said.get("Kernel Name"):
            _other(page, offset)
            continue
        if "ID" in said and not said["ID"].isdigit():
            _other(page, offset)
            continue
        page.rows += 1
        key: tuple[str, ...] = (
            said.get("ID", ""),
            said.get("Process ID", ""),
            said.get("Host Name", ""),
            said["Kernel Name"],
        )
        if "ID" not in said:  # of a summary: one per device, grid and block
            key += tuple(
                said.get(each, "") for each in ("Device", "Grid Size", "Block Size", "Context", "Stream")
            )
        kernel = known.get(key)
        if kernel is None:
            kernel = known[key] = Kernel(said)
            page.kernels.append(kernel)
        if "Metric Name" in row:
            if row["Metric Name"].strip():
                kernel.metrics.append(_metric(row, comma))
            else:
                page.rules += 1
            continue
        of_unit = dict(zip(row, units, strict=False))
        for name, value in row.items():
            if name not in _KERNEL and not _NVTX.match(name) and value.strip():
                unit = of_unit.get(name, "").strip()
                kernel.metrics.append(Metric("", name, unit, value.strip(), number(value, comma)))


def _values(row: Mapping[str, str]) -> Iterator[str]:
    if "Metric Name" in row:
        yield row.get("Metric Value") or row.get("Average") or ""
    else:
        yield from (value for name, value in row.items() if name not in _KERNEL)


def _metric(row: Mapping[str, str], comma: bool) -> Metric:
    text = (row.get("Metric Value") or row.get("Average") or "").strip()
    return Metric(
        row.get("Section Name", "").strip(),
        row["Metric Name"].strip(),
        row.get("Metric Unit", "").strip(),
        text,
        number(text, comma),
    )
