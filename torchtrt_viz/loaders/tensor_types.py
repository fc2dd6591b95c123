"""Element types and sizes of tensors, from the many ways in which TensorRT writes them.

Up to TensorRT 10 one field holds prose ("Row major linear FP16 format", "Thirty-two wide channel vectorized
row major Int8 format.") or a bare name ("Half"); TensorRT 11 splits it into ``Format`` and ``Datatype``.
A type that is not in the table is unknown, and so is every size that depends on it: never 0.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["BITS", "dtype_of", "shape_text", "tensor_bytes"]

#: Type -> bits of one element.
BITS: dict[str, int] = {
    "FP64": 64,
    "FP32": 32,
    "FP16": 16,
    "BF16": 16,
    "FP8": 8,
    "E8M0": 8,
    "FP4": 4,
    "INT64": 64,
    "INT32": 32,
    "INT16": 16,
    "INT8": 8,
    "INT4": 4,
    "UINT64": 64,
    "UINT32": 32,
    "UINT16": 16,
    "UINT8": 8,
    "BOOL": 8,
}

_WORDS: dict[str, str] = {
    **{name.lower(): name for name in BITS},
    "float": "FP32",
    "float32": "FP32",
    "single": "FP32",
    "tf32": "FP32",
    "double": "FP64",
    "float64": "FP64",
    "half": "FP16",
    "float16": "FP16",
    "bfloat16": "BF16",
    "bfloat": "BF16",
    "float8": "FP8",
    "fp8e4m3": "FP8",
    "fp8e5m2": "FP8",
    "e4m3": "FP8",
    "e5m2": "FP8",
    "float8_e4m3fn": "FP8",
    "float8_e5m2": "FP8",
    "float8_e8m0fnu": "E8M0",
    "fp8e8m0": "E8M0",
    "fp4e2m1": "FP4",
    "float4": "FP4",
    "e2m1": "FP4",
    "float4_e2m1fn_x2": "FP4",
    "long": "INT64",
    "int": "INT32",
    "char": "INT8",
    "byte": "UINT8",
}
_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LONGEST = 256
_MAX_COUNT = 2**63 - 1


def dtype_of(text: str) -> str | None:
    """Return the element type that a format or type description names, None when it names none.

    >>> dtype_of("Thirty-two wide channel vectorized row major Int8 format.")
    'INT8'
    >>> dtype_of("N/A due to dynamic shapes") is None
    True
    """
    return _dtype_of(text[:_LONGEST])


@lru_cache(maxsize=1024)
def _dtype_of(text: str) -> str | None:
    for token in _TOKEN.findall(text):
        word = token.lower()
        if word.startswith("k") and word[1:] in _WORDS:  # kHALF, as the C++ enumeration has it
            word = word[1:]
        if word in _WORDS:
            return _WORDS[word]
    return None


def tensor_bytes(shape: tuple[int, ...] | None, dtype: str | None) -> int | None:
    """Return the bytes of the tensor's elements, None when a dimension or the type is unknown.

    Elements of four bits are packed two to a byte. The padding that vectorised and blocked layouts add is
    not counted: the files do not record it.
    """
    if shape is None or dtype is None:
        return None
    count = 1
    for size in shape:
        if size < 0:
            return None
        count *= size
    size_bytes = (count * BITS[dtype] + 7) // 8
    return size_bytes if size_bytes <= _MAX_COUNT else None


def shape_text(shape: tuple[int, ...] | None) -> str | None:
    """Return a shape as 1x3x224x224; a scalar is "scalar", an unknown shape None."""
    if shape is None:
        return None
    return "x".join(map(str, shape)) if shape else "scalar"
