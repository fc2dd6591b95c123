"""Timelines of Ray (``ray timeline``, ``ray.timeline()``, the dashboard): a worker is a process.

Ray writes the address of a node as the process and the number of a worker (or driver) as the thread, by
themselves or as names of numbers. A worker is a process of its own, so it is one here, on its node. What
tasks of ``@ray.remote`` functions and methods consist of (deserialising arguments, running, storing what they
return) lies within them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtrt_viz.formats.kineto.tracks import Labels, Lane
    from torchtrt_viz.formats.producers.rules import Place

__all__ = ["name_workers"]

_WORKER = re.compile(r"(worker|driver):([0-9a-f]{16,})$")
_SHORTEST = 8


def name_workers(lanes: Sequence[Lane], labels: Labels, places: Sequence[Place | None]) -> list[Lane]:
    """Return the lanes with each worker of Ray as a process, named after its node; ``labels`` names them.

    Lanes of other writers stay what they are.
    """
    found: dict[int, tuple[str, str]] = {}
    for at, (lane, place) in enumerate(zip(lanes, places, strict=True)):
        if place is None or place.producer != "ray" or lane[0] != "thread":
            continue
        said = _WORKER.match(labels.threads.get(lane[1:3], ("", None))[0] or lane[2] or "")
        if said is not None:
            found[at] = said[1], said[2]
    short = _distinct_length([number for _, number in found.values()])
    out = list(lanes)
    for at, (role, number) in found.items():
        node = labels.processes.get(lanes[at][1], ("", "", None))[0] or f"Node {lanes[at][1]}"
        process = f"{role}:{number}"
        labels.processes.setdefault(process, (node, "", None))
        labels.threads.setdefault((process, None), (f"{role} {number[:short]}", None))
        out[at] = ("thread", process, None, None, None)
    return out


def _distinct_length(numbers: Sequence[str]) -> int:
    """Return how many digits tell the numbers apart."""
    many = len(set(numbers))
    longest = max((len(number) for number in numbers), default=_SHORTEST)
    return next(
        (size for size in range(_SHORTEST, longest) if len({number[:size] for number in numbers}) == many),
        longest,
    )
