"""Where and what the events of a Perfetto trace are, told by categories and by names of tracks.

Perfetto itself says neither: slices lie on tracks, and a track may be anything. First the categories are
asked, then the names of the track, of its process and of the tracks above it. What nothing says stays on the
host, and is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.perfetto.codes import distinct_codes
from torchtrt_viz.formats.producers.categories import CATEGORIES, OTHER
from torchtrt_viz.formats.producers.rules import (
    GPU,
    HOST,
    MEASURED,
    UNSAID,
    Place,
    columns_of,
    place_of,
    places_of,
)
from torchtrt_viz.formats.producers.work_names import kind_by_rules, kind_on_device, kind_on_host
from torchtrt_viz.model import schema

if TYPE_CHECKING:
    from torchtrt_viz.formats.perfetto.tracks import TrackNames

__all__ = ["Placed", "classify", "place", "says_domain", "track_places"]

_OTHER = OTHER[0]
_KERNEL = schema.KINDS.index("kernel")
#: Categories that the decoder gives to what comes in packets of its own.
_PACKETS = {
    "gpu_render_stage": ("kernel", GPU),
    "vulkan_api": ("runtime", HOST),
    "gpu_log": ("other", HOST),
}
# Longer names say no more, and lists of rules are run over each.
_LONGEST_NAME = 4096


def classify(category: str) -> tuple[int, int]:
    """Return (position in ``schema.KINDS``, position in ``schema.DOMAINS`` or -1 unsaid) by the categories.

    The categories "gpu" and "host" name the domain; this package writes one of them with every event. A
    category that is a kind by its name is one.
    """
    words = [word.strip() for word in category.split(",")]
    kind, domain = _OTHER, UNSAID
    for word in words:
        if word in _PACKETS:
            kind, domain = schema.KINDS.index(_PACKETS[word][0]), _PACKETS[word][1]
            break
        found = CATEGORIES.get(word) or CATEGORIES.get(word.lower())
        if found is not None:
            kind, domain = found
            break
    if kind == _OTHER:
        kind = next((schema.KINDS.index(w) for w in words if w in schema.KINDS), _OTHER)
    for word in words:
        if word in schema.DOMAINS:
            domain = schema.DOMAINS.index(word)
    return kind, domain


def says_domain(category: NDArray[np.int32], strings: list[str]) -> bool:
    """Tell whether the category of any event says where it ran."""
    distinct, _ = distinct_codes(category)
    return any(code >= 0 and classify(strings[code])[1] != UNSAID for code in distinct)


def track_places(names: TrackNames, used: NDArray[np.bool_], *, categorised: bool) -> list[Place | None]:
    """Return what the names of each of the decoder's tracks say; None for those that are not in use.

    ``categorised`` says whether categories of the file are known: some names count only where none is.
    """
    asked: list[tuple[str | None, str | None, str]] = [(None, None, "")] * len(used)
    for index in np.flatnonzero(used).tolist():
        asked[index] = _telling(names, index, categorised)
    places = places_of(asked, categorised=categorised)
    for index in np.flatnonzero(used).tolist():
        gpu = names.gpu(index)
        if places[index] is None and gpu is not None:
            device = gpu if gpu >= 0 else None
            places[index] = Place("perfetto", GPU, None, device=device, stream=names.own(index))
    return places


def _telling(names: TrackNames, index: int, categorised: bool) -> tuple[str | None, str | None, str]:
    """Find the pair of names that tells: process and track, a track above and this one, this one alone."""
    own = names.own(index)
    above = names.above(index)
    pairs = [(names.process(index), own), *((name, own) for name in above), (own, None)]
    for process, thread in pairs:
        if place_of(process, thread, categorised=categorised) is not None:
            return process, thread, ""
    return None, None, ""


@dataclass(frozen=True)
class Placed:
    """Columns of events, and how they were told.

    Attributes
    ----------
    kind, domain, timing
        Positions in ``schema.KINDS``, ``DOMAINS`` and ``TIMINGS``.
    said
        Whether a category or a name says where the event ran.
    by_name, derived
        How many events names of tracks placed, and how many lie on rows that repeat others.
    """

    kind: NDArray[np.int8]
    domain: NDArray[np.int8]
    timing: NDArray[np.int8]
    said: NDArray[np.bool_]
    by_name: int = 0
    derived: int = 0


def place(
    columns: dict[str, NDArray[np.int32]], strings: list[str], places: list[Place | None] | None
) -> Placed:
    """Classify events by their categories and, unless ``places`` is None, by the names of their tracks."""
    distinct, inverse = distinct_codes(columns["category"])
    told = [classify("" if code < 0 else strings[code]) for code in distinct]
    kind = np.array([kind for kind, _ in told], np.int8)[inverse] if told else np.empty(0, np.int8)
    domain = np.array([domain for _, domain in told], np.int8)[inverse] if told else np.empty(0, np.int8)
    timing = np.full(len(kind), MEASURED, np.int8)
    if places is None or not len(kind):
        return Placed(kind, np.maximum(domain, HOST), timing, domain != UNSAID)
    on, does, timing = (values[columns["track"]] for values in columns_of(places))
    silent = (kind == _OTHER) & (domain == UNSAID)
    named = silent & (on != UNSAID)
    derived = timing != MEASURED
    kind = np.where(silent & (does != UNSAID), does, kind)
    domain = np.where((named | (domain == UNSAID) | derived) & (on != UNSAID), on, domain)
    said = domain != UNSAID
    domain = np.where(said, domain, HOST).astype(np.int8)
    bare = np.array([code >= 0 and strings[code] == "gpu_render_stage" for code in distinct], bool)[inverse]
    kind = _by_event_names(kind, domain, named | bare, columns["name"], strings)
    return Placed(kind, domain, timing, said, int(named.sum()), int(derived.sum()))


def _by_event_names(
    kind: NDArray[np.int8],
    domain: NDArray[np.int8],
    untold: NDArray[np.bool_],
    name: NDArray[np.int32],
    strings: list[str],
) -> NDArray[np.int8]:
    """Tell copies and collectives from kernels, calls of the driver from other host work, steps from ranges.

    ``untold`` are events whose own category tells no copy from a kernel.
    """
    # one number for (name, kind, domain, untold), so that each combination is asked once
    key = (((name.astype(np.int64) + 1) * len(schema.KINDS) + kind) * 2 + domain) * 2 + untold
    distinct, inverse = np.unique(key, return_inverse=True)
    out = np.empty(len(distinct), np.int8)
    for at, value in enumerate(distinct.tolist()):
        rest, no_kind = divmod(value, 2)
        rest, where = divmod(rest, 2)
        code, before = divmod(rest, len(schema.KINDS))
        text = "" if code == 0 else strings[code - 1][:_LONGEST_NAME]
        after = kind_by_rules(before, text)
        if no_kind and before == _KERNEL and where == GPU:
            found = kind_on_device(text)
            after = after if found < 0 else found
        elif no_kind and where != GPU and before == _OTHER and kind_on_host(text) >= 0:
            after = kind_on_host(text)
        out[at] = after
    result: NDArray[np.int8] = out[inverse]
    return result
