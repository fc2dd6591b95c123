"""The TR01/TR02 blob of a ``TensorRTBackend`` delegate: written here, parsed here, with every bound checked.

The layout is the one that Torch-TensorRT writes (32 byte header, JSON metadata, 16-byte aligned engine);
``capture_ext/core/blob.hpp`` is its description, with the metadata keys. An engine whose first bytes
are :data:`HOST_MAGIC` is an inner ExecuTorch program for the host engine, anything else a TensorRT plan.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchtrt_viz.errors import TraceFormatError

__all__ = ["HOST_MAGIC", "EngineBlob", "host_payload", "pack_blob", "parse_blob"]

HOST_MAGIC = b"TVHOST01"
_HEADER = struct.Struct("<4sIIIQ8s")
_HOST_HEADER = struct.Struct("<8sQ")
_RESERVED = struct.pack("<Q", 1)
_ALIGNMENT = 16


@dataclass(frozen=True)
class EngineBlob:
    """A parsed blob.

    Attributes
    ----------
    magic
        ``"TR01"``, or ``"TR02"`` when outputs alias inputs.
    metadata
        The metadata object: ``io_bindings``, ``aliased_io``, ``torchtrt_viz`` and what else the writer put.
    engine
        The engine's bytes as stored.
    kind
        ``"host"`` or ``"tensorrt"``.
    program
        For a host engine the inner ExecuTorch program, else None.
    """

    magic: str
    metadata: dict[str, Any]
    engine: bytes
    kind: str
    program: bytes | None


def host_payload(program: bytes) -> bytes:
    """Return the engine bytes of an inner ExecuTorch program (``.pte``)."""
    return _HOST_HEADER.pack(HOST_MAGIC, len(program)) + program


def pack_blob(
    engine: bytes,
    *,
    io_bindings: Sequence[Mapping[str, Any]],
    aliased_io: Sequence[Mapping[str, Any]] = (),
    extra: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a TR01 blob, or TR02 when ``aliased_io`` has entries.

    Parameters
    ----------
    engine
        A TensorRT plan, or :func:`host_payload` of an inner program.
    io_bindings
        ``{"name", "dtype", "shape", "is_input"}``: inputs in the order of the delegate's arguments, then
        outputs.
    aliased_io
        ``{"output", "input", "kind"}``: outputs whose value the input's storage takes over.
    extra
        More metadata keys.
    """
    metadata: dict[str, Any] = {"io_bindings": [dict(b) for b in io_bindings]}
    if aliased_io:
        metadata["aliased_io"] = [dict(a) for a in aliased_io]
    metadata.update(extra or {})
    text = json.dumps(metadata, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    engine_offset = -(-(_HEADER.size + len(text)) // _ALIGNMENT) * _ALIGNMENT
    magic = b"TR02" if aliased_io else b"TR01"
    header = _HEADER.pack(magic, _HEADER.size, len(text), engine_offset, len(engine), _RESERVED)
    padding = b"\0" * (engine_offset - _HEADER.size - len(text))
    return header + text + padding + engine


def parse_blob(blob: bytes | memoryview) -> EngineBlob:
    """Parse a blob; nothing is believed that the size of ``blob`` does not bear out.

    Raises
    ------
    TraceFormatError
        For a blob that is damaged or of another kind; it names the field's offset, what was expected and
        what was found.
    """
    data = bytes(blob)
    if len(data) < _HEADER.size:
        raise _damaged("too short for the header", 0, f"at least {_HEADER.size} bytes", f"{len(data)}")
    magic, meta_offset, meta_size, engine_offset, engine_size, _ = _HEADER.unpack_from(data)
    if magic not in (b"TR01", b"TR02"):
        raise _damaged("not a delegate blob", 0, "'TR01' or 'TR02'", repr(magic))
    # differences, not sums: Python cannot overflow, but the rule is the one that the native parser keeps
    if meta_offset < _HEADER.size or meta_offset > len(data):
        raise _damaged("metadata_offset", 4, f"{_HEADER.size} to {len(data)}", str(meta_offset))
    if meta_size > len(data) - meta_offset:
        raise _damaged("metadata_size", 8, f"at most {len(data) - meta_offset}", str(meta_size))
    if engine_offset % _ALIGNMENT or engine_offset < meta_offset + meta_size or engine_offset > len(data):
        expected = f"a multiple of {_ALIGNMENT} from {meta_offset + meta_size} to {len(data)}"
        raise _damaged("engine_offset", 12, expected, str(engine_offset))
    if engine_size == 0 or engine_size > len(data) - engine_offset:
        raise _damaged("engine_size", 16, f"1 to {len(data) - engine_offset}", str(engine_size))
    metadata = _metadata(data[meta_offset : meta_offset + meta_size], meta_offset)
    aliased = metadata.get("aliased_io") or []
    if bool(aliased) != (magic == b"TR02"):
        raise _damaged(
            "magic and aliased_io disagree", 0, "TR02 exactly when outputs alias inputs", magic.decode()
        )
    engine = data[engine_offset : engine_offset + engine_size]
    program = _program(engine, engine_offset) if engine.startswith(HOST_MAGIC) else None
    return EngineBlob(magic.decode(), metadata, engine, "tensorrt" if program is None else "host", program)


def _metadata(text: bytes, offset: int) -> dict[str, Any]:
    try:
        metadata = json.loads(text)
    except UnicodeDecodeError as error:
        raise _damaged(
            "metadata is not UTF-8", offset + error.start, "UTF-8", repr(text[error.start])
        ) from error
    except json.JSONDecodeError as error:
        place = offset + len(error.doc[: error.pos].encode())
        raise _damaged(
            "metadata is not JSON", place, error.msg, repr(error.doc[error.pos : error.pos + 12])
        ) from error
    except RecursionError as error:
        raise _damaged("metadata is nested too deep", offset, "a flat object", "deep nesting") from error
    if not isinstance(metadata, dict):
        raise _damaged("metadata", offset, "a JSON object", type(metadata).__name__)
    bindings = metadata.get("io_bindings", [])
    if not isinstance(bindings, list) or not all(_is_binding(b) for b in bindings):
        raise _damaged("io_bindings", offset, "a list of {name, dtype, shape, is_input}", repr(bindings)[:60])
    return metadata


def _is_binding(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    shape = value.get("shape")
    return (
        isinstance(value.get("name"), str)
        and isinstance(value.get("dtype"), str)
        and isinstance(value.get("is_input"), bool)
        and isinstance(shape, list)
        and all(isinstance(size, int) and size >= -1 for size in shape)
    )


def _program(engine: bytes, offset: int) -> bytes:
    if len(engine) < _HOST_HEADER.size:
        raise _damaged("too short for a host engine", offset, f"{_HOST_HEADER.size} bytes", str(len(engine)))
    _, size = _HOST_HEADER.unpack_from(engine)
    room = len(engine) - _HOST_HEADER.size
    if size == 0 or size > room:
        raise _damaged("size of the inner program", offset + 8, f"1 to {room}", str(size))
    return engine[_HOST_HEADER.size : _HOST_HEADER.size + size]


def _damaged(what: str, offset: int, expected: str, found: str) -> TraceFormatError:
    return TraceFormatError(
        what,
        path="<delegate blob>",
        offset=offset,
        expected=expected,
        found=found,
        hint="The program is damaged or was made by another exporter: export it again",
    )
