"""The protocol between coordinator and workers, with workers that misbehave as told."""

from __future__ import annotations

import json
import threading
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from fake_clock import FakeClock

from torchtrt_viz.errors import OptionError
from torchtrt_viz.serving import (
    ProfileActiveError,
    ProfileConfig,
    ProfileCoordinator,
    ProfileStartError,
    RankIdentity,
    Settings,
)
from torchtrt_viz.serving.contract.status import ArtifactStatus, CollectionStatus
from torchtrt_viz.serving.control.messages import is_profile_message, message

QUICK = Settings(control_timeout_s=0.3, stop_timeout_s=0.6)


class Worker:
    """A worker's side of the protocol without a profiler.

    ``deaf`` answers nothing, ``failing`` answers a start with an error, ``slow`` answers when told to.
    """

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.name = bench, name
        self.inbox: deque[dict[str, Any]] = deque()
        self.received: list[tuple[str, str, bool]] = []
        self.deaf = self.failing = self.slow = self.no_stop = False
        self.recording: str | None = None
        self.cycles = 1

    def serve(self) -> None:
        while self.inbox and not self.slow:
            self.answer(self.inbox.popleft())

    def answer(self, command: dict[str, Any]) -> None:
        kind, session = command["type"], command["session"]
        self.received.append((kind, session, bool(command.get("cancel"))))
        if self.deaf:
            return
        if kind == "profile_start":
            if self.failing:
                self.reply("profile_error", session, error="no CUDA here")
                return
            self.recording = session
            self.reply("profile_started", session, collection=self.collection(session, "recording"))
        elif kind == "profile_stop":
            self.reply("profile_stopping", session)
            if self.no_stop:
                return
            self.recording = None
            self.stopped(session)
        elif kind == "profile_status":
            self.reply("profile_artifacts", session, **self.state(session))

    def stopped(self, session: str) -> None:
        self.reply("profile_stopped", session, **self.state(session))

    def state(self, session: str) -> dict[str, Any]:
        artifacts = [
            ArtifactStatus(session, 0, c, state="published", archive=f"/x/{self.name}/{c}", bytes=3).to_dict()
            for c in range(self.cycles)
        ]
        return {"collection": self.collection(session, "idle"), "artifacts": artifacts}

    def collection(self, session: str, state: str) -> dict[str, Any]:
        cycles = self.cycles if state == "idle" else 0
        return CollectionStatus(
            state, session, "window", cycles=cycles, cycles_ended=cycles, start_unix_ns=7, cut_at_stop=["r1"]
        ).to_dict()

    def reply(self, kind: str, session: str, **fields: Any) -> None:
        self.bench.outbox.append((self.name, message(kind, session, **fields)))


class Bench:
    """A coordinator with four workers, and other messages in between; waiting makes its clock go on."""

    def __init__(self, clock: FakeClock, names: tuple[str, ...] = ("P0", "P1", "D0", "D1")) -> None:
        self.clock = clock
        self.workers = {name: Worker(self, name) for name in names}
        self.outbox: deque[tuple[str, dict[str, Any]]] = deque()
        self.gone: set[str] = set()
        self.pumped = 0
        identities = {n: RankIdentity(role="prefill" if n[0] == "P" else "decode", host="h") for n in names}
        self.coordinator = ProfileCoordinator(identities, self.send, pump=self.pump, settings=QUICK)
        self.coordinator.attach()

    def send(self, name: str, sent: dict[str, Any]) -> None:
        if name in self.gone:
            raise BrokenPipeError(name)
        json.dumps(sent)  # what travels is plain
        self.workers[name].inbox.append(sent)

    def pump(self, timeout: float) -> None:
        self.pumped += 1
        for worker in self.workers.values():
            if worker.name not in self.gone:
                worker.serve()
        while self.outbox:
            name, sent = self.outbox.popleft()
            assert self.coordinator.handle(name, sent)
        self.clock.sleep(timeout)

    def manifest(self, root: Path, session: str) -> dict[str, Any]:
        assert self.coordinator.flush(120)
        return json.loads((root / session / "manifest.json").read_text())


@pytest.fixture
def clock(monkeypatch) -> FakeClock:
    clock = FakeClock()
    for module in ("coordinator", "worker_state"):
        monkeypatch.setattr(f"torchtrt_viz.serving.control.{module}.time", clock)
    return clock


@pytest.fixture
def bench(clock) -> Bench:
    return Bench(clock)


@pytest.fixture
def config(tmp_path) -> ProfileConfig:
    return ProfileConfig(tmp_path)


def test_a_session_over_four_workers(bench, config, tmp_path):
    started = bench.coordinator.start_profile(config, window=True)
    session = started.collection.session_id
    assert started.collection.state == "recording"
    assert all(w.recording == session for w in bench.workers.values())
    manifest = bench.manifest(tmp_path, session)
    assert [(r["rank"], r["role"]) for r in manifest["ranks"]] == [
        (0, "prefill"),
        (1, "prefill"),
        (2, "decode"),
        (3, "decode"),
    ]
    assert manifest["state"] == "collecting"
    stopped = bench.coordinator.stop_profile()
    assert (stopped.collection.state, stopped.collection.cycles) == ("idle", 4)
    # each rank names r1: the session names it once
    assert (stopped.collection.cut_at_start, stopped.collection.cut_at_stop) == ([], ["r1"])
    artifacts = bench.coordinator.wait_for_profile_artifacts(5)
    assert [(a.rank, a.cycle, a.state) for a in artifacts] == [(r, 0, "published") for r in range(4)]
    manifest = bench.manifest(tmp_path, session)
    assert (manifest["state"], manifest["incomplete_ranks"], manifest["failed_ranks"]) == ("complete", [], [])
    assert manifest["ranks"][3]["cycles"][0]["archive"] == "rank-00003/cycle-00000.tar.gz"
    assert manifest["ranks"][0]["cut_at_stop"] == ["r1"]
    assert bench.coordinator.profile_status().artifact_state == "ready"


def test_engines_messages_are_not_ours(bench):
    for other in (
        {"type": "prefilled"},
        "text",
        None,
        {"torchtrt_profile": 2, "type": "profile_started", "session": "x"},
    ):
        assert not bench.coordinator.handle("P0", other)
        assert not is_profile_message(other)
    assert bench.coordinator.handle("P0", message("profile_started", "of nobody"))
    assert bench.coordinator.handle("stranger", message("profile_started", "x"))


def test_worker_that_never_acknowledges_takes_the_start_back(bench, config, tmp_path):
    bench.workers["D1"].deaf = True
    begin = bench.clock.now
    with pytest.raises(ProfileStartError) as caught:
        bench.coordinator.start_profile(config, window=True)
    assert 0.3 <= bench.clock.now - begin < 0.4
    assert set(caught.value.missing) == {"D1"}
    assert caught.value.failed == {}
    session = caught.value.session_id
    for name, worker in bench.workers.items():
        # those that had started are stopped, the silent one is told that the session is void
        assert worker.received == [("profile_start", session, False), ("profile_stop", session, True)], name
        assert worker.recording is None or worker.deaf
    manifest = bench.manifest(tmp_path, session)
    assert manifest["state"] == "failed"
    assert manifest["ranks"][3]["state"] == "missing"
    assert "stopped again, since D1" in manifest["ranks"][0]["error"]
    assert bench.coordinator.profile_status().collection.state == "idle"
    bench.workers["D1"].deaf = False
    assert bench.coordinator.start_profile(config, window=True).collection.state == "recording"


def test_failed_worker_is_named_with_its_error(bench, config):
    bench.workers["P1"].failing = True
    with pytest.raises(ProfileStartError, match="P1 failed: no CUDA here") as caught:
        bench.coordinator.start_profile(config, window=True)
    assert caught.value.missing == {}
    assert all(w.recording is None for w in bench.workers.values())


def test_late_and_repeated_acknowledgements_change_nothing_later(bench, config):
    slow = bench.workers["D0"]
    slow.slow = True
    with pytest.raises(ProfileStartError) as caught:
        bench.coordinator.start_profile(config, window=True)
    old = caught.value.session_id
    slow.slow = False
    status = bench.coordinator.start_profile(config, window=True)
    new = status.collection.session_id
    # meanwhile the slow one has answered the old session's start and stop, in order, and the new one's start
    assert slow.recording == new
    for kind in (
        "profile_started",
        "profile_stopping",
        "profile_stopped",
        "profile_error",
        "profile_artifacts",
    ):
        for _ in range(2):
            for session in (old, "20200101-000000-00000000", None):
                state = {"collection": slow.collection(old, "idle"), "artifacts": [], "error": "late"}
                assert bench.coordinator.handle("D0", message(kind, session, **state))
    assert bench.coordinator.profile_status().collection.state == "recording"
    for _ in range(3):
        bench.coordinator.handle(
            "D0", message("profile_started", new, collection=slow.collection(new, "recording"))
        )
    assert bench.coordinator.stop_profile().collection.cycles == 4
    assert bench.coordinator.profile_status().collection.session_id == new
    bench.coordinator.handle("D0", message("profile_stopped", new, **slow.state(new)))
    assert len(bench.coordinator.profile_status().artifacts) == 4


def test_lost_worker_while_recording_leaves_the_others_their_session(bench, config, tmp_path):
    session = bench.coordinator.start_profile(config, window=True).collection.session_id
    bench.gone.add("P0")
    bench.coordinator.lost("P0", "its pipe was closed")
    status = bench.coordinator.stop_profile()
    assert status.collection.state == "idle"
    assert "P0: its pipe was closed" in status.collection.error
    artifacts = bench.coordinator.wait_for_profile_artifacts(5)
    assert [a.rank for a in artifacts] == [1, 2, 3]
    manifest = bench.manifest(tmp_path, session)
    assert manifest["state"] == "failed"
    assert (manifest["failed_ranks"], manifest["incomplete_ranks"]) == ([0], [0])
    with pytest.raises(ProfileStartError) as caught:
        bench.coordinator.start_profile(config, window=True)
    assert caught.value.missing == {"P0": "its pipe was closed"}
    assert all(
        ("profile_start", caught.value.session_id, False) not in w.received for w in bench.workers.values()
    )


def test_worker_lost_while_starting(bench, config):
    bench.workers["D1"].slow = True
    bench.gone.add("P1")
    with pytest.raises(ProfileStartError) as caught:
        bench.coordinator.start_profile(config, window=True)
    assert set(caught.value.missing) == {"D1", "P1"}


def test_stop_that_is_not_confirmed_does_not_hang(bench, config, tmp_path):
    session = bench.coordinator.start_profile(config, window=True).collection.session_id
    bench.workers["D0"].deaf = True
    begin = bench.clock.now
    status = bench.coordinator.stop_profile()
    assert 0.3 <= bench.clock.now - begin < 0.4
    assert "D0: no answer to the stop in time" in status.collection.error
    assert [r["state"] for r in status.ranks] == ["stopped", "stopped", "missing", "stopped"]
    # what it had recorded is there after all: a late answer to this session counts for this session
    bench.coordinator.handle("D0", message("profile_stopped", session, **bench.workers["D0"].state(session)))
    assert bench.manifest(tmp_path, session)["failed_ranks"] == []


def test_long_export_has_its_own_time(bench, config):
    bench.coordinator.start_profile(config, window=True)
    worker = bench.workers["D0"]
    worker.no_stop = True
    session = worker.recording
    bench.clock.at(0.45, lambda: worker.stopped(session))  # beyond the control timeout
    status = bench.coordinator.stop_profile()
    assert status.collection.error is None
    bench.coordinator.start_profile(config, window=True)
    begin = bench.clock.now
    status = bench.coordinator.stop_profile()
    assert "D0: no answer to the stop in time" in status.collection.error
    assert 0.6 <= bench.clock.now - begin < 0.7


def test_second_session_stop_twice_and_start_while_stopping(bench, config):
    with pytest.raises(OptionError, match="pump"):
        ProfileCoordinator({"a": None}, lambda *_: None, settings=QUICK).start_profile(config, window=True)
    assert bench.coordinator.stop_profile().collection.state == "idle"
    bench.coordinator.start_profile(config, window=True)
    with pytest.raises(ProfileActiveError, match="is recording"):
        bench.coordinator.start_profile(config, window=True)
    bench.workers["P0"].slow = True
    errors: list[str] = []
    pump = bench.pump

    def start_in_between(timeout: float) -> None:
        try:
            bench.coordinator.start_profile(config, window=True)
        except ProfileActiveError as error:
            errors.append(str(error))
        bench.workers["P0"].slow = False
        pump(timeout)

    bench.coordinator._pump = start_in_between
    first = bench.coordinator.stop_profile()
    bench.coordinator._pump = pump
    assert "is stopping" in errors[0]
    second = bench.coordinator.stop_profile()
    assert first.collection == second.collection
    assert all([k for k, *_ in w.received].count("profile_stop") == 1 for w in bench.workers.values())


def test_schedules_end_by_themselves(bench, config):
    session = bench.coordinator.start_profile(config).collection.session_id
    for worker in bench.workers.values():
        worker.reply("profile_artifacts", session, **worker.state(session))
    bench.pump(0)
    collection = bench.coordinator.profile_status().collection
    assert (collection.state, collection.ended_by, collection.cycles) == ("idle", "schedule", 4)


def test_options_are_checked_before_anybody_is_asked(bench, tmp_path):
    with pytest.raises(OptionError):
        bench.coordinator.start_profile(ProfileConfig(tmp_path, active=2), window=True)
    with pytest.raises(OptionError):
        bench.coordinator.start_profile(ProfileConfig(tmp_path), session_id="../up")
    assert all(not w.inbox and not w.received for w in bench.workers.values())
    assert bench.coordinator.profile_status().collection.session_id is None


def test_global_ranks_of_a_process_group_are_kept(clock, tmp_path):
    bench = Bench(clock, ("P0", "D0"))
    bench.coordinator._workers = {
        "P0": RankIdentity(5, world_size=8, host="a"),
        "D0": RankIdentity(2, world_size=8, host="b"),
    }
    session = bench.coordinator.start_profile(ProfileConfig(tmp_path), window=True).collection.session_id
    assert [r["rank"] for r in bench.manifest(tmp_path, session)["ranks"]] == [2, 5]


def test_another_thread_drives_while_the_loop_runs(bench, config):
    results: dict[str, Any] = {}
    # a call from another thread waits in real time for the loop: as long as a busy machine may need
    bench.coordinator.settings = Settings(control_timeout_s=120)

    def control() -> None:
        try:
            results["start"] = bench.coordinator.start_profile(config, window=True).collection.state
            results["stop"] = bench.coordinator.stop_profile().collection.state
            results["files"] = len(bench.coordinator.wait_for_profile_artifacts(5))
        except BaseException as error:
            results["error"] = error

    thread = threading.Thread(target=control, daemon=True)
    thread.start()
    while thread.is_alive():
        bench.pump(0)
        bench.coordinator.poll()
        thread.join(0.001)
    assert results == {"start": "recording", "stop": "idle", "files": 4}


def test_malformed_replies_do_no_harm(bench, config):
    session = bench.coordinator.start_profile(config, window=True).collection.session_id
    for fields in (
        {"collection": 5, "artifacts": 7},
        {"collection": {"nonsense": 1}, "artifacts": [None, {"cycle": "x"}, 3]},
        {"identity": {"rank": -4}},
        {"identity": "x"},
    ):
        assert bench.coordinator.handle("P0", message("profile_artifacts", session, **fields))
    assert bench.coordinator.stop_profile().collection.state == "idle"


class Again(Exception):
    """Like zmq's: no OSError, and raised for a channel that is full."""


def test_whatever_a_channel_raises_leaves_no_session_stuck(bench, config, tmp_path):
    send = bench.send

    def hindered(name: str, sent: dict[str, Any]) -> None:
        if name == "D0":
            raise Again("resource temporarily unavailable")
        send(name, sent)

    bench.coordinator._send = hindered
    with pytest.raises(ProfileStartError) as caught:
        bench.coordinator.start_profile(config, window=True)
    reason = "the connection broke: Again: resource temporarily unavailable"
    assert caught.value.missing == {"D0": reason}
    assert bench.coordinator.gone == {"D0": reason}
    assert all(w.recording is None for w in bench.workers.values())
    bench.coordinator._send = send
    # it says hello again: nothing else is needed
    hello = RankIdentity(role="decode", host="h", pid=99).to_dict()
    assert bench.coordinator.handle("D0", message("profile_hello", None, identity=hello))
    started = bench.coordinator.start_profile(config, window=True)
    assert [(r["worker"], r["pid"]) for r in started.ranks][2] == ("D0", 99)
    bench.coordinator._send = hindered
    status = bench.coordinator.stop_profile()
    assert status.collection.state == "idle"
    assert f"D0: {reason}" in status.collection.error


def test_workers_come_and_go_between_sessions(bench, config, tmp_path):
    first = bench.coordinator.start_profile(config, window=True).collection.session_id
    bench.gone.add("D1")
    bench.coordinator.remove("D1", "scaled down")
    newcomer = Worker(bench, "D2")
    bench.workers["D2"] = newcomer
    bench.coordinator.add("D2", RankIdentity(role="decode", host="h2"))
    status = bench.coordinator.stop_profile()
    assert "D1: scaled down" in status.collection.error
    assert not newcomer.received  # it is of the next session
    assert [r["state"] for r in bench.manifest(tmp_path, first)["ranks"]] == ["collected"] * 3 + ["missing"]
    second = bench.coordinator.start_profile(config, window=True).collection.session_id
    assert bench.coordinator.stop_profile().collection.error is None
    ranks = bench.manifest(tmp_path, second)["ranks"]
    assert [(r["rank"], r["host"]) for r in ranks] == [(0, "h"), (1, "h"), (2, "h"), (3, "h2")]


def test_a_process_that_replaces_another_ends_its_part(bench, config):
    identities = [RankIdentity(role="prefill", host="h", pid=pid).to_dict() for pid in (10, 11)]
    bench.coordinator.handle("P0", message("profile_hello", None, identity=identities[0]))
    bench.coordinator.start_profile(config, window=True)
    bench.coordinator.handle("P0", message("profile_hello", None, identity=identities[1]))
    status = bench.coordinator.stop_profile()
    assert "P0: process 10 was replaced by process 11" in status.collection.error
    assert bench.coordinator.gone == {}


def test_changes_travel_not_everything(bench, config):
    """The coordinator asks for what it has not seen, and takes partial answers together."""
    session = bench.coordinator.start_profile(config, window=True).collection.session_id
    worker = bench.workers["P0"]
    many = [ArtifactStatus(session, 0, c, state="packing").to_dict() for c in range(3)]
    bench.coordinator.handle("P0", message("profile_artifacts", session, artifacts=many, revision=9, since=0))
    late = [ArtifactStatus(session, 0, 1, state="published", archive="/x").to_dict()]
    bench.coordinator.handle(
        "P0", message("profile_artifacts", session, artifacts=late, revision=10, since=9)
    )
    states = {a.cycle: a.state for a in bench.coordinator.profile_status().artifacts}
    assert states == {0: "packing", 1: "published", 2: "packing"}
    # a reply that does not follow on the last one does not hide what is missing between them
    bench.coordinator.handle("P0", message("profile_artifacts", session, artifacts=[], revision=30, since=20))
    asked: list[dict[str, Any]] = []
    send = bench.send
    bench.coordinator._send = lambda name, sent: (
        asked.append(sent) if name == "P0" else None,
        send(name, sent),
    )
    worker.slow = True
    bench.coordinator._ask(bench.coordinator._current)
    assert [(sent["type"], sent["seen"]) for sent in asked] == [("profile_status", 10)]
    # and one that has not answered is not asked again at every turn
    bench.coordinator._ask(bench.coordinator._current)
    assert len(asked) == 1
