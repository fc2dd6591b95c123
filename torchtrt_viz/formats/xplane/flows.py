"""Links from what one thread hands over to what another takes up.

XLA marks both ends: the producer with a type and an id (``_pt``, ``_p``), the consumer with the same
(``_ct``, ``_c``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.formats.xplane.stats import ABSENT, StatsOfEvents

__all__ = ["handed_over"]

Ints = NDArray[np.int64]


def handed_over(stats: StatsOfEvents, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Return (source, target, id): positions in ``rows``, which are events.

    Several consumers of one producer are several links; an id that two producers use is none's.
    """
    given, given_type = stats.integers("_p")[rows], stats.integers("_pt")[rows]
    taken, taken_type = stats.integers("_c")[rows], stats.integers("_ct")[rows]
    sources = np.flatnonzero((given != ABSENT) & (given_type != ABSENT))
    targets = np.flatnonzero((taken != ABSENT) & (taken_type != ABSENT))
    nothing = np.zeros(0, np.int64)
    if not len(sources) or not len(targets):
        return nothing, nothing, nothing
    order = np.lexsort((given[sources], given_type[sources]))
    sources = sources[order]
    keys, types = given[sources], given_type[sources]
    again = np.zeros(len(keys), bool)
    again[1:] = (keys[1:] == keys[:-1]) & (types[1:] == types[:-1])
    again[:-1] |= again[1:]
    table = {
        pair: source
        for pair, source, twice in zip(
            zip(types.tolist(), keys.tolist(), strict=True), sources.tolist(), again.tolist(), strict=True
        )
        if not twice
    }
    wanted = zip(taken_type[targets].tolist(), taken[targets].tolist(), strict=True)
    found = np.array([table.get(pair, -1) for pair in wanted], np.int64)
    known = found >= 0
    return found[known], targets[known], taken[targets][known]
