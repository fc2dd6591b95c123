"""A worker's side of a coordinated session."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.control.messages import COMMANDS, Message, is_profile_message, message
from torchtrt_viz.serving.rank.profiler import RankProfiler

__all__ = ["ProfileWorker"]

_REMEMBERED = 64


class ProfileWorker:
    """Carries out a coordinator's commands on one worker.

    The engine gives every message it receives to :meth:`handle` first, on the thread that runs the
    engine, also while idle, and calls :meth:`poll` in its loop::

        worker = ProfileWorker(profiler, connection.send)
        while running:
            while connection.poll(0 if busy else 0.01):
                message = connection.recv()
                if not worker.handle(message):
                    ...                             # the engine's own message
            with profiler.engine_step() as step:
                step.worked = engine.step()
            worker.poll()
        worker.close()

    Parameters
    ----------
    send
        Sends one message to the coordinator. An `OSError` means that the coordinator is gone.
    """

    def __init__(self, profiler: RankProfiler, send: Callable[[Message], None]) -> None:
        self.profiler = profiler
        self._send = send
        self._cancelled: OrderedDict[str, None] = OrderedDict()
        self._dirty = threading.Event()
        self._connected = True
        profiler.listen(self._changed)
        self._reply("profile_hello", None)

    # -- from the engine's loop ------------------------------------------------------------------------

    def handle(self, received: object) -> bool:
        """Carry out a command; False for a message that is not about profiling."""
        if not is_profile_message(received):
            return False
        assert isinstance(received, dict)
        if received["type"] not in COMMANDS:
            return True
        session = received.get("session")
        if not isinstance(session, str):
            return True
        try:
            if received["type"] == "profile_start":
                self._start(session, received)
            elif received["type"] == "profile_stop":
                self._stop(session, bool(received.get("cancel")))
            else:
                if received["type"] == "profile_retry":
                    self.profiler.retry(session)
                self._report(session)
        except TorchTrtVizError as error:
            self._reply("profile_error", session, error=str(error))
        except Exception as error:  # a profile must never take the worker down
            self._reply("profile_error", session, error=f"{type(error).__name__}: {error}")
        return True

    def poll(self) -> None:
        """Serve other threads' calls, and report artifacts that have changed."""
        self.profiler.poll()
        if self._dirty.is_set():
            self._dirty.clear()
            self._report(self.profiler.status().collection.session_id)

    def disconnected(self) -> None:
        """Tell the worker that its coordinator is gone: it stops and keeps what is being recorded."""
        self._connected = False
        self.profiler.stop(reason="disconnected")

    def close(self, timeout: float | None = None) -> bool:
        """Stop what is active and finish what is queued; False when time ran out."""
        done = self.profiler.close(timeout)
        self._report(self.profiler.status().collection.session_id)
        return done

    # -- commands --------------------------------------------------------------------------------------

    def _start(self, session: str, received: Message) -> None:
        if session in self._cancelled:
            return  # given up before it arrived
        rank = received.get("rank")
        identity = self.profiler.identity
        if isinstance(rank, int):
            identity = identity.with_rank(rank)
        config = ProfileConfig.from_mapping(received.get("config") or {})
        window = bool(received.get("window"))
        active = self.profiler.status().collection
        if not (active.session_id == session and active.state == "recording"):  # else: asked twice
            active = self.profiler.start(config, window=window, session_id=session, identity=identity)
        self._reply("profile_started", session, collection=active.to_dict())

    def _stop(self, session: str, cancel: bool) -> None:
        if cancel:
            self._cancelled[session] = None
            while len(self._cancelled) > _REMEMBERED:
                self._cancelled.popitem(last=False)
        self._reply("profile_stopping", session)
        if cancel:
            self.profiler.cancel(session)
        else:
            self.profiler.stop(session)
        self._reply("profile_stopped", session, **self._state(session))

    def _report(self, session: str | None) -> None:
        if session is not None:
            self._reply("profile_artifacts", session, **self._state(session))

    def _state(self, session: str) -> dict[str, Any]:
        status = self.profiler.status()
        if status.collection.session_id != session:
            return {"collection": None, "artifacts": []}
        return {
            "collection": status.collection.to_dict(),
            "artifacts": [a.to_dict() for a in status.artifacts],
        }

    def _changed(self, what: str, value: Any) -> None:
        self._dirty.set()

    def _reply(self, type: str, session: str | None, **fields: Any) -> None:
        if not self._connected:
            return
        identity = self.profiler.identity.to_dict()
        try:
            self._send(message(type, session, rank=self.profiler.identity.rank, identity=identity, **fields))
        except OSError:
            self.disconnected()
