"""Ranges and marks that the program itself names (NVTX), of every domain.

torch's ``emit_nvtx`` writes one range an operator, its number and shapes behind its name; names are kept
without them, so that calls of one operator have one name, and ``trace.args`` has the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.nsys.enums import event_types
from torchtrt_viz.formats.nsys.events import HOST, NO_TIME, Events
from torchtrt_viz.formats.nsys.export import Export, Table, missing_in
from torchtrt_viz.formats.nsys.names import Names, kinds_by_name
from torchtrt_viz.formats.nsys.places import Places, process_of
from torchtrt_viz.formats.producers.torch_ranges import CUTS, names_operator, stem_of
from torchtrt_viz.formats.sqlite.database import Kind
from torchtrt_viz.model.schema import KINDS

__all__ = ["NVTX", "Domains", "read_nvtx"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

NVTX = "NVTX_EVENTS"

_NAMES = ("NvtxNameCudaDevice", "NvtxNameCudaContext", "NvtxNameCudaStream")


@dataclass
class Domains:
    """What the program calls its domains and categories.

    Attributes
    ----------
    names
        (process, number of the domain) -> name.
    categories
        (process, number of the domain, number of the category) -> name.
    """

    names: dict[tuple[int, int], str] = field(default_factory=dict)
    categories: dict[tuple[int, int, int], str] = field(default_factory=dict)

    def name(self, process: int, domain: int) -> str:
        """Return the name of a domain; the default one has none."""
        return self.names.get((process, domain), "" if domain <= 0 else f"domain {domain}")


def read_nvtx(
    export: Export, names: Names, places: Places, events: Events
) -> tuple[dict[str, tuple[int, int]], Domains]:
    """Read the ranges and marks; also returns what the program calls its domains."""
    domains = Domains()
    if NVTX not in export.tables:
        return {}, domains
    columns: dict[str, Kind] = dict.fromkeys(("start", "end", "eventType", "globalTid", "textId"), "integer")
    found = Table(export, NVTX, {**columns, "text": "text"}, CUTS)
    types = event_types(export)
    kind_of_event = found.integers("eventType", types["NvtxPushPopRange"])
    name, cut = _names(found, names)
    thread = found.integers("globalTid")
    ranges = _of_types(kind_of_event, types, "NvtxPushPopRange", "NvtxtPushPopRange")
    if ranges.all():  # as a rule
        crossing = marks = np.zeros(found.count, bool)
        rest = np.zeros(0, np.int64)
    else:
        crossing = _of_types(kind_of_event, types, "NvtxStartEndRange", "NvtxtStartEndRange")
        marks = _of_types(kind_of_event, types, "NvtxMark", "NvtxtMark")
        rest = np.flatnonzero(~(ranges | crossing | marks))
    said = {types[each]: each for each in types}
    described = _describe(export, rest, kind_of_event, thread, said, names, name, places, domains)
    for number in np.unique(kind_of_event[rest[~described]]).tolist():
        count = int((kind_of_event[rest[~described]] == number).sum())
        events.leave_out(f"nvtx_event_of_type_{number}", count)
    del kind_of_event
    kinds = _kinds(names, name, cut)
    start, end = found.integers("start", NO_TIME), found.take("end")
    open_end = missing_in(end, found.count)
    ends = start if end is None else end.values
    track = np.zeros(found.count, np.int32)
    if ranges.all():
        track = places.threads(thread)
    else:
        on_thread = np.flatnonzero(ranges | marks)
        track[on_thread] = places.threads(thread[on_thread])
        if crossing.any():
            rows = np.flatnonzero(crossing)
            track[rows] = _crossing_tracks(export, rows, thread[rows], places, domains)
    del thread
    for chosen in (ranges, crossing):
        if not chosen.any():
            continue
        positions = None if chosen.all() else np.flatnonzero(chosen)
        every = slice(None) if positions is None else positions
        events.add(
            NVTX,
            name=name[every],
            kind=kinds[every],
            domain=HOST,
            track=track[every],
            start=start[every],
            end=ends[every],
            open_end=open_end[every],
            positions=positions,
        )
    rows = np.flatnonzero(marks)
    events.add_instants(
        NVTX,
        name=name[rows],
        kind="annotation",
        domain=HOST,
        track=track[rows],
        at=start[rows],
        positions=rows,
    )
    return {NVTX: (found.count, found.lost)}, domains


def _of_types(event: Ints, types: Mapping[str, int], *names: str) -> Mask:
    out: Mask = event == types[names[0]]
    for name in names[1:]:
        out |= event == types[name]
    return out


def _names(found: Table, names: Names) -> tuple[NDArray[np.int32], Mask]:
    """Return the name of each event, and where torch's additions were cut off it."""
    texts, ids = found.take("text"), found.integers("textId")
    cut = np.zeros(found.count, bool)
    if texts is None:
        codes = np.full(found.count, -1, np.int32)
    else:
        codes = names.of_texts(texts)
        if texts.cut is not None:
            cut |= texts.cut
    registered = (codes < 0) & (ids >= 0)
    if registered.any():
        whole = ids[registered]
        codes[registered] = names.of_ids(whole, stem_of)
        long = [number for number in np.unique(whole).tolist() if _is_cut(names.string(number))]
        cut[registered] = np.isin(whole, long)
    unnamed = codes < 0
    if unnamed.any():
        codes[unnamed] = names.add("(unnamed)")
    return codes, cut


def _is_cut(text: str | None) -> bool:
    return text is not None and stem_of(text) != text


def _kinds(names: Names, codes: NDArray[np.int32], cut: Mask) -> NDArray[np.int8]:
    """Tell operators, steps and transfers from other ranges."""
    kinds = kinds_by_name(names.texts, codes, "annotation")
    if cut.any():
        operator = np.zeros(len(names.texts), bool)
        used = np.zeros(len(names.texts), bool)
        used[codes[cut]] = True
        for code in np.flatnonzero(used).tolist():
            operator[code] = names_operator(names.texts[code])
        of_torch = cut & operator[codes] & (kinds == KINDS.index("annotation"))
        kinds = np.where(of_torch, np.int8(KINDS.index("operator")), kinds)
    return kinds


def _describe(
    export: Export,
    rows: Ints,
    event: Ints,
    thread: Ints,
    said: Mapping[int, str],
    names: Names,
    name: NDArray[np.int32],
    places: Places,
    domains: Domains,
) -> Mask:
    """Take names of domains, categories and threads; returns which of the rows say such things."""
    out = np.zeros(len(rows), bool)
    if not len(rows):
        return out
    known = export.pick(NVTX, ("domainId", "category"), rows)
    process = process_of(thread)
    for at, (row, more) in enumerate(zip(rows.tolist(), known, strict=True)):
        what, text = said.get(int(event[row]), ""), names.texts[int(name[row])]
        domain = more.get("domainId", 0)
        key = int(process[row])
        out[at] = True
        if what == "NvtxDomainCreate":
            domains.names[key, domain] = text
        elif what == "NvtxCategory":
            domains.categories[key, domain, more.get("category", 0)] = text
        elif what == "NvtxThread":
            places.name_thread(int(thread[row]), text)
        elif what not in _NAMES and what != "NvtxDomainDestroy":
            out[at] = False
    return out


def _crossing_tracks(
    export: Export, rows: Ints, thread: Ints, places: Places, domains: Domains
) -> NDArray[np.int32]:
    """Return a row of the timeline for each process and domain: such ranges may end on another thread."""
    table = Table(export, NVTX, {"domainId": "integer"})
    domain = table.integers("domainId", 0)
    domain = domain[rows] if table.count > int(rows.max()) else np.zeros(len(rows), np.int64)
    return places.groups([process_of(thread), domain], lambda key, number: _label(domains, key, number))


def _label(domains: Domains, process: int, domain: int) -> str:
    name = domains.name(process, domain)
    return f"NVTX ranges of {name}" if name else "NVTX ranges (start to end)"
