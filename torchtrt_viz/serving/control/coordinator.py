"""`ProfileCoordinator`: one profile session over many workers."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torchtrt_viz.errors import OptionError
from torchtrt_viz.serving.artifacts.manifest_writer import ManifestWriter
from torchtrt_viz.serving.artifacts.session_folder import (
    ManifestFile,
    check_session_id,
    new_manifest,
    new_session_id,
    rank_record,
)
from torchtrt_viz.serving.artifacts.session_manifest import SessionBook
from torchtrt_viz.serving.contract.config import ProfileConfig
from torchtrt_viz.serving.contract.errors import ProfileActiveError, ProfileStartError
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.mailbox import Mailbox
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.contract.status import ArtifactStatus, CollectionStatus, ProfileStatus
from torchtrt_viz.serving.control.messages import REPLIES, Message, is_profile_message, message
from torchtrt_viz.serving.control.worker_state import Member, SessionState, identity_in

__all__ = ["ProfileCoordinator"]

_KEPT_SESSIONS = 16
_PUMP_S = 0.02
_ASK_S = 0.2
_ASK_AGAIN_S = 30.0
_FLUSH_S = 1.0


class ProfileCoordinator:
    """Starts and stops a session on every worker, and collects the results.

    The engine gives each message that comes from a worker to :meth:`handle` first, tells :meth:`lost`
    when a worker is gone, and calls :meth:`poll` in its loop. Workers need not run in lock step: replies
    are matched by session id, each has a deadline, and a late reply changes nothing in a later session.

    Parameters
    ----------
    workers
        Name of each worker and, where it is known already, its identity; others tell theirs when they
        register. Ranks are those of a process group when every worker has one, else they are assigned in
        the order given.
    send
        Sends one message to the worker of a name; an exception means that it is gone, and is named as the
        reason.
    pump
        Receives and handles the engine's messages for up to so many seconds. It is called while
        :meth:`start_profile` and :meth:`stop_profile` wait on the engine's own thread, so that requests
        and transfers are served meanwhile.
    """

    def __init__(
        self,
        workers: Mapping[str, RankIdentity | None],
        send: Callable[[str, Message], None],
        *,
        pump: Callable[[float], object] | None = None,
        settings: Settings | None = None,
    ) -> None:
        if not workers:
            raise OptionError("workers", workers, "at least one worker")
        self.settings = settings or Settings()
        self.mailbox = Mailbox()
        self._workers: dict[str, RankIdentity | None] = dict(workers)
        self._gone: dict[str, str] = {}
        self._send = send
        self._pump = pump
        self._sessions: OrderedDict[str, SessionState] = OrderedDict()
        self._current: SessionState | None = None
        self._latest: SessionState | None = None
        self._changed = threading.Condition()
        self._manifests = ManifestWriter()

    def attach(self) -> None:
        """Make the calling thread the one that runs the engine's message loop."""
        self.mailbox.own()

    def flush(self, timeout: float = _FLUSH_S) -> bool:
        """Wait until the manifests on disk say what is known; False when the disk takes longer."""
        return self._manifests.flush(timeout)

    # -- the engine's loop -------------------------------------------------------------------------------

    def handle(self, worker: str, received: object) -> bool:
        """Take a worker's reply; False when the message is none of ours."""
        if not is_profile_message(received):
            return False
        assert isinstance(received, dict)
        if received["type"] not in REPLIES or worker not in self._workers:
            return True
        if received["type"] == "profile_hello":
            self._register(worker, received)
            return True
        session = self._sessions.get(received["session"] or "")
        member = None if session is None else session.members.get(worker)
        if session is not None and member is not None:
            self._reply(session, member, received)
        return True

    def add(self, worker: str, identity: RankIdentity | None = None) -> None:
        """Take in a worker: a new one, or one that replaces a lost one under the same name.

        It takes part from the next session on. A lost worker that says hello again is taken in by itself.
        """
        self._workers[worker] = identity
        self._gone.pop(worker, None)

    def remove(self, worker: str, reason: str = "removed by the engine") -> None:
        """Do without a worker from now on: later sessions do not wait for it."""
        self.lost(worker, reason)
        self._workers.pop(worker, None)
        self._gone.pop(worker, None)

    def lost(self, worker: str, reason: str = "connection lost") -> None:
        """Note that a worker is gone; what it had recorded and staged stays on its disk.

        As long as neither it comes back nor another takes its place (:meth:`add`, :meth:`remove`), no session
        starts.
        """
        if worker not in self._workers or worker in self._gone:
            return
        self._gone[worker] = reason
        for session in self._sessions.values():
            member = session.members.get(worker)
            if member is not None and (not member.over or member.unfinished):
                member.state, member.deadline, member.error = "missing", None, reason
                session.note(member, member.give_up(reason))
                self._write(session)
        self._advance()

    @property
    def gone(self) -> dict[str, str]:
        """Workers that are lost, and why."""
        return dict(self._gone)

    @property
    def active(self) -> bool:
        """Whether a session is active, or archives of the last one are still to come."""
        session = self._latest
        return session is not None and (
            session is self._current or not all(_delivered(m) for m in session.members.values())
        )

    def identity(self, worker: str) -> RankIdentity | None:
        """Return what is known of a worker."""
        return self._workers.get(worker)

    def exporting(self) -> list[str]:
        """Workers that have confirmed a stop and are busy exporting: their silence means nothing."""
        session = self._current
        if session is None:
            return []
        return [m.name for m in session.members.values() if m.state == "stopping"]

    def poll(self) -> None:
        """Do what other threads asked for, and see to deadlines."""
        self.mailbox.deliver()
        self._advance()

    def _register(self, worker: str, received: Message) -> None:
        identity = identity_in(received)
        if worker in self._gone:
            self.add(worker, identity)  # it has come back, or another process has taken its place
        elif identity is not None:
            known = self._workers[worker]
            if known is not None and known.pid and (known.host, known.pid) != (identity.host, identity.pid):
                self.lost(worker, f"process {known.pid} was replaced by process {identity.pid}")
                self._gone.pop(worker, None)
            self._workers[worker] = identity

    # -- commands ----------------------------------------------------------------------------------------

    def start_profile(
        self, config: ProfileConfig, *, window: bool = False, session_id: str | None = None
    ) -> ProfileStatus:
        """Start a session on every worker; returns when all of them record.

        All workers record before this returns, so every worker covers a request that is submitted
        afterwards. Their devices do not begin at the same moment.

        Raises
        ------
        OptionError
            For options that cannot be met.
        ProfileActiveError
            While a session is active.
        ProfileStartError
            When a worker fails, is gone, or does not answer within ``settings.control_timeout_s``. The
            others have been stopped again; ``missing`` and ``failed`` name the workers concerned.
        """
        if session_id is not None:
            check_session_id(session_id)
        config.check(window=window)  # what a slow disk does with it is waited for here, not in the loop
        session = self.mailbox.run(
            lambda: self._begin(config, window, session_id), self.settings.control_timeout_s
        )
        self._await(lambda: session.state in ("recording", "idle"))
        self.flush()
        if session.ended_by == "cancelled":
            raise ProfileStartError(session.session_id, session.missing(), session.failed())
        return self._status(session)

    def stop_profile(self) -> ProfileStatus:
        """Stop the session on every worker; returns when all have exported, not when archives are ready.

        A worker that does not confirm within ``settings.control_timeout_s``, or does not finish its
        export within ``settings.stop_timeout_s`` after that, is reported missing. Without an active
        session nothing happens.
        """
        session = self.mailbox.run(self._end, self.settings.control_timeout_s)
        if session is None:
            return self.profile_status()
        self._await(lambda: session.state == "idle")
        self.flush()
        return self._status(session)

    def profile_status(self) -> ProfileStatus:
        """Return what is known now, without asking the workers."""
        if not self._sessions:
            return ProfileStatus(CollectionStatus())
        return self._status(next(reversed(self._sessions.values())))

    def wait_for_profile_artifacts(self, timeout: float | None = None) -> list[ArtifactStatus]:
        """Wait until every worker's recordings are processed, or failed; inference goes on meanwhile.

        Parameters
        ----------
        timeout
            Seconds; when they are over the statuses say what is still being processed.
        """
        if not self._sessions:
            return []
        session = next(reversed(self._sessions.values()))
        asked = 0.0

        def ready() -> bool:
            nonlocal asked
            now = time.monotonic()
            if now - asked > _ASK_S and self.mailbox.is_mine:
                asked = now
                self._ask(session)
            return session.state == "idle" and all(_delivered(m) for m in session.members.values())

        self._await(ready, timeout)
        self._write(session)
        self.flush()
        return self._status(session).artifacts

    def retry_profile_artifacts(self) -> ProfileStatus:
        """Let the workers process failed artifacts again, and repeat failed clean-ups."""
        if not self._sessions:
            return self.profile_status()
        session = next(reversed(self._sessions.values()))

        def ask() -> None:
            for member in session.members.values():
                if any(a.state in ("failed", "cleanup_failed") for a in member.artifacts.values()):
                    for artifact in member.artifacts.values():
                        if artifact.state in ("failed", "cleanup_failed"):
                            artifact.state = "queued"
                            member.put(artifact)
                    self._tell(session, member, message("profile_retry", session.session_id))

        self.mailbox.run(ask, self.settings.control_timeout_s)
        return self._status(session)

    # -- on the loop's thread ----------------------------------------------------------------------------

    def _identities(self) -> dict[str, RankIdentity]:
        """Give every worker a rank that is unique within the session."""
        known = {name: identity or RankIdentity() for name, identity in self._workers.items()}
        grouped = all(i.world_size is not None for i in known.values())
        if grouped and len({i.rank for i in known.values()}) == len(known):
            return known
        return {name: identity.with_rank(n) for n, (name, identity) in enumerate(known.items())}

    def _begin(self, config: ProfileConfig, window: bool, session_id: str | None) -> SessionState:
        self.mailbox.own()
        if self._current is not None:
            raise ProfileActiveError(
                f"profile session {self._current.session_id} is {self._current.state}: "
                "stop it before starting another one"
            )
        session_id = new_session_id() if session_id is None else check_session_id(session_id)
        if session_id in self._sessions:
            raise OptionError("session_id", session_id, "an id that was not used before")
        identities = self._identities()
        mode = "window" if window else "steps"
        folder = config.output_dir / session_id
        records = [rank_record(i) for i in sorted(identities.values(), key=lambda i: i.rank)]
        book = SessionBook(ManifestFile(folder), new_manifest(session_id, mode, config, records))
        deadline = time.monotonic() + self.settings.control_timeout_s
        members = {n: Member(n, i, deadline=deadline) for n, i in identities.items()}
        session = SessionState(session_id, mode, book, members)
        if self._gone:
            for member in members.values():
                member.deadline = None  # no worker is asked to start if one of them cannot
                if member.name in self._gone:
                    member.state, member.error = "missing", self._gone[member.name]
        self._sessions[session_id] = self._current = self._latest = session
        while len(self._sessions) > _KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        self._write(session)
        if not self._gone:
            for member in members.values():
                if session.state != "starting":
                    break  # one of those before is gone, and the start has been taken back
                self._tell(
                    session,
                    member,
                    message(
                        "profile_start",
                        session_id,
                        rank=member.identity.rank,
                        config=config.to_dict(),
                        window=window,
                    ),
                )
        self._advance()
        return session

    def _end(self) -> SessionState | None:
        session = self._current
        if session is None:
            return None
        if session.state in ("starting", "cancelling"):
            raise ProfileActiveError(f"profile session {session.session_id} is {session.state}")
        if session.state == "recording":
            session.state, session.ended_by = "stopping", "stop"
            deadline = time.monotonic() + self.settings.control_timeout_s
            for member in session.members.values():
                if not member.over:
                    member.deadline = deadline
                    self._tell(session, member, message("profile_stop", session.session_id, cancel=False))
            self._advance()
        return session

    def _tell(self, session: SessionState, member: Member, sent: Message) -> None:
        if member.name in self._gone:
            return
        try:
            self._send(member.name, sent)
        except Exception as error:  # whatever an engine's channel raises
            kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
            self.lost(member.name, f"the connection broke: {kind}{error}")

    def _ask(self, session: SessionState) -> None:
        """Ask for what is still to come; a worker that has not answered yet is not asked again soon."""
        now = time.monotonic()
        for member in session.members.values():
            waiting = member.asked_at is not None and now - member.asked_at < _ASK_AGAIN_S
            if not waiting and not _delivered(member):
                member.asked_at = now
                sent = message("profile_status", session.session_id, seen=member.revision)
                self._tell(session, member, sent)

    def _write(self, session: SessionState, *, now: bool = True) -> None:
        self._manifests.want(session.book, now=now)

    def _reply(self, session: SessionState, member: Member, received: Message) -> None:
        """Handle a reply of a session, whenever it arrives."""
        kind = received["type"]
        changed: list[ArtifactStatus] = []
        member.asked_at = None
        if session.ended_by == "cancelled":
            self._reply_to_cancel(member, received)
            self._advance()
            return
        if kind == "profile_error":
            if not member.over:
                member.state, member.deadline = "failed", None
                member.error = str(received.get("error"))
        elif kind == "profile_started":
            if member.state == "asked":
                member.state, member.deadline = "recording", None
                changed = member.take(received)
                session.book.identify(member.identity)
        elif kind == "profile_stopping":
            if session.state == "stopping" and member.deadline is not None:
                member.state = "stopping"
                member.deadline = time.monotonic() + self.settings.stop_timeout_s
        else:
            changed = member.take(received)
            ended = member.collection is not None and member.collection.state == "idle"
            if kind == "profile_stopped" or (ended and member.state == "recording"):
                # even if it was given up as missing: its recording exists after all
                member.state, member.deadline, member.error = "stopped", None, None
        session.note(member, changed)
        self._write(session, now=kind != "profile_artifacts")
        self._advance()

    def _reply_to_cancel(self, member: Member, received: Message) -> None:
        """Handle a reply of a session whose start is being rolled back, or was."""
        if member.over:
            return
        if received["type"] == "profile_error":
            member.state, member.deadline = "failed", None
            member.error = str(received.get("error"))
        elif received["type"] == "profile_started":
            member.state = "cancelling"  # its stop message follows its start in the channel
        elif received["type"] == "profile_stopped":
            member.state, member.deadline = "stopped", None

    def _advance(self) -> None:
        """Advance the current session as far as answers and deadlines allow."""
        session = self._current
        if session is not None:
            for member in session.expire():
                session.note(member)
                self._write(session)
            if session.state == "starting" and (session.missing() or session.failed()):
                self._take_back(session)
            if session.state == "starting" and not session.awaited:
                session.state, session.start_unix_ns = "recording", time.time_ns()
            elif session.state == "cancelling" and not session.awaited:
                self._close(session)
            elif session.state == "recording" and all(m.over for m in session.members.values()):
                session.ended_by = session.ended_by or "schedule"
                self._close(session)
            elif session.state == "stopping" and all(m.over for m in session.members.values()):
                self._close(session)
        with self._changed:
            self._changed.notify_all()

    def _take_back(self, session: SessionState) -> None:
        """Stop what has started, and tell those that are silent that the session is void."""
        session.state, session.ended_by = "cancelling", "cancelled"
        deadline = time.monotonic() + self.settings.control_timeout_s
        for member in list(session.members.values()):
            if member.state == "failed":
                continue
            if member.state == "recording":
                member.state, member.deadline = "cancelling", deadline
            self._tell(session, member, message("profile_stop", session.session_id, cancel=True))

    def _close(self, session: SessionState) -> None:
        session.state, session.stop_unix_ns = "idle", time.time_ns()
        self._current = None
        if session.ended_by == "cancelled":
            culprits = {**session.missing(), **session.failed()}
            for member in session.members.values():
                if member.name not in culprits:
                    why = f"stopped again, since {', '.join(culprits)} did not start"
                    session.book.lost(member.identity.rank, "failed", why)
                    member.state, member.deadline = "stopped", None
        self._write(session)

    def _await(self, done: Callable[[], bool], timeout: float | None = None) -> None:
        """Wait: on the loop's own thread by running the loop, on others for a notification."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not done() and (deadline is None or time.monotonic() < deadline):
            if not self.mailbox.is_mine:
                with self._changed:
                    self._changed.wait(_ASK_S)
            elif self._pump is None:
                raise OptionError(
                    "pump", None, "a function that handles the engine's messages, to wait on its thread"
                )
            else:
                self._pump(_PUMP_S)
                self.poll()

    # -- telling -----------------------------------------------------------------------------------------

    def _status(self, session: SessionState) -> ProfileStatus:
        members = sorted(session.members.values(), key=lambda m: m.identity.rank)
        collections = [m.collection for m in members if m.collection is not None]
        problems = {**session.missing(), **session.failed()}
        collection = CollectionStatus(
            state=session.state if session.state != "cancelling" else "stopping",
            session_id=session.session_id,
            mode=session.mode,
            steps=max((c.steps for c in collections), default=0),
            cycles=sum(c.cycles for c in collections),
            cycles_ended=sum(c.cycles_ended for c in collections),
            start_unix_ns=session.start_unix_ns,
            stop_unix_ns=session.stop_unix_ns,
            ended_by=session.ended_by,
            cut_at_start=_cut(c.cut_at_start for c in collections),
            cut_at_stop=_cut(c.cut_at_stop for c in collections),
            error="; ".join(f"{name}: {why}" for name, why in problems.items()) or None,
            warnings=[f"{m.name}: {w}" for m in members if m.collection for w in m.collection.warnings],
        )
        if session.book.error is not None:
            collection.warnings.append(session.book.error)
        return ProfileStatus(
            collection,
            [m.artifacts[cycle] for m in members for cycle in sorted(m.artifacts)],
            [_rank_status(m) for m in members],
        )


def _cut(lists: Iterable[list[str]]) -> list[str]:
    """Return the requests that a boundary cut on any rank, each once."""
    return list(dict.fromkeys(request for requests in lists for request in requests))


def _delivered(member: Member) -> bool:
    """Whether nothing more is expected of a worker."""
    if member.state in ("failed", "missing"):
        return True
    if member.state != "stopped":
        return False
    ended = 0 if member.collection is None else member.collection.cycles_ended
    return len(member.artifacts) >= ended and not member.unfinished


def _rank_status(member: Member) -> dict[str, Any]:
    return {
        "worker": member.name,
        **member.identity.to_dict(),
        "state": member.state,
        "error": member.error,
        "collection": None if member.collection is None else member.collection.to_dict(),
    }
