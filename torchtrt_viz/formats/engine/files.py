"""Which files describe an engine, what each holds, and which belong together.

The content decides what a file is; its name says which engine it is about, and settles what an empty file
would have held.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.engine.log_lines.marks import looks_like_log
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.io.text_forms import decoded_head

__all__ = ["KINDS", "group_sets", "is_set_member", "kind_of", "phase_of", "stem_of", "told_by_name"]

KINDS: tuple[str, ...] = (
    "graph",  # layer information
    "profile",  # layer times
    "engine_trace",  # layer times as Torch-TensorRT writes them
    "readings",  # layer times of a user's profiler, reading by reading
    "timing",  # timed inferences
    "metadata",  # options, device, performance summary
    "device",  # properties of the machine's devices
    "phase",  # framework operators inside a phase of a Torch-TensorRT call
    "sidecar",  # calls, phases and layers of an engine, as this package's capture writes them
    "log",
)

#: End of a file's name -> what it holds. The longest match counts.
_SUFFIXES: tuple[tuple[str, str], ...] = (
    ("_engine_execution_profile.trace", "engine_trace"),
    ("_engine_exectuion_profile.trace", "engine_trace"),
    ("_input_profile.trace", "phase"),
    ("_output_profile.trace", "phase"),
    ("_enqueue_profile.trace", "phase"),
    ("_device_config_profile.trace", "phase"),
    ("_layer_information.json", "graph"),
    (".perfetto.json", "sidecar"),
    (".profile.metadata.json", "metadata"),
    (".build.metadata.json", "metadata"),
    (".metadata.json", "device"),
    (".graph.json", "graph"),
    (".profile.json", "profile"),
    (".timing.json", "timing"),
    ("_engine_info.json", "graph"),
    ("_layer_latency.json", "readings"),
    ("-exportlayerinfo.json", "graph"),
    ("-exportlayerinfo.log", "graph"),
    ("-exportprofile.json", "profile"),
    ("-exporttimes.json", "timing"),
    ("_layer_info.json", "graph"),
    ("_graph.json", "graph"),
    ("_profile.json", "profile"),
    ("_timing.json", "timing"),
    ("_times.json", "timing"),
)
_PREFIXES = re.compile(r"(?i)(?:layers?|profile|timing|times|graph)[_-](?=.)")
_PHASE = re.compile(r"_(input|output|enqueue|device_config)_profile\.trace$", re.IGNORECASE)

_START = r"^[\s\ufeff]*"
_GRAPH = re.compile(
    r'\{\s*"(?:Layers|I/O Tensors|Bindings)"\s*:\s*\[|"(?:Layers|I/O Tensors)"\s*:\s*\[|"LayerType"\s*:'
)
_LIST_OF_EVENTS = re.compile(r'"ph"\s*:\s*"')
_TIMES = re.compile(r'"(?:timeMs|averageMs)"\s*:|' + _START + r'\[\s*\{\s*"count"\s*:\s*[\d.]+\s*\}')
_INFERENCES = re.compile(r'"start(?:Enq|In)Ms"\s*:')
_METADATA = re.compile(r'"(?:performance_summary|model_options|build_options|inference_options)"\s*:\s*\{')
_DEVICE = re.compile(r'"(?:ComputeCapability|COMPUTE_CAPABILITY_MAJOR)"\s*:')
_DATED_READINGS = re.compile(_START + r'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[\s*\[\s*[\d.eE+-]+\s*,\s*"\d{8}-')
_PLAIN_READINGS = re.compile(_START + r'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[\s*\[?\s*[\d.eE+-]+\s*[\],]')
_SIDECAR = re.compile(
    r'"args"\s*:\s*\{\s*"name"\s*:\s*"(?:[^"\\]|\\.)* \(\w+ engine [0-9a-f]{16}-(?:[^"\\]|\\.)*\)"'
    r"\s*\}\s*\}\s*,\s*"
    r'\{\s*"name"\s*:\s*"thread_name"[^{}]*"args"\s*:\s*\{\s*"name"\s*:\s*"host: calls and phases"'
    r'|"otherData"\s*:\s*\{\s*"schema"\s*:\s*1\s*,\s*"engine_id"\s*:'
)
_EMPTY = re.compile(_START + r"\[?\s*\]?\s*$")


def told_by_name(filename: str) -> str | None:
    """Return what a file of this name would hold, None for a name without meaning."""
    name = _plain(filename)
    return next((kind for suffix, kind in _SUFFIXES if name.endswith(suffix)), None)


def _plain(filename: str) -> str:
    """Return the name in lower case, without the suffix of a compression."""
    return re.sub(r"\.(?:gz|zst)$", "", filename.lower())


def kind_of(head: bytes, filename: str) -> str | None:
    """Tell what a file holds (one of `KINDS`) from its first bytes, None when it is about no engine."""
    text = decoded_head(head)
    named = told_by_name(filename)
    if _EMPTY.match(text):
        named = None if named == "sidecar" else named
        return named or _empty_trace(text, filename)
    start = text.lstrip()[:1]
    if '"traceEvents"' in text:
        return "sidecar" if _SIDECAR.search(text) else None
    if start in ("[", "{", ","):
        if _LIST_OF_EVENTS.search(text):
            if '" Engine Execution"' in text or ' Engine Execution"' in text:
                return "engine_trace"
            if '"CPU Functions"' in text:
                return "phase"
            return named if named in ("engine_trace", "phase") else None
        if _METADATA.search(text):
            return "metadata"
        if _INFERENCES.search(text):
            return "timing"
        if _GRAPH.search(text):
            return "graph" if _is_document(text) else "log"
        if _TIMES.search(text):
            return "engine_trace" if named == "engine_trace" else "profile"
        if _DEVICE.search(text):
            return "device"
        if _DATED_READINGS.match(text) or (named == "readings" and _PLAIN_READINGS.match(text)):
            return "readings"
        if named == "profile" and re.match(_START + r'\[\s*\{\s*"count"', text):
            return "profile"
    return "log" if looks_like_log(text) else None


def _empty_trace(text: str, filename: str) -> str | None:
    """Tell the trace without events: Torch-TensorRT writes only ``]`` for an engine, ``[ ]`` for a phase."""
    if not _plain(filename).endswith(".trace"):
        return None
    return {"]": "engine_trace", "[": "phase"}.get(text.strip(" \t\r\n\ufeff")[:1])


def _is_document(text: str) -> bool:
    """Tell a document from a log that begins with a bracket: ``[07/07/2026-02:11:40] [I] ...``."""
    return re.match(_START + r'(?:,?\s*\{\s*["}]|\[\s*["{\[\]])', text) is not None


def phase_of(filename: str) -> str | None:
    """Return the phase (input, output, enqueue, device_config) that a Torch-TensorRT trace is of."""
    found = _PHASE.search(_plain(filename))
    return None if found is None else found.group(1)


def stem_of(filename: str) -> str:
    """Return the part of a file's name that says which engine it is about."""
    plain = re.sub(r"\.(?:gz|zst)$", "", filename, flags=re.IGNORECASE)
    lower = plain.lower()
    for suffix, _ in _SUFFIXES:
        if lower.endswith(suffix):
            return plain[: -len(suffix)] or plain
    stem = plain.rsplit(".", 1)[0] if "." in plain[1:] else plain
    prefix = _PREFIXES.match(stem)
    return stem[prefix.end() :] if prefix else stem


def is_set_member(source: Source) -> bool:
    """Tell whether a file describes an engine, and so belongs to a set.

    Logs do when trtexec or a profiler wrote them. An unreadable file is no member.
    """
    try:
        return kind_of(source.head(), source.filename) is not None
    except TraceFormatError:
        return False


def group_sets(sources: Iterable[Source]) -> dict[str, list[Source]]:
    """Sort members into sets, each of which `read_set` makes one trace of.

    A set is what lies in one folder (of the disk, or of an archive): several engines of one folder are one
    trace. Where a folder has timed runs of several engines, each with its own clock, there is a set for each
    engine.

    Returns
    -------
    dict
        Label of the set (the folder, with the engine's name where a folder has several sets) -> its files,
        sorted by name.
    """
    folders: dict[str, list[Source]] = {}
    for source in sources:
        folders.setdefault(source.folder, []).append(source)
    out: dict[str, list[Source]] = {}
    for folder, members in folders.items():
        members.sort(key=lambda source: source.name)
        stems: dict[str, list[Source]] = {}
        timed = set()
        for source in members:
            stem = stem_of(source.filename)
            stems.setdefault(stem, []).append(source)
            if kind_of(source.head(), source.filename) == "timing":
                timed.add(stem)
        if len(timed) < 2:
            out[folder] = members
            continue
        for stem, own in stems.items():
            out[f"{folder}/{stem}"] = own
    return out
