"""Recordings of rocprofiler-sdk's tools: JSON of rocprofv3, and rocpd databases.

``rocprofv3 --output-format json`` writes one document for each process, ``--output-format rocpd`` (the
default since ROCm 7) an SQLite database, which ROCm Systems Profiler writes too and the ``rocpd`` package
merges from several processes. Read are kernels on their queues, copies, calls of HIP, HSA, RCCL and other
libraries, roctx ranges and marks, allocations, counters and samples. A launch is known by its process and its
correlation id.

The Perfetto traces of both tools are read as what they are (``formats.perfetto``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchtrt_viz.formats.rocprof.vocabulary import FIRST_KEY, is_rocpd

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "rocprof"

_SQLITE = b"SQLite format 3\x00"
_WRITTEN = re.compile(rb"rocpd_(info_\w+|kernel_dispatch|region|memory_copy|memory_allocate|metadata)")


def sniff(head: bytes, filename: str) -> bool:
    """Tell whether this is a result file of rocprofv3, or a database with its tables."""
    if head.startswith(_SQLITE):
        return _names_tables(head)
    return FIRST_KEY.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


def _names_tables(head: bytes) -> bool:
    # slow to import: it needs numpy
    from torchtrt_viz.formats.sqlite.database import tables_at

    tables, complete = tables_at(head)
    if is_rocpd(tables):
        return True
    # the list of tables may go on behind the head
    return not complete and not tables and _WRITTEN.search(head) is not None


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read one recording.

    Raises
    ------
    TraceFormatError
        When it is none, or holds no event; with ``options.strict`` also for any damage.
    """
    if source.head(len(_SQLITE)) == _SQLITE:
        # slow to import: it needs numpy and pandas
        from torchtrt_viz.formats.rocprof.database_reader import read_database

        return read_database(source, options)
    # slow to import: it needs numpy and pandas
    from torchtrt_viz.formats.rocprof.json_reader import read_results

    return read_results(source, options)
