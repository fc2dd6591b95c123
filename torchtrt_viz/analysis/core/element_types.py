"""Sizes of element types by the names that profilers and engines give them."""

from __future__ import annotations

import re

__all__ = ["element_bytes", "is_float"]

_BYTES = {
    "float": 4.0,
    "float32": 4.0,
    "fp32": 4.0,
    "double": 8.0,
    "float64": 8.0,
    "half": 2.0,
    "float16": 2.0,
    "fp16": 2.0,
    "bfloat16": 2.0,
    "bf16": 2.0,
    "long": 8.0,
    "longint": 8.0,
    "int64": 8.0,
    "int": 4.0,
    "int32": 4.0,
    "short": 2.0,
    "shortint": 2.0,
    "int16": 2.0,
    "byte": 1.0,
    "char": 1.0,
    "signedchar": 1.0,
    "unsignedchar": 1.0,
    "int8": 1.0,
    "uint8": 1.0,
    "bool": 1.0,
    "fp8": 1.0,
    "float8e4m3fn": 1.0,
    "float8e4m3": 1.0,
    "float8e5m2": 1.0,
    "float8e4m3fnuz": 1.0,
    "float8e5m2fnuz": 1.0,
    "float8e8m0fnu": 1.0,
    "fp8e4m3": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
    "float4e2m1": 0.5,
    "float4e2m1fnx2": 1.0,
    "complexfloat": 8.0,
    "complexdouble": 16.0,
}
_FLOATS = re.compile(r"float|half|double|^fp\d|^bf16")


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("c10::").removeprefix("torch."))


def element_bytes(name: object) -> float | None:
    """Return the bytes of one element; None for a type that is not known."""
    return _BYTES.get(_key(name)) if isinstance(name, str) else None


def is_float(name: object) -> bool:
    """Say whether the type is a floating-point type."""
    return isinstance(name, str) and _FLOATS.search(_key(name)) is not None
