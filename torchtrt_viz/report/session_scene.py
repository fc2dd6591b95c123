"""Which recordings of a session a page's timeline shows, and how they are placed beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import pandas as pd

from torchtrt_viz.errors import OptionError, TraceFormatError
from torchtrt_viz.report.strips import rank_label
from torchtrt_viz.scene.scene import Part, Scene

if TYPE_CHECKING:
    from torchtrt_viz.model.session_data import SessionData
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Align", "choose_rows", "session_scene"]

Align = Literal["start", "clock"] | Mapping[str, int] | None
_MOSTLY_EMPTY = 20
_KEYS = ("session", "rank", "role", "instance", "host")


def choose_rows(session: SessionData, stragglers: pd.DataFrame, limit: int) -> list[int]:
    """Choose rows of ``session.ranks``: of every role in turn the slowest, then the fastest, and so on."""
    ranks = session.ranks
    order = {_key(row): position for position, row in enumerate(stragglers.to_dict("records"))}
    roles: dict[object, list[tuple[int, int]]] = {}
    for row, record in enumerate(ranks.to_dict("records")):
        if record["state"] != "missing" and record["what"] in ("trace", "partial"):
            role = None if pd.isna(record["role"]) else record["role"]
            roles.setdefault(role, []).append((order.get(_key(record), len(order)), row))
    queues = [[row for _, row in sorted(rows)] for rows in roles.values()]
    chosen: list[int] = []
    turn = 0
    while len(chosen) < limit and any(queues):
        for queue in queues:
            if queue and len(chosen) < limit:
                chosen.append(queue.pop(0 if turn % 2 == 0 else -1))
        turn += 1
    return sorted(chosen)


def _key(record: dict[object, object]) -> tuple[object, ...]:
    return tuple(None if pd.isna(record[key]) else record[key] for key in _KEYS)  # type: ignore[call-overload]


def session_scene(session: SessionData, rows: Sequence[int], align: Align) -> tuple[Scene | None, str]:
    """Build the timeline of some recordings.

    Parameters
    ----------
    rows
        Rows of ``session.ranks``.
    align
        None: recordings of one host are placed by that host's clock, others begin at 0 each. "start": each
        begins at 0. "clock": by the wall clocks as they are. A mapping from host to nanoseconds: by the wall
        clocks, these added.

    Returns
    -------
    tuple
        The scene (None when none of the recordings can be read), and words about the placing.

    Raises
    ------
    OptionError
        When clocks are asked for and a recording has none.
    """
    ranks = session.ranks
    traces: list[TraceData] = []
    hosts: list[str | None] = []
    labels: list[str] = []
    sessions = ranks["session"].nunique(dropna=False) > 1
    several = ranks["cycle"].nunique(dropna=True) > 1
    for row in rows:
        record = ranks.iloc[row]
        try:
            traces.append(session.trace(row=row))
        except TraceFormatError:
            continue  # it stands among the damaged ones
        hosts.append(None if pd.isna(record["host"]) else str(record["host"]))
        labels.append(rank_label(record, sessions, several))
    if not traces:
        return None, ""
    if len(set(labels)) < len(labels):
        labels = [f"{label} #{number}" for number, label in enumerate(labels)]
    shifts, note = _shifts(traces, hosts, align)
    parts = [Part(*part) for part in zip(traces, shifts, labels, strict=True)]
    return Scene(parts, note), note


def _far_apart(traces: list[TraceData], bases: list[int]) -> bool:
    """Whether an axis that holds all of them would be mostly empty."""
    spans = [(base, trace.measured) for base, trace in zip(bases, traces, strict=True)]
    begins = [base + int(rows["start_ns"].min()) for base, rows in spans if len(rows)]
    lengths = [trace.duration_ns or 0 for trace in traces]
    ends = [begin + length for begin, length in zip(begins, [n for n in lengths if n], strict=False)]
    return bool(begins) and max(ends, default=0) - min(begins) > _MOSTLY_EMPTY * max(lengths)


def _shifts(traces: list[TraceData], hosts: list[str | None], align: Align) -> tuple[list[int], str]:
    bases = [trace.meta.get("base_ns") for trace in traces]
    known = [int(base) for base in bases if base is not None]
    clocks = len(known) == len(traces)
    one_host = clocks and None not in hosts and len(set(hosts)) == 1
    if align is None and len(traces) > 1 and one_host and not _far_apart(traces, known):
        return [base - min(known) for base in known], "placed by the clock of their one host"
    if align in (None, "start"):
        why = ""
        if align is None and len(traces) > 1:
            why = ": clocks of different hosts are not aligned unless you say how"
            if not clocks:
                why = ": not all of them record a wall clock"
            elif None in hosts:
                why = ": not all of them say on which host they were made"
            elif one_host:
                why = ": they were made at different times"
        firsts = [int(trace.measured["start_ns"].min()) if len(trace.measured) else 0 for trace in traces]
        note = "each recording begins at 0" + why if len(traces) > 1 else ""
        return [-first for first in firsts], note
    if not clocks:
        raise OptionError("align", align, "'start': not all of the recordings record a wall clock")
    if align == "clock":
        return [b - min(known) for b in known], "placed by their hosts' wall clocks, which are not corrected"
    if not isinstance(align, Mapping):
        raise OptionError("align", align, "None, 'start', 'clock', or nanoseconds to add by host")
    lacking = sorted({str(host) for host in hosts if host not in align})
    if lacking:
        raise OptionError("align", dict(align), f"an entry for each host; none for {', '.join(lacking[:5])}")
    moved = [base + int(align[str(host)]) for base, host in zip(known, hosts, strict=True)]
    return [m - min(moved) for m in moved], "placed by their hosts' wall clocks, corrected as you gave it"
