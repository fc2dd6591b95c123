"""The analyses as methods of one trace, so that an expression needs nothing but the trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["BoundAnalyses"]


class BoundAnalyses:
    """`trace.analysis`: each function of `torchtrt_viz.analysis`, called with the trace."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # slow to import: it needs pandas
        from torchtrt_viz import analysis

        if name.startswith("_") or name not in dir(analysis):
            raise AttributeError(f"torchtrt_viz.analysis has no function {name!r}")
        return partial(getattr(analysis, name), self._trace)

    def __dir__(self) -> list[str]:
        # slow to import: it needs pandas
        from torchtrt_viz import analysis

        return sorted(dir(analysis))

    def __repr__(self) -> str:
        return f"<analyses of {self._trace!r}>"
