import numpy as np
from numpy.typing import NDArray

def nest(
    track: NDArray[np.int32], start_ns: NDArray[np.int64], dur_ns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], int]: ...
def names_with(texts: bytes, offsets: NDArray[np.int64], wanted: bytes) -> NDArray[np.uint8]: ...

_Place = tuple[int, int, int, int]  # row, lane, start_ns, dur_ns

class TimelineIndex:
    def __init__(
        self,
        track: NDArray[np.int32],
        start_ns: NDArray[np.int64],
        dur_ns: NDArray[np.int64],
        name: NDArray[np.int32],
        flat: NDArray[np.uint8],
    ) -> None: ...
    @property
    def bounds(self) -> tuple[int, int]: ...
    @property
    def nbytes(self) -> int: ...
    def lanes(
        self,
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.uint8],
        NDArray[np.uint32],
        NDArray[np.uint32],
        NDArray[np.int64],
    ]: ...
    def view(
        self,
        t0: int,
        t1: int,
        width: int,
        lanes: NDArray[np.int32],
        exact_limit: int,
        wide_ns: int = 0,
        names: NDArray[np.uint8] | None = None,
        rows: NDArray[np.uint8] | None = None,
    ) -> dict[str, NDArray[np.generic]]: ...
    def columns(
        self, t0: int, t1: int, width: int, lane: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
    def hit(self, lane: int, t: int, tolerance: int = 0) -> _Place | None: ...
    def neighbour(self, lane: int, start_ns: int, row: int, step: int) -> _Place | None: ...
    def locate(self, track: int, start_ns: int, row: int) -> _Place | None: ...
    def rows(self, t0: int, t1: int, lanes: NDArray[np.int32]) -> NDArray[np.int64]: ...
    def totals(
        self, t0: int, t1: int, lanes: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]: ...
    def next_marked(
        self,
        lanes: NDArray[np.int32],
        t: int,
        lane: int,
        forward: bool,
        names: NDArray[np.uint8] | None = None,
        rows: NDArray[np.uint8] | None = None,
        row: int = -1,
    ) -> _Place | None: ...
    def marked_until(
        self,
        lanes: NDArray[np.int32],
        t: int,
        lane: int,
        row: int,
        names: NDArray[np.uint8] | None = None,
        rows: NDArray[np.uint8] | None = None,
    ) -> int: ...
    def count_marked(
        self, names: NDArray[np.uint8] | None = None, rows: NDArray[np.uint8] | None = None
    ) -> NDArray[np.int64]: ...
    @property
    def name_counts(self) -> NDArray[np.int64]: ...
    def whole(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.uint32]]: ...
