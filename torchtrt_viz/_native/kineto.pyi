from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Decoder:
    def __init__(
        self,
        *,
        categories: Mapping[str, tuple[int, int]],
        rules: Sequence[tuple[str, str, int, int]],
        other: tuple[int, int],
        step_kind: int,
        kept_keys: Sequence[str],
        window: int = 1048576,
    ) -> None: ...
    def feed(self, block: bytes | bytearray | memoryview) -> None: ...
    def read(self, descriptor: int, most: int) -> int: ...
    def finish(self) -> dict[str, Any]: ...

def events_at(
    block: bytes | bytearray | memoryview, base: int, offsets: NDArray[np.int64], last: bool
) -> list[bytes | None]: ...
def normalize(event: bytes | bytearray | memoryview, depth: int = 200) -> bytes: ...
def argument_texts(events: list[bytes], key: str) -> tuple[NDArray[np.int32], list[bytes]]: ...
