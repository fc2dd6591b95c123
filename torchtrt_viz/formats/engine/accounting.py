"""What became of every record, key and line of the files of an engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.formats.engine.trtexec_log import OF_LINES, Log
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LEFT_OUT", "Tally", "accounting_of", "entries_of", "mended", "tally_of_log"]

#: Repairs that leave records of a document out.
LEFT_OUT = ("not_a_record", "not_a_layer", "left_out")
#: Repairs that leave something out, or say what could not be known: all others mend what is read.
_NO_MENDING = frozenset(
    {
        "dropped",
        "empty_form",
        "left_out",
        "no_throughput",
        "no_time",
        "not_a_layer",
        "not_a_record",
        "text_around",
        "unread_lines",
    }
)


@dataclass
class Tally:
    """What became of one file: ``in_file`` is ``read``, ``left_out`` and ``unread`` together.

    ``unit`` says what is counted: records (entries of a list, or values of a mapping) or lines.
    """

    source: str
    kind: str
    unit: str
    in_file: int
    read: int
    repaired: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)


def mended(repairs: Iterable[Repair]) -> int:
    """Count what was mended by these repairs."""
    return sum(repair.count for repair in repairs if repair.code not in _NO_MENDING)


def entries_of(kind: str, value: object) -> int:
    """Count the records of a document of one of `files.KINDS`."""
    if kind == "metadata" and isinstance(value, dict):
        return sum(len(section) if isinstance(section, dict) else 1 for section in value.values())
    if kind == "readings" and isinstance(value, dict):
        return sum(len(times) if isinstance(times, list) else 1 for times in value.values())
    if isinstance(value, dict) and isinstance(value.get("traceEvents"), list):
        value = value["traceEvents"]
    return len(value) if isinstance(value, list) else 1


def tally_of_log(log: Log, name: str, options: LoadOptions, mended_before: int) -> Tally:
    """Say what became of the lines of a log that hold data; what was not read becomes a warning.

    Nothing is damaged by a line that this package does not know, so that strict loading takes it.
    """
    for what, count in log.left_out.items():
        if what in OF_LINES:
            options.warnings.append(Repair("left_out", f"left out of the log: {what}", name, count=count))
    for what, count in log.unread.items():
        options.warnings.append(
            Repair("unread_lines", f"lines of the log were not read: {what}", name, count=count)
        )
    if log.no_throughput:
        options.warnings.append(
            Repair(
                "no_throughput",
                "trtexec prints a throughput of 0 qps for networks of explicit batch: it is not known",
                name,
                count=log.no_throughput,
            )
        )
    read, left_out, unread = (sum(part.values()) for part in (log.lines, log.left_out, log.unread))
    return Tally(
        name,
        "log",
        "lines",
        read + left_out + unread,
        read,
        mended_before,
        dict(log.left_out),
        dict(log.unread),
    )


def accounting_of(tallies: list[Tally], spans: pd.DataFrame, unreadable: int) -> dict[str, Any]:
    """Return ``trace.meta["accounting"]``: sums over the files, and under ``files`` each by itself."""

    def total(name: str) -> dict[str, int]:
        out: dict[str, int] = {}
        for tally in tallies:
            for what, count in getattr(tally, name).items():
                out[what] = out.get(what, 0) + count
        return out

    return {
        "unit": "records, and lines of logs",
        "in_file": sum(tally.in_file for tally in tallies),
        "read": sum(tally.read for tally in tallies),
        "repaired": sum(tally.repaired for tally in tallies),
        "left_out": total("left_out"),
        "unread": total("unread"),
        "unreadable_files": unreadable,
        "files": [vars(tally) for tally in tallies],
        "rows": {"spans": len(spans)},
        "span_ns": int(np.sum(spans["dur_ns"].to_numpy(), dtype=np.float64)),
    }
