"""How tables are displayed: column titles that say host or GPU, values with units.

The frames keep plain numbers in one unit; here they become text. All views (page, notebook, terminal, widget)
use the same words, and what was not collected is never shown as 0.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MISSING", "Shown", "duration", "missing", "number", "one_line", "quantity", "show", "title"]

# Control and direction characters.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069]")
MISSING = "–"
"""Stands for what was not collected; never 0."""

Kind = Literal["text", "name", "duration", "percent", "count", "number", "bytes"]

_HOST = {
    "total_ns": "host total (with children)",
    "self_ns": "host self",
    "self_pct": "of host self",
    "mean_ns": "host mean",
    "median_ns": "host median",
    "min_ns": "host min",
    "max_ns": "host max",
    "device_total_ns": "GPU work launched (with children)",
    "device_self_ns": "GPU work launched",
}
_GPU = {
    "total_ns": "GPU sum",
    "total_pct": "of GPU sum",
    "mean_ns": "GPU mean",
    "median_ns": "GPU median",
    "min_ns": "GPU min",
    "max_ns": "GPU max",
    "std_ns": "GPU std",
}
_TITLES: dict[str, dict[str, str]] = {
    "operators": _HOST,
    "kernels": _GPU,
    "delegates": {
        "host_total_ns": "host total",
        "host_mean_ns": "host mean",
        "host_median_ns": "host median",
        "host_min_ns": "host min",
        "host_max_ns": "host max",
        "host_pct": "of host window",
        "launch_overhead_ns": "of it launch overhead (host)",
        "unattributed_ns": "host, no phase",
        "phases_ns": "host, in phases",
        "layers_ns": "layers",
        "layers_domain": "layers on",
        "gpu_ns": "GPU time",
    },
    "phases": {"domain": "time on", "pct": "of delegate"},
    "layers": {"domain": "time on", "pct": "of engine"},
    "session_roles": {
        "step_median_ns": "median step (host)",
        "step_p90_ns": "p90 step (host)",
        "steps_per_rank": "steps a rank",
        "slowest_pct": "its median step over the median rank's",
        "operators_ns": "host in operators, a rank",
        "gpu_busy_ns": "GPU busy, a rank",
        "gpu_busy_pct": "of GPU span busy",
        "gpu_exposed_pct": "of GPU span only communicating",
    },
    "session_operators": {
        "total_ns": "host total (with children)",
        "self_ns": "host self, all ranks",
        "self_pct": "of host self",
        "rank_mean_ns": "host self, mean rank",
        "rank_min_ns": "host self, least",
        "rank_max_ns": "host self, most",
        "max_rank": "most on rank",
        "imbalance": "most over mean",
    },
    "session_ranks": {
        "length_ns": "length",
        "operators_ns": "host self in operators",
        "gpu_span_ns": "GPU span",
        "gpu_busy_ns": "GPU busy",
        "gpu_compute_ns": "GPU computing",
        "gpu_communication_ns": "GPU communicating",
        "gpu_exposed_ns": "GPU only communicating",
    },
    "session_stragglers": {
        "waited_for_ns": "others waited for it",
        "last_in": "collectives entered last",
        "step_ns": "in steps (host)",
        "behind_ns": "behind the median rank",
        "behind_pct": "of the median's steps",
        "slowest": "slowest in steps",
    },
    "session_steps": {
        "min_ns": "shortest (host)",
        "median_ns": "median (host)",
        "max_ns": "longest (host)",
        "over_pct": "longest over median",
    },
    "session_collectives": {
        "domain": "time on",
        "wait_ns": "waited, all ranks",
        "mean_wait_ns": "waited, mean of one",
        "max_wait_ns": "waited, most in one",
        "last_rank": "most for rank",
        "last_pct": "of the waiting for it",
    },
    "session_skew": {
        "transfer_ns": "transfer (GPU)",
        "mean_wait_ns": "mean wait (GPU)",
        "max_wait_ns": "longest wait (GPU)",
        "algorithm_gbps": "algorithm, 10^9 byte/s",
        "bus_gbps": "bus, 10^9 byte/s",
    },
    "session_requests": {
        "queue_ns": "queue (host)",
        "prefill_ns": "prefill (host)",
        "kv_send_ns": "KV send (host)",
        "kv_recv_ns": "KV receive (host)",
        "decode_ns": "decode (host)",
        "decode_queue_ns": "received, not yet decoded",
        "handoff_ns": "prefill's end to first decode",
        "cut": "cut by a boundary",
        "joined": "prefill and decode found",
    },
    "host_gpu": {"domain": "time on", "pct": "of window", "ns": "time"},
}


@dataclass(frozen=True)
class Shown:
    """One displayed column: its title, the sort of its values, and every value as text.

    ``values`` keeps the numbers for sorting and bars, None where there is no number.
    """

    column: str
    title: str
    kind: Kind
    texts: list[str]
    values: list[float | None]

    @property
    def numeric(self) -> bool:
        """Whether it is aligned and sorted as numbers."""
        return self.kind not in ("text", "name")


def title(column: str, table: str = "") -> str:
    """Return a column's title; in the known tables the title of a duration says host or GPU."""
    known = _TITLES.get(table, {}).get(column)
    if known is not None:
        return known
    for suffix, words in (("_ns", ""), ("_pct", " %"), ("_bytes", "")):
        if column.endswith(suffix):
            return column[: -len(suffix)].replace("_", " ") + words
    return {"pct": "share", "ns": "time", "value": "value"}.get(column, column.replace("_", " "))


def show(frame: pd.DataFrame, table: str = "", *, limit: int | None = None) -> list[Shown]:
    """Return every column of a table as it is shown, at most ``limit`` rows of it."""
    rows = frame if limit is None else frame.head(limit)
    units = rows["unit"].tolist() if {"unit", "value"} <= set(rows.columns) else None
    out = []
    for column in rows.columns:
        name = str(column)
        values = rows[column].tolist()
        kind = _kind(name, rows[column])
        if units is not None and name == "value":
            texts = [quantity(value, str(unit)) for value, unit in zip(values, units, strict=True)]
            out.append(Shown(name, "value", "number", texts, [_plain(value) for value in values]))
            continue
        if units is not None and name == "unit":
            continue  # the values carry the unit
        texts = [_text(value, kind) for value in values]
        numbers: list[float | None] = [None] * len(values)
        if kind not in ("text", "name"):
            numbers = [_plain(value) for value in values]
        out.append(Shown(name, title(name, table), kind, texts, numbers))
    return out


def _kind(column: str, values: pd.Series) -> Kind:
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        return "name" if column == "name" else "text"
    if column.endswith("_ns") or column == "ns":
        return "duration"
    if column.endswith(("_pct", "pct")):
        return "percent"
    if column.endswith("bytes"):
        return "bytes"
    return "count" if pd.api.types.is_integer_dtype(values.dtype) else "number"


def missing(value: Any) -> bool:
    """Whether a cell has no value."""
    import pandas as pd

    if value is None or value is pd.NA:
        return True
    return isinstance(value, float) and math.isnan(value)


def _plain(value: Any) -> float | None:
    if missing(value) or isinstance(value, (str, bool, dict, list, tuple)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _text(value: Any, kind: Kind) -> str:
    if missing(value):
        return MISSING
    if kind == "duration":
        return duration(float(value))
    if kind == "percent":
        return f"{float(value):.1f} %"
    if kind == "bytes":
        return _bytes(float(value))
    if kind == "count":
        return f"{int(value):,}"
    if kind == "number":
        return number(float(value))
    if isinstance(value, (list, tuple)):
        return ", ".join(str(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {part}" for key, part in value.items())
    return str(value)


def one_line(text: object) -> str:
    """Return text on one line, with a dot for control and direction characters."""
    return " ".join(_UNSEEN.sub("·", str(text)).split())


def duration(ns: float) -> str:
    """Return a duration with four significant digits: 950 ns, 12.35 µs, 1.204 ms, 2.5 s."""
    if ns < 0:
        return "-" + duration(-ns)
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{_trim(f'{ns / size:.4g}')} {unit}"
    return f"{_trim(f'{ns:.4g}')} ns"


def number(value: float) -> str:
    """Return a number with up to five significant digits, without an exponent where it can be avoided."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1e-3 <= abs(value) < 1e7:
        return _trim(f"{value:,.{max(0, 4 - math.floor(math.log10(abs(value))))}f}")
    return f"{value:.4g}"


def quantity(value: Any, unit: str) -> str:
    """Return a value with its unit, scaled where the unit can be."""
    if missing(value):
        return MISSING
    if isinstance(value, (str, bool)):
        return str(value)
    if unit == "ns":
        return duration(float(value))
    if unit in ("bytes", "B"):
        return _bytes(float(value))
    text = number(float(value))
    return f"{text} {unit}".strip()


def _bytes(value: float) -> str:
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(value) >= size:
            return f"{_trim(f'{value / size:.4g}')} {unit}"
    return f"{int(value)} B"


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
