"""What `help()` shows of the public classes and functions is whole, true, and runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from small_session import write_small_session
from timeline_traces import model_trace

import torchtrt_viz as tv
from torchtrt_viz import analysis
from torchtrt_viz.analysis.catalogue import FRAMES, SESSION_TABLES, TABLES
from torchtrt_viz.analysis.session import rank_operators, request_flow
from torchtrt_viz.formats.perfetto.writer import write_perfetto
from torchtrt_viz.report.html import write_html
from torchtrt_viz.report.session_html import write_session_html

CLASSES = (tv.Trace, tv.Session, tv.Capture, tv.Program, tv.Attachment)
PASSED_ON = {"Session.map"}
"""What passes keyword arguments on to a function of the caller's."""
NO_FRAME = ("analysis.iteration_of", "analysis.plan_graph")
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def _methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    for owner in CLASSES:
        for name in dir(owner):
            value = inspect.getattr_static(owner, name)
            if name.startswith("_") and name != "__call__":
                continue
            if isinstance(value, property):
                value = value.fget
            value = getattr(value, "__func__", value)
            if inspect.isfunction(value):
                yield f"{owner.__name__}.{name}", value


def _functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in analysis.__all__:
        yield f"analysis.{name}", getattr(analysis, name)


METHODS = dict(_methods())
FUNCTIONS = dict(_functions())
PUBLIC = METHODS | FUNCTIONS


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_explicit_and_typed(name: str) -> None:
    for parameter in list(inspect.signature(PUBLIC[name]).parameters.values()):
        if parameter.name in ("self", "cls"):
            continue
        assert parameter.annotation is not inspect.Parameter.empty, parameter
        if name not in PASSED_ON:
            assert parameter.kind is not inspect.Parameter.VAR_KEYWORD, parameter


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_name_every_parameter(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    assert text
    for parameter in inspect.signature(PUBLIC[name]).parameters:
        if parameter in ("self", "cls", "trace", "session", "data"):
            continue
        assert parameter in text, f"{parameter} is not in the docstring"


def _parameters(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Names and defaults of what follows the trace or session."""
    found = list(inspect.signature(function).parameters.values())[1:]
    return [(parameter.name, parameter.default) for parameter in found]


FACADES = {
    **{f"Trace.{name}": table for name, table in TABLES.items()},
    **{
        f"Session.{name}": SESSION_TABLES[name]
        for name in ("operators", "steps", "collectives", "stragglers", "requests")
    },
}


@pytest.mark.parametrize("name", FACADES)
def test_a_methods_parameters_are_those_of_its_analysis(name: str) -> None:
    module, _, function = FACADES[name].function.partition(":")
    made = getattr(__import__(f"torchtrt_viz.analysis.{module}", fromlist=[function]), function)
    assert _parameters(METHODS[name]) == _parameters(made)


@pytest.mark.parametrize(
    ("method", "function", "left_out"),
    [
        (tv.Trace.to_html, write_html, set()),
        (tv.Trace.to_perfetto, write_perfetto, set()),
        (tv.Session.to_html, write_session_html, set()),
        (tv.Session.operators, rank_operators.session_operators, set()),
        (tv.Session.request_events, request_flow.request_events, set()),
    ],
)
def test_a_views_parameters_are_those_of_the_view(
    method: Callable[..., Any], function: Callable[..., Any], left_out: set[str]
) -> None:
    expected = [item for item in _parameters(function) if item[0] not in left_out]
    assert _parameters(method) == expected


@pytest.mark.parametrize(
    ("method", "module", "name", "left_out"),
    [
        (tv.Trace.timeline, "timeline", "Timeline", {"align"}),
        (tv.Trace.explore, "explore", "Explorer", set()),
    ],
)
def test_a_widgets_parameters_are_those_of_the_widget(
    method: Callable[..., Any], module: str, name: str, left_out: set[str]
) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
    widget = getattr(importlib.import_module(f"torchtrt_viz.widgets.{module}"), name)
    expected = [item for item in _parameters(widget) if item[0] not in left_out]
    assert _parameters(method) == expected


def test_a_table_names_every_column_where_it_is_called() -> None:
    """`help(tv.Trace.operators)` shows arguments and columns, each with its unit."""
    for owner, tables in ((tv.Trace, TABLES), (tv.Session, {n: FACADES[f"Session.{n}"] for n in ("steps",)})):
        for name, table in tables.items():
            text = inspect.getdoc(getattr(owner, name)) or ""
            for column in table.schema.columns:
                unit = f", {column.unit}" if column.unit else ""
                assert f"\n{column.name} : {column.dtype}{unit}\n" in text, f"{name}: {column.name}"
    shown = inspect.getdoc(tv.Trace.operators) or ""
    assert "self_ns : int64, ns" in shown
    assert "sort : " not in shown.partition("Columns")[2]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in NO_FRAME])
def test_an_analysis_names_every_column(name: str) -> None:
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    schema = FRAMES[name.removeprefix("analysis.")]
    if name == "analysis.regressions":
        return  # the rows of a comparison
    for column in schema.columns:
        assert column.name in text, column.name


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], dict[str, Any]]:
    """What examples may use."""
    root = tmp_path_factory.mktemp("examples")
    session = tv.load(write_small_session(root))
    trace = model_trace()
    samples = Path(__file__).resolve().parents[2] / "sample_traces"
    fixed = {"tv": tv, "pd": pd, "analysis": analysis, "trace": trace, "session": session, "samples": samples}
    held = [trace for _, trace in session.traces()]  # a session forgets traces that nobody holds
    return lambda: {**fixed, "folder": root, "held": held}


WITH_EXAMPLES = {
    "Trace": tv.Trace,
    "Session": tv.Session,
    **{name: value for name, value in PUBLIC.items() if ">>>" in (value.__doc__ or "")},
}
# Need a loaded program, an engine or a running capture: the tests of captures run these.
NOT_HERE = {"Capture", "Program", "Attachment"}
# Selections and reads of the base classes, and life of things: no frame, nothing to be shown.
PLAIN = {
    "Trace.of", "Trace.measured", "Trace.duration_ns",
    "Session.of", "Session.present",
    "Capture.of", "analysis.iteration_of",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in PUBLIC if name.split(".")[0] not in NOT_HERE])
def test_every_public_function_has_an_example(name: str) -> None:
    if name in PLAIN or ".analysis.runs." in PUBLIC[name].__module__ + ".":
        pytest.skip("needs none, or says its columns by hand")
    assert ">>>" in (PUBLIC[name].__doc__ or "")


@pytest.mark.parametrize("name", [name for name in WITH_EXAMPLES if name.split(".")[0] not in NOT_HERE])
def test_examples_run(name: str, names: Callable[[], dict[str, Any]]) -> None:
    if name in ("Trace.timeline", "Trace.explore"):
        pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
    test = doctest.DocTestParser().get_doctest(
        inspect.getdoc(WITH_EXAMPLES[name]) or "", names(), name, None, 0
    )
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=said.append)
    assert not failed, "".join(said)
