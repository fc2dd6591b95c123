"""profile(): what it joins, what it refuses, and what it keeps when things go wrong."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import threading
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import torchtrt_viz as tv
from torchtrt_viz.capture.options import CaptureOptions
from torchtrt_viz.errors import CaptureActiveError, CaptureError, OptionError

torch = pytest.importorskip("torch", reason="needs torch")


@pytest.fixture
def program(demo):
    with tv.Program(demo.path) as made:
        made(*demo.inputs)
        yield made


@pytest.fixture(autouse=True)
def nothing_left_running():
    yield
    from torchtrt_viz.capture import registry
    from torchtrt_viz.runtime.torch_profiler import profiler_active

    running = registry.running()
    if running is not None:
        running.stop()
    assert running is None
    assert not profiler_active()


def names_of(trace):
    return set(trace.spans["name"].astype(str))


# -- what it joins ---------------------------------------------------------------------------------------


def test_a_program_loaded_before_and_torch_are_on_one_clock(demo, program):
    begin = time.time_ns()
    with tv.profile(level="layers") as capture:
        for _ in range(3):
            torch.add(torch.ones(4), 1)
            program(*demo.inputs)
    end = time.time_ns()
    trace = capture.trace
    spans = trace.spans
    assert trace.meta["warnings"] == []
    assert begin <= trace.meta["base_ns"] == capture.begin_unix_ns <= end
    calls = spans[spans["name"] == "demo.forward"]
    runs = spans[spans["kind"] == "method"]
    adds = spans[spans["name"] == "aten::add"]
    assert len(calls) == len(runs) == len(adds) == 3
    # each program run lies inside the annotation that torch recorded around it; the clocks agree to 20 µs
    slack = 20_000
    for (_, call), (_, run) in zip(calls.iterrows(), runs.iterrows(), strict=True):
        assert call["start_ns"] - slack <= run["start_ns"]
        assert run["start_ns"] + run["dur_ns"] <= call["start_ns"] + call["dur_ns"] + slack
    # and each addition before it
    assert (adds["start_ns"].to_numpy() < calls["start_ns"].to_numpy()).all()
    ends = spans["start_ns"] + spans["dur_ns"]
    assert (ends[spans["kind"].isin(["method", "operator"])] <= end - trace.meta["base_ns"]).all()
    assert set(spans["kind"].astype(str)) >= {
        "method",
        "operator",
        "delegate",
        "phase",
        "layer",
        "annotation",
    }
    assert not any("torchtrt_viz.capture" in name for name in names_of(trace))


def test_a_program_loaded_inside_the_block_is_captured_with_its_loading(demo):
    with tv.profile(level="phases", activities="none") as capture, tv.Program(demo.path) as program:
        program(*demo.inputs)
    assert {"Method::init", "torchtrt.enqueue_host"} <= names_of(capture.trace)
    assert capture.problems == []


def test_runs_outside_of_the_block_are_not_in_the_trace(demo, program):
    program(*demo.inputs)
    with tv.profile(level="delegate", activities="none") as capture:
        program(*demo.inputs)
        program(*demo.inputs)
    program(*demo.inputs)
    assert (capture.trace.spans["kind"] == "method").sum() == 2
    # a program without a level of its own records nothing for itself
    assert program._session.event_count() == 0
    with pytest.raises(CaptureError, match="nothing was recorded"):
        program.trace()


def test_a_program_with_its_own_level_keeps_its_own_record_and_the_capture_says_so(demo):
    with tv.Program(demo.path, level="phases") as program:
        program(*demo.inputs)
        with tv.profile(level="layers", activities="none") as capture:
            program(*demo.inputs)
        program(*demo.inputs)
        assert (program.trace().spans["kind"] == "method").sum() == 3
    trace = capture.trace
    assert (trace.spans["kind"] == "method").sum() == 1
    assert not (trace.spans["name"].astype(str).str.startswith("layer_")).any()
    assert any("loaded with level='phases'" in problem for problem in capture.problems)
    assert any(w.code == "not_captured" and "phases" in w.message for w in trace.meta["warnings"])


def test_two_programs_of_one_name_stay_apart(demo):
    with (
        tv.Program(demo.path) as one,
        tv.Program(demo.path) as two,
        tv.profile(level="delegate", activities="none") as capture,
    ):
        one(*demo.inputs)
        two(*demo.inputs)
    trace = capture.trace
    assert (trace.spans["kind"] == "method").sum() == 2
    assert len(trace.tracks) == 2
    assert len(set(trace.spans["track"])) == 2


def test_engines_of_another_runtime_are_captured_too(demo, capture_module):
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(demo.path).load_method("forward")
    method.execute(demo.inputs)
    with tv.profile(level="layers", activities="none") as capture:
        outputs = method.execute(demo.inputs)
        method.execute(demo.inputs)
    torch.testing.assert_close(outputs[0], demo.expected[0], atol=1e-4, rtol=0)
    trace = capture.trace
    spans = trace.spans
    calls = spans[spans["name"] == "torchtrt.delegate"]
    assert len(calls) == 4
    assert (spans["kind"] == "layer").any()
    assert (spans["start_ns"] >= 0).all()
    assert ((spans["start_ns"] + spans["dur_ns"]) <= capture.end_unix_ns - capture.begin_unix_ns).all()
    phases = spans[spans["name"] == "torchtrt.enqueue_host"]
    assert (spans["name"].iloc[phases["parent"]] == "torchtrt.delegate").all()
    assert len(set(spans["run_id"].dropna())) == 2
    rows = np.flatnonzero(spans["kind"] == "layer")
    assert trace.args[int(rows[0])]["engine_runtime"] == "host"


def test_what_is_out_of_reach_in_another_runtime_is_said(demo, capture_module):
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(demo.path).load_method("forward")
    with tv.profile(level="delegate", activities="none") as capture:
        method.execute(demo.inputs)
    assert any("another runtime loaded" in problem for problem in capture.problems)
    assert any("torchtrt_viz.Program" in str(w) for w in capture.trace.meta["warnings"])


OTHERS_SWITCH = """
import json, sys, types
import torch, torchtrt_viz as tv

state = {"path_prefix": "before", "format": "trex", "execution": False}
library = torch.library.Library("tensorrt", "DEF")
for name, kind in (("path_prefix", "str"), ("format", "str"), ("execution", "bool")):
    library.define(f"set_profile_{name}({kind} value) -> ()")
    library.define(f"get_profile_{name}() -> {kind}")
    def put(value, n=name):
        state[n] = value
    library.impl(f"set_profile_{name}", put, "CompositeExplicitAutograd")
    library.impl(f"get_profile_{name}", lambda n=name: state[n], "CompositeExplicitAutograd")

def engine():
    if state["execution"]:
        rows = [{"name": "conv", "ph": "X", "ts": 0.0, "dur": 25.5, "tid": 1, "pid": "engine", "args": {}}]
        with open(state["path_prefix"] + "/engine_0_engine_execution_profile.trace", "w") as out:
            json.dump(rows, out)

before = dict(state)
with tv.profile(level="phases", activities="none") as capture:
    assert state["execution"] and state["format"] == "perfetto", state
    engine()
assert state == before, state
spans = capture.trace.spans
assert spans["name"].tolist() == ["conv"] and spans["dur_ns"].tolist() == [25500], spans
print("reached", capture.problems)
"""


def test_engines_of_torch_tensorrt_are_reached_through_its_own_switch(capture_module):
    done = subprocess.run([sys.executable, "-c", OTHERS_SWITCH], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "reached []" in done.stdout


def test_a_torch_tensorrt_without_a_switch_is_reported(monkeypatch):
    from torchtrt_viz.capture import torchtrt_switch

    monkeypatch.setitem(sys.modules, "torch_tensorrt", object())
    monkeypatch.setattr(torchtrt_switch.TorchTensorRTSwitch, "operators", staticmethod(lambda: None))
    monkeypatch.setattr(torchtrt_switch, "_ours_are_loaded", lambda: False)
    with tv.profile(level="phases", activities="none") as capture:
        pass
    assert any("attach(module)" in problem for problem in capture.problems)


def test_an_engine_of_a_program_is_not_counted_twice(demo, program):
    with tv.profile(level="phases", activities="none") as capture:
        program(*demo.inputs)
    assert capture._columns is None
    assert (capture.trace.spans["name"] == "torchtrt.delegate").sum() == 2


def test_threads_of_the_program_are_recorded(demo, program):
    with tv.profile(level="phases", activities="none") as capture:
        threads = [threading.Thread(target=program, args=demo.inputs) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (capture.trace.spans["kind"] == "method").sum() == 3


# -- off -------------------------------------------------------------------------------------------------


def test_off_captures_nothing_and_touches_nothing(demo, program, capture_module):
    before = capture_module.get_profile()
    with tv.profile(level="off") as capture:
        from torchtrt_viz.runtime.torch_profiler import profiler_active

        assert capture_module.get_profile() == before
        assert not profiler_active()
        torch.add(torch.ones(4), 1)
        program(*demo.inputs)
        assert not program._session.recording
    assert program._session.event_count() == 0
    assert len(capture.trace.spans) == 0
    assert capture.summary().set_index("item").loc["level", "note"] == "nothing was captured"
    assert tv.last() is capture


# -- states ----------------------------------------------------------------------------------------------


def test_a_second_capture_is_refused_and_the_first_goes_on(demo, program):
    with tv.profile(level="phases", activities="none") as capture:
        with pytest.raises(CaptureActiveError, match=r"test_capture_profile\.py:\d+") as raised:
            tv.profile().start()
        assert "torchtrt_viz.last().stop()" in str(raised.value)
        program(*demo.inputs)
    assert (capture.trace.spans["kind"] == "method").sum() == 1


def test_the_settings_of_the_process_come_back(demo, program, capture_module, tmp_path):
    capture_module.set_profile(execution=False, level="delegate", format="trex", path_prefix=str(tmp_path))
    before = capture_module.get_profile()
    with tv.profile(level="layers", activities="none"):
        inside = capture_module.get_profile()
        assert (inside["execution"], inside["level"], inside["format"]) == (True, "layers", "etdump")
    after = capture_module.get_profile()
    assert {k: v for k, v in after.items() if k != "generation"} == {
        k: v for k, v in before.items() if k != "generation"
    }
    assert after["generation"] > before["generation"]
    capture_module.reset_profile()


def test_the_states_of_a_capture(demo, program):
    capture = tv.profile(level="phases", activities="none")
    assert capture.state == "new"
    for early in (lambda: capture.trace, capture.summary, lambda: capture.save("x"), capture.stop):
        with pytest.raises(CaptureError, match=r"new|not started"):
            early()
    capture.start()
    assert tv.last() is capture
    for early in (lambda: capture.trace, capture.summary, lambda: capture.save("x"), capture.start):
        with pytest.raises(CaptureError, match="running"):
            early()
    assert "running" in repr(capture)
    program(*demo.inputs)
    assert capture.stop() is capture
    assert capture.stop() is capture
    with pytest.raises(CaptureError, match="stopped"):
        capture.start()
    assert capture.trace is capture.trace
    assert "1 program runs" in repr(capture)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_keeps_what_ran_before_it_and_goes_on_untouched(demo, program, kind):
    thrown = kind("stop here")

    def block():
        nonlocal capture
        with tv.profile(level="phases") as capture:
            program(*demo.inputs)
            raise thrown

    capture = None
    with pytest.raises(kind) as raised:
        block()
    assert raised.value is thrown
    assert raised.value.__context__ is None
    assert capture.error is thrown
    assert (capture.trace.spans["kind"] == "method").sum() == 1
    assert capture.trace.meta["capture"]["error"] == f"{kind.__name__}: stop here"
    note = capture.summary().set_index("item").loc["block", "note"]
    assert kind.__name__ in note


def test_a_failing_run_is_in_the_trace(demo, program):
    with tv.profile(level="phases", activities="none") as capture:
        with pytest.raises(CaptureError):
            program(torch.zeros(2, 3, 64, 64))
        program(*demo.inputs)
    assert (capture.trace.spans["kind"] == "method").sum() == 1


def test_stopping_on_another_thread_is_refused_and_loses_nothing(demo, program):
    capture = tv.profile(level="phases").start()
    failures = []

    def stop():
        try:
            capture.stop()
        except CaptureError as error:
            failures.append(str(error))

    thread = threading.Thread(target=stop)
    thread.start()
    thread.join()
    assert len(failures) == 1
    assert "thread that started it" in failures[0]
    assert capture.state == "running"
    torch.add(torch.ones(3), 1)
    capture.stop()
    assert "aten::add" in names_of(capture.trace)


def test_a_torch_profiler_of_the_user_is_not_disturbed(demo, program):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as users:
        with pytest.raises(CaptureActiveError, match="activities='none'"):
            tv.profile(level="phases").start()
        with tv.profile(level="phases", activities="none") as capture:
            program(*demo.inputs)
        torch.add(torch.ones(3), 1)
    assert any(event.name == "aten::add" for event in users.events())
    assert (capture.trace.spans["kind"] == "method").sum() == 1


STOLEN = """
import sys
import torch, torchtrt_viz as tv
from torch.profiler import ProfilerActivity, profile
with tv.profile(level="phases", activities="cpu") as capture:
    torch.ones(3).add(1)
    with profile(activities=[ProfilerActivity.CPU]):
        torch.ones(3).sub(1)
print(capture.problems)
print(len(capture.trace.spans))
"""


def test_a_profiler_that_takes_the_session_is_reported_and_no_crash():
    done = subprocess.run([sys.executable, "-c", STOLEN], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "another torch.profiler session was started and stopped inside" in done.stdout


@pytest.mark.parametrize(
    ("export", "said"),
    [
        (lambda self, path: None, "no file was written"),
        (lambda self, path: Path(path + ".tmp").write_text("{"), "only a part of the trace"),
        (lambda self, path: Path(path).write_text('{"traceEvents": [{'), "ends early"),
    ],
)
def test_an_export_that_fails_silently_is_noticed(demo, program, monkeypatch, export, said):
    monkeypatch.setattr(torch.profiler.profile, "export_chrome_trace", export)
    with tv.profile(level="phases", activities="cpu") as capture:
        program(*demo.inputs)
    assert any(said in problem for problem in capture.problems)
    assert (capture.trace.spans["kind"] == "method").sum() == 1
    rows = capture.summary()
    assert (rows["item"] == "not captured").any()


def test_a_disk_that_is_all_but_full_is_refused_at_the_start(monkeypatch, tmp_path):
    import shutil

    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 30, 1 << 30, 1 << 20)
    )
    with pytest.raises(CaptureError, match="1 MiB are free"):
        tv.profile(level="phases", activities="cpu").start()
    from torchtrt_viz.capture import registry

    assert registry.running() is None


def test_a_start_that_fails_leaves_everything_as_it_was(demo, program, capture_module, monkeypatch):
    from torchtrt_viz.capture.torch_activity import TorchActivity

    def fail(self):
        raise CaptureError("made to fail")

    monkeypatch.setattr(TorchActivity, "start", fail)
    before = capture_module.get_profile()
    with pytest.raises(CaptureError, match="made to fail"):
        tv.profile(level="layers", activities="cpu").start()
    after = capture_module.get_profile()
    assert (after["execution"], after["level"]) == (before["execution"], before["level"])
    assert not program._session.recording
    monkeypatch.undo()
    with tv.profile(level="phases", activities="cpu") as capture:
        program(*demo.inputs)
    assert (capture.trace.spans["kind"] == "method").sum() == 1


def test_engines_change_over_before_the_block_and_not_in_it(demo, capture_module):
    with tv.Program(demo.path) as program:
        program(*demo.inputs)
        assert {(e["level"], e["contexts"]) for e in program.engines()} == {("off", 1)}
        with tv.profile(level="layers", activities="none"):
            assert {(e["level"], e["level_source"], e["attachments"]) for e in program.engines()} == {
                ("layers", "process", 1)
            }
            program(*demo.inputs)
        with tv.profile(level="layers", activities="none"):
            program(*demo.inputs)
        assert {e["attachments"] for e in program.engines()} == {1}


@pytest.mark.skipif(torch.cuda.is_available(), reason="this torch records cuda")
def test_an_activity_that_torch_cannot_record_is_refused(capture_module):
    before = capture_module.get_profile()
    with pytest.raises(OptionError, match="activities"):
        tv.profile(level="phases", activities="cuda").start()
    assert capture_module.get_profile() == before


def test_options_are_checked_before_anything_starts():
    with pytest.raises(OptionError, match="did you mean 'layers'"):
        tv.profile(level="layer")
    with pytest.raises(TypeError):
        tv.profile(levels="layers")


def test_the_signature_is_the_table_of_options():
    defaults = {n: p.default for n, p in inspect.signature(tv.profile).parameters.items()}
    assert defaults == {item.name: item.default for item in fields(CaptureOptions)}


def test_the_torch_options_reach_torch(program, demo):
    with tv.profile(level="phases", activities="cpu", record_shapes=True, with_flops=True) as capture:
        torch.mm(torch.ones(2, 3), torch.ones(3, 4))
    trace = capture.trace
    row = int(np.flatnonzero(trace.spans["name"] == "aten::mm")[0])
    assert "[[2, 3], [3, 4]]" in json.dumps(trace.args[row])


NO_TORCH = """
import sys
import numpy as np, torchtrt_viz as tv
program = tv.Program(sys.argv[1])
x = np.zeros((1, 3, 64, 64), np.float32)
with tv.profile(level="phases") as capture:
    program(x)
assert "torch" not in sys.modules, "torch was imported"
print(len(capture.trace.spans), capture.problems)
print(capture.summary().to_string())
assert "torch" not in sys.modules, "torch was imported"
"""


def test_without_torch_in_the_process_nothing_imports_it(demo):
    done = subprocess.run(
        [sys.executable, "-c", NO_TORCH, str(demo.path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "torch was not loaded" in done.stdout


# -- the summary and the artifacts -----------------------------------------------------------------------


def test_the_summary_counts_and_prices(demo, program):
    with tv.profile(level="layers") as capture:
        program(*demo.inputs)
        program(*demo.inputs)
        torch.add(torch.ones(4), 1)
    rows = capture.summary().set_index("item")
    assert list(capture.summary().columns) == ["item", "value", "unit", "note"]
    assert rows.loc["program runs", "value"] == 2
    assert rows.loc["programs", "note"] == "demo.pte"
    events = rows.loc["program events", "value"]
    assert events == (capture.trace.spans["track"] == len(capture.trace.tracks) - 1).sum()
    assert rows.loc["torch events", "value"] >= 3
    assert rows.loc["device synchronisations", "value"] == 0
    inside = rows.loc["recording inside the block"]
    assert inside["unit"] == "ms"
    price = float(inside["note"].split(" program events at ")[1].split(" ns")[0])
    assert 5 < price < 20_000
    assert inside["value"] >= round(events * price / 1e6, 3) * 0.9
    assert rows.loc["start", "value"] > 0
    assert rows.loc["stop", "value"] > 0


def test_a_saved_capture_loads_as_the_same_trace(demo, program, tmp_path):
    with tv.profile(level="layers") as capture:
        program(*demo.inputs)
        torch.add(torch.ones(4), 1)
    folder = capture.save(tmp_path / "run")
    assert sorted(path.name for path in folder.iterdir()) == [
        "capture.json",
        "demo.etdp",
        "demo.etdp.json",
        "demo.etrecord",
        "torch.pt.trace.json",
    ]
    loaded = tv.load(folder)
    mine = capture.trace
    assert loaded.meta["base_ns"] == mine.meta["base_ns"]
    for column in ("name", "kind", "start_ns", "dur_ns", "self_ns", "parent", "track", "iteration"):
        assert loaded.spans[column].tolist() == mine.spans[column].tolist(), column
    row = int(np.flatnonzero(loaded.spans["kind"] == "layer")[0])
    assert loaded.args[row] == mine.args[row]
    assert loaded.args[row]["op_types"]
    assert loaded.meta["capture"]["options"]["level"] == "layers"
    assert loaded.meta["versions"]["executorch"]
    # the record beside the dump holds no weights
    assert (folder / "demo.etrecord").stat().st_size < demo.exported.etrecord.stat().st_size / 10


def test_saving_over_an_earlier_capture_needs_force(demo, program, tmp_path):
    with tv.profile(level="phases", activities="none") as capture:
        program(*demo.inputs)
    capture.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(CaptureError, match=r"capture\.json.*force=True"):
        capture.save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    capture.save(tmp_path, force=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(CaptureError, match="cannot be made"):
        capture.save(tmp_path / "file" / "below")


def test_details_outlive_the_capture(demo, program):
    import gc

    with tv.profile(level="phases") as capture:
        program(*demo.inputs)
        torch.add(torch.ones(4), 1)
    trace = capture.trace
    part = trace.select(np.arange(3))
    del capture, trace
    tv.profile(level="off").start().stop()
    gc.collect()
    assert isinstance(part.args[0], dict)
    assert part.args.read()


def test_the_temporary_folder_goes_with_the_capture(demo, program):
    import gc

    with tv.profile(level="phases") as capture:
        program(*demo.inputs)
    folder = Path(capture._artifacts().name)
    len(capture.trace.spans)
    assert folder.is_dir()
    del capture
    tv.profile(level="off").start().stop()
    gc.collect()
    assert not folder.exists()


# -- sidecars --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["trex", "perfetto"])
def test_layers_go_to_sidecars_where_asked(demo, program, tmp_path, format):
    with tv.profile(level="layers", format=format, path_prefix=tmp_path, activities="none"):
        program(*demo.inputs)
        program(*demo.inputs)
    written = list(tmp_path.rglob("*"))
    assert len([path for path in written if path.is_file()]) >= 2
    program(*demo.inputs)
    sizes = {path: path.stat().st_mtime_ns for path in written}
    program(*demo.inputs)
    assert {path: path.stat().st_mtime_ns for path in written} == sizes
    layers = 0
    for path in written:
        if path.is_file() and "layer_information" not in path.name:
            layers += len(tv.load(path).spans)
    assert layers >= 10
