"""The registry of tables: which there are, where each is computed, what it holds, and which view shows it.

`Trace`, the command line, the magic, the report, the notebook's static form and the explorer read it; a new
table is one entry here, and its columns in :mod:`torchtrt_viz.analysis.columns`. It imports neither pandas
nor the analyses: a function is imported when its table is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast

from torchtrt_viz.analysis.columns import (
    answers,
    by_name,
    device,
    engines,
    graph_table,
    hangs,
    memory_use,
    runs,
    sessions,
    structure,
)
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.schema import EVENTS, FrameSchema

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FRAMES", "SESSION_TABLES", "TABLES", "SpansOf", "Table", "View", "shown_in", "table"]

View = Literal["report", "picture", "cell", "explorer", "terminal"]
"""A page; the static picture of a trace; what the cell magic adds to it; linked widgets; the command line."""


@dataclass(frozen=True)
class SpansOf:
    """Which spans the rows of a table stand for.

    Attributes
    ----------
    column
        Column of the table that names them.
    kinds
        Kinds of these spans.
    domain
        Their domain; None: either.
    instance
        Column with the spans' ``run_id``, where the table tells instances apart.
    field
        Column of the spans that ``column`` is compared with.
    """

    column: str
    kinds: tuple[str, ...]
    domain: str | None = None
    instance: str | None = None
    field: str = "name"


@dataclass(frozen=True)
class Table:
    """One table of a trace or of a session.

    Attributes
    ----------
    function
        Where it is computed: module below `torchtrt_viz.analysis`, and function. Empty for what only
        `Session.overview` computes, with the others.
    schema
        Its columns.
    title
        Heading, which says host or GPU where it is one of them.
    note
        How to read it, under the heading where there is room.
    views
        Which views show it.
    brief
        Columns shown where there is little room; empty: all.
    essential
        Columns that stay where not even these fit: what a row is, its time, its share.
    rows
        Rows shown there.
    spans
        Which spans its rows stand for; a table with these can be linked with a timeline.
    shown
        What reports show of it, where that is not the table itself.
    """

    function: str
    schema: FrameSchema
    title: str
    note: str = ""
    views: tuple[View, ...] = ()
    brief: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    rows: int = 10
    spans: SpansOf | None = None
    shown: FrameSchema | None = None

    def __call__(self, data: Any, **options: Any) -> pd.DataFrame:
        """Compute the table of a trace or session; ``options`` are those of its function."""
        module, _, name = self.function.partition(":")
        made = getattr(import_module(f"torchtrt_viz.analysis.{module}"), name)(data, **options)
        return cast("pd.DataFrame", made)


_TRACE = (
    Table(
        "answers.six_questions:questions",
        answers.QUESTIONS,
        "The six questions",
        "What was measured, what was not, and how to measure it.",
        views=("report", "terminal"),
    ),
    Table(
        "answers.judgement:verdict",
        answers.VERDICT,
        "Verdict",
        "What could make the capture shorter, the most first. What findings could save overlaps: it is not "
        "added.",
        views=("terminal",),
        brief=("number", "finding", "could_save_ns", "could_save_pct", "basis"),
    ),
    Table("answers.findings:explain", answers.EXPLAIN, "What stands out", views=("terminal",)),
    Table(
        "answers.capture_summary:summary",
        answers.SUMMARY,
        "Summary",
        "Totals of the capture. Host and GPU figures are never added.",
        views=("report", "terminal"),
        essential=("section", "item", "value", "unit", "note"),
    ),
    Table(
        "device.host_gpu_time:host_gpu",
        by_name.HOST_GPU,
        "Host and GPU",
        "Where the time of the whole window went, on either side.",
        views=("report", "terminal"),
        essential=("measure", "domain", "ns", "pct"),
    ),
    Table(
        "device.operator_tables:operators",
        by_name.OPERATORS,
        "Operators (host time)",
        "Host time by name. Work that operators launched on the GPU is a column of its own, not part of it.",
        views=("report", "picture", "explorer", "terminal"),
        essential=("name", "self_ns", "self_pct", "calls"),
        brief=("name", "calls", "self_ns", "self_pct", "total_ns", "device_total_ns", "graph_calls"),
        spans=SpansOf("name", ("operator",)),  # on the host, and recovered for graphs
    ),
    Table(
        "device.operator_tables:kernels",
        by_name.KERNELS,
        "Kernels (GPU time)",
        "Device work by name: sums of durations, which is not wall time where streams overlap.",
        views=("report", "picture", "explorer", "terminal"),
        essential=("name", "total_ns", "total_pct", "calls"),
        brief=("name", "calls", "total_ns", "total_pct", "mean_ns"),
        spans=SpansOf("name", ("kernel", "memcpy", "memset", "communication", "phase", "layer"), "gpu"),
    ),
    Table(
        "device.graph_table:graphs",
        graph_table.GRAPHS,
        "Graph launches",
        "Each launch's host time once, beside the GPU time of the kernels that it ran; how many of them "
        "have their operator back from the graph's capture, and why the others have none.",
        views=("report", "picture", "terminal"),
        essential=("launched_by", "host_ns", "gpu_ns", "matched_gpu_pct"),
        brief=(
            *("launched_by", "graph", "host_ns", "kernels", "gpu_ns"),
            *("exact", "ordered", "by_name", "none", "matched_gpu_pct"),
        ),
    ),
    Table(
        "engine.delegate_calls:delegates",
        engines.DELEGATES,
        "Delegates (host time)",
        "Host time of every delegate's calls.",
        views=("report", "cell", "explorer", "terminal"),
        essential=("delegate", "host_total_ns", "host_pct"),
        brief=(
            *("delegate", "backend", "engine_runtime", "calls", "host_total_ns", "host_mean_ns"),
            *("launch_overhead_ns", "layers_ns", "gpu_ns"),
        ),
        spans=SpansOf("delegate", ("delegate",), field="run_id"),
    ),
    Table(
        "engine.delegate_calls:phases",
        engines.PHASES,
        "Phases of delegate calls (host time)",
        "An enqueue's host time is launch overhead, not GPU time.",
        views=("report", "cell", "explorer", "terminal"),
        essential=("phase", "delegate", "total_ns", "pct"),
        brief=("delegate", "phase", "calls", "total_ns", "mean_ns", "pct"),
        rows=16,
        spans=SpansOf("phase", ("phase",), instance="delegate"),
    ),
    Table(
        "engine.layer_table:layers",
        engines.LAYERS,
        "Layers of engines",
        "Time by layer; the column says on which side it was spent.",
        views=("report", "picture", "explorer", "terminal"),
        essential=("name", "total_ns", "pct", "domain"),
        brief=("engine", "name", "type", "precision", "domain", "calls", "total_ns", "mean_ns", "pct"),
        spans=SpansOf("name", ("layer",), instance="engine"),
    ),
    Table(
        "device.memory_use:memory",
        memory_use.MEMORY,
        "Memory over time",
        views=("terminal",),
        essential=("device", "ts_ns", "allocated_bytes"),
    ),
    Table(
        "device.named_ranges:nvtx",
        device.NVTX,
        "Named ranges",
        "Host time of each range, and beside it the device work that was launched inside.",
        essential=("name", "dur_ns", "device_busy_ns"),
    ),
    Table(
        "device.profiled_kernels:kernel_metrics",
        device.KERNEL_METRICS,
        "Metrics of kernels",
        "What Nsight Compute measured of single kernels, each by itself and under fixed clocks.",
        essential=("name", "metric", "unit", "value"),
    ),
    Table(
        "hangs.entries:recorded_collectives",
        hangs.RECORDED,
        "Collectives that the Flight Recorder holds",
        "The latest first. Times are the host's: when a call enqueued it, and when the recorder noticed.",
        views=("report", "terminal"),
        essential=("operation", "sequence", "state"),
        brief=("group", "operation", "sequence", "state", "input_sizes", "input_types", "source"),
    ),
)

SESSION_TABLES: dict[str, Table] = {
    "hangs": Table(
        "hangs.session_tables:session_hangs",
        hangs.HANGS,
        "Hangs: where ranks wait or disagree",
        "Out of the dumps of Flight Recorders. Ranks are compared by the numbers of their collectives, not "
        "by clocks. Causes come before what follows from them.",
        views=("report", "picture", "terminal"),
        essential=("problem", "operation", "waiting", "missing"),
        brief=("problem", "certainty", "group", "operation", "sequence", "waiting", "missing", "source"),
    ),
    "positions": Table(
        "hangs.session_tables:session_positions",
        hangs.POSITIONS,
        "The last collective of each rank",
        "What the rank called last in each of its process groups. Ring buffers begin at different numbers.",
        views=("report",),
    ),
    "roles": Table(
        "",
        sessions.ROLES,
        "Roles side by side",
        "Prefill against decode. Steps are host time by each rank's own clock. Host and GPU figures stand "
        "beside each other and are never added.",
        views=("report", "picture"),
    ),
    "by_role": Table(
        "",
        sessions.BY_ROLE,
        "Operators by role (host time)",
        "Self host time: share of the role's own, and of one call on average.",
        views=("report",),
    ),
    "operators": Table(
        "session.rank_operators:session_operators",
        sessions.OPERATORS_OVER_RANKS,
        "Operators over ranks (host time)",
        "Host time by name, summed over ranks: work, not wall time, because ranks run at the same time.",
        views=("report", "picture", "terminal"),
        essential=("name", "self_ns", "self_pct"),
    ),
    "stragglers": Table(
        "session.rank_steps:stragglers",
        sessions.STRAGGLERS,
        "Ranks that others wait for, or that are behind",
        "All ranks leave a collective together, so the one that is in it for the shortest time came last: no "
        "common clock is needed. Where ranks do not meet in collectives, their steps tell.",
        views=("report", "picture"),
    ),
    "steps": Table(
        "session.rank_steps:session_steps",
        sessions.STEPS,
        "Imbalance per step (host time)",
        "Steps of equal number over the ranks of a role: equal counts, not the same moment.",
        views=("report",),
        shown=sessions.STEP_IMBALANCE,
    ),
    "collectives": Table(
        "session.rank_steps:session_collectives",
        sessions.COLLECTIVES,
        "Imbalance in collectives",
        "Time that ranks spent waiting for the last one to enter.",
        views=("report",),
        shown=sessions.COLLECTIVE_TOTALS,
    ),
    "skew": Table(
        "session.skew:collective_skew",
        sessions.SKEW,
        "Collectives on devices (GPU time)",
        "The last rank's kernel is the transfer; what the others take longer is waiting. Worst waits first.",
        views=("report",),
    ),
    "requests": Table(
        "session.request_flow:requests",
        sessions.REQUESTS,
        "Requests over prefill and decode (host time)",
        "Host time of the ranges that name a request, summed over its ranks; a range that a batch shares "
        "counts in full for each of its requests.",
        views=("report", "picture", "terminal"),
        essential=("request", "prefill_rank", "decode_rank", "prefill_ns", "decode_ns"),
    ),
}
"""The tables over the ranks of a session, by their field of `Overview`, in the order of the page."""

TABLES: dict[str, Table] = {entry.schema.name: entry for entry in _TRACE}
"""The tables of a trace, by the method of `Trace` that returns them, in the order in which they are shown."""

FRAMES: dict[str, FrameSchema] = {
    schema.name: schema
    for schema in (
        *EVENTS,
        *(
            getattr(module, name)
            for module in (
                answers,
                by_name,
                device,
                graph_table,
                hangs,
                memory_use,
                engines,
                runs,
                sessions,
                structure,
            )
            for name in module.__all__
        ),
    )
}
"""Every frame of traces, sessions and analyses by its name: ``operators``, ``session.steps``, ``copies``."""


def shown_in(view: View, tables: dict[str, Table] = TABLES) -> dict[str, Table]:
    """Return the tables that a view shows, in order."""
    return {name: entry for name, entry in tables.items() if view in entry.views}


def table(trace: TraceData, name: str, **options: Any) -> pd.DataFrame:
    """Compute a table of ``trace`` by its name.

    Raises
    ------
    OptionError
        For a name that is no table.
    """
    if name not in TABLES:
        raise OptionError("table", name, f"one of {', '.join(TABLES)}")
    return TABLES[name](trace, **options)
