"""One file, read by the module of its format."""

from __future__ import annotations

from torchtrt_viz.formats import format_module
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.sniffing import sniff
from torchtrt_viz.loading.unwrapping import unwrapped
from torchtrt_viz.model.plausibility import mark_implausible
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["read_source"]


def read_source(source: Source, options: LoadOptions, format: str | None = None) -> TraceData:
    """Read one file (or archive member) into a trace, and mark what cannot be true in it.

    What lies behind a URL is copied first: details of events are read from the copy when somebody asks.
    """
    here, notes = unwrapped(source.local(options.progress))
    options.warnings.extend(notes)
    trace = format_module(format or sniff(here)).read(here, options)
    if not trace.as_saved:
        trace.meta["warnings"].extend(mark_implausible(trace))
    return trace
