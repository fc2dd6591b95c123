"""What each rank's recording holds in numbers, and the roles of a session (prefill, decode) side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.sessions import BY_ROLE, ROLES
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.masks import among, measured
from torchtrt_viz.analysis.device.temporal import temporal_breakdown
from torchtrt_viz.model.frame_docs import returns

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["operators_by_role", "roles_of", "trace_totals"]

_ROLE = ["session", "role"]
_GPU = ("gpu_span_ns", "gpu_busy_ns", "gpu_compute_ns", "gpu_communication_ns", "gpu_exposed_ns")


def trace_totals(trace: TraceData) -> pd.DataFrame:
    """Totals of one recording, in one row.

    Returns
    -------
    pandas.DataFrame
        ``spans``; ``length_ns`` (first start to last end of everything measured); ``operators_ns`` (self host
        time of operators on all threads, summed: work, not wall time; NA without operators).

        ``gpu_span_ns``, ``gpu_busy_ns``, ``gpu_compute_ns``, ``gpu_communication_ns``, ``gpu_exposed_ns``
            First to last device work; time of it with any work, with compute, with communication, and with
            communication alone, summed over the rank's devices; NA where no device work was recorded.
        ``warnings``
            Repairs that loading made. ``synthetic``: whether the recording says that it is made up.
    """
    spans = trace.spans
    operators = among(spans["kind"], ("operator",)) & among(spans["domain"], ("host",)) & measured(trace)
    devices = temporal_breakdown(trace)
    gpu = {
        "gpu_span_ns": "span_ns",
        "gpu_busy_ns": "busy_ns",
        "gpu_compute_ns": "compute_ns",
        "gpu_communication_ns": "communication_ns",
        "gpu_exposed_ns": "exposed_communication_ns",
    }
    row: dict[str, Any] = {
        "spans": len(spans),
        "length_ns": trace.duration_ns,
        "operators_ns": int(host_nesting(trace).self_ns[operators].sum()) if operators.any() else None,
        **{ours: int(devices[theirs].sum()) if len(devices) else None for ours, theirs in gpu.items()},
        "warnings": len(trace.meta["warnings"]),
    }
    out = pd.DataFrame({name: pd.Series([value], dtype="Int64") for name, value in row.items()})
    out["synthetic"] = bool(trace.meta.get("synthetic"))
    return out


@returns(ROLES)
def roles_of(totals: pd.DataFrame, steps: pd.DataFrame, requests: pd.DataFrame) -> pd.DataFrame:
    """Roles of a session side by side: prefill against decode.

    Parameters
    ----------
    totals, steps, requests
        Tables of :func:`trace_totals` under each other, of ``Session.steps`` and of ``Session.requests``.

    Returns
    -------
    pandas.DataFrame
        One row per session and role: prefill against decode.
    """
    totals = totals.assign(role=totals["role"].astype(object))
    groups = totals.groupby(_ROLE, dropna=False, sort=True)
    out = groups.agg(hosts=("host", "nunique")).reset_index()
    each = totals.drop_duplicates(["session", "rank", "role", "instance", "host"])
    out.insert(2, "ranks", each.groupby(_ROLE, dropna=False, sort=True).size().to_numpy())
    worked = _requests_by_role(requests)
    out["requests"] = pd.Series([worked.get(key) for key in _pairs(out)], dtype="Int64")
    paces = {key: _pace(part) for key, part in steps.groupby(_ROLE, dropna=False)} if len(steps) else {}
    paces = {_key(key): value for key, value in paces.items()}
    for column in ("steps_per_rank", "step_median_ns", "step_p90_ns", "slowest_rank", "slowest_pct"):
        dtype = "Int64" if column == "slowest_rank" else "Float64"
        values = [paces.get(key, {}).get(column) for key in _pairs(out)]
        out[column] = pd.Series(values, dtype=dtype)
    sums = groups[[*_GPU, "operators_ns"]].sum(min_count=1).reset_index(drop=True)
    for column in ("operators_ns", "gpu_busy_ns"):
        out[column] = sums[column].astype("Float64") / out["ranks"]
    span = sums["gpu_span_ns"].astype("Float64")
    for column, part in (("gpu_busy_pct", "gpu_busy_ns"), ("gpu_exposed_pct", "gpu_exposed_ns")):
        out[column] = (100.0 * sums[part].astype("Float64") / span).where(span > 0)
    order = sorted(range(len(out)), key=lambda row: (str(out["session"][row]), *_place(out["role"][row])))
    return ROLES.typed(out.take(order).reset_index(drop=True))


def _place(role: Any) -> tuple[int, str]:
    """Where a role stands: prefill, decode, others by name, none."""
    first = {"prefill": 0, "decode": 1}
    return (3, "") if pd.isna(role) else (first.get(str(role), 2), str(role))


def _key(key: Any) -> tuple[Any, Any]:
    """Return a group's key with None for what is missing."""
    session, role = (None if pd.isna(part) else part for part in key)
    return session, role


def _pairs(frame: pd.DataFrame) -> list[tuple[Any, Any]]:
    return [_key(pair) for pair in zip(frame["session"], frame["role"], strict=True)]


def _requests_by_role(requests: pd.DataFrame) -> dict[tuple[Any, Any], int]:
    out: dict[tuple[Any, Any], int] = {}
    for role in ("prefill", "decode"):
        there = requests[requests[f"{role}_ns"].notna()]
        for session, count in there.groupby("session", dropna=False).size().items():
            out[_key((session, role))] = int(count)
    return out


def _pace(steps: pd.DataFrame) -> dict[str, Any]:
    ranks = steps.groupby(["rank", "instance", "host"], dropna=False)["dur_ns"]
    medians = ranks.median()
    middle = float(np.median(medians))
    slowest = medians.index.get_level_values("rank")[int(np.argmax(medians.to_numpy()))]
    several = len(medians) > 1
    return {
        "steps_per_rank": len(steps) / len(medians),
        "step_median_ns": float(steps["dur_ns"].median()),
        "step_p90_ns": float(steps["dur_ns"].quantile(0.9)),
        "slowest_rank": None if not several or pd.isna(slowest) else int(slowest),
        "slowest_pct": 100.0 * (float(medians.max()) / middle - 1) if several and middle > 0 else None,
    }


@returns(BY_ROLE)
def operators_by_role(operators: pd.DataFrame) -> pd.DataFrame:
    """Operators with one column a role.

    Parameters
    ----------
    operators
        Table of ``Session.operators()``.

    Returns
    -------
    pandas.DataFrame
        One row per operator on the host, with three columns a role; none unless there are several roles.
    """
    if "role" not in operators or "session" in operators:
        return pd.DataFrame({"name": pd.Series(dtype=object)})
    parts = []
    groups = dict(list(operators.groupby("role", dropna=False)))
    for role in sorted(groups, key=_place):
        part = groups[role]
        label = "no role" if pd.isna(role) else str(role)
        part = part.set_index("name")
        calls = part["calls"].astype("Int64")
        parts.append(
            pd.DataFrame(
                {
                    f"{label}_self_pct": part["self_pct"].astype("Float64"),
                    f"{label}_call_ns": part["self_ns"].astype("Float64") / calls,
                    f"{label}_calls": calls,
                }
            )
        )
    out = pd.concat(parts, axis=1)
    shares = out[[column for column in out if str(column).endswith("_self_pct")]]
    out = out.loc[shares.max(axis=1).sort_values(ascending=False, kind="stable").index]
    return out.rename_axis("name").reset_index()
