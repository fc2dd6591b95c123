"""What the ranks of a group have to agree in when they call a collective together.

Compared are the operation, the numbers of elements and the element types, and of these only what must be
equal: the root of a gather has outputs that the others lack, an all_to_all may be uneven, and [16] meets
[4, 4].
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import prod

__all__ = ["Call", "Demand", "demand", "elements", "hashed", "is_exchange", "together"]

_SHAPE = re.compile(r"\[([\d, -]*)\]")


@dataclass(frozen=True)
class Call:
    """A call as recorded: operation, and shapes and types of its tensors as texts."""

    operation: str | None
    input_sizes: str | None
    input_types: str | None
    output_sizes: str | None
    output_types: str | None

    @property
    def both(self) -> tuple[str | None, str | None]:
        """Shapes and types as texts: inputs, then outputs where they differ."""
        sizes = dict.fromkeys(
            each for each in (self.input_sizes, self.output_sizes) if each not in (None, "[]")
        )
        types = dict.fromkeys(each for each in (self.input_types, self.output_types) if each)
        return " -> ".join(map(str, sizes)) or None, " -> ".join(types) or None


@dataclass(frozen=True)
class Demand:
    """What has to be equal on all ranks, as hashes: operation, numbers of elements, element types."""

    operation: int
    size: int
    types: int


def hashed(*parts: object) -> int:
    """Return a number of 63 bits that is equal for equal texts, in every process."""
    digest = blake2b("\x1f".join(map(str, parts)).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


@lru_cache(maxsize=1 << 14)
def elements(sizes: str | None) -> tuple[int, ...] | None:
    """Return the number of elements of each tensor; None where the shapes are not recorded."""
    if sizes is None:
        return None
    return tuple(
        prod(int(n) for n in shape.split(",")) if shape.strip() else 1
        for shape in _SHAPE.findall(sizes[1:-1])
    )


def _kind(operation: str | None) -> str:
    """Return the operation without the marks of its variants and the spelling of its library."""
    name = (operation or "").lower().replace("-", "_")
    bare = name.strip("_").removeprefix("hccl").replace("_", "")
    for kind in ("allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "barrier", "gather"):
        if bare.startswith(kind):
            return "barrier" if kind == "allreduce" and "barrier" in bare else kind
    for kind in ("scatter", "reduce", "coalesced"):
        if bare.startswith(kind):
            return kind
    return name


def is_exchange(operation: str | None) -> bool:
    """Whether what all ranks send and what all receive only have to add up."""
    return _kind(operation) == "alltoall"


def together(operation: str | None) -> bool:
    """Whether no rank can complete it before every rank has joined."""
    return _kind(operation) in ("allreduce", "allgather", "reducescatter", "alltoall", "barrier")


@lru_cache(maxsize=1 << 14)
def demand(call: Call) -> Demand:
    """Return what the other ranks of the group have to have in common with a call."""
    kind = _kind(call.operation)
    sent, received = elements(call.input_sizes), elements(call.output_sizes)
    sent_types: str | None = call.input_types
    received_types: str | None = call.output_types
    if kind in ("barrier", "coalesced", "alltoall"):
        sent = received = None
    if kind == "barrier":
        sent_types = received_types = None
    if kind in ("gather", "reduce"):  # only the root has, or fills, outputs
        received, received_types = None, None
    if kind == "scatter" or (kind == "broadcast" and received):
        sent, sent_types = None, None
    if kind == "allgather" and received is not None and len(set(received)) > 1:
        sent = None  # of uneven pieces each rank sends its own
    if kind == "reducescatter" and sent is not None and len(set(sent)) > 1:
        received = None
    total = [None if each is None else sum(each) for each in (sent, received)]
    return Demand(
        hashed(call.operation), hashed(*total), hashed(sent_types, received_types if received_types else "")
    )
