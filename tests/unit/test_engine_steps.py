"""Steps that an engine's loop makes: what is a step, its number, and what it did."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_traces import event, trace_json, write

import torchtrt_viz as tv
from torchtrt_viz.analysis.session.rank_steps import trace_steps


def steps(path: Path, events: list[dict]) -> list[tuple[int, str | None, int]]:
    trace = tv.load(write(path / "t.json", trace_json(events)))
    table = trace_steps(trace)
    return [
        (step, None if kind is None else str(kind), dur)
        for step, kind, dur in zip(table["step"], table["step_kind"], table["dur_ns"], strict=True)
    ]


def test_counted_steps_come_before_the_profilers_and_hold_no_idle_time(tmp_path: Path) -> None:
    """Steps of 10 ms with 200 ms between them: the profiler's own ranges hold both."""
    events = []
    for number in range(3):
        at = 210_000.0 * number
        events.append(event(f"ProfilerStep#{number}", at, 210_000))
        events.append(event(f"engine_step[step={40 + number} kind=decode]", at + 100, 10_000))
        events.append(event("execute_context_0(0)_generation_4(4)", at + 200, 9_000))
    assert steps(tmp_path, events) == [(n, "decode", 10_000_000) for n in (40, 41, 42)]


def test_an_engines_empty_turns_are_no_steps(tmp_path: Path) -> None:
    events = [
        event("execute_context_1(5)_generation_0(0)", 0, 30),
        event("execute_context_0(0)_generation_0(0)", 50, 1),
        event("execute_context_0(0)_generation_1(1)", 60, 20),
    ]
    assert steps(tmp_path, events) == [(0, "prefill", 30_000), (1, "decode", 20_000)]


def test_marks_say_what_a_step_did_and_which_found_nothing_to_do(tmp_path: Path) -> None:
    events = [
        event("engine_step[step=0]", 0, 100),
        event("engine_step_kind[kind=prefill]", 99, 0.5),
        event("engine_step[step=1]", 200, 5),
        event("engine_step_idle", 204, 0.5),
        event("engine_step[step=1]", 300, 70),
        event("engine_step[step=2 kind=mixed]", 400, 30),
        # another thread's marks are not of these steps
        event("engine_step_idle", 410, 0.5, tid=8),
    ]
    assert steps(tmp_path, events) == [(0, "prefill", 100_000), (1, None, 70_000), (2, "mixed", 30_000)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("execute_context_2(30)_generation_0(0)", "prefill"),
        ("execute_context_0(0)_generation_8(8)", "decode"),
        ("execute_context_1(12)_generation_3(3)", "mixed"),
        ("execute_42_context_1(sq12sk12sqsq144sqsk144)_generation_3(sq3sk90sqsq9sqsk90)", "mixed"),
        ("step[EXTEND bs=2 toks=512]", "prefill"),
        ("step[DECODE bs=32]", "decode"),
        ("step[MIXED bs=4]", "mixed"),
        ("decode_step_5", "decode"),
        ("engine_step_5", None),
    ],
)
def test_engines_own_names_say_what_a_step_does(tmp_path: Path, name: str, kind: str | None) -> None:
    """Names as vLLM's and SGLang's sources make them."""
    assert steps(tmp_path, [event(name, 0, 7)]) == [(0, kind, 7000)]


def test_a_trace_without_steps_has_an_empty_table_of_them(tmp_path: Path) -> None:
    assert steps(tmp_path, [event("aten::mm", 0, 30, "cpu_op")]) == []
