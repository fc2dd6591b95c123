"""How much a trace recorded, by plain loops over its spans, and what of its tables says more than that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from torchtrt_viz import analysis
from torchtrt_viz.analysis.catalogue import TABLES
from torchtrt_viz.analysis.core.host_threads import host_nesting, os_threads
from torchtrt_viz.model.schema import KINDS
from torchtrt_viz.model.trace_data import TraceData

WORK = ("kernel", "memcpy", "memset", "communication")


def union(intervals: Iterable[tuple[int, int]]) -> int:
    """Return how much time some intervals cover."""
    total, reach = 0, None
    for begin, end in sorted(intervals):
        if reach is None or begin > reach:
            total, reach = total + end - begin, end
        elif end > reach:
            total, reach = total + end - reach, end
    return total


class Recorded:
    """Measured time of a trace by domain and thread (or stream)."""

    def __init__(self, trace: TraceData) -> None:
        self.host: dict[Any, list[tuple[int, int]]] = defaultdict(list)
        self.queues: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.work_ns = 0  # sum of durations of kernels, copies, fills and collectives
        self.engine: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.launching_ns = 0  # runtime calls
        threads = self._threads(trace)
        columns = ("kind", "domain", "timing", "track", "start_ns", "dur_ns")
        rows = [trace.spans[name].astype(object).to_list() for name in columns]
        totals = 0  # of work of which only sums are known, as Proton's trees have it
        for kind, domain, timing, track, start, dur in zip(*rows, strict=True):
            if timing == "aggregate" and domain == "gpu" and kind in WORK:
                totals += int(dur)
            if timing != "measured":
                continue
            when = (int(start), int(start) + int(dur))
            if domain == "host":
                self.host[threads[track]].append(when)
                self.launching_ns += int(dur) if kind == "runtime" else 0
            elif domain == "gpu" and kind in WORK:
                self.queues[track].append(when)
                self.work_ns += int(dur)
            elif domain == "gpu" and kind in ("phase", "layer"):
                self.engine[track].append(when)
        if not self.queues:  # nothing finer was recorded: the sums stand for the work
            self.work_ns = totals

    @staticmethod
    def _threads(trace: TraceData) -> list[Any]:
        """Name the thread of each track by process and thread; what states neither is a thread of its own.

        A recorder that states only the thread means the process in which another one saw it, if that is one.
        """
        columns = ("process", "thread", "type", "rank", "domain")
        tracks = list(zip(*(trace.tracks[name].astype(object) for name in columns), strict=True))

        def stated(value: Any) -> str | None:
            return None if pd.isna(value) or not str(value) else str(value)

        out: list[Any] = []
        for at, (process, thread, kind, rank, domain) in enumerate(tracks):
            name, within = stated(thread), stated(process)
            if kind in ("async", "counter", "stream", "process") or domain != "host" or name is None:
                out.append(at)
                continue
            others = {
                stated(p) for p, t, _, r, d in tracks if d == "host" and stated(t) == name and r in (rank, -1)
            } - {None}
            out.append((within or (others.pop() if len(others) == 1 else at if others else None), name))
        return out

    @property
    def host_ns(self) -> int:
        """Time in which something was recorded, thread by thread."""
        return sum(map(union, self.host.values()))

    @property
    def device_ns(self) -> int:
        """Durations of work, and of phases and layers of engines that lie in no other of their queue."""
        return self.work_ns + sum(
            end - begin
            for found in self.engine.values()
            for at, (begin, end) in enumerate(found)
            if not any(
                b <= begin and end <= e and (e - b > end - begin or other < at)
                for other, (b, e) in enumerate(found[max(0, at - 50) : at + 50], max(0, at - 50))
            )
        )

    @property
    def device_busy_ns(self) -> int:
        """Time in which any device did anything, queue by queue."""
        queues = {track: self.queues.get(track, []) for track in {*self.queues, *self.engine}}
        return sum(union([*found, *self.engine.get(track, [])]) for track, found in queues.items())


def excesses(trace: TraceData) -> Iterator[str]:
    """Yield every sum of a table that is more than was recorded."""
    whole = Recorded(trace)

    def most(what: str, value: Any, limit: float) -> Iterator[str]:
        if not pd.isna(value) and value > limit:
            yield f"{what}: {value:,} of {limit:,}"

    nesting = host_nesting(trace)
    measured = nesting.thread >= 0
    yield from most("host_nesting", int(nesting.self_ns[measured].sum()), whole.host_ns)
    if measured.any():
        of_thread = pd.Series(nesting.self_ns[measured]).groupby(nesting.thread[measured]).sum()
        names = Recorded._threads(trace)
        for track, ns in of_thread.items():
            if isinstance(names[track], tuple):
                yield from most(f"thread {names[track]}", int(ns), union(whole.host[names[track]]))

    tree = analysis.call_tree(trace)
    yield from most("call_tree self", tree["self_ns"].sum(), whole.host_ns)
    yield from most("call_tree roots", tree.loc[tree["depth"] == 0, "total_ns"].sum(), whole.host_ns)
    by_thread = analysis.call_tree(trace, by_thread=True)
    roots = by_thread[by_thread["depth"] == 0]
    limits = sorted(map(union, whole.host.values()))
    for ns, limit in zip(sorted(roots["total_ns"])[::-1], limits[::-1], strict=False):
        yield from most("call_tree of a thread", ns, limit if len(limits) == len(roots) else whole.host_ns)
    some = analysis.call_tree(trace, kinds=("operator", "runtime", "python"))
    yield from most("call_tree of kinds", some["self_ns"].sum(), whole.host_ns)
    yield from most("folded_stacks", analysis.folded_stacks(trace)["self_ns"].sum(), whole.host_ns)
    boxes = analysis.flame_graph(trace)
    yield from most("flame_graph", (boxes["left_ns"] + boxes["total_ns"]).max(), whole.host_ns)
    launched = analysis.call_tree(trace, value="gpu")
    yield from most("call_tree of gpu", launched["self_ns"].sum(), whole.device_ns)

    for kinds in (("operator",), KINDS):
        table = analysis.operators(trace, kinds=kinds)
        yield from most(f"operators {len(kinds)} self", table["self_ns"].sum(), whole.host_ns)
        yield from most("operators' work", table["device_self_ns"].sum(), whole.device_ns)
        yield from most("an operator's work", table["device_total_ns"].max(), whole.device_ns)
        known = table.attrs["device_unexplained_ns"]
        if known is not None:
            assert table["device_self_ns"].sum() + known == table.attrs["device_ns"]
    kernels = analysis.kernels(trace)
    yield from most("kernels", kernels["total_ns"].sum(), whole.device_ns)
    if not whole.engine:
        assert kernels["total_ns"].sum() == whole.work_ns
    divided = analysis.temporal_breakdown(trace)
    yield from most("temporal_breakdown", divided["busy_ns"].sum(), whole.device_busy_ns)
    assert (divided["busy_ns"] + divided["idle_ns"] == divided["span_ns"]).all()
    yield from most("copies", analysis.copies(trace)["total_ns"].sum(), whole.device_ns)
    delays = analysis.launch_delays(trace)
    assert delays["host_row"].is_unique
    yield from most("launch_delays device", delays["device_ns"].sum(), whole.device_ns)
    if (trace.spans["kind"].to_numpy()[delays["host_row"]] == "runtime").all():
        yield from most("launch_delays host", delays["host_ns"].sum(), whole.launching_ns)
    stats = analysis.launch_stats(trace)
    host_ns = (stats["host_mean_ns"] * stats["calls"]).sum()
    yield from most("launch_stats", host_ns, delays["host_ns"].sum() + 1)

    delegates = analysis.delegates(trace)
    host = trace.spans["domain"] == "host"
    placed = trace.spans["timing"] == "measured"
    # calls that cross each other on one thread are of two clocks: their durations are sums of nothing
    if not nesting.crossing and not (trace.spans["timing"] == "modeled").any():
        yield from most("delegates", delegates["host_total_ns"].sum(), whole.host_ns)
        yield from most("phases", analysis.phases(trace)["total_ns"].sum(), whole.host_ns)
    methods = int(trace.spans.loc[host & placed, "dur_ns"].sum())
    divided = analysis.orchestration(trace)["total_ns"].sum()
    yield from most("orchestration", divided, min(methods, whole.host_ns))
    yield from most("gaps", analysis.delegate_gaps(trace)["operators_ns"].sum(), whole.host_ns)

    both = analysis.host_gpu(trace)
    window = both.loc[both["measure"] == "window", "ns"].max()
    yield from most("host_gpu", both["ns"].max(), 0 if pd.isna(window) else window)
    path = analysis.critical_path(trace)
    yield from most("critical_path", path["dur_ns"].sum(), 0 if pd.isna(window) else window)
    for row in analysis.explain(trace, top=20).itertuples():
        yield from most(f"explain: {row.finding}", row.impact_pct, 100.0 + 1e-6)
        if row.of == "the capture's length":
            yield from most(f"explain: {row.finding}", row.impact_ns, trace.duration_ns)

    # whatever else the catalogue holds: no single time is more than all that the file's spans sum up to
    everything = int(trace.spans["dur_ns"].sum())
    for name, table in TABLES.items():
        frame = table(trace)
        for column in table.schema.columns:
            if column.unit == "ns" and column.name.endswith("_ns") and "total" in column.name:
                yield from most(f"{name}.{column.name}", frame[column.name].max(), everything)


def same_thread(trace: TraceData, left: int, right: int) -> bool:
    """Say whether two tracks are taken for one thread."""
    found = os_threads(trace)
    return bool(found[left] == found[right])
