"""Two runs compared by their structure: every part of either, what became of it, and what it took."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.structure import (
    CHANGES,
    COMPARE_STRUCTURE,
    MATCHES,
    STRUCTURE_SUMMARY,
)
from torchtrt_viz.analysis.core.tables import integers, order
from torchtrt_viz.analysis.runs.verdicts import check_limits
from torchtrt_viz.analysis.structure.alignment import Alignment, align
from torchtrt_viz.analysis.structure.labels import Vocabulary
from torchtrt_viz.analysis.structure.rows import Rows
from torchtrt_viz.analysis.structure.testing import Times
from torchtrt_viz.analysis.structure.tree import Tree, build
from torchtrt_viz.analysis.structure.wording import Wording
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["compare_structure", "structure_summary"]

#: Runs of which less than this share of the time has a counterpart are of different programs.
_SAME_PROGRAM = 50.0
_BIGGEST = "difference"
#: Whose host time is the program's; modules' own time, ranges and threads are what surrounds it.
_PROGRAM = ("method", "delegate", "phase", "layer", "operator")
_PLACES = ("run", "thread", "outside")


@returns(COMPARE_STRUCTURE)
def compare_structure(
    a: TraceData,
    b: TraceData,
    *,
    alpha: float = 0.01,
    min_change_pct: float = 1.0,
    skip_warmup: bool = True,
    confidence: float = 0.95,
    seed: int = 0,
    merge: bool = True,
    sort: str | None = _BIGGEST,
    top: int | None = None,
) -> pd.DataFrame:
    """Compare two runs whose names differ: of other vendors, eager and compiled, before and after an upgrade.

    Each run becomes a tree of threads, modules, operators and the kernels that they launched, its iterations
    merged. The trees are aligned from the roots down: identical parts first, then equal names in order, then
    names of one family (a cuBLAS and a hipBLASLt kernel below the same operator), then across levels, and
    fused operators with those that their names list. :func:`torchtrt_viz.analysis.compare` aligns by name
    alone and tests every kind of span; this one tells what moved, was fused, added or lost.

    The rows of a run share nothing: the sum of ``a_gpu_ns`` is the sum of the durations of all of a's device
    work, that of ``a_host_ns`` the host time of all its threads.

    Verdicts have the guard of :func:`torchtrt_viz.analysis.compare`: a robust test over iterations, corrected
    for all rows, an interval that excludes zero, and a smallest change. Without several iterations on both
    sides (marked by steps or methods) nothing is more than unclear.

    Parameters
    ----------
    a, b
        The earlier (reference) and the later run. Swapped, they give the mirrored table.
    alpha, min_change_pct, skip_warmup, confidence, seed
        As in :func:`torchtrt_viz.analysis.compare`.
    merge
        Whether what differs in numbers only (the same part of each of 24 layers) is one row.
    sort
        Column to sort by, or ``difference``: the largest difference of GPU time first, of host time where
        neither run has device work. None: the order of the tree.
    top
        At most so many rows.

    Returns
    -------
    pandas.DataFrame
        One row per aligned part. ``attrs`` says how much is aligned: ``gpu_aligned_pct`` and
        ``host_aligned_pct`` (share of the device work, and of the operators' host time, that is in rows of
        both runs; of the run where it is less; None without any), ``coverage`` (a sentence), ``basis``
        (iteration, or run where either has no iterations), ``a_iterations`` and ``b_iterations`` (behind the
        tests), and ``outcome``: same structure, changed, different programs (less than half is aligned, of
        the GPU time where both have any) or nothing to align (neither in host nor in GPU time).

    Raises
    ------
    OptionError
        For limits out of range, and a ``sort`` that is no column.

    Examples
    --------
    >>> table = tv.analysis.compare_structure(trace, trace)
    >>> table["change"].unique().tolist(), table.attrs["gpu_aligned_pct"]
    (['same'], 100.0)
    """
    check_limits(alpha, min_change_pct, confidence)
    names = Vocabulary()
    trees = build(a, names), build(b, names)
    found = align(*trees, names)
    parts = Rows.of_alignment(found, (len(trees[0]), len(trees[1])))
    rows, row_of = parts.merged(trees, names) if merge else (parts, np.arange(len(parts)))
    times = Times(trees, parts, rows, row_of, skip_warmup=skip_warmup)
    tests = times.tests(alpha=alpha, min_change_pct=min_change_pct, confidence=confidence, seed=seed)
    frame = _frame(trees, names, found, rows, times, tests)
    frame.attrs.update(_attributes(frame, times))
    frame = frame.iloc[rows.tree_order(*trees)]
    if sort == _BIGGEST:
        domain = "gpu" if frame["gpu_delta_ns"].notna().any() else "host"
        size = frame[f"{domain}_delta_ns"].abs().to_numpy(dtype=np.float64, na_value=-1.0)
        rest = frame["host_delta_ns"].abs().to_numpy(dtype=np.float64, na_value=-1.0)
        return order(frame.iloc[np.lexsort((-rest, -size))], None, top)
    return order(frame, sort, top)


def _frame(
    trees: tuple[Tree, Tree],
    names: Vocabulary,
    found: Alignment,
    rows: Rows,
    times: Times,
    tests: dict[str, Any],
) -> pd.DataFrame:
    said = Wording(trees, names, found, rows)
    columns: dict[str, Any] = {
        "change": pd.Categorical.from_codes(rows.change, categories=pd.Index(CHANGES)),
        "match": pd.Categorical.from_codes(rows.match, categories=pd.Index(MATCHES)),
        **said.columns(),
        **tests,
        "depth": said.depth(),
        "places": rows.places,
    }
    for side, (tree, top) in enumerate(zip(trees, rows.top, strict=True)):
        label = "ab"[side]
        columns[f"{label}_nodes"] = rows.nodes[side]
        columns[f"{label}_calls"] = np.where(top >= 0, tree.calls[top], 0)
        for domain in ("host", "gpu"):
            own, some = times.own(side, domain)
            columns[f"{label}_{domain}_ns"] = integers(own, some)
            whole, any_ = times.inclusive(side, domain)
            columns[f"{label}_{domain}_total_ns"] = integers(whole, any_)
    return pd.DataFrame({name: columns[name] for name in COMPARE_STRUCTURE.names})


def _attributes(frame: pd.DataFrame, times: Times) -> dict[str, Any]:
    program = frame["kind"].isin(_PROGRAM).to_numpy()
    if not program.any():
        program = ~frame["kind"].isin(_PLACES).to_numpy()
    both = ((frame["a_nodes"] > 0) & (frame["b_nodes"] > 0)).to_numpy()
    shares: dict[str, float | None] = {}
    common = []  # domains in which both runs spent time
    for domain in ("gpu", "host"):
        counted = program if domain == "host" else np.ones(len(frame), bool)
        parts = []
        for side in "ab":
            value = frame[f"{side}_{domain}_ns"].to_numpy(dtype=np.int64, na_value=0)
            parts.append((int(value[counted & both].sum()), int(value[counted].sum())))
        some = [whole > 0 for _, whole in parts]
        shares[domain] = (
            min(100.0 * part / whole if whole else 0.0 for part, whole in parts) if any(some) else None
        )
        if all(some):
            common.append(domain)
    said = [
        f"{_rounded(share)} % of the {words}"
        for domain, words in (("gpu", "GPU time"), ("host", "operators' host time"))
        if (share := shares[domain]) is not None
    ]
    return {
        "gpu_aligned_pct": shares["gpu"],
        "host_aligned_pct": shares["host"],
        "coverage": f"aligned: {' and '.join(said)}"
        if said
        else "aligned: nothing, neither has measured time",
        "basis": times.basis,
        "a_iterations": times.count[0],
        "b_iterations": times.count[1],
        "outcome": _outcome(frame, shares[common[0]] if common else None),
    }


def _rounded(share: float) -> str:
    """Write a share; only the whole is 100 %."""
    return f"{share if share >= 100.0 else min(share, 99.9):.3g}"


def _outcome(frame: pd.DataFrame, share: float | None) -> str:
    if share is None:
        return "nothing to align"
    if share < _SAME_PROGRAM:
        return "different programs"
    return "same structure" if (frame["change"] == "same").all() else "changed"


@returns(STRUCTURE_SUMMARY)
def structure_summary(comparison: pd.DataFrame) -> pd.DataFrame:
    """Sum a comparison of structures by what changed.

    Parameters
    ----------
    comparison
        What :func:`compare_structure` returned, whole.

    Returns
    -------
    pandas.DataFrame
        One row per kind of change that occurs.

    Examples
    --------
    >>> tv.analysis.structure_summary(tv.analysis.compare_structure(trace, trace))["change"].tolist()
    ['same']
    """
    out: dict[str, Any] = {}
    codes = comparison["change"].cat.codes.to_numpy()
    present = np.unique(codes)
    out["change"] = pd.Categorical.from_codes(present, categories=pd.Index(CHANGES))
    out["rows"] = np.array([int((codes == code).sum()) for code in present], np.int64)
    for column in STRUCTURE_SUMMARY.names[2:]:
        known = comparison[column].notna().to_numpy()
        value = comparison[column].to_numpy(dtype=np.int64, na_value=0)
        out[column] = integers(
            [int(value[codes == code].sum()) for code in present],
            [bool(known[codes == code].any()) for code in present],
        )
    return pd.DataFrame(out)
