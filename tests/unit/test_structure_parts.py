"""The parts of the comparison by structure: sequences, labels, signatures, memory of equal subtrees."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from line_counter import lines_run
from model_runs import Op, linear, module, norm, relu, run

from torchtrt_viz.analysis import compare_structure
from torchtrt_viz.analysis.structure import alignment, sequences
from torchtrt_viz.analysis.structure.labels import (
    base_name,
    exact_label,
    fused_words,
    loose_label,
    split_words,
)

Keys = list[int]


def _longest(a: Keys, b: Keys) -> int:
    """Return the length of the longest common subsequence, by the textbook's table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for x, left in enumerate(a):
        for y, right in enumerate(b):
            table[x + 1][y + 1] = table[x][y] + 1 if left == right else max(table[x][y + 1], table[x + 1][y])
    return table[-1][-1]


def _check(pairs: list[tuple[int, int]], a: Keys, b: Keys) -> None:
    assert all(a[x] == b[y] for x, y in pairs)
    assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(pairs))


@given(st.lists(st.integers(0, 4), max_size=20), st.lists(st.integers(0, 4), max_size=20))
def test_the_common_subsequence_is_the_longest(a: Keys, b: Keys) -> None:
    pairs = sequences.common(np.array(a, np.int64), np.array(b, np.int64))
    _check(pairs, a, b)
    assert len(pairs) == _longest(a, b)
    _check(sequences._occurrences(a, b), a, b)


def test_long_sequences_take_the_same_way_through_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 30, 120), rng.integers(0, 30, 90)
    exact = sequences.common(a, b)
    _check(exact, a.tolist(), b.tolist())
    assert len(exact) == _longest(a.tolist(), b.tolist())
    monkeypatch.setattr(sequences, "_CELLS", 10)
    fast = sequences.common(a, b)
    _check(fast, a.tolist(), b.tolist())
    assert 0 < len(fast) <= len(exact)
    once = rng.permutation(200)
    assert len(sequences.common(once, np.sort(once))) == _longest(once.tolist(), sorted(once.tolist()))


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("module", "nn.Module: BertLayer_11", "BertLayer"),
        ("module", "nn.Module: Conv_2d", "Conv_2d"),
        ("operator", "triton_poi_fused_add_relu_17", "triton_poi_fused_add_relu"),
        ("operator", "graph_1_cpp_fused_native_layer_norm_relu_0", "cpp_fused_native_layer_norm_relu"),
        ("annotation", f"## Call CompiledFxGraph {'fal4xpiah2' * 5} ##", "## Call CompiledFxGraph  ##"),
        ("annotation", "Torch-Compiled Region: 0/1", "Torch-Compiled Region: "),
        ("annotation", "aten::add, seq = 12", "aten::add"),
        ("delegate", "0123456789abcdef-forward-0", "forward-0"),
        ("kernel", "conv2d_c1_k1", "conv2d_c1_k1"),
    ],
)  # fmt: skip
def test_what_belongs_to_one_run_is_no_part_of_a_name(kind: str, name: str, expected: str) -> None:
    assert exact_label(kind, name) == expected


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        ("operator", "aten::cudnn_convolution", "aten::miopen_convolution"),
        ("operator", "aten::_convolution", "aten::convolution_overrideable"),
        ("operator", "aten::add_", "aten::add.Tensor"),
        ("operator", "aten::native_layer_norm", "aten::layer_norm"),
        ("operator", "aten::_scaled_dot_product_flash_attention", "aten::scaled_dot_product_attention"),
        ("operator", "mkldnn::_linear_pointwise", "aten::linear"),
        ("kernel", "ampere_bf16_s16816gemm_bf16_128x64", "Cijk_Alik_Bljk_BBS_BH_MT256x192x64"),
        ("kernel", "void cutlass::Kernel2<cutlass_80_s161616gemm>", "_ZN2ck27kernel_gemm_xdl_cshuffle_v3"),
        ("kernel", "void pytorch_flash::flash_fwd_kernel<Traits>", "attn_fwd"),
        ("kernel", "ncclDevKernel_AllReduce_Sum_bf16", "ncclDevKernel_Generic_4"),
        ("annotation", "execute_context_1(888)_generation_0(0)", "execute_context_2(16)_generation_4(4)"),
    ],
)  # fmt: skip
def test_names_of_other_makers_have_one_family(kind: str, left: str, right: str) -> None:
    assert loose_label(kind, exact_label(kind, left)) == loose_label(kind, exact_label(kind, right))


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        ("operator", "aten::relu", "aten::gelu"),
        ("operator", "aten::mm", "aten::bmm"),
        ("operator", "aten::convolution", "aten::convolution_backward"),
        (
            "kernel",
            "elementwise_kernel<CUDAFunctor_add<float>>",
            "elementwise_kernel<CUDAFunctor_mul<float>>",
        ),
        ("kernel", "softmax_warp_forward", "Cijk_Alik_Bljk"),
    ],
)
def test_other_work_has_another_family(kind: str, left: str, right: str) -> None:
    assert loose_label(kind, exact_label(kind, left)) != loose_label(kind, exact_label(kind, right))


def test_words_of_fused_names() -> None:
    known = frozenset({"layer_norm", "relu", "add", "mul", "batch_norm", "convolution"})
    assert split_words(fused_words("triton_per_fused_add_native_layer_norm_3"), known) == (
        ["add", "layer_norm"],
        4,
    )
    assert split_words(fused_words("custom::conv_bn_relu"), known)[0] == ["convolution", "batch_norm", "relu"]
    assert split_words(fused_words("aten::_addmm_activation"), frozenset({base_name("aten::addmm")}))[0] == [
        "mm",
        "activation",
    ]
    assert fused_words("aten::relu") == ()


def test_hostile_names_take_no_time() -> None:
    for name in ("triton_" + "fused_" * 20_000, "a_" * 50_000 + "Functor", "<" * 100_000, "_1" * 50_000):
        for kind in ("operator", "kernel", "module", "annotation"):
            loose_label(kind, exact_label(kind, name))
            fused_words(name)


def _layers(count: int, attention: str) -> list[Op]:
    block = (linear(0), relu(), Op("aten::attend", [Op(attention, kernels=[(attention, 5)])]), norm())
    return [module("Net_0", *(module(f"Block_{number}", *block) for number in range(count)))]


def test_equal_subtrees_are_aligned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (
        run(_layers(9, "aten::_flash_attention_forward")),
        run(_layers(8, "aten::_efficient_attention_forward")),
    )
    quick = compare_structure(a, b, merge=False, sort=None)
    monkeypatch.setattr(alignment, "_KEPT", 10**9)
    columns = ["change", "match", "a_name", "b_name", "a_path", "b_path", "a_gpu_ns", "b_gpu_ns"]
    slow = compare_structure(a, b, merge=False, sort=None)
    assert quick[columns].astype(str).equals(slow[columns].astype(str))


def test_the_effort_does_not_grow_with_the_square() -> None:
    """Four times the layers may take little more than four times the lines."""

    def lines(count: int) -> int:
        a, b = run(_layers(count, "aten::one")), run(_layers(count + 1, "aten::two"))
        return lines_run(lambda: compare_structure(a, b))

    lines(2)
    assert lines(80) < 6 * lines(20)
