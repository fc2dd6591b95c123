"""What a file is: its format, told by its content."""

from __future__ import annotations

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats import FORMATS, format_module
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.kineto.sniff import is_kineto_header

__all__ = ["sniff"]


def sniff(source: Source) -> str:
    """Tell the format of a single file by its content.

    Raises
    ------
    TraceFormatError
        For an empty file, and for content that no loader knows.
    """
    head = source.head()
    if not head:
        # only the name of a file about an engine says what an empty one would have held
        for name in ("torchtrt", "trex"):
            if format_module(name).sniff(head, source.filename):
                return name
        raise TraceFormatError(
            "empty file",
            path=source.name,
            offset=0,
            expected="a trace",
            found="0 bytes",
            hint="The writer was probably stopped before it wrote anything: capture again",
        )
    if is_kineto_header(head):
        return "kineto"  # the usual case, told without importing what the other formats need
    for name in FORMATS:
        if format_module(name).sniff(head, source.filename):
            return name
    raise TraceFormatError(
        "not a trace that this package knows",
        path=source.name,
        offset=0,
        expected="ETDump, trace-event JSON (Kineto, Chrome), Perfetto protobuf, TensorRT layer, profile "
        "or timing JSON, Torch-TensorRT traces, trtexec output, or an archive or folder of those",
        found=repr(head[:24]),
        hint="If it is one of them all the same, name it: load(path, format=...)",
    )
