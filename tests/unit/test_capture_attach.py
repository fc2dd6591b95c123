"""Layer times of TensorRT contexts in Python: on stand-ins that report as TensorRT does, and tensorrt_rtx."""

from __future__ import annotations

import doctest
import gc
import inspect
import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import torchtrt_viz as tv
from torchtrt_viz._native import native
from torchtrt_viz.capture.attach import attachments
from torchtrt_viz.capture.layer_runs import sort_runs, trex_profile
from torchtrt_viz.capture.tensorrt_python import build_log
from torchtrt_viz.captures import attach
from torchtrt_viz.errors import CaptureActiveError, CaptureError, OptionError

PACKAGE = "tensorrt_dispatch"
LAYERS = [("conv", 0.5), ("relu", 0.25), ("conv", 0.125)]


class Profiler:
    """What the package's IProfiler is to Python code."""

    def __init__(self):
        pass


class Engine:
    def __init__(self, name="net", layers=LAYERS):
        self.name = name
        self.layers = layers
        self.num_layers = len(layers)

    def create_engine_inspector(self):
        text = json.dumps(
            {"Layers": [{"Name": n, "LayerType": "kgen"} for n, _ in self.layers], "Bindings": []}
        )
        return SimpleNamespace(get_engine_information=lambda form: text if form == "json" else "")


class Context:
    """An execution context: it reports in the enqueue, or when asked, and not at all out of a CUDA graph."""

    def __init__(self, engine=None):
        self.engine = engine or Engine()
        self.profiler = None
        self.enqueue_emits_profile = True
        self.replaying = False
        self.ran = 0

    def _report(self):
        if self.profiler is None or self.replaying:
            return False
        for name, ms in self.engine.layers:
            self.profiler.report_layer_time(name, ms)
        return True

    def execute_async_v3(self, stream_handle):
        self.ran += 1
        if self.enqueue_emits_profile:
            self._report()
        return True

    def report_to_profiler(self):
        return self._report()


Context.__module__ = f"{PACKAGE}.{PACKAGE}"


@pytest.fixture(autouse=True)
def package(monkeypatch):
    made = ModuleType(PACKAGE)
    made.IProfiler = Profiler
    made.LayerInformationFormat = SimpleNamespace(JSON="json")
    monkeypatch.setitem(sys.modules, PACKAGE, made)
    return made


def columns(names, ms=None, marks=()):
    times = native("layer_times").LayerTimes()
    marks = list(marks)
    for row, name in enumerate(names):
        while row in marks:
            marks.remove(row)
            times.mark()
        times.record(name, 1.0 if ms is None else ms[row])
    for _ in marks:
        times.mark()
    return times.columns()


# -- the native recorder and the sorting -----------------------------------------------------------------


def test_the_recorder_keeps_order_names_and_nanoseconds():
    times = native("layer_times").LayerTimes()
    for name, ms in (("a", 0.001), ("b", 1.5), ("a", 0.0), ("ä\ufffd", 3.25)):
        times.record(name, ms)
    found = times.columns()
    assert [found["names"][i] for i in found["name"]] == ["a", "b", "a", "ä\ufffd"]
    assert found["dur_ns"].tolist() == [1000, 1_500_000, 0, 3_250_000]
    assert (np.diff(found["reported_ns"]) >= 0).all()
    assert len(times) == 4
    times.clear()
    assert len(times) == 0
    times.record("b", 1.0)
    assert times.columns()["names"][times.columns()["name"][0]] == "b"


@pytest.mark.parametrize("ms", [-1.0, float("nan"), float("inf"), 1e30])
def test_what_is_no_time_is_counted_and_not_summed(ms):
    layers = sort_runs(columns(["a", "a"], [1.0, ms]))
    assert layers.dropped == 1
    assert layers.total_ns.tolist() == [1_000_000]


def test_threads_may_report_at_once():
    import threading

    times = native("layer_times").LayerTimes()

    def work(name):
        for _ in range(2000):
            times.record(name, 0.5)

    threads = [threading.Thread(target=work, args=(f"layer {i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = times.columns()
    assert np.bincount(found["name"]).tolist() == [2000] * 4


@pytest.mark.parametrize(
    ("names", "runs", "layers", "known"),
    [
        ("abc" * 4, 4, "abc", True),
        # the last execution is not over
        ("abcabca", 3, "abc", True),
        # two layers of one name in each execution
        ("abacabac", 2, "abac", True),
        ("abab", 2, "ab", True),
        ("a", 1, "a", True),
        ("", 0, "", True),
        # seen once and a half: too little to know
        ("aba", 2, "ab", False),
        # another set of layers from the second execution on: the first layer begins them
        ("abcabd", 2, "abcd", False),
    ],
)
def test_executions_are_found_in_the_sequence(names, runs, layers, known):
    found = sort_runs(columns(list(names)))
    assert (found.runs, "".join(found.names), found.known) == (runs, layers, known)
    assert int(found.calls.sum()) == len(names)


def test_the_engines_number_of_layers_helps():
    once = sort_runs(columns(list("aba")), 0, 3)
    assert (once.runs, once.names, once.known) == (1, ["a", "b", "a"], True)
    twice = sort_runs(columns(list("aaaa")), 0, 2)
    assert (twice.runs, twice.names, twice.known) == (2, ["a", "a"], True)
    # an engine whose layers do not all report
    fewer = sort_runs(columns(list("abab")), 0, 3)
    assert (fewer.runs, fewer.names, fewer.known) == (2, ["a", "b"], True)


def test_marks_tell_executions_apart_where_the_sequence_cannot():
    # one layer, reported twice by each of two executions
    layers = sort_runs(columns(["a", "a", "a", "a"], [1.0, 2.0, 3.0, 4.0], marks=[0, 2]))
    assert layers.runs == 2
    assert layers.names == ["a", "a"]
    assert layers.total_ns.tolist() == [4_000_000, 6_000_000]
    # an execution that reported nothing is none of the profile's
    assert sort_runs(columns(["a", "b"], marks=[0, 0, 2])).runs == 1


def test_a_part_of_the_reports():
    found = columns(list("abab"), [1.0, 1.0, 5.0, 7.0], marks=[0, 2])
    layers = sort_runs(found, 2)
    assert (layers.runs, layers.total_ns.tolist()) == (1, [5_000_000, 7_000_000])


def test_the_profile_is_trtexecs():
    rows = json.loads(trex_profile(sort_runs(columns(list("abab"), [1.0, 3.0, 2.0, 2.0]))))
    assert rows[0] == {"count": 2}
    assert rows[1] == {"name": "a", "timeMs": 3.0, "averageMs": 1.5, "medianMs": 1.5, "percentage": 37.5}
    assert sum(row["percentage"] for row in rows[1:]) == 100
    silent = json.loads(trex_profile(sort_runs(columns(["a"], [0.0]))))
    assert silent[1]["percentage"] is None
    assert json.loads(trex_profile(sort_runs(columns([])))) == [{"count": 0}]


# -- attaching -------------------------------------------------------------------------------------------


def test_layers_of_a_context():
    context = Context()
    with attach(context) as attached:
        assert type(context.profiler).__name__ == "LayerProfiler"
        assert isinstance(context.profiler, Profiler)
        assert attached in attachments()
        for _ in range(3):
            context.execute_async_v3(0)
        assert len(attached) == 9
        trace = attached.trace()
    assert context.profiler is None
    assert attached not in attachments()
    context.execute_async_v3(0)
    assert len(attached) == 9
    spans = trace.spans
    # layers of one name stay apart; sums have no place on the time axis
    assert spans["name"].tolist() == ["conv", "relu", "conv"]
    assert spans["dur_ns"].tolist() == [1_500_000, 750_000, 375_000]
    assert set(spans["timing"]) == {"aggregate"}
    assert set(spans["domain"]) == {"gpu"}
    assert spans["start_ns"].isna().all()
    assert attached.problems == []
    assert attached.layers()["calls"].tolist() == [3, 3, 3]


def test_the_files_are_a_trex_set(tmp_path):
    context = Context()
    with attach(context, name="my net/1") as attached:
        context.execute_async_v3(0)
        (files,) = attached.save(tmp_path)
    assert [path.name for path in files] == ["my_net_1.profile.json", "my_net_1.graph.json"]
    with pytest.raises(CaptureError, match="force=True"):
        attached.save(tmp_path)
    attached.save(tmp_path, force=True)
    assert len(tv.load(tmp_path).spans) == 3


def test_a_profiler_that_is_there_already_is_not_pushed_aside():
    context = Context()
    context.profiler = own = Profiler()
    with pytest.raises(CaptureActiveError, match="replace=True"):
        attach(context)
    assert context.profiler is own
    with attach(context, replace=True):
        assert context.profiler is not own
    assert context.profiler is own


def test_asynchronous_executions_are_reported_when_the_caller_has_waited():
    context = Context()
    with attach(context, asynchronous=True) as attached:
        assert context.enqueue_emits_profile is False
        context.execute_async_v3(0)
        assert len(attached) == 0
        attached.report()
        assert len(attached) == 3
        context.execute_async_v3(0)
        attached.report()
        assert attached.layers()["calls"].tolist() == [2, 2, 2]
    assert context.enqueue_emits_profile is True
    with attach(context) as attached, pytest.raises(CaptureError, match="asynchronous=True"):
        attached.report()


def test_graph_replays_are_noticed():
    context = Context()
    with attach(context) as attached:
        attached.context.execute_async_v3(0)
        context.replaying = True
        attached.context.execute_async_v3(0)
        attached.context.execute_async_v3(0)
        assert context.ran == 3
        (problem,) = attached.problems
        assert "2 executions reported no layers" in problem
        assert "CUDA graph" in problem
        trace = attached.trace()
    assert [w.code for w in trace.meta["warnings"]].count("not_captured") == 1
    # the one that reported is not counted three times
    assert attached.layers()["calls"].tolist() == [1, 1, 1]


def test_the_counting_context_is_the_context():
    context = Context()
    with attach(context) as attached:
        proxy = attached.context
        assert proxy.engine is context.engine
        proxy.enqueue_emits_profile = True
        proxy.replaying = True
        assert context.replaying is True
        proxy.execute_async_v3(stream_handle=1)
    proxy.execute_async_v3(1)
    assert context.ran == 2


def test_nothing_reported_says_what_may_be_the_reason():
    with attach(Context()) as attached, pytest.raises(CaptureError, match="run the context"):
        attached.trace()


def module_with(*contexts, **more):
    parts = {
        f"trt_{i}": SimpleNamespace(context=context, name=f"trt_{i}", **more)
        for i, context in enumerate(contexts)
    }
    return SimpleNamespace(
        parts=parts, named_modules=lambda: [("", SimpleNamespace()), *parts.items()], children=parts.values()
    )


class Part:
    """A module that owns an execution context, as Torch-TensorRT's Python runtime has them."""

    def __init__(self, name):
        self.name = name
        self.context = Context(Engine(name))


def test_every_context_of_a_module_and_contexts_that_are_made_anew():
    parts = [Part("trt_0"), Part("trt_1")]
    module = SimpleNamespace(named_modules=lambda: [(part.name, part) for part in parts])
    with attach(module) as attached:
        assert attached.engines == ["trt_0", "trt_1"]
        for part in parts:
            part.context.execute_async_v3(0)
        assert attached.problems == []
        trace = attached.trace()
        assert len(trace.spans) == 6
        with pytest.raises(CaptureError, match="2 contexts"):
            _ = attached.context
        parts[1].context = Context()
        (problem,) = attached.problems
        assert problem.startswith("trt_1: its module has made a new execution context")


def test_an_attachment_that_fails_half_way_leaves_nothing_attached():
    parts = [Part("trt_0"), Part("trt_1")]
    parts[1].context.profiler = own = Profiler()
    module = SimpleNamespace(named_modules=lambda: [(part.name, part) for part in parts])
    with pytest.raises(CaptureActiveError, match="trt_1"):
        attach(module)
    assert parts[0].context.profiler is None
    assert parts[1].context.profiler is own


def test_what_cannot_be_attached_to_is_named():
    with pytest.raises(OptionError, match="IExecutionContext"):
        attach(object())
    with pytest.raises(OptionError, match="it has none"):
        attach(SimpleNamespace(named_modules=lambda: [("", SimpleNamespace())]))
    behind = SimpleNamespace(engine=object(), enable_profiling=lambda: None, name="engine_0")
    with pytest.raises(OptionError, match=r"engine_0 run in.*set_profile_execution"):
        attach(SimpleNamespace(named_modules=lambda: [("block", behind)]))


def test_another_profiler_in_our_place_is_noticed():
    context = Context()
    with attach(context) as attached:
        context.profiler = other = Profiler()
        assert "another profiler" in attached.problems[0]
    assert context.profiler is other


def test_the_profiler_outlives_every_execution():
    context = Context()
    attached = attach(context)
    del attached
    gc.collect()
    context.execute_async_v3(0)


def test_engines_of_one_name_get_files_of_their_own(tmp_path):
    contexts = [Context(), Context()]
    with attach(contexts[0]) as one, attach(contexts[1]) as two:
        with tv.profile(activities="none") as capture:
            for context in contexts:
                context.execute_async_v3(0)
        assert one.engines == two.engines == ["net"]
    saved = capture.save(tmp_path / "run")
    assert {p.name for p in saved.glob("*.profile.json")} == {"net.profile.json", "net-2.profile.json"}
    assert len(capture.trace.spans) == 6


def test_a_capture_takes_what_was_reported_in_its_block(tmp_path):
    context, early = Context(), Context(Engine("early"))
    with attach(context, name="net") as attached, attach(early):
        early.execute_async_v3(0)
        context.execute_async_v3(0)
        with tv.profile(activities="none") as capture:
            context.execute_async_v3(0)
            context.execute_async_v3(0)
        context.execute_async_v3(0)
        assert len(attached) == 12
    trace = capture.trace
    assert trace.spans["name"].tolist() == ["conv", "relu", "conv"]
    assert trace.spans["dur_ns"].tolist() == [1_000_000, 500_000, 250_000]
    assert trace.spans["start_ns"].isna().all()
    saved = capture.save(tmp_path / "run")
    assert {"net.profile.json", "net.graph.json", "capture.json"} == {p.name for p in saved.iterdir()}
    assert len(tv.load(saved).spans) == 3


# -- the real package ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rtx():
    return pytest.importorskip("tensorrt_rtx", reason="tensorrt_rtx is not installed")


def test_the_real_profiler_class_reports_to_the_recorder(rtx):
    from torchtrt_viz.capture.tensorrt_python import layer_profiler

    times = native("layer_times").LayerTimes()

    class FakeContext:
        profiler = None

    FakeContext.__module__ = "tensorrt_rtx_bindings.tensorrt_rtx"
    profiler = layer_profiler(FakeContext(), times)
    assert isinstance(profiler, rtx.IProfiler)
    profiler.report_layer_time("conv", 0.5)
    assert times.columns()["dur_ns"].tolist() == [500_000]
    assert type(profiler.report_layer_time).__module__ != "builtins"


def test_layer_information_of_a_build_is_a_trex_set(rtx, tmp_path):
    log = build_log(rtx)
    builder = rtx.Builder(log)
    network = builder.create_network(0)
    x = network.add_input("x", rtx.float32, (1, 3, 8, 8))
    weights = rtx.Weights(np.ones((4, 3, 3, 3), np.float32))
    conv = network.add_convolution_nd(x, 4, (3, 3), weights, rtx.Weights(np.zeros(4, np.float32)))
    conv.name = "conv"
    network.mark_output(network.add_activation(conv.get_output(0), rtx.ActivationType.RELU).get_output(0))
    with pytest.raises(CaptureError, match="DETAILED"):
        log.save(tmp_path / "early.graph.txt")
    config = builder.create_builder_config()
    config.profiling_verbosity = rtx.ProfilingVerbosity.DETAILED
    assert builder.build_serialized_network(network, config) is not None
    trace = tv.load(log.save(tmp_path / "net.graph.txt"))
    assert trace.meta["format"] in ("trex", "trtexec")
    (engine,) = (
        trace.meta["engines"].values() if isinstance(trace.meta["engines"], dict) else trace.meta["engines"]
    )
    assert engine


@pytest.mark.parametrize("name", ["attach", "Attachment.trace", "Attachment.layers"])
def test_examples_in_docstrings_run(name):
    owner, _, method = name.partition(".")
    documented = getattr(getattr(tv, owner), method) if method else getattr(tv, owner)
    context = Context()
    with attach(context) as layers:
        layers.context.execute_async_v3(0)
    names = {"tv": tv, "context": Context(), "stream": 0, "layers": layers}
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(documented), names, name, None, 0)
    said = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert test.examples
    assert not failed, "".join(said)
