"""Coordination over a ``torch.distributed`` store, for engines over several hosts.

Any store will do (``TCPStore``, ``FileStore``, ``PrefixStore``, the one of the default process group).
It uses no collective and no barrier, so a rank that hangs delays no other. A store does not report when a
process dies, so workers count up a heartbeat. Each side talks to the store on a thread of its own, over a
connection of its own where the store can be cloned: a store that is slow, stopped or dead holds up no step.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from torchtrt_viz.errors import OptionError
from torchtrt_viz.serving.contract.control_thread import ControlThread, end_thread
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.control.coordinator import ProfileCoordinator
from torchtrt_viz.serving.control.messages import Message
from torchtrt_viz.serving.control.worker import ProfileWorker
from torchtrt_viz.serving.rank.profiler import RankProfiler

__all__ = ["StoreHub", "StoreWorker"]

T = TypeVar("T")

_PREFIX = "torchtrt_viz/profile"
_BEAT_S = 1.0
_LOOK_S = 0.02
_IDLE_S = 0.2
_FLUSH_S = 5.0
_TRIES = 3
_LARGEST = 8 << 20


def _asked(ask: Callable[[], T]) -> T:
    """Return what a store answers.

    Raises
    ------
    ConnectionError
        When it does not; which exception that is differs from store to store.
    """
    try:
        return ask()
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        raise ConnectionError(f"the store does not answer: {first or type(error).__name__}") from error


def _own_connection(store: Any) -> Any:
    """Return another connection to a store, so that its other users need not wait for ours."""
    try:
        return store.clone()
    except Exception:  # not every store, and not every torch, can
        return store


class _Channel:
    """Numbered messages in one direction, each read once and deleted."""

    def __init__(self, store: Any, name: str) -> None:
        self._store = store
        self._name = f"{_PREFIX}/{name}"
        self._next = 0

    def put(self, sent: Message) -> None:
        text = json.dumps(sent)
        _asked(lambda: self._store.set(f"{self._name}/{self._next}", text))
        self._next += 1

    def take(self) -> Message | None:
        key = f"{self._name}/{self._next}"
        if not _asked(lambda: self._store.check([key])):
            return None
        data: bytes = _asked(lambda: self._store.get(key))
        _asked(lambda: self._store.delete_key(key))
        self._next += 1
        if len(data) > _LARGEST:
            return {}
        try:
            received = json.loads(data)
        except ValueError:
            return {}
        return received if isinstance(received, dict) else {}


class _Patience:
    """Allows a store some failures in a row, further and further apart, before it counts as gone."""

    def __init__(self) -> None:
        self._failures = 0

    def answered(self) -> None:
        self._failures = 0

    def failed(self, error: ConnectionError) -> float:
        """Return the seconds until the next try.

        Raises
        ------
        ConnectionError
            When there is none.
        """
        self._failures += 1
        if self._failures >= _TRIES:
            raise error
        return float(0.25 * 2**self._failures)


class StoreWorker:
    """A worker that gets its commands through a store.

    The engine's thread creates it and calls :meth:`poll` in its loop, also while idle. That looks at a queue
    in memory; what goes over the store runs on a thread of its own. A worker that starts again under its name
    takes the place of the one before.

    Parameters
    ----------
    store
        A ``torch.distributed`` store that coordinator and workers share.
    name
        The worker's name: the same as the coordinator knows it by.

    Attributes
    ----------
    worker
        The :class:`ProfileWorker` that carries out the commands.

    Raises
    ------
    ConnectionError
        When the store does not answer.
    """

    def __init__(self, store: Any, name: str, profiler: RankProfiler) -> None:
        self._store = _own_connection(store)
        incarnation = _asked(lambda: self._store.add(f"{_PREFIX}/incarnation/{name}", 1))
        self._commands = _Channel(self._store, f"command/{name}/{incarnation}")
        self._replies = _Channel(self._store, f"reply/{name}/{incarnation}")
        self._beats = f"{_PREFIX}/beat/{name}"
        self._profiler = profiler
        self._outgoing: deque[Message] = deque()
        self._patience = _Patience()
        self._count = 0
        self._beaten = -_BEAT_S
        self._closing = False
        if not profiler.mailbox.owned:
            profiler.mailbox.own()
        self.worker = ProfileWorker(profiler, self._outgoing.append)
        self._thread = ControlThread(f"torchtrt_viz-store-{name}", self._serve, self._lose)

    def poll(self) -> None:
        """Let the engine's thread do what a command or another thread asks of it."""
        self._profiler.poll()

    def close(self, timeout: float | None = None) -> bool:
        """Stop what is active, finish what is queued, report it; False when time ran out."""
        deadline = None if timeout is None else time.monotonic() + timeout
        done = self.worker.close(timeout)
        self._closing = True
        self._thread.wake()
        until = time.monotonic() + _FLUSH_S
        end_thread(self._thread, until if deadline is None else min(until, deadline), self._profiler.poll)
        return done

    # -- on the thread -----------------------------------------------------------------------------------

    def _serve(self) -> float | None:
        try:
            while (received := self._commands.take()) is not None:
                self.worker.handle(received)
                self._flush()
            self.worker.report_changes()
            self._flush()
            self._beat()
        except ConnectionError as error:
            return self._patience.failed(error)
        self._patience.answered()
        if self._closing:
            return None
        return _LOOK_S if self._profiler.recording else 2 * _LOOK_S

    def _flush(self) -> None:
        while self._outgoing:
            self._replies.put(self._outgoing[0])
            self._outgoing.popleft()

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beaten >= _BEAT_S:
            self._beaten = now
            self._count += 1
            _asked(lambda: self._store.set(self._beats, str(self._count)))

    def _lose(self, error: BaseException) -> None:
        self._profiler.note(str(error) or type(error).__name__)
        self.worker.disconnected()


class _Member:
    """What a hub knows of one worker."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.incarnation = 0
        self.commands: _Channel | None = None
        self.replies: _Channel | None = None
        self.outgoing: deque[Message] = deque()
        self.beat = b""
        self.heard = time.monotonic()


class StoreHub:
    """The coordinator's end of a store.

    Parameters
    ----------
    store
        A ``torch.distributed`` store that coordinator and workers share.
    names
        The workers' names.
    silence_s
        A worker whose heartbeat has not changed for so long, and that is not exporting, counts as lost. It is
        taken in again when it is heard again, or when another process takes its name.
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
        self._store = _own_connection(store)
        self._members = {name: _Member(name) for name in names}
        self._received: deque[tuple[str, Message]] = deque()
        self._returned: deque[str] = deque()
        self._silence_s = silence_s
        self._meanwhile = meanwhile
        self._patience = _Patience()
        self._looked = -_BEAT_S
        self._answered = time.monotonic()
        self._gone: str | None = None
        self._closing = False
        known = identities or {}
        self.coordinator = ProfileCoordinator(
            {name: known.get(name) for name in names}, self._send, pump=self.pump, settings=settings
        )
        self._thread = ControlThread("torchtrt_viz-store-hub", self._serve, self._lose)

    def add(self, worker: str, identity: RankIdentity | None = None) -> None:
        """Take in a new worker; it takes part from the next session on."""
        self._members.setdefault(worker, _Member(worker))
        self.coordinator.add(worker, identity)

    def remove(self, worker: str) -> None:
        """Do without a worker from now on."""
        self._members.pop(worker, None)
        self.coordinator.remove(worker)

    def pump(self, timeout: float = 0.0) -> bool:
        """Handle what has come, waiting up to ``timeout`` seconds; True when anything had.

        Never waits for the store. While it does not answer, the workers count as lost.
        """
        self._thread.wake()
        deadline = time.monotonic() + timeout
        while True:
            found = self._deliver()
            if self._meanwhile is not None:
                self._meanwhile()
            if found or time.monotonic() >= deadline:
                break
            time.sleep(min(0.005, max(0.0, deadline - time.monotonic())))
        self._listen()
        self.coordinator.poll()
        return found

    def close(self) -> None:
        """End the hub's thread; workers keep what they record."""
        self._closing = True
        self._thread.wake()
        end_thread(self._thread, time.monotonic() + _FLUSH_S, lambda: None)

    # -- on the engine's thread --------------------------------------------------------------------------

    def _send(self, worker: str, sent: Message) -> None:
        if self._gone is not None:
            raise ConnectionError(self._gone)
        self._members[worker].outgoing.append(sent)
        self._thread.wake()

    def _deliver(self) -> bool:
        found = False
        while self._returned:
            name = self._returned.popleft()
            if name in self.coordinator.gone:
                self.coordinator.add(name, self.coordinator.identity(name))
        while self._received:
            found = True
            self.coordinator.handle(*self._received.popleft())
        return found

    def _listen(self) -> None:
        """Tell the coordinator who has been silent for too long."""
        now = time.monotonic()
        silent = self._gone
        if silent is None and now - self._answered > self._silence_s:
            silent = f"the store has not answered for {self._silence_s:g} s"
        busy = self.coordinator.exporting()
        for member in list(self._members.values()):
            if silent is not None:
                self.coordinator.lost(member.name, silent)
            elif member.name in busy:
                member.heard = now
            elif now - member.heard > self._silence_s:
                self.coordinator.lost(member.name, f"no sign of life for {self._silence_s:g} s")

    # -- on the thread -----------------------------------------------------------------------------------

    def _serve(self) -> float | None:
        try:
            self._exchange(list(self._members.values()))
        except ConnectionError as error:
            return self._patience.failed(error)
        self._patience.answered()
        self._answered = time.monotonic()
        if self._closing:
            return None
        return _LOOK_S if self.coordinator.active else _IDLE_S

    def _exchange(self, members: Iterable[_Member]) -> None:
        now = time.monotonic()
        look = now - self._looked >= _BEAT_S
        if look:
            self._looked = now
        for member in members:
            if look or member.commands is None:
                self._look(member, now)
            if member.commands is None or member.replies is None:
                continue
            while member.outgoing:
                member.commands.put(member.outgoing[0])
                member.outgoing.popleft()
            while (received := member.replies.take()) is not None:
                member.heard = time.monotonic()
                self._received.append((member.name, received))

    def _look(self, member: _Member, now: float) -> None:
        """See which process has a worker's name, and whether it lives."""
        incarnation = int(self._value(f"{_PREFIX}/incarnation/{member.name}") or 0)
        if incarnation > member.incarnation:
            if member.incarnation:
                member.outgoing.clear()  # meant for the process before
            member.incarnation = incarnation
            member.commands = _Channel(self._store, f"command/{member.name}/{incarnation}")
            member.replies = _Channel(self._store, f"reply/{member.name}/{incarnation}")
            member.heard = now
        beat = self._value(f"{_PREFIX}/beat/{member.name}")
        if beat != member.beat:
            member.beat, member.heard = beat, now
            self._returned.append(member.name)

    def _value(self, key: str) -> bytes:
        if not _asked(lambda: self._store.check([key])):
            return b""
        return bytes(_asked(lambda: self._store.get(key)))

    def _lose(self, error: BaseException) -> None:
        self._gone = str(error) or type(error).__name__
