"""The torch operators find torch in their process: in a native program, and where it is missing or too old.

``TORCHTRT_VIZ_OTHER_PYTHON`` names an interpreter with another torch; the native program then runs with its
libtorch too. (The Python tests of the operators run with that torch under that interpreter's own pytest.)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OTHER = "TORCHTRT_VIZ_OTHER_PYTHON"
WITHOUT = "no torch is loaded in this process: import torch, or load libtorch_cpu.so, first"

ASK = """
import ctypes, sys
for path in sys.argv[1:]:
    library = ctypes.CDLL(path)
ask = library.torchtrt_viz_torch_ops_error
ask.restype = ctypes.c_char_p
print((ask() or b"").decode())
"""

# A libtorch with some of the functions.
OLD_TORCH = """
#include <cstdint>
extern "C" std::uint64_t aoti_torch_abi_version() { return (2ull << 56) | (9ull << 48); }
extern "C" int aoti_torch_library_init_fragment(const char*, const char*, unsigned, void**) { return 1; }
"""


@pytest.fixture(scope="module")
def operators(capture_module) -> Path:
    """The library of the operators."""
    return Path(str(capture_module.__file__)).parent / "lib" / "libtorchtrt_viz_torch_ops.so"


@pytest.fixture(scope="module")
def compiler() -> str:
    found = shutil.which("g++")
    if found is None:
        pytest.skip("needs g++")
    return found


def ask(*libraries: Path, code: str = ASK) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, libraries)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_torch_the_library_loads_and_says_what_it_lacks(operators: Path) -> None:
    assert ask(operators) == WITHOUT


def test_a_torch_that_lacks_functions_is_named_with_its_version(
    operators: Path, compiler: str, tmp_path: Path
) -> None:
    torch = tmp_path / "libtorch_cpu.so"
    (tmp_path / "old.cpp").write_text(OLD_TORCH)
    named = f"-Wl,-soname,{torch.name}"
    subprocess.run([compiler, "-shared", "-fPIC", named, "old.cpp", "-o", torch], cwd=tmp_path, check=True)
    said = ask(torch, operators)
    assert said.startswith(f"{torch} (torch 2.9) lacks aoti_torch_library_init_impl, ")
    assert said.endswith(" more functions; torch 2.10 and later have them")


def test_torch_may_be_imported_after_the_library(operators: Path) -> None:
    said = ask(
        operators,
        code=ASK
        + """
import torch
print(ask(), torch.ops.torchtrt_viz.profile_ops_are_ours(), torch.ops.tensorrt.get_profile_format())
from torchtrt_viz.capture import load_torch_ops
assert load_torch_ops().samefile(sys.argv[1])
""",
    )
    assert said.splitlines() == [WITHOUT, "None True perfetto"]


def test_a_second_copy_of_the_library_is_refused_in_words(operators: Path, tmp_path: Path) -> None:
    copy = tmp_path / operators.name
    shutil.copy(operators, copy)
    beside = os.pathsep.join([str(operators.parent), os.environ.get("LD_LIBRARY_PATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", "import torch\n" + ASK, str(operators), str(copy)],
        env={**os.environ, "LD_LIBRARY_PATH": beside},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "torch failed while defining torchtrt_viz::execute_engine" in done.stdout


# -- in a native program ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def blob(capture_module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine of 2x + 1 on a matrix of two rows and four columns."""
    import torch
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    from torchtrt_viz.aot.partitioner import TensorRTPartitioner

    class Net(torch.nn.Module):
        def forward(self, x):
            return 2 * x + 1

    lowered = to_edge_transform_and_lower(
        torch.export.export(Net(), (torch.ones(2, 4),)),
        partitioner=[TensorRTPartitioner()],
        compile_config=EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=True),
    ).exported_program()
    (region,) = [m for m in lowered.graph_module.children() if hasattr(m, "processed_bytes")]
    path = tmp_path_factory.mktemp("blob") / "engine.tr01"
    path.write_bytes(region.processed_bytes)
    return path


@pytest.fixture(scope="module")
def smoke(root: Path, compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("smoke") / "torch_ops_smoke"
    sources = ("tests/torch_ops_smoke", "torch_ops/torch_functions", "torch_ops/torch_values")
    files = [str(root / "capture_ext" / f"{name}.cpp") for name in sources]
    command = [compiler, "-std=c++20", "-O0", f"-I{root / 'capture_ext'}", *files, "-ldl", "-o", program]
    subprocess.run(command, check=True)
    return program


def libtorch_of(python: str) -> Path:
    code = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return Path(done.stdout.strip()) / "lib" / "libtorch_cpu.so"


@pytest.mark.slow
@pytest.mark.parametrize("which", ["this", "other"])
def test_a_native_program_uses_the_operators_with_its_own_libtorch(
    which: str, smoke: Path, operators: Path, blob: Path
) -> None:
    python = sys.executable if which == "this" else os.environ.get(OTHER)
    if python is None:
        pytest.skip(f"{OTHER} names no interpreter with another torch")
    done = subprocess.run(
        [smoke, libtorch_of(python), operators, blob], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [float(value) for value in done.stdout.split()] == [2.0 * i + 1 for i in range(8)]
