"""The examples in the docstrings of captures and programs run as they are written."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import pytest

import torchtrt_viz as tv

DOCUMENTED = {
    "profile": tv.profile,
    "last": tv.last,
    **{
        f"{owner.__name__}.{name}": value
        for owner in (tv.Capture, tv.Program)
        for name, value in inspect.getmembers(owner)
        if not name.startswith("_") and ">>>" in (inspect.getdoc(value) or "")
    },
    "Program": tv.Program,
}


@pytest.fixture(scope="module")
def names(demo, tmp_path_factory) -> dict[str, Any]:
    """What the examples may use."""
    program = tv.Program(demo.path, level="layers")
    folder = tmp_path_factory.mktemp("examples")
    return {"tv": tv, "program": program, "path": demo.path, "inputs": demo.inputs, "folder": folder}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_run(name: str, names: dict[str, Any]) -> None:
    program, inputs = names["program"], names["inputs"]
    program(*inputs)
    with tv.profile(activities="none") as capture:
        program(*inputs)
    test = doctest.DocTestParser().get_doctest(
        inspect.getdoc(DOCUMENTED[name]) or "", {**names, "capture": capture}, name, None, 0
    )
    assert test.examples
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not failed, "".join(said)


@pytest.mark.parametrize("owner", [tv.Capture, tv.Program])
def test_what_users_call_has_an_example(owner: type) -> None:
    inner = {"include", "recorded", "closed", "wall_seconds"}  # for captures themselves, or plain values
    for name, value in inspect.getmembers(owner):
        if not name.startswith("_") and name not in inner and (inspect.isfunction(value)):
            assert ">>>" in (inspect.getdoc(value) or ""), name
