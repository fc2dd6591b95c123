"""One file about an engine, read: each file gives one part or several, which are joined by engine later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.accounting import LEFT_OUT, Tally, entries_of, mended, tally_of_log
from torchtrt_viz.formats.engine.files import kind_of, phase_of, stem_of
from torchtrt_viz.formats.engine.log_lines.statistics import TIMES_OF_ENGINE
from torchtrt_viz.formats.engine.torchtrt_calls import is_call_event, read_calls, read_sidecar
from torchtrt_viz.formats.engine.trex_graph import read_graph
from torchtrt_viz.formats.engine.trex_metadata import read_device, read_metadata
from torchtrt_viz.formats.engine.trex_profile import read_engine_trace, read_profile, read_readings
from torchtrt_viz.formats.engine.trex_timing import read_timing
from torchtrt_viz.formats.engine.trtexec_log import parse_log
from torchtrt_viz.formats.io.json_values import finite, list_of
from torchtrt_viz.formats.io.lenient_json import MAX_DOCUMENT_BYTES, documents, parse_json
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.io.text_forms import decode_text
from torchtrt_viz.model.repair import Repair

__all__ = ["Part", "PhaseOps", "read_parts", "refuse_untimed"]


@dataclass
class PhaseOps:
    """Framework operators inside one phase of the last call; times count from the file's own start."""

    phase: str | None
    names: list[str] = field(default_factory=list)
    start_us: list[float] = field(default_factory=list)
    dur_us: list[float] = field(default_factory=list)


@dataclass
class Part:
    """What one file says about one engine.

    ``kind`` is graph, profile, timing, metadata, device, phase or calls, and ``content`` accordingly a
    `Graph`, `Profile`, DataFrame, mapping of sections, list of mappings, `PhaseOps`, or `Calls`.
    """

    kind: str
    stem: str
    source: str
    content: Any
    tally: Tally | None = None  # of the file, with the first of its parts


def read_parts(source: Source, options: LoadOptions, kind: str | None = None) -> list[Part]:
    """Read a file into parts.

    Parameters
    ----------
    source
        The file.
    options
        Receives repairs.
    kind
        What it holds (:data:`engine_files.KINDS`); None: tell by content and name.

    Raises
    ------
    TraceFormatError
        When it is about no engine, or nothing of it is whole.
    """
    kind = kind or kind_of(source.head(), source.filename)
    if kind is None:
        raise TraceFormatError(
            "this file says nothing about an engine",
            path=source.name,
            offset=0,
            expected="layer information, layer times, timed inferences, metadata, or a log of TensorRT",
            found=repr(source.head(40)[:40]),
        )
    data = source.read(MAX_DOCUMENT_BYTES)
    if options.progress is not None:
        options.progress(len(data), len(data))
    stem = stem_of(source.filename)
    if kind == "log":
        return _log_parts(data, stem, source.name, options)
    known = len(options.warnings)
    if kind == "graph":
        graph = read_graph(data, source.name, options)
        if not graph.names and not graph.bindings and not data.strip():
            _no_content(options, source.name, "layer information")
        parts = [Part("graph", stem, source.name, graph)]
        entries = graph.entries
    else:
        value = parse_json(data, source.name, options)
        entries = entries_of(kind, value)
        parts = _json_parts(kind, value, stem, source, options)
    repairs = options.warnings[known:]
    left_out = {r.code: r.count for r in repairs if r.code in LEFT_OUT}
    if kind == "readings":
        left_out |= {r.code: r.count for r in repairs if r.code == "no_time"}
    read = sum(_records(part) for part in parts)
    parts[0].tally = Tally(source.name, kind, "records", entries, read, mended(repairs), left_out)
    return parts


def _records(part: Part) -> int:
    """Count the records that a part was made of."""
    content = part.content
    if part.kind == "graph":
        return len(content.names) + len(content.bindings)
    if part.kind == "profile":
        return int(content.records)
    if part.kind == "metadata":
        return sum(len(section) for section in content.values())
    if part.kind == "calls":
        return len(content.names) + int(content.described)
    return len(content.names) if part.kind == "phase" else len(content)


def _json_parts(kind: str, value: object, stem: str, source: Source, options: LoadOptions) -> list[Part]:
    name = source.name
    if kind == "profile":
        return [Part("profile", stem, name, read_profile(value, name, options))]
    if kind == "sidecar":
        return [Part("calls", stem, name, read_sidecar(value, name, options))]
    if kind in ("engine_trace", "phase") and isinstance(value, list) and any(map(is_call_event, value)):
        found_calls = read_calls(value, name, options)
        stems = (
            [stem]
            if len(found_calls) == 1
            else [c.engine or _numbered(stem, i) for i, c in enumerate(found_calls)]
        )
        return [Part("calls", s, name, c) for s, c in zip(stems, found_calls, strict=True)]
    if kind == "engine_trace":
        if isinstance(value, list) and any(isinstance(e, dict) and "timeMs" in e for e in value):
            profile = read_profile(value, name, options)
            profile.producer = "torch_tensorrt"
            return [Part("profile", stem, name, profile)]
        found = read_engine_trace(value, name, options)
        if len(found) == 1:
            return [Part("profile", stem, name, found[0])]
        return [Part("profile", profile.engine or stem, name, profile) for profile in found]
    if kind == "readings":
        return [Part("profile", stem, name, read_readings(value, name, options))]
    if kind == "timing":
        return [Part("timing", stem, name, read_timing(value, name, options))]
    if kind == "metadata":
        return [Part("metadata", stem, name, read_metadata(value, name, options))]
    if kind == "device":
        return [Part("device", stem, name, read_device(value, name, options))]
    return [Part("phase", stem, name, _read_phase(value, source, options))]


def _no_content(options: LoadOptions, name: str, what: str) -> None:
    options.repaired(
        Repair("empty_form", f"the file holds no {what}: its writer stopped before it wrote any", name, 0)
    )


def _read_phase(value: object, source: Source, options: LoadOptions) -> PhaseOps:
    out = PhaseOps(phase_of(source.filename))
    events = list_of(
        value, "framework operators", source.name, '[{"name": ..., "ph": "X", "ts": ..., "dur": ...}, ...]'
    )
    wrong = 0
    for event in events:
        fields: dict[str, Any] = event if isinstance(event, dict) else {}
        start, dur = finite(fields.get("ts"), 9e15), finite(fields.get("dur"), 9e15)
        if start is None or dur is None or dur < 0 or "name" not in fields:
            wrong += 1
            continue
        out.names.append(str(fields["name"]))
        out.start_us.append(start)
        out.dur_us.append(dur)
    if wrong:
        options.repaired(
            Repair(
                "not_a_record",
                "events without a name, start or duration were left out",
                source.name,
                count=wrong,
            )
        )
    return out


def _log_parts(data: bytes, stem: str, name: str, options: LoadOptions) -> list[Part]:
    text, encoding, bad = decode_text(data)
    if bad is not None:
        options.repaired(Repair("encoding", f"bytes that are not {encoding} were replaced", name, bad))
    log = parse_log(text)
    known = len(options.warnings)
    parts: list[Part] = []
    graphs = profiles = 0
    if log.layers or log.bindings:
        document = {"Layers": log.layers, "Bindings": log.bindings}
        parts.append(Part("graph", stem, name, read_graph(document, name, options)))
        graphs += 1
    for value, _, _ in documents(text, name, options):
        if isinstance(value, list) and any(isinstance(r, dict) and "timeMs" in r for r in value):
            parts.append(Part("profile", _numbered(stem, profiles), name, read_profile(value, name, options)))
            profiles += 1
        elif isinstance(value, list) and any(
            isinstance(r, dict) and ("startEnqMs" in r or "startInMs" in r) for r in value
        ):
            parts.append(Part("timing", stem, name, read_timing(value, name, options)))
        elif isinstance(value, dict) and not {"Layers", "Name", "I/O Tensors"} & value.keys():
            parts.append(Part("metadata", stem, name, read_metadata(value, name, options)))
        else:
            parts.append(Part("graph", _numbered(stem, graphs), name, read_graph(value, name, options)))
            graphs += 1
        log.lines["records of JSON documents"] += _records(parts[-1])
    for profile in log.profiles:
        parts.append(Part("profile", _numbered(stem, profiles), name, profile))
        profiles += 1
    for number, run in enumerate(log.runs):
        versions = {"versions": {"tensorrt": log.version}} if log.version and not number else {}
        parts.append(Part("metadata", _numbered(stem, number), name, {**run, **versions}))
    if not parts:
        raise TraceFormatError(
            "the log has no layers, times or performance summary",
            path=name,
            expected="output of trtexec, of the engine inspector, or lines of layer times",
            found="other lines",
            hint="Run trtexec with --dumpProfile, --dumpLayerInfo, or --exportProfile=FILE",
        )
    for repair in options.warnings[known:]:
        if repair.code in LEFT_OUT:
            log.left_out[repair.message] += repair.count
    parts[0].tally = tally_of_log(log, name, options, mended(options.warnings[known:]) + (bad is not None))
    return parts


def refuse_untimed(parts: list[Part], name: str) -> None:
    """Refuse a log that alone has nothing to show: options, and no layers or times of any run.

    Raises
    ------
    TraceFormatError
        When it is such a log.
    """
    tally = parts[0].tally
    if tally is None or tally.kind != "log" or any(part.kind != "metadata" for part in parts):
        return
    if any(part.content.get("performance", {}).keys() - TIMES_OF_ENGINE for part in parts):
        return
    sections = sorted({section for part in parts for section in part.content})
    raise TraceFormatError(
        "a log of trtexec in which nothing was timed: the run was only to build an engine, or it failed",
        path=name,
        expected="layers, layer times, averages or a performance summary",
        found=", ".join(sections),
        hint="Run trtexec without --skipInference; --dumpProfile and --dumpLayerInfo print layers",
    )


def _numbered(stem: str, index: int) -> str:
    """Several engines of one log are told apart by their order."""
    return stem if index == 0 else f"{stem} ({index + 1})"
