"""Ranges with consistent names for the phases of serving, and the ids that join them over ranks.

``prefill[request=r7 transfer=x7 tokens=64]``: phase, then what is known. ``Session.requests()`` reads
these names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["PHASES", "annotation_name", "open_range"]

PHASES = ("schedule", "prefill", "decode", "sampling", "kv_send", "kv_recv", "activate")
"""Phase names; other names are allowed, these are those that the tables know."""

_UNSAFE = re.compile(r"[\s\[\]=,\"\\]|[^\x20-\x7e]")
_MAX_ID = 64
_MAX_IDS = 64
_NOTHING: AbstractContextManager[None] = nullcontext()


def _safe(value: object) -> str:
    """An id without the characters that the format uses, and not so long that it fills the trace."""
    return _UNSAFE.sub("_", str(value))[:_MAX_ID]


def annotation_name(
    phase: str,
    *,
    request: object | Iterable[object] | None = None,
    transfer: object | None = None,
    tokens: int | None = None,
) -> str:
    """Make the name of a range.

    Parameters
    ----------
    request
        Request id, or several that share the work.
    transfer
        Id of the KV transfer.
    tokens
        Tokens that the work is about.
    """
    items = []
    if request is not None:
        several = isinstance(request, Iterable) and not isinstance(request, (str, bytes))
        ids = list(request) if several else [request]  # type: ignore[call-overload]
        shown = ",".join(_safe(r) for r in ids[:_MAX_IDS])
        items.append(f"request={shown}")
        if len(ids) > _MAX_IDS:
            items.append(f"more={len(ids) - _MAX_IDS}")
    if transfer is not None:
        items.append(f"transfer={_safe(transfer)}")
    if tokens is not None:
        items.append(f"tokens={int(tokens)}")
    return f"{phase}[{' '.join(items)}]" if items else phase


def open_range(recording: bool, phase: str, **ids: Any) -> AbstractContextManager[Any]:
    """Return a range to be entered: torch's while something is recording, else one that does nothing."""
    if not recording:
        return _NOTHING
    from torch.profiler import record_function

    return record_function(annotation_name(phase, **ids))  # type: ignore[no-any-return]
