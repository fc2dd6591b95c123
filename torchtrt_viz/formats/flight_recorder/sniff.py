"""Whether a file is a dump of a Flight Recorder, and how many ranks there are, told by how it begins."""

from __future__ import annotations

import re

__all__ = ["is_dump", "world_size"]

_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_TEXT = rb"(?:X[\x06-\x12]\0\0\0|\x8c[\x06-\x12])"
#: Keys that only such dumps have, as texts of a pickle; older ones have numbers of calls and profiled names.
_KEYS = re.compile(
    _TEXT + rb"(?:collective_seq_id|pg_config|pg_status|nccl_comm_state|comm_lib_version)(?=[^\w]|[qr])"
)
_OLD_KEYS = tuple(re.compile(_TEXT + key) for key in (b"profiling_name", b"seq_id", b"record_id"))
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*\{)")
_JSON_KEY = re.compile(rb'"collective_seq_id"\s*:|"pg_status"\s*:|"p2p_seq_id"\s*:')
_RANKS = re.compile(rb"\[0(?:, ?\d{1,7})*\]")


def is_dump(head: bytes) -> bool:
    """Tell whether a file begins as a dump does, as a pickle or as JSON.

    Parameters
    ----------
    head
        The first 64 KiB of the uncompressed content.
    """
    if _PICKLE.match(head):
        return _KEYS.search(head) is not None or all(key.search(head) for key in _OLD_KEYS)
    return (
        _JSON.match(head) is not None and b'"traceEvents"' not in head and _JSON_KEY.search(head) is not None
    )


def world_size(head: bytes) -> int | None:
    """Return how many ranks a process group of all ranks has; None where the beginning lists none.

    Groups are listed before the entries in a pickle. A list that begins with 0 and has no gap is the whole
    world or a group of its first ranks, so that the longest one is taken.
    """
    longest = max((found[0] for found in _RANKS.finditer(head)), key=len, default=b"")
    ranks = [int(number) for number in re.findall(rb"\d+", longest)]
    return len(ranks) if len(ranks) > 1 and ranks == list(range(len(ranks))) else None
