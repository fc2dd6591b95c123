"""Steps over the ranks of a session, and the ranks that are behind.

Only durations are compared, each measured on its rank's own clock: nothing here needs clocks that agree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns.sessions import COLLECTIVES, STEPS, STRAGGLERS
from torchtrt_viz.analysis.core.step_names import COUNTED, NUMBER, kind_in_mark, kind_in_name
from torchtrt_viz.model.frame_docs import returns

if TYPE_CHECKING:
    from torchtrt_viz.model.session_data import SessionData
    from torchtrt_viz.model.trace_data import TraceData

__all__ = [
    "collectives_of",
    "session_collectives",
    "session_steps",
    "steps_of",
    "stragglers",
    "stragglers_of",
    "trace_collectives",
    "trace_steps",
]

#: How serving engines and this package name the range of one engine step.
_ENGINE_STEP = re.compile(r"(?:engine_step|prefill_step|decode_step|execute_(?:context|new|\d+)|step)[\[_ #]")
_PHASE = re.compile(r"(?:prefill|decode)\[")
#: Prefixes under which torch's communication libraries record a collective on the host.
_COLLECTIVE = ("gloo:", "nccl:", "ucc:", "mpi:", "xccl:")
_POINT_TO_POINT = re.compile(r":i?(?:send|recv)(?:_any_source)?$|SendRecv|(?:^|_)(?:send|recv)_?$")
_NUMBER = re.compile(r"#(\d+)$")
_RANK = ["session", "rank", "role", "instance", "host"]


def trace_steps(trace: TraceData) -> pd.DataFrame:
    """Steps of one trace.

    Returns
    -------
    pandas.DataFrame
        ``step`` (number in the engine's or the profiler's count where it is recorded, else the position from
        0), ``step_kind``, ``name``, ``start_ns`` (on the trace's base), ``dur_ns``. The steps that this
        package counted in an engine where there are any, without those that found nothing to do; else
        profiler steps; else the ranges that a serving engine puts around its steps; else those of prefill and
        decode work.
    """
    spans = trace.measured
    spans = spans[spans["domain"] == "host"]
    steps = _counted_steps(spans)
    number = NUMBER
    if steps.empty:
        number = _NUMBER
        steps = spans[spans["kind"] == "step"]
    if steps.empty:
        names = spans["name"].cat.categories
        engine = [n for n in names if _ENGINE_STEP.match(str(n))]
        engine = engine or [n for n in names if _PHASE.match(str(n))]
        steps = spans[spans["name"].isin(engine) & (spans["kind"] == "annotation")]
    steps = steps.sort_values("start_ns", kind="stable")
    name = steps["name"].astype(object)
    numbers = [number.search(str(n)) for n in name]
    counted = bool(numbers) and all(n is not None for n in numbers)
    step = [int(n[1]) for n in numbers if n is not None] if counted else list(range(len(steps)))
    said = steps["_kind"].tolist() if "_kind" in steps else [None] * len(steps)
    kinds = [one or kind_in_name(str(n)) for one, n in zip(said, name, strict=True)]
    table = pd.DataFrame(
        {
            "step": np.asarray(step, dtype=np.int64),
            "step_kind": pd.Series(kinds, dtype=object),
            "name": name.to_numpy(),
            "start_ns": steps["start_ns"].to_numpy(),
            "dur_ns": steps["dur_ns"].to_numpy(),
        }
    )
    working = np.array(
        [kind != "idle" for kind in kinds], bool
    )  # of a list that is empty, pandas takes columns
    table = table[working].reset_index(drop=True)
    return table if counted else table.assign(step=np.arange(len(table), dtype=np.int64))


def _counted_steps(spans: pd.DataFrame) -> pd.DataFrame:
    """Return the engine steps that this package counted, with the kind that a mark inside them says.

    A step that found nothing to do has a mark as well, and is left out.
    """
    names = spans["name"].cat.categories
    counted = [n for n in names if COUNTED.match(str(n))]
    steps = spans[spans["name"].isin(counted) & (spans["kind"] == "annotation")]
    marks = spans[spans["name"].isin([n for n in names if kind_in_mark(str(n))])]
    if steps.empty:
        return steps
    steps = steps.sort_values(["track", "start_ns"], kind="stable")
    kinds: list[str | None] = [None] * len(steps)
    idle = np.zeros(len(steps), bool)
    for track, inside in marks.groupby("track", observed=True):
        mine = np.flatnonzero((steps["track"] == track).to_numpy())
        if not len(mine):
            continue
        start = steps["start_ns"].to_numpy()[mine]
        end = start + steps["dur_ns"].to_numpy()[mine]
        at = inside["start_ns"].to_numpy()
        place = np.searchsorted(start, at, side="right") - 1
        for mark, when, row in zip(inside["name"].astype(str), at, place, strict=True):
            if row < 0 or when > end[row]:
                continue
            kind = kind_in_mark(mark)
            if kind == "idle":
                idle[mine[row]] = True
            else:
                kinds[mine[row]] = kind
    return steps.assign(_kind=pd.Series(kinds, index=steps.index, dtype=object))[~idle]


@returns(STEPS)
def session_steps(session: SessionData) -> pd.DataFrame:
    """Duration of each step on each rank.

    Returns
    -------
    pandas.DataFrame
        One row per rank and step.
    """
    return steps_of(session.map(trace_steps))


def steps_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The same from the ranks' tables of :func:`trace_steps` under each other."""
    groups = frame.groupby(["session", "role", "cycle", "step"], dropna=False)["dur_ns"]
    frame["median_ns"] = groups.transform("median")
    frame["behind_ns"] = frame["dur_ns"] - frame["median_ns"]
    return frame


def trace_collectives(trace: TraceData) -> pd.DataFrame:
    """Collectives of one trace in order.

    Returns
    -------
    pandas.DataFrame
        ``name``, ``domain`` (host or gpu: whose time it is), ``group`` (process group as recorded: its name
        and ranks; None where the record says none, as on the host), ``number`` (from 0, per name and group),
        ``dur_ns``.
    """
    spans = trace.measured
    names = spans["name"].cat.categories
    library = [n for n in names if str(n).startswith(_COLLECTIVE) and not _POINT_TO_POINT.search(str(n))]
    is_range = spans["name"].isin(library) & spans["kind"].isin(["annotation", "communication", "other"])
    found = spans[is_range & (spans["domain"] == "host")]
    group: list[str | None] = [None] * len(found)
    if found.empty:
        apart = [n for n in names if _POINT_TO_POINT.search(str(n))]
        found = spans[(spans["kind"] == "communication") & ~spans["name"].isin(apart)]
        found = found.sort_values("start_ns", kind="stable")
        group = [_group(details) for details in trace.args.read(found.index.to_numpy())]
    else:
        found = found.sort_values("start_ns", kind="stable")
    frame = pd.DataFrame(
        {
            "name": found["name"].astype(object).to_numpy(),
            "domain": found["domain"].astype(object).to_numpy(),
            "group": pd.Series(group, dtype=object),
            "dur_ns": found["dur_ns"].to_numpy(),
        }
    )
    number = frame.groupby(["name", "domain", "group"], dropna=False, sort=False).cumcount()
    frame.insert(3, "number", number.to_numpy())
    return frame


def _group(details: dict[str, Any]) -> str | None:
    """Return what tells the process group of a collective from others, None where it is not recorded."""
    name, ranks = details.get("Process Group Name"), details.get("Process Group Ranks")
    parts = [str(part) for part in (name, ranks) if part not in (None, "")]
    return " ".join(parts) or None


@returns(COLLECTIVES)
def session_collectives(session: SessionData) -> pd.DataFrame:
    """Collectives over ranks: for whom the others waited.

    Returns
    -------
    pandas.DataFrame
        One row per collective that the ranks of a group recorded equally often: see `collectives_of`.
    """
    return collectives_of(session.map(trace_collectives))


def collectives_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Collectives over ranks, from the ranks' tables of :func:`trace_collectives` under each other.

    All ranks leave a collective at about the same moment, so the one that is in it for the shortest time
    entered it last. That needs no common clock. Only ranks of one session, role, cycle and process group are
    compared (where no group is recorded, all ranks of the role), and only where each of them recorded the
    collective equally often: with other counts nothing says which belong together.

    Returns
    -------
    pandas.DataFrame
        The columns of :func:`session_collectives`.
    """
    group = ["session", "role", "cycle", "name", "domain", "group"]
    columns = [*group, "number", "ranks", "min_ns", "max_ns", "last_rank", "wait_ns"]
    if frame.empty:
        return COLLECTIVES.typed(pd.DataFrame(columns=columns))
    counts = frame.groupby([*group, "rank", "instance", "host"], dropna=False)["number"].transform("size")
    same = frame.assign(_count=counts).groupby(group, dropna=False)["_count"]
    frame = frame[(same.transform("min") == same.transform("max")).to_numpy()].reset_index(drop=True)
    groups = frame.groupby([*group, "number"], dropna=False, sort=False)
    frame = frame[(groups["dur_ns"].transform("size") > 1).to_numpy()].reset_index(drop=True)
    groups = frame.groupby([*group, "number"], dropna=False, sort=False)
    out = groups.agg(
        ranks=("dur_ns", "size"), min_ns=("dur_ns", "min"), max_ns=("dur_ns", "max"), total=("dur_ns", "sum")
    ).reset_index()
    out["last_rank"] = frame.loc[groups["dur_ns"].idxmin().to_numpy(), "rank"].array
    out["wait_ns"] = out.pop("total") - out["ranks"] * out["min_ns"]
    return COLLECTIVES.typed(out[columns])


@returns(STRAGGLERS)
def stragglers(session: SessionData) -> pd.DataFrame:
    """Ranks by how much the others wait for them, or how far they are behind.

    Where ranks meet in collectives, a slow rank makes every rank's steps equally long: whom the others wait
    for shows in the collectives only. Ranks that work apart are told by their steps.

    Returns
    -------
    pandas.DataFrame
        One row per rank, the one that others wait for most first.
    """
    steps, collectives = session.map_all([(trace_steps, {}), (trace_collectives, {})])
    return stragglers_of(session.ranks, steps_of(steps), collectives_of(collectives))


def stragglers_of(ranks: pd.DataFrame, frame: pd.DataFrame, waits: pd.DataFrame) -> pd.DataFrame:
    """The same from the session's ranks, the table of `steps_of` and that of `collectives_of`."""
    groups = frame.groupby(["session", "role", "cycle", "step"], dropna=False)["dur_ns"]
    frame = frame.assign(slowest=frame["dur_ns"] == groups.transform("max"))
    frame = frame[(groups.transform("size") > 1).to_numpy()]
    steps = (
        frame.groupby(_RANK, dropna=False, sort=False)
        .agg(
            steps=("step", "size"),
            step_ns=("dur_ns", "sum"),
            median=("median_ns", "sum"),
            behind_ns=("behind_ns", "sum"),
            slowest=("slowest", "sum"),
        )
        .reset_index()
    )
    median = steps.pop("median").astype("Float64")
    steps.insert(len(_RANK) + 3, "behind_pct", 100.0 * steps["behind_ns"] / median.where(median > 0))
    everyone = ranks.loc[ranks["what"].eq("trace") & ranks["state"].ne("missing"), _RANK].drop_duplicates()
    late = waits.groupby(["session", "role", "last_rank"], dropna=False).agg(
        waited_for_ns=("wait_ns", "sum"), last_in=("wait_ns", "size")
    )
    late = late.reset_index().rename(columns={"last_rank": "rank"})
    out = _joined(everyone, late, ["session", "role", "rank"])
    out = _joined(out, steps, _RANK)
    if len(waits):
        met = set(_pairs(waits))
        compared = [pair in met for pair in _pairs(out)]
        for column in ("waited_for_ns", "last_in"):
            out[column] = out[column].mask(out[column].isna() & pd.Series(compared), 0)
    for column in ("waited_for_ns", "last_in", "steps", "step_ns", "slowest"):
        out[column] = out[column].astype("Int64")
    return out.sort_values(
        ["waited_for_ns", "behind_ns"], ascending=False, na_position="last", kind="stable"
    ).reset_index(drop=True)


def _pairs(frame: pd.DataFrame) -> list[tuple[Any, Any]]:
    """Session and role of each row, None for what is missing."""
    columns = (frame[name].astype(object).where(frame[name].notna(), None) for name in ("session", "role"))
    return list(zip(*columns, strict=True))


def _joined(left: pd.DataFrame, right: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Join on columns that may be missing (None equals None)."""
    made = {key: right[key].astype(left[key].dtype) for key in keys}
    return left.merge(right.assign(**made), on=keys, how="left")
