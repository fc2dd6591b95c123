"""How many operations and bytes an operator needs at least, from the shapes of its inputs.

A multiplication and an addition are two operations. Bytes are what has to be moved when every input is
read once and every output written once. Where a shape or parameter is not recorded the answer is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from torchtrt_viz.analysis.core.element_types import element_bytes

__all__ = ["Work", "family", "work_of"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """What one call needs: operations, bytes, the family of the operator and the type of its elements."""

    family: str
    flops: int
    bytes: float | None
    dtype: str | None


@dataclass(frozen=True)
class Inputs:
    """Inputs of a call as the profiler recorded them."""

    shapes: Sequence[Any]
    dtypes: Sequence[Any]
    values: Sequence[Any]

    def shape(self, position: int) -> Shape | None:
        """Return the shape of one input, None when it is not a tensor of known shape."""
        if position >= len(self.shapes):
            return None
        found = self.shapes[position]
        if not isinstance(found, (list, tuple)) or not found:
            return None
        if not all(isinstance(size, int) and size >= 0 for size in found):
            return None
        return tuple(found)

    def dtype(self, position: int = 0) -> str | None:
        """Return the element type of one input."""
        value = self.dtypes[position] if position < len(self.dtypes) else None
        return str(value) if isinstance(value, str) and value else None

    def numbers(self, position: int) -> list[int] | None:
        """Return a recorded list of integers (a stride, a padding), None when it was not recorded."""
        value = self.value(position)
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, int):
            return [value]
        return [int(v) for v in value] if isinstance(value, list) else None

    def value(self, position: int) -> Any:
        """Return a recorded value, decoded from its text; None when it was not recorded."""
        value = self.values[position] if position < len(self.values) else None
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value.replace("True", "true").replace("False", "false"))
        except ValueError:
            return None


def _traffic(dtype: str | None, elements: int) -> float | None:
    size = element_bytes(dtype)
    return None if size is None else elements * size


def _gemm(batch: int, m: int, n: int, k: int, dtype: str | None) -> Work:
    return Work("gemm", 2 * batch * m * n * k, _traffic(dtype, batch * (m * k + k * n + m * n)), dtype)


def _mm(first: int) -> Callable[[Inputs], Work | None]:
    def model(inputs: Inputs) -> Work | None:
        a, b = inputs.shape(first), inputs.shape(first + 1)
        if a is None or b is None or len(a) != 2 or len(b) != 2 or a[1] != b[0]:
            return None
        return _gemm(1, a[0], b[1], a[1], inputs.dtype(first))

    return model


def _bmm(first: int) -> Callable[[Inputs], Work | None]:
    def model(inputs: Inputs) -> Work | None:
        a, b = inputs.shape(first), inputs.shape(first + 1)
        if a is None or b is None or len(a) != 3 or len(b) != 3 or a[2] != b[1]:
            return None
        return _gemm(a[0], a[1], b[2], a[2], inputs.dtype(first))

    return model


def _linear(inputs: Inputs) -> Work | None:
    a, weight = inputs.shape(0), inputs.shape(1)
    if a is None or weight is None or len(weight) != 2 or a[-1] != weight[1]:
        return None
    return _gemm(1, prod(a[:-1]), weight[0], a[-1], inputs.dtype(0))


def _matmul(inputs: Inputs) -> Work | None:
    a, b = inputs.shape(0), inputs.shape(1)
    if a is None or b is None:
        return None
    if len(a) == 1:
        a = (1, *a)
    if len(b) == 1:
        b = (*b, 1)
    if a[-1] != b[-2]:
        return None
    batch_a, batch_b = a[:-2], b[:-2]
    if len(batch_b) == 0:  # one matrix for all: the batch folds into the rows
        return _gemm(1, prod(batch_a) * a[-2], b[-1], a[-1], inputs.dtype(0))
    batch = 1
    for back in range(1, max(len(batch_a), len(batch_b)) + 1):
        x = batch_a[-back] if back <= len(batch_a) else 1
        y = batch_b[-back] if back <= len(batch_b) else 1
        batch *= max(x, y) if x and y else 0
    return _gemm(batch, a[-2], b[-1], a[-1], inputs.dtype(0))


def _convolution(
    stride_at: int, padding_at: int, groups_at: int, transposed_at: int | None = None
) -> Callable[[Inputs], Work | None]:
    """Model a convolution; its arguments stand in different places in different operators."""
    dilation_at = max(stride_at, padding_at) + 1

    def model(inputs: Inputs) -> Work | None:
        x, weight = inputs.shape(0), inputs.shape(1)
        if x is None or weight is None or len(x) != len(weight) or len(x) < 3:
            return None
        dims = len(weight) - 2
        stride, padding, dilation = (
            _spread(inputs.numbers(at), dims) for at in (stride_at, padding_at, dilation_at)
        )
        if stride is None or padding is None or dilation is None:
            return None
        is_transposed = False if transposed_at is None else inputs.value(transposed_at)
        groups = inputs.value(groups_at)
        if not isinstance(is_transposed, bool) or not isinstance(groups, int):
            return None
        space = x[2:]
        kernel = weight[2:]
        if is_transposed:
            # every input element meets every weight of its group once
            channels_out = weight[1] * groups
            flops = 2 * prod(x) * weight[1] * prod(kernel)
            out_space = [
                (s - 1) * t - 2 * p + d * (k - 1) + 1
                for s, k, t, p, d in zip(space, kernel, stride, padding, dilation, strict=True)
            ]
        else:
            channels_out = weight[0]
            out_space = [
                (s + 2 * p - d * (k - 1) - 1) // t + 1
                for s, k, t, p, d in zip(space, kernel, stride, padding, dilation, strict=True)
            ]
            flops = 2 * x[0] * prod(out_space) * prod(weight)
        out = x[0] * channels_out * prod(out_space)
        if out < 0:
            return None
        return Work(
            "convolution", flops, _traffic(inputs.dtype(0), prod(x) + prod(weight) + out), inputs.dtype(0)
        )

    return model


def _spread(values: list[int] | None, dims: int) -> list[int] | None:
    if values is None or len(values) not in (1, dims):
        return None
    return values * dims if len(values) == 1 else values


def _convolution_backward(inputs: Inputs) -> Work | None:
    grad, x, weight = inputs.shape(0), inputs.shape(1), inputs.shape(2)
    mask = inputs.value(10)
    if grad is None or x is None or weight is None or len(grad) < 3 or not isinstance(mask, list):
        return None
    if inputs.value(7) is not False:  # transposed, or not recorded
        return None
    passes = sum(bool(part) for part in mask[:2])
    once = 2 * grad[0] * prod(grad[2:]) * prod(weight)
    moved = prod(grad) * passes + (prod(weight) + prod(x)) * (2 if passes == 2 else 1 if passes else 0)
    return Work("convolution", once * passes, _traffic(inputs.dtype(0), moved), inputs.dtype(0))


def _attention(
    heads_first: bool, causal: int, backward: bool = False, first: int = 0
) -> Callable[[Inputs], Work | None]:
    """Model softmax(q k') v: a causal mask halves it; backwards it takes five products, not two."""

    def model(inputs: Inputs) -> Work | None:
        q, k, v = (inputs.shape(first + i) for i in range(3))
        if q is None or k is None or v is None or not len(q) == len(k) == len(v) == 4:
            return None
        batch = q[0]
        heads, rows = (q[1], q[2]) if heads_first else (q[2], q[1])
        columns = k[2] if heads_first else k[1]
        masked = inputs.value(causal)
        products = batch * heads * rows * columns
        flops = 2 * products * (q[3] + v[3])
        if backward:
            flops = 2 * products * (3 * q[3] + 2 * v[3])
        if masked is True:
            flops //= 2
        out = batch * heads * rows * v[3]
        moved = prod(q) + prod(k) + prod(v) + out
        return Work(
            "attention",
            flops,
            _traffic(inputs.dtype(first), moved * (2 if backward else 1)),
            inputs.dtype(first),
        )

    return model


_MODELS: dict[str, Callable[[Inputs], Work | None]] = {
    "aten::mm": _mm(0),
    "aten::addmm": _mm(1),
    "aten::_addmm_activation": _mm(1),
    "aten::_scaled_mm": _mm(0),
    "aten::bmm": _bmm(0),
    "aten::baddbmm": _bmm(1),
    "aten::linear": _linear,
    "aten::matmul": _matmul,
    "aten::conv1d": _convolution(3, 4, 6),
    "aten::conv2d": _convolution(3, 4, 6),
    "aten::conv3d": _convolution(3, 4, 6),
    "aten::convolution": _convolution(3, 4, 8, 6),
    "aten::_convolution": _convolution(3, 4, 8, 6),
    "aten::convolution_overrideable": _convolution(3, 4, 8, 6),
    "aten::cudnn_convolution": _convolution(3, 2, 5),
    "aten::miopen_convolution": _convolution(4, 3, 6),
    "aten::mkldnn_convolution": _convolution(4, 3, 6),
    "aten::convolution_backward": _convolution_backward,
    "aten::scaled_dot_product_attention": _attention(True, 5),
    "aten::_scaled_dot_product_flash_attention": _attention(True, 4),
    "aten::_scaled_dot_product_efficient_attention": _attention(True, 6),
    "aten::_scaled_dot_product_cudnn_attention": _attention(True, 6),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention(True, 4),
    "aten::_flash_attention_forward": _attention(False, 8),
    "aten::_scaled_dot_product_flash_attention_backward": _attention(True, 11, True, 1),
    "aten::_scaled_dot_product_efficient_attention_backward": _attention(True, 11, True, 1),
}


def family(name: str) -> str | None:
    """Return gemm, convolution or attention for an operator with a model, else None."""
    model = _MODELS.get(name)
    if model is None:
        return None
    if re.search("conv", name):
        return "convolution"
    return "attention" if "attention" in name else "gemm"


def work_of(name: str, shapes: object, dtypes: object, values: object) -> Work | None:
    """Return what one call of an operator needs; None when it has no model or too little was recorded.

    Parameters
    ----------
    shapes, dtypes, values
        The arguments ``Input Dims``, ``Input type`` and ``Concrete Inputs`` of a torch profile.
    """
    model = _MODELS.get(name)
    if model is None or not isinstance(shapes, (list, tuple)):
        return None
    return model(
        Inputs(
            shapes,
            dtypes if isinstance(dtypes, (list, tuple)) else (),
            values if isinstance(values, (list, tuple)) else (),
        )
    )
