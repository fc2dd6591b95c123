"""Coordination over multiprocessing pipes, for engines whose workers are child processes."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any

from torchtrt_viz.errors import OptionError
from torchtrt_viz.serving.contract.control_thread import ControlThread, end_thread
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.control.coordinator import ProfileCoordinator
from torchtrt_viz.serving.control.messages import Message, is_profile_message
from torchtrt_viz.serving.control.worker import ProfileWorker
from torchtrt_viz.serving.rank.profiler import RankProfiler

__all__ = ["PipeHub", "PipeWorker"]

_WAIT_S = 0.2
_FLUSH_S = 5.0


class PipeWorker:
    """A worker's end of a pipe that profiling shares with the engine's own messages.

    Two threads own the pipe, one for each direction: a coordinator that does not read, or is stopped, holds
    up neither :meth:`send` nor a step. ::

        worker = PipeWorker(pipe, profiler)         # on the engine's thread
        while not worker.closed:
            while (message := worker.receive(0 if busy else 0.01)) is not None:
                ...                                 # the engine's own message
            with profiler.engine_step() as step:
                step.worked = engine.step()
        worker.close()

    Parameters
    ----------
    connection
        This end of the pipe. Nobody else may read from it or write to it.

    Attributes
    ----------
    worker
        The :class:`ProfileWorker` that carries out the commands.
    """

    def __init__(self, connection: Connection[Any, Any], profiler: RankProfiler) -> None:
        self._connection = connection
        self._profiler = profiler
        self._received: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._commands: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._outgoing: deque[Any] = deque()
        self._broken = False
        self._closing = False
        self._wake_writer: Callable[[], None] = lambda: None  # the worker says hello before it begins
        if not profiler.mailbox.owned:
            profiler.mailbox.own()
        self.worker = ProfileWorker(profiler, self._put)
        self._writer = ControlThread("torchtrt_viz-pipe-writer", self._write, self._lose)
        self._wake_writer = self._writer.wake
        self._reader = ControlThread("torchtrt_viz-pipe-reader", self._read, self._lose)
        self._control = ControlThread("torchtrt_viz-pipe-control", self._serve, self._lose)

    @property
    def closed(self) -> bool:
        """Whether the other end is gone, and every message from it has been received."""
        return self._broken and self._received.empty()

    def receive(self, timeout: float = 0.0) -> Any:
        """Return the engine's next message, None when none comes within ``timeout`` seconds."""
        self._profiler.poll()
        try:
            return self._received.get(timeout=timeout) if timeout else self._received.get_nowait()
        except queue.Empty:
            return None

    def send(self, sent: Any) -> None:
        """Queue one of the engine's own messages; do not change it afterwards.

        Raises
        ------
        OSError
            When the other end is gone.
        """
        self._put(sent)

    def poll(self) -> None:
        """Serve other threads' calls; `receive` and the profiler's steps do that too."""
        self._profiler.poll()

    def close(self, timeout: float | None = None) -> bool:
        """Stop what is active, finish what is queued, send what is left; False when time ran out.

        The pipe itself stays open: it is the engine's.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        done = self.worker.close(timeout)
        self._closing = True
        until = time.monotonic() + _FLUSH_S
        for thread in (self._control, self._writer, self._reader):
            thread.wake()
            end_thread(thread, until if deadline is None else min(until, deadline), self._profiler.poll)
        return done

    # -- on the threads ----------------------------------------------------------------------------------

    def _put(self, sent: Any) -> None:
        if self._broken:
            raise BrokenPipeError("the other end of the pipe is gone")
        self._outgoing.append(sent)
        self._wake_writer()

    def _write(self) -> float | None:
        while self._outgoing:
            self._connection.send(self._outgoing[0])
            self._outgoing.popleft()
        return None if self._closing else _WAIT_S

    def _read(self) -> float | None:
        while not self._closing:
            if not self._connection.poll(_WAIT_S):
                continue
            received = self._connection.recv()
            if is_profile_message(received):
                self._commands.put(received)
                self._control.wake()
            else:
                self._received.put(received)
        return None

    def _serve(self) -> float | None:
        """Carry out commands; each waits for the engine's thread, which goes on reading its messages."""
        while not self._commands.empty():
            self.worker.handle(self._commands.get())
        self.worker.report_changes()
        return None if self._closing or self._broken else _WAIT_S

    def _lose(self, error: BaseException) -> None:
        if self._broken or self._closing:
            return
        self._broken = True
        if not isinstance(error, (EOFError, OSError)):
            self._profiler.note(f"the pipe to the coordinator failed: {type(error).__name__}: {error}")
        self.worker.disconnected()


class PipeHub:
    """The coordinator's end of one pipe per worker, shared with the engine's own messages.

    ::

        hub = PipeHub({"P0": pipe0, "D0": pipe1}, on_message=engine.receive)
        hub.coordinator.start_profile(ProfileConfig("profiles"), window=True)
        while serving:
            hub.pump(0.01)          # receives; ours are handled, others go to engine.receive(worker, message)

    Parameters
    ----------
    connections
        Worker's name -> this end of its pipe.
    on_message
        Called with (worker, message) for every message that is not about profiling.
    on_lost
        Called with the worker's name when its pipe breaks, after the coordinator knows.
    """

    def __init__(
        self,
        connections: Mapping[str, Connection[Any, Any]],
        *,
        on_message: Callable[[str, Any], None] | None = None,
        on_lost: Callable[[str], None] | None = None,
        identities: Mapping[str, RankIdentity] | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._connections = dict(connections)
        self._on_message = on_message
        self._on_lost = on_lost
        known = identities or {}
        self.coordinator = ProfileCoordinator(
            {name: known.get(name) for name in connections}, self.send, pump=self.pump, settings=settings
        )

    def add(
        self, worker: str, connection: Connection[Any, Any], identity: RankIdentity | None = None
    ) -> None:
        """Take in a worker that is new, or that replaces one of the same name whose pipe broke.

        It takes part from the next session on.

        Raises
        ------
        OptionError
            While a worker of this name is connected.
        """
        if worker in self._connections:
            raise OptionError("worker", worker, "a name that no connected worker has")
        self._connections[worker] = connection
        self.coordinator.add(worker, identity)

    def send(self, worker: str, sent: Message | Any) -> None:
        """Send one message to a worker.

        Raises
        ------
        OSError
            When it is gone.
        """
        connection = self._connections.get(worker)
        if connection is None:
            raise BrokenPipeError(f"{worker} is gone")
        connection.send(sent)

    @property
    def alive(self) -> list[str]:
        """Workers whose pipes are whole."""
        return list(self._connections)

    def pump(self, timeout: float = 0.0) -> bool:
        """Receive and handle what has come, waiting up to ``timeout`` seconds; True when anything had."""
        ready = set(wait(list(self._connections.values()), timeout))
        for name, connection in list(self._connections.items()):
            if connection not in ready:
                continue
            try:
                received = connection.recv()
            except (EOFError, OSError):
                self._drop(name, "its pipe was closed: the process has ended")
                continue
            except Exception as error:  # what does not unpickle leaves the pipe in an unknown state
                self._drop(name, f"its pipe carried something unreadable: {type(error).__name__}: {error}")
                continue
            if not self.coordinator.handle(name, received) and self._on_message is not None:
                self._on_message(name, received)
        self.coordinator.poll()
        return bool(ready)

    def _drop(self, name: str, reason: str) -> None:
        self._connections.pop(name).close()
        self.coordinator.lost(name, reason)
        if self._on_lost is not None:
            self._on_lost(name)
