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

if TYPE_CHECKING:
    from torchtrt_viz.session import Session
    from torchtrt_viz.trace import Trace

__all__ = ["PHASES", "parse_annotation", "request_events", "requests", "trace_request_events"]

PHASES = ("schedule", "prefill", "decode", "sampling", "kv_send", "kv_recv", "activate")
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


def trace_request_events(trace: Trace) -> pd.DataFrame:
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


def request_events(session: Session) -> pd.DataFrame:
    """Annotated work on requests, of all ranks.

    Returns
    -------
    pandas.DataFrame
        The rank's columns, then those of :func:`trace_request_events`, with request ids filled in from
        the transfer where a rank names only the transfer, and ``cut`` (True when the rank reported the
        request as in flight at a boundary of the recording: part of its work is not in the trace).
    """
    frame = session.map(trace_request_events)
    known = frame.dropna(subset=["transfer", "request"]).drop_duplicates("transfer")
    by_transfer = dict(zip(known["transfer"], known["request"], strict=True))
    unnamed = frame["request"].isna() & frame["transfer"].notna()
    frame.loc[unnamed, "request"] = frame.loc[unnamed, "transfer"].map(by_transfer)
    frame["request"] = frame["request"].astype(object).where(frame["request"].notna(), None)
    ranks = session.ranks
    cut = {
        (row["session"], row["rank"], request)
        for _, row in ranks.iterrows()
        for request in (*(row["cut_at_start"] or ()), *(row["cut_at_stop"] or ()))
    }
    frame["cut"] = [
        (s, r, q) in cut for s, r, q in zip(frame["session"], frame["rank"], frame["request"], strict=True)
    ]
    return frame


def _first(frame: pd.DataFrame, phase: str) -> pd.DataFrame:
    """Per request: sum, count, first start and last end of one phase, and where it ran."""
    part = frame[frame["phase"] == phase]
    part = part.assign(end_unix_ns=part["start_unix_ns"] + part["dur_ns"])
    groups = part.sort_values("start_ns", kind="stable").groupby(
        ["session", "request"], dropna=False, sort=False
    )
    return groups.agg(
        rank=("rank", "first"),
        host=("host", "first"),
        count=("dur_ns", "size"),
        total=("dur_ns", "sum"),
        first=("start_unix_ns", "min"),
        last=("end_unix_ns", "max"),
        ranks=("rank", "nunique"),
    )


def requests(session: Session) -> pd.DataFrame:
    """One row per request: what prefill, transfer and decode ranks spent on it.

    Returns
    -------
    pandas.DataFrame
        ``session``, ``request``, ``transfer``
            Ids; ``transfer`` is None where no range names one.
        ``prefill_rank``, ``decode_rank``
            Ranks that worked on it (the first, where it moved); NA where no range says so.
        ``prefill_ns``, ``kv_send_ns``, ``kv_recv_ns``, ``decode_ns``
            Host time of the ranges of this phase, ns, summed over the request's ranges. A range shared by
            a batch counts in full for each of its requests, so the column must not be added up where
            ``batched`` is true.
        ``decode_steps``
            Decode ranges that name it.
        ``batched``
            Whether any of its ranges is shared with other requests.
        ``handoff_ns``
            From the end of prefill to the start of the first decode range, ns; NA unless both ranks are
            on one host (clocks of different hosts are not aligned) and record Unix time.
        ``cut``
            Whether a boundary of the recording cut it.
        ``joined``
            Whether both a prefill and a decode range name it.
    """
    events = request_events(session)
    named = events[events["request"].notna()]
    keys = ["session", "request"]
    out = named.drop_duplicates(keys)[keys].set_index(keys)
    groups = named.groupby(keys, dropna=False, sort=False)
    out["transfer"] = groups["transfer"].first().reindex(out.index)
    phases = {p: _first(named, p).reindex(out.index) for p in ("prefill", "kv_send", "kv_recv", "decode")}
    prefill, decode = phases["prefill"], phases["decode"]
    out["prefill_rank"] = prefill["rank"].astype("Int32")
    out["decode_rank"] = decode["rank"].astype("Int32")
    for phase, found in phases.items():
        out[f"{phase}_ns"] = found["total"].astype("Int64")
    out["decode_steps"] = decode["count"].astype("Int64")
    out["batched"] = (groups["batch"].max() > 1).reindex(out.index)
    same = (prefill["host"] == decode["host"]) & prefill["host"].notna()
    gap = decode["first"].astype("Int64") - prefill["last"].astype("Int64")
    out["handoff_ns"] = gap.where(same.to_numpy(bool))
    out["cut"] = groups["cut"].any().reindex(out.index)
    out["joined"] = (prefill["count"].notna() & decode["count"].notna()).to_numpy(bool)
    return out.reset_index()
