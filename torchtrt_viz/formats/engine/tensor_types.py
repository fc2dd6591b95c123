"""Element types and sizes of tensors, from the many ways in which TensorRT writes them.

Up to TensorRT 10 one field holds prose ("Row major linear FP16 format", "Thirty-two wide channel vectorized
row major Int8 format.") or a bare name ("Half"); TensorRT 11 splits it into ``Format`` and ``Datatype``.
A type that is not in the table is unknown, and so is every size that depends on it: never 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchtrt_viz._native import native

__all__ = ["dtype_of", "element_bits", "shape_text", "tensor_bytes"]


def element_bits() -> dict[str, int]:
    """Return every element type that is known, with the bits of one element."""
    bits: dict[str, int] = native("trex").element_bits()
    return bits


def dtype_of(text: str) -> str | None:
    """Return the element type that a format or type description names, None when it names none.

    >>> dtype_of("Thirty-two wide channel vectorized row major Int8 format.")
    'INT8'
    >>> dtype_of("N/A due to dynamic shapes") is None
    True
    """
    found: str | None = native("trex").element_type(text.encode("utf-8", "replace"))
    return found


def tensor_bytes(shape: Sequence[int] | None, dtype: str | None) -> int | None:
    """Return the bytes of the tensor's elements, None when a dimension or the type is unknown.

    Elements of four bits are packed two to a byte. The padding that vectorised and blocked layouts add is
    not counted: the files do not record it.
    """
    if shape is None or dtype is None or any(not -(2**63) <= size < 2**63 for size in shape):
        return None
    size: int | None = native("trex").tensor_bytes(list(shape), dtype.encode())
    return size


def shape_text(shape: Sequence[int] | None) -> str | None:
    """Return a shape as 1x3x224x224; a scalar is "scalar", an unknown shape None."""
    if shape is None:
        return None
    return "x".join(map(str, shape)) if len(shape) else "scalar"
