"""What noise could turn around is no finding."""

from __future__ import annotations

import numpy as np
import pytest
from trace_builder import Builder

from torchtrt_viz import analysis
from torchtrt_viz.analysis.findings.certainty import leader


def _lead(first: list[int], second: list[int]):
    count = len(first)
    part = np.repeat([0, 1], count)
    return leader(part, np.array(first + second, np.int64), np.tile(np.arange(count), 2), 2)


def test_a_steady_lead_is_certain_and_has_an_interval() -> None:
    found = _lead([60, 61, 59, 60, 60], [40, 39, 41, 40, 40])
    assert found.certain
    assert found.iterations == 5
    assert found.low is not None
    assert found.high is not None
    assert 59 <= found.low <= 60 <= found.high <= 61


def test_one_slow_iteration_makes_no_lead() -> None:
    # the sums are 140 against 100, and four of five iterations say the opposite
    found = _lead([100, 10, 10, 10, 10], [20, 20, 20, 20, 20])
    assert not found.certain
    assert found.low is not None
    assert found.low < 50


@pytest.mark.parametrize(("first", "certain"), [(119, False), (120, True)])
def test_without_iterations_a_lead_has_to_be_clear(first: int, certain: bool) -> None:
    found = leader(np.array([0, 1]), np.array([first, 100]), np.array([-1, -1]), 2)
    assert (found.certain, found.interval) == (certain, "")


def _operators(durations: list[tuple[int, int]]):
    b = Builder()
    main = b.track("main")
    at = 0
    for run, (one, two) in enumerate(durations):
        b.span("Method::execute", at, 1000, main, "method", iteration=run)
        b.span("aten::one", at, one, main, iteration=run)
        b.span("aten::two", at + one, two, main, iteration=run)
        at += 2000
    return b.build()


def test_an_operator_that_leads_by_one_iteration_is_not_named() -> None:
    noisy = _operators([(700, 100), (100, 200), (100, 200), (100, 200), (100, 200)])
    assert noisy.operators()["name"].iloc[0] == "aten::one"
    assert not analysis.explain(noisy, top=20)["finding"].str.startswith("aten::").any()
    steady = _operators([(200, 100)] * 5)
    (text,) = [t for t in analysis.explain(steady, top=20)["finding"] if t.startswith("aten::one")]
    assert "66.7 % of the operators' own time (66.7 to 66.7 % over 5 iterations)." in text
    assert steady.operators()["self_pct"].iloc[0] == pytest.approx(200 / 3)


def test_half_of_the_launches_is_no_majority() -> None:
    def launches(short: int, calls: int) -> list[str]:
        b = Builder()
        main, gpu = b.track("main"), b.stream(7)
        for at in range(calls):
            b.span("cudaLaunchKernel", 1000 * at, 100, main, "runtime", correlation=at + 1)
            b.span("k", 1000 * at + 200, 50 if at < short else 500, gpu, "kernel", correlation=at + 1)
        return analysis.explain(b.build(), top=20)["finding"].to_list()

    assert not any("launching cost" in text for text in launches(54, 100))
    assert any("70 of 100 launches" in text for text in launches(70, 100))
