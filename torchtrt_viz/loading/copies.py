"""One recording that is stored more than once is counted once.

Copies are found by content: a plain file beside its gzip, a folder that was copied. jax.profiler writes one
recording under three names, of which the XPlane says most, rocprofv3 in as many forms as it is asked for, of
which the database does. Files of equal content that say that they are of different ranks are told and kept.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.identify import Identified
from torchtrt_viz.loading.rank_files import fields_of
from torchtrt_viz.model.repair import Repair

__all__ = ["without_copies"]

#: What tells two recordings apart, where both say it.
_TELLING = ("host", "role", "instance", "rank", "cycle", "stage", "stamp", "pid")
_JAX_COPY = ("perfetto_trace.json.gz", "perfetto_trace.json")
_ROCPROF_ORDER = ("db", "json", "pftrace")
_ROCPROF_FORM = re.compile(r"(?P<stem>.*_results)\.(?P<form>db|json|pftrace)(\.gz|\.zst)?")


def without_copies(found: Sequence[Identified]) -> tuple[list[Identified], list[Repair]]:
    """Leave one of each recording; returns what is left, and a note for each that is not counted."""
    copies: dict[int, int] = {}
    notes: list[Repair] = []
    for members in _equal(found):
        kept: list[int] = []
        for i in sorted(members, key=lambda i: _worth(found[i])):
            same = next((k for k in kept if not _differ(found[i], found[k])), None)
            if same is not None:
                copies[i] = same
            elif kept:
                notes.append(
                    Repair(
                        "identical_traces",
                        f"has the same content as {found[kept[0]].source.name}, byte for byte, though their "
                        "names say that they are different recordings: one of them is probably a copy under "
                        "a wrong name",
                        found[i].source.name,
                    )
                )
            if same is None:
                kept.append(i)
    for i, original in (*_written_twice(found).items(), *_forms_of_rocprofv3(found).items()):
        copies.setdefault(i, original)
    notes += [
        Repair(
            "same_recording",
            f"the same recording as {found[original].source.name}: it is counted once",
            found[i].source.name,
        )
        for i, original in sorted(copies.items())
    ]
    return [entry for i, entry in enumerate(found) if i not in copies], notes


def _worth(entry: Identified) -> tuple[Any, ...]:
    """Order of copies: whole before damaged, what says a rank, what is read fastest."""
    source = entry.source
    rank = _said(entry).get("rank")
    return (
        entry.damage is not None,
        source.filename in _JAX_COPY,
        rank is None,
        not source.on_disk,
        len(source.name),
        source.name,
    )


def _said(entry: Identified) -> dict[str, Any]:
    return {**fields_of(entry.name, entry.header), **(entry.said or {})}


def _differ(one: Identified, other: Identified) -> bool:
    a, b = _said(one), _said(other)
    return any(name in a and name in b and a[name] != b[name] for name in _TELLING)


def _equal(found: Sequence[Identified]) -> list[list[int]]:
    """Return groups of traces whose content is equal."""
    begin_alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for i, entry in enumerate(found):
        if entry.kind in ("trace", "rank archive") and entry.beginning is not None:
            begin_alike[entry.format, entry.beginning].append(i)
    out = []
    for members in begin_alike.values():
        lengths = {i: _length(found[i].source) for i in members} if len(members) > 1 else {}
        groups: dict[object, list[int]] = defaultdict(list)
        for i, length in lengths.items():
            fitting = sum(length is None or other in (length, None) for other in lengths.values())
            groups[_digest(found[i].source, i) if fitting > 1 else i].append(i)
        out += [group for group in groups.values() if len(group) > 1]
    return out


def _length(source: Source) -> int | None:
    """Length of the content modulo 2**32, where it is known without reading it: gzip's trailer has it."""
    if source.member is not None or source.stored_bytes is None:
        return None
    if source.on_disk:
        return source.stored_bytes % (1 << 32)
    if not source.path.is_file():
        return None
    with source.path.open("rb") as stream:
        if stream.read(2) != b"\x1f\x8b" or source.stored_bytes < 18:
            return None
        stream.seek(-4, 2)
        return int(struct.unpack("<I", stream.read(4))[0])


def _digest(source: Source, number: int) -> object:
    """Return what is equal for equal contents; the number for a file that cannot be read to its end."""
    digest = blake2b(digest_size=16)
    try:
        for block in source.blocks():
            digest.update(block)
    except TraceFormatError:
        return number
    return digest.digest()


def _written_twice(found: Sequence[Identified]) -> dict[int, int]:
    """Return the other forms of each recording of jax.profiler or TensorFlow, and the one that counts.

    ``HOST.xplane.pb`` and ``HOST.trace.json.gz`` are of one recording, ``perfetto_trace.json.gz`` is made of
    the only one of either beside it. Of a damaged XPlane the whole trace-event file counts.
    """
    planes: dict[str, dict[str, int]] = defaultdict(dict)
    events: dict[str, dict[str, int]] = defaultdict(dict)
    again: list[int] = []
    for i, entry in enumerate(found):
        if entry.kind != "trace":
            continue
        host, trace_json, _ = entry.source.filename.partition(".trace.json")
        if entry.source.filename in _JAX_COPY:
            again.append(i)
        elif entry.format == "xplane":
            planes[entry.source.folder][entry.source.filename.partition(".xplane.pb")[0]] = i
        elif trace_json:
            events[entry.source.folder][host] = i
    out = {}
    for folder, of_host in events.items():
        for host, i in of_host.items():
            plane = planes[folder].get(host)
            if plane is None:
                continue
            if found[plane].damage is not None and found[i].damage is None:
                out[plane] = i
                planes[folder][host] = i
            else:
                out[i] = plane
    for i in again:
        folder = found[i].source.folder
        beside = list((events[folder] or planes[folder]).values())
        if len(beside) == 1:
            out[i] = out.get(beside[0], beside[0])
    return out


def _forms_of_rocprofv3(found: Sequence[Identified]) -> dict[int, int]:
    """Return the other forms of each recording of rocprofv3, and the one that counts.

    ``NAME_results.db``, ``NAME_results.json`` and ``NAME_results.pftrace`` in one folder are of one process.
    """
    forms: dict[tuple[str, str], list[tuple[bool, int, int]]] = defaultdict(list)
    for i, entry in enumerate(found):
        name = _ROCPROF_FORM.fullmatch(entry.source.filename)
        if name is not None and entry.kind == "trace" and entry.format in ("rocprof", "perfetto"):
            order = _ROCPROF_ORDER.index(name["form"])
            forms[entry.source.folder, name["stem"]].append((entry.damage is not None, order, i))
    out: dict[int, int] = {}
    for members in forms.values():
        (_, _, best), *others = sorted(members)
        if any(found[i].format == "rocprof" for *_, i in members):
            out |= {i: best for *_, i in others}
    return out
