"""What can go wrong with a profile of a serving engine, beyond a wrong option."""

from __future__ import annotations

from collections.abc import Mapping

from torchtrt_viz.errors import CaptureActiveError, CaptureError, WrongThreadError

__all__ = ["ControlTimeoutError", "ProfileActiveError", "ProfileStartError", "WrongThreadError"]


class ProfileActiveError(CaptureActiveError):
    """A session is recording, starting or stopping already, here or through torch.profiler directly."""


class ProfileStartError(CaptureError):
    """Not every worker started; those that had were stopped again, and nothing was recorded.

    Attributes
    ----------
    session_id
        The session that was given up.
    missing
        Worker -> why it counts as missing (no answer in time, connection lost).
    failed
        Worker -> the error that it reported.
    """

    def __init__(self, session_id: str, missing: Mapping[str, str], failed: Mapping[str, str]) -> None:
        self.session_id = session_id
        self.missing = dict(missing)
        self.failed = dict(failed)
        parts = [f"{name} did not answer ({why})" for name, why in self.missing.items()]
        parts += [f"{name} failed: {why}" for name, why in self.failed.items()]
        super().__init__(
            f"profile session {session_id} did not start on every worker, so it was stopped on all: "
            + "; ".join(parts)
        )


class ControlTimeoutError(CaptureError):
    """The thread or process that has to act did not do so in time."""
