"""A trace that was read, with the operators of its graphs' captures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.model.trace_data import TraceData

if TYPE_CHECKING:
    from torchtrt_viz.graphs.join import Capture

__all__ = ["with_graphs"]


def _launches_graphs(trace: TraceData) -> bool:
    return "GraphLaunch" in "\n".join(map(str, trace.spans["name"].cat.categories))


def with_graphs(trace: TraceData, captures: Sequence[Capture], options: LoadOptions) -> TraceData:
    """Join a trace with recordings of captures, unless the caller wants it as it is.

    Raises
    ------
    TraceFormatError
        With ``options.strict`` for a recording that cannot be read.
    """
    if not options.graphs or not (captures or _launches_graphs(trace)):
        return trace
    if trace.as_saved and (not captures or "graphs" in trace.meta):
        return trace  # joined before it was saved, or left alone on purpose
    # slow to import: it needs pandas
    from torchtrt_viz.graphs.join import join

    found = join(trace, captures)
    options.report(found.repairs)
    said = trace.meta["warnings"]
    said.extend(one for one in (*found.repairs, *found.notes) if one not in said)
    return found.trace
