from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

class Columns(TypedDict):
    """One row per reported layer."""

    name: NDArray[np.int32]  # row of `names`
    dur_ns: NDArray[np.int64]  # negative: what was reported is no time
    reported_ns: NDArray[np.int64]  # CLOCK_MONOTONIC, when the report came
    marks: NDArray[np.int64]  # number of reports when an execution began
    names: list[str]

class LayerTimes:
    """Keeps what an ``IProfiler`` is told; any thread may report."""

    def __init__(self) -> None: ...
    def record(self, layer_name: str, ms: float) -> None: ...
    def mark(self) -> None:
        """Say that an execution begins here."""
    def __len__(self) -> int: ...
    def clear(self) -> None: ...
    def columns(self) -> Columns:
        """Return all reports since the beginning, or since ``clear()``."""
