"""What the names of kernels and operators mean, as data: families, makers' prefixes, parts of fused ones.

Names as they are found in traces of torch 1.9 to 2.13 with cuBLAS, cuDNN, CUTLASS, hipBLASLt, Composable
Kernel, MIOpen, oneDNN, Triton and the libraries of serving engines.
"""

from __future__ import annotations

import re

__all__ = [
    "ACTIVATIONS",
    "COMPOSED",
    "KERNEL_FAMILIES",
    "MAKERS",
    "METADATA_ONLY",
    "OPERATOR_FAMILIES",
    "SHORT_WORDS",
]

KERNEL_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (family, re.compile(pattern, re.IGNORECASE))
    for family, pattern in (
        ("collective", r"nccl|rccl|nvshmem|all_?reduce|cross_device_reduce|reduce_scatter|all_?gather"),
        ("attention", r"flash|fmha|attn_|attention|_mha_|sdpa"),
        ("convolution", r"conv|winograd|implicit_?gemm|dgrad|wgrad|igemm_|im2col"),
        ("matrix product", r"gemm|gemv|cijk_|xmma|cublas|hipblas|splitk|s\d{5,}|wmma|_mm_|matmul|dot_kernel"),
        ("normalisation", r"norm|bn_fw|bn_bw|welford|batchnorm"),
        ("softmax", r"softmax"),
        ("optimizer", r"multi_tensor_apply|adam|sgd_"),
        ("index", r"index|gather|scatter|embedding|take_"),
        ("pooling", r"pool"),
        ("random", r"dropout|philox|distribution_|bernoulli|curand|hiprand"),
        ("sort", r"sort|topk|radix"),
        ("scan", r"scan|cumsum"),
        ("copy", r"memcpy|copy|catarray|transpose|permute|direct_copy|batchtranspose"),
        ("fill", r"memset|fill"),
        ("reduction", r"reduce"),
        ("elementwise", r"elementwise"),
    )
)
"""Families of kernels, the first that is found in the name. Two kernels of one family do one kind of work."""

MAKERS = re.compile(
    r"^(?:(?:cudnn|miopen|mkldnn|onednn|mkl|mps|xpu|hip|cuda|rocm|aiter|native|thnn|nnpack|inner|safe|unsafe)_)+"
)
"""Prefixes that say who made an operator's implementation, not what it does."""

OPERATOR_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (family, re.compile(pattern))
    for family, pattern in (
        ("scaled_dot_product_attention", r"^scaled_dot_product_(?:\w+_)?attention(?:_for_cpu|_math\w*)?$"),
        ("scaled_dot_product_attention_backward", r"^scaled_dot_product_\w*attention\w*_backward$"),
        ("attention_forward", r"^(?:flash|efficient|cudnn)_attention_forward$"),
        ("attention_backward", r"^(?:flash|efficient|cudnn)_attention_backward$"),
        (
            "convolution",
            r"^(?:convolution(?:_overrideable|_pointwise)?|conv_depthwise[23]d|slow_conv[23]d_forward)$",
        ),
        ("mm", r"^(?:mm|addmm)$"),
        ("bmm", r"^(?:bmm|baddbmm)$"),
        ("linear", r"^linear(?:_pointwise|_packed)?$"),
    )
)
"""Operators that stand for each other, by names without namespace, maker and underscores at the ends."""

ACTIVATIONS = frozenset(
    {"relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "hardswish", "hardtanh", "elu", "mish", "relu6"}
)

SHORT_WORDS = {"bn": "batch_norm", "ln": "layer_norm", "gn": "group_norm", "conv": "convolution"}
"""What parts of fused names are short for."""

COMPOSED: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "scaled_dot_product_attention": (
        frozenset({"softmax"}),
        frozenset({"matmul", "bmm", "mm", "mul", "div", "softmax", "add", "masked_fill", "dropout", "where"}),
    ),
    "rms_norm": (
        frozenset({"rsqrt"}),
        frozenset({"pow", "mean", "add", "rsqrt", "mul", "to_copy", "square"}),
    ),
    "layer_norm": (
        frozenset({"rsqrt"}),
        frozenset({"mean", "var", "var_mean", "sub", "add", "rsqrt", "mul", "pow", "div", "sqrt"}),
    ),
    "silu": (frozenset({"sigmoid"}), frozenset({"sigmoid", "mul"})),
    "gelu": (frozenset({"tanh"}), frozenset({"pow", "mul", "add", "tanh"})),
    "addmm": (frozenset({"mm"}), frozenset({"mm", "add"})),
}
"""Operators that replace several: those of which one must be there, and all that may."""

METADATA_ONLY = frozenset(
    {
        *("alias", "as_strided", "broadcast_tensors", "chunk", "conj", "contiguous", "detach", "diagonal"),
        *("empty", "empty_like", "empty_strided", "expand", "expand_as", "flatten", "is_pinned", "item"),
        *("lift_fresh", "local_scalar_dense", "movedim", "narrow", "permute", "pin_memory", "reshape"),
        *("reshape_alias", "resize", "resolve_conj", "resolve_neg", "result_type", "select", "set", "slice"),
        *("split", "split_with_sizes", "squeeze", "swapaxes", "t", "T", "to", "transpose", "unbind"),
        *("unflatten", "unfold", "unsafe_view", "unsqueeze", "view", "view_as"),
    }
)
"""Operators that compute nothing: alone they are no sign that two places do the same."""
