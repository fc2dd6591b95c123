"""Torch-TensorRT's profiling operators and ours: whoever is loaded second finds room."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = ("path_prefix", "format", "execution")

# What a Torch-TensorRT with global profiling controls does while it is imported.
UPSTREAM = """
import torch

values = {"path_prefix": "", "format": "perfetto", "execution": False}
library = torch.library.Library("tensorrt", "DEF")
for name, type in (("path_prefix", "str"), ("format", "str"), ("execution", "bool")):
    library.define(f"set_profile_{name}({type} value) -> ()")
    library.define(f"get_profile_{name}() -> {type}")
    library.impl(f"set_profile_{name}", lambda value, name=name: values.__setitem__(name, value),
                 "CompositeExplicitAutograd")
    library.impl(f"get_profile_{name}", lambda name=name: values[name], "CompositeExplicitAutograd")
"""

# The same as a library of C++.
LIBRARY = """
#include <torch/library.h>
#include <string>
namespace {
std::string prefix, format = "perfetto";
bool execution = false;
void set_prefix(std::string value) { prefix = "upstream:" + value; }
void set_format(std::string value) { format = value; }
void set_execution(bool value) { execution = value; }
std::string get_prefix() { return prefix; }
std::string get_format() { return format; }
bool get_execution() { return execution; }
}
TORCH_LIBRARY(tensorrt, m) {
  m.def("set_profile_path_prefix", set_prefix);
  m.def("set_profile_format", set_format);
  m.def("set_profile_execution", set_execution);
  m.def("get_profile_path_prefix", get_prefix);
  m.def("get_profile_format", get_format);
  m.def("get_profile_execution", get_execution);
}
"""

START = """
import sys
import torch
from torchtrt_viz.capture import load_torch_ops
ours = lambda: torch.ops.torchtrt_viz.profile_ops_are_ours()
ops = torch.ops.tensorrt
"""


@pytest.fixture(autouse=True)
def _built(capture_module):
    library = Path(str(capture_module.__file__)).parent / "lib" / "libtorchtrt_viz_torch_ops.so"
    if not library.is_file():
        pytest.skip("the torch operators are not built")


@pytest.fixture
def run(tmp_path, root):
    """Run Python in a fresh process that finds the package ``torch_tensorrt`` with the given content."""

    def run(code: str, package: str | None = UPSTREAM) -> None:
        if package is not None:
            (tmp_path / "torch_tensorrt").mkdir()
            (tmp_path / "torch_tensorrt" / "__init__.py").write_text(package)
        paths = [str(tmp_path), *sys.path]
        done = subprocess.run(
            [sys.executable, "-c", START + code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Warning" not in done.stderr, done.stderr

    return run


def test_torch_tensorrt_imported_after_ours_takes_over_with_our_settings(run):
    run("""
load_torch_ops()
assert ours()
ops.set_profile_path_prefix("/profiles")
ops.set_profile_format("trex")
ops.set_profile_execution(True)
import torch_tensorrt
assert not ours()
assert torch_tensorrt.values == {"path_prefix": "/profiles", "format": "trex", "execution": True}
ops.set_profile_execution(False)
assert torch_tensorrt.values["execution"] is False and ops.get_profile_execution() is False
from torchtrt_viz._native import native
assert native("capture").get_profile()["execution"] is False  # our engines follow
assert str(ops.set_profile_execution.default) == "tensorrt.set_profile_execution.default"
from torchtrt_viz.capture.torchtrt_switch import TorchTensorRTSwitch
assert TorchTensorRTSwitch.operators() is not None
""")


def test_a_refused_value_is_a_value_error_and_changes_nothing(run):
    run(
        """
load_torch_ops()
ops.set_profile_format("trex")
ops.set_profile_path_prefix("/profiles")
for name, values in (("format", ("json", "", "etdump")), ("path_prefix", ("", "a" * 5000))):
    for value in values:
        try:
            getattr(ops, f"set_profile_{name}")(value)
        except ValueError as error:
            assert str(error).startswith(f"option 'profile {name.replace('_', ' ')}' cannot be "), error
            assert "\\n" not in str(error)
        else:
            raise AssertionError((name, value))
for wrong in (3, None, ("trex",)):
    try:
        ops.set_profile_format(wrong)
    except (RuntimeError, TypeError):
        continue
    raise AssertionError(wrong)
assert ops.get_profile_format() == "trex" and ops.get_profile_path_prefix() == "/profiles"
ops.set_profile_format(profile_format="perfetto")
assert ops.get_profile_format() == "perfetto"
assert str(ops.set_profile_format.default) == "tensorrt.set_profile_format.default"
""",
        None,
    )


def test_setters_refuse_again_after_ours_came_back(run):
    run(
        """
load_torch_ops()
import torch_tensorrt
assert ours()
try:
    ops.set_profile_format("json")
except ValueError:
    pass
else:
    raise AssertionError("json was taken")
""",
        "import torch",
    )


def test_an_engine_that_is_none_is_refused(run):
    run(
        """
load_torch_ops()
execute = torch.ops.torchtrt_viz.execute_engine
for blob, said in (
    (torch.zeros(3), "engine 'x' is a contiguous uint8 tensor in host memory: a TR01 or TR02 blob"),
    (torch.zeros(40, dtype=torch.uint8), "engine 'x': "),
):
    try:
        execute([torch.ones(2)], blob, "x")
    except (ValueError, RuntimeError) as error:  # torch 2.15 makes a RuntimeError of every failure
        assert said in str(error), error
    else:
        raise AssertionError(said)
assert torch.ops.torchtrt_viz.release_engines() == 0
""",
        None,
    )


def test_untouched_settings_are_not_handed_on(run):
    run("""
load_torch_ops()
import torch_tensorrt
assert not ours()
assert torch_tensorrt.values == {"path_prefix": "", "format": "perfetto", "execution": False}
""")


def test_torch_tensorrt_imported_before_ours_keeps_its_own(run):
    run("""
import torch_tensorrt
load_torch_ops()
assert not ours()
ops.set_profile_execution(True)
assert torch_tensorrt.values["execution"] is True
from torchtrt_viz._native import native
from torchtrt_viz.runtime.torchtrt_takeover import theirs
assert native("capture").get_profile()["execution"] is True
theirs(torch, "set_profile_execution")(False)
assert torch_tensorrt.values["execution"] is False and native("capture").get_profile()["execution"] is True
""")


def test_a_torch_tensorrt_without_such_operators_leaves_ours(run):
    run(
        """
load_torch_ops()
ops.set_profile_execution(True)
import torch_tensorrt
import torch_tensorrt.part, importlib.resources
assert torch_tensorrt.__file__ and importlib.resources.files(torch_tensorrt).is_dir()
assert ours() and ops.get_profile_execution() is True
ops.set_profile_execution(False)
from torchtrt_viz._native import native
assert native("capture").get_profile()["execution"] is False
""",
        "import sys, types\nsys.modules['torch_tensorrt.part'] = types.ModuleType('part')\n",
    )


def test_an_import_that_fails_leaves_ours(run):
    run(
        """
load_torch_ops()
ops.set_profile_execution(True)
try:
    import torch_tensorrt
except OSError as error:
    assert "libnvinfer" in str(error)
else:
    raise AssertionError("the import went through")
assert ours() and ops.get_profile_execution() is True
""",
        "raise OSError('libnvinfer.so.10: cannot open shared object file')\n",
    )


def test_an_operator_that_was_kept_calls_the_new_one_or_fails_cleanly(run):
    run("""
load_torch_ops()
kept = ops.get_profile_execution
packet, overload = kept, kept.default
assert kept() is False
torch.ops.torchtrt_viz.withdraw_profile_ops()
for stale in (packet, overload):
    try:
        stale()
    except (RuntimeError, NotImplementedError):
        continue
    raise AssertionError("a withdrawn operator was called")
assert torch.ops.torchtrt_viz.define_profile_ops()
from torchtrt_viz.runtime.torchtrt_takeover import stepping_aside
with stepping_aside():
    import torch_tensorrt
ops.set_profile_execution(True)
assert packet() is True and overload() is True
""")


def test_doctor_tells_whose_they_are(run):
    run("""
from torchtrt_viz.runtime.operator_owner import Owner, find_owner
assert find_owner() == Owner("torch_tensorrt"), find_owner()  # of a new process, which imports it first
load_torch_ops()
assert find_owner() == Owner("torchtrt_viz")  # here it is not imported
""")


def test_doctor_tells_a_torch_tensorrt_that_cannot_be_imported(run):
    run(
        """
from torchtrt_viz.runtime.operator_owner import Owner, find_owner
assert find_owner() == Owner("torchtrt_viz", "", "libnvinfer.so.10: cannot open"), find_owner()
""",
        "raise OSError('libnvinfer.so.10: cannot open\\nand more')\n",
    )


@pytest.mark.slow
def test_a_library_that_defines_them_loads_after_ours(run, root, tmp_path):
    import torch
    from torch.utils.cpp_extension import include_paths

    (tmp_path / "upstream.cpp").write_text(LIBRARY)
    lib = Path(torch.__file__).parent / "lib"
    command = ["g++", "-std=c++20", "-O0", "-shared", "-fPIC", "upstream.cpp", "-o", "libtorchtrt_runtime.so"]
    command += [f"-I{path}" for path in include_paths()]
    command += [
        f"-L{lib}",
        "-ltorch_cpu",
        "-lc10",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    loads = {
        "load_library": "torch.ops.load_library('libtorchtrt_runtime.so')",
        "classes": "torch.classes.load_library('libtorchtrt_runtime.so')",
        "ctypes": "import torch_tensorrt",
    }
    package = "import ctypes\nctypes.CDLL('./libtorchtrt_runtime.so')\n"
    for number, load in enumerate(loads.values()):
        run(
            f"""
load_torch_ops()
ops.set_profile_path_prefix("/profiles")
{load}
assert not ours()
assert ops.get_profile_path_prefix() == "upstream:/profiles"
ops.set_profile_format("trex")
assert ops.get_profile_format() == "trex"
from torchtrt_viz._native import native
assert native("capture").get_profile()["format"] == "trex"  # one switch for both
""",
            package if number == 0 else None,
        )
