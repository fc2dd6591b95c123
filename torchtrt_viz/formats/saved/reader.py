"""Saved traces: what `Trace.save` wrote, read back equal and checked before anything uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.saved.document import SESSION_FORMAT, TRACE_FORMAT, begins_document

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "saved"


def sniff(head: bytes, filename: str) -> bool:
    """Tell whether this is the document of a saved trace (or session)."""
    return begins_document(head, TRACE_FORMAT) or begins_document(head, SESSION_FORMAT)


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read the trace of which ``source`` is the document; its tables lie beside it.

    Raises
    ------
    TraceFormatError
        When a table is missing or damaged, or holds what cannot be: it names file, place and remedy.
    """
    # slow to import: they need numpy, pandas and pyarrow
    from torchtrt_viz.formats.saved.saved_trace import read_trace

    if begins_document(source.head(512), SESSION_FORMAT):
        raise TraceFormatError(
            "the document of a saved session, not of a trace",
            path=source.name,
            hint="Load the folder that it lies in",
        )
    return read_trace(source, options)
