"""Coordination over a ``torch.distributed`` store, for engines over several hosts.

Any store will do (``TCPStore``, ``FileStore``, ``PrefixStore``, the one of the default process group).
It uses no collective and no barrier, so a rank that hangs delays no other. A store does not report when a
process dies, so workers count up a heartbeat.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchtrt_viz.errors import OptionError
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.control.coordinator import ProfileCoordinator
from torchtrt_viz.serving.control.messages import Message
from torchtrt_viz.serving.control.worker import ProfileWorker
from torchtrt_viz.serving.rank.profiler import RankProfiler

__all__ = ["StoreHub", "StoreWorker"]

_PREFIX = "torchtrt_viz/profile"
_BEAT_S = 1.0
_LARGEST = 8 << 20


class _Channel:
    """Numbered messages in one direction, each read once and deleted."""

    def __init__(self, store: Any, name: str) -> None:
        self._store = store
        self._name = f"{_PREFIX}/{name}"
        self._next = 0

    def put(self, sent: Message) -> None:
        try:
            self._store.set(f"{self._name}/{self._next}", json.dumps(sent))
        except RuntimeError as error:  # torch's DistError: the store's process is gone
            raise ConnectionError(f"the store does not answer: {error}") from error
        self._next += 1

    def take(self) -> Message | None:
        key = f"{self._name}/{self._next}"
        try:
            if not self._store.check([key]):
                return None
            data: bytes = self._store.get(key)
            self._store.delete_key(key)
        except RuntimeError as error:
            raise ConnectionError(f"the store does not answer: {error}") from error
        self._next += 1
        if len(data) > _LARGEST:
            return {}
        try:
            received = json.loads(data)
        except ValueError:
            return {}
        return received if isinstance(received, dict) else {}


class StoreWorker:
    """A worker that gets its commands through a store.

    The engine's thread calls :meth:`poll` in its loop, also while idle.

    Parameters
    ----------
    store
        A ``torch.distributed`` store that coordinator and workers share.
    name
        The worker's name: the same as the coordinator knows it by.
    """

    def __init__(self, store: Any, name: str, profiler: RankProfiler) -> None:
        self._commands = _Channel(store, f"command/{name}")
        self._replies = _Channel(store, f"reply/{name}")
        self._beats = f"{_PREFIX}/beat/{name}"
        self._store = store
        self._count = 0
        self._beaten = 0.0
        self.worker = ProfileWorker(profiler, self._replies.put)
        self._beat()

    def poll(self) -> None:
        """Carry out commands that have come, report changes, show that the worker lives."""
        try:
            while (received := self._commands.take()) is not None:
                self.worker.handle(received)
            self._beat()
        except ConnectionError:
            self.worker.disconnected()
        self.worker.poll()

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beaten >= _BEAT_S:
            self._beaten = now
            self._count += 1
            try:
                self._store.set(self._beats, str(self._count))
            except RuntimeError as error:
                raise ConnectionError(f"the store does not answer: {error}") from error

    def close(self, timeout: float | None = None) -> bool:
        """Stop what is active and finish what is queued; False when time ran out."""
        return self.worker.close(timeout)


class StoreHub:
    """The coordinator's end of a store.

    Parameters
    ----------
    store
        A ``torch.distributed`` store that coordinator and workers share.
    names
        The workers' names.
    silence_s
        A worker whose heartbeat has not changed for so long, and that is not exporting, counts as lost.
    meanwhile
        Called while a command waits on this thread: an engine whose coordinator is a worker too polls
        that worker here.
    """

    def __init__(
        self,
        store: Any,
        names: Sequence[str],
        *,
        identities: Mapping[str, RankIdentity] | None = None,
        settings: Settings | None = None,
        silence_s: float = 30.0,
        meanwhile: Callable[[], object] | None = None,
    ) -> None:
        if not silence_s > _BEAT_S:
            raise OptionError("silence_s", silence_s, f"more than the {_BEAT_S:g} s between heartbeats")
        self._store = store
        self._commands = {name: _Channel(store, f"command/{name}") for name in names}
        self._replies = {name: _Channel(store, f"reply/{name}") for name in names}
        self._beats = dict.fromkeys(names, b"")
        self._heard = dict.fromkeys(names, time.monotonic())
        self._silence_s = silence_s
        self._meanwhile = meanwhile
        self._looked = 0.0
        known = identities or {}
        self.coordinator = ProfileCoordinator(
            {name: known.get(name) for name in names}, self._send, pump=self.pump, settings=settings
        )

    def _send(self, worker: str, sent: Message) -> None:
        self._commands[worker].put(sent)

    def pump(self, timeout: float = 0.0) -> bool:
        """Receive and handle what has come, waiting up to ``timeout`` seconds; True when anything had."""
        deadline = time.monotonic() + timeout
        while True:
            found = self._receive()
            if self._meanwhile is not None:
                self._meanwhile()
            if found or time.monotonic() >= deadline:
                break
            time.sleep(min(0.005, max(0.0, deadline - time.monotonic())))
        self._listen()
        self.coordinator.poll()
        return found

    def _receive(self) -> bool:
        found = False
        for name, channel in self._replies.items():
            while (received := channel.take()) is not None:
                found = True
                self._heard[name] = time.monotonic()
                self.coordinator.handle(name, received)
        return found

    def _listen(self) -> None:
        """Look at the heartbeats once a second."""
        now = time.monotonic()
        if now - self._looked < _BEAT_S:
            return
        self._looked = now
        busy = self.coordinator.exporting()
        for name, last in self._beats.items():
            key = f"{_PREFIX}/beat/{name}"
            beat = self._store.get(key) if self._store.check([key]) else b""
            if beat != last or name in busy:
                self._beats[name], self._heard[name] = beat, now
            elif now - self._heard[name] > self._silence_s:
                self.coordinator.lost(name, f"no sign of life for {self._silence_s:g} s")
