"""Metrics that Nsight Compute measured of single kernels, joined to the kernels of a trace by name.

The tool runs each kernel by itself, in a run of its own: nothing but names, sizes and order leads from its
page to a trace. A kernel is joined to a launch only where that is one; how is said for each.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.columns.device import KERNEL_METRICS
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.masks import strings
from torchtrt_viz.analysis.core.tables import floats, integers, order
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["MATCHES", "kernel_metrics"]

Ints = NDArray[np.int64]

MATCHES = ("exact", "ordered", "by_name", "none")
_CAST = re.compile(r"\((?:unsigned )?(?:bool|char|short|int|long|long long)\)(?=-?\d)")
_UNNAMED = re.compile(r"\(anonymous namespace\)|<unnamed>|\{anonymous\}|_GLOBAL__N__\w+")
_SPACE = re.compile(r"\s+")
_LITERAL = re.compile(r"\b(true|false)\b")
_SUFFIX = re.compile(r"(?<=\d)(?:u|l|ul|ull|ll)\b", re.IGNORECASE)

_Sizes = tuple[Any, Any]


@returns(KERNEL_METRICS)
def kernel_metrics(
    trace: TraceData,
    page: TraceData | None = None,
    *,
    metrics: Iterable[str] | None = None,
    sort: str | None = None,
    top: int | None = None,
) -> pd.DataFrame:
    """What Nsight Compute measured of single kernels.

    Parameters
    ----------
    page
        A page of Nsight Compute that was loaded; None: the trace itself is one.
    metrics
        Only metrics of these names; None: all.
    sort, top
        As in :func:`operators`; by default in the order of the page.

    Returns
    -------
    pandas.DataFrame
        One row per metric of a kernel; an empty frame where there is no page.

    Raises
    ------
    OptionError
        For a ``page`` that is another trace.

    Examples
    --------
    >>> tv.analysis.kernel_metrics(trace).empty
    True
    """
    held = trace if page is None else page
    found = held.meta.get("ncu")
    if found is None:
        if page is not None:
            raise OptionError("page", page.meta.get("format"), "a page of Nsight Compute (CSV)")
        return KERNEL_METRICS.frame({}, 0)
    listed = found["metrics"]
    if metrics is not None:
        listed = listed[listed["metric"].isin(list(metrics))]
    launch = listed["span"].to_numpy()
    names = strings(held.spans["name"])
    if page is None:
        row, match, candidates = np.arange(len(names)), np.full(len(names), -1), np.ones(len(names), np.int64)
    else:
        row, match, candidates = _joined(trace, page)
    from_codes: Any = pd.Categorical.from_codes  # the stubs type the categories more narrowly than pandas
    frame = KERNEL_METRICS.frame(
        {
            "name": pd.Categorical(names[launch]),
            "row": integers(np.maximum(row, 0)[launch], (row >= 0)[launch]),
            "match": from_codes(match[launch], categories=list(MATCHES)),
            "candidates": integers(candidates[launch]),
            "launch": launch,
            "section": pd.Categorical(listed["section"]),
            "metric": pd.Categorical(listed["metric"]),
            "unit": pd.Categorical(listed["unit"]),
            "value": floats(listed["value"].to_numpy()),
            "text": listed["text"].tolist(),
        },
        len(launch),
    )
    return order(frame, sort, top)


def _joined(trace: TraceData, page: TraceData) -> tuple[Ints, Ints, Ints]:
    """Return for each kernel of the page its row in the trace (-1 none), how it was found, and candidates."""
    work = device_work(trace)
    rows = work.row[work.is_class("compute", "communication")]  # by start
    theirs = _names(strings(trace.spans["name"])[rows])
    sizes = _sizes(trace, rows)
    ours = _names(strings(page.spans["name"]))
    our_sizes = _sizes(page, np.arange(len(ours)))
    count = len(ours)
    row, match = np.full(count, -1, np.int64), np.full(count, MATCHES.index("none"), np.int64)
    candidates = np.zeros(count, np.int64)
    left = np.ones(count, bool)
    # the whole name first: two instances of one template are two kernels
    for level in range(2):
        of_name: dict[str, list[int]] = defaultdict(list)
        for at, both in enumerate(theirs):
            of_name[both[level]].append(at)
        wanted: dict[tuple[str, _Sizes], list[int]] = defaultdict(list)
        for at in np.flatnonzero(left).tolist():
            if ours[at][level] in of_name:
                wanted[ours[at][level], our_sizes[at]].append(at)
        for (key, size), mine in wanted.items():
            same = of_name[key]
            fitting = [at for at in same if None not in size and sizes[at] == size]
            kernels = fitting if fitting and level == 0 else same
            candidates[mine] = len(kernels)
            left[mine] = False
            if fitting and level == 0 and len(fitting) == len(mine):
                row[mine] = rows[fitting]
                match[mine] = MATCHES.index("exact" if len(mine) == 1 else "ordered")
                continue
            match[mine] = MATCHES.index("by_name")
            if len(kernels) == 1 and len(mine) == 1:
                row[mine] = rows[kernels[0]]
    return row, match, candidates


def _names(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return each name without what tools print differently, and without its template and parameters."""
    known: dict[str, tuple[str, str]] = {}
    return [known.setdefault(name, (_whole(name), _base(name))) for name in names]


def _whole(name: str) -> str:
    name = _UNNAMED.sub("<unnamed>", _CAST.sub("", name)).strip().removeprefix("void ")
    name = _SUFFIX.sub("", _LITERAL.sub(lambda found: str(int(found[0] == "true")), name))
    name = _SPACE.sub("", name.removesuffix(".kd"))
    return _without_parameters(name)


def _without_parameters(name: str) -> str:
    """Cut the last list of parameters, which some tools print and others do not."""
    if not name.endswith(")"):
        return name
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return name[:at] or name
    return name


def _base(name: str) -> str:
    """Return the function's own name: without return type, namespaces, template arguments and parameters."""
    name = _without_parameters(_UNNAMED.sub("unnamed", name.removesuffix(".kd")).strip())
    depth, kept = 0, []
    for letter in name:
        depth += (letter == "<") - (letter == ">")
        if depth == 0 and letter not in "<>":
            kept.append(letter)
    return "".join(kept).rpartition("::")[2].rpartition(" ")[2] or name


def _sizes(trace: TraceData, rows: Ints) -> list[_Sizes]:
    """Return grid and block of each kernel, None where they are not recorded."""
    columns = []
    for key in ("grid", "block"):
        codes, values = trace.args.values(rows, key)
        texts = [tuple(value) if _is_vector(value) else None for value in values]
        columns.append([texts[code] if code >= 0 else None for code in codes.tolist()])
    return list(zip(*columns, strict=True))


def _is_vector(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 3 and all(type(each) is int for each in value)
