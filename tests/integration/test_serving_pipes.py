"""Pipes that profiling shares with an engine's own messages."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest
from eventually import eventually
from staged_jobs import quick

import torchtrt_viz as tv
from torchtrt_viz.errors import OptionError

torch = pytest.importorskip("torch")

from torchtrt_viz.serving import (  # noqa: E402
    PipeHub,
    PipeWorker,
    ProfileConfig,
    ProfileWorker,
    RankIdentity,
    RankProfiler,
)
from torchtrt_viz.serving.control.messages import message  # noqa: E402


class Joined:
    """A hub and a worker in one process; the engine's loop is whatever waits."""

    def __init__(self) -> None:
        self.profiler = RankProfiler(RankIdentity.here(role="decode"), quick())
        self.profiler.attach()
        here, there = multiprocessing.Pipe()
        self.worker = PipeWorker(there, self.profiler)
        self.seen: list[Any] = []
        self.hub = PipeHub({"D0": here}, on_message=self._taken, settings=quick(control_timeout_s=120))
        self.hub.coordinator._pump = self.pump
        self.hub.coordinator.attach()
        self.here, self.there = here, there

    def _taken(self, name: str, received: Any) -> None:
        self.seen.append((name, received))

    def pump(self, timeout: float) -> None:
        self.hub.pump(timeout)
        self.worker.poll()

    def until(self, condition: Callable[[], object]) -> None:
        def look() -> object:
            self.pump(0.001)
            return condition()

        eventually(look)


@pytest.fixture
def joined():
    made = Joined()
    yield made
    made.worker.close(60)


def test_a_session_beside_the_engines_own_messages(joined, tmp_path):
    coordinator = joined.hub.coordinator
    joined.worker.send({"type": "ready"})
    joined.until(lambda: joined.seen)
    assert joined.seen == [("D0", {"type": "ready"})]
    coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    joined.hub.send("D0", {"type": "decode", "request": "r1"})
    taken: list[Any] = []
    joined.until(lambda: (taken.append(joined.worker.receive()), taken[-1])[1])
    assert taken[-1] == {"type": "decode", "request": "r1"}
    with joined.profiler.engine_step():
        torch.ones(4) + 1
    assert coordinator.stop_profile().collection.cycles == 1
    assert [a.state for a in coordinator.wait_for_profile_artifacts(90)] == ["published"]


def test_a_coordinator_that_does_not_read_holds_up_no_step(joined, tmp_path):
    joined.hub.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    large = b"x" * 100_000  # more than a pipe holds
    for number in range(100):
        joined.worker.send((number, large))
        with joined.profiler.engine_step():
            torch.ones(2) + 1
    assert joined.profiler.status().collection.steps == 100
    joined.until(lambda: len(joined.seen) == 100)
    assert [number for _, (number, _) in joined.seen] == list(range(100))


def test_a_coordinator_that_is_gone_ends_the_recording_and_keeps_it(joined, tmp_path):
    started = joined.hub.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    torch.ones(4) + 1
    joined.hub.send("D0", "last words")
    joined.here.close()

    def over() -> bool:
        joined.worker.poll()
        return not joined.profiler.recording

    eventually(over)
    assert joined.worker.receive(5) == "last words"
    assert joined.worker.closed
    with pytest.raises(OSError, match="gone"):
        joined.worker.send("anybody?")
    assert joined.worker.close(60)
    assert joined.profiler.status().collection.ended_by == "disconnected"
    session = tv.load(tmp_path / started.collection.session_id)
    assert session.ranks["state"].tolist() == ["ok"]


def test_a_replacement_has_the_name_of_the_one_that_was_lost(joined, tmp_path):
    with pytest.raises(OptionError, match="no connected worker"):
        joined.hub.add("D0", joined.here)
    joined.there.close()
    joined.until(lambda: "D0" in joined.hub.coordinator.gone)
    here, there = multiprocessing.Pipe()
    profiler = RankProfiler(RankIdentity.here(role="decode"), quick())
    profiler.attach()
    joined.worker = PipeWorker(there, profiler)
    joined.hub.add("D0", here)
    status = joined.hub.coordinator.start_profile(ProfileConfig(tmp_path), window=True)
    assert [r["state"] for r in status.ranks] == ["recording"]
    joined.hub.coordinator.stop_profile()


class Again(Exception):
    """Like zmq's: no OSError, and raised for a channel that is full."""


def test_messages_that_could_not_be_sent_are_sent_later_in_order(tmp_path):
    profiler = RankProfiler(settings=quick())
    profiler.attach()
    full, sent = [True], []

    def send(one: dict[str, Any]) -> None:
        if full[0]:
            raise Again("not now")
        sent.append(one)

    worker = ProfileWorker(profiler, send)
    config = {"output_dir": str(tmp_path)}
    assert worker.handle(message("profile_start", "s1", rank=0, config=config, window=True))
    assert profiler.recording
    full[0] = False
    worker.handle(message("profile_stop", "s1"))
    kinds = [one["type"] for one in sent]
    assert kinds[:4] == ["profile_hello", "profile_started", "profile_stopping", "profile_stopped"]
    assert any("could not be sent (Again: not now)" in w for w in sent[-1]["collection"]["warnings"])
    assert worker.close(60)
    assert sent[-1]["artifacts"][-1]["state"] == "published"


def test_what_changed_is_reported_not_what_there_is(tmp_path):
    profiler = RankProfiler(settings=quick())
    profiler.attach()
    sent: list[dict[str, Any]] = []
    worker = ProfileWorker(profiler, sent.append)
    config = {"output_dir": str(tmp_path), "warmup": 0, "active": 1, "repeat": 4}
    worker.handle(message("profile_start", "s2", rank=0, config=config))
    for _ in range(5):
        with profiler.engine_step():
            torch.ones(2) + 1
    profiler.wait_for_artifacts()
    worker.poll()
    mark = len(sent)
    assert {a["cycle"] for one in sent for a in one.get("artifacts", [])} == {0, 1, 2, 3}
    revision = max(one.get("revision", 0) for one in sent)
    worker.handle(message("profile_status", "s2", seen=revision))
    worker.handle(message("profile_status", "s2"))
    assert [[a["cycle"] for a in one["artifacts"]] for one in sent[mark:]] == [[], [0, 1, 2, 3]]
    assert worker.close(60)


def test_a_listener_that_raises_is_named_and_ends_nothing(tmp_path):
    profiler = RankProfiler(settings=quick())
    profiler.attach()

    def broken(what: str, value: Any) -> None:
        raise KeyError(what)

    profiler.listen(broken)
    profiler.start(ProfileConfig(tmp_path), window=True)
    torch.ones(2) + 1
    profiler.stop()
    assert [a.state for a in profiler.wait_for_artifacts()] == ["published"]
    assert "a listener raised KeyError: 'collection'" in profiler.status().collection.warnings
    assert profiler.close(60)
