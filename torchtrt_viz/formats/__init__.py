"""A room a format: what reads it and what writes it.

A new format is a folder here and a line in `FORMATS`. The module that the line names has

- ``FORMAT``: the name that ``load(format=...)`` takes,
- ``sniff(head, filename) -> bool``: whether the first 64 KiB of the uncompressed content are of its format
  (the name may only settle what the content leaves open), and
- ``read(source, options) -> TraceData``.

Rooms know the data model, `formats.io` and `formats.producers` (what writers call things), not one another,
with three exceptions: what a session's files are called (`formats.session`) is known to the formats that
ranks write, databases (`formats.sqlite`, which is no format of traces) to those that lie in one, and what
others put into meta data (engines, merged ranks, manifests) to `formats.saved`, which keeps it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from torchtrt_viz.errors import OptionError
from torchtrt_viz.formats.kineto.sniff import is_kineto_header

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMATS", "Format", "format_module", "recognise"]

#: Name and module of each format, in the order in which they are asked: the first that knows the content
#: reads it. With a dot in front a module is one of this package, else it is named in whole.
FORMATS: dict[str, str] = {
    "saved": ".saved.reader",
    "etdump": ".etdump.reader",
    "xplane": ".xplane.reader",
    "perfetto": ".perfetto.reader",
    "rocprof": ".rocprof.reader",
    "nsys": ".nsys.reader",
    "torchtrt": ".engine.torchtrt",
    "trex": ".engine.trex",
    "trtexec": ".engine.trtexec",
    "ncu": ".ncu.reader",
    "flight_recorder": ".flight_recorder.reader",
    "proton": ".proton.reader",
    "kineto": ".kineto.reader",
}


class Format(Protocol):
    """What the module of a format offers."""

    FORMAT: str

    def sniff(self, head: bytes, filename: str) -> bool:
        """Tell whether the content is of this format."""
        ...

    def read(self, source: Source, options: LoadOptions) -> TraceData:
        """Read the source."""
        ...


def format_module(name: str) -> Format:
    """Return the module of a format; it is imported when it is first asked for.

    Raises
    ------
    OptionError
        For a name that is no format.
    """
    if name not in FORMATS:
        raise OptionError("format", name, f"one of {', '.join(FORMATS)}")
    return cast(Format, import_module(FORMATS[name], __name__))


def recognise(head: bytes, filename: str) -> str | None:
    """Return the name of the format whose content begins so; None when nobody knows it.

    Parameters
    ----------
    head
        The first 64 KiB of the uncompressed content.
    """
    if is_kineto_header(head):
        return "kineto"  # the usual case, told without importing what the other formats need
    # only the name of a file about an engine says what an empty one would have held
    asked = FORMATS if head else ("torchtrt", "trex")
    return next((name for name in asked if format_module(name).sniff(head, filename)), None)
