"""Trace-event JSON, as torch.profiler (Kineto), Chrome and their relatives write it.

The format is the "Trace Event Format": an object with a list ``traceEvents``, or the bare list, whose closing
bracket may be missing. Times are microseconds, read from their text as exact integer nanoseconds. A compiled
decoder makes one pass over the stream through a window of a megabyte, without the interpreter's lock, and
hands whole columns over. What is damaged is mended or left out, and listed in ``trace.meta["warnings"]``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz._native import native
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.foreign import told_by_head
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import DamagedStreamError, Source
from torchtrt_viz.formats.kineto.accounting import accounting_of, producers_of, unread_data
from torchtrt_viz.formats.kineto.args import EventArgs, FileEvents
from torchtrt_viz.formats.kineto.ids import Separated, ranks_in_args, separate_ids
from torchtrt_viz.formats.kineto.meta import KEPT_KEYS, clock_of, rank_of, read_values
from torchtrt_viz.formats.kineto.onnxruntime import Profile, is_profile, shaped
from torchtrt_viz.formats.kineto.places import lane_places, place_events, unsaid_events
from torchtrt_viz.formats.kineto.ray import name_workers
from torchtrt_viz.formats.kineto.repairs import report
from torchtrt_viz.formats.kineto.sniff import looks_like_trace_events
from torchtrt_viz.formats.kineto.tracks import Labels, tracks_frame
from torchtrt_viz.formats.producers import categories
from torchtrt_viz.formats.producers.rules import Place
from torchtrt_viz.model import schema
from torchtrt_viz.model.repair import Repair
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "kineto"

_READ_AT_ONCE = 16 << 20
_DAY_NS = 86_400 * 10**9
_EXPECTED = 'an object with a list "traceEvents", or a list of trace events'
# torch's numbers of device types, of which allocations are recorded
_DEVICE_TYPES = {
    0: "cpu",
    1: "cuda",
    6: "hip",
    9: "xla",
    12: "xpu",
    13: "mps",
    15: "hpu",
    19: "mtia",
    20: "privateuse1",
}


def sniff(head: bytes, filename: str) -> bool:
    """Tell whether ``head`` begins a trace-event file."""
    return looks_like_trace_events(head)


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read one trace-event file.

    Returns
    -------
    Trace
        ``spans`` are the complete events and the pairs of begin and end, in the file's order (by their
        begin); ``instants`` are instant events, and events whose end or duration is unknown; ``flows`` lead
        from span to span; ``counters`` are counter events, and the allocator's totals from ``[memory]``
        events, in bytes. ``iteration`` is the N of the enclosing ``ProfilerStep#N``.

    Raises
    ------
    TraceFormatError
        When the content is empty or no trace; with ``options.strict`` also for any damage.
    """
    decoder = native("kineto").Decoder(
        categories=categories.CATEGORIES,
        rules=categories.NAME_RULES,
        other=categories.OTHER,
        step_kind=categories.STEP,
        kept_keys=list(KEPT_KEYS),
    )
    events = FileEvents(source)
    damage = _feed(decoder, source, options)
    found = decoder.finish()
    _check(found, source, damage)
    if damage is not None:
        options.repaired(
            Repair(
                "damaged_stream",
                "the compressed content is damaged; what precedes the damage was read",
                source.name,
                damage.offset,
            )
        )
    return _trace(found, events, source, options)


def _feed(decoder: Any, source: Source, options: LoadOptions) -> DamagedStreamError | None:
    """Give the content to the decoder; returns where compressed content turned out to be damaged."""
    done = 0
    if source.on_disk:
        total = source.stored_bytes
        descriptor = os.open(source.path, os.O_RDONLY)
        try:
            while size := decoder.read(descriptor, _READ_AT_ONCE):
                done += size
                if options.progress is not None:
                    options.progress(done, total)
        finally:
            os.close(descriptor)
        return None
    try:
        for block in source.blocks():
            decoder.feed(block)
            done += len(block)
            if options.progress is not None:
                options.progress(done, None)
    except DamagedStreamError as error:
        if not done:
            raise
        return error
    return None


def _check(found: dict[str, Any], source: Source, damage: DamagedStreamError | None) -> None:
    """Refuse what is no trace.

    Raises
    ------
    TraceFormatError
        With what was expected and what is there.
    """
    if not found["bytes"]:
        raise TraceFormatError(
            "empty file",
            path=source.name,
            offset=0,
            expected="a trace",
            found="0 bytes",
            hint="The writer was probably stopped before it wrote anything: capture again",
        )
    if found["saw_events"] and not (
        found["bare_list"] and not found["events"] and "not_an_event" in found["notes"]
    ):
        return
    if damage is not None:
        raise damage
    foreign = told_by_head(source.head(), source.filename)
    if foreign is not None:
        raise foreign.refused(source.name)
    if not found["is_json"]:
        what, hint = (
            "text that is no JSON",
            "Name the format if the file is something else: load(path, format=...)",
        )
    elif found["saw_events"]:
        what, hint = "a list of other things", "This JSON is no trace; load the file that the profiler wrote"
    elif not found["complete"]:
        what = f"an object that stops at byte {found['bytes']}, before its events"
        hint = "The writer was probably stopped, or the disk full: capture again"
    else:
        what, hint = (
            "an object without that list",
            "This JSON is no trace; load the file that the profiler wrote",
        )
    raise TraceFormatError(
        "not a trace", path=source.name, offset=0, expected=_EXPECTED, found=what, hint=hint
    )


def _trace(found: dict[str, Any], events: FileEvents, source: Source, options: LoadOptions) -> TraceData:
    meta = read_values(found["values"])
    rank = rank_of(source, options.rank, meta)
    spans, instants, counters = found["spans"], found["instants"], found["counters"]
    starts = spans["start_ns"]
    latest = int(starts.max()) if len(starts) else 0
    notes = dict(found["notes"])
    if latest < _DAY_NS:
        notes.pop("zero_time", None)  # a trace that begins at 0
    recorded = starts[starts > 0] if "zero_time" in notes else starts
    base_ns, clock = clock_of(meta.pop("base_ns", None), int(recorded.min()) if len(recorded) else None)
    labels = Labels.of(found["labels"])
    places = lane_places(found["tracks"], labels, found["categories"])
    placed, derived = place_events(spans, places, spans["name"])
    place_events(instants, places, instants["name"])
    instants.pop("timing", None)
    found["tracks"] = name_workers(found["tracks"], labels, places)
    _mark_unclosed(spans, found["unclosed_calls"])
    ends = dict(zip(found["end_rows"].tolist(), found["end_offsets"].tolist(), strict=True))
    args: Any = EventArgs(events, spans["offset"], ends=ends)
    profile = _profile(found, spans, args, places, notes)
    if profile is not None:
        args = profile.args
    report(notes, source.name, options)
    named = {process: name for process, (name, _, _) in labels.processes.items()}
    given = dict(spans)
    separated = separate_ids(spans, found["tracks"], named)
    if separated.recorded > 1:
        stated = ranks_in_args(spans["track"], found["tracks"], EventArgs(events, spans["offset"]).read)
        if stated:
            spans.update(given)
            separated = separate_ids(spans, found["tracks"], stated)
    _warn(source.name, options, separated, unsaid_events(spans, found["categories"], places))
    if meta.get("viztracer", {}).get("overflow") is True:
        text = (
            "VizTracer's buffer was full: the calls before the first that is here are lost (tracer_entries)"
        )
        options.warnings.append(Repair("diagnostic", text, source.name))
    for key, size in unread_data(found).items():
        options.warnings.append(
            Repair(
                "unread_key", f"{key!r} holds records of another form ({size} bytes), not read", source.name
            )
        )
    states = instants["state"]
    return TraceData(
        spans=_spans(spans, rank),
        tracks=tracks_frame(found["tracks"], labels, rank, places),
        instants=_instants(instants, rank),
        counters=_counters(counters, rank),
        flows=_flows(found["flows"]),
        meta={
            "format": FORMAT,
            "sources": [source.name],
            **meta,
            "synthetic": meta.get("synthetic", False),
            "base_ns": base_ns,
            "clock": clock,
            "rank": None if rank < 0 else rank,
            "warnings": options.warnings,
            "events": found["events"],
            "categories": found["categories"],
            "accounting": accounting_of(found),
            "producers": producers_of(places, placed, derived),
            **({"merged_ranks": separated.ranks} if separated.ranks else {}),
            **({} if profile is None else {"onnxruntime": profile.described}),
            "processes": labels.described(),
        },
        args=args,
        instant_args=EventArgs(
            events, instants["offset"], durations=states != schema.STATES.index("instant")
        ),
    )


def _profile(
    found: dict[str, Any],
    spans: dict[str, Any],
    args: EventArgs,
    places: list[Place | None],
    notes: dict[str, Any],
) -> Profile | None:
    """Take the spans for a profile of ONNX Runtime where they are one; lanes of streams are added."""
    if not is_profile(found["categories"], spans["name"][0]):
        return None
    profile = shaped(spans, found["tracks"], args)
    places += [None] * (len(profile.lanes) - len(places))
    found["tracks"] = profile.lanes
    texts, codes = profile.run_ids
    spans["run_id"] = (texts, codes)
    notes.pop("overlap", None)
    if profile.overlaps:
        notes["overlap"] = (profile.overlaps, -1)
    return profile


def _mark_unclosed(spans: dict[str, Any], rows: np.ndarray[Any, Any]) -> None:
    """Mark calls whose recorded end is the recording's and not their own."""
    if len(rows):
        timing = spans.get("timing")
        if timing is None:
            timing = spans["timing"] = np.zeros(len(spans["track"]), np.int8)
        timing[rows] = schema.TIMINGS.index("implausible")


def _warn(path: str, options: LoadOptions, separated: Separated, unsaid: int) -> None:
    if separated.ids:
        options.warnings.append(
            Repair(
                "ambiguous_id",
                "ids are used by several processes, and nothing says whose work of the device is meant: "
                f"{separated.rows} events are linked to no launch",
                path,
                count=separated.ids,
            )
        )
    if separated.recorded > 1:
        options.warnings.append(
            Repair(
                "ranks_unsaid",
                f"operators of {separated.recorded} processes are in one file, as tools that merge the "
                "traces of several ranks leave them, and neither process ids nor names of processes say the "
                "ranks: they are read as one trace. Load the traces of the ranks instead",
                path,
                count=separated.recorded,
            )
        )
    if unsaid:
        options.warnings.append(
            Repair(
                "domain_unsaid",
                "neither categories nor names of processes and threads say what ran on a device: all events "
                "are taken as work of host threads, which is what process and thread ids mean in this format",
                path,
                count=unsaid,
            )
        )


def _names(encoded: tuple[list[str], np.ndarray[Any, Any]]) -> pd.Categorical:
    import pandas as pd

    categories, codes = encoded
    return pd.Categorical.from_codes(codes, categories=pd.Index(categories, dtype="str"), validate=False)


def _spans(columns: dict[str, Any], rank: int) -> pd.DataFrame:
    given = {name: columns[name] for name in columns if name not in ("name", "offset")}
    if "run_id" in given:
        given["run_id"] = _names(given["run_id"])
    return schema.SPANS.frame({"name": _names(columns["name"]), **given, "rank": rank}, len(columns["track"]))


def _instants(columns: dict[str, Any], rank: int) -> pd.DataFrame:
    given = {name: columns[name] for name in columns if name not in ("name", "offset")}
    return schema.INSTANTS.frame(
        {"name": _names(columns["name"]), **given, "rank": rank}, len(columns["track"])
    )


def _flows(columns: dict[str, Any]) -> pd.DataFrame:
    return schema.FLOWS.frame({**columns, "name": _names(columns["name"])}, len(columns["id"]))


def _counters(columns: dict[str, Any], rank: int) -> pd.DataFrame:
    import pandas as pd

    names = _series_names(columns["series"])
    distinct = list(dict.fromkeys(names))
    code_of = {name: code for code, name in enumerate(distinct)}
    codes = np.array([code_of[name] for name in names], dtype=np.int32)
    memory = np.array([is_memory for *_, is_memory in columns["series"]], dtype=bool)
    series = columns["code"].astype(np.int64)
    units = np.where(memory, 0, -1).astype(np.int8)
    return schema.COUNTERS.frame(
        {
            "name": pd.Categorical.from_codes(
                codes[series], categories=pd.Index(distinct, dtype="str"), validate=False
            ),
            "track": columns["track"],
            "ts_ns": columns["ts_ns"],
            "value": columns["value"],
            "unit": pd.Categorical.from_codes(units[series], categories=pd.Index(["B"], dtype="str")),
            "rank": rank,
        },
        len(series),
    )


def _series_names(series: list[tuple[str | None, str | None, str, bool]]) -> list[str]:
    """Name each series: the counter alone where it has only one."""
    several: dict[tuple[str | None, str], int] = {}
    for counter, _, identifier, _ in series:
        several[counter, identifier] = several.get((counter, identifier), 0) + 1
    out = []
    for counter, name, identifier, is_memory in series:
        text = f"{counter or ''}[{identifier}]" if identifier else counter or ""
        if is_memory:
            kind, _, number = (name or "").partition(":")
            device = _DEVICE_TYPES.get(int(kind), f"device type {kind}")
            text += f"/{device}" if int(number) < 0 else f"/{device}:{number}"
        elif several[counter, identifier] > 1:
            text += f"/{name}"
        out.append(text)
    return out
