"""How busy each rank was over its recording, in a few numbers: what a picture of many ranks is drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from torchtrt_viz.analysis.core.device_work import device_work
from torchtrt_viz.analysis.core.intervals import cover, merge
from torchtrt_viz.analysis.core.masks import among, ends, ints, measured

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["BINS", "trace_strips"]

BINS = 96
# Work of its own; not the names around work, and not the interpreter's frames around everything.
_WORK = (
    *("operator", "runtime", "kernel", "memcpy", "memset", "communication", "method", "delegate", "phase"),
    *("layer", "memory"),
)


def trace_strips(trace: TraceData, *, bins: int = BINS) -> pd.DataFrame:
    """Busy share of one recording over its length.

    Returns
    -------
    pandas.DataFrame
        One row for each side that recorded work: ``domain`` (host: any thread in an operator, a runtime call
        or other work of its own; gpu: any stream with work), ``length_ns`` (first start to last end of
        everything measured), ``busy_ns`` (union of the side's work), ``shares`` (bytes: busy share of each of
        ``bins`` equal parts of the length, in 255ths, rounded up so that nothing short disappears).
    """
    columns: dict[str, list[Any]] = {"domain": [], "length_ns": [], "busy_ns": [], "shares": []}
    here = measured(trace)
    if here.any():
        start, end = ints(trace.spans["start_ns"]), ends(trace)
        first, last = int(start[here].min()), int(end[here].max())
        edges = first + np.arange(bins + 1) * max(last - first, 1) // bins
        host = here & among(trace.spans["domain"], ("host",))
        own = host & among(trace.spans["kind"], _WORK)
        own = own if own.any() else host
        sides = {"host": merge(start[own], end[own]), "gpu": device_work(trace).busy()}
        for domain, busy in sides.items():
            if not len(busy[0]):
                continue
            covered = cover(busy, edges[:-1], edges[1:])
            shares = np.ceil(255 * covered / np.maximum(np.diff(edges), 1))
            columns["domain"].append(domain)
            columns["length_ns"].append(last - first)
            columns["busy_ns"].append(int((busy[1] - busy[0]).sum()))
            columns["shares"].append(np.clip(shares, 0, 255).astype(np.uint8).tobytes())
    frame = pd.DataFrame(columns)
    return frame.astype({"domain": object, "length_ns": "int64", "busy_ns": "int64", "shares": object})
