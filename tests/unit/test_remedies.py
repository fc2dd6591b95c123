"""Errors about what is not installed, or does not fit, advise what helps."""

from __future__ import annotations

import sys
from importlib.metadata import version

import pytest
from faked_packages import hide, pretend

import torchtrt_viz._native as native_package
from torchtrt_viz._native import native
from torchtrt_viz.errors import CaptureError, CompatibilityError, MissingDependencyError, TorchTrtVizError
from torchtrt_viz.runtime import modules, torch_ops, torch_profiler


def test_an_extra_is_named_where_one_installs_the_package():
    error = MissingDependencyError("plotly", "lab", "draw charts")
    assert str(error) == (
        "plotly is needed to draw charts, and is not installed: pip install 'torchtrt-viz[lab]'"
    )
    bare = MissingDependencyError("torch", None, "record torch.profiler activity")
    assert str(bare).endswith("and is not installed: pip install torch")
    assert (bare.package, bare.extra) == ("torch", None)


def test_a_package_that_is_there_and_broken_is_not_called_missing():
    try:
        raise ImportError("libcudart.so.13: cannot open shared object file")
    except ImportError:
        error = MissingDependencyError("torch", "capture", "export a program")
    assert str(error) == (
        "torch is needed to export a program, and cannot be imported (libcudart.so.13: cannot open shared "
        "object file): pip install --force-reinstall torch"
    )
    try:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    except ModuleNotFoundError:
        assert "is not installed" in str(MissingDependencyError("torch", "capture", "export a program"))


# -- the capture extension ---------------------------------------------------------------------------------


def fails_to_load(monkeypatch, error: ImportError) -> None:
    def import_module(name):
        raise error

    monkeypatch.setattr(native_package, "import_module", import_module)


def test_capture_without_executorch_advises_to_install_it(monkeypatch):
    hide(monkeypatch, "executorch")
    fails_to_load(monkeypatch, ImportError("libexecutorch.so: cannot open shared object file"))
    with pytest.raises(MissingDependencyError) as raised:
        native("capture")
    assert str(raised.value) == (
        "executorch is needed to load and run programs, and is not installed: "
        "pip install 'torchtrt-viz[capture]'"
    )
    assert isinstance(raised.value.__cause__, ImportError)
    with pytest.raises(MissingDependencyError, match="executorch"):
        modules.capture_module.__wrapped__()


def test_a_module_that_was_not_built_is_told_from_one_that_does_not_load(monkeypatch):
    name = "torchtrt_viz._native.kineto"
    fails_to_load(monkeypatch, ModuleNotFoundError(f"No module named '{name}'", name=name))
    with pytest.raises(TorchTrtVizError, match="'kineto' of torchtrt_viz is not there: it was not built"):
        native("kineto")
    fails_to_load(monkeypatch, ImportError("undefined symbol: x"))
    with pytest.raises(TorchTrtVizError, match=r"cannot be loaded \(undefined symbol: x\).*C\+\+20 compiler"):
        native("kineto")


@pytest.mark.parametrize(
    ("installed", "fits"), [("1.5.0", True), ("1.5.9+cpu", True), ("1.4.1", False), ("1.50.0", False)]
)
def test_executorch_fits_by_its_minor_version(monkeypatch, tmp_path, installed, fits):  # fmt: skip
    pretend(monkeypatch, tmp_path, "executorch", installed)
    assert version("executorch") == installed
    found = modules.executorch_mismatch({"executorch": "1.5.1"})
    if fits:
        assert found is None
        return
    assert isinstance(found, CompatibilityError)
    assert (found.library, found.built, found.installed) == ("executorch", "1.5.1", installed)
    assert str(found) == (
        f"the capture extension was built against executorch 1.5.1, but executorch {installed} is installed: "
        "another minor version has other C++ classes. pip install 'executorch==1.5.*'"
    )


def test_nothing_of_another_executorch_is_loaded(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "executorch", "1.4.1")
    monkeypatch.setattr(modules, "recorded_build", lambda: {"executorch": "1.5.1"})
    monkeypatch.setattr(modules, "native", lambda name: pytest.fail("the extension was loaded"))
    with pytest.raises(CompatibilityError, match=r"1\.5\.1.*1\.4\.1"):
        modules.capture_module.__wrapped__()


def test_without_a_record_of_the_build_the_module_itself_is_asked(monkeypatch, tmp_path):
    pretend(monkeypatch, tmp_path, "executorch", "1.4.1")
    monkeypatch.setattr(modules, "recorded_build", dict)

    class Module:
        @staticmethod
        def built_with():
            return {"executorch": "1.5.0"}

    monkeypatch.setattr(modules, "native", lambda name: Module)
    with pytest.raises(CompatibilityError, match=r"1\.5\.0.*1\.4\.1"):
        modules.capture_module.__wrapped__()


# -- torch -------------------------------------------------------------------------------------------------


def test_operators_that_miss_functions_of_an_old_torch_say_which_torch_is_needed():
    why = "/x/libtorch_cpu.so (torch 2.9) lacks a, b, c and 9 more functions; torch 2.10 and later have them"
    error = torch_ops._undefined(why, "2.9.1+cu128")
    assert isinstance(error, CompatibilityError)
    assert str(error) == (
        f"the capture extension works with torch>=2.10, but torch 2.9.1+cu128 is installed: {why}. "
        "pip install 'torch>=2.10'"
    )


@pytest.mark.parametrize("release", ["2.10.0", "2.13.0+cpu", "3.0.0a0", "unknown"])
def test_other_failures_of_the_operators_are_not_blamed_on_the_version(release):
    error = torch_ops._undefined("torch failed while defining them", release)
    assert isinstance(error, CaptureError)
    assert "torch failed while defining them" in str(error)
    assert "pip install" not in str(error)


def test_without_torch_captures_name_the_extra_and_serving_names_torch(monkeypatch):
    hide(monkeypatch, "torch")
    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]
    with pytest.raises(MissingDependencyError, match=r"pip install 'torchtrt-viz\[capture\]'$"):
        torch_profiler.check_activities(["cpu"], "capture")
    with pytest.raises(MissingDependencyError, match=r"pip install torch$"):
        torch_profiler.check_activities(["cpu"], None)
    with pytest.raises(MissingDependencyError, match=r"pip install torch$"):
        torch_profiler.warm_up(extra=None)
    with pytest.raises(MissingDependencyError, match=r"load the torch operators.*\[capture\]"):
        torch_ops.load_torch_ops.__wrapped__()


def test_the_example_engine_without_torch_names_torch(monkeypatch):
    from click.testing import CliRunner

    from torchtrt_viz.cli.serve_demo import command

    hide(monkeypatch, "torch")
    for name in [name for name in sys.modules if name.startswith("torchtrt_viz.examples.serving_pd.")]:
        monkeypatch.delitem(sys.modules, name)
    result = CliRunner().invoke(command, [])
    assert isinstance(result.exception, MissingDependencyError)
    assert str(result.exception).endswith("run the example engine, and is not installed: pip install torch")
