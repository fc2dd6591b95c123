"""Arrays and streams as an engine takes them, and where TensorRT's libraries are looked for."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from torchtrt_viz.capture.engine import _memory, _stream
from torchtrt_viz.errors import CaptureError, OptionError
from torchtrt_viz.runtime import tensorrt_libraries


def on_device(**facts):
    interface = {"data": (4096, False), "shape": (2, 3), "typestr": "<f2", "strides": None, "version": 3}
    return SimpleNamespace(__cuda_array_interface__={**interface, **facts})


def test_host_arrays_are_described_as_they_lie_in_memory():
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert _memory(array, "x")[0] == (array.ctypes.data, "int16", [2, 3], False, 12)
    turned, kept = _memory(array.T, "x")
    assert turned[2] == [3, 2]
    assert kept.tolist() == array.T.tolist()
    assert kept.flags.c_contiguous
    scalar = np.float32(2)
    assert _memory(scalar, "x")[0][1:4] == ("float32", [], False)


def test_outputs_have_to_be_memory_that_can_be_written():
    array = np.zeros((2, 3), np.float32)
    assert _memory(array, "y", writable=True)[0][0] == array.ctypes.data
    for wrong in (array.T, [1.0], np.broadcast_to(array, (2, 2, 3))):
        with pytest.raises(CaptureError, match="output 0 has to be a contiguous, writable numpy array"):
            _memory(wrong, "output 0", writable=True)


def test_device_arrays_are_taken_by_their_interface():
    array = on_device()
    assert _memory(array, "x") == ((4096, "float16", [2, 3], True, 12), array)
    assert _memory(on_device(strides=(6, 2)), "x")[0][4] == 12
    assert _memory(on_device(shape=(0, 3), data=(0, False)), "x")[0] == (0, "float16", [0, 3], True, 0)
    with pytest.raises(CaptureError, match="input 1 is not contiguous"):
        _memory(on_device(strides=(2, 4)), "input 1")
    with pytest.raises(CaptureError, match="read-only"):
        _memory(on_device(data=(4096, True)), "output 0", writable=True)
    assert _memory(on_device(data=(4096, True)), "x")[0][0] == 4096


def test_streams_come_as_handles_or_objects():
    assert _stream(None) == 0
    assert _stream(77) == 77
    assert _stream(SimpleNamespace(cuda_stream=88)) == 88
    assert _stream(SimpleNamespace(__cuda_stream__=lambda: (0, 99))) == 99
    # the default stream is a stream: only None means that there is none
    assert _stream(0) == _stream(SimpleNamespace(cuda_stream=0)) == 1
    for wrong in ("s", True, -1, 1.5):
        with pytest.raises(OptionError, match="stream"):
            _stream(wrong)


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Python packages with libraries, as TensorRT's and CUDA's wheels lay them out."""
    for name in (
        "tensorrt_libs/__init__.py",
        "tensorrt_libs/libnvinfer.so.10",
        "nvidia/cu13/lib/libcudart.so.13",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in [name for name in sys.modules if name.split(".")[0] in ("tensorrt_libs", "nvidia")]:
        monkeypatch.delitem(sys.modules, name)
    for variable in (tensorrt_libraries.NVINFER, tensorrt_libraries.CUDART, "LD_LIBRARY_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return tmp_path


def test_libraries_of_packages_are_found(packages):
    expected = {
        tensorrt_libraries.NVINFER: packages / "tensorrt_libs/libnvinfer.so.10",
        tensorrt_libraries.CUDART: packages / "nvidia/cu13/lib/libcudart.so.13",
    }
    assert tensorrt_libraries.point_to_libraries() == expected
    assert os.environ[tensorrt_libraries.NVINFER] == str(expected[tensorrt_libraries.NVINFER])
    assert tensorrt_libraries.point_to_libraries() == {}  # they are set now


def test_what_the_user_has_set_comes_first(packages, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own/libnvinfer.so.10.9").touch()
    os.environ["LD_LIBRARY_PATH"] = f"/nowhere:{tmp_path / 'own'}"
    os.environ[tensorrt_libraries.CUDART] = "/opt/libcudart.so"
    assert tensorrt_libraries.point_to_libraries() == {}
    assert os.environ[tensorrt_libraries.CUDART] == "/opt/libcudart.so"
    assert tensorrt_libraries.NVINFER not in os.environ
