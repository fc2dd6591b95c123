"""What a coordinator knows of each worker within one session."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from torchtrt_viz.errors import OptionError
from torchtrt_viz.serving.artifacts.session_manifest import SessionBook
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.status import ArtifactStatus, CollectionStatus
from torchtrt_viz.serving.control.messages import Message

__all__ = ["Member", "SessionState", "identity_in"]


def identity_in(received: Message) -> RankIdentity | None:
    """Return the identity in a worker's message; None if there is no well-formed one."""
    fields = received.get("identity")
    if not isinstance(fields, dict):
        return None
    known = RankIdentity.__dataclass_fields__
    try:
        return RankIdentity(**{k: v for k, v in fields.items() if k in known})
    except OptionError:
        return None


@dataclass
class Member:
    """One worker's part in a session.

    Attributes
    ----------
    state
        asked (start was sent), recording, stopping (it has confirmed that the stop arrived), stopped,
        failed or missing.
    deadline
        When an answer is due (monotonic seconds); None while nothing is awaited.
    unfinished
        Cycles of which an archive is still to come.
    revision
        Up to which of the worker's changes its artifacts are known.
    asked_at
        When it was asked for its state (monotonic seconds) and has not answered since; None otherwise.
    """

    name: str
    identity: RankIdentity
    state: str = "asked"
    error: str | None = None
    deadline: float | None = None
    collection: CollectionStatus | None = None
    artifacts: dict[int, ArtifactStatus] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)
    revision: int = 0
    asked_at: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more can come of its recording."""
        return self.state in ("stopped", "failed", "missing")

    def take(self, received: Message) -> list[ArtifactStatus]:
        """Take over collection and artifacts out of a reply; malformed parts are left out.

        Returns
        -------
        list of ArtifactStatus
            Those that the reply holds.
        """
        identity = identity_in(received)
        if identity is not None:
            self.identity = identity.with_rank(self.identity.rank)
        collection = received.get("collection")
        if isinstance(collection, dict):
            known = CollectionStatus.__dataclass_fields__
            self.collection = CollectionStatus(**{k: v for k, v in collection.items() if k in known})
        artifacts = received.get("artifacts")
        changed = []
        for item in artifacts if isinstance(artifacts, list) else []:
            if isinstance(item, dict) and isinstance(item.get("cycle"), int) and "session_id" in item:
                changed.append(ArtifactStatus.from_dict({**item, "rank": self.identity.rank}))
        for status in changed:
            self.put(status)
        revision, since = received.get("revision"), received.get("since")
        # A reply that does not follow on what is known leaves a gap, which the next question fills.
        if isinstance(revision, int) and isinstance(since, int) and since <= self.revision:
            self.revision = max(self.revision, revision)
        return changed

    def put(self, status: ArtifactStatus) -> None:
        """Note the state of one cycle."""
        self.artifacts[status.cycle] = status
        if status.done:
            self.unfinished.discard(status.cycle)
        else:
            self.unfinished.add(status.cycle)

    def give_up(self, error: str) -> list[ArtifactStatus]:
        """Mark what is unfinished as interrupted, and return it."""
        out = [self.artifacts[cycle] for cycle in sorted(self.unfinished)]
        for artifact in out:
            artifact.state, artifact.error = "interrupted", error
        self.unfinished.clear()
        return out


@dataclass
class SessionState:
    """One session of a coordinator.

    Attributes
    ----------
    state
        starting, recording, stopping, cancelling (a start is being taken back) or idle.
    """

    session_id: str
    mode: str
    book: SessionBook
    members: dict[str, Member]
    state: str = "starting"
    start_unix_ns: int | None = None
    stop_unix_ns: int | None = None
    ended_by: str | None = None

    def missing(self) -> dict[str, str]:
        """Workers that did not answer, or are gone."""
        return {m.name: m.error or "" for m in self.members.values() if m.state == "missing"}

    def failed(self) -> dict[str, str]:
        """Workers that reported an error."""
        return {m.name: m.error or "" for m in self.members.values() if m.state == "failed"}

    def expire(self) -> list[Member]:
        """Mark the workers whose answer is overdue, and return them."""
        now = time.monotonic()
        late = [m for m in self.members.values() if m.deadline is not None and now > m.deadline]
        for member in late:
            what = "start" if member.state == "asked" else "stop"
            member.state, member.deadline = "missing", None
            member.error = f"no answer to the {what} in time"
        return late

    @property
    def awaited(self) -> list[Member]:
        """Workers whose answer is still due."""
        return [m for m in self.members.values() if m.deadline is not None]

    def note(self, member: Member, changed: Iterable[ArtifactStatus] = ()) -> None:
        """Put what is known of a worker, and its artifacts that changed, into the session's manifest."""
        rank = member.identity.rank
        if member.state in ("failed", "missing"):
            self.book.lost(rank, member.state, member.error or "")
        elif member.collection is not None:
            self.book.collection(rank, member.collection)
        for artifact in changed:
            self.book.artifact(artifact)
