"""Whether an XPlane is whole and holds events, found out without reading its events."""

from __future__ import annotations

from collections.abc import Iterator

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.foreign_file import Foreign
from torchtrt_viz.formats.io.protobuf_head import LENGTH, Wire, fields
from torchtrt_viz.formats.io.source import Source

__all__ = ["WITHOUT_EVENTS", "holds_events", "xplane_damage"]

WITHOUT_EVENTS = Foreign(
    "an XPlane of jax.profiler or TensorFlow's profiler (XSpace) that holds no event",
    "Profile while the program runs: with jax.profiler.trace(FOLDER): ...",
)
_PLANE, _LINE, _EVENT = 1, 3, 4
_MOST_FIELDS = 1 << 62


def _messages(data: bytes, number: int) -> Iterator[Wire]:
    """Yield the messages of one field, a cut one too."""
    for field in fields(data, _MOST_FIELDS):
        if field is not None and (field.number, field.wire) == (number, LENGTH):
            yield field


def holds_events(data: bytes) -> bool:
    """Tell whether any line of any plane has an event."""
    return any(
        True
        for plane in _messages(data, _PLANE)
        for line in _messages(plane.content, _LINE)
        for _ in _messages(line.content, _EVENT)
    )


def xplane_damage(source: Source) -> tuple[str | None, bool]:
    """Tell what is wrong with an XPlane (None for nothing), and whether it holds events."""
    try:
        data = source.read()
    except TraceFormatError as error:
        return str(error), True
    planes = list(fields(data, _MOST_FIELDS))
    cut = any(field is None or field.cut for field in planes)
    return ("the XPlane ends in the middle of a plane" if cut else None), holds_events(data)
