"""Limits and folders that belong to the engine, not to one session."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from torchtrt_viz.errors import OptionError

__all__ = ["Settings"]


def _spare_roots() -> tuple[Path, ...]:
    return (Path(tempfile.gettempdir()) / f"torchtrt_viz-staging-{os.getuid()}",)


def _parallel() -> int:
    return max(1, (os.cpu_count() or 1) // 4)


@dataclass(frozen=True)
class Settings:
    """Limits and folders of an engine's profiling.

    Attributes
    ----------
    control_timeout_s
        Within this time every worker has to acknowledge a start or stop.
    stop_timeout_s
        Within this time a worker that has acknowledged a stop has to have exported: torch.profiler holds the
        interpreter for as long as it converts what it recorded.
    max_window_s
        A session by window stops by itself after so long, None never: what a profiler records stays in memory
        until it is stopped, and grows by hundreds of megabytes a minute.
    min_available_memory
        A session stops by itself when less of the machine's memory is available, as a share of all of it.
    min_free_bytes
        Space on the output folder's disk without which a session does not start.
    spare_staging
        Folders that take a recording when the output folder's disk has too little space for it.
    parse_timeout_s
        The process that turns a recording into tables (or reads its archive back) is given up after so long.
    parse_memory_bytes
        Address space that it may use; None: half of the machine's memory.
    parallel_parses
        How many of them run at a time on this machine, over all processes of the user.
    niceness
        Added to their niceness.
    compression_level
        Of gzip, 0 to 3 (fast: ISA-L).
    annotations
        Record the ranges of `RankProfiler.annotate` (phases, request and transfer ids).
    """

    control_timeout_s: float = 30.0
    stop_timeout_s: float = 600.0
    max_window_s: float | None = 600.0
    min_available_memory: float = 0.05
    min_free_bytes: int = 64 << 20
    spare_staging: tuple[Path, ...] = field(default_factory=_spare_roots)
    parse_timeout_s: float = 1800.0
    parse_memory_bytes: int | None = None
    parallel_parses: int = field(default_factory=_parallel)
    niceness: int = 10
    compression_level: int = 2
    annotations: bool = False

    def __post_init__(self) -> None:
        for name in ("control_timeout_s", "stop_timeout_s", "parse_timeout_s"):
            if not getattr(self, name) > 0:
                raise OptionError(name, getattr(self, name), "seconds, more than 0")
        if self.max_window_s is not None and not self.max_window_s > 0:
            raise OptionError("max_window_s", self.max_window_s, "seconds, more than 0, or None")
        if not 0 <= self.min_available_memory < 1:
            raise OptionError("min_available_memory", self.min_available_memory, "a share from 0 to below 1")
        if self.compression_level not in range(4):
            raise OptionError("compression_level", self.compression_level, "0, 1, 2 or 3")
        if self.parallel_parses < 1:
            raise OptionError("parallel_parses", self.parallel_parses, "1 or more")
