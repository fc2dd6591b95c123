"""Two runs side by side: what changed, whether it is more than noise, and how much of them was compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.host_threads import host_nesting
from torchtrt_viz.analysis.core.lasting_names import CONTENT_HASH
from torchtrt_viz.analysis.core.statistics import (
    holm,
    resampling_weights,
    student_tail,
    winsorised_means,
)
from torchtrt_viz.analysis.core.tables import floats, integers, text
from torchtrt_viz.analysis.runs.sampling import (
    LEVELS,
    PROGRAM_LEVELS,
    Samples,
    exclusive_times_of,
    key_rows,
    samples,
)
from torchtrt_viz.analysis.runs.verdicts import SAMPLES, VERDICTS, check_limits, judged, tested
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["VERDICTS", "Coverage", "compare", "outcome", "regressions"]

Floats = NDArray[np.float64]

Outcome = Literal["changed", "unchanged", "nothing comparable", "different programs"]

#: Of the false verdicts that ``alpha`` allows, the share that the program itself may have; what surrounds it
#: (Python functions, runtime calls, ranges) has many rows, and would hide the program's changes otherwise.
_PROGRAM_SHARE = 0.9
TOGETHER = "(all together)"
#: Runs of which less than this share of the program's time has a counterpart are of different programs.
_SAME_PROGRAM = 0.5


def compare(
    a: TraceData,
    b: TraceData,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.01,
    min_change_pct: float = 1.0,
    skip_warmup: bool = True,
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare two runs of the same program: its methods, layers, operators, kernels and all around it.

    Every kind of span is at one of the levels. Things are aligned by name (and instance, where both runs have
    it; an engine that was built anew is found by its method and delegate index). Each is compared by its time
    per iteration, warm-up left out; where a capture has no iterations, by the time per call. Operators and
    Python functions count with their self time, so a change shows where it happened; methods, delegates,
    phases and ranges contain what runs inside them, so they change along with it.

    A verdict of slower or faster is given only when three things agree: a robust test finds a difference
    that is not noise (probability of a false verdict anywhere in one table at most ``alpha``), the
    confidence interval of the change excludes zero, and the change is at least ``min_change_pct``. The
    scatter within the runs is the yardstick: what differs from one run to the next as a whole (clocks,
    temperature, neighbours) cannot be seen in a single pair; several runs can
    (:func:`torchtrt_viz.analysis.series`).

    Parameters
    ----------
    a, b
        The earlier (reference) and the later run.
    levels
        What to compare, some of `LEVELS`.
    alpha
        Probability of one or more false verdicts in the whole table, if nothing changed.
    min_change_pct
        Changes smaller than this are no findings, however certain.
    skip_warmup
        Leave warm-up iterations out.
    confidence
        Of the interval of the change.
    seed
        Of the resampling; the same seed gives the same table.

    Returns
    -------
    pandas.DataFrame
        ``level``
            method, delegate, phase, layer, operator, kernel (whatever a device executes), annotation, step,
            runtime, memory, communication (on the host), python or other.
        ``name``, ``run_id``
            What is compared, and its instance; missing: none. ``(all together)`` stands for everything at a
            level and domain, where most of its time is of things with fewer than three samples: then each
            thing is a sample of the change.
        ``domain``
            host or gpu.
        ``verdict``
            slower, faster, same (any change is certainly below ``min_change_pct``), unclear (neither),
            added or removed (in one run only).
        ``change_pct``
            Time in ``b`` against ``a``, percent; positive is slower. NA for added and removed.
        ``low_pct``, ``high_pct``
            Confidence interval of it (bootstrap over iterations); NA with fewer than two samples.
        ``a_ns``, ``b_ns``
            Mean time per iteration (or call) in each run, ns; NA where it did not run. Of ten or more samples
            the smallest and largest tenth are drawn in to the rest first, so that single hiccups do not show.
        ``delta_ns``
            ``b_ns - a_ns``; NA where it did not run in one of them.
        ``a_samples``, ``b_samples``
            Iterations (or calls) behind the means.
        ``a_calls``, ``b_calls``
            Calls within them.
        ``basis``
            iteration, call, or mean (an average without scatter: never more than unclear).
        ``p_value``
            Corrected for all rows of the table (Holm); NA without a test.

        Ordered by verdict, largest difference first. ``attrs`` says how much of the runs was compared:
        ``coverage`` (a sentence), ``host_coverage_pct`` and ``gpu_coverage_pct`` (share of the measured time
        that has a counterpart in the other run, of the run where it is less; None without any measured
        time), and ``outcome``: changed, unchanged, nothing comparable, or different programs
        (:func:`outcome`).

    Raises
    ------
    OptionError
        For an unknown level, or limits out of range.
    """
    _check(levels, alpha, min_change_pct, confidence)
    rows: list[dict[str, Any]] = []
    for level in levels:
        rows += _level(a, b, level, skip_warmup, confidence, seed)
    _judge(rows, alpha, min_change_pct)
    frame = _frame(rows)
    coverage = _coverage(a, b, levels)
    frame.attrs.update(
        coverage=coverage.sentence(),
        host_coverage_pct=coverage.percent("host"),
        gpu_coverage_pct=coverage.percent("gpu"),
        program_coverage_pct=coverage.program_percent(),
    )
    frame.attrs["outcome"] = outcome(frame)
    return frame


def _check(levels: Sequence[str], alpha: float, min_change_pct: float, confidence: float) -> None:
    for level in levels:
        if level not in LEVELS:
            raise OptionError("levels", level, "some of " + ", ".join(LEVELS))
    check_limits(alpha, min_change_pct, confidence)


def _level(
    a: TraceData, b: TraceData, level: str, skip_warmup: bool, confidence: float, seed: int
) -> list[dict[str, Any]]:
    before = samples(a, level, skip_warmup=skip_warmup)
    after = samples(b, level, skip_warmup=skip_warmup)
    if before.basis != after.basis and "mean" not in (before.basis, after.basis):
        # time per iteration against time per call would compare two different things
        before = samples(a, level, skip_warmup=skip_warmup, per_call=True)
        after = samples(b, level, skip_warmup=skip_warmup, per_call=True)
    basis = before.basis if before.basis == after.basis else "mean"
    index_a, index_b = _index(before), _index(after)
    mean_a, mean_b = winsorised_means(before.values), winsorised_means(after.values)
    rows = []
    pairs: list[tuple[dict[str, Any], Floats, Floats]] = []
    for key, x, y in _aligned(index_a, index_b):
        row: dict[str, Any] = {
            "level": level,
            "name": key[0],
            "run_id": key[1],
            "domain": key[2],
            "basis": basis,
            "a_ns": None if x is None else float(mean_a[x]),
            "b_ns": None if y is None else float(mean_b[y]),
            "a_samples": 0 if x is None else len(before.values[x]),
            "b_samples": 0 if y is None else len(after.values[y]),
            "a_calls": 0 if x is None else int(before.calls[x]),
            "b_calls": 0 if y is None else int(after.calls[y]),
            "low": np.nan,
            "high": np.nan,
            "p": None,
        }
        if x is not None and y is not None and basis != "mean":
            pairs.append((row, before.values[x], after.values[y]))
        rows.append(row)
    values_a, values_b = [x for _, x, _ in pairs], [y for _, _, y in pairs]
    found = tested(values_a, values_b, confidence, seed)
    for (row, _, _), low, high, p in zip(pairs, *found, strict=True):
        row["low"], row["high"], row["p"] = float(low), float(high), float(p)
    return rows + _together(rows, level, confidence, seed)


def _together(rows: list[dict[str, Any]], level: str, confidence: float, seed: int) -> list[dict[str, Any]]:
    """Return a row for all things of a level and domain where most time is of things with too few samples.

    Each thing's ratio is then a sample: what made everything three times slower shows, although no single
    thing ran often enough to tell.
    """
    out: list[dict[str, Any]] = []
    for domain in ("host", "gpu"):
        both = [row for row in rows if row["domain"] == domain and row["a_ns"] and row["b_ns"]]
        both = [row for row in both if row["basis"] != "mean"]
        times = {few: sum(row["a_ns"] for row in both if _few(row) is few) for few in (True, False)}
        if len(both) < SAMPLES or times[True] <= times[False]:
            continue
        before = np.array([row["a_ns"] for row in both], np.float64)
        after = np.array([row["b_ns"] for row in both], np.float64)
        drawn = resampling_weights(len(both), 2000, seed)
        tail = (1.0 - confidence) / 2.0
        low, high = np.quantile(after @ drawn / (before @ drawn), (tail, 1.0 - tail))
        logs = np.log(after / before)
        error = float(logs.std(ddof=1)) / len(logs) ** 0.5
        middle = abs(float(logs.mean()))
        t = middle / error if error > 0 else np.inf if middle > 0 else 0.0
        out.append(
            {
                **both[0],
                "name": TOGETHER,
                "run_id": None,
                "a_ns": float(before.sum()),
                "b_ns": float(after.sum()),
                "a_samples": len(both),
                "b_samples": len(both),
                "a_calls": sum(row["a_calls"] for row in both),
                "b_calls": sum(row["b_calls"] for row in both),
                "low": float(low),
                "high": float(high),
                "p": float(2.0 * student_tail(t, len(both) - 1)),
            }
        )
    return out


def _few(row: dict[str, Any]) -> bool:
    return bool(min(row["a_samples"], row["b_samples"]) < SAMPLES)


_Key = tuple[str, "str | None", str]


def _aligned(left: dict[_Key, int], right: dict[_Key, int]) -> list[tuple[_Key, int | None, int | None]]:
    """Pair what is the same in both runs.

    An engine that was built anew has another content hash, so what has no partner under its own id is
    paired by its place in the program, where that is unambiguous.
    """
    pairs: list[tuple[_Key, int | None, int | None]] = [
        (key, left[key], right[key]) for key in left if key in right
    ]
    by_place: dict[_Key, tuple[list[_Key], list[_Key]]] = {}
    for side, (mine, other) in enumerate(((left, right), (right, left))):
        for key in mine:
            if key not in other:
                instance = None if key[1] is None else CONTENT_HASH.sub("", key[1])
                place = (CONTENT_HASH.sub("", key[0]), instance, key[2])
                by_place.setdefault(place, ([], []))[side].append(key)
    for place, (before, after) in by_place.items():
        if len(before) == len(after) == 1:
            pairs.append((place, left[before[0]], right[after[0]]))
        else:
            pairs += [(key, left[key], None) for key in before]
            pairs += [(key, None, right[key]) for key in after]
    return pairs


def _index(found: Samples) -> dict[_Key, int]:
    return {key: position for position, key in enumerate(key_rows(found.keys))}


@dataclass(frozen=True)
class Coverage:
    """How much of the time of two runs has a counterpart in the other one.

    Attributes
    ----------
    whole
        Measured time of either run by domain, ns: self time of host spans, durations of device work.
    paired
        The part of it with a counterpart.
    program
        Time of the program itself (see `PROGRAM_LEVELS`), and the part of it with a counterpart, by domain.
    """

    whole: dict[str, tuple[int, int]]
    paired: dict[str, tuple[int, int]]
    program: dict[str, tuple[tuple[int, int], tuple[int, int]]]

    def percent(self, domain: str) -> float | None:
        """Return the share of a domain's time that is compared, of the run where it is less."""
        return _least_share(self.paired[domain], self.whole[domain])

    def program_percent(self) -> float | None:
        """Return the share of the program's time that is compared, in the domain where it is more."""
        found = [
            value
            for whole, paired in self.program.values()
            if (value := _least_share(paired, whole)) is not None
        ]
        return max(found, default=None)

    def sentence(self) -> str:
        """Say it in words."""
        parts = [
            f"{value:.3g} % of the measured {words} time"
            for domain, words in (("host", "host"), ("gpu", "GPU"))
            if (value := self.percent(domain)) is not None
        ]
        return f"compared: {' and '.join(parts)}" if parts else "compared: no measured time"


def _least_share(part: tuple[int, int], whole: tuple[int, int]) -> float | None:
    if not any(whole):
        return None
    return min(100.0 * p / w if w else 0.0 for p, w in zip(part, whole, strict=True))


def _coverage(a: TraceData, b: TraceData, levels: Sequence[str]) -> Coverage:
    whole = {
        "host": (int(host_nesting(a).self_ns.sum()), int(host_nesting(b).self_ns.sum())),
        "gpu": (int(device_work(a).dur.sum()), int(device_work(b).dur.sum())),
    }
    paired = {"host": [0, 0], "gpu": [0, 0]}
    program = {"host": ([0, 0], [0, 0]), "gpu": ([0, 0], [0, 0])}
    for level in levels:
        times = [exclusive_times_of(trace, level) for trace in (a, b)]
        numbered = [{key: at for at, key in enumerate(found)} for found in times]
        values = [list(found.values()) for found in times]
        for key, x, y in _aligned(*numbered):
            both = x is not None and y is not None
            for side, at in enumerate((x, y)):
                if at is None:
                    continue
                if both:
                    paired[key[2]][side] += values[side][at]
                if level in PROGRAM_LEVELS:
                    program[key[2]][0][side] += values[side][at]
                    program[key[2]][1][side] += values[side][at] if both else 0
    pair: Any = tuple
    return Coverage(
        whole,
        {domain: pair(found) for domain, found in paired.items()},
        {domain: (pair(time), pair(both)) for domain, (time, both) in program.items()},
    )


def outcome(comparison: pd.DataFrame) -> Outcome:
    """Say what a comparison shows as a whole.

    Parameters
    ----------
    comparison
        What :func:`compare` returned.

    Returns
    -------
    str
        ``different programs`` when less than half of the time that either run spent in its program
        (operators, kernels, layers, delegates, methods) has a counterpart in the other, or nothing has;
        ``nothing comparable`` when no thing is in both runs with enough samples to judge it;
        ``changed`` when something is slower or faster, added or removed; else ``unchanged``.
    """
    before, after = comparison["a_ns"].notna().to_numpy(), comparison["b_ns"].notna().to_numpy()
    both = before & after
    share = comparison.attrs.get("program_coverage_pct")
    if (
        before.any()
        and after.any()
        and (not both.any() or (share is not None and share < 100 * _SAME_PROGRAM))
    ):
        return "different programs"
    equal = (comparison["a_ns"] == comparison["b_ns"]).fillna(False).to_numpy(dtype=bool)
    few = comparison[["a_samples", "b_samples"]].min(axis=1).to_numpy(dtype=np.int64, na_value=0) < SAMPLES
    judged = both & (equal | ~few) & ((comparison["basis"] != "mean").to_numpy() | equal)
    if not judged.any():
        return "nothing comparable"
    changed = comparison["verdict"].isin(["slower", "faster", "added", "removed"]).any()
    return "changed" if changed else "unchanged"


def _judge(rows: list[dict[str, Any]], alpha: float, min_change_pct: float) -> None:
    """Give every row its verdict."""
    tested = [row for row in rows if row["p"] is not None]
    groups: list[list[dict[str, Any]]] = [[], []]
    for row in tested:
        groups[row["level"] not in PROGRAM_LEVELS].append(row)
    shares = (_PROGRAM_SHARE, 1.0 - _PROGRAM_SHARE) if all(groups) else (1.0, 1.0)
    for group, share in zip(groups, shares, strict=True):
        for row, corrected in zip(group, holm([row["p"] for row in group]), strict=True):
            row["p"] = min(1.0, corrected / share)
    smallest = min_change_pct / 100.0
    for row in rows:
        if row["a_ns"] is None or row["b_ns"] is None:
            row["verdict"] = "added" if row["a_ns"] is None else "removed"
            row["change"] = np.nan
            continue
        change = row["b_ns"] / row["a_ns"] - 1.0 if row["a_ns"] > 0 else np.nan
        row["change"] = change
        low, high = row["low"] - 1.0, row["high"] - 1.0
        row["verdict"] = judged(change, low, high, row["p"], alpha, smallest)


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    def column(name: str) -> Floats:
        return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)

    before, after = column("a_ns"), column("b_ns")
    frame = pd.DataFrame(
        {
            "level": text([row["level"] for row in rows]),
            "name": text([row["name"] for row in rows]),
            "run_id": text([row["run_id"] for row in rows]),
            "domain": text([row["domain"] for row in rows]),
            "verdict": pd.Categorical(
                [row["verdict"] for row in rows], categories=list(VERDICTS), ordered=True
            ),
            "change_pct": floats(100.0 * column("change")),
            "low_pct": floats(100.0 * (column("low") - 1.0)),
            "high_pct": floats(100.0 * (column("high") - 1.0)),
            "a_ns": floats(before),
            "b_ns": floats(after),
            "delta_ns": floats(after - before),
            "a_samples": integers([row["a_samples"] for row in rows]),
            "b_samples": integers([row["b_samples"] for row in rows]),
            "a_calls": integers([row["a_calls"] for row in rows]),
            "b_calls": integers([row["b_calls"] for row in rows]),
            "basis": text([row["basis"] for row in rows]),
            "p_value": floats(column("p")),
        }
    )
    size = np.nan_to_num(np.abs(after - before), nan=-1.0)
    missing = size < 0
    size[missing] = np.nan_to_num(before[missing]) + np.nan_to_num(after[missing])
    verdict = frame["verdict"].cat.codes.to_numpy()
    return frame.iloc[np.lexsort((-size, verdict))].reset_index(drop=True)


def regressions(comparison: pd.DataFrame, threshold_pct: float = 0.0) -> pd.DataFrame:
    """Return the rows of a comparison that should fail a check: slower, by ``threshold_pct`` or more.

    Parameters
    ----------
    comparison
        What :func:`compare` returned.
    threshold_pct
        Smallest change that counts, percent.

    Returns
    -------
    pandas.DataFrame
        The rows of ``comparison`` with verdict slower and ``change_pct >= threshold_pct``.
    """
    if not threshold_pct >= 0:
        raise OptionError("threshold_pct", threshold_pct, "0 or more percent")
    change = comparison["change_pct"].to_numpy(dtype=np.float64, na_value=np.nan)
    keep = (comparison["verdict"] == "slower").to_numpy() & (change >= threshold_pct)
    return comparison[keep].reset_index(drop=True)
