"""One dump in numbers, so that those of a thousand ranks fit side by side.

Texts are hashed: the ranks' calls are compared as numbers, and each text travels once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.cache import kept
from torchtrt_viz.analysis.hangs.agreement import Call, demand, elements, hashed

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["COMPLETED", "STARTED", "STATES", "WORK", "default_group", "dump_facts"]

STATES = ("scheduled", "started", "completed")
STARTED, COMPLETED = 1, 2
_CALL = ("operation", "input_sizes", "input_types", "output_sizes", "output_types")
_TAIL = 2
"""So many last calls of each group keep their whole stack."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Reduced:
    calls: pd.DataFrame
    signatures: pd.DataFrame
    sites: pd.DataFrame
    groups: pd.DataFrame


def default_group(name: Any, desc: Any) -> bool:
    """Whether a group is the one of all ranks."""
    return desc == "default_pg" or (name in ("0", "default_pg") and (desc is None or pd.isna(desc)))


def dump_facts(trace: TraceData) -> pd.DataFrame:
    """Return one row for a dump, none for another trace.

    Columns: ``entries``; ``begins`` (whether the recorder still has its first entry: nothing was overwritten
    or left out); ``cut`` (whether its end is missing); ``world`` (ranks of the default group as a text of
    numbers, where it lists them).
    """
    found = trace.meta.get("flight_recorder")
    if found is None:
        return _frame({"entries": [], "begins": [], "cut": [], "world": []}, text=("world",))
    entries = found["entries"]
    record = _filled(entries["record"])
    world = max((_members(entries, group, found["groups"]) for group in found["groups"]), key=len, default=())
    return _frame(
        {
            "entries": [len(entries)],
            "begins": [int(not len(record) or record.min() <= 0)],
            "cut": [int(found["cut"])],
            "world": [" ".join(map(str, world)) or None],
        },
        text=("world",),
    )


_TIMES = ("created_unix_ns", "started_unix_ns", "completed_unix_ns")


def _calls(trace: TraceData) -> pd.DataFrame:
    return _of(trace).calls


def _signatures(trace: TraceData) -> pd.DataFrame:
    return _of(trace).signatures


def _sites(trace: TraceData) -> pd.DataFrame:
    return _of(trace).sites


def _groups(trace: TraceData) -> pd.DataFrame:
    return _of(trace).groups


WORK: list[tuple[Any, dict[str, Any]]] = [
    (dump_facts, {}),
    (_calls, {}),
    (_signatures, {}),
    (_sites, {}),
    (_groups, {}),
]
"""What is asked of every rank: facts of the dump, calls in numbers, and the texts that they stand for."""


def _of(trace: TraceData) -> _Reduced:
    return kept(trace, "flight recorder", {}, lambda: _reduced(trace))


def _reduced(trace: TraceData) -> _Reduced:
    found = trace.meta.get("flight_recorder")
    if found is None or not len(found["entries"]):
        return _Reduced(_empty_calls(), _signature_frame({}), _site_frame({}), _group_frame({}))
    entries: pd.DataFrame = found["entries"]
    group, groups = _group_keys(entries, found)
    codes, calls = _distinct(entries, _CALL)
    made = [Call(*call) for call in calls]
    signature = np.array([hashed(*call) for call in calls], np.int64)
    demands = [demand(call) for call in made]
    inputs, outputs = [elements(c.input_sizes) for c in made], [elements(c.output_sizes) for c in made]
    state = entries["state"].astype(object).map({name: i for i, name in enumerate(STATES)})
    retired = entries["retired"].to_numpy(dtype=np.int8, na_value=-1)
    created, timeout = _filled(entries["created_unix_ns"]), _filled(entries["timeout_ns"])
    latest = max(int(_filled(entries[name]).max()) for name in _TIMES)
    overdue = (created > 0) & (timeout > 0) & (latest - created >= timeout)
    site_codes, sites = _distinct(entries, ("source",))
    site = np.array([hashed(*each) if each[0] else -1 for each in sites], np.int64)[site_codes]
    frame = pd.DataFrame(
        {
            "group": group,
            "sequence": _filled(entries["sequence"]),
            "p2p_sequence": _filled(entries["p2p_sequence"]),
            "p2p": entries["p2p"].to_numpy(dtype=bool, na_value=False),
            "order": np.arange(len(entries)),
            "sender": _filled(entries["sender"]),
            "receiver": _filled(entries["receiver"]),
            "call": signature[codes],
            "operation": np.array([d.operation for d in demands], np.int64)[codes],
            "size": np.array([d.size for d in demands], np.int64)[codes],
            "types": np.array([d.types for d in demands], np.int64)[codes],
            "sent": np.array([-1 if e is None else sum(e) for e in inputs], np.int64)[codes],
            "received": np.array([-1 if e is None else sum(e) for e in outputs], np.int64)[codes],
            "state": state.fillna(-1).to_numpy(dtype=np.int8),
            "retired": retired,
            "overdue": overdue,
            "created_ns": created,
            "timeout_ns": timeout,
            "site": site,
        }
    )
    return _Reduced(
        frame,
        _signature_frame(dict(zip(signature.tolist(), calls, strict=True))),
        _site_frame(_tails(entries, group, site)),
        _group_frame(groups),
    )


def _filled(column: pd.Series) -> Ints:
    return column.to_numpy(dtype=np.int64, na_value=-1)


def _distinct(entries: pd.DataFrame, names: tuple[str, ...]) -> tuple[Ints, list[tuple[Any, ...]]]:
    """Return a number per row, and the texts that each number stands for (None where there is none)."""
    columns = [entries[name].cat.codes.to_numpy().astype(np.int64) for name in names]
    rows, codes = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    texts = [[*entries[name].cat.categories, None] for name in names]  # -1, none, is the last one
    found = [tuple(text[code] for text, code in zip(texts, row, strict=True)) for row in rows.tolist()]
    return codes.reshape(-1), found


def _members(entries: pd.DataFrame, group: dict[str, Any], groups: list[dict[str, Any]]) -> tuple[int, ...]:
    """Return the ranks of a group where it is the one of all ranks, none otherwise.

    Gloo lists one group without a name, of whichever was made last: it is taken for the group of all ranks
    where the entries name no other, and it has the shape of one.
    """
    ranks: tuple[int, ...] = group["ranks"]
    if default_group(group["name"], group["desc"] or None):
        return ranks
    named = entries["group"].cat.categories if len(entries) else ()
    alone = not group["name"] and len(groups) == 1 and len(named) <= 1
    return ranks if alone and len(ranks) > 1 and ranks == tuple(range(len(ranks))) else ()


def _group_keys(entries: pd.DataFrame, found: dict[str, Any]) -> tuple[Ints, dict[int, tuple[Any, ...]]]:
    """Return a number for the group of each entry, equal on all its ranks, and what each stands for.

    Names of groups may be shared by several (each half of a split has the name), and before version 2 they
    are numbers of the rank's own: what tells groups apart are their ranks.
    """
    codes, keys = _distinct(entries, ("group", "group_desc", "backend"))
    config = {group["key"]: group for group in found["groups"]}
    old = str(found["version"] or "1").startswith(("0", "1"))
    met: dict[str, int] = {}
    numbers: list[int] = []
    groups: dict[int, tuple[Any, ...]] = {}
    for name, desc, backend in keys:
        known = config.get(name) or (config.get(int(name)) if name and name.isdecimal() and old else None)
        ranks: tuple[int, ...] = ()
        if known is not None and known["desc"] in ("", "undefined", desc):
            ranks = known["ranks"]
        members = " ".join(map(str, ranks)) or None
        everyone = default_group(name, desc)
        label = name
        if old and members:
            met[members] = met.get(members, 0) + 1
            label = f"#{met[members]}"
        key = hashed("default" if everyone else label, desc, backend, "" if everyone else members)
        numbers.append(key)
        groups[key] = (name, desc, backend, members)
    return np.array(numbers, np.int64)[codes], groups


def _tails(entries: pd.DataFrame, group: Ints, site: Ints) -> dict[int, tuple[Any, ...]]:
    """Return source and stack of each site; the stack only of the last calls of each group."""
    source = entries["source"].astype(object).to_numpy()
    stack = entries["stack"].astype(object).to_numpy()
    out: dict[int, tuple[Any, ...]] = {}
    left: dict[int, int] = {}
    for row in range(len(entries) - 1, -1, -1):
        number, key = int(site[row]), int(group[row])
        if number < 0:
            continue
        left[key] = left.get(key, 0) + 1
        if left[key] <= _TAIL and out.get(number, (None, None))[1] is None:
            out[number] = (source[row], stack[row])
        elif number not in out:
            out[number] = (source[row], None)
    return out


def _empty_calls() -> pd.DataFrame:
    numbers = (
        "group",
        "sequence",
        "p2p_sequence",
        "order",
        "sender",
        "receiver",
        "call",
        "operation",
        "size",
    )
    more = ("types", "sent", "received", "created_ns", "timeout_ns", "site")
    columns: dict[str, Any] = {name: np.zeros(0, np.int64) for name in (*numbers, *more)}
    columns.update({name: np.zeros(0, np.int8) for name in ("state", "retired")})
    columns.update({name: np.zeros(0, bool) for name in ("p2p", "overdue")})
    return pd.DataFrame(columns)


def _frame(columns: dict[str, list[Any]], text: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=object if name in text else "int64")
            for name, values in columns.items()
        }
    )


def _signature_frame(found: dict[int, tuple[Any, ...]]) -> pd.DataFrame:
    rows = list(found.values())
    columns = {name: [row[i] for row in rows] for i, name in enumerate(_CALL)}
    return _frame({"call": list(found), **columns}, text=_CALL)


def _site_frame(found: dict[int, tuple[Any, ...]]) -> pd.DataFrame:
    rows = list(found.values())
    columns = {"site": list(found), "source": [row[0] for row in rows], "stack": [row[1] for row in rows]}
    return _frame(columns, text=("source", "stack"))


def _group_frame(found: dict[int, tuple[Any, ...]]) -> pd.DataFrame:
    names = ("name", "desc", "backend", "members")
    rows = list(found.values())
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return _frame({"key": list(found), **columns}, text=names)
