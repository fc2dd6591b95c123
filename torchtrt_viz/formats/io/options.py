"""What a caller of load() asked for, handed to every loader unchanged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.io.progress import Progress

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.repair import Repair

__all__ = ["LoadOptions"]


@dataclass(frozen=True)
class LoadOptions:
    """Options of one load() call.

    Attributes
    ----------
    strict
        Raise at the first damage instead of repairing it and warning.
    etrecord
        ETRecord that belongs to an ETDump.
    progress
        Called with (bytes read, total or None); None: nobody watches.
    rank
        Rank to give the trace; None: take it from the file, its name, or -1.
    graphs
        Join replays of graphs with the recordings of their capture.
    """

    strict: bool = False
    etrecord: str | PathLike[str] | Source | None = None
    progress: Progress | None = None
    rank: int | None = None
    graphs: bool = True
    warnings: list[Repair] = field(default_factory=list)

    def elsewhere(self) -> LoadOptions:
        """Return the options for another process: nobody watches there, and nothing was repaired yet."""
        return replace(self, progress=None, warnings=[])

    def report(self, repairs: Iterable[Repair]) -> None:
        """Record several repairs, in their order; with ``strict`` the first is raised as an error."""
        for repair in repairs:
            self.repaired(repair)

    def repaired(self, repair: Repair) -> None:
        """Record a repair; with ``strict`` raise it as an error.

        Raises
        ------
        TraceFormatError
            When ``strict`` is set.
        """
        if self.strict:
            raise TraceFormatError(
                repair.message,
                path=repair.path,
                offset=repair.offset,
                hint="Load without strict=True to keep what is whole",
            )
        self.warnings.append(repair)
