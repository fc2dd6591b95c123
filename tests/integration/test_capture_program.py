"""Programs: results against eager PyTorch, events against executorch's own reader, and every bad input."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest

from tests.support import etdump_raw
from torchtrt_viz.errors import CaptureError, OptionError

torch = pytest.importorskip("torch", reason="needs torch")

SEVEN = {
    "torchtrt.delegate",
    "torchtrt.input_binding",
    "torchtrt.shape_inference",
    "torchtrt.output_binding",
    "torchtrt.enqueue_host",
    "torchtrt.output_staging",
    "torchtrt.synchronize",
}
LEVELS = ("off", "delegate", "phases", "layers")


@pytest.fixture(scope="module")
def programs(demo):
    """A program of each level, run twice."""
    from torchtrt_viz.captures import Program

    made = {}
    for level in LEVELS:
        program = Program(demo.path, level=level)
        program(*demo.inputs)
        program(*demo.inputs)
        made[level] = program
    yield made
    for program in made.values():
        program.close()


def executions(program):
    return [
        block
        for block in etdump_raw.blocks(program.etdump())
        if any(e.name == "Method::execute" for e in block)
    ]


# -- results ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_outputs_equal_eager_and_are_bit_equal_between_levels(demo, programs, level):
    values, classes = programs[level](*demo.inputs)
    assert isinstance(values, torch.Tensor)
    torch.testing.assert_close(values, demo.expected[0], atol=1e-4, rtol=0)
    assert torch.equal(classes, demo.expected[1])
    off = programs["off"](*demo.inputs)
    assert torch.equal(values, off[0])
    assert torch.equal(classes, off[1])


def test_numpy_in_numpy_out(demo, programs):
    values, classes = programs["off"](demo.inputs[0].numpy())
    assert isinstance(values, np.ndarray)
    assert isinstance(classes, np.ndarray)
    np.testing.assert_allclose(values, demo.expected[0].numpy(), atol=1e-4)


def test_nested_inputs_are_opened_up_and_gradients_left_behind(demo, programs):
    leaf = demo.inputs[0].clone().requires_grad_()
    values, _ = programs["off"]([(leaf,)])
    assert not values.requires_grad
    torch.testing.assert_close(values, demo.expected[0], atol=1e-4, rtol=0)


def test_outputs_of_one_run_outlive_the_next(demo, programs):
    first = programs["layers"](*demo.inputs)[0]
    kept = first.clone()
    programs["layers"](demo.inputs[0] + 1)
    assert torch.equal(first, kept)


# -- events ----------------------------------------------------------------------------------------------


def test_off_records_nothing_at_all(programs):
    program = programs["off"]
    assert program._session.event_count() == 0
    assert all(not block for block in etdump_raw.blocks(program.etdump()))
    for engine in program.engines():
        assert engine["level"] == "off"
        assert engine["attachments"] == 0
        assert engine["layers"] == []
        assert engine["files"] == []
    with pytest.raises(CaptureError, match="level='phases'"):
        program.trace()


def test_every_call_has_the_seven_events_with_xnnpack_and_operators_beside_them(demo, programs):
    tensorrt = [r.instruction for r in demo.exported.regions if r.backend == "TensorRTBackend"]
    xnnpack = [r.instruction for r in demo.exported.regions if r.backend == "XnnpackBackend"]
    assert len(tensorrt) == 2
    assert len(xnnpack) == 2
    for level in ("phases", "layers"):
        found = executions(programs[level])
        assert len(found) >= 2
        for block in found:
            for instruction in tensorrt:
                names = [e.name for e in block if e.instruction == instruction and e.delegate]
                assert {name for name in names if name.startswith("torchtrt.")} == SEVEN
                assert all(names.count(name) == 1 for name in SEVEN)
                assert any(name.startswith("layer_") for name in names) == (level == "layers")
            for instruction in xnnpack:
                names = [e.name for e in block if e.instruction == instruction and e.delegate]
                assert any("(N" in name for name in names)
                assert not any(name.startswith("torchtrt.") for name in names)
            assert {"native_call_topk.values", "native_call_cumsum.out"} <= {e.name for e in block}


def test_level_delegate_gives_the_call_alone(programs):
    for block in executions(programs["delegate"]):
        assert [e.name for e in block if str(e.name).startswith("torchtrt.")] == ["torchtrt.delegate"] * 2


def test_phases_lie_in_the_call_in_order_and_layers_fit_into_the_enqueue(demo, programs):
    order = [
        "torchtrt.input_binding",
        "torchtrt.shape_inference",
        "torchtrt.output_binding",
        "torchtrt.enqueue_host",
        "torchtrt.output_staging",
        "torchtrt.synchronize",
    ]
    for block in executions(programs["layers"]):
        for region in demo.exported.regions:
            if region.backend != "TensorRTBackend":
                continue
            events = {e.name: e for e in block if e.instruction == region.instruction}
            call, outer = events["torchtrt.delegate"], events["DELEGATE_CALL"]
            assert outer.start <= call.start <= call.end <= outer.end
            at = call.start
            for name in order:
                phase = events[name]
                assert at <= phase.start <= phase.end <= call.end, name
                at = phase.end
            layers = [e for name, e in events.items() if str(name).startswith("layer_")]
            enqueue = events["torchtrt.enqueue_host"]
            assert len(layers) >= 5
            assert all(enqueue.start <= e.start <= e.end <= enqueue.end for e in layers)
            assert sum(e.end - e.start for e in layers) <= enqueue.end - enqueue.start


def test_every_layer_that_ran_leads_back_to_nodes(demo, programs):
    with zipfile.ZipFile(demo.exported.etrecord) as record:
        maps = json.loads(record.read("delegate_map"))["forward"]
    for block in executions(programs["layers"]):
        seen = [e for e in block if str(e.delegate).startswith(("layer_", "torchtrt."))]
        assert seen
        for event in seen:
            assert maps[str(event.instruction)]["delegate_map"].get(event.delegate), event.delegate


def test_executorchs_inspector_agrees(demo, programs, tmp_path):
    from executorch.devtools import Inspector

    program = programs["layers"]
    path = tmp_path / "demo.etdp"
    path.write_bytes(program.etdump())
    inspector = Inspector(etdump_path=str(path), etrecord=str(demo.exported.etrecord))
    trace = program.trace()
    spans = trace.spans
    runs = sorted(set(spans["iteration"].dropna()))
    by_id = {}
    ids = trace.args.column("delegate_debug_id")
    instructions = trace.args.column("instruction")
    for row, (name, iteration, dur) in enumerate(
        zip(spans["name"], spans["iteration"], spans["dur_ns"], strict=True)
    ):
        if pd.notna(iteration):
            event_id = ids[row] if isinstance(ids[row], str) else name
            by_id.setdefault((event_id, instructions[row]), []).append(int(dur))
    compared = 0
    for block in inspector.event_blocks:
        if block.name != "Execute":
            continue
        for event in block.events:
            if event.name == "Method::execute":
                continue
            mine = by_id[(event.name, event._instruction_id)]
            # Inspector gives ms
            raw = [round(value * 1e6) for value in event.perf_data.raw]
            assert raw == mine, event.name
            compared += 1
    assert len(runs) >= 2
    assert compared > 40


def test_trace_has_methods_engines_and_a_place_in_time(demo, programs):
    import time

    trace = programs["layers"].trace()
    assert trace.meta["warnings"] == []
    assert abs(trace.meta["base_ns"] + int(trace.measured["start_ns"].max()) - time.time_ns()) < 600e9
    runs = trace.meta["etdump"]["runs"]
    assert set(runs["method"].dropna()) == {"forward"}
    delegates = trace.delegates()
    assert (delegates["backend"] == "TensorRTBackend").any()
    assert trace.args.column("engine_runtime").isin(["host"]).any()


# -- life ------------------------------------------------------------------------------------------------


def test_clear_and_close(demo):
    from torchtrt_viz.captures import Program

    with Program(demo.path, level="delegate") as program:
        program(*demo.inputs)
        assert program._session.blocks()
        program.clear()
        assert program._session.blocks() == []
        program(*demo.inputs)
    assert program.closed
    program.close()
    assert len(executions(program)) == 1
    for use in (lambda: program(*demo.inputs), lambda: program.methods, lambda: program.__enter__()):
        with pytest.raises(CaptureError, match="was closed"):
            use()
    assert "closed" in repr(program)


def test_etdump_is_repeatable_and_grows(demo):
    from torchtrt_viz.captures import Program

    with Program(demo.path, level="phases") as program:
        empty = program.etdump()
        assert all(e.name != "Method::execute" for block in etdump_raw.blocks(empty) for e in block)
        program(*demo.inputs)
        once = etdump_raw.blocks(program.etdump())
        assert etdump_raw.blocks(program.etdump()) == once
        program(*demo.inputs)
        assert etdump_raw.blocks(program.etdump())[: len(once)] == once


def test_threads_may_share_a_program(demo):
    from torchtrt_viz.captures import Program

    with Program(demo.path, level="layers") as program:
        results, errors = [], []

        def work(shift):
            try:
                for _ in range(5):
                    results.append((shift, program(demo.inputs[0] + shift)[0]))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(float(n),)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        for shift in range(4):
            own = [value for s, value in results if s == shift]
            assert len(own) == 5
            assert all(torch.equal(value, own[0]) for value in own)
        found = executions(program)
        assert len(found) == 20
        assert all(sum(str(e.name).startswith("torchtrt.") for e in block) == 14 for block in found)
        assert program.engines()[0]["calls"] == 20


# -- other shapes of programs ----------------------------------------------------------------------------


class Cache(torch.nn.Module):
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


@pytest.mark.parametrize("level", ["off", "layers"])
def test_a_cache_is_updated_in_place_over_methods(capture_module, tmp_path, level):
    from torchtrt_viz import Program, export_program
    from torchtrt_viz.aot import Method

    torch.manual_seed(5)
    module = Cache().eval()
    made = export_program(
        module,
        None,
        tmp_path / "cache.pte",
        methods={
            "prefill": Method((torch.randn(3, 4),), function="prefill"),
            "decode": Method((torch.randn(1, 4), torch.tensor([3])), function="decode"),
        },
        share_mutable_buffers=True,
    )
    with Program(made.path, level=level, share_memory=True) as program, torch.no_grad():
        assert sorted(program.methods) == ["decode", "prefill"]
        with pytest.raises(OptionError, match=r"decode, prefill|prefill, decode"):
            program(torch.randn(3, 4))
        x = torch.randn(3, 4)
        torch.testing.assert_close(program(x, method="prefill"), module.prefill(x), atol=1e-5, rtol=0)
        for step in range(3, 6):
            x, position = torch.randn(1, 4), torch.tensor([step])
            torch.testing.assert_close(
                program(x, position, method="decode"), module.decode(x, position), atol=1e-5, rtol=0
            )
        if level == "layers":
            methods = set(program.trace().meta["etdump"]["runs"]["method"].dropna())
            assert methods == {"prefill", "decode"}


class OwnCache(torch.nn.Module):
    def forward(self, cache, x, position):
        cache[:, position] = torch.relu(x) * 2
        return cache.sum(1)


@pytest.mark.parametrize("level", ["off", "phases"])
def test_a_cache_of_the_caller_stays_the_callers_storage(capture_module, tmp_path, level):
    from torchtrt_viz import Program, export_program

    example = (torch.zeros(1, 8, 4), torch.randn(1, 1, 4), torch.tensor([2]))
    made = export_program(OwnCache().eval(), example, tmp_path / "own.pte")
    assert [r.backend for r in made.regions if r.instruction >= 0] == ["TensorRTBackend"]
    cache, twin = torch.zeros(1, 8, 4), torch.zeros(1, 8, 4)
    address = cache.data_ptr()
    with Program(made.path, level=level) as program:
        for step in range(4):
            x, position = torch.randn(1, 1, 4), torch.tensor([step])
            outputs = program.run(cache, x, position)
            expected = OwnCache()(twin, x, position)
            torch.testing.assert_close(outputs[-1].reshape(1, 4), expected, atol=1e-5, rtol=0)
            torch.testing.assert_close(cache, twin, atol=1e-6, rtol=0)
    assert cache.data_ptr() == address


class Dynamic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 6)

    def forward(self, x):
        return torch.softmax(self.linear(x).reshape(x.shape[0] * 2, 3), -1)


def test_dynamic_sizes_run_at_every_size_and_their_layers_are_known(capture_module, tmp_path):
    from torchtrt_viz import Program, export_program

    module = Dynamic().eval()
    batch = torch.export.Dim("batch", min=1, max=16)
    made = export_program(
        module, (torch.randn(4, 4),), tmp_path / "dyn.pte", dynamic_shapes={"x": {0: batch}}
    )
    with zipfile.ZipFile(made.etrecord) as record:
        maps = json.loads(record.read("delegate_map"))["forward"]
    with Program(made.path, level="layers") as program, torch.no_grad():
        for size in (4, 1, 16, 7):
            x = torch.randn(size, 4)
            torch.testing.assert_close(program(x), module(x), atol=1e-5, rtol=0)
        with pytest.raises(CaptureError, match=r"\[17, 4\].*sizes at most|17"):
            program(torch.randn(17, 4))
        program(torch.randn(2, 4))
        for block in executions(program):
            for event in block:
                # executorch drops the handle of a view when it makes it an instruction: nothing is recorded
                if str(event.delegate).startswith("layer_") and not event.delegate.endswith("_op"):
                    assert maps[str(event.instruction)]["delegate_map"].get(event.delegate), event.delegate


# -- options ---------------------------------------------------------------------------------------------


def test_a_load_option_wins_over_the_compile_spec_and_that_over_the_default(demo, tmp_path):
    from torchtrt_viz import Program
    from torchtrt_viz.examples.demo import export_demo

    made = export_demo(tmp_path / "spec.pte", profile_level="phases", etrecord=False)
    for given, level, source in (
        (None, "phases", "compile_spec"),
        ("layers", "layers", "load_option"),
        ("off", "off", "load_option"),
    ):
        with Program(made.path, level=given) as program:
            assert {(e["level"], e["level_source"]) for e in program.engines()} == {(level, source)}
    with Program(demo.path) as program:
        assert {(e["level"], e["level_source"]) for e in program.engines()} == {("off", "default")}


@pytest.mark.parametrize(
    ("options", "key", "said"),
    [
        ({"level": "fine"}, "level", "off, delegate, phases, layers"),
        ({"level": 2}, "level", "one of"),
        ({"format": "json"}, "format", "etdump, perfetto, trex"),
        ({"path_prefix": ""}, "path_prefix", "non-empty"),
        ({"path_prefix": "x" * 256}, "path_prefix", "255 bytes"),
        ({"options": ["x"]}, "options", "backend id"),
        ({"etrecord": "missing.etrecord"}, "etrecord", "existing file"),
    ],
)
def test_python_refuses_wrong_options(demo, options, key, said):
    from torchtrt_viz import Program

    with pytest.raises(OptionError) as raised:
        Program(demo.path, **options)
    assert raised.value.key == key
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"torchtrt_profile_level": "fine"}, ["torchtrt_profile_level", "fine", "layers"]),
        ({"torchtrt_profile_level": 3}, ["torchtrt_profile_level"]),
        ({"torchtrt_profile_level": True}, ["torchtrt_profile_level"]),
        ({"torchtrt_profile_format": "json"}, ["torchtrt_profile_format", "json", "trex"]),
        ({"torchtrt_profile_path_prefix": ""}, ["torchtrt_profile_path_prefix"]),
    ],
)
def test_the_delegate_refuses_wrong_options_with_key_value_and_choices(demo, options, said):
    from torchtrt_viz import Program

    with pytest.raises((CaptureError, OptionError)) as raised:
        Program(demo.path, options={"TensorRTBackend": options})
    for text in said:
        assert text in str(raised.value)


# -- other people's delegates ----------------------------------------------------------------------------


def test_other_delegates_are_timed_behind_a_proxy_and_the_file_is_not_touched(demo, programs):
    from torchtrt_viz import Program, profile

    before = demo.path.read_bytes()
    with Program(demo.path, level="phases", time_backends=("XnnpackBackend",)) as program:
        outputs = program(*demo.inputs)
        assert all(torch.equal(a, b) for a, b in zip(outputs, programs["off"](*demo.inputs), strict=True))
        (block,) = executions(program)
        by_instruction = {}
        for event in block:
            if event.name == "torchtrt.delegate":
                by_instruction.setdefault(event.instruction, []).append(event)
        delegated = [r.instruction for r in demo.exported.regions if r.backend != "portable"]
        assert sorted(by_instruction) == sorted(delegated)
        assert all(len(events) == 1 for events in by_instruction.values())
        # the backend's own events go on beside the proxy's
        assert any(str(e.name).startswith("Fully Connected") for e in block)
    assert demo.path.read_bytes() == before
    with Program(demo.path, time_backends=("XnnpackBackend",)) as program:
        with profile(level="delegate", activities="none") as capture:
            program(*demo.inputs)
        assert (capture.trace.spans["name"] == "torchtrt.delegate").sum() == 4


@pytest.mark.parametrize(
    ("backends", "kind", "said"),
    [
        ("XnnpackBackend", OptionError, "a sequence"),
        (("",), OptionError, "a sequence"),
        (("TensorRTBackend",), OptionError, "by itself"),
        (("NobodysBackend",), CaptureError, "NobodysBackend"),
        (("QnnBackend",), CaptureError, "QnnBackend"),
    ],
)
def test_proxies_that_cannot_be_are_refused(demo, backends, kind, said):
    from torchtrt_viz import Program

    with pytest.raises(kind, match=said):
        Program(demo.path, time_backends=backends)


# -- bad input, each in a process of its own where a crash would take the tests with it ------------------


def run_python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


LOAD = """
import sys
from torchtrt_viz import Program
from torchtrt_viz.errors import TorchTrtVizError
try:
    Program(sys.argv[1])
except TorchTrtVizError as error:
    print(type(error).__name__, error)
else:
    print("loaded")
"""


def spoiled(demo, tmp_path, spoil):
    data = bytearray(demo.path.read_bytes())
    spoil(data)
    path = tmp_path / "bad.pte"
    path.write_bytes(data)
    return path


def zero_blob_sizes(data):
    at = data.find(b"TR01\x20\0\0\0")
    data[at + 16 : at + 24] = b"\xff" * 7 + b"\x7f"


def wrong_magic(data):
    at = data.find(b"TR01\x20\0\0\0")
    data[at : at + 4] = b"TR09"


def damaged_metadata(data):
    at = data.find(b"TR01\x20\0\0\0")
    data[at + 32 : at + 40] = b"\xff" * 8


def damaged_inner_program(data):
    at = data.find(b"TVHOST01")
    data[at + 20 : at + 24] = b"XXXX"


def half(data):
    del data[len(data) // 2 :]


def another_backend(data):
    assert data.count(b"XnnpackBackend") > 0
    data[:] = data.replace(b"XnnpackBackend", b"NobodysBackend")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (half, ["bad.pte"]),
        (wrong_magic, ["TR01", "TR02"]),
        (zero_blob_sizes, ["engine", "inside"]),
        (damaged_metadata, ["metadata"]),
        (damaged_inner_program, ["inner program"]),
        (another_backend, ["NobodysBackend", "registered"]),
        (lambda data: data.__setitem__(slice(0, 64), b"\0" * 64), ["bad.pte"]),
        (lambda data: data.clear(), ["bad.pte"]),
    ],
    ids=["half", "magic", "size", "metadata", "inner", "backend", "zeros", "empty"],
)
def test_a_damaged_program_is_one_clear_error(demo, tmp_path, spoil, said):
    done = run_python(LOAD, spoiled(demo, tmp_path, spoil))
    assert done.returncode == 0, done.stderr[-2000:]
    line = done.stdout.strip().splitlines()[-1]
    assert line.startswith("CaptureError"), done.stdout
    for text in said:
        assert text in line


def test_a_program_that_is_not_there(demo, tmp_path):
    from torchtrt_viz import Program

    with pytest.raises(CaptureError, match="does not exist"):
        Program(tmp_path / "no.pte")
    with pytest.raises(CaptureError, match="is a folder"):
        Program(tmp_path)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ((), "takes 1 inputs, 0 were given"),
        ((torch.zeros(1, 3, 64, 64), torch.zeros(1)), "takes 1 inputs, 2 were given"),
        ((torch.zeros(1, 3, 64, 65),), r"[1, 3, 64, 65]"),
        ((torch.zeros(3, 64, 64),), r"[3, 64, 64]"),
        ((torch.zeros(1, 3, 64, 64, dtype=torch.float64),), "float64"),
        ((1.5,), "tensor"),
        (("text",), "tensor"),
    ],
)
def test_wrong_inputs_are_named_and_harm_nothing(demo, programs, inputs, said):
    program = programs["phases"]
    with pytest.raises(CaptureError) as raised:
        program(*inputs)
    assert said in str(raised.value)
    torch.testing.assert_close(program(*demo.inputs)[0], demo.expected[0], atol=1e-4, rtol=0)


def test_an_unknown_method_names_those_there_are(programs):
    with pytest.raises(OptionError, match="one of forward"):
        programs["off"](torch.zeros(1), method="decode")


def test_the_build_leaves_its_versions_beside_the_module(capture_module):
    from torchtrt_viz.runtime import modules as runtime

    assert runtime.recorded_build() == {"executorch": capture_module.built_with()["executorch"]}
