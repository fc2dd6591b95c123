"""Timed inferences: what ``trtexec --exportTimes`` writes.

Each record is one inference. ``startEnqMs`` and ``endEnqMs`` are host times of the enqueue call; the times of
the copies and of the computation are CUDA events. The host and the GPU count from two instants that trtexec
takes one after the other at the start of the run, so that a host time and a GPU time may be off against each
other (there are real files where an inference starts on the GPU before the call that enqueues it); within one
clock the times are good to the six digits that are printed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.json_values import finite, list_of
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.model.repair import Repair

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_timing"]

#: Name of 2019 -> name since TensorRT 8.4.
_OLD_NAMES = {
    "startInMs": "startH2dMs",
    "endInMs": "endH2dMs",
    "inMs": "h2dMs",
    "startOutMs": "startD2hMs",
    "endOutMs": "endD2hMs",
    "outMs": "d2hMs",
}
#: What trtexec writes of each inference.
_TIMES = frozenset(
    {
        *(f"{side}{part}Ms" for side in ("start", "end") for part in ("Enq", "H2d", "Compute", "D2h")),
        *("h2dMs", "computeMs", "d2hMs", "latencyMs", "endToEndMs"),
    }
)


def read_timing(value: object, name: str, options: LoadOptions) -> pd.DataFrame:
    """Return one row per inference with the file's columns in milliseconds (old names brought up to date).

    Raises
    ------
    TraceFormatError
        When it is no list of records.
    """
    import pandas as pd

    entries = list_of(
        value,
        "timed inferences",
        name,
        '[{"startEnqMs": ..., "endEnqMs": ..., "computeMs": ...}, ...]',
        single=True,
        hint="Write it with trtexec --exportTimes=FILE; a timing cache is another thing and no JSON",
    )
    rows = [row for row in entries if isinstance(row, dict)]
    if len(rows) < len(entries):
        options.repaired(
            Repair(
                "not_a_record",
                "entries that are no records were left out",
                name,
                count=len(entries) - len(rows),
            )
        )
    keys = list(dict.fromkeys(key for row in rows for key in row))
    bad = 0
    columns: dict[str, list[float]] = {}
    for key in keys:
        column = []
        for row in rows:
            item = row.get(key)
            number = finite(item, math.inf)
            bad += number is None and item is not None
            column.append(math.nan if number is None else number)
        columns[_OLD_NAMES.get(key, key)] = column
    if rows and not any(
        column in _TIMES and not all(map(math.isnan, found)) for column, found in columns.items()
    ):
        raise TraceFormatError(
            "the records are no timed inferences",
            path=name,
            expected="records with startEnqMs, computeMs and other times",
            found=", ".join(map(repr, keys[:8])) or "records without keys",
            hint="Write it with trtexec --exportTimes=FILE",
        )
    if bad:
        options.repaired(Repair("no_time", "values that are no numbers are missing", name, count=bad))
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows)))
