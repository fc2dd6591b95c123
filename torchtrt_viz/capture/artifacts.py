"""What a capture leaves on disk, and how it is read back: an ETDump with its sidecar per program."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torchtrt_viz.capture.temporary_folder import TemporaryFolder
from torchtrt_viz.formats.io.new_file import write_file, write_json
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.model.args import Args
from torchtrt_viz.runtime.modules import versions

if TYPE_CHECKING:
    from torchtrt_viz.capture.shared_types import RecordedProgram
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["Recorded", "keep_alive", "load_program"]


@dataclass
class Recorded:
    """What one program recorded, as bytes and plain values: it outlives the program.

    Attributes
    ----------
    name
        Name of its files, without suffix.
    program
        Path of the ``.pte``.
    etdump
        ETDump file.
    blocks, engines, anchors
        What the file cannot say (see :mod:`torchtrt_viz.formats.etdump.clock`).
    etrecord
        ETRecord of the program, None when there is none.
    """

    name: str
    program: Path
    etdump: bytes
    blocks: list[dict[str, Any]]
    engines: list[dict[str, Any]]
    anchors: list[dict[str, Any]]
    etrecord: Path | None
    versions: dict[str, str] = field(default_factory=versions)

    @classmethod
    def of(cls, program: RecordedProgram, first_block: int) -> Recorded:
        """Take what ``program`` recorded from block ``first_block`` on."""
        session = program._session
        dump = session.etdump(first_block)
        return cls(
            program.path.stem,
            program.path,
            dump,
            [dict(block) for block in session.blocks()[first_block:]],
            [dict(engine) for engine in session.engines()],
            [dict(anchor) for anchor in session.anchors()],
            program.etrecord,
        )

    @property
    def events(self) -> int:
        """Number of events."""
        return sum(int(block.get("events", 0)) for block in self.blocks)

    @property
    def runs(self) -> int:
        """Number of executions, failed ones among them."""
        return sum(block.get("name") == "Execute" for block in self.blocks)

    def sidecar(self) -> dict[str, Any]:
        """Return what stands in ``<name>.etdp.json``."""
        return {
            "program": str(self.program),
            "anchors": self.anchors,
            "blocks": self.blocks,
            "engines": self.engines,
            "versions": self.versions,
        }

    def write(self, folder: Path, *, force: bool = False) -> Path:
        """Write ``<name>.etdp`` and ``<name>.etdp.json``; return the first."""
        path = folder / f"{self.name}.etdp"
        write_json(folder / f"{self.name}.etdp.json", self.sidecar(), force=force)
        write_file(path, self.etdump, force=force)
        return path


def load_program(recorded: Recorded, folder: Path) -> TraceData:
    """Write what a program recorded into ``folder``, and read it as a trace."""
    path = recorded.write(folder)
    trace = read_source(Source(path), LoadOptions(etrecord=recorded.etrecord), "etdump")
    trace.meta["versions"] = {**recorded.versions, **trace.meta["versions"]}
    return trace


class _Kept:
    """Arguments that hold on to the folder that they are read from."""

    def __init__(self, args: Args, folder: TemporaryFolder) -> None:
        self._args = args
        self._folder = folder

    def read(self, rows: np.ndarray) -> list[dict[str, Any]]:
        return self._args.read(rows)


def keep_alive(trace: TraceData, folder: TemporaryFolder) -> TraceData:
    """Let ``trace``, and every selection of it, keep the temporary folder that its details are read from."""
    trace.args = Args(_Kept(trace.args, folder), len(trace.args))
    trace.instant_args = Args(_Kept(trace.instant_args, folder), len(trace.instant_args))
    return trace
