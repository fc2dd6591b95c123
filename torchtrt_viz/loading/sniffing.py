"""What a file is: its format, told by its content."""

from __future__ import annotations

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats import recognise
from torchtrt_viz.formats.flight_recorder.sniff import is_dump
from torchtrt_viz.formats.io.foreign import told_by_head
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.formats.io.text_forms import decoded_head, encoding_of

__all__ = ["sniff", "sniff_head"]


def sniff(source: Source) -> str:
    """Tell the format of a single file by its content; errors are those of `sniff_head`."""
    return sniff_head(source.head(), source.filename, source.name)


def sniff_head(head: bytes, filename: str, name: str) -> str:
    """Tell the format of the file ``name`` by its first 64 KiB.

    Raises
    ------
    TraceFormatError
        For an empty file, and for content that no loader knows; it says what the file is, where that can be
        told.
    """
    # a dump is a pickle: no other pickle is read, and its source lines may hold any words
    dump = head.startswith(b"\x80") and is_dump(head)
    foreign = None if dump else told_by_head(head, filename, surely=True)
    if foreign is None:
        found = recognise(head, filename)
        if found is not None:
            return found
    if not head:
        raise TraceFormatError(
            "empty file",
            path=name,
            offset=0,
            expected="a trace",
            found="0 bytes",
            hint="The writer was probably stopped before it wrote anything: capture again",
        )
    encoding = encoding_of(head)[0]
    text = head if encoding == "utf-8" else decoded_head(head).encode("utf-8", errors="replace")
    foreign = foreign or told_by_head(text, filename)
    if foreign is not None:
        raise foreign.refused(name)
    raise TraceFormatError(
        "not a trace that this package knows",
        path=name,
        offset=0,
        expected="ETDump, trace-event JSON (Kineto, Chrome), Perfetto protobuf, XPlanes, exports of Nsight "
        "Systems, recordings of rocprofv3, "
        "TensorRT layer, profile or timing JSON, Torch-TensorRT traces, trtexec output, dumps of a Flight "
        "Recorder, or an archive or "
        "folder of those",
        found=repr(head[:24]),
        hint="If it is one of them all the same, name it: load(path, format=...)",
    )
