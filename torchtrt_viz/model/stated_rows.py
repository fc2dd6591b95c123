"""How operators that a recording states for work on a device stand in the frames of a trace.

Programs that a compiler made (XLA's) run no operators on the host; the events of the device name the operator
that they come from. Such operators are rows of ``spans`` of kind operator and domain gpu whose ``timing`` is
modeled, on tracks of their own, so that they are in no sum; their ``self_ns`` is the sum of the durations of
their work. A flow named `STATED` leads from each to every piece of its work.
"""

from __future__ import annotations

__all__ = ["STATED"]

STATED = "stated operator"
"""Name of the flow from an operator that the recording states to its work."""
