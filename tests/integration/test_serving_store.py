"""Coordination over a torch.distributed store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from eventually import eventually
from fake_clock import FakeClock
from staged_jobs import quick

import torchtrt_viz as tv

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

from torchtrt_viz.errors import OptionError  # noqa: E402
from torchtrt_viz.serving import (  # noqa: E402
    ProfileConfig,
    ProfileStartError,
    RankIdentity,
    RankProfiler,
    StoreHub,
    StoreWorker,
)
from torchtrt_viz.serving.control.messages import message  # noqa: E402


@pytest.fixture
def store():
    return dist.TCPStore(
        "127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=120)
    )


def connect(store):
    return dist.TCPStore("127.0.0.1", store.port, is_master=False, timeout=timedelta(seconds=120))


class Script:
    """A worker that answers over the store without profiling: only one profiler runs in a process."""

    def __init__(self, store, name: str, answers: bool = True) -> None:
        from torchtrt_viz.serving.control.store import _Channel

        number = store.add(f"torchtrt_viz/profile/incarnation/{name}", 1)
        self.commands = _Channel(store, f"command/{name}/{number}")
        self.replies = _Channel(store, f"reply/{name}/{number}")
        self.store, self.name, self.answers, self.beats = store, name, answers, 0
        self.replies.put(
            message("profile_hello", None, identity=RankIdentity(role="decode", host="b").to_dict())
        )
        self.beat()

    def beat(self) -> None:
        self.beats += 1
        self.store.set(f"torchtrt_viz/profile/beat/{self.name}", str(self.beats))

    def poll(self) -> None:
        while (command := self.commands.take()) is not None:
            if not self.answers:
                continue
            session = command["session"]
            if command["type"] == "profile_start":
                self.replies.put(message("profile_started", session, collection={"state": "recording"}))
            elif command["type"] == "profile_stop":
                self.replies.put(
                    message("profile_stopped", session, collection={"state": "idle"}, artifacts=[])
                )


class Inline:
    """A control thread whose work is done when it is woken: time then passes as the test's clock says."""

    def __init__(self, name: str, work: Callable[[], float | None], failed: object) -> None:
        self.wake = work


def looping(function: Callable[[], object]) -> tuple[threading.Thread, threading.Event]:
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(0.002):
            function()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, stop


def test_a_coordinator_that_is_a_worker_too(store, tmp_path):
    """Rank 0 of a torchrun job: it coordinates and records, on one thread."""
    profiler = RankProfiler(RankIdentity.here(role="prefill"), quick(annotations=True))
    profiler.attach()
    mine = StoreWorker(connect(store), "0", profiler)
    other = Script(connect(store), "1")
    thread, stop = looping(lambda: (other.poll(), other.beat()))
    hub = StoreHub(store, ["0", "1"], settings=quick(control_timeout_s=120), meanwhile=mine.poll)
    hub.coordinator.attach()
    try:
        started = hub.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
        assert started.collection.state == "recording"
        assert profiler.recording
        with profiler.engine_step(), profiler.annotate("prefill", request="r1"):
            torch.ones(4) + 1
        stopped = hub.coordinator.stop_profile()
        assert stopped.collection.error is None
        artifacts = hub.coordinator.wait_for_profile_artifacts(90)
        assert [(a.rank, a.state) for a in artifacts] == [(0, "published")]
    finally:
        stop.set()
        thread.join()
        assert mine.close(60)
        hub.close()
    session = tv.load(tmp_path / started.collection.session_id)
    table = session.ranks.set_index("rank")
    assert table.loc[0, "state"] == "ok"
    assert table.loc[0, "role"] == "prefill"
    assert session.request_events()["request"].tolist() == ["r1"]
    # the store is left as it was found, but for the heartbeats
    for key in ("command/0/1/0", "reply/0/1/0", "command/1/1/1"):
        assert not store.check([f"torchtrt_viz/profile/{key}"])


def test_silent_worker_is_lost_and_the_start_taken_back(store, tmp_path, monkeypatch):
    clock = FakeClock()
    for module in ("store", "coordinator", "worker_state"):
        monkeypatch.setattr(f"torchtrt_viz.serving.control.{module}.time", clock)
    monkeypatch.setattr("torchtrt_viz.serving.control.store.ControlThread", Inline)
    alive, dead = Script(connect(store), "a"), Script(connect(store), "b", answers=False)

    def workers() -> None:
        alive.poll()
        alive.beat()
        dead.poll()

    settings = quick(control_timeout_s=0.5)
    hub = StoreHub(store, ["a", "b"], settings=settings, silence_s=2.0, meanwhile=workers)
    hub.coordinator.attach()
    begin = clock.now
    with pytest.raises(ProfileStartError) as caught:
        hub.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    assert caught.value.missing == {"b": "no answer to the start in time"}
    assert 0.5 <= clock.now - begin < 1
    while clock.now - begin < 5:
        hub.pump(0.05)
        clock.sleep(0.05)
    assert hub.coordinator.gone == {"b": "no sign of life for 2 s"}
    # heard again, it is a member again
    dead.answers = True
    dead.beat()
    clock.sleep(1)
    hub.pump()
    assert hub.coordinator.gone == {}
    assert hub.coordinator.start_profile(ProfileConfig(tmp_path), window=True).collection.state == "recording"


class Switchable:
    """A store in memory that can die, or stop answering until it is let go."""

    def __init__(self) -> None:
        self.dead = False
        self.answering = threading.Event()
        self.answering.set()
        self.kept: dict[str, bytes] = {}
        self.waiting = threading.Event()

    def _alive(self) -> None:
        if not self.answering.is_set():
            self.waiting.set()
            self.answering.wait()
        if self.dead:
            raise RuntimeError("Broken pipe")

    def set(self, key: str, value: str) -> None:
        self._alive()
        self.kept[key] = value.encode()

    def add(self, key: str, amount: int) -> int:
        self._alive()
        self.kept[key] = str(int(self.kept.get(key, b"0")) + amount).encode()
        return int(self.kept[key])

    def check(self, keys: list[str]) -> bool:
        self._alive()
        return all(k in self.kept for k in keys)

    def get(self, key: str) -> bytes:
        self._alive()
        return self.kept[key]

    def delete_key(self, key: str) -> bool:
        return self.kept.pop(key, None) is not None


def started(shared, tmp_path, **more):
    profiler = RankProfiler(settings=quick())
    profiler.attach()
    worker = StoreWorker(shared, "0", profiler)
    hub = StoreHub(shared, ["0"], settings=quick(control_timeout_s=120), meanwhile=worker.poll, **more)
    hub.coordinator.attach()
    hub.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    return profiler, worker, hub


def polled(worker: StoreWorker, condition: Callable[[], object]) -> None:
    def look() -> object:
        worker.poll()
        return condition()

    eventually(look)


def test_a_store_that_dies_stops_the_workers_recording(tmp_path):
    shared = Switchable()
    profiler, worker, hub = started(shared, tmp_path)
    torch.ones(3) + 1
    shared.dead = True
    polled(worker, lambda: not profiler.recording)
    collection = profiler.status().collection
    assert (collection.state, collection.ended_by, collection.cycles) == ("idle", "disconnected", 1)
    assert "the store does not answer: Broken pipe" in collection.warnings
    # the coordinator's loop is not disturbed, and says why nobody is there
    eventually(lambda: hub.pump() or hub.coordinator.gone)
    assert hub.coordinator.gone == {"0": "the store does not answer: Broken pipe"}
    with pytest.raises(ProfileStartError, match="the store does not answer"):
        hub.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    assert worker.close(60)
    assert [a.state for a in profiler.status().artifacts] == ["published"]
    hub.close()


def test_no_step_waits_for_a_store_that_is_stopped(tmp_path):
    shared = Switchable()
    profiler, worker, hub = started(shared, tmp_path)
    shared.answering.clear()
    shared.waiting.wait()
    # each of these would wait for ever
    for _ in range(1000):
        with profiler.engine_step():
            torch.ones(2) + 1
        worker.poll()
        hub.pump()
    assert profiler.status().collection.steps == 1000
    shared.answering.set()
    assert hub.coordinator.stop_profile().collection.error is None
    assert [a.state for a in hub.coordinator.wait_for_profile_artifacts(90)] == ["published"]
    assert worker.close(60)
    hub.close()


SERVER = """
import sys, time, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.read()
"""


def test_a_stopped_and_a_killed_process_of_the_store(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = int(server.stdout.readline())
        shared = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=120))
        profiler, worker, hub = started(shared, tmp_path)
        os.kill(server.pid, signal.SIGSTOP)
        for _ in range(300):
            with profiler.engine_step():
                torch.ones(2) + 1
            worker.poll()
            hub.pump(0.001)
        assert profiler.recording
        server.kill()
        polled(worker, lambda: not profiler.recording)
        assert profiler.status().collection.ended_by == "disconnected"
        assert profiler.status().collection.steps == 300
        assert worker.close(60)
        assert [a.state for a in profiler.status().artifacts] == ["published"]
        hub.close()


def test_a_worker_that_starts_again_takes_the_place_of_the_one_before(store, tmp_path):
    first = Script(connect(store), "0")
    hub = StoreHub(store, ["0"], settings=quick(control_timeout_s=120), meanwhile=first.poll)
    hub.coordinator.attach()
    hub.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    # it dies in the session; another process takes its name
    profiler = RankProfiler(RankIdentity.here(role="decode"), quick())
    profiler.attach()
    second = StoreWorker(connect(store), "0", profiler)
    hub._meanwhile = second.poll
    hub.coordinator.lost("0", "its process ended")
    eventually(lambda: (hub.pump(), not hub.coordinator.gone)[1])
    started = hub.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    assert [(r["pid"], r["state"]) for r in started.ranks] == [(os.getpid(), "recording")]
    torch.ones(2) + 1
    assert hub.coordinator.stop_profile().collection.cycles == 1
    assert [a.state for a in hub.coordinator.wait_for_profile_artifacts(90)] == ["published"]
    assert second.close(60)
    hub.close()


def test_garbage_in_the_store_is_passed_over(store, tmp_path):
    profiler = RankProfiler(settings=quick())
    profiler.attach()
    worker = StoreWorker(connect(store), "0", profiler)
    start = {"torchtrt_profile": 1, "type": "profile_start"}
    escaping = {**start, "session": "../x", "config": {"output_dir": str(tmp_path)}}
    garbage = (b"not json", b"[1]", b"\xff\xfe", json.dumps(start).encode(), json.dumps(escaping).encode())
    for number, data in enumerate(garbage):
        store.set(f"torchtrt_viz/profile/command/0/1/{number}", data.decode("latin-1"))
    # the last one is answered with an error, after the hello
    polled(worker, lambda: store.check(["torchtrt_viz/profile/reply/0/1/1"]))
    assert b"profile_error" in store.get("torchtrt_viz/profile/reply/0/1/1")
    assert not profiler.recording
    assert list(tmp_path.iterdir()) == []
    assert worker.close(10)


def test_heartbeats_need_their_time(store):
    with pytest.raises(OptionError):
        StoreHub(store, ["0"], silence_s=0.5)
