"""Ranges with consistent names for the phases of serving, and the ids that join them over ranks.

A name is the phase, then what is known: ``prefill[request=r7 transfer=x7 tokens=64]``.
``Session.requests()`` reads these names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

__all__ = [
    "PHASES",
    "PhaseRange",
    "annotation_name",
    "asynchronous_danger",
    "open_range",
    "unrecorded",
]

PHASES = ("schedule", "prefill", "decode", "sampling", "kv_send", "kv_recv", "activate")
"""Phase names that the tables know; other names are allowed."""

_UNSAFE = re.compile(r"[\s\[\]=,\"\\]|[^\x20-\x7e]")
_MAX_ID = 64
_MAX_IDS = 64
_NOTHING: AbstractContextManager[None] = nullcontext()


def _safe(value: object) -> str:
    """Return an id without the characters that the format uses, shortened if it is very long."""
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
        Number of tokens processed.
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


# Ranges whose session ended while they were open and that were left during a later one; see `PhaseRange`.
_abandoned: list[Any] = []


class PhaseRange:
    """A range that survives the end of its session.

    torch writes the end of a range into the memory of the session in which it began. If that session is over
    and another one records, this memory has been freed and the process crashes. Such a range is therefore
    never ended.

    Parameters
    ----------
    session
        Returns the session that is recording now, None for none.
    """

    __slots__ = ("_began_in", "_function", "_name", "_session")

    def __init__(self, session: Callable[[], object | None], name: str) -> None:
        self._session = session
        self._name = name

    def __enter__(self) -> None:
        from torch.profiler import record_function

        self._began_in = self._session()
        self._function = record_function(self._name)
        self._function.__enter__()

    def __exit__(self, *error: object) -> None:
        now = self._session()
        if now is None or now is self._began_in:
            self._function.__exit__(None, None, None)
        else:
            _abandoned.append(self._function)  # destroying it would end it


def open_range(
    session: Callable[[], object | None], enabled: bool, phase: str, **ids: Any
) -> AbstractContextManager[None]:
    """Return a context manager for a range; it does nothing unless a session records and ranges are on."""
    if not enabled or session() is None:
        return _NOTHING
    return PhaseRange(session, annotation_name(phase, **ids))


@contextmanager
def unrecorded() -> Iterator[None]:
    """Keep the operators that begin inside out of the recording.

    Use it for asynchronous communication over gloo (``isend``, ``irecv``, ``async_op=True``) that may still
    be in flight when a recording ends: torch 2.13 would write its end into freed memory and crash the
    process. A range around it still shows when it began::

        with profiler.annotate("kv_send", request=r, transfer=x), unrecorded():
            work = dist.isend(kv, dst)
    """
    global _used_unrecorded
    import torch

    _used_unrecorded = True
    torch._C._autograd._enable_record_function(False)
    try:
        yield
    finally:
        torch._C._autograd._enable_record_function(True)


_used_unrecorded = False


def asynchronous_danger() -> str | None:
    """Tell whether this process may have communication in flight that a stop would turn into a crash."""
    distributed = sys.modules.get("torch.distributed")
    if _used_unrecorded or distributed is None or not distributed.is_available():
        return None
    if not distributed.is_initialized() or "gloo" not in str(distributed.get_backend()):
        return None
    return (
        "asynchronous gloo communication that is in flight when a recording ends crashes torch: begin it "
        "inside torchtrt_viz.serving.unrecorded(), or finish it before"
    )
