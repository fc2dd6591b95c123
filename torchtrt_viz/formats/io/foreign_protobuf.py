"""What a protobuf file is that is none of ours: named for the error, with what to load instead.

Protobuf has no magic number. Each message here is told by the numbers and wire types of its first fields and
by what one of them holds: XSpace (``xplane.proto``, ``hlo.proto``, ``graph.proto``, ``node_def.proto``,
``saved_model.proto`` of TensorFlow and XLA), ONNX's ModelProto, pprof's Profile, Perfetto's TraceConfig.
"""

from __future__ import annotations

import re

from torchtrt_viz.formats.io.foreign_file import Foreign
from torchtrt_viz.formats.io.protobuf_head import LENGTH, VARINT, Wire, fields, first_field, text_of

__all__ = ["foreign_protobuf", "is_xspace"]

_XPLANE = Foreign(
    "an XPlane of jax.profiler or TensorFlow's profiler (XSpace)",
    "Load it without naming a format, or with format='xplane'",
)
_XPLANE_BY_NAME = (
    "jax.profiler writes the same recording as *.trace.json.gz beside it (plugins/profile/<run>/): load "
    "that, or record again"
)
_XPLANE_NAME = ".xplane.pb"
#: Names of planes, after ``xplane_schema.cc`` of XLA.
_PLANES = r"/(host|device|virtualdevice)\b|Task Environment|python-tracer|#|Host CPUs|Syscalls"

_PPROF = Foreign(
    "a pprof profile (samples of call stacks, without a time axis)",
    "Open it with pprof; to see times, record a trace (torch.profiler, Perfetto, py-spy with --format "
    "chrometrace)",
)


def foreign_protobuf(head: bytes, filename: str = "") -> Foreign | None:
    """Name a protobuf file by its first bytes; None where it is not told.

    Parameters
    ----------
    head
        The first 64 KiB of the uncompressed content.
    filename
        Its name without the folder, which settles what the content leaves open.
    """
    first = first_field(head)
    found = None
    if first is not None and first.number == 1 and first.wire == LENGTH:
        found = _of_messages(head, first.content)
    elif first is not None and first.number == 1 and first.wire == VARINT:
        found = _of_versions(head, filename)
    if filename.lower().endswith(_XPLANE_NAME) and found != _XPLANE:
        reads = "" if found is None else f"; its content reads as {found.what}"
        return Foreign(f"by its name an XPlane of jax.profiler or TensorFlow{reads}", _XPLANE_BY_NAME)
    return found


def is_xspace(head: bytes, filename: str = "") -> bool:
    """Tell whether a file is an XSpace; its name settles it where the first plane is of a name of its own."""
    first = first_field(head)
    if first is None or (first.number, first.wire) != (1, LENGTH):
        return False
    inner = [field for field in fields(first.content, 64) if field is not None]
    if not filename.lower().endswith(_XPLANE_NAME):
        return foreign_protobuf(head) == _XPLANE
    return _plane_name(inner) is not None


def _of_messages(head: bytes, first: bytes) -> Foreign | None:
    """Name a file that is a list of messages of field 1."""
    inner = [field for field in fields(first, 64) if field is not None]
    if not inner:
        return None
    shape = {(field.number, field.wire) for field in inner}
    if _is_plane(inner):
        return _XPLANE
    if _is_node(inner, shape):
        return Foreign(
            "a TensorFlow GraphDef (a graph, not a run)",
            "It holds no times: profile a run with tf.profiler or jax.profiler and load its *.trace.json.gz",
        )
    if shape <= {(number, VARINT) for number in range(1, 12)} and (1, VARINT) in shape:
        return _of_numbers(head)
    if _is_hlo(inner):
        return Foreign(
            "an XLA HLO module (a program, not a run)",
            "It holds no times: profile a run with jax.profiler and load its *.trace.json.gz",
        )
    return None


def _plane_name(inner: list[Wire]) -> str | None:
    """Return the name of an XPlane: id = 1, name = 2, lines = 3, metadata = 4 and 5, stats = 6; else None."""
    name = next((field for field in inner if field.number == 2), None)
    shape = {(field.number, field.wire) for field in inner}
    if name is None or not shape <= {(1, VARINT), *((number, LENGTH) for number in range(2, 7))}:
        return None
    return text_of(name)


def _is_plane(inner: list[Wire]) -> bool:
    return re.match(_PLANES, _plane_name(inner) or "") is not None


def _is_node(inner: list[Wire], shape: set[tuple[int, int]]) -> bool:
    """NodeDef: name = 1, op = 2, inputs = 3, device = 4, attributes = 5."""
    if not shape <= {(number, LENGTH) for number in range(1, 8)} or len(inner) < 2:
        return False
    name, op = inner[0], inner[1]
    said = text_of(op)
    return (
        (name.number, op.number) == (1, 2)
        and all(text_of(field) is not None for field in inner if field.number == 3)
        and bool(text_of(name))
        and said is not None
        and re.fullmatch(r"_?[A-Za-z][A-Za-z0-9_>.]*", said) is not None
    )


def _is_hlo(inner: list[Wire]) -> bool:
    """HloModuleProto: name = 1, entry computation's name = 2, computations = 3."""
    numbers = [field.number for field in inner[:3]]
    return (
        numbers == [1, 2, 3]
        and bool(text_of(inner[0]))
        and bool(text_of(inner[1]))
        and inner[2].wire == LENGTH
    )


def _of_numbers(head: bytes) -> Foreign | None:
    """Name a list of messages of numbers: buffers of a trace's configuration, or a profile's value types."""
    for field in fields(head, 4096):
        if field is None or field.number == 1:
            continue
        if field.number == 2 and field.wire == LENGTH:
            source = first_field(field.content)
            if source is not None and source.number == 1 and source.wire == LENGTH:
                name = first_field(source.content)
                if name is not None and name.number == 1 and name.wire == LENGTH and text_of(name):
                    return Foreign(
                        "a Perfetto trace configuration",
                        "It says what to record: run perfetto -c CONFIG -o trace.pftrace and load the trace",
                    )
        return _PPROF
    # nothing but messages of two numbers: a profile's types of values, which are strings' numbers
    first = first_field(head)
    inner = [] if first is None else [field.number for field in fields(first.content, 3) if field is not None]
    return _PPROF if inner == [1, 2] else None


def _of_versions(head: bytes, filename: str) -> Foreign | None:
    """Name a file that begins with a version: a SavedModel, an ONNX model."""
    found = [field for field in fields(head, 64) if field is not None]
    if len(found) < 2 or not 0 < found[0].value < 1000:
        return None
    if any(field.wire == LENGTH and field.number in (2, 7, 8) for field in found[1:]):
        second = found[1]
        model = first_field(second.content) if second.number == 2 else None
        if second.number == 2 and text_of(second) is None and model is not None and model.wire == LENGTH:
            return Foreign(
                "a TensorFlow SavedModel (a program, not a run)",
                "It holds no times: profile a run with tf.profiler and load its *.trace.json.gz",
            )
        numbers = {field.number for field in found}
        if numbers <= {1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25} and (7 in numbers or filename.endswith(".onnx")):
            return Foreign(
                "an ONNX model (a program, not a run)",
                "It holds no times: run it with ONNX Runtime's profiling enabled, or through trtexec "
                "--exportProfile, and load what that writes",
            )
    return None
