"""Events whose category says nothing, placed by the names of their process and thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.producers.categories import CATEGORIES, OTHER
from torchtrt_viz.formats.producers.rules import GPU, MEASURED, Place, columns_of, places_of
from torchtrt_viz.formats.producers.work_names import kind_on_device, kind_on_host
from torchtrt_viz.model.schema import KINDS

if TYPE_CHECKING:
    from torchtrt_viz.formats.kineto.tracks import Labels, Lane

__all__ = ["lane_places", "place_events", "unsaid_events"]

_OTHER = OTHER[0]
_KERNEL = KINDS.index("kernel")


def lane_places(
    lanes: Sequence[Lane], labels: Labels, categories: Iterable[str | None]
) -> list[Place | None]:
    """Ask the names of each lane: those of the metadata, else the ids as they stand in the file."""

    def names(lane: Lane) -> tuple[str | None, str | None, str]:
        _, process, thread, _, _ = lane
        name, of_process, _ = labels.processes.get(process, ("", "", None))
        of_thread = labels.threads.get((process, thread), ("", None))[0]
        return name or process, of_thread or thread, of_process

    return places_of(
        (names(lane) for lane in lanes), categorised=any(name in CATEGORIES for name in categories)
    )


def place_events(
    columns: dict[str, Any], places: Sequence[Place | None], names: tuple[list[str], NDArray[Any]]
) -> tuple[int, int]:
    """Give domain, kind and timing to events whose category says nothing.

    Events of a lane that is derived are modeled whatever their category says. Returns how many events were
    placed, and how many are derived.
    """
    named = np.array([place is not None for place in places], bool)
    rows = np.flatnonzero(named[columns["track"]]) if named.any() else np.zeros(0, np.int64)
    if not len(rows):
        return 0, 0
    track = columns["track"][rows]
    kind, domain = columns["kind"][rows], columns["domain"][rows]
    of_lane, kind_of_lane, timing = (values[track] for values in columns_of(places))
    unsaid = kind == _OTHER
    derived = timing != MEASURED
    changed = unsaid & (of_lane >= 0)
    kind = np.where(unsaid & (kind_of_lane >= 0), kind_of_lane.astype(kind.dtype), kind)
    domain = np.where(changed | (derived & (of_lane >= 0)), of_lane.astype(domain.dtype), domain)
    categories, codes = names
    if changed.any():
        kind = _by_name(kind, domain, changed, categories, codes[rows])
    columns["kind"] = _with(columns["kind"], rows, kind)
    columns["domain"] = _with(columns["domain"], rows, domain)
    if derived.any():
        columns["timing"] = _with(np.full(len(columns["track"]), MEASURED, np.int8), rows, timing)
    return int(changed.sum()), int(derived.sum())


def _with(column: NDArray[Any], rows: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Return the column with other values in some rows; the decoder's own array stays as it is."""
    out = column.copy()
    out[rows] = values
    return out


def _by_name(
    kind: NDArray[Any],
    domain: NDArray[Any],
    rows: NDArray[np.bool_],
    categories: list[str],
    codes: NDArray[Any],
) -> NDArray[Any]:
    """Tell copies, fills and collectives from kernels, and calls of the driver from other host work."""
    used = np.unique(codes[rows])
    device, host = np.full(len(categories) + 1, -1, np.int16), np.full(len(categories) + 1, -1, np.int16)
    for code in used[used >= 0].tolist():
        device[code] = kind_on_device(categories[code])
        host[code] = kind_on_host(categories[code])
    on_device = device[codes]
    on_host = host[codes]
    out = np.where(rows & (kind == _KERNEL) & (on_device >= 0), on_device.astype(kind.dtype), kind)
    unsaid = rows & (domain != GPU) & (out == _OTHER) & (on_host >= 0)
    return np.where(unsaid, on_host.astype(kind.dtype), out)


def unsaid_events(
    columns: dict[str, Any], categories: dict[str | None, int], places: Sequence[Place | None]
) -> int:
    """Return how many spans there are in a file in which no category and no name says where they ran."""
    if any(place is not None for place in places) or any(name in CATEGORIES for name in categories):
        return 0
    return int((columns["domain"] != GPU).sum())
