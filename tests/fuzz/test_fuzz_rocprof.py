"""Mutated recordings of rocprofv3 and profiles of ONNX Runtime load, or are refused, in bounded memory.

TORCHTRT_VIZ_FUZZ_INPUTS makes the runs longer; one that hangs runs into the limit of every test (--timeout).
Half an hour of one form, on files of your own as well:

    PYTHONPATH=. python tests/fuzz/rocprof_loop.py SEED 1800s json FILE...   # or 3, 4, onnxruntime
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from onnxruntime_profiles import device_event, node, session_event, stats, write_profile
from rocprof_writer import FORMS, Process, write

INPUTS = os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "40")


def seeds(form: str, folder: Path) -> list[Path]:
    """Write the files that are mutated."""
    if form == "onnxruntime":
        shapes = [{"float": [1, 8]}, {"int64": [2]}]
        events = [
            session_event("session_initialization", 1, 20),
            session_event("model_run", 100, 90),
            node("loop", 110, 50, "Loop", "CPUExecutionProvider", shapes),
            node(
                "inner",
                115,
                46,
                "MatMul",
                "CUDAExecutionProvider",
                args={"thread_scheduling_stats": stats(1)},
            ),
            device_event(
                "gemm", 120, 7, stream="7", parent_name="inner_kernel_time", op_name="MatMul", grid_x="4"
            ),
            device_event("copy", 130, 7, stream="8", op_name="MatMul"),
            node("fused", 170, 10, "TRTKernel_1", "TensorrtExecutionProvider"),
            node("a", 181, 1, "Relu", what="fence_before"),
        ]
        return [write_profile(folder / "profile.json", events)]
    out = []
    for pid in (100, 200):
        process = Process(pid)
        process.marker("step", 100, 2000, 1, pid)
        process.marker("here", 150, 150, 2, pid, "roctxMarkA")
        process.call("hipLaunchKernel", 200, 260, 4, pid, args=[("grid", "2")])
        process.kernel("gemm", 300, 800, 4, pid, stream=5)
        process.copy(True, 310, 360, 6, pid)
        process.memory(False, 30, 80, 0x1000, 500, id=8, tid=pid)
        process.memory(True, 1600, 1650, 0x1000, id=9, tid=pid)
        process.counter(0, "SQ_WAVES", 2.5)
        out.append(process)
    many = Process(300)
    for at in range(200):
        many.kernel("small", 10 * at + 1, 10 * at + 6, at, 300, queue=at % 3)
    first, second = folder / "two", folder / "many"
    for each in (first, second):
        each.mkdir()
    return [write(form, first, out), write(form, second, [many])]


@pytest.mark.fuzz
@pytest.mark.parametrize("form", [*FORMS, "onnxruntime"])
def test_mutated_recordings_load_or_are_refused(form: str, tmp_path: Path) -> None:
    loop = Path(__file__).with_name("rocprof_loop.py")
    paths = map(str, seeds(form, tmp_path))
    done = subprocess.run(
        [sys.executable, str(loop), "one", INPUTS, form, *paths], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    loaded, refused = map(int, done.stdout.split())
    assert loaded + refused == int(INPUTS)
    assert loaded > int(INPUTS) // 20
