"""Five questions of a newcomer, answered on exported pages in at most three actions, by mouse and by keys.

Each page is made as the README says. Answers are worked out here from the recordings themselves, and what
tells them has to be in sight. A key that moves the focus is no action; what is then pressed is one.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import raw_kineto
from click.testing import CliRunner
from rank_traces import event, trace_json, write
from shared_files import shared_file

import torchtrt_viz as tv
from torchtrt_viz.cli.compare import command

DEMO = Path(__file__).parents[2] / "sample_traces" / "demo_capture"
MOST_ACTIONS = 3
MOST_TABS = 60
RUNTIME = {"cuda_runtime", "cuda_driver"}


class Newcomer:
    """Somebody at a page who counts what it takes: clicks, or keys alone."""

    def __init__(self, visit, keys):
        self.visit, self.keys, self.actions = visit, keys, 0

    def press(self, text, inside="body"):
        """Press the button or link of these words."""
        control = self.visit.page.locator(inside).locator("a,button").filter(has_text=re.compile(text)).first
        self.actions += 1
        if not self.keys:
            control.click()
            return
        for _ in range(MOST_TABS):
            self.visit.page.keyboard.press("Tab")
            if control.evaluate("(it) => it === document.activeElement"):
                self.visit.page.keyboard.press("Enter")
                return
        raise AssertionError(f"{MOST_TABS} times Tab do not lead to {text!r}")

    def click(self, selector):
        self.actions += 1
        self.visit.page.locator(selector).first.click()

    def reads(self, selector):
        """Return the text of an element that has to be in sight, whole."""
        it = self.visit.page.locator(selector).first
        it.wait_for(state="visible")
        self.visit.page.wait_for_function(
            "(it) => { const at = it.getBoundingClientRect();"
            " return at.top >= 0 && at.bottom <= innerHeight && at.left >= 0 && at.right <= innerWidth; }",
            arg=it.element_handle(),
        )
        return it.inner_text()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Make a page when it is first asked for."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}

    def page(name, make):
        if name not in made:
            path = folder / f"{name}.html"
            make(path)
            made[name] = path
        return made[name].as_uri()

    return page


@pytest.fixture(params=["mouse", "keys"])
def newcomer(request, visit, pages):
    people = []

    def arrive(name, make):
        one = Newcomer(visit(pages(name, make)), request.param == "keys")
        if one.visit.page.locator("#tv-timeline").count():
            one.visit.settle()
        people.append(one)
        return one

    yield arrive
    for one in people:
        assert one.actions <= MOST_ACTIONS
        assert one.visit.errors == []
        assert one.visit.external == []


def report(source):
    return lambda path: tv.load(source).to_html(path)


@pytest.fixture(scope="module")
def gpu_trace():
    return shared_file("corpus/kineto/a100_alexnet_cuda_sync.json.gz")


def test_the_slowest_layer_of_the_demo(newcomer):
    pytest.importorskip("executorch", reason="the ETDump is read with ExecuTorch's own reader")
    from etdump_raw import blocks

    times: Counter[str] = Counter()
    for block in blocks((DEMO / "demo.etdp").read_bytes()):
        for one in block:
            if (one.delegate or "").startswith("layer_"):
                times[one.delegate] += one.end - one.start
    layer, took = times.most_common(1)[0]
    number = int(layer.split("_")[1])

    one = newcomer("demo", report(DEMO))
    one.press("^Layers by time", "nav")
    said = one.reads("#chart-layers .note")
    assert f" #{number} " in said
    assert f"{took / 1e6:.4g} ms host time" in said
    if not one.keys:
        one.click("#chart-layers text[data-show]")
        one.visit.settle()
        assert "5 events" in one.reads(".tv-panel"), "the calls of that layer, one per run of the program"


def test_why_the_gpu_idles(newcomer, gpu_trace):
    found = raw_kineto.events(gpu_trace)
    work = raw_kineto.device_events(found)
    busy = raw_kineto.union(work)
    launches = {e["args"]["correlation"]: e for e in found if e["cat"] in RUNTIME}
    idle = late = 0
    for (_, end), (begin, _) in pairwise(busy):
        idle += begin - end
        first = next(e for e in work if e["ts"] == begin)
        call = launches[first["args"]["correlation"]]
        late += begin - end if call["ts"] + call["dur"] > end else 0
    assert late > 0.999 * idle

    one = newcomer("gpu", report(gpu_trace))
    said = one.reads("#verdict li.finding")
    one.press("^show$", "#verdict")
    one.visit.settle()
    assert f"GPU 0 idle {idle / 1e9:.3g} s, {100 * late / idle:.3g} % of it waiting for the host" in said
    if one.keys:  # the focus is past the list of sections
        return
    one.press("^Why streams were idle", "nav")
    assert "waits for the host" in one.reads("#chart-idle .note")


def test_the_longest_launch_delay_and_its_operator(newcomer, gpu_trace):
    found = raw_kineto.events(gpu_trace)
    launches = {e["args"]["correlation"]: e for e in found if e["cat"] in RUNTIME}
    kernels = [e for e in found if e["cat"] == "kernel"]
    kernel = max(kernels, key=lambda e: e["ts"] - launches[e["args"]["correlation"]]["ts"])
    call = launches[kernel["args"]["correlation"]]
    around = [
        e
        for e in found
        if e["cat"] == "cpu_op" and e["tid"] == call["tid"] and e["ts"] <= call["ts"] < e["ts"] + e["dur"]
    ]
    operator = min(around, key=lambda e: e["dur"])["name"]
    waited = kernel["ts"] - call["ts"]
    short = kernel["name"].removeprefix("void ").partition("<")[0]

    one = newcomer("gpu", report(gpu_trace))
    one.press("^Longest launch delay", "nav")
    said = one.reads("#chart-longest_delays .note")
    assert f"The longest wait is {waited / 1e9:.4g} s, of {short}" in said
    assert f"which {operator} launched" in said
    if not one.keys:
        one.click("#chart-longest_delays text[data-show]")
        one.visit.settle()
        told = one.reads(".tv-story")
        assert operator in told
        assert call["name"] in told


STEPS = 20


def _run(path, addmm_us):
    events = []
    for step in range(STEPS):
        at, took = 1_000.0 * step, addmm_us * (1 + 0.01 * (step % 5))
        events.append(event(f"ProfilerStep#{step}", at, 900))
        events.append(event("aten::linear", at + 10, took + 50, "cpu_op"))
        events.append(event("aten::addmm", at + 20, took, "cpu_op"))
        events.append(event("aten::relu", at + 800, 40 + step % 3, "cpu_op"))
    return write(path, trace_json(events))


def test_what_changed_between_two_runs(newcomer, tmp_path):
    def compare(path):
        before, after = _run(tmp_path / "before.json", 150), _run(tmp_path / "after.json", 300)
        done = CliRunner().invoke(command, [str(before), str(after), "-o", str(path)])
        assert done.exit_code == 0, done.output

    one = newcomer("comparison", compare)
    said = one.reads("#verdict li.finding")
    assert "operator aten::addmm: 100 % slower" in said
    assert re.search(r"15\d(\.\d)? µs before, 30\d(\.\d)? µs after, of host time per iteration", said)
    assert one.visit.page.locator("#verdict li.finding").count() == 1, "only that was changed"
    one.press("^What changed$", "nav")
    assert "aten::addmm" in one.reads("#changed tbody td")


RANKS, LATE = 4, 2


def _session(folder):
    for rank in range(RANKS):
        events = []
        for step in range(5):
            at, behind = 1_000.0 * step, 250 if rank == LATE else 10 * rank
            events.append(event(f"ProfilerStep#{step}", at, 900))
            events.append(event("aten::mm", at + 10, 300 + behind, "cpu_op"))
            events.append(event("gloo:all_reduce", at + 400 + behind, 400 - behind, tid=8))
        write(folder / f"rank{rank}.json", trace_json(events, rank=rank, world_size=RANKS))
    return folder


def test_which_rank_is_late(newcomer, tmp_path):
    waited_us = 5 * sum(250 - 10 * rank for rank in range(RANKS) if rank != LATE)

    one = newcomer("session", lambda path: tv.load(_session(tmp_path)).to_html(path))
    assert f"for rank {LATE}" in one.reads("#findings li.finding b")
    if not one.keys:  # the page goes to the timeline: the focus stays where it was
        one.press("^show$", "#findings")
        one.visit.settle()
        assert one.reads(".tv-matches") == f"{5 * RANKS} highlighted", "each rank's part in each collective"
    one.press("^table$", "#findings")
    assert f"rank {LATE} cost most: {waited_us / 1e3:.4g} ms" in one.reads("#stragglers h3 + .note")
