"""Modules become programs: what is taken, what the blobs hold, and what the events lead back to."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import zipfile

import pytest

torch = pytest.importorskip("torch", reason="export needs torch")
pytest.importorskip("executorch.exir", reason="export needs executorch")

from torchtrt_viz.aot import Method, TensorRTPartitioner, export_program  # noqa: E402
from torchtrt_viz.aot.backend import DELEGATE_EVENTS  # noqa: E402
from torchtrt_viz.errors import CaptureError, OptionError  # noqa: E402
from torchtrt_viz.formats.engine.blob import parse_blob  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.Conv2d(8, 8, 3),
        )
        self.norm = torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        y = self.norm(self.stem(x).flatten(2).transpose(1, 2)).mean(1)
        return torch.cumsum(torch.softmax(self.head(y), -1), -1)


class Cache(torch.nn.Module):
    """A key-value cache in small: a buffer that every call updates in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.arange(32.0).reshape(8, 4))
        self.project = torch.nn.Linear(4, 4)

    def prefill(self, x):
        self.cache[:3] = self.project(x)
        return self.cache.sum(0)

    def decode(self, x, position):
        self.cache[position] = self.project(x)
        return self.cache.sum(0)

    forward = decode


def blobs(path):
    data = path.read_bytes()
    starts = [m.start() for m in re.finditer(rb"TR0[12]\x20\0\0\0", data)]
    return [parse_blob(data[start:]) for start in starts]


def run_inner(program, inputs):
    """Run an inner program with executorch's own runtime."""
    from executorch.extension.pybindings import portable_lib

    return portable_lib._load_for_executorch_from_buffer(program).forward(inputs)


@pytest.fixture(scope="module")
def example():
    torch.manual_seed(3)
    return Net().eval(), (torch.randn(1, 3, 12, 12),)


@pytest.fixture(scope="module")
def mixed(example, tmp_path_factory):
    module, inputs = example
    path = tmp_path_factory.mktemp("mixed") / "net.pte"
    return export_program(module, inputs, path, exclude=["module:head", "aten.cumsum"])


def test_regions_say_what_runs_where(mixed):
    backends = [region.backend for region in mixed.regions]
    assert backends == ["TensorRTBackend", "XnnpackBackend", "TensorRTBackend", "portable"]
    first, head, softmax, rest = mixed.regions
    assert {"aten.convolution.default", "aten.native_layer_norm.default"} <= set(first.operators)
    assert any("linear" in op or "addmm" in op for op in head.operators)
    assert softmax.operators == ("aten._softmax.default",)
    assert rest.operators == ("aten.cumsum.out",)
    assert mixed.table()["backend"].tolist() == backends


@pytest.mark.parametrize("granularity", ["operator", "fused"])
def test_the_inner_program_computes_what_the_module_computes(example, tmp_path, granularity):
    module, inputs = example
    made = export_program(module, inputs, tmp_path / "net.pte", granularity=granularity, etrecord=False)
    assert made.etrecord is None
    assert [region.backend for region in made.regions] == ["TensorRTBackend"]
    (blob,) = blobs(made.path)
    assert blob.metadata["torchtrt_viz"]["engine_runtime"] == "host"
    with torch.no_grad():
        expected = module(*inputs)
    torch.testing.assert_close(run_inner(blob.program, inputs)[0], expected, atol=1e-5, rtol=1e-5)


def test_bindings_are_the_delegates_arguments(mixed):
    big = max(blobs(mixed.path), key=lambda blob: len(blob.program))
    first, last = big.metadata["io_bindings"]
    assert first == {"name": "x", "dtype": "float32", "shape": [1, 3, 12, 12], "is_input": True}
    assert (last["shape"], last["is_input"]) == ([1, 8], False)


def test_every_event_leads_back_to_nodes(mixed):
    with zipfile.ZipFile(mixed.etrecord) as record:
        delegates = json.loads(record.read("delegate_map"))["forward"]
        graph = json.loads(record.read("edge_dialect_exported_program/forward"))["graph_module"]["graph"]
    nodes = {}
    for node in graph["nodes"]:
        handle = (node.get("metadata") or {}).get("debug_handle")
        if handle is not None:
            nodes.setdefault(json.loads(handle), []).append(node["target"])
    mapping = delegates["0"]["delegate_map"]
    assert set(DELEGATE_EVENTS) <= set(mapping)
    covered = {handle for key, handles in mapping.items() if key.startswith("layer_") for handle in handles}
    left = set(mapping["torchtrt.delegate"]) - covered
    # a view is no instruction of the inner program: executorch plans it away
    assert all("view_copy" in target for handle in left for target in nodes[handle])
    assert covered <= set(mapping["torchtrt.delegate"])

    def operators(identifier):
        found = " ".join(target for handle in mapping[identifier] for target in nodes[handle])
        return {
            name for name in ("convolution", "batch_norm", "relu", "layer_norm", "permute") if name in found
        }

    # the first XNNPACK call runs the convolution with what is folded into it, and nothing else
    assert operators("layer_0000_delegate") == {"convolution", "batch_norm", "relu"}
    assert operators(next(k for k in mapping if k.endswith("_native_layer_norm.out"))) == {"layer_norm"}


def test_operators_that_xnnpack_reports_together_are_not_told_apart(example, tmp_path):
    module, inputs = example
    made = export_program(module, inputs, tmp_path / "net.pte", granularity="fused")
    with zipfile.ZipFile(made.etrecord) as record:
        mapping = json.loads(record.read("delegate_map"))["forward"]["0"]["delegate_map"]
    # the first call runs two convolutions: its operators are in no map, its remainder is
    assert "layer_0000_000" not in mapping
    assert "layer_0000_rest" in mapping


def test_layer_names_carry_operator_and_module(mixed):
    big = max(blobs(mixed.path), key=lambda blob: len(blob.program))
    layers = big.metadata["torchtrt_viz"]["layers"]
    whole = next(layer for layer in layers if layer["id"] == "layer_0000_delegate")
    assert whole["module"] == "stem"
    assert whole["name"].startswith("[CONVOLUTION]-[aten_ops.convolution.default]-[/stem/0/convolution] + ")
    assert whole["whole"] is True
    assert whole["nodes"][0] == "aten_convolution_default"
    assert len({layer["id"] for layer in layers}) == len(layers)


def test_several_methods_and_caches_updated_in_place(tmp_path):
    torch.manual_seed(1)
    module = Cache().eval()
    made = export_program(
        module,
        None,
        tmp_path / "cache.pte",
        methods={
            "prefill": Method((torch.randn(3, 4),), function="prefill"),
            "decode": Method((torch.randn(1, 4), torch.tensor([3])), function="decode"),
        },
    )
    assert {r.method for r in made.regions if r.backend == "TensorRTBackend"} == {
        "prefill",
        "decode",
    }
    found = blobs(made.path)
    assert [blob.magic for blob in found] == ["TR02", "TR02"]
    for blob in found:
        (alias,) = blob.metadata["aliased_io"]
        inputs = [b for b in blob.metadata["io_bindings"] if b["is_input"]]
        outputs = [b for b in blob.metadata["io_bindings"] if not b["is_input"]]
        assert inputs[alias["input"]]["name"] == "b_cache"
        assert outputs[alias["output"]]["shape"] == [8, 4]
        assert alias["kind"] == "kv_cache_update"


class Reread(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(4))

    def forward(self, x):
        old = torch.cumsum(self.cache, 0)
        self.cache.add_(x)
        return old + x


def test_an_input_that_others_still_read_is_not_overwritten(tmp_path):
    # the cumulative sum, outside the region, may run after the region has run
    made = export_program(Reread().eval(), (torch.ones(4),), tmp_path / "r.pte", exclude=["aten.cumsum"])
    assert {blob.magic for blob in blobs(made.path)} == {"TR01"}


def test_dynamic_sizes_stay_inside_the_region(tmp_path):
    class Reshape(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 6)

        def forward(self, x):
            return torch.softmax(self.linear(x).reshape(x.shape[0] * 2, 3), -1)

    module = Reshape().eval()
    batch = torch.export.Dim("batch", min=1, max=16)
    made = export_program(
        module, (torch.randn(4, 4),), tmp_path / "dyn.pte", dynamic_shapes={"x": {0: batch}}, etrecord=False
    )
    (blob,) = blobs(made.path)
    assert [b["shape"] for b in blob.metadata["io_bindings"]] == [[-1, 4], [-1, 3]]
    for size in (1, 7, 16):
        x = torch.randn(size, 4)
        with torch.no_grad():
            torch.testing.assert_close(run_inner(blob.program, (x,))[0], module(x), atol=1e-5, rtol=1e-5)


def test_min_region_size_leaves_small_regions_to_others(example, tmp_path):
    module, inputs = example
    made = export_program(
        module,
        inputs,
        tmp_path / "net.pte",
        exclude=["module:head", "aten.cumsum"],
        min_region_size=2,
        etrecord=False,
    )
    assert [r.backend for r in made.regions].count("TensorRTBackend") == 1


def test_a_predicate_excludes(example, tmp_path):
    module, inputs = example
    made = export_program(
        module, inputs, tmp_path / "n.pte", exclude=[lambda node: True], xnnpack=False, etrecord=False
    )
    assert [region.backend for region in made.regions] == ["portable"]


def test_compile_specs_are_embedded(example, tmp_path):
    module, inputs = example
    made = export_program(
        module, inputs, tmp_path / "n.pte", profile_level="layers", profile_format="trex",
        profile_path_prefix="traces/run", etrecord=False,
    )  # fmt: skip
    data = made.path.read_bytes()
    for key, value in (
        ("torchtrt_profile_level", b"layers"),
        ("torchtrt_profile_format", b"trex"),
        ("torchtrt_profile_path_prefix", b"traces/run"),
    ):
        assert key.encode() in data
        assert struct.pack("<I", len(value)) + value in data


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"profile_level": "all"}, "profile_level"),
        ({"profile_format": "json"}, "profile_format"),
        ({"profile_path_prefix": ""}, "profile_path_prefix"),
        ({"granularity": "fine"}, "granularity"),
        ({"min_region_size": 0}, "min_region_size"),
        ({"exclude": [3]}, "exclude"),
        ({"exclude": [""]}, "exclude"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_done(options, key):
    with pytest.raises(OptionError) as raised:
        TensorRTPartitioner(**options)
    assert raised.value.key == key


def test_wrong_calls_are_refused(example, tmp_path):
    module, inputs = example
    with pytest.raises(OptionError, match="example_inputs"):
        export_program(module, None, tmp_path / "n.pte")
    with pytest.raises(OptionError, match="single one"):
        export_program(module, inputs[0], tmp_path / "n.pte")
    with pytest.raises(OptionError, match="existing folder"):
        export_program(module, inputs, tmp_path / "no" / "n.pte")
    with pytest.raises(OptionError, match="either methods"):
        export_program(module, inputs, tmp_path / "n.pte", methods={"forward": inputs})
    with pytest.raises(OptionError, match="identifiers"):
        export_program(module, None, tmp_path / "n.pte", methods={"a b": inputs})


class Branching(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


def test_a_module_that_cannot_be_exported_leaves_no_file(tmp_path):
    with pytest.raises(CaptureError, match="method 'forward' cannot be exported"):
        export_program(Branching(), (torch.ones(2),), tmp_path / "n.pte")
    assert list(tmp_path.iterdir()) == []


def test_an_operator_without_kernel_is_named(tmp_path):
    class Erfinv(torch.nn.Module):
        def forward(self, x):
            return torch.special.erfinv(x) + 1

    # the runtime has no kernel for it: it is left outside, and executorch says so when it is lowered or run
    made = export_program(Erfinv(), (torch.rand(3),), tmp_path / "n.pte", etrecord=False)
    portable = [region for region in made.regions if region.backend == "portable"]
    assert any("erfinv" in op for region in portable for op in region.operators)


def test_a_node_that_the_engine_cannot_run_is_named():
    from executorch.exir import EdgeCompileConfig, to_edge

    from torchtrt_viz.aot.lowering import lower_region

    class Erfinv(torch.nn.Module):
        def forward(self, x):
            return torch.special.erfinv(x) + 1

    program = to_edge(
        torch.export.export(Erfinv(), (torch.rand(3),)),
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    ).exported_program()
    with pytest.raises(CaptureError, match=r"node 'aten_erfinv_default' \(aten.erfinv.default\).*exclude="):
        lower_region(program)


def test_the_package_imports_neither_torch_nor_executorch():
    code = (
        "import sys, torchtrt_viz, torchtrt_viz.aot, torchtrt_viz.capture, torchtrt_viz.capture.options\n"
        "import torchtrt_viz.aot.program\n"
        "heavy = {'torch', 'executorch', 'pandas', 'plotly', 'IPython'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
