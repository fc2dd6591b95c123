"""Pages of Nsight Compute as CSV (``ncu --csv``, ``ncu --import FILE --csv``): metrics of single kernels.

Read are the raw page (a row per kernel, a column per metric, a row of units), the details page and lists of
metrics (a row per metric of a kernel), and summaries (``--print-summary``), of several processes and devices,
with whatever the tool (``==PROF==``) and the program print before, between and behind. Numbers may have the
separators of English or of other languages.

A kernel is a span of domain gpu. It ran alone, several times, under fixed clocks, so that its time stands on
no time axis: its ``timing`` is aggregate. Without a time among its metrics it is in no sum (``timing``
ticks, ``dur_ns`` the elapsed cycles, or 0 where there are none either). Metrics are arguments of the span;
``trace.kernel_metrics()`` has them as a table, and joins a page to the kernels of another trace.

A report (``.ncu-rep``) is closed: the error names the command that exports it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "ncu"

_HEADER = re.compile(
    rb"^(?:\xef\xbb\xbf)?\"?(?:ID\"?,\"?)?Process ID\"?,\"?Process Name\"?,\"?Host Name\"?,", re.MULTILINE
)
_SAID = re.compile(rb"^==(?:PROF|ERROR|WARNING)== ", re.MULTILINE)


def sniff(head: bytes, filename: str) -> bool:
    """Tell whether this is output of Nsight Compute: the header of its page, or what it says of itself."""
    return _HEADER.search(head) is not None or _SAID.search(head) is not None


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read a page.

    Raises
    ------
    TraceFormatError
        When it holds no kernel; with ``options.strict`` also for any damage.
    """
    # slow to import: they need numpy and pandas
    from torchtrt_viz.formats.ncu.frames import read_page

    return read_page(source, options)
