"""The script for a machine with a GPU, on one without: it says what is missing. See also tests/native."""

from __future__ import annotations

import subprocess
import sys


def test_without_a_gpu_the_script_says_so_and_ends_with_status_2(capture_module, root):
    if capture_module.TENSORRT_ENGINE:
        import pytest

        pytest.skip("this build has the TensorRT engine: run the script itself")
    script = root / "benchmarks/gpu/check_async.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("not run: this build of torchtrt_viz has no TensorRT engine")
    assert "TENSORRT_INCLUDE_DIR" in done.stderr
    assert done.stdout == ""
