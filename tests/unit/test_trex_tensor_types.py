"""Element types and sizes, as TensorRT's files write them."""

from __future__ import annotations

import pytest

from torchtrt_viz.formats.engine.tensor_types import dtype_of, element_bits, shape_text, tensor_bytes


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("Row major linear FP32", "FP32"),
        ("Row major linear FP16 format", "FP16"),
        ("Channel major FP16 format where channel % 8 == 0", "FP16"),
        ("Thirty-two wide channel vectorized row major Int8 format.", "INT8"),
        ("Four wide channel vectorized row major Int8 format", "INT8"),
        ("Row major Int8 format", "INT8"),
        ("Two wide channel vectorized row major FP16 format", "FP16"),
        ("Row major linear BFloat16 format", "BF16"),
        ("Row major linear FP8 format", "FP8"),
        ("Row major linear Bool", "BOOL"),
        ("Half", "FP16"),
        ("Float", "FP32"),
        ("BFloat16", "BF16"),
        ("FP8E4M3", "FP8"),
        ("E8M0", "E8M0"),
        ("FP4", "FP4"),
        ("Int4", "INT4"),
        ("Int64", "INT64"),
        ("UInt8", "UINT8"),
        ("kHALF", "FP16"),
        ("torch.float16", "FP16"),
        ("Linear", None),
        ("N/A due to dynamic shapes", None),
        ("Unknown format", None),
        ("", None),
    ],
)
def test_dtype(text, dtype):
    assert dtype_of(text) == dtype


@pytest.mark.parametrize(
    ("shape", "dtype", "size"),
    [
        ((2, 3), "FP32", 24),
        ((2, 3), "BF16", 12),
        ((2, 3), "FP8", 6),
        ((2, 3), "INT64", 48),
        ((2, 3), "BOOL", 6),
        ((3, 3), "INT4", 5),  # nine half bytes
        ((3, 3), "FP4", 5),
        ((), "FP32", 4),
        ((0, 8), "FP16", 0),
        ((-1, 25088), "FP32", None),
        ((2, 3), None, None),
        (None, "FP32", None),
        ((2**40, 2**40), "FP32", None),
    ],
)
def test_bytes(shape, dtype, size):
    assert tensor_bytes(shape, dtype) == size


def test_every_type_has_a_size_and_reads_back():
    assert len(element_bits()) == 17
    for name, bits in element_bits().items():
        assert dtype_of(name) == name
        assert tensor_bytes((8,), name) == bits


def test_shape_text():
    assert shape_text((1, 3, 224, 224)) == "1x3x224x224"
    assert shape_text(()) == "scalar"
    assert shape_text(None) is None
