"""The package's door: every name that it lists is there, documented, and no heavier than it must be."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import torchtrt_viz.analysis as analysis


def test_every_listed_name_is_a_documented_function() -> None:
    for name in analysis.__all__:
        value = getattr(analysis, name)
        assert callable(value), name
        assert value.__doc__, name
        assert name in (analysis.__doc__ or ""), f"{name} is not in the package's docstring"


def test_no_module_below_has_the_name_of_an_analysis() -> None:
    """An analysis is a function wherever it is reached from: no module of its name hides it."""
    below = [module.name for module in pkgutil.walk_packages(analysis.__path__, "torchtrt_viz.analysis.")]
    assert len(below) > 40
    assert {name.rpartition(".")[2] for name in below}.isdisjoint(analysis.__all__)


def test_the_door_imports_nothing_heavy() -> None:
    code = (
        "import sys, torchtrt_viz.analysis; print(sorted({'pandas', 'plotly', 'torch'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
