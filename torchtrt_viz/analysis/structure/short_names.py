"""Names of a comparison's rows where there is little room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

__all__ = ["place_of", "row_label", "short_name"]

_WRAPPERS = ("Kernel", "Kernel2", "kernel")  # of CUTLASS: what runs is the type


def short_name(name: str, kind: str) -> str:
    """Return the function of a kernel, without types and arguments; other names stay."""
    if kind != "kernel":
        return name
    plain = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    function, _, types = plain.partition("(")[0].partition("<")
    function = function.rpartition("::")[2] or plain
    inner = types.partition(">")[0].partition("<")[0].rpartition("::")[2]
    return inner if function in _WRAPPERS and inner else function


def row_label(row: Mapping[Any, Any], room: int, arrow: str = "->") -> str:
    """Return what a row is in either run, in so many characters: ``24 x flash_fwd_kernel -> attn_fwd``."""
    kind = str(row["kind"])
    a, b = (None if pd.isna(row[side]) else short_name(str(row[side]), kind) for side in ("a_name", "b_name"))
    many = f"{row['places']:,} x " if row["places"] > 1 else ""
    room -= len(many)
    if a is None or b is None or a == b:
        return many + _head(a or b or "", room)
    room -= len(arrow) + 2
    left = max(room // 2, room - len(b))
    mine = _head(a, left)
    return f"{many}{mine} {arrow} {_head(b, room - len(mine))}"


def place_of(row: Mapping[Any, Any], room: int | None = None) -> str:
    """Return what encloses a row, in a or else in b; of a long path what is nearest, which says most."""
    where = next((str(row[side]) for side in ("a_path", "b_path") if not pd.isna(row[side])), "")
    return where if room is None or len(where) <= room else f"…{where[1 - room :]}"


def _head(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"
