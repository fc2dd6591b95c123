"""Traces that this package's own capture writes: sidecars of delegates, and files of packages' engines.

The latter have the names and the shape of Torch-TensorRT's, and hold more: every execution of a layer and
every phase is an event of its own with a real start, on one clock for all files of an engine, and its
arguments say which call it belongs to, how its time was got, and where it was spent. A delegate's sidecar
(``E.perfetto.json``) is one trace-event document with all of that; ``cat`` is the kind of an event
(delegate, phase, layer), and ``otherData`` says what is true of all events: the engine, and an anchor of
the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.trex_profile import ENGINE_EXECUTION, Profile
from torchtrt_viz.formats.io.json_values import finite, whole
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.model.repair import Repair

__all__ = ["Calls", "is_call_event", "profile_of_calls", "read_calls", "read_sidecar"]

_KINDS = ("delegate", "phase", "layer")

#: How a time was got -> timing of the span. A time "device" has no known place on the host's clock.
_TIMINGS = {
    "measured": "measured",
    "laid_out": "modeled",
    "scaled": "modeled",
    "rest": "modeled",
    "device": "aggregate",
}


@dataclass
class Calls:
    """Events of one engine, in the order of the file; the lists run in parallel."""

    engine: str | None
    runtime: str = "tensorrt"
    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    domains: list[str] = field(default_factory=list)
    timings: list[str] = field(default_factory=list)
    start_ns: list[int] = field(default_factory=list)
    dur_ns: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)
    engine_id: str | None = None
    rank: int | None = None
    described: int = 0  # events that only name tracks
    base_ns: int | None = None  # Unix ns at start_ns == 0, where the file has an anchor


def is_call_event(event: object) -> bool:
    """Tell whether an event was written by this package's capture."""
    args = event.get("args") if isinstance(event, dict) else None
    return isinstance(args, dict) and type(args.get("call")) is int and isinstance(args.get("engine_id"), str)


def read_calls(events: list[Any], name: str, options: LoadOptions) -> list[Calls]:
    """Read the events, one `Calls` per engine."""
    out: dict[str, Calls] = {}
    wrong = 0
    for event in events:
        start, dur = _nanoseconds(event, "ts"), _nanoseconds(event, "dur")
        if not is_call_event(event) or start is None or dur is None or dur < 0:
            wrong += 1
            continue
        args = event["args"]
        found = out.get(args["engine_id"])
        if found is None:
            label = str(event.get("pid", ""))
            engine = label[: -len(ENGINE_EXECUTION)] if label.endswith(ENGINE_EXECUTION) else None
            found = out[args["engine_id"]] = Calls(engine or None)
        if args.get("engine_runtime") == "host":
            found.runtime = "host"
        found.names.append(str(event.get("name", "")))
        kind = event.get("cat")
        found.kinds.append(kind if kind in _KINDS else "layer" if "layer" in args else "phase")
        found.domains.append("gpu" if args.get("domain") == "gpu" else "host")
        found.timings.append(_TIMINGS.get(str(args.get("timing")), "modeled"))
        found.start_ns.append(start)
        found.dur_ns.append(dur)
        found.calls.append(min(max(args["call"], 0), 2**31 - 1))
        found.details.append(args)
    if wrong:
        options.repaired(
            Repair(
                "not_a_record", "events without a start, duration or call were left out", name, count=wrong
            )
        )
    return list(out.values())


def read_sidecar(document: object, name: str, options: LoadOptions) -> Calls:
    """Read a delegate's sidecar; the result may be without events.

    Raises
    ------
    TraceFormatError
        When it is no such document.
    """
    about = document.get("otherData") if isinstance(document, dict) else None
    events = document.get("traceEvents") if isinstance(document, dict) else None
    about = about if isinstance(about, dict) else {}
    engine_id = about.get("engine_id")
    if not isinstance(events, list) or not isinstance(engine_id, str):
        raise TraceFormatError(
            "no sidecar of an engine",
            path=name,
            expected='{"traceEvents": [...], "otherData": {"schema": 1, "engine_id": ...}}',
            found=type(document).__name__,
            hint="Load it as another kind of trace: load(path, format='kineto')",
        )
    runtime = "host" if about.get("engine_runtime") == "host" else "tensorrt"
    common = {"engine_id": engine_id, "engine_runtime": runtime}
    slices = [event for event in events if not (isinstance(event, dict) and event.get("ph") == "M")]
    for event in slices:
        if isinstance(event, dict) and isinstance(event.get("args"), dict):
            event["args"] = {**event["args"], **common}
    found = read_calls(slices, name, options)
    calls = found[0] if found else Calls(None, runtime)
    label = about.get("engine_name")
    calls.engine = label if isinstance(label, str) and label else None
    calls.engine_id = engine_id
    calls.described = len(events) - len(slices)
    calls.rank = whole(about.get("rank"), 0, 2**31)
    unix = whole(about.get("anchor_unix_ns"), 1, 2**62)
    monotonic = whole(about.get("anchor_monotonic_ns"), -(2**62), 2**62)
    if unix is not None and monotonic is not None:
        calls.base_ns = unix - monotonic
    dropped = about.get("dropped_spans")
    if type(dropped) is int and dropped > 0:
        options.repaired(Repair("dropped", "the writer kept no more spans than these", name, count=dropped))
    return calls


def _nanoseconds(event: object, key: str) -> int | None:
    value = event.get(key) if isinstance(event, dict) else None
    return None if value is None or finite(value, 4e15) is None else round(value * 1000)


def profile_of_calls(calls: list[Calls]) -> Profile | None:
    """Sum the executions of each layer over the calls; None when there are no layers."""
    times: dict[str, dict[int, int]] = {}
    out = Profile(producer="torchtrt_viz")
    seen: set[int] = set()
    for part in calls:
        out.engine = out.engine or part.engine
        out.runtime = "host" if part.runtime == "host" else out.runtime
        for name, kind, dur, call in zip(part.names, part.kinds, part.dur_ns, part.calls, strict=True):
            if kind == "layer":
                seen.add(call)
                per_call = times.setdefault(name, {})
                per_call[call] = per_call.get(call, 0) + dur
    if not times:
        return None
    out.count = len(seen)
    for name, per_call in times.items():
        total = sum(per_call.values()) / 1e6
        out.add(name, total, total / len(seen), median(per_call.values()) / 1e6, None, len(per_call))
    return out
