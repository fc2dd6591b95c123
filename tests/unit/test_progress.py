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
    clock.sleep(5)
    tell(95, 100)  # a rank is read after the session's load
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


def test_by_default_nothing_is_shown_where_stderr_is_no_terminal(clock, capsys):
    with watching(progress.WHERE_SEEN) as tell:
        assert tell is None
    assert capsys.readouterr() == ("", "")


def test_by_default_a_terminal_shows_a_line(clock, monkeypatch):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with watching(progress.WHERE_SEEN) as tell:
        clock.sleep(1.5)
        tell(25, 100)
        assert tell._bar.live.is_started
    assert not tell._bar.live.is_started


def test_a_notebook_shows_a_bar_in_the_cell_and_clears_it(clock, monkeypatch):
    display = pytest.importorskip("IPython.display", reason="IPython is not installed (extra lab)")
    seen = []

    class Handle:
        def update(self, bundle, raw):
            seen.append(bundle)

    def show(bundle, raw, display_id):
        seen.append(bundle)
        return Handle()

    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    monkeypatch.setattr(display, "display", show)
    with watching(progress.WHERE_SEEN) as tell:
        tell(10_000_000, 100_000_000)  # the first second is quiet
        clock.sleep(1.5)
        tell(25_000_000, 100_000_000)
        tell(26_000_000, 100_000_000)  # too soon after
        clock.sleep(0.5)
        tell(50_000_000, None)
    clock.sleep(5)
    tell(60_000_000, None)  # a rank is read after the session's load
    assert [bundle["text/plain"] for bundle in seen] == [
        "loading: 25 MB of 100 MB",
        "loading: 50 MB",
        "",
    ]
    assert 'value="0.250"' in seen[0]["text/html"]
    assert "value=" not in seen[1]["text/html"]


def test_load_shows_progress_where_it_is_seen_unless_told_otherwise(tmp_path, monkeypatch):
    from torchtrt_viz import files

    asked = []
    monkeypatch.setattr(files, "load_data", lambda *_, progress, **__: asked.append(progress))
    monkeypatch.setattr(files.Trace, "of", lambda data: data)
    for given in ({}, {"progress": False}, {"progress": True}):
        files.load(tmp_path, **given)
    assert asked == [progress.WHERE_SEEN, False, True]
