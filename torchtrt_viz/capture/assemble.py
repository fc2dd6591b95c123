"""From what a capture left to one trace: the artifacts are written, and read back as any saved capture is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torchtrt_viz.capture.artifact_files import write_artifacts
from torchtrt_viz.capture.artifacts import keep_alive
from torchtrt_viz.formats.capture.document import DOCUMENT
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.capture_folder import load_capture

if TYPE_CHECKING:
    from torchtrt_viz.capture.shared_types import FinishedCapture
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["assemble"]


def assemble(capture: FinishedCapture) -> TraceData:
    """Return everything that a stopped capture recorded as one trace.

    One code path for a capture in memory and for one on disk: what is not in the artifacts is not in the
    trace.
    """
    folder = capture._artifacts()
    write_artifacts(capture, Path(folder.name), force=True)
    return keep_alive(load_capture(Source(Path(folder.name, DOCUMENT)), LoadOptions()), folder)
