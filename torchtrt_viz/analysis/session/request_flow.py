"""Requests over prefill and decode ranks, joined by the ids that the engines put into their annotations.

An annotation is ``phase[key=value ...]``: ``prefill[request=r7 transfer=x7 tokens=64]``,
``kv_send[xfer-7]``, ``decode[request=r7,r8]``. Other spellings of the keys (req, rid, xfer) are known. A
range that names no request belongs to the one of the range that encloses it.

Ranks' clocks are compared only where both are clocks of one host; between hosts such values are NA.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.sessions import REQUEST_EVENTS, REQUESTS
from torchtrt_viz.model.frame_docs import returns

if TYPE_CHECKING:
    from torchtrt_viz.model.session_data import SessionData
    from torchtrt_viz.model.trace_data import TraceData

__all__ = [
    "PHASES",
    "parse_annotation",
    "request_events",
    "requests",
    "requests_of",
    "trace_request_events",
    "trace_request_sums",
]

PHASES = ("schedule", "queue", "prefill", "decode", "sampling", "kv_send", "kv_recv", "activate")
"""Names of the ranges, as :mod:`torchtrt_viz.serving` writes them."""

_RANGE = re.compile(r"(?P<phase>[A-Za-z_][\w.]*)\[(?P<items>[^\]]{0,4096})\]")
_KEYS = {
    "request": "request",
    "request_id": "request",
    "req": "request",
    "rid": "request",
    "transfer": "transfer",
    "transfer_id": "transfer",
    "xfer": "transfer",
    "tokens": "tokens",
    "toks": "tokens",
    "token": "token",
    "tok": "token",
}
_RANK = ["session", "rank", "role", "instance", "host"]


def parse_annotation(name: str) -> tuple[str, list[str], str | None, int | None] | None:
    """Take an annotation apart: (phase, request ids, transfer id, tokens); None when it names no ids."""
    match = _RANGE.match(name)
    if match is None:
        return None
    found: dict[str, str] = {}
    for item in match["items"].split():
        key, given, value = item.partition("=")
        if given:
            known = _KEYS.get(key.lower())
            if known is not None and value:
                found.setdefault(known, value)
        elif key.lower().startswith(("xfer", "transfer")):
            found.setdefault("transfer", key)
        elif key.lower().startswith(("req", "rid")):
            found.setdefault("request", key)
    ids = [r for r in found.get("request", "").split(",") if r]
    if not ids and "transfer" not in found:
        return None
    tokens = found.get("tokens", "")
    return match["phase"], ids, found.get("transfer"), int(tokens) if tokens.isdecimal() else None


def trace_request_events(trace: TraceData) -> pd.DataFrame:
    """Ranges of one trace that name a request or a transfer.

    Returns
    -------
    pandas.DataFrame
        ``phase``, ``request``, ``transfer`` (None where the range names none), ``tokens`` (NA where it
        does not say), ``batch`` (requests that share the range: its duration is theirs together),
        ``start_ns`` (on the trace's base), ``dur_ns``, ``start_unix_ns`` (NA when the base is unknown).
        One row per request and range.
    """
    spans = trace.spans
    taken = spans["name"].cat.codes.to_numpy()
    parsed = [parse_annotation(str(c)) for c in spans["name"].cat.categories]
    wanted = np.array([p is not None for p in parsed] + [False])
    mask = wanted[taken] & (spans["domain"] == "host").to_numpy() & (spans["timing"] == "measured").to_numpy()
    mask &= spans["kind"].isin(["annotation", "step", "other"]).to_numpy()
    rows = np.flatnonzero(mask)
    parent = spans["parent"].to_numpy()
    start = spans["start_ns"].to_numpy(dtype="int64", na_value=0)
    dur = spans["dur_ns"].to_numpy()
    base = trace.meta.get("base_ns")
    out: list[tuple[Any, ...]] = []
    for row in rows:
        found = parsed[taken[row]]
        assert found is not None
        phase, ids, transfer, tokens = found
        above = int(parent[row])
        while (not ids or transfer is None) and above >= 0:
            outer = parsed[taken[above]] if mask[above] else None
            if outer is not None:
                ids = ids or outer[1]
                transfer = transfer or (outer[2] if len(ids) == 1 else None)
            above = int(parent[above])
        unix = pd.NA if base is None else int(base) + int(start[row])
        for request in ids or [None]:
            out.append(
                (phase, request, transfer, tokens, max(len(ids), 1), int(start[row]), int(dur[row]), unix)
            )
    columns = ["phase", "request", "transfer", "tokens", "batch", "start_ns", "dur_ns", "start_unix_ns"]
    frame = pd.DataFrame(out, columns=columns)
    return frame.astype(
        {
            "phase": object,
            "request": object,
            "transfer": object,
            "tokens": "Int64",
            "batch": "int64",
            "start_ns": "int64",
            "dur_ns": "int64",
            "start_unix_ns": "Int64",
        }
    )


@returns(REQUEST_EVENTS)
def request_events(session: SessionData) -> pd.DataFrame:
    """Annotated work on requests, of all ranks.

    Returns
    -------
    pandas.DataFrame
        One row per request and annotated range of a rank.
    """
    return _named(session.map(trace_request_events), session.ranks)


def trace_request_sums(trace: TraceData) -> pd.DataFrame:
    """What one rank did for each request and phase: a few numbers in the place of its ranges.

    Returns
    -------
    pandas.DataFrame
        ``phase``, ``request``, ``transfer`` (as in :func:`trace_request_events`), ``count`` (ranges),
        ``total_ns`` (their durations, summed), ``batch`` (most requests that shared one), ``begin_ns`` and
        ``end_ns`` (first start and last end on the trace's base), ``begin_unix_ns``, ``end_unix_ns`` (the
        same on the rank's wall clock; NA when the base is unknown).
    """
    events = trace_request_events(trace)
    events["end_ns"] = events["start_ns"] + events["dur_ns"]
    events["end_unix_ns"] = events["start_unix_ns"] + events["dur_ns"]
    groups = events.groupby(["phase", "request", "transfer"], dropna=False, sort=False)
    out: pd.DataFrame = groups.agg(
        count=("dur_ns", "size"),
        total_ns=("dur_ns", "sum"),
        batch=("batch", "max"),
        begin_ns=("start_ns", "min"),
        end_ns=("end_ns", "max"),
        begin_unix_ns=("start_unix_ns", "min"),
        end_unix_ns=("end_unix_ns", "max"),
    ).reset_index()
    for column in ("request", "transfer"):
        out[column] = out[column].astype(object).where(out[column].notna(), None)
    return out


def _named(frame: pd.DataFrame, ranks: pd.DataFrame) -> pd.DataFrame:
    """Fill in the request where a rank names only its transfer, and mark what a boundary cut."""
    known = frame.dropna(subset=["transfer", "request"]).drop_duplicates(["session", "transfer"])
    by_transfer = {
        (session, transfer): request
        for session, transfer, request in zip(
            known["session"], known["transfer"], known["request"], strict=True
        )
    }
    request = [
        by_transfer.get((session, transfer)) if r is None or r != r else r
        for session, transfer, r in zip(frame["session"], frame["transfer"], frame["request"], strict=True)
    ]
    frame = frame.assign(request=pd.Series(request, dtype=object, index=frame.index))
    cut = {
        (row["session"], row["rank"], request)
        for _, row in ranks.iterrows()
        for request in (*(row["cut_at_start"] or ()), *(row["cut_at_stop"] or ()))
    }
    cut_off = [
        (s, r, q) in cut for s, r, q in zip(frame["session"], frame["rank"], frame["request"], strict=True)
    ]
    return frame.assign(cut=np.array(cut_off, dtype=bool))


_KEYS_OF_REQUEST = ["session", "request"]


def _phase(frame: pd.DataFrame, phase: str) -> pd.DataFrame:
    """Per request: sum, count, first start and last end of one phase, and where it ran."""
    part = frame[frame["phase"] == phase].sort_values("rank", kind="stable")
    groups = part.groupby(_KEYS_OF_REQUEST, dropna=False, sort=False)
    return groups.agg(
        rank=("rank", "first"),
        host=("host", "first"),
        hosts=("host", "nunique"),
        count=("count", "sum"),
        total=("total_ns", "sum"),
        begin=("begin_unix_ns", "min"),
        end=("end_unix_ns", "max"),
        ranks=("rank", "nunique"),
    )


def _decode_queue(frame: pd.DataFrame) -> pd.Series:
    """Per request: from the arrival of its cache to its first decode range, on the rank that did both."""
    keys = [*_KEYS_OF_REQUEST, "rank", "instance", "host", "cycle"]
    ends = frame[frame["phase"] == "kv_recv"].groupby(keys, dropna=False, sort=False)["end_ns"].max()
    begins = frame[frame["phase"] == "decode"].groupby(keys, dropna=False, sort=False)["begin_ns"].min()
    both = pd.concat([ends, begins], axis=1, join="inner")
    waited = (both["begin_ns"] - both["end_ns"]).astype("Int64")
    return waited.groupby(level=_KEYS_OF_REQUEST, dropna=False, sort=False).max()


@returns(REQUESTS)
def requests(session: SessionData) -> pd.DataFrame:
    """One row per request: what prefill, transfer and decode ranks spent on it.

    Each rank sums its own ranges (:func:`trace_request_sums`); only the sums are brought together.

    Returns
    -------
    pandas.DataFrame
        One row per request: what prefill, transfer and decode ranks spent on it.
    """
    return requests_of(session.map(trace_request_sums), session.ranks)


def requests_of(frame: pd.DataFrame, ranks: pd.DataFrame) -> pd.DataFrame:
    """The same from the ranks' tables of :func:`trace_request_sums` under each other."""
    frame = _named(frame, ranks)
    named = frame[frame["request"].notna()]
    keys = _KEYS_OF_REQUEST
    out = named.drop_duplicates(keys)[keys].set_index(keys)
    groups = named.groupby(keys, dropna=False, sort=False)
    out["transfer"] = groups["transfer"].first().reindex(out.index)
    phases = {
        phase: _phase(named, phase).reindex(out.index)
        for phase in ("queue", "prefill", "kv_send", "kv_recv", "decode")
    }
    prefill, decode = phases["prefill"], phases["decode"]
    out["prefill_rank"] = prefill["rank"].astype("Int32")
    out["decode_rank"] = decode["rank"].astype("Int32")
    out["prefill_ranks"] = prefill["ranks"].astype("Int64")
    out["decode_ranks"] = decode["ranks"].astype("Int64")
    for phase, found in phases.items():
        out[f"{phase}_ns"] = found["total"].astype("Int64")
    out["decode_queue_ns"] = _decode_queue(named).reindex(out.index).astype("Int64")
    out["decode_steps"] = decode["count"].astype("Int64")
    out["batched"] = (groups["batch"].max() > 1).reindex(out.index)
    same = (
        (prefill["host"] == decode["host"])
        & prefill["host"].notna()
        & (prefill["hosts"] == 1)
        & (decode["hosts"] == 1)
    )
    gap = decode["begin"].astype("Int64") - prefill["end"].astype("Int64")
    out["handoff_ns"] = gap.where(same.to_numpy(bool))
    out["cut"] = groups["cut"].any().reindex(out.index)
    out["joined"] = (prefill["count"].notna() & decode["count"].notna()).to_numpy(bool)
    return out.reset_index()
