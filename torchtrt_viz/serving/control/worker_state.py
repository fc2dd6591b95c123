"""What a coordinator knows of each worker within one session."""

from __future__ import annotations

import time
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
    """

    name: str
    identity: RankIdentity
    state: str = "asked"
    error: str | None = None
    deadline: float | None = None
    collection: CollectionStatus | None = None
    artifacts: dict[int, ArtifactStatus] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether nothing more can come of its recording."""
        return self.state in ("stopped", "failed", "missing")

    def take(self, received: Message) -> None:
        """Take over collection and artifacts out of a reply; malformed parts are left out."""
        identity = identity_in(received)
        if identity is not None:
            self.identity = identity.with_rank(self.identity.rank)
        collection = received.get("collection")
        if isinstance(collection, dict):
            known = CollectionStatus.__dataclass_fields__
            self.collection = CollectionStatus(**{k: v for k, v in collection.items() if k in known})
        artifacts = received.get("artifacts")
        for item in artifacts if isinstance(artifacts, list) else []:
            if isinstance(item, dict) and isinstance(item.get("cycle"), int) and "session_id" in item:
                status = ArtifactStatus.from_dict({**item, "rank": self.identity.rank})
                self.artifacts[status.cycle] = status


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

    def note(self, member: Member) -> None:
        """Write what is known of a worker into the session's manifest."""
        rank = member.identity.rank
        if member.state in ("failed", "missing"):
            self.book.lost(rank, member.state, member.error or "")
        elif member.collection is not None:
            self.book.collection(rank, member.collection)
        for artifact in member.artifacts.values():
            self.book.artifact(artifact)
