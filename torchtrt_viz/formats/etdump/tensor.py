"""Tensors that an ETDump refers to, out of the debug buffer that was written beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.errors import TorchTrtVizError

__all__ = ["debug_tensor"]

_SAME_BYTES = {"qint8": "int8", "quint8": "uint8", "qint32": "int32", "bits16": "uint16"}


def debug_tensor(args: Mapping[str, Any], buffer: bytes) -> NDArray[Any]:
    """Return a logged tensor as an array.

    Parameters
    ----------
    args
        Arguments of the instant (``trace.instant_args[row]``), or one entry of its ``tensors``.
    buffer
        Content of the debug buffer that was written beside the ETDump.

    Returns
    -------
    numpy.ndarray
        A copy, of the shape and strides recorded; bfloat16 becomes float32.

    Raises
    ------
    TorchTrtVizError
        When the arguments describe no tensor, its type has no counterpart in numpy, or it lies outside
        the buffer.
    """
    if "offset" not in args:
        raise TorchTrtVizError(f"no tensor was logged here: {dict(args)}")
    name, sizes = str(args["dtype"]), list(args["sizes"])
    stored = "uint16" if name == "bfloat16" else _SAME_BYTES.get(name, name)
    try:
        dtype = np.dtype(stored)
    except TypeError:
        raise TorchTrtVizError(f"numpy has no type for elements of type {name}") from None
    strides = list(args["strides"])
    if len(strides) != len(sizes):
        strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    if any(size < 0 for size in sizes) or any(stride < 0 for stride in strides):
        raise TorchTrtVizError(f"a tensor of sizes {sizes} and strides {strides} cannot be")
    reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    needed = 0 if 0 in sizes else (reach + 1) * dtype.itemsize
    offset = int(args["offset"])
    # sizes with strides of 0 could ask for any number of elements
    if offset < 0 or offset + needed > len(buffer) or math.prod(sizes) * dtype.itemsize > len(buffer):
        raise TorchTrtVizError(
            f"the tensor lies at bytes {offset} to {offset + needed} of a debug buffer of {len(buffer)} "
            "bytes: it belongs to another dump, or was cut off"
        )
    if 0 in sizes:
        return np.zeros(sizes, np.float32 if name == "bfloat16" else dtype)
    flat = np.frombuffer(buffer, np.uint8, needed, offset).view(dtype) if needed else np.zeros(0, dtype)
    out = np.lib.stride_tricks.as_strided(
        flat, sizes, [stride * dtype.itemsize for stride in strides], writeable=False
    ).copy()
    if name == "bfloat16":
        return (out.astype(np.uint32) << 16).view(np.float32)
    return out
