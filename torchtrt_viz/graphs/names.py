"""Names of calls and work around graphs, and the codes by which both sides are compared."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.device_work import CLASSES, classify
from torchtrt_viz.analysis.core.masks import codes
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["BEGIN_CAPTURE", "END_CAPTURE", "LAUNCHES", "Names"]

Ints = NDArray[np.int64]

BEGIN_CAPTURE = re.compile(r"StreamBeginCapture")
END_CAPTURE = re.compile(r"StreamEndCapture")
#: Calls that put device work into a graph while it is captured.
LAUNCHES = re.compile(r"^(?!.*Graph)(?:.*Launch\w*Kernel|.*LaunchGrid|.*Mem(?:cpy|set)(?!.*Attribute))")

_COPY_CALL, _FILL_CALL = re.compile(r"Memcpy"), re.compile(r"Memset")
_COPY, _FILL = "\0copy", "\0fill"  # no name of a kernel
_UNNAMED = "\0kernel"


class Names:
    """Codes of names, the same for a replay and all captures that it is compared with.

    Copies and fills are one name each: the two sides call them differently.
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self.copy, self.fill, self.unnamed = (self._code(name) for name in (_COPY, _FILL, _UNNAMED))

    def _code(self, name: str) -> int:
        return self._codes.setdefault(name, len(self._codes))

    def of_work(self, trace: TraceData, rows: Ints) -> Ints:
        """Return the codes of device work."""
        column = trace.spans["name"]
        found, place = np.unique(codes(column)[rows], return_inverse=True)
        known = [self._code(str(name)) for name in column.cat.categories.take(np.maximum(found, 0))]
        out = np.array(known, np.int64)[place.reshape(-1)]
        kind = classify(trace, rows)
        out[kind == CLASSES.index("copy")] = self.copy
        out[kind == CLASSES.index("fill")] = self.fill
        return out

    def of_calls(self, calls: Sequence[str], kernels: Sequence[str | None]) -> Ints:
        """Return the codes of captured calls, by the kernel that each names, and by its own name."""
        return np.array(
            [
                self.fill if _FILL_CALL.search(call)
                else self.copy if _COPY_CALL.search(call)
                else self.unnamed if kernel is None
                else self._code(kernel)
                for call, kernel in zip(calls, kernels, strict=True)
            ],
            np.int64,
        )  # fmt: skip

    def without_names(self, given: Ints) -> Ints:
        """Return codes as a recorder would give them that does not name kernels in launches."""
        return np.where((given == self.copy) | (given == self.fill), given, self.unnamed)
