"""The TensorRT engine behind every door of the package, in a build against the simulated device."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from native_build import build

pytestmark = [pytest.mark.native, pytest.mark.slow, pytest.mark.timeout(1800)]

# A program with a plan for the simulated device, run with the engine's times in every place where they go.
PROGRAM = """
import json, sys
from pathlib import Path
import numpy as np, torch
import torchtrt_viz as tv
from executorch.exir.backend.backend_details import PreprocessResult
from torchtrt_viz._native import native
from torchtrt_viz.capture import Engine, load_torch_ops
from torchtrt_viz.aot import backend
from torchtrt_viz.formats.engine.blob import pack_blob

PLAN = b"ftrt\\ninput x float32 2x4\\noutput y float32 2x4\\nlayer conv 150000\\nlayer relu 100000\\n"
BINDINGS = [{"name": "x", "dtype": "float32", "shape": [2, 4], "is_input": True},
            {"name": "y", "dtype": "float32", "shape": [2, 4], "is_input": False}]
BLOB = pack_blob(PLAN, io_bindings=BINDINGS)
folder = Path(sys.argv[1])
backend.TensorRTBackend.preprocess = staticmethod(lambda *_: PreprocessResult(processed_bytes=BLOB))

class Net(torch.nn.Module):
    def forward(self, x):
        return 2 * x + 1

x = torch.arange(8, dtype=torch.float32).reshape(2, 4)
exported = tv.export_program(Net(), (x,), folder / "net.pte", etrecord=False)
found = {}

def facts(trace):
    spans = trace.spans
    gpu = spans[spans["domain"] == "gpu"]
    return {
        "gpu": sorted(zip(gpu["name"], gpu["kind"], gpu["dur_ns"].astype(int).tolist())),
        "host": sorted(set(spans["name"][(spans["domain"] == "host") & (spans["kind"] == "phase")])),
        "tracks": sorted(set(trace.tracks["domain"].to_numpy()[gpu["track"].to_numpy()].tolist())),
        "phases": sorted(trace.phases()["phase"]),
        "gpu_ns": [None if value is None else int(value)
                   for value in trace.delegates()["gpu_ns"].astype(object).where(lambda v: v.notna(), None)],
    }

for level in ("delegate", "phases", "layers"):
    program = tv.Program(exported.path)
    with tv.profile(level=level, activities="none") as capture:
        y = program(x)
    assert np.array_equal(np.asarray(y), (2 * x + 1).numpy()), (level, y)
    found["etdump", level] = facts(capture.trace)
    program.close()

assert native("capture").TENSORRT_ENGINE and native("capture").tensorrt_problem() == ""
load_torch_ops()
blob = torch.frombuffer(bytearray(BLOB), dtype=torch.uint8)
for level in ("delegate", "phases", "layers"):
    with tv.profile(level=level, activities="none") as capture:
        (y,) = torch.ops.torchtrt_viz.execute_engine([x], blob, "package")
    assert torch.equal(y, 2 * x + 1)
    found["recording", level] = facts(capture.trace)
torch.ops.torchtrt_viz.release_engines()

native("capture").set_profile(
    execution=True, level="phases", format="perfetto", path_prefix=str(folder / "package"))
torch.ops.torchtrt_viz.execute_engine([x], blob, "package")
torch.ops.torchtrt_viz.release_engines()
native("capture").reset_profile()
found["package", "phases"] = facts(tv.load(folder / "package"))
with Engine(PLAN, name="direct", level="phases", format="perfetto", path_prefix=folder / "direct") as engine:
    (y,) = engine(x.numpy())
    assert np.array_equal(y, (2 * x + 1).numpy())
    room = np.zeros((2, 4), np.float32)
    assert engine(x.numpy(), out=[room])[0] is room and np.array_equal(room, y)
    for wrong, message in (
        (lambda: engine(x.numpy(), out=[np.zeros(3, np.float32)]), "takes 32 bytes"),
        (lambda: engine(x.numpy(), out=[np.zeros((2, 4))]), "is float32, the memory given for it is float64"),
        (lambda: engine(x.numpy().astype(int)), "the engine takes float32"),
        (lambda: engine(), "takes 1 inputs, got 0"),
        (lambda: engine(x.numpy(), stream="s"), "stream"),
    ):
        try:
            wrong()
        except tv.TorchTrtVizError as error:
            assert message in str(error), error
        else:
            raise AssertionError(message)
    assert engine.info["runtime"] == "tensorrt" and engine.inputs[0]["shape"] == [2, 4]
try:
    engine(x.numpy())
except tv.TorchTrtVizError as error:
    assert "closed" in str(error)
found["direct", "phases"] = facts(tv.load(folder / "direct"))
print(json.dumps({" ".join(key): value for key, value in found.items()}))
"""

GPU = ["torchtrt.enqueue_gpu", "phase", 250_000]
LAYERS = [["conv", "layer", 150_000], ["relu", "layer", 100_000], GPU]


@pytest.fixture(scope="module")
def simulated(root, tmp_path_factory):
    """Environment of a process that imports the package with the TensorRT engine on the simulated device."""
    pytest.importorskip("executorch", reason="the delegate needs executorch")
    folder = tmp_path_factory.mktemp("simulated")
    headers = root / "capture_ext/tests/standins/include"
    build(
        root,
        folder / "build",
        (
            "torchtrt_viz_executorch",
            "torchtrt_viz_torch_ops",
            "native_capture",
            "standin_nvinfer",
            "standin_cudart",
        ),
        "-DTORCHTRT_VIZ_PYTHON=ON",
        f"-DTORCHTRT_VIZ_NVINFER_INCLUDE={headers}",
        f"-DTORCHTRT_VIZ_CUDA_INCLUDE={headers}",
    )
    import torchtrt_viz._native as installed

    package = folder / "package/torchtrt_viz"
    package.mkdir(parents=True)
    for entry in (root / "torchtrt_viz").iterdir():
        if entry.name not in ("_native", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    shutil.copytree(next(iter(installed.__path__)), package / "_native")
    shutil.copytree(folder / "build/_native", package / "_native", dirs_exist_ok=True)
    standins = folder / "build/tests/standins"
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(package.parent), *(p for p in sys.path if p)]),
        "TORCHTRT_VIZ_NVINFER": str(standins / "libstandin_nvinfer.so"),
        "TORCHTRT_VIZ_CUDART": str(standins / "libstandin_cudart.so"),
    }


def _run(environment: dict[str, str], folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def test_gpu_time_of_an_enqueue_is_in_every_artifact_from_level_phases_on(simulated, tmp_path):
    done = _run(simulated, tmp_path, "-c", PROGRAM, str(tmp_path))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for where in ("etdump", "recording"):
        assert found[f"{where} delegate"]["gpu"] == []
        assert found[f"{where} phases"]["gpu"] == [GPU]
        assert found[f"{where} layers"]["gpu"] == LAYERS
    assert found["package phases"]["gpu"] == [GPU]
    assert found["direct phases"]["gpu"] == [GPU, GPU]
    for name, facts in found.items():
        assert "torchtrt.enqueue_gpu" not in facts["host"] + facts["phases"], name
        if not name.endswith("delegate"):
            assert "torchtrt.enqueue_host" in facts["host"], name
            assert facts["tracks"] == ["gpu"], name
        if name != "package phases" and not name.endswith("delegate"):  # a package's files have no calls
            assert facts["gpu_ns"] == [500_000 if name.startswith("direct") else 250_000], name


def test_the_gpu_script_passes_on_the_simulated_device(simulated, root, tmp_path):
    script = str(root / "benchmarks/gpu/check_async.py")
    done = _run(simulated, tmp_path, script, "--simulated")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all checks hold" in done.stdout
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if "alone," in line}
    assert [rows[level][3] for level in ("off", "delegate", "phases", "layers")] == [
        "-",
        "-",
        "300.0",
        "300.0",
    ]


def test_the_gpu_script_notices_a_profiler_that_waits(simulated, root, tmp_path):
    script = str(root / "benchmarks/gpu/check_async.py")
    done = _run({**simulated, "STANDINS_EMIT": "1"}, tmp_path, script, "--simulated")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "layers: 8 of 8 calls waited for the device" in done.stdout
    assert "layers, alone:" in done.stdout
    assert "phases:" not in done.stdout


def test_the_gpu_script_says_what_this_machine_lacks(simulated, root, tmp_path):
    script = str(root / "benchmarks/gpu/check_async.py")
    done = _run({**simulated, "TORCHTRT_VIZ_CUDART": "libcudart-of-nobody.so"}, tmp_path, script)
    assert done.returncode == 2
    assert "libcudart-of-nobody.so" in done.stderr
