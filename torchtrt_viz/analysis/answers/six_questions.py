"""The six questions that a capture has to answer, each with what could not be measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.columns import answers
from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.humanize import count, duration, listing, share
from torchtrt_viz.analysis.core.intervals import length
from torchtrt_viz.analysis.core.masks import among, in_ns, measured
from torchtrt_viz.analysis.core.readable import engine_names, layer_name
from torchtrt_viz.analysis.core.tables import records
from torchtrt_viz.analysis.engine.delegate_calls import UNATTRIBUTED, delegates, phases
from torchtrt_viz.analysis.engine.engine_facts import engine_infos
from torchtrt_viz.analysis.engine.gaps import delegate_gaps, orchestration
from torchtrt_viz.analysis.engine.layer_table import layers
from torchtrt_viz.analysis.engine.origins import provenance
from torchtrt_viz.analysis.engine.regions import engine_operators
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["QUESTIONS", "questions"]

QUESTIONS = (
    "Which TensorRT and other delegate regions ran?",
    "How much host time did each delegate call consume?",
    "Inside each TensorRT delegate, how much went to binding, staging, enqueue and synchronisation?",
    "With layer profiling on, which layers dominate the engine's time?",
    "How much is spent between delegates, on copies and orchestration?",
    "Which exported graph regions (and source lines, where recorded) do these events belong to?",
)

#: Phases of which Torch-TensorRT's runtime writes a file each.
_PHASE_FILES = ("input", "output", "enqueue", "device_config")
_CAPTURE = "torchtrt_viz.profile(level=...) around the run, or the load option torchtrt_profile_level"


@dataclass
class Answer:
    """One answer: what was found, where it comes from, and what is missing."""

    text: str
    measured: str  # yes, partly, no
    source: str
    values: dict[str, Any] = field(default_factory=dict)
    missing: str = ""
    how: str = ""


@dataclass(frozen=True)
class Evidence:
    """The tables that several answers use."""

    trace: TraceData
    delegates: pd.DataFrame
    regions: pd.DataFrame
    infos: dict[str, Any]
    methods: int

    @property
    def names(self) -> dict[str, str]:
        """Readable names of the delegates and engines."""
        return engine_names([*self.delegates["delegate"], *self.trace.spans["run_id"].cat.categories])

    @property
    def complete(self) -> bool:
        """Whether the capture would hold delegate calls if there were any, and holds none."""
        return self.methods > 0 and len(self.delegates) == 0 and len(self.regions) == 0


@returns(answers.QUESTIONS)
def questions(trace: TraceData) -> pd.DataFrame:
    """Answer the six questions that a capture of a deployed model has to answer.

    Returns
    -------
    pandas.DataFrame
        One row per question.

    Examples
    --------
    >>> tv.analysis.questions(trace)["measured"].tolist()
    ['partly', 'yes', 'yes', 'partly', 'partly', 'no']
    """
    methods = int((among(trace.spans["kind"], ("method",)) & measured(trace)).sum())
    evidence = Evidence(trace, delegates(trace), engine_operators(trace), engine_infos(trace), methods)
    answers = [answer(evidence) for answer in (_ran, _host_time, _phases, _layers, _between, _provenance)]
    return pd.DataFrame(
        {
            "question": list(QUESTIONS),
            "answer": [answer.text for answer in answers],
            "measured": [answer.measured for answer in answers],
            "values": pd.Series([answer.values for answer in answers], dtype=object),
            "source": [answer.source for answer in answers],
            "missing": [answer.missing for answer in answers],
            "how": [answer.how for answer in answers],
        }
    )


def _name(row: Any, names: dict[str, str]) -> str:
    backend = "" if pd.isna(row.backend) or row.backend == row.delegate else f" ({row.backend})"
    return f"{names.get(str(row.delegate), row.delegate)}{backend}"


def _ran(evidence: Evidence) -> Answer:
    table = evidence.delegates
    if len(table):
        unnamed = table["backend"].isna().any()
        values = {row.delegate: {"calls": int(row.calls)} for row in records(table)}
        text = f"{count(len(table), 'delegate')} ran: " + listing(
            [f"{_name(row, evidence.names)}, {count(int(row.calls), 'call')}" for row in records(table)], 5
        )
        return Answer(
            text + ".",
            "partly" if unnamed else "yes",
            "trace.delegates()",
            values,
            "the backend of some delegates: their events do not name it" if unnamed else "",
            "load the ETDump together with its ETRecord: torchtrt_viz.load(path, etrecord=...)"
            if unnamed
            else "",
        )
    if evidence.complete:
        return Answer(
            f"No delegate ran in {count(evidence.methods, 'execution')} of methods: all work was done "
            "outside delegates.",
            "yes",
            "trace.delegates()",
            {"delegates": 0, "executions": evidence.methods},
        )
    if len(evidence.regions):
        values = {row.name: {"calls": int(row.calls)} for row in records(evidence.regions)}
        text = f"{count(len(values), 'operator')} that run engines: " + listing(
            [f"{name}, {count(value['calls'], 'call')}" for name, value in values.items()], 5
        )
        return Answer(
            text + ".",
            "partly",
            "trace.operators()",
            values,
            "which engine each call ran: the operator's event does not say",
            "switch on the runtime's own profiling (torch.ops.tensorrt.set_profile_execution(True)), and "
            "load its files together with this trace",
        )
    if evidence.infos:
        values = {name: {"layers": len(info.layers)} for name, info in evidence.infos.items()}
        text = f"The files describe {count(len(values), 'engine')}: " + listing(
            [f"{name} with {count(value['layers'], 'layer')}" for name, value in values.items()], 5
        )
        return Answer(
            text + ".",
            "partly",
            'trace.meta["engines"]',
            values,
            "the program around the engine: engine files tell nothing of other regions",
            f"capture the deployed program: {_CAPTURE}",
        )
    return Answer(
        "The capture holds no call of a delegate or engine.",
        "no",
        "trace.delegates()",
        {},
        "delegate calls",
        f"run the program through {_CAPTURE}; an ETDump records every DELEGATE_CALL",
    )


def _host_time(evidence: Evidence) -> Answer:
    table = evidence.delegates
    if len(table):
        values = {
            row.delegate: {
                "calls": int(row.calls),
                "total_ns": int(row.host_total_ns),
                "mean_ns": float(row.host_mean_ns),
                "median_ns": float(row.host_median_ns),
            }
            for row in records(table)
        }
        text = "Host time per call: " + listing(
            [
                f"{_name(row, evidence.names)} {duration(row.host_median_ns)} in the median "
                f"({duration(row.host_min_ns)} to {duration(row.host_max_ns)}, "
                f"{count(int(row.calls), 'call')})"
                for row in records(table)
            ]
        )
        return Answer(text + ".", "yes", "trace.delegates()", values)
    if evidence.complete:
        return Answer(
            "No delegate was called, so delegates took no host time.",
            "yes",
            "trace.delegates()",
            {"calls": 0},
        )
    if len(evidence.regions):
        values = {
            row.name: {"calls": int(row.calls), "total_ns": int(row.total_ns), "mean_ns": float(row.mean_ns)}
            for row in records(evidence.regions)
        }
        text = "Host time per call: " + listing(
            [f"{name} {duration(value['mean_ns'])} on average" for name, value in values.items()]
        )
        return Answer(text + ".", "yes", "trace.operators()", values)
    enqueue = {
        name: info.performance["enqueue_ms"]
        for name, info in evidence.infos.items()
        if info.performance.get("enqueue_ms")
    }
    if enqueue:
        values = {
            name: {key: float(ms) * 1e6 for key, ms in found.items()} for name, found in enqueue.items()
        }
        text = "Host time of one enqueue (launch overhead, not the engine's time): " + listing(
            [
                # TensorRT 7 prints no mean of it
                f"{name} {duration(v[kind])} {words}"
                for name, v in values.items()
                for kind, words in (("mean", "on average"), ("median", "in the median"))
                if kind in v and (kind == "mean" or "mean" not in v)
            ]
        )
        return Answer(
            text + ".",
            "partly",
            'trace.meta["engines"]',
            values,
            "the host time of a whole delegate call: the engine was run by itself",
            f"capture the deployed program: {_CAPTURE}",
        )
    return Answer(
        "Not measured: the capture holds no call of a delegate.",
        "no",
        "trace.delegates()",
        {},
        "host time of delegate calls",
        f"run the program through {_CAPTURE}",
    )


def _phases(evidence: Evidence) -> Answer:
    how = "load the program with torchtrt_profile_level=phases (or layers): profile(level='phases')"
    table = phases(evidence.trace)
    if evidence.complete:
        return Answer("No TensorRT delegate was called.", "yes", "trace.phases()", {"calls": 0})
    if not len(table):
        inside = _phase_operators(evidence)
        if inside:
            return inside
        return Answer(
            "Not measured: no delegate recorded its phases.",
            "no",
            "trace.phases()",
            {},
            "phases inside delegate calls",
            how,
        )
    values: dict[str, Any] = {}
    parts = []
    for delegate, part in table.groupby("delegate", sort=False):
        values[str(delegate)] = {
            row.phase: {"total_ns": int(row.total_ns), "mean_ns": float(row.mean_ns), "role": row.role}
            for row in records(part)
        }
        shown = part.sort_values("total_ns", ascending=False)
        words = [
            f"{'outside phases' if row.phase == UNATTRIBUTED else row.phase.removeprefix('torchtrt.')} "
            f"{duration(row.mean_ns)} ({row.pct:.3g} %)"
            for row in records(shown)
        ]
        parts.append(f"{evidence.names.get(str(delegate), str(delegate))}: {', '.join(words)}")
    silent = [name for name in evidence.delegates["delegate"] if name not in values]
    tensorrt = evidence.delegates[evidence.delegates["backend"] == "TensorRTBackend"]["delegate"]
    missed = [name for name in silent if name in set(tensorrt)]
    alone = [name for name in values if name not in set(evidence.delegates["delegate"])]
    missing = [f"phases of {listing(missed)}"] if missed else []
    if alone:
        missing.append(
            f"what calls of {listing(alone)} took outside their phases: the calls were not recorded"
        )
    return Answer(
        "Host time per call by phase: " + listing(parts) + ".",
        "partly" if missing else "yes",
        "trace.phases()",
        values,
        "; ".join(missing),
        how if missed else f"capture the deployed program: {_CAPTURE}" if alone else "",
    )


def _phase_operators(evidence: Evidence) -> Answer | None:
    """Answer from the operators that Torch-TensorRT records inside the phases of an engine's last call."""
    tracks, spans = evidence.trace.tracks, evidence.trace.spans
    found: dict[str, dict[str, int]] = {}
    outer = among(spans["kind"], ("operator",)) & among(spans["domain"], ("host",))
    outer &= spans["parent"].to_numpy() < 0
    for engine in evidence.infos:
        of_engine = (tracks["process"] == engine).to_numpy(dtype=bool)
        for number in np.flatnonzero(of_engine).tolist():
            phase = str(tracks["thread"].iloc[number])
            rows = np.flatnonzero(outer & (spans["track"].to_numpy() == number))
            if phase in _PHASE_FILES and len(rows):
                found.setdefault(engine, {})[phase] = int(spans["dur_ns"].to_numpy()[rows].sum())
    if not found:
        return None
    parts = [
        f"{engine}: " + ", ".join(f"{phase} {duration(ns)}" for phase, ns in inside.items())
        for engine, inside in found.items()
    ]
    return Answer(
        "Host time of the operators inside the phases of the last call: " + listing(parts) + ".",
        "partly",
        "trace.operators(by='track')",
        {
            engine: {phase: {"operators_ns": ns} for phase, ns in inside.items()}
            for engine, inside in found.items()
        },
        "the phases themselves, of which these files hold only the operators",
        f"capture the deployed program: {_CAPTURE}",
    )


def _layers(evidence: Evidence) -> Answer:
    how = (
        "load the program with torchtrt_profile_level=layers (profile(level='layers')), or run "
        "trtexec --exportProfile with an engine built with --profilingVerbosity=detailed"
    )
    table = layers(evidence.trace, untimed=False)
    if evidence.complete and not len(table):
        return Answer("No engine ran.", "yes", "trace.layers()", {"layers": 0})
    counted = int((~in_ns(evidence.trace)).sum())
    uncounted = (
        f"{count(counted, 'event')} of delegates: their numbers are of an unknown unit" if counted else ""
    )
    if not len(table):
        return Answer(
            f"Not measured: no layer was timed in a known unit ({uncounted})."
            if counted
            else "Not measured: no layer was timed.",
            "no",
            "trace.layers()",
            {},
            "times of layers",
            "the numbers as recorded are in trace.spans (timing ticks); the delegate's own tools know them"
            if counted
            else how,
        )
    values: dict[str, Any] = {}
    parts = []
    unknown = False
    for engine, part in table.groupby("engine", sort=False, dropna=False):
        top = part.sort_values("total_ns", ascending=False).head(3)
        values[str(engine)] = {
            row.name: {"total_ns": int(row.total_ns), "pct": None if pd.isna(row.pct) else float(row.pct)}
            for row in records(top)
        }
        where = "/".join(dict.fromkeys(part["domain"].dropna().astype(str))) or "unknown"
        words = [
            f"{layer_name(str(row.name))} {'' if pd.isna(row.pct) else f'{row.pct:.3g} %'}".strip()
            for row in records(top)
        ]
        called = evidence.names.get(str(engine), str(engine))
        parts.append(f"{called} ({count(len(part), 'layer')}, {where} time): {', '.join(words)}")
        unknown |= bool(part["calls"].isna().any())
    missing = ["the number of calls that some times sum over: the file does not record it"] if unknown else []
    missing += [uncounted] if counted else []
    return Answer(
        "Shares of each engine's timed layers: " + listing(parts) + ".",
        "partly" if missing else "yes",
        "trace.layers()",
        values,
        "; ".join(missing),
        "use trtexec's profile, or the ETDump, instead of the engine trace" if unknown else "",
    )


def _between(evidence: Evidence) -> Answer:
    table = orchestration(evidence.trace)
    work = device_work(evidence.trace)
    copying = length(work.busy("copy", "fill")) if len(work) else None
    values: dict[str, Any] = {"gpu_copy_ns": copying}
    copies = (
        ""
        if copying is None
        else f" Devices copied or filled memory for {duration(copying)} (their time, not the host's)."
    )
    if len(table):
        whole = int(table["total_ns"].sum())
        found = dict(zip(table["part"], table["total_ns"].tolist(), strict=True))
        gaps = delegate_gaps(evidence.trace)
        values |= {f"{part}_ns": value for part, value in found.items()} | {"gaps": len(gaps)}
        outside = found["operators"] + found["orchestration"]
        text = (
            f"Of {duration(whole)} in methods, {duration(outside)} ({share(outside, whole)}) lie outside "
            f"delegates: operators {duration(found['operators'])}, orchestration "
            f"{duration(found['orchestration'])}.{copies}"
        )
        return Answer(
            text,
            "yes" if copying is not None else "partly",
            "analysis.orchestration(trace), analysis.delegate_gaps(trace)",
            values,
            "" if copying is not None else "copies on a device: no device work was recorded",
            "" if copying is not None else "capture with torch.profiler activity of the device as well",
        )
    if len(evidence.delegates) > 0:
        gaps = delegate_gaps(evidence.trace)
        total = int(gaps["dur_ns"].sum())
        values["gaps_ns"] = total
        return Answer(
            f"Between delegate calls of one thread: {duration(total)} in {count(len(gaps), 'gap')}.{copies}",
            "partly",
            "analysis.delegate_gaps(trace)",
            values,
            "the time before the first and after the last call: no execution of a method was recorded",
            "record the runtime's own events (an ETDump of the whole method)",
        )
    if copying is not None:
        return Answer(
            f"The capture holds no delegate calls.{copies}",
            "partly",
            "trace.kernels()",
            values,
            "time between delegates",
            f"run the program through {_CAPTURE}",
        )
    return Answer(
        "Not measured: the capture holds neither delegate calls nor device copies.",
        "no",
        "trace.host_gpu()",
        values,
        "time between delegates",
        f"run the program through {_CAPTURE}",
    )


def _provenance(evidence: Evidence) -> Answer:
    table = provenance(evidence.trace)
    how = (
        "export with an ETRecord (generate_etrecord=True) and load both with "
        "torchtrt_viz.load(path, etrecord=...); for a torch profile record stacks and modules "
        "(with_stack=True, with_modules=True)"
    )
    recorded = table[table["events"] > 0]
    known = recorded[recorded["known"] > 0]
    values = {row.what: {"events": int(row.events), "known": int(row.known)} for row in records(recorded)}
    if not len(known):
        return Answer(
            "Not recorded: no event names the part of the model that it belongs to.",
            "no",
            "analysis.provenance(trace)",
            values,
            "operators of the graph, modules, source lines",
            how,
        )
    text = "Recorded: " + listing(
        [
            f"{row.what} for {row.known:,} of {row.events:,} {row.of}"
            + ("" if pd.isna(row.example) else f" (such as {_short(row.example)})")
            for row in records(known)
        ],
        6,
    )
    lacking = recorded[recorded["known"] < recorded["events"]]
    missing = listing([f"{row.what} of some {row.of}" for row in records(lacking)], 6)
    return Answer(
        text + ".",
        "partly" if missing else "yes",
        "analysis.provenance(trace)",
        values,
        missing,
        how if missing else "",
    )


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
