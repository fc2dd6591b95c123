"""XPlanes of XLA and TensorFlow as columns."""

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

class Stats(TypedDict):
    """Statistics of the rows of a table: those of row i at ``begin[i]`` to ``begin[i + 1]``."""

    begin: NDArray[np.int64]
    name: NDArray[np.uint32]  # number of a string; 2**32 - 1: its description is missing
    type: NDArray[np.uint8]  # 0 none, 1 real (its bits), 2 unsigned, 3 signed, 4 text (its number), 5 bytes
    value: NDArray[np.int64]

class Planes(TypedDict):
    id: NDArray[np.int64]
    name: NDArray[np.uint32]
    stats: Stats

class Lines(TypedDict):
    """Timelines; the events of line i are at ``event_begin[i]`` to ``event_begin[i + 1]``."""

    plane: NDArray[np.uint32]
    id: NDArray[np.int64]
    display_id: NDArray[np.int64]
    timestamp_ns: NDArray[np.int64]
    event_begin: NDArray[np.int64]
    name: NDArray[np.uint32]
    display_name: NDArray[np.uint32]

class Kinds(TypedDict):
    """What events of one plane have in common (XEventMetadata)."""

    plane: NDArray[np.uint32]
    id: NDArray[np.int64]
    name: NDArray[np.uint32]
    display_name: NDArray[np.uint32]
    bytes: NDArray[np.int64]
    stats: Stats

class Events(TypedDict):
    kind: NDArray[np.int32]  # row of Kinds, -1: its description is missing
    kind_id: NDArray[np.int64]
    place: NDArray[np.uint8]  # what ``at`` says: 0 nothing, 1 an offset in ps, 2 the number of occurrences
    at: NDArray[np.int64]
    dur_ps: NDArray[np.int64]
    stats: Stats

class Space(TypedDict):
    strings: list[str]
    planes: Planes
    lines: Lines
    kinds: Kinds
    events: Events
    errors: list[str]  # what the profiler said of its recording
    warnings: list[str]
    hosts: list[str]
    problems: dict[str, tuple[int, int]]  # kind -> how many, byte offset of the first
    bytes: int
    plane_bytes: int
    lost_bytes: int

def decode(data: bytes) -> Space: ...
