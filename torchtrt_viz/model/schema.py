"""Every frame that a trace holds: each column, its dtype, its unit and its meaning, in one place.

Times are integer nanoseconds. ``start_ns`` and ``ts_ns`` count from the trace's own base, which
``trace.meta`` describes. No column mixes units or clocks: whether a duration was spent on the host or on
the GPU is said by ``domain``, and whether it has a place on the time axis by ``timing``. The
one exception says so: a row whose ``timing`` is ticks has no domain, and its ``dur_ns`` is a number of
unknown unit.

What was not collected is missing (``<NA>``, or no category), never 0 and never -1; ``spans.parent`` alone
keeps -1 for "none": it is a position, always known, and algorithms follow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

# numpy and pandas are imported where a frame is made: a command line's help reads only names and meanings.
if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "COUNTERS",
    "DOMAINS",
    "EVENTS",
    "FLOWS",
    "INSTANTS",
    "KINDS",
    "SPANS",
    "TIMINGS",
    "TRACKS",
    "Column",
    "FrameSchema",
]

KINDS: tuple[str, ...] = (
    "method",  # one execution of an exported program's method
    "operator",  # a framework operator on the host
    "annotation",  # a range that the user's program or a library named
    "step",  # a profiler step
    "runtime",  # a call into the device's runtime or driver
    "kernel",  # device code
    "memcpy",
    "memset",
    "communication",  # a collective or point-to-point transfer
    "delegate",  # one call of a delegate
    "phase",  # a part of a delegate's call
    "layer",  # a layer of an engine
    "memory",  # allocation and release
    "python",  # a Python frame
    "other",
)
DOMAINS: tuple[str, ...] = ("host", "gpu")
TIMINGS: tuple[str, ...] = (
    "measured",  # a real start and a real end
    "aggregate",  # a sum over several calls: no place on a time axis
    "modeled",  # computed, derived from other rows, or the recorder's own bookkeeping: in no sum
    "implausible",  # recorded, and cannot be true: shown, and in no sum
    "ticks",  # of a clock or unit that the file does not name: no ns, no place on the time axis, in no sum
)
TRACK_TYPES: tuple[str, ...] = (
    "process",
    "thread",
    "stream",
    "delegate",
    "engine",
    "method",
    "async",
    "counter",
    "other",
)
STATES: tuple[str, ...] = ("instant", "unfinished", "invalid")


@dataclass(frozen=True)
class Column:
    """One column of a frame.

    ``dtype`` is a numpy or pandas dtype name; ``category`` (strings); ``text`` (strings, None where there is
    none: pandas' own dtype of strings, or ``object``); ``any`` (depends on the trace, the meaning says on
    what) or ``object``. ``categories`` fixes the categories and their codes; ``default`` fills the column
    when a loader does not give it; ``title`` is written over the column where people read it, when the name
    does not say enough. ``optional`` columns are nullable integers that loaders may give as an array or a
    number, -1 where there is none. ``derived`` columns follow from others: `Trace` adds them, loaders do not.
    ``modeled`` ones hold what nobody observed, and is known from elsewhere (the capture of a graph).
    """

    name: str
    dtype: str
    meaning: str
    unit: str = ""
    default: Any = None
    categories: tuple[str, ...] | None = None
    title: str = ""
    optional: bool = False
    derived: bool = False
    modeled: bool = False

    def fits(self, dtype: Any) -> bool:
        """Whether a column of this pandas dtype is as documented."""
        given = str(dtype)
        if self.dtype in ("text", "object"):  # pandas 3 makes its own strings of objects that are all text
            return given in ("object", "str")
        return self.dtype == "any" or given == self.dtype


@dataclass(frozen=True)
class FrameSchema:
    """The columns of one frame, in order, and what one row stands for."""

    name: str
    columns: tuple[Column, ...]
    meaning: str = ""

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [column.name for column in self.columns]

    @property
    def stored(self) -> list[str]:
        """Names of the columns that loaders give."""
        return [column.name for column in self.columns if not column.derived]

    def typed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a frame of these columns with the documented dtypes, which no value tells an empty one."""
        wrong = {
            column.name: "object" if column.dtype == "text" else column.dtype
            for column in self.columns
            if column.name in frame and not column.fits(frame[column.name].dtype)
        }
        return frame.astype(wrong) if wrong else frame

    def frame(self, data: Mapping[str, Any] | None = None, length: int | None = None) -> pd.DataFrame:
        """Make a frame of exactly these columns, without the derived ones, out of whole column arrays.

        Arrays of the right dtype are taken without a copy. A categorical column may be given as a
        ``pandas.Categorical``, as an array of codes when its categories are fixed, as one string for all
        rows, or as a sequence of strings. A column that is not given gets its default.

        Raises
        ------
        KeyError
            For a column that the frame does not have.
        ValueError
            When lengths differ, or a value is not one of the fixed categories.
        """
        import pandas as pd

        data = dict(data or {})
        unknown = set(data) - set(self.stored)
        if unknown:
            raise KeyError(f"{self.name} has no column {sorted(unknown)}; it has {self.stored}")
        if length is None:
            length = next(
                (len(v) for v in data.values() if not isinstance(v, (str, int, float)) and v is not None), 0
            )
        made = {
            column.name: _series(column, data.get(column.name), length)
            for column in self.columns
            if not column.derived
        }
        for name, values in made.items():
            if len(values) != length:
                raise ValueError(f"{self.name}.{name} has {len(values)} rows, others have {length}")
        frame = pd.DataFrame(made, copy=False)
        frame.index = pd.RangeIndex(length)
        return frame

    def describe(self) -> pd.DataFrame:
        """Return a frame that documents this one: columns name, dtype, unit, meaning."""
        import pandas as pd

        return pd.DataFrame(
            [(c.name, c.dtype, c.unit, c.meaning) for c in self.columns],
            columns=["name", "dtype", "unit", "meaning"],
        )


def _series(column: Column, value: Any, length: int) -> Any:
    """Turn what a loader gave for ``column`` into the array that the frame keeps."""
    import numpy as np
    import pandas as pd

    if column.dtype == "category":
        return _categorical(column, value, length)
    if value is None:
        value = column.default
    if column.dtype in ("string", "object", "text"):
        if value is None or isinstance(value, str):
            value = [value] * length
        if column.dtype == "text":
            value = [each if each is None or isinstance(each, str) else _text(each) for each in value]
        return (
            pd.array(value, dtype="string") if column.dtype == "string" else np.asarray(value, dtype=object)
        )
    if column.optional and not isinstance(value, (pd.Series, pd.api.extensions.ExtensionArray)):
        return _optional(column, value, length)
    if column.dtype in ("Int64", "Int32", "Float64"):
        array: Any = pd.array  # the stubs know only literal dtypes
        return array([pd.NA] * length if value is None else value, dtype=column.dtype)
    if value is None:
        if length:
            raise ValueError(f"column {column.name} has to be given")
        return np.empty(0, dtype=column.dtype)
    if np.isscalar(value):
        return np.full(length, value, dtype=column.dtype)
    if isinstance(value, pd.api.extensions.ExtensionArray):
        # start_ns of aggregate records: a nullable array, see Column "start_ns"
        return value
    return np.asarray(value, dtype=column.dtype)


def _text(value: Any) -> str | None:
    import pandas as pd

    return None if pd.isna(value) else str(value)


def _optional(column: Column, value: Any, length: int) -> Any:
    """Make a nullable integer column of whole numbers or one number, -1 (or None) where there is none."""
    import numpy as np
    import pandas as pd

    # slow to import: it needs numpy
    from torchtrt_viz.model.optional_ints import MISSING, optional_ints

    dtype = column.dtype.lower()
    if value is None or np.isscalar(value):
        return optional_ints(np.full(length, MISSING if value is None else value, dtype))
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
        value = np.array([MISSING if pd.isna(each) else each for each in value], dtype)
    return optional_ints(value.astype(dtype, copy=False))


def _categorical(column: Column, value: Any, length: int) -> Any:
    import numpy as np
    import pandas as pd

    # the stubs type the categories more narrowly than pandas does
    from_codes: Any = pd.Categorical.from_codes

    fixed = None if column.categories is None else list(column.categories)
    if value is None:
        value = column.default
    if isinstance(value, pd.Series):
        value = value.array
    if isinstance(value, pd.Categorical):
        if fixed is not None and list(value.categories) != fixed:
            return pd.Categorical(value.astype(object), categories=fixed)
        return value
    if value is None:
        return from_codes(
            np.full(length, -1, np.int8),
            categories=pd.Index(fixed or [], dtype="str" if fixed is None else None),
        )
    if isinstance(value, str):
        categories = fixed or [value]
        return from_codes(np.full(length, categories.index(value), np.int8), categories=categories)
    array = np.asarray(value)
    if fixed is not None and array.dtype.kind in "iu":
        if length and (array.min() < -1 or array.max() >= len(fixed)):
            raise ValueError(f"codes of {column.name} outside its {len(fixed)} categories")
        return from_codes(array.astype(np.int8, copy=False), categories=fixed, validate=False)
    if fixed is not None:
        wrong = {v for v in value if v is not None and v not in fixed}
        if wrong:
            raise ValueError(f"{column.name} cannot be {sorted(wrong)}; it is one of {fixed}")
        return pd.Categorical(array, categories=fixed)
    return pd.Categorical(pd.array(list(value), dtype="str") if length else pd.array([], dtype="str"))


SPANS = FrameSchema(
    "spans",
    (
        Column("name", "category", "name of the event as the producer gave it"),
        Column("kind", "category", "what sort of work it is", categories=KINDS, default="other"),
        Column(
            "domain",
            "category",
            "where the time was spent; missing: the file does not tell",
            categories=DOMAINS,
            default="host",
        ),
        Column("timing", "category", "what the times mean", categories=TIMINGS, default="measured"),
        Column("track", "int32", "row of trace.tracks"),
        Column(
            "start_ns",
            "int64",
            "start on the trace's base; NA (dtype Int64) for aggregate records and ticks: they have no place "
            "in time",
            "ns",
        ),
        Column("dur_ns", "int64", "duration, 0 or more; where timing is ticks, the number as recorded", "ns"),
        Column("self_ns", "int64", "duration less the time covered by its children on the same track", "ns"),
        Column("depth", "int32", "nesting depth within the track, 0 outermost", default=0),
        Column(
            "parent",
            "int64",
            "row of the innermost enclosing span on the same track; -1 (not NA) for spans that have none",
            default=-1,
        ),
        Column("correlation", "Int64", "id that links a host launch to device work; NA none", optional=True),
        Column("external_id", "Int64", "id that links an operator to its launches; NA none", optional=True),
        Column(
            "iteration",
            "Int32",
            "run index within the capture, from 0, or the number that the producer gave the step; NA unknown",
            optional=True,
        ),
        Column("rank", "Int32", "rank of the process; NA unknown", optional=True),
        Column(
            "run_id",
            "category",
            "engine, delegate or method instance that the span belongs to; missing: none",
        ),
        Column(
            "process",
            "category",
            "name and id of the process, as far as the file gives them; missing: unknown",
            derived=True,
        ),
        Column(
            "thread", "category", "thread as the producer named it; missing: none, or unknown", derived=True
        ),
        Column("device", "Int32", "device index; NA none", derived=True),
        Column("stream", "category", "stream (queue) of the device; missing: not on one", derived=True),
        Column(
            "t_ns",
            "int64",
            "start since the trace's start, which is the first measured span's; NA where start_ns is",
            "ns",
            derived=True,
        ),
    ),
    "one row per event with a duration",
)

TRACKS = FrameSchema(
    "tracks",
    (
        Column("label", "text", "text shown for the row"),
        Column("type", "category", "what the row stands for", categories=TRACK_TYPES, default="other"),
        Column("domain", "category", "host or gpu; missing: unknown", categories=DOMAINS, default="host"),
        Column("process", "text", "process as the producer numbered or named it, as text; None unknown"),
        Column("thread", "text", "thread or stream as the producer numbered or named it; None unknown"),
        Column("device", "Int32", "device index; NA none", optional=True),
        Column("rank", "Int32", "rank of the process; NA unknown", optional=True),
        Column(
            "sort_index",
            "int64",
            "order that the producer asked for; ties keep the order of the rows",
            default=0,
        ),
        Column("process_name", "text", "name that the file gives the process; None none"),
    ),
    "one row per thread, stream, delegate or engine that events lie on",
)

INSTANTS = FrameSchema(
    "instants",
    (
        Column("name", "category", "name of the event"),
        Column("kind", "category", "what sort of event it is", categories=KINDS, default="other"),
        Column("domain", "category", "host or gpu", categories=DOMAINS, default="host"),
        Column("track", "int32", "row of trace.tracks"),
        Column("ts_ns", "int64", "time on the trace's base", "ns"),
        Column(
            "state",
            "category",
            "instant: a point in time; unfinished: no end recorded; invalid: duration negative or no number",
            categories=STATES,
            default="instant",
        ),
        Column("rank", "Int32", "rank of the process; NA unknown", optional=True),
    ),
    "one row per event without a duration, or without a usable one",
)

COUNTERS = FrameSchema(
    "counters",
    (
        Column(
            "name", "category", "name of the counter; a counter with several series is written counter/series"
        ),
        Column("track", "int32", "row of trace.tracks"),
        Column("ts_ns", "int64", "time on the trace's base", "ns"),
        Column("value", "float64", "value from this time on", "as in the unit column"),
        Column("unit", "category", "unit of the value; missing: not recorded"),
        Column("rank", "Int32", "rank of the process; NA unknown", optional=True),
    ),
    "one row per new value of a counter",
)

FLOWS = FrameSchema(
    "flows",
    (
        Column("name", "category", "category of the flow as the producer gave it (ac2g, fwdbwd, ...)"),
        Column("source", "Int64", "row of trace.spans where the flow starts; NA not found", optional=True),
        Column("target", "Int64", "row of trace.spans where it ends; NA not found", optional=True),
        Column("id", "Int64", "the producer's id of the flow; NA none", optional=True),
    ),
    "one row per link from a span to another",
)

EVENTS = (SPANS, TRACKS, INSTANTS, COUNTERS, FLOWS)
"""The frames that every trace holds, by the attribute of `Trace`."""
