"""The capture panel: options, start and stop in the right thread, errors shown and not raised."""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from types import SimpleNamespace

import pytest
from timeline_traces import model_trace

pytest.importorskip("ipywidgets", reason="ipywidgets is not installed (extra lab)")
pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")

from torchtrt_viz.capture.options import capture_options, options_table
from torchtrt_viz.errors import CaptureActiveError, OptionError
from torchtrt_viz.magic.panel import CapturePanel

capture_module = import_module("torchtrt_viz.captures")


@pytest.fixture
def captures(monkeypatch):
    """Captures that record where they were started and stopped, in place of real ones."""
    made = []

    def fake(**options):
        capture_options(options)  # refuses what the real one refuses
        one = SimpleNamespace(
            options=options,
            state="new",
            problems=[],
            wall_seconds=1.5,
            trace=model_trace(steps=1),
            threads=[],
        )

        def move(state):
            one.state = state
            one.threads.append(threading.get_ident())

        one.start = lambda: move("running")
        one.stop = lambda: move("stopped")
        made.append(one)
        return one

    monkeypatch.setattr(capture_module, "profile", fake)
    return made


def test_every_option_of_a_capture_has_a_field_with_its_help():
    panel = CapturePanel()
    assert list(panel.fields) == [option.name for option in options_table()]
    assert panel.fields["level"].tooltip == options_table()[0].help
    capture_options(panel.options)


def test_start_and_stop_show_the_result(captures):
    panel = CapturePanel()
    panel.fields["level"].value = "layers"
    panel.start_button.click()
    assert captures[0].options["level"] == "layers"
    assert (panel.start_button.disabled, panel.stop_button.disabled) == (True, False)
    assert panel.fields["level"].disabled
    panel.stop_button.click()
    assert captures[0].state == "stopped"
    assert panel.trace is captures[0].trace
    assert panel.result.children[0].trace is panel.trace
    assert (panel.start_button.disabled, panel.stop_button.disabled) == (False, True)
    assert "spans" in panel.status.value


def test_wrong_options_show_in_the_panel(captures, monkeypatch):
    panel = CapturePanel()

    def refuse(**options):
        raise OptionError("path_prefix", "<b>", "a folder")

    monkeypatch.setattr(capture_module, "profile", refuse)
    panel.start_button.click()
    assert "option &#x27;path_prefix&#x27;" in panel.status.value
    assert "<b>" not in panel.status.value
    assert panel.capture is None
    assert panel.start_button.disabled is False


def test_another_capture_that_runs_is_told(captures, monkeypatch):
    def busy(**options):
        def start():
            raise CaptureActiveError("a capture is running already")

        return SimpleNamespace(start=start)

    monkeypatch.setattr(capture_module, "profile", busy)
    panel = CapturePanel()
    panel.start_button.click()
    assert "running already" in panel.status.value


def test_problems_are_not_hidden(captures):
    panel = CapturePanel()
    panel.start()
    captures[0].problems.append("an engine could not be reached")
    panel.stop()
    assert "an engine could not be reached" in panel.status.value


def test_an_empty_capture_says_what_to_do(captures):
    panel = CapturePanel()
    panel.start()
    captures[0].trace = captures[0].trace.select([])
    panel.stop()
    assert "run something between" in panel.result.children[0].value


def test_clicks_in_another_thread_act_in_the_one_that_made_the_panel(captures):
    """Torch records the thread that starts it; a lab delivers clicks in a subshell's thread."""

    async def notebook():
        panel = CapturePanel()
        for button in (panel.start_button, panel.stop_button):
            clicked = threading.Thread(target=button.click)
            clicked.start()
            clicked.join()
            await asyncio.sleep(0.05)
        return panel

    panel = asyncio.run(notebook())
    assert captures[0].threads == [threading.get_ident()] * 2
    assert panel.trace is captures[0].trace


def test_sidecar_files_need_a_format_that_writes_them():
    panel = CapturePanel()
    assert panel.fields["path_prefix"].disabled
    panel.fields["format"].value = "trex"
    assert not panel.fields["path_prefix"].disabled
