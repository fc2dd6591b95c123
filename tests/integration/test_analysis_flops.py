"""Operations and bytes of a call by its shapes, against torch's own counter."""

from __future__ import annotations

from typing import Any

import pytest

from torchtrt_viz.analysis.device.flops import work_of

torch = pytest.importorskip("torch")


def _work(name: str, shapes: Any, values: Any = ()) -> Any:
    return work_of(name, shapes, ["float"] * len(shapes), [str(v) for v in values])


@pytest.mark.parametrize(
    ("shape", "weight", "stride", "padding", "dilation", "groups"),
    [
        ((2, 3, 16, 16), (8, 3, 3, 3), [1, 1], [1, 1], [1, 1], 1),
        ((1, 8, 17, 15), (16, 1, 5, 3), [2, 1], [0, 2], [1, 2], 8),
        ((1, 4, 9), (6, 2, 3), [2], [1], [1], 2),
    ],
)
def test_convolutions_equal_torch(
    shape: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    x, w = torch.randn(shape, requires_grad=True), torch.randn(weight, requires_grad=True)
    with FlopCounterMode(display=False) as forward:
        y = torch.ops.aten.convolution(
            x, w, None, stride, padding, dilation, False, [0] * len(stride), groups
        )
    found = _work(
        "aten::convolution",
        [list(shape), list(weight), [], [], [], [], [], [], []],
        ["", "", "", stride, padding, dilation, False, [0], groups],
    )
    assert found.flops == forward.get_total_flops()
    assert found.bytes == 4 * (x.numel() + w.numel() + y.numel())
    with FlopCounterMode(display=False) as backward:
        y.sum().backward()
    values = ["", "", "", [0], stride, padding, dilation, False, [0], groups, [True, True, False]]
    found = _work("aten::convolution_backward", [list(y.shape), list(shape), list(weight)], values)
    # either gradient takes as many operations as the forward pass; torch's counter forgets the groups
    assert found.flops == 2 * forward.get_total_flops()
    if groups == 1:
        assert found.flops == backward.get_total_flops()


def test_transposed_convolution_equals_torch() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    x, w = torch.randn(1, 4, 8, 8), torch.randn(4, 6, 3, 3)
    with FlopCounterMode(display=False) as counter:
        torch.ops.aten.convolution(x, w, None, [2, 2], [1, 1], [1, 1], True, [0, 0], 1)
    values = ["", "", "", [2, 2], [1, 1], [1, 1], True, [0, 0], 1]
    found = _work("aten::convolution", [[1, 4, 8, 8], [4, 6, 3, 3]], values)
    assert found.flops == counter.get_total_flops()


def test_attention_equals_torch() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    q, k, v = torch.randn(2, 4, 16, 8), torch.randn(2, 4, 24, 8), torch.randn(2, 4, 24, 8)
    math = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    with math, FlopCounterMode(display=False) as counter:
        torch.nn.functional.scaled_dot_product_attention(q, k, v)
    shapes = [list(q.shape), list(k.shape), list(v.shape), [], [], []]
    plain = _work("aten::scaled_dot_product_attention", shapes, ["", "", "", "", 0.0, False])
    assert plain.flops == counter.get_total_flops()
