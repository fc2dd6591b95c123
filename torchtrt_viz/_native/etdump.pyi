"""ETDump files as columns, and the tree of their events."""

from collections.abc import Sequence
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

ROLES: Final[tuple[str, ...]]
"""Names of the codes of ``Events["role"]``."""

Damage = tuple[str, int]
"""Kind of fault ("reference", "vtable", "field", "vector", "text", "overlap", "empty") and byte offset."""

class Events(TypedDict):
    """One row per profile event, in the file's order. Names are rows of ``Dump["strings"]``, -1 absent."""

    run: NDArray[np.int32]
    chain: NDArray[np.int32]
    instruction: NDArray[np.int32]
    name: NDArray[np.int32]
    delegate_name: NDArray[np.int32]
    delegate_id: NDArray[np.int32]
    role: NDArray[np.uint8]  # row of ROLES
    start: NDArray[np.uint64]  # ticks
    end: NDArray[np.uint64]
    metadata_offset: NDArray[np.uint32]  # in the file; length 0: none
    metadata_length: NDArray[np.uint32]

class Runs(TypedDict):
    name: NDArray[np.int32]
    bundled_input: NDArray[np.int32]
    first: NDArray[np.int64]  # first row in Events
    count: NDArray[np.int64]
    signature: NDArray[np.uint64]  # equal for runs with the same sequence of events
    segment: NDArray[np.int32]

class Allocators(TypedDict):
    run: NDArray[np.int32]
    name: NDArray[np.int32]

class Allocations(TypedDict):
    run: NDArray[np.int32]
    after: NDArray[np.int64]  # profile events that precede it in its run
    allocator: NDArray[np.int32]
    size: NDArray[np.uint64]

class Debugs(TypedDict):
    run: NDArray[np.int32]
    after: NDArray[np.int64]
    chain: NDArray[np.int64]
    instruction: NDArray[np.int32]
    name: NDArray[np.int32]
    delegate_name: NDArray[np.int32]
    delegate_id: NDArray[np.int32]
    type: NDArray[np.int8]  # ValueType of the schema, -1 absent
    output: NDArray[np.int8]  # -1 not said
    integer: NDArray[np.int64]
    real: NDArray[np.float64]
    tensor_first: NDArray[np.int64]
    tensor_count: NDArray[np.int64]

class Tensors(TypedDict):
    scalar_type: NDArray[np.int8]
    offset: NDArray[np.int64]  # bytes, in the debug buffer
    size_first: NDArray[np.int64]
    size_count: NDArray[np.int64]
    stride_first: NDArray[np.int64]
    stride_count: NDArray[np.int64]
    sizes: NDArray[np.int64]
    strides: NDArray[np.int64]

class Dump(TypedDict):
    version: int
    events: Events
    runs: Runs
    allocators: Allocators
    allocations: Allocations
    debugs: Debugs
    tensors: Tensors
    strings: list[str]  # bytes that are not UTF-8 are U+FFFD
    invalid_text: list[tuple[int, int]]  # (row of strings, byte offset) of those
    fatal: Damage | None  # nothing could be read
    damages: list[Damage]  # what was left out: the first places
    damage_count: int
    size_prefixed: bool
    segments: int
    claimed_bytes: int  # what the last size prefix asks for, 0 without one
    trailing_offset: int
    trailing_bytes: int

def recognise(head: bytes) -> bool:
    """Tell whether these are the first bytes of an ETDump."""

def decode(data: NDArray[np.uint8]) -> Dump:
    """Decode the bytes of a file into columns; the GIL is released meanwhile."""

def arrange(
    run: NDArray[np.int32],
    chain: NDArray[np.int32],
    instruction: NDArray[np.int32],
    role: NDArray[np.uint8],
    start_ns: NDArray[np.int64],
    dur_ns: NDArray[np.int64],
    shape: NDArray[np.int32],
    placing: NDArray[np.uint8],
    in_engine: NDArray[np.uint8],
) -> tuple[
    NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], int
]:
    """Return (parent, depth, self_ns, call, modeled, overlaps).

    ``shape`` has a value per run; ``placing`` (0 decide, 1 measured, 2 modeled, 3 not on the host) and
    ``in_engine`` may be empty. ``call`` is the row of the DELEGATE_CALL that a delegate's event belongs to.
    """

def group_rows(columns: Sequence[NDArray[np.int32]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Number rows by their distinct combinations: the code of each row, and each group's first row."""
