"""A worker's side of a coordinated session."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.control.messages import COMMANDS, Message, is_profile_message, message
from torchtrt_viz.serving.rank.profiler import RankProfiler

__all__ = ["ProfileWorker"]

_REMEMBERED = 64
_PATIENCE_S = 10.0
_PAUSE_S = 0.05


class ProfileWorker:
    """Carries out a coordinator's commands on one worker, over a channel that the engine has already.

    The engine gives every message it receives to :meth:`handle` first, and calls :meth:`poll` in its loop::

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

    Everything runs on the thread that calls, so a channel that blocks holds the engine up. `PipeWorker` and
    `StoreWorker` use a thread of their own for theirs.

    Parameters
    ----------
    send
        Sends one message to the coordinator. An `OSError` means that the coordinator is gone. Anything else
        that it raises is named in the status; the message is kept and sent again, and after 10 s the
        coordinator counts as gone.
    """

    def __init__(self, profiler: RankProfiler, send: Callable[[Message], None]) -> None:
        self.profiler = profiler
        self._send = send
        self._outbox: deque[Message] = deque()
        self._sending = threading.Lock()
        self._troubled: float | None = None
        self._again = 0.0
        self._cancelled: OrderedDict[str, None] = OrderedDict()
        self._dirty = threading.Event()
        self._connected = True
        self._told = ("", 0)  # session, and the revision of its artifacts that was told last
        profiler.listen(self._changed)
        _workers.add(self)
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
                seen = received.get("seen")
                self._report(session, seen if isinstance(seen, int) else 0)
        except TorchTrtVizError as error:
            self._reply("profile_error", session, error=str(error))
        except Exception as error:  # a profile must never take the worker down
            self._reply("profile_error", session, error=f"{type(error).__name__}: {error}")
        return True

    def poll(self) -> None:
        """Serve other threads' calls, and report artifacts that have changed."""
        self.profiler.poll()
        self.report_changes()

    def report_changes(self) -> None:
        """Report artifacts that have changed, and send what could not be sent before."""
        if self._dirty.is_set():
            self._dirty.clear()
            session = self.profiler.session_id
            self._report(session, self._told[1] if session == self._told[0] else 0)
        elif self._outbox and time.monotonic() >= self._again:
            self._flush()

    def disconnected(self) -> None:
        """Tell the worker that its coordinator is gone: it stops and keeps what is being recorded."""
        self._connected = False
        self._outbox.clear()
        try:
            self.profiler.stop(reason="disconnected")
        except Exception as error:
            self.profiler.note(f"the coordinator is gone, and the session could not be stopped: {error}")

    def close(self, timeout: float | None = None) -> bool:
        """Stop what is active and finish what is queued; False when time ran out."""
        done = self.profiler.close(timeout)
        session = self.profiler.session_id
        self._report(session, self._told[1] if session == self._told[0] else 0)
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
        self._reply("profile_stopped", session, **self._state(session, 0))

    def _report(self, session: str | None, since: int) -> None:
        if session is not None:
            self._reply("profile_artifacts", session, **self._state(session, since))

    def _state(self, session: str, since: int) -> dict[str, Any]:
        """Return collection and the artifacts that have changed since a revision."""
        collection, revision, artifacts = self.profiler.changes(since)
        if collection.session_id != session:
            return {"collection": None, "artifacts": []}
        self._told = (session, revision)
        return {
            "collection": collection.to_dict(),
            "artifacts": [a.to_dict() for a in artifacts],
            "revision": revision,
            "since": since,
        }

    def _changed(self, what: str, value: Any) -> None:
        self._dirty.set()

    # -- sending ---------------------------------------------------------------------------------------

    def _reply(self, type: str, session: str | None, **fields: Any) -> None:
        if not self._connected:
            return
        identity = self.profiler.identity
        self._outbox.append(message(type, session, rank=identity.rank, identity=identity.to_dict(), **fields))
        self._flush()

    def _flush(self) -> None:
        """Send what waits, in order, as far as the channel takes it."""
        with self._sending:
            while self._outbox:
                try:
                    self._send(self._outbox[0])
                except OSError:
                    gone = True
                    break
                except Exception as error:
                    gone = self._hindered(error)
                    break
                self._outbox.popleft()
                self._troubled = None
            else:
                return
        if gone:
            self.disconnected()

    def _hindered(self, error: Exception) -> bool:
        """Note that a message could not be sent; True when that has gone on for too long."""
        now = time.monotonic()
        self._again = now + _PAUSE_S
        if self._troubled is None:
            self._troubled = now
            self.profiler.note(
                f"a message to the coordinator could not be sent ({type(error).__name__}: {error}); "
                f"it is tried again for {_PATIENCE_S:g} s"
            )
        return now - self._troubled > _PATIENCE_S


_workers: weakref.WeakSet[ProfileWorker] = weakref.WeakSet()


def _in_child() -> None:
    """A fork is no worker of the session: it tells the coordinator nothing."""
    for worker in list(_workers):
        worker._connected = False
        worker._outbox.clear()
        worker._sending = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
