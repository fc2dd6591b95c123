"""Messages between coordinator and workers: plain mappings that JSON and pickle carry alike.

Every message has ``torchtrt_profile`` (version), ``type``, ``session``; replies have ``rank`` as well.
The session id is what makes a late or repeated reply harmless.

====================  ==========================================================================
coordinator sends
====================  ==========================================================================
profile_start         ``rank``, ``config``, ``window``
profile_stop          ``cancel``: true throws the recording away
profile_status        nothing more
profile_retry         nothing more: failed artifacts are processed again
====================  ==========================================================================

====================  ==========================================================================
a worker answers
====================  ==========================================================================
profile_hello         at registration: ``identity``
profile_started       ``collection``, ``identity``
profile_stopping      the stop has arrived; what follows may take as long as the export
profile_stopped       ``collection``, ``artifacts``
profile_error         ``error``: the command failed
profile_artifacts     ``collection``, ``artifacts``: to profile_status and profile_retry, and on change
====================  ==========================================================================
"""

from __future__ import annotations

from typing import Any

__all__ = ["COMMANDS", "REPLIES", "is_profile_message", "message"]

VERSION = 1
_MARK = "torchtrt_profile"
COMMANDS = ("profile_start", "profile_stop", "profile_status", "profile_retry")
REPLIES = (
    "profile_hello",
    "profile_started",
    "profile_stopping",
    "profile_stopped",
    "profile_error",
    "profile_artifacts",
)

Message = dict[str, Any]


def message(type: str, session: str | None, **fields: Any) -> Message:
    """Make a message."""
    return {_MARK: VERSION, "type": type, "session": session, **fields}


def is_profile_message(value: object) -> bool:
    """Whether something that came over an engine's channel is one of these messages."""
    return (
        isinstance(value, dict)
        and value.get(_MARK) == VERSION
        and value.get("type") in (*COMMANDS, *REPLIES)
        and (value.get("session") is None or isinstance(value.get("session"), str))
    )
