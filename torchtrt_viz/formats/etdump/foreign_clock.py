"""Delegate events that count another clock than the runtime's, or something that is no time at all.

A delegate may log any numbers as start and end, and an ETDump records no unit. What ExecuTorch's backends log
(``backends/*/runtime`` of pytorch/executorch): XNNPACK the runtime's own ticks, laid end to end from the
call's start; VGF and Ethos-U the runtime's ticks; QNN start 0 and as end a number of cycles, microseconds,
bytes or things counted; Vulkan the GPU's timestamps (and the runtime's ticks for its host phases, in the same
call); Neutron ticks of the NPU; Core ML the machine's absolute time.

Only the runtime's own times tell them apart: what a delegate logs while it is called, on the runtime's clock,
begins within its call and takes no longer. An event that does not is of another clock, and so are all of its
name in that delegate; one that begins exactly where an event of the runtime's clock ends continues it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.etdump.dump import Events
from torchtrt_viz.formats.etdump.names import LAYER, group
from torchtrt_viz.formats.etdump.runs import Runs
from torchtrt_viz.model.repair import Repair

__all__ = ["foreign_events", "foreign_repair"]

_MOST_TIMES_ITS_CALL = 2  # durations laid end to end are rounded: somewhat longer than the call is no proof


def foreign_events(
    events: Events, runs: Runs, call: NDArray[np.int64], placing: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Say for each event whether its numbers are of another clock.

    Parameters
    ----------
    call
        Row of the DELEGATE_CALL that an event belongs to, -1 none.
    placing
        What the producer said of an event's times (0: nothing); may be empty.
    """
    out = np.zeros(len(events), bool)
    rows = np.flatnonzero(events.role == LAYER)
    if len(placing):
        rows = rows[placing[rows] == 0]
    if len(rows) == 0:
        return out
    run = events.run[rows]
    outer = np.where(call[rows] >= 0, call[rows], runs.executed[run])
    # what is logged while a method is loaded lies in what the runtime logs of that
    begin = np.where(outer >= 0, events.start[outer], runs.start[run])
    length = np.where(outer >= 0, events.dur[outer], runs.end[run] - runs.start[run])
    outer = np.where(outer >= 0, outer, -1 - run)
    start, dur = events.start[rows], events.dur[rows]
    within = (start >= begin) & (start - begin <= length)
    apart = ~_continued(within, start, start + dur, outer)
    apart |= dur // _MOST_TIMES_ITS_CALL > length
    if not apart.any():
        return out
    kind, first = group(
        [
            runs.method[run],
            events.chain[rows],
            events.instruction[rows],
            events.delegate_id[rows],
            events.delegate_name[rows],
        ]
    )
    foreign = np.zeros(len(first), bool)
    foreign[kind[apart]] = True
    out[rows[foreign[kind]]] = True
    return out


def _continued(
    within: NDArray[np.bool_], start: NDArray[np.int64], end: NDArray[np.int64], outer: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Say which events are within their call, or follow without a gap upon one of the same call that is."""
    at = np.arange(len(within))
    joined = np.zeros(len(within), bool)
    joined[1:] = (start[1:] == end[:-1]) & (outer[1:] == outer[:-1])
    chain = np.maximum.accumulate(np.where(joined, 0, at))
    latest = np.maximum.accumulate(np.where(within, at, -1))
    return latest >= chain


def foreign_repair(foreign: NDArray[np.bool_], names: list[str], path: str) -> Repair:
    """Say how many events are of another clock, and of which delegates (``names``)."""
    return Repair(
        "foreign_clock",
        f"events of {', '.join(names)} do not fit into the calls that logged them: their numbers are of a "
        "clock or unit that the file does not name (cycles, a GPU's clock, bytes). They are kept as recorded "
        "(timing 'ticks', no domain, trace.args has start_ticks and end_ticks), and are in no sum of times",
        path,
        count=int(foreign.sum()),
    )
