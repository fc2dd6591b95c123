"""What a layer's name records."""

from __future__ import annotations

import pytest

from torchtrt_viz.formats.engine.layer_names import onnx_layers, parse_name

CONV = "[CONVOLUTION]-[aten_ops.convolution.default]-[/features/0/convolution]"
RELU = "[RELU]-[aten_ops.relu.default]-[/features/1/relu]"


def test_torch_tensorrt_fusion():
    name = parse_name(f"{CONV} + {RELU}")
    assert [(p.kind, p.target, p.path, p.module) for p in name.parts] == [
        ("CONVOLUTION", "aten_ops.convolution.default", "/features/0/convolution", "/features/0"),
        ("RELU", "aten_ops.relu.default", "/features/1/relu", "/features/1"),
    ]
    assert name.module == "/features"
    assert name.wrapper is None


def test_a_wrapper_leaves_the_parts_as_they_are():
    plain = parse_name(f"{CONV} + {RELU}")
    wrapped = parse_name(f"Reformatting CopyNode for Input Tensor 0 to {CONV} + {RELU}")
    assert wrapped.parts == plain.parts
    assert wrapped.wrapper == "reformat"


@pytest.mark.parametrize(
    ("text", "wrapper", "operators", "module"),
    [
        (
            "[SHUFFLE]-[aten_ops.reshape.default]-[__/reshape_default]",
            None,
            ("aten_ops.reshape.default",),
            "/",
        ),
        (
            "Forced Cast ITensor [SHUFFLE]-[aten_ops.reshape.default]-[__/r]_output from DataType.HALF to "
            "DataType.FLOAT - [aten_ops.torch.ops.aten.clone.default]-[/classifier/0/clone]",
            "cast",
            ("aten_ops.torch.ops.aten.clone.default",),
            "/classifier/0",
        ),
        (f"reshape_before_{CONV}", "helper", ("aten_ops.convolution.default",), "/features/0"),
        (f"copied_squeeze_after_{RELU}", "helper", ("aten_ops.relu.default",), "/features/1"),
        (
            "[MATRIX_MULTIPLY]_[aten_ops_addmm_default]_[/classifier/1/addmm_mm]_myl121_1",
            "myelin",
            ("aten_ops_addmm_default",),
            "/classifier/1",
        ),
        ("/features/features.0/Conv + /features/features.1/Relu", None, None, "/features"),
        ("/Flatten + reshape_before_/classifier/classifier.1/Gemm", None, None, "/"),
        ("PWN(PWN(relu_1), add_1)", "pointwise", ("relu_1", "add_1"), None),
        (f"PWN({RELU}, PWN(PWN({CONV} + x)))", "pointwise", None, "/features"),
        ("features.0.0.weight + QuantizeLinear_7 + Conv_9 + PWN(Clip_13)", None, None, None),
        ("MatMul + b3/read:0 + add_2", None, ("MatMul", "b3/read:0", "add_2"), None),
        ("resnet50/conv1_relu/Relu", None, None, "/resnet50/conv1_relu"),
        ("__myl_MaxrSubExpSum_myl5_4", "myelin", (), None),
        ("dummy_shape_call__mye622_0_myl9_0", "helper", (), None),
        ("(Unnamed Layer* 14) [Shuffle]", None, ("(Unnamed Layer* 14) [Shuffle]",), None),
        ("[trainStation1]", None, ("[trainStation1]",), None),
        ("", None, ("",), None),
    ],
)
def test_forms(text, wrapper, operators, module):
    name = parse_name(text)
    assert name.wrapper == wrapper
    assert name.module == module
    if operators is not None:
        assert name.operators == operators


@pytest.mark.parametrize(
    ("inside", "ends"),
    [
        ("ReduceMean_4492...Mul_4557", ("ReduceMean_4492", "Mul_4557")),
        (
            "(Unnamed Layer* 3274) [Shuffle]...Transpose_7808 + Reshape_7814",
            ("(Unnamed Layer* 3274) [Shuffle]", "Transpose_7808 + Reshape_7814"),
        ),
        ("encoder.fea_bn1.weight.../softmax/Softmax", ("encoder.fea_bn1.weight", "/softmax/Softmax")),
        (
            "(Unnamed Layer* 1000) [LoopOutput][length][Constant]...Concat_326",
            ("(Unnamed Layer* 1000) [LoopOutput][length][Constant]", "Concat_326"),
        ),
        (
            "/encoder/Unsqueeze_3 + /encoder/Unsqueeze_4.../match_model/Squeeze",
            ("/encoder/Unsqueeze_3 + /encoder/Unsqueeze_4", "/match_model/Squeeze"),
        ),
        ("only_one", ("only_one",)),
    ],
)
def test_regions_give_their_ends_and_no_more(inside, ends):
    name = parse_name("{ForeignNode[" + inside + "]}")
    assert name.wrapper == "region"
    assert tuple(part.text for part in name.parts) == ends
    copy = parse_name("Reformatting CopyNode for Input Tensor 3 to {ForeignNode[" + inside + "]}")
    assert copy.wrapper == "reformat"
    assert copy.parts == name.parts


def test_a_region_has_a_module_only_when_both_ends_have_one():
    assert parse_name("{ForeignNode[x.weight.../softmax/Softmax]}").module is None
    assert parse_name("{ForeignNode[/enc/a/Add.../enc/b/Mul]}").module == "/enc"


def test_optimisation_profiles_of_two_digits_and_inside_of_names():
    assert parse_name("a + b [profile 12]").profile == 12
    inside = parse_name("node_linear [profile 1]_myl11_2")
    assert (inside.profile, inside.myelin_graph, inside.operators) == (1, 11, ("node_linear",))
    assert parse_name("a + b").profile is None


def test_brackets_of_torch2trt_names_hold_together():
    text = (
        "[CONVOLUTION #1] torch.nn.Conv2d.forward(Conv2d(3, 64, kernel_size=(7, 7)), tensor(shape=[1, 3])) + "
        "[RELU #1] torch.relu(x)"
    )
    assert [part.text for part in parse_name(text).parts] == [
        text[: text.index(" + [RELU")],
        "[RELU #1] torch.relu(x)",
    ]


def test_metadata_lists_onnx_nodes_with_and_without_separators():
    assert onnx_layers("[ONNX Layer: a]\x1e[ONNX Layer: b]\x1f[ONNX Layer: c]") == ("a", "b", "c")
    assert onnx_layers("[ONNX Layer: n_linear][ONNX Layer: n_relu]") == ("n_linear", "n_relu")
    assert onnx_layers("[ONNX Layer: a]\x1f[ONNX Layer: a]") == ("a",)
    assert onnx_layers("") == ()


@pytest.mark.parametrize(
    ("paths", "common"),
    [
        (["/a/b/c/op", "/a/b/d/op"], "/a/b"),
        (["/a/b/op", "/ab/c/op"], "/"),
        (["/a/b/op", "/a/b/c/op"], "/a/b"),
        (["/a/b/c/op", "/a/b/op"], "/a/b"),
        (["/op", "/a/op"], "/"),
        (["x", "/a/b/op"], "/a/b"),
        (["x"], None),
    ],
)
def test_what_paths_have_in_common(paths, common):
    assert parse_name(" + ".join(paths)).module == common


@pytest.mark.parametrize(
    "text",
    [
        "[" * 2_000_000,
        "PWN(" * 500_000 + ")" * 500_000,
        "Reformatting CopyNode for Input Tensor 0 to " * 50_000,
        " + ".join(["[A]-[b]-[/c"] * 200_000),
        "{ForeignNode[" + "...." * 500_000 + "]}",
        "_myl1" * 400_000,
        "x_myl" + "9" * 2_000_000 + "_1",
        "a [profile " + "9" * 2_000_000 + "]",
        "[ONNX Layer: " * 200_000,
    ],
)
def test_hostile_names_take_linear_time(text):
    """Two megabytes each: work that grew with their square would not end within the limit of a test."""
    assert len(text) > 1_500_000
    parse_name(text)
    onnx_layers(text)
