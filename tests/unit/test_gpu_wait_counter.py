"""The counter of calls that wait (benchmarks/gpu), against a stand-in for CUPTI."""

from __future__ import annotations

import ctypes
import sys

import pytest
from fake_clock import FakeClock

NAMES = {126: b"cuStreamSynchronize", 121: b"cuEventSynchronize", 5: b"cuMemAlloc", 900: b"cuNewSynchronize"}


class Cupti:
    """Subscribes, enables and names functions as CUPTI does; ``unknown`` it refuses."""

    def __init__(self, names=NAMES, unknown=(17, 440, 800), busy=0):
        self.names, self.unknown, self.busy = names, unknown, busy
        self.enabled = set()
        self.clock = FakeClock()

    def cuptiSubscribe(self, _subscriber, callback, _data):
        self.callback = callback
        return self.busy

    def cuptiEnableCallback(self, on, _subscriber, domain, number):
        if number in self.unknown:
            return 1
        assert (on, domain) == (1, 1)
        self.enabled.add(number)
        return 0

    def cuptiGetCallbackName(self, _domain, number, name):
        if number not in self.names:
            return 1
        name._obj.value = self.names[number]
        return 0

    def call(self, number, takes_ns=0):
        site = ctypes.c_int(0)
        self.callback(None, 1, number, ctypes.addressof(site))
        self.clock.now += takes_ns / 1e9
        site.value = 1
        self.callback(None, 1, number, ctypes.addressof(site))


@pytest.fixture
def counters(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "benchmarks/gpu"))
    import wait_counter

    yield wait_counter
    for name in ("wait_counter", "cuda_device"):
        sys.modules.pop(name, None)


def made(counters, monkeypatch, cupti):
    monkeypatch.setattr(counters, "_find_cupti", lambda: "libcupti")
    monkeypatch.setattr(counters.ctypes, "CDLL", lambda _path: cupti)
    monkeypatch.setattr(counters, "time", cupti.clock)
    return counters.CuptiCounter()


def test_calls_are_counted_by_function_and_those_that_waited_apart(counters, monkeypatch):
    cupti = Cupti()
    counter = made(counters, monkeypatch, cupti)
    assert cupti.enabled == {121, 126, 900}  # by number and by name; no allocation
    cupti.call(126)
    with counter.block() as waits:
        cupti.call(126, takes_ns=2_000_000)
        cupti.call(121)
        cupti.call(121, takes_ns=counters.WAITED_NS - 1_000)
        cupti.call(900)
    cupti.call(121)
    assert waits.calls == {"cuStreamSynchronize": 1, "cuEventSynchronize": 2, "cuNewSynchronize": 1}
    assert waits.waited == {"cuStreamSynchronize": 1}


def test_without_names_the_known_numbers_serve(counters, monkeypatch):
    cupti = Cupti(names={}, unknown=())
    made(counters, monkeypatch, cupti)
    assert cupti.enabled == {17, 121, 126, 440, 800}


@pytest.mark.parametrize(
    ("cupti", "message"),
    [
        (Cupti(unknown=(126,)), "CUPTI does not call back at cuStreamSynchronize"),
        (Cupti(names={}, unknown=(121,)), "CUPTI does not call back at cuEventSynchronize"),
        (Cupti(busy=39), "cuptiSubscribe: CUPTI error 39"),
    ],
)
def test_a_count_that_would_mean_nothing_is_refused(counters, monkeypatch, cupti, message):
    with pytest.raises(counters.NoDevice, match=message):
        made(counters, monkeypatch, cupti)
