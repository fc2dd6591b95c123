"""Files that a Torch-TensorRT engine writes after ``enable_profiling()``.

``E_engine_execution_profile.trace`` (``exectuion`` before June 2025) holds the layers' times summed over
every call; it looks like a timeline and is none. ``E_input_profile.trace``, ``E_output_profile.trace``,
``E_enqueue_profile.trace`` and ``E_device_config_profile.trace`` hold framework operators that ran inside
that phase of the last call, and no duration of the phase itself. ``E_layer_information.json`` is layer
information as trtexec writes it.

Engines of this package write the same names and more: calls, phases and layers of a delegate are in
``E.perfetto.json``, those of a package's engine in the files above, each with a real start and of its true
kind (:mod:`torchtrt_viz.formats.engine.torchtrt_calls`).

Load the folder to have the files of every engine joined (`torchtrt_viz.formats.engine.file_set` describes the
result).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtrt_viz.formats.engine.files import kind_of, phase_of
from torchtrt_viz.formats.engine.trace import read_file

if TYPE_CHECKING:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["FORMAT", "read", "sniff"]

FORMAT = "torchtrt"


def sniff(head: bytes, filename: str) -> bool:
    """Tell an engine's or phase's trace of Torch-TensorRT, its layer information, or a sidecar of ours."""
    kind = kind_of(head, filename)
    return kind in ("engine_trace", "phase", "sidecar") or (
        kind == "graph" and filename.lower().endswith("_layer_information.json")
    )


def read(source: Source, options: LoadOptions) -> TraceData:
    """Read one file of an engine.

    Raises
    ------
    TraceFormatError
        When nothing of it is whole, or it is no such file.
    """
    kind = kind_of(source.head(), source.filename)
    if kind not in ("engine_trace", "phase", "sidecar", "graph"):
        kind = "phase" if phase_of(source.filename) else "engine_trace"
    return read_file(source, options, kind, FORMAT)
