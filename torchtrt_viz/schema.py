"""Every frame that the package returns: each column with its dtype, its unit and its meaning.

``frames()`` lists them, ``table(name)`` finds one, and its ``describe()`` documents the columns::

    tv.schema.frames()
    tv.schema.table("operators").describe()
    tv.schema.SPANS.describe()                # the events of a trace
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from torchtrt_viz.analysis.catalogue import FRAMES, TABLES
from torchtrt_viz.capture.columns import CAPTURE_SUMMARY
from torchtrt_viz.doctor import FINDINGS
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model import schema as _model
from torchtrt_viz.model.schema import *  # noqa: F403

if TYPE_CHECKING:
    import pandas as pd

    from torchtrt_viz.model.schema import FrameSchema

__all__ = [*_model.__all__, "frames", "table"]

_FRAMES: dict[str, FrameSchema] = {
    **FRAMES,
    CAPTURE_SUMMARY.name: CAPTURE_SUMMARY,
    FINDINGS.name: FINDINGS,
}
_EVENTS = tuple(schema.name for schema in _model.EVENTS)
_CALLS = {
    "session.ranks": "session.ranks",
    "session.operators(per_rank=True)": "session.operators(per_rank=True)",
    "session.step_imbalance": "in a session's report",
    "session.collective_totals": "in a session's report",
    "collective_skew": "analysis.collective_skew(session)",
    "regressions": "analysis.regressions(comparison)",
    "series": "analysis.series(runs)",
    "series_values": "analysis.series_values(runs)",
    "compare": "compare(a, b)",
    "engine_diff": "analysis.engine_diff(a, b)",
    "doctor": "doctor.examine(), `trtprofile doctor`",
    **{f"session.{name}": f"session.overview().{name}" for name in ("totals", "roles", "by_role", "strips")},
}


def frames() -> pd.DataFrame:
    """List the frames that the package returns.

    Returns
    -------
    pandas.DataFrame
        ``name``, as `table` takes it; ``call``, what returns the frame; ``columns``, how many it has;
        ``meaning``, what one row is.

    Examples
    --------
    >>> tv.schema.frames().set_index("name").loc["kernels", "call"]
    'trace.kernels()'
    """
    import pandas as pd

    rows = [(name, _call(name), len(schema.columns), schema.meaning) for name, schema in _FRAMES.items()]
    return pd.DataFrame(rows, columns=["name", "call", "columns", "meaning"])


def table(name: str) -> FrameSchema:
    """Return what a frame holds, by its name; ``describe()`` of it is a frame of its columns.

    Raises
    ------
    OptionError
        For a name that `frames` does not list.

    Examples
    --------
    >>> tv.schema.table("operators").describe().loc[4].tolist()[:3]
    ['self_ns', 'int64', 'ns']
    """
    if name not in _FRAMES:
        near = get_close_matches(name, _FRAMES, 3, 0.4)
        raise OptionError("name", name, f"one of schema.frames(); near it: {', '.join(near) or 'none'}")
    return _FRAMES[name]


def _call(name: str) -> str:
    """Return the expression that gives a frame."""
    if name in _CALLS:
        return _CALLS[name]
    if name in _EVENTS:
        return f"trace.{name}"
    if name in TABLES:
        return f"trace.{name}()"
    return f"{name}()" if "." in name else f"analysis.{name}(trace)"
