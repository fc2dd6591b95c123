"""The CUDA runtime by ctypes: streams, events and arrays of the device, without torch.

The tests' simulated device has the same functions, so that the checks that are written on top of this module
run on both.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

NOT_READY = 600
_NON_BLOCKING, _TO_DEVICE, _TO_HOST = 1, 1, 2


class NoDevice(Exception):
    """There is no GPU, or a library that is needed is not there."""


class Array:
    """A contiguous array in device memory."""

    def __init__(self, cuda: Cuda, shape: tuple[int, ...], dtype: str = "float32") -> None:
        self._cuda = cuda
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.nbytes = max(int(np.prod(shape)) * self.dtype.itemsize, 1)
        self.address = ctypes.c_void_p()
        cuda.call("cudaMalloc", ctypes.byref(self.address), ctypes.c_size_t(self.nbytes))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.address.value, False),
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": None,
            "version": 3,
        }

    def put(self, values: np.ndarray, stream: int) -> None:
        """Copy from the host, and wait for it."""
        values = np.ascontiguousarray(values, self.dtype)
        self._copy(self.address, values.ctypes.data, _TO_DEVICE, stream)

    def get(self, stream: int) -> np.ndarray:
        """Copy to the host, behind what ``stream`` holds."""
        values = np.empty(self.shape, self.dtype)
        self._copy(values.ctypes.data, self.address, _TO_HOST, stream)
        return values

    def _copy(self, to: Any, source: Any, kind: int, stream: int) -> None:
        size = ctypes.c_size_t(self.nbytes)
        self._cuda.call(
            "cudaMemcpyAsync", ctypes.c_void_p(getattr(to, "value", to)),
            ctypes.c_void_p(getattr(source, "value", source)), size, kind, ctypes.c_void_p(stream),
        )  # fmt: skip
        self._cuda.wait(stream)

    def free(self) -> None:
        """Give the memory back; nothing may use it any more."""
        self._cuda.call("cudaFree", self.address)


class Cuda:
    """One device. Raises `NoDevice` where there is none."""

    def __init__(self, library: str | None = None) -> None:
        path = library or os.environ.get("TORCHTRT_VIZ_CUDART") or _find_cudart()
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise NoDevice(f"the CUDA runtime library cannot be opened: {error}") from error
        self._library.cudaGetErrorString.restype = ctypes.c_char_p
        self.path = path
        self.simulated = hasattr(self._library, "standins_host_now")
        count = ctypes.c_int()
        error = self._library.cudaGetDeviceCount(ctypes.byref(count))
        if error or not count.value:
            raise NoDevice(f"no CUDA device: {self._text(error) if error else 'none is visible'}")
        if self.simulated:
            self._library.standins_host_now.restype = ctypes.c_int64
        self._scratch: Array | None = None
        self._fills = 1

    def _text(self, error: int) -> str:
        return str(self._library.cudaGetErrorString(error).decode())

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the runtime; an error raises."""
        error = getattr(self._library, name)(*arguments)
        if error:
            raise RuntimeError(f"{name}: CUDA error {error} ({self._text(error)})")

    def symbol(self, name: str) -> Any:
        """Return another function of the library."""
        return getattr(self._library, name)

    def host_ns(self) -> int:
        """Time of the host: real, or the simulated device's own."""
        return int(self._library.standins_host_now()) if self.simulated else time.perf_counter_ns()

    def name(self) -> str:
        """Name of the device."""
        if self.simulated:
            return "simulated device (the tests' stand-ins)"
        try:
            driver = ctypes.CDLL("libcuda.so.1")
            text = ctypes.create_string_buffer(256)
            driver.cuInit(0)
            driver.cuDeviceGetName(text, 256, 0)
            return text.value.decode()
        except OSError:
            return "unknown"

    def stream(self) -> int:
        """Make a stream that does not wait for the default one."""
        stream = ctypes.c_void_p()
        self.call("cudaStreamCreateWithFlags", ctypes.byref(stream), _NON_BLOCKING)
        return int(stream.value or 0)

    def wait(self, stream: int) -> None:
        """Wait for all work of a stream."""
        self.call("cudaStreamSynchronize", ctypes.c_void_p(stream))

    def event(self) -> ctypes.c_void_p:
        """Make an event with a time."""
        event = ctypes.c_void_p()
        self.call("cudaEventCreateWithFlags", ctypes.byref(event), 0)
        return event

    def record(self, event: ctypes.c_void_p, stream: int) -> None:
        """Let the event happen when the stream gets there."""
        self.call("cudaEventRecord", event, ctypes.c_void_p(stream))

    def ready(self, event: ctypes.c_void_p) -> bool:
        """Tell whether the event has happened."""
        error = self._library.cudaEventQuery(event)
        if error not in (0, NOT_READY):
            raise RuntimeError(f"cudaEventQuery: CUDA error {error} ({self._text(error)})")
        return not error

    def elapsed_ns(self, begin: ctypes.c_void_p, end: ctypes.c_void_p) -> int:
        """Time of the device between two events that have happened."""
        ms = ctypes.c_float()
        self.call("cudaEventElapsedTime", ctypes.byref(ms), begin, end)
        return round(ms.value * 1e6)

    def calibrate(self, ms: float) -> float:
        """Find how much work makes the device busy for about ``ms``; return what it takes, in ms."""
        size = 16 << 20
        self._scratch = Array(self, (size,), "uint8")
        stream, begin, end = self.stream(), self.event(), self.event()
        took = 0.0
        for self._fills in (1, 16):  # the first is a warm-up
            self.record(begin, stream)
            self.busy(stream)
            self.record(end, stream)
            self.wait(stream)
            took = self.elapsed_ns(begin, end) / 1e6
        self._fills = max(int(np.ceil(self._fills * ms / max(took, 1e-6))), 1)
        return took * self._fills / 16

    def busy(self, stream: int) -> None:
        """Give the stream work for the calibrated time."""
        assert self._scratch is not None
        size = ctypes.c_size_t(self._scratch.nbytes)
        for _ in range(self._fills):
            self.call("cudaMemsetAsync", self._scratch.address, 0, size, ctypes.c_void_p(stream))


def _find_cudart() -> str:
    from torchtrt_viz.runtime.tensorrt_libraries import CUDART, find_libraries

    found: Path | str | None = find_libraries().get(CUDART) or ctypes.util.find_library("cudart")
    if found is None:
        raise NoDevice("the CUDA runtime library is not installed (nvidia-cuda-runtime, or the CUDA toolkit)")
    return str(found)
