"""The bar of long loads: quiet at first, then there, and closed with the load."""

from __future__ import annotations

import pytest
from fake_clock import FakeClock
from rank_traces import simple_events, trace_json

import torchtrt_viz as tv
from torchtrt_viz.formats.io import progress
from torchtrt_viz.formats.io.progress import watching


@pytest.fixture
def clock(monkeypatch):
    made = FakeClock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_a_short_load_shows_nothing(clock, capsys):
    with watching(True) as tell:
        tell(10, 100)
        clock.sleep(0.9)
        tell(90, 100)
    assert tell._bar is None
    assert capsys.readouterr() == ("", "")


def test_a_long_load_shows_a_bar_that_goes_with_it(clock):
    with watching(True) as tell:
        clock.sleep(1.5)
        tell(25, 100)
        (task,) = tell._bar.tasks
        assert (task.completed, task.total) == (25, 100)
        assert tell._bar.live.is_started
        tell(60, 200)
        assert (task.completed, task.total) == (60, 200)
    assert not tell._bar.live.is_started


@pytest.mark.parametrize("asked", [None, False])
def test_nobody_is_told_when_nobody_asked(asked):
    with watching(asked) as tell:
        assert tell is None


def test_a_function_is_told_as_it_is(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(trace_json(simple_events()))
    seen = []
    tv.load(path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)
