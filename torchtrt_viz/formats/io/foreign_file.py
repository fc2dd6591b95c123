"""What is said of a file that is no trace."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from torchtrt_viz.errors import TraceFormatError

__all__ = ["Foreign"]


@dataclass(frozen=True)
class Foreign:
    """What a file is.

    Attributes
    ----------
    what
        A noun phrase: "a Git LFS pointer".
    hint
        What to do, as a sentence without its full stop. FILE and STEM in a command stand for the file's name,
        with and without its ending.
    beside_traces
        Whether profilers write such files, so that one in a folder is worth a warning.
    in_place_of_a_trace
        Whether it stands where a trace was meant to be: a pointer, an error page.
    """

    what: str
    hint: str
    beside_traces: bool = True
    in_place_of_a_trace: bool = False

    def of(self, filename: str) -> Foreign:
        """Return the same of a file of that name: commands name it."""
        if "STEM" not in self.hint:
            return self
        stem = shlex.quote(filename.rpartition(".")[0])
        # both at once, so that nothing in the name is taken for one of them
        hint = shlex.quote(filename).join(part.replace("STEM", stem) for part in self.hint.split("FILE"))
        return replace(self, hint=hint)

    def refused(self, path: str) -> TraceFormatError:
        """Return the error for a file that was to be read as a trace."""
        return TraceFormatError(
            "not a trace",
            path=path,
            offset=0,
            expected="a trace: ETDump, trace-event JSON, Perfetto, XPlane, Nsight Systems, rocprofv3, "
            "TensorRT JSON or logs",
            found=self.what,
            hint=self.hint,
        )
