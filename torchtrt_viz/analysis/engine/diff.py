"""Two engines side by side: which layers correspond, what became faster, what was chosen differently."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.engines import ENGINE_DIFF
from torchtrt_viz.analysis.core.tables import floats, records, text
from torchtrt_viz.analysis.engine.engine_facts import engine_infos
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["engine_diff"]

_FACTS = (("precision", "precision"), ("tactic", "tactic"), ("type", "type"), ("in_shapes", "input shapes"))


@returns(ENGINE_DIFF)
def engine_diff(
    a: TraceData, b: TraceData, *, engine_a: str | None = None, engine_b: str | None = None
) -> pd.DataFrame:
    """Align the layers of two engines and compare them.

    Layers correspond when the same operators of the model were recorded for them; else when they have the
    same name; else when they have the same type and output shapes and stand in the same place between layers
    that correspond. A layer of one engine may correspond to several of the other (fused, or split): then
    their times are added.

    Parameters
    ----------
    a, b
        Traces that hold the engines (reference first).
    engine_a, engine_b
        Which engine of each; may be left out where a trace holds one.

    Returns
    -------
    pandas.DataFrame
        One row per layer, or layers that correspond, of two engines.

        In the order of ``a``, added layers where they stand in ``b``. The times are single averages:
        whether a difference is more than noise, :func:`torchtrt_viz.analysis.compare` can tell of
        runs with samples.

    Raises
    ------
    OptionError
        When a trace holds no described engine, or several and none is named.

    Examples
    --------
    >>> engines = tv.load(samples / "trex")
    >>> rows = tv.analysis.engine_diff(engines, engines, engine_a="region_000", engine_b="region_000")
    >>> rows["status"].unique().tolist()
    ['same']
    """
    left, right = _engine(a, engine_a, "engine_a"), _engine(b, engine_b, "engine_b")
    pairs = _align(left, right)
    rows = [_row(left, right, x, y, how) for x, y, how in pairs]
    frame = pd.DataFrame(
        rows,
        columns=[
            "a",
            "b",
            "matched_by",
            "status",
            "changes",
            "a_ns",
            "b_ns",
            "delta_ns",
            "speedup",
            "a_position",
        ],
    )
    for name in ("a", "b", "matched_by", "status", "changes"):
        frame[name] = text(frame[name].to_list())
    for name in ("a_ns", "b_ns", "delta_ns", "speedup"):
        frame[name] = floats(frame[name].to_numpy(dtype=np.float64))
    frame["a_position"] = pd.array(frame["a_position"].to_list(), dtype="Int64")
    return frame


def _engine(trace: TraceData, name: str | None, option: str) -> list[Any]:
    infos = engine_infos(trace)
    if name is None and len(infos) == 1:
        name = next(iter(infos))
    if name not in infos:
        choices = ", ".join(infos) or "none: the trace describes no engine"
        raise OptionError(option, name, f"one of the trace's engines ({choices})")
    table = infos[name].layers.reset_index(drop=True)
    timed = layers(trace, engine=name, sort=None).head(len(table)).reset_index(drop=True)
    rows = list(records(table.assign(mean_ns=timed["mean_ns"], at=np.arange(len(table)))))
    return [row for row in rows if row.role != "constant"]


def _value(value: Any) -> Any:
    return None if value is None or (not isinstance(value, tuple) and pd.isna(value)) else value


def _align(left: list[Any], right: list[Any]) -> list[tuple[list[int], list[int], str | None]]:
    """Return groups of corresponding layers, in order."""
    used_a: dict[int, int] = {}
    used_b: dict[int, int] = {}
    groups: list[tuple[list[int], list[int], str | None]] = []

    def join(x: list[int], y: list[int], how: str) -> None:
        for i in x:
            used_a[i] = len(groups)
        for j in y:
            used_b[j] = len(groups)
        groups.append((x, y, how))

    for x, y in _by_operators(left, right):
        join(x, y, "operators")
    names: dict[tuple[str, int], int] = {}
    for j, row in enumerate(right):
        if j not in used_b:
            names.setdefault((str(row.name), int(row.occurrence)), j)
    for i, row in enumerate(left):
        same = names.get((str(row.name), int(row.occurrence)))
        if i not in used_a and same is not None and same not in used_b:
            join([i], [same], "name")
    for i, j in _by_place(left, right, used_a, used_b):
        join([i], [j], "place")
    return _in_order(groups, used_a, used_b, len(left), len(right))


def _by_operators(left: list[Any], right: list[Any]) -> list[tuple[list[int], list[int]]]:
    """Group layers by the operators of the model that they share, conversions apart from the rest.

    Each layer goes with the layer of the other engine that it shares most with: operators that compilers
    number anew in every graph say less than those that carry a name of the model.
    """
    holders: dict[str, list[int]] = {}
    for j, row in enumerate(right):
        for operator in _model_operators(row):
            holders.setdefault(operator, []).append(j)
    shared: dict[tuple[int, int], float] = {}
    for i, row in enumerate(left):
        for operator in _model_operators(row):
            for j in holders.get(operator, ()):
                shared[i, j] = shared.get((i, j), 0.0) + _weight(operator)
    best_a: dict[int, tuple[float, int, int]] = {}
    best_b: dict[int, tuple[float, int, int]] = {}
    for (i, j), weight in shared.items():
        near = -abs(i - j)
        best_a[i] = max(best_a.get(i, (0.0, -(2**31), -1)), (weight, near, j))
        best_b[j] = max(best_b.get(j, (0.0, -(2**31), -1)), (weight, near, i))
    parent: dict[tuple[int, int], tuple[int, int]] = {}

    def root(x: tuple[int, int]) -> tuple[int, int]:
        while parent.setdefault(x, x) != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for i, (_, _, j) in best_a.items():
        parent[root((0, i))] = root((1, j))
    for j, (_, _, i) in best_b.items():
        parent[root((0, i))] = root((1, j))
    members: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for side, position in sorted(parent):
        members.setdefault(root((side, position)), ([], []))[side].append(position)
    return [(x, y) for x, y in members.values() if x and y]


def _model_operators(row: Any) -> tuple[str, ...]:
    # a conversion carries the names of the layer that it serves: it is not that layer
    if row.role not in ("compute", "region") or not isinstance(row.operators, (tuple, list)):
        return ()
    return tuple(map(str, row.operators))


def _weight(operator: str) -> float:
    if re.match(r"^(Quantize|Dequantize)", operator):
        return 0.2
    return 3.0 if "." in operator or "/" in operator else 1.0


def _by_place(
    left: list[Any], right: list[Any], used_a: dict[int, int], used_b: dict[int, int]
) -> list[tuple[int, int]]:
    """Match what is left by type and output shapes, in sequence, between layers that already correspond."""

    def key(row: Any, used: dict[int, int], position: int) -> Any:
        if position in used:
            return ("group", used[position])
        return (_value(row.type), _value(row.out_shapes), row.role)

    first = [key(row, used_a, i) for i, row in enumerate(left)]
    second = [key(row, used_b, j) for j, row in enumerate(right)]
    found = []
    for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            i, j = block.a + offset, block.b + offset
            if i not in used_a and j not in used_b and first[i][0] is not None:
                found.append((i, j))
    return found


def _in_order(
    groups: list[tuple[list[int], list[int], str | None]],
    used_a: dict[int, int],
    used_b: dict[int, int],
    count_a: int,
    count_b: int,
) -> list[tuple[list[int], list[int], str | None]]:
    """Order by a's layers; a layer of b alone follows the one that precedes it in b."""
    out: list[tuple[list[int], list[int], str | None]] = []
    done: set[int] = set()
    pending: dict[int, list[int]] = {}
    anchor = -1
    for j in range(count_b):
        if j in used_b:
            anchor = used_b[j]
        else:
            pending.setdefault(anchor, []).append(j)
    out += [([], [j], None) for j in pending.pop(-1, [])]
    for i in range(count_a):
        group = used_a.get(i)
        if group is None:
            out.append(([i], [], None))
        elif group not in done:
            done.add(group)
            out.append(groups[group])
            out += [([], [j], None) for j in pending.pop(group, [])]
    return out


def _row(left: list[Any], right: list[Any], x: list[int], y: list[int], how: str | None) -> dict[str, Any]:
    before, after = [left[i] for i in x], [right[j] for j in y]
    a_ns, b_ns = _time(before), _time(after)
    changes = _changes(before, after) if before and after else []
    if not before or not after:
        status = "removed" if before else "added"
    elif len(before) != len(after):
        status = "fused" if len(before) > len(after) else "split"
    else:
        status = "changed" if changes else "same"
    return {
        "a": " | ".join(str(row.name) for row in before) or None,
        "b": " | ".join(str(row.name) for row in after) or None,
        "matched_by": how,
        "status": status,
        "changes": "; ".join(changes) or None,
        "a_ns": a_ns if before else np.nan,
        "b_ns": b_ns if after else np.nan,
        "delta_ns": (b_ns if after else 0.0) - (a_ns if before else 0.0),
        "speedup": a_ns / b_ns if before and after and b_ns > 0 and a_ns > 0 else np.nan,
        "a_position": before[0].at if before else pd.NA,
    }


def _time(rows: list[Any]) -> float:
    values = [np.nan if pd.isna(row.mean_ns) else float(row.mean_ns) for row in rows]
    return float(np.sum(values)) if values else 0.0


def _changes(before: list[Any], after: list[Any]) -> list[str]:
    out = []
    for column, label in _FACTS:
        was = [_value(getattr(row, column)) for row in before]
        now = [_value(getattr(row, column)) for row in after]
        if was != now and any(v is not None for v in was) and any(v is not None for v in now):
            out.append(f"{label}: {_listed(was)} -> {_listed(now)}")
    return out


def _listed(values: list[Any]) -> str:
    return " | ".join("?" if value is None else str(value) for value in values)
