"""Which functions that wait for the device were called, by anybody in the process, and which did wait.

On a GPU by CUPTI's callbacks for the driver's functions, where the CUDA runtime's and TensorRT's own calls
end up. On the simulated device by its counters.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from cuda_device import Cuda, NoDevice

#: A call that takes longer than this found the device at work.
WAITED_NS = 100_000
_DRIVER_DOMAIN, _ENTER = 1, 0
#: Numbers of CUPTI's, which it never gives to another function (cupti_driver_cbid.h).
_KNOWN = {
    17: "cuCtxSynchronize",
    121: "cuEventSynchronize",
    126: "cuStreamSynchronize",
    440: "cuStreamSynchronize_ptsz",
    800: "cuCtxSynchronize_v2",
}


@dataclass
class Waits:
    """What was called in a block."""

    calls: Counter[str] = field(default_factory=Counter)
    waited: Counter[str] = field(default_factory=Counter)


class SimulatedCounter:
    """The simulated device counts the calls; it has two functions that wait."""

    def __init__(self, cuda: Cuda) -> None:
        counts = cuda.symbol("standins_counts")
        counts.restype = ctypes.POINTER(ctypes.c_int64)
        self._counts = counts()

    @contextmanager
    def block(self) -> Iterator[Waits]:
        waits = Waits()
        before = self._counts[0], self._counts[1]
        yield waits
        for name, value in (("cudaStreamSynchronize", 0), ("cudaEventSynchronize", 1)):
            if made := self._counts[value] - before[value]:
                waits.calls[name] = made


class CuptiCounter:
    """CUPTI calls back at every function of the driver whose name has "Synchronize" in it."""

    def __init__(self) -> None:
        self._cupti = ctypes.CDLL(str(_find_cupti()))
        self._names: dict[int, str] = {}
        self._open = threading.local()
        self._waits: Waits | None = None
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
        self._callback = kind(self._called)  # kept: CUPTI calls it
        self._subscriber = ctypes.c_void_p()
        self._check(
            self._cupti.cuptiSubscribe(ctypes.byref(self._subscriber), self._callback, None), "cuptiSubscribe"
        )
        named = {number: name for number, name in self._functions() if "Synchronize" in name}
        for number, name in {**_KNOWN, **named}.items():
            if not self._cupti.cuptiEnableCallback(1, self._subscriber, _DRIVER_DOMAIN, number):
                self._names[number] = name
            elif number in named:
                raise NoDevice(f"CUPTI does not call back at {name}")
        missing = {"cuStreamSynchronize", "cuEventSynchronize"} - set(self._names.values())
        if missing:
            raise NoDevice(f"CUPTI does not call back at {', '.join(sorted(missing))}")

    def _functions(self) -> Iterator[tuple[int, str]]:
        name = ctypes.c_char_p()
        for number in range(1, 4000):
            failed = self._cupti.cuptiGetCallbackName(_DRIVER_DOMAIN, number, ctypes.byref(name))
            if not failed and name.value:
                yield number, name.value.decode()

    @staticmethod
    def _check(result: int, what: str) -> None:
        if result:
            raise NoDevice(
                f"{what}: CUPTI error {result}. Another profiler may hold CUPTI, or the driver restricts "
                "profiling to administrators (NVreg_RestrictProfilingToAdminUsers)"
            )

    def _called(self, _data: int, _domain: int, number: int, facts: int) -> None:
        waits = self._waits
        if waits is None:
            return
        # the first field of CUpti_CallbackData: whether the function begins or has ended
        if ctypes.c_int.from_address(facts).value == _ENTER:
            self._open.at = time.perf_counter_ns()
            return
        name = self._names.get(number, str(number))
        waits.calls[name] += 1
        if time.perf_counter_ns() - getattr(self._open, "at", 0) > WAITED_NS:
            waits.waited[name] += 1

    @contextmanager
    def block(self) -> Iterator[Waits]:
        waits = self._waits = Waits()
        try:
            yield waits
        finally:
            self._waits = None


def _find_cupti() -> Path | str:
    spec = find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec is not None else []:
        for folder in ("cu[0-9]*/lib", "cuda_cupti/lib"):
            if files := sorted(Path(root).glob(f"{folder}/libcupti.so.[0-9]*")):
                return files[-1]
    for path in ("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "/usr/local/cuda/lib64/libcupti.so"):
        if Path(path).exists():
            return path
    if found := ctypes.util.find_library("cupti"):
        return found
    raise NoDevice("libcupti is not installed (it comes with torch's CUDA build, and with the CUDA toolkit)")


def wait_counter(cuda: Cuda) -> SimulatedCounter | CuptiCounter:
    """Return the counter for a device."""
    return SimulatedCounter(cuda) if cuda.simulated else CuptiCounter()
