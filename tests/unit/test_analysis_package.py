"""The package's door: every name that it lists is there, documented, and no heavier than it must be."""

from __future__ import annotations

import importlib
import subprocess
import sys

import torchtrt_viz.analysis as analysis


def test_every_listed_name_is_a_documented_function() -> None:
    for name in analysis.__all__:
        value = getattr(analysis, name)
        assert callable(value), name
        assert value.__doc__, name
        assert name in (analysis.__doc__ or ""), f"{name} is not in the package's docstring"


def test_no_name_is_a_module_as_well() -> None:
    for name in analysis.__all__:
        try:
            importlib.import_module(f"torchtrt_viz.analysis.{name}")
        except ModuleNotFoundError:
            continue
        raise AssertionError(f"torchtrt_viz.analysis.{name} is a module: the function would be hidden by it")


def test_the_door_imports_nothing_heavy() -> None:
    code = (
        "import sys, torchtrt_viz.analysis; print(sorted({'pandas', 'plotly', 'torch'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
