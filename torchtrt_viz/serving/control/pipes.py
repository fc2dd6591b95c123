"""Coordination over multiprocessing pipes, for engines whose workers are child processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any

from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.control.coordinator import ProfileCoordinator
from torchtrt_viz.serving.control.messages import Message

__all__ = ["PipeHub"]


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
            if not self.coordinator.handle(name, received) and self._on_message is not None:
                self._on_message(name, received)
        self.coordinator.poll()
        return bool(ready)

    def _drop(self, name: str, reason: str) -> None:
        self._connections.pop(name).close()
        self.coordinator.lost(name, reason)
        if self._on_lost is not None:
            self._on_lost(name)
