"""Iterations, variability, comparison of two runs and of a series: findings among noise, and no others."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from trace_builder import Builder

from torchtrt_viz.analysis.core.statistics import bootstrap_ratios, holm, trimmed_tests
from torchtrt_viz.analysis.core.steps import iteration_of, iterations, warmup_length
from torchtrt_viz.analysis.runs.comparison import compare, outcome, regressions
from torchtrt_viz.analysis.runs.iteration_variability import variability
from torchtrt_viz.analysis.runs.sampling import samples
from torchtrt_viz.analysis.runs.trends import series, series_values
from torchtrt_viz.errors import OptionError
from torchtrt_viz.trace import Trace

OPERATORS = 12


def _template(runs: int, operators: int = OPERATORS, kind: str = "operator") -> Trace:
    b = Builder()
    main = b.track("main")
    for run in range(runs):
        t = 100_000_000 * run
        b.span("forward", t, 90_000_000, main, "method", iteration=run)
        for number in range(operators):
            b.span(f"op{number}", t + 1_000_000 * (number + 1), 500_000, main, kind, iteration=run)
    return b.build()


def _size(name: str) -> float:
    return 10_000 * 1.6 ** (int(name[2:]) % OPERATORS) if name.startswith("op") else 1e7


def _noisy(template: Trace, rng: np.random.Generator, noise: float = 0.02, **factors: float) -> Trace:
    """Return the template with other durations: a size for each operator, noise, and planted factors."""
    spans = template.spans
    size = np.array([_size(name) * factors.get(name, 1.0) for name in spans["name"].astype(object)])
    dur = np.rint(size * np.exp(rng.normal(0, noise, len(size)))).astype(np.int64)
    return Trace(spans=spans.assign(dur_ns=dur, self_ns=dur), tracks=template.tracks)


def test_a_planted_slow_down_is_found_and_nothing_else() -> None:
    template = _template(30)
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = compare(_noisy(template, rng), _noisy(template, rng, op5=1.05), levels=("operator",))
        verdicts = table.set_index("name")["verdict"]
        found += verdicts["op5"] == "slower"
        assert set(verdicts.drop("op5")) <= {"same", "unclear"}
        row = table.set_index("name").loc["op5"]
        assert row["low_pct"] < row["change_pct"] < row["high_pct"]
        assert row["change_pct"] == pytest.approx(5, abs=2.5)
        assert table["name"][0] == "op5"
    assert found == 20


def test_300_tables_without_a_change_give_at_most_three_false_verdicts() -> None:
    """One table of 900 operators at alpha 0.75 looks at each as 75 tables of 12 operators do at 0.01."""
    template = _template(20, operators=75 * OPERATORS)
    false = 0
    for seed in range(4):
        rng = np.random.default_rng(10_000 + seed)
        table = compare(_noisy(template, rng), _noisy(template, rng), levels=("operator",), alpha=0.75)
        assert len(table) == 75 * OPERATORS
        false += int(table["verdict"].isin(["slower", "faster"]).sum())
    assert false <= 3


def test_a_table_corrects_for_its_own_rows_only() -> None:
    """What the test above relies on: with 12 rows, the smallest p-value is 12 times that of its row."""
    rng = np.random.default_rng(7)
    template = _template(20)
    a, b = _noisy(template, rng), _noisy(template, rng, op5=1.03)
    values = [samples(trace, "operator").values for trace in (a, b)]
    raw = trimmed_tests(*values)
    expected = holm(raw)
    table = compare(a, b, levels=("operator",))
    assert sorted(table["p_value"]) == pytest.approx(sorted(expected))
    assert min(expected) == pytest.approx(OPERATORS * min(raw))


def test_noise_with_memory_gives_few_false_verdicts() -> None:
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(100):
        e = rng.normal(0, 0.02, (10, 2, 40))
        for i in range(1, 40):
            e[..., i] = 0.5 * e[..., i - 1] + math.sqrt(0.75) * e[..., i]
        a, b = np.exp(e).swapaxes(0, 1)
        false += min(holm(trimmed_tests(a, b))) < 0.01
    assert false <= 5


def test_a_coarse_clock_finds_no_step_of_its_own() -> None:
    a = np.full(50, 10_000.0)
    b = np.full(50, 11_000.0)
    assert trimmed_tests([a], [b]) > 0.01, "one tick of a microsecond clock"
    assert trimmed_tests([a + np.arange(50) % 2], [b]) < 1e-6, "the same difference on a fine clock"


def test_hiccups_neither_hide_nor_make_a_change() -> None:
    rng = np.random.default_rng(1)
    a = 1e6 * np.exp(rng.normal(0, 0.01, 40))
    b = 1e6 * np.exp(rng.normal(0, 0.01, 40))
    b[[3, 20]] *= 30
    assert trimmed_tests([a], [b]) > 0.05
    ((low, high),) = bootstrap_ratios([a], [b])
    assert low < 1 < high
    assert trimmed_tests([a], [1.05 * b]) < 1e-6


def test_added_removed_and_untestable() -> None:
    rng = np.random.default_rng(0)
    template = _template(10)
    a = _noisy(template, rng)
    b = a.select((a.spans["name"] != "op3").to_numpy())
    a = a.select((a.spans["name"] != "op4").to_numpy())
    table = compare(a, b, levels=("operator",)).set_index("name")
    assert table.loc["op3", "verdict"] == "removed"
    assert table.loc["op4", "verdict"] == "added"
    assert table.loc["op3", "b_ns"] is pd.NA
    assert table.loc["op3", "change_pct"] is pd.NA
    assert table.loc["op4", "a_samples"] == 0
    assert table.loc["op1", "verdict"] in ("same", "unclear")
    single = compare(_template(1), _template(1), levels=("operator",))
    assert single["p_value"].dropna().eq(1.0).all()
    assert not single["verdict"].isin(["slower", "faster"]).any()


def test_regressions_for_a_check() -> None:
    rng = np.random.default_rng(3)
    template = _template(40)
    table = compare(
        _noisy(template, rng), _noisy(template, rng, op2=1.2, op7=1.04, op9=0.8), levels=("operator",)
    )
    assert set(regressions(table)["name"]) == {"op2", "op7"}
    assert regressions(table, 10)["name"].tolist() == ["op2"]
    assert table.set_index("name").loc["op9", "verdict"] == "faster"
    with pytest.raises(OptionError, match="0 or more"):
        regressions(table, -1)


def test_averages_without_scatter_get_no_verdict() -> None:
    def engine(total: int) -> Trace:
        b = Builder()
        b.span("conv", None, total, b.track("e", "engine", "gpu"), "layer", run_id="e", args={"count": 10})
        return b.build()

    row = compare(engine(1000), engine(5000)).iloc[0]
    assert row["basis"] == "mean"
    assert row["change_pct"] == pytest.approx(400)
    assert row["a_ns"] == 100
    assert row["verdict"] == "unclear"
    assert row["p_value"] is pd.NA


def test_options_are_checked() -> None:
    trace = _template(3)
    for bad in ({"levels": ("kernels",)}, {"alpha": 0}, {"confidence": 1}, {"min_change_pct": -1}):
        with pytest.raises(OptionError):
            compare(trace, trace, **bad)  # type: ignore[arg-type]


def test_a_comparison_is_repeatable() -> None:
    rng = np.random.default_rng(0)
    template = _template(10)
    a, b = _noisy(template, rng), _noisy(template, rng)
    pd.testing.assert_frame_equal(compare(a, b), compare(a, b))


def test_warm_up_is_told_from_what_follows() -> None:
    assert warmup_length(np.array([100, 10, 10, 11, 10, 10])) == 1
    assert warmup_length(np.array([100, 50, 10, 11, 10, 10, 9, 10])) == 2
    assert warmup_length(np.array([10, 10, 11, 10, 10])) == 0
    assert warmup_length(np.array([10, 50, 10, 11, 10, 10])) == 0, "a hiccup later on is not warm-up"
    assert warmup_length(np.array([100, 10, 10])) == 0, "too few to tell"
    assert warmup_length(np.array([], dtype=np.int64)) == 0


def test_iterations_come_from_methods_or_steps() -> None:
    b = Builder()
    main, other, gpu = b.track("main"), b.track("autograd"), b.stream(7)
    for number, (start, dur) in enumerate(
        ((0, 500), (500, 100), (600, 100), (700, 100), (800, 100), (900, 100))
    ):
        b.span(f"ProfilerStep#{number}", start, dur, main, "step")
        b.span("cudaLaunchKernel", start + 10, 5, main, "runtime", correlation=number + 1)
        b.span("k", start + 2000, 20, gpu, "kernel", correlation=number + 1)
    b.span("backward", 650, 20, other)
    b.span("late", 5000, 20, other)
    trace = b.build()
    listed = iterations(trace)
    assert listed["iteration"].tolist() == [0, 1, 2, 3, 4, 5]
    assert listed["warmup"].tolist() == [True, False, False, False, False, False]
    number = pd.Series(iteration_of(trace), index=trace.spans["name"].astype(object))
    assert number["k"].tolist() == [0, 1, 2, 3, 4, 5], "device work belongs to the step that launched it"
    assert number["backward"] == 2
    assert number["late"] == -1
    found = samples(trace, "kernel")
    assert found.basis == "iteration"
    assert [values.tolist() for values in found.values] == [[20.0] * 5], "warm-up is left out"
    assert len(samples(trace, "kernel", skip_warmup=False).values[0]) == 6


def test_samples_sum_the_calls_of_an_iteration() -> None:
    b = Builder()
    main = b.track("main")
    for run in range(3):
        b.span("forward", 1000 * run, 900, main, "method", iteration=run)
        for call in range(run + 1):
            b.span("add", 1000 * run + 100 * call, 10, main, iteration=run)
    found = samples(b.build(), "operator")
    assert [values.tolist() for values in found.values] == [[10.0, 20.0, 30.0]]
    assert found.calls.tolist() == [6]
    each = samples(b.build(), "operator", per_call=True)
    assert each.basis == "call"
    assert [len(values) for values in each.values] == [6]


def test_variability_equals_numpy() -> None:
    rng = np.random.default_rng(0)
    trace = _noisy(_template(50), rng, noise=0.1)
    table = variability(trace, level="operator").set_index("name")
    values = trace.spans["dur_ns"][trace.spans["name"] == "op3"].to_numpy()
    row = table.loc["op3"]
    assert row["basis"] == "iteration"
    assert row["samples"] == 50
    assert row["mean_ns"] == pytest.approx(values.mean())
    assert row["median_ns"] == pytest.approx(np.median(values))
    assert row["p90_ns"] == pytest.approx(np.quantile(values, 0.9))
    assert row["p99_ns"] == pytest.approx(np.quantile(values, 0.99))
    assert row["std_ns"] == pytest.approx(values.std(ddof=1))
    assert row["cv_pct"] == pytest.approx(100 * values.std(ddof=1) / values.mean())
    single = variability(_template(1), level="operator")
    assert single["cv_pct"].isna().all()


def test_a_series_names_the_run_in_which_something_changed() -> None:
    template = _template(10)
    rng = np.random.default_rng(2)
    runs = []
    for number in range(12):
        drift = math.exp(rng.normal(0, 0.01))  # a whole run is a little faster or slower
        factors = {f"op{n}": drift for n in range(OPERATORS)}
        factors["op6"] *= 1.08 if number >= 7 else 1.0
        runs.append(_noisy(template, rng, **factors))
    labels = [f"build {n}" for n in range(12)]
    table = series(runs, labels=labels, levels=("operator",)).set_index("name")
    assert table.loc["op6", "verdict"] == "slower"
    assert table.loc["op6", "since"] == 7
    assert table.loc["op6", "label"] == "build 7"
    assert table.loc["op6", "change_pct"] == pytest.approx(8, abs=2)
    assert set(table.drop("op6")["verdict"]) == {"unclear"}
    assert 0.3 < table.loc["op1", "noise_pct"] < 3
    values = series_values(runs, levels=("operator",))
    assert len(values) == 12 * OPERATORS
    with pytest.raises(OptionError, match="12 runs"):
        series(runs, labels=["one"])


def test_a_series_without_change_finds_none() -> None:
    """480 operators at alpha 0.4 are 40 tables of 12 at 0.01."""
    template = _template(5, operators=40 * OPERATORS)
    rng = np.random.default_rng(0)
    runs = [_noisy(template, rng) for _ in range(8)]
    table = series(runs, levels=("operator",), alpha=0.4)
    assert len(table) == 40 * OPERATORS
    assert (table["verdict"] != "unclear").sum() <= 2


def test_a_series_tells_what_came_and_went() -> None:
    template = _template(3)
    rng = np.random.default_rng(0)
    runs = []
    for number in range(6):
        trace = _noisy(template, rng)
        gone = [name for name, there in (("op1", number < 4), ("op2", number >= 2)) if not there]
        runs.append(trace.select(~trace.spans["name"].isin(gone).to_numpy()))
    table = series(runs, levels=("operator",)).set_index("name")
    assert (table.loc["op1", "verdict"], table.loc["op1", "since"]) == ("removed", 4)
    assert (table.loc["op2", "verdict"], table.loc["op2", "since"]) == ("added", 2)


def test_an_engine_that_was_built_anew_is_the_same_engine() -> None:
    def run(content: str, other: str, layer_ns: int) -> Trace:
        b = Builder()
        main = b.track("main")
        rng = np.random.default_rng(layer_ns)
        for n in range(30):
            t = 1_000_000 * n
            b.span("Method::execute", t, 900_000, main, "method", iteration=n)
            jitter = int(rng.normal(0, layer_ns * 0.01))
            b.span(
                "conv",
                t + 1_000,
                layer_ns + jitter,
                main,
                "layer",
                iteration=n,
                run_id=f"{content}-forward-0",
            )
            b.span("conv", t + 500_000, 20_000, main, "layer", iteration=n, run_id=f"{other}-forward-1")
        return b.build()

    same = "0123456789abcdef"
    table = compare(
        run("aaaaaaaaaaaaaaaa", same, 100_000), run("bbbbbbbbbbbbbbbb", same, 150_000), levels=("layer",)
    )
    rows = table.set_index("run_id")
    assert sorted(rows.index) == [f"{same}-forward-1", "forward-0"]
    assert rows.loc["forward-0", "verdict"] == "slower"
    assert rows.loc["forward-0", "change_pct"] == pytest.approx(50, abs=3)
    both = compare(run("a" * 16, same, 100_000), run("b" * 16, "c" * 16, 150_000), levels=("layer",))
    assert sorted(both["run_id"]) == ["forward-0", "forward-1"]
    assert both.set_index("run_id")["a_ns"]["forward-1"] == 20_000


def _run(kind: str, name: str, durations: list[int], more: tuple[str, ...] = ()) -> Trace:
    b = Builder()
    main = b.track("main")
    at = 0
    for number, dur in enumerate(durations):
        b.span(name.format(number), at, dur, main, kind)
        at += dur + 10
        for other in more:
            b.span(other, at, 100, main)
            at += 110
    return b.build()


@pytest.mark.parametrize(
    "kind", ["annotation", "step", "runtime", "memory", "communication", "python", "other", "method"]
)
def test_every_kind_of_span_is_compared(kind: str) -> None:
    before = _run(kind, "x", [1000, 1001, 999, 1000, 1002])
    after = _run(kind, "x", [3000, 3001, 2999, 3000, 3002])
    table = compare(before, after)
    assert table[["level", "name", "verdict"]].to_numpy().tolist() == [[kind, "x", "slower"]]
    assert table.attrs["host_coverage_pct"] == 100.0
    assert table.attrs["outcome"] == outcome(table) == "changed"
    assert len(regressions(table, 5.0)) == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("step", "ProfilerStep#{}"),
        ("annotation", "aten::add, seq = {}, op_id = 7{}"),
        ("python", "<built-in method run of Engine object at 0x7f00{}0>"),
    ],
)
def test_numbers_of_one_run_are_no_part_of_a_name(kind: str, name: str) -> None:
    name = name.replace("7{}", "7")
    table = compare(_run(kind, name, [1000] * 6), _run(kind, name.replace("0x7f", "0x8e"), [1000] * 6))
    assert len(table) == 1
    assert (table["a_calls"].iloc[0], table["b_calls"].iloc[0]) == (6, 6)


def test_the_share_that_was_compared_is_said() -> None:
    before = _run("operator", "aten::mm", [900] * 5, ("aten::old",))
    after = _run("operator", "aten::mm", [900] * 5, ("aten::new", "aten::newer"))
    table = compare(before, after)
    # 900 of 1000 ns in the first run, 900 of 1100 in the second
    assert table.attrs["host_coverage_pct"] == pytest.approx(100 * 9 / 11)
    assert table.attrs["coverage"] == "compared: 81.8 % of the measured host time"
    assert table.attrs["gpu_coverage_pct"] is None
    assert table.attrs["outcome"] == "changed"


def test_another_program_is_no_pass() -> None:
    table = compare(_run("operator", "a", [900] * 5, ("x",)), _run("operator", "b", [900] * 5, ("x",)))
    assert table.attrs["outcome"] == "different programs"
    # what surrounds a program is alike in all of them
    python = compare(
        _run("python", "run", [10_000] * 5, ("aten::a",)), _run("python", "run", [10_000] * 5, ("aten::b",))
    )
    assert python.attrs["outcome"] == "different programs"


def test_what_ran_too_seldom_is_judged_together() -> None:
    def run(factor: int) -> Trace:
        b = Builder()
        gpu = b.stream(7)
        for at, dur in enumerate((150_000, 9_000, 3_800, 2_100, 1_700)):
            b.span(f"kernel {at}", 1_000_000 * at, factor * dur, gpu, "kernel")
        return b.build()

    table = compare(run(1), run(3))
    row = table.iloc[0]
    assert (row["name"], row["verdict"], row["a_ns"], row["b_ns"]) == (
        "(all together)",
        "slower",
        166_600,
        499_800,
    )
    assert row["change_pct"] == pytest.approx(200)
    assert (table["verdict"] == "unclear").sum() == 5
    assert len(regressions(table, 5.0)) == 1
    same = compare(run(1), run(1))
    assert same.attrs["outcome"] == "unchanged"
    assert same["verdict"].isin(["same", "unclear"]).all()


def test_two_samples_and_averages_are_not_comparable() -> None:
    assert compare(_run("operator", "a", [100, 110]), _run("operator", "a", [300, 320])).attrs["outcome"] == (
        "nothing comparable"
    )
    empty = Builder()
    empty.track("main")
    assert compare(empty.build(), empty.build()).attrs["outcome"] == "nothing comparable"
    assert compare(_run("operator", "a", [100]), empty.build()).attrs["outcome"] == "nothing comparable"
