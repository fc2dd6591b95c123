"""SQLite databases as tables of columns, read and never executed."""

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict, final

import numpy as np
from numpy.typing import NDArray

Kind = Literal["integer", "real", "text", "any"]

Damages = tuple[int, list[tuple[str, int]]]
"""How many there are; of the first ones the kind ("truncated", "revisited", "page", "depth", "cell",
"record", "overflow") and the byte offset."""

Request = tuple[int, Kind, list[str]]
"""Position of the column in the table; what it is wanted as; marks, before the first of which texts are
cut."""

class ColumnValues(TypedDict):
    """One column. Values of another type than the wanted one are missing, and counted in ``misfits``."""

    values: NDArray[np.int64] | NDArray[np.float64] | NDArray[np.int32]  # of texts: codes, -1 missing
    misfits: int
    missing: NotRequired[NDArray[np.uint8] | None]  # of integers; None: none is
    texts: NotRequired[list[str] | list[bytes]]  # bytes for kind "any"
    cut: NotRequired[NDArray[np.uint8]]
    types: NotRequired[NDArray[np.uint8]]  # kind "any": 0 null, 1 integer, 2 real (its bits), 3 text, 4 blob

class Rows(TypedDict):
    rows: int
    lost: int  # rows that are damaged
    columns: list[ColumnValues]
    damages: Damages

class About(TypedDict):
    refusal: str  # "", "short", "magic", "page_size", "encoding", "no_schema"
    bytes: int
    page_size: int
    pages: int
    stated_pages: int  # 0: not stated
    encoding: int  # 1 UTF-8, 2 and 3 UTF-16
    logged: bool
    damages: Damages
    tables: list[tuple[str, str, bool, bool, list[tuple[str, str, bool]]]]
    # name; type; whether it can be read; whether it has no rowids; columns: name, declared type, stored

@final
class Database:
    """A database in a file (a descriptor, which is duplicated) or in memory."""

    def __init__(self, source: int | bytes) -> None: ...
    def about(self) -> About: ...
    def read(self, table: int, columns: Sequence[Request]) -> Rows: ...
    def pick(self, table: int, columns: Sequence[Request], positions: NDArray[np.int64]) -> Rows: ...
