"""Everything about one span: fields, details, what is around and inside it, and what launched what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.links import launches, operator_rows, operators_of
from torchtrt_viz.errors import OptionError
from torchtrt_viz.evidence.envelope import Sheet
from torchtrt_viz.model.schema import SPANS

if TYPE_CHECKING:
    from torchtrt_viz.trace import Trace

__all__ = ["span_facts"]

_MOST = 20
_DEEPEST = 64


def span_facts(trace: Trace, row: int, expression: str) -> tuple[dict[str, Any], list[Sheet]]:
    """Return facts and tables about row ``row`` of ``trace.spans``.

    Raises
    ------
    OptionError
        For a row that there is not.
    """
    spans = trace.spans
    if isinstance(row, bool) or not 0 <= row < len(spans):
        raise OptionError("row", row, f"a row of trace.spans, 0 to {len(spans) - 1}")
    parent = spans["parent"].to_numpy()
    around: list[int] = []
    at = int(parent[row])
    while at >= 0 and len(around) < _DEEPEST:
        around.append(at)
        at = int(parent[at])
    inside = np.flatnonzero(parent == row)
    longest = inside[np.argsort(-spans["dur_ns"].to_numpy()[inside], kind="stable")][:_MOST]
    facts: dict[str, Any] = {
        "track": str(trace.tracks["label"].iloc[int(spans["track"].iloc[row])]),
        "end_ns": _end(trace, row),
        "args": trace.args[row] if len(trace.args) else {},
        "children": len(inside),
    }
    links, linked = _links(trace, row)
    facts |= links
    sheets = [_sheet(trace, expression, "span", [row])]
    for name, rows in (("around", around), ("inside, the longest", longest.tolist()), ("linked", linked)):
        if rows:
            sheets.append(_sheet(trace, expression, name, rows))
    return facts, sheets


def _sheet(trace: Trace, expression: str, name: str, rows: list[int]) -> Sheet:
    return Sheet("spans", trace.spans.loc[rows], SPANS, name, f"{expression}.spans.loc[{rows!r}]")


def _end(trace: Trace, row: int) -> int | None:
    """Return when it ended; None for a sum over calls, which has no place on the time axis."""
    start = trace.spans["start_ns"].iloc[row]
    return None if pd.isna(start) else int(start) + int(trace.spans["dur_ns"].iloc[row])


def _links(trace: Trace, row: int) -> tuple[dict[str, Any], list[int]]:
    """Return which call and operator launched a piece of device work, or what a call launched."""
    work = device_work(trace)
    found = launches(trace, work)
    facts: dict[str, Any] = {}
    linked: list[int] = []
    piece = np.flatnonzero(work.row == row)
    if len(piece):
        host = int(found.host[piece[0]])
        operator = int(operators_of(trace, found, operator_rows(trace))[piece[0]])
        facts["launched_by_row"] = host if host >= 0 else None
        facts["operator_row"] = operator if operator >= 0 else None
        if host >= 0:
            spans = trace.spans
            begun = int(spans["start_ns"].iloc[host]) + int(spans["dur_ns"].iloc[host])
            facts["launch_delay_ns"] = int(spans["start_ns"].iloc[row]) - begun
        linked += [number for number in (host, operator) if number >= 0]
    launched = work.row[found.host == row]
    if len(launched):
        facts["launched_pieces"] = len(launched)
        facts["launched_ns"] = int(trace.spans["dur_ns"].to_numpy()[launched].sum())
        linked += launched[:_MOST].tolist()
    flows = trace.flows
    for one, other in (("source", "target"), ("target", "source")):
        ends = flows.loc[flows[one].eq(row).fillna(False).astype(bool), other].dropna()
        linked += [int(number) for number in ends.head(_MOST)]
    return facts, [number for number in dict.fromkeys(linked) if number != row][: 2 * _MOST]
