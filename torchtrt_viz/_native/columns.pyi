import numpy as np
from numpy.typing import NDArray

def nest(
    track: NDArray[np.int32], start_ns: NDArray[np.int64], dur_ns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], int]: ...
