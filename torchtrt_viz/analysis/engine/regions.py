"""Operators that run an engine, in traces that have no delegate events."""

from __future__ import annotations

import re

import pandas as pd

from torchtrt_viz.analysis.device.operator_tables import operators
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["ENGINE_OPERATOR", "engine_operators"]

ENGINE_OPERATOR = re.compile(
    r"^tensorrt::(execute_engine|no_op_placeholder)|execute_engine|^TRTEngine|^trt::|^torch_tensorrt"
    r"|^TensorRTEngine|^torchtrt[:.]"
)


def engine_operators(trace: TraceData) -> pd.DataFrame:
    """Operators that run a TensorRT engine, as :func:`torchtrt_viz.analysis.operators` lists them.

    They are told by name: what Torch-TensorRT registers for its engines.
    """
    table = operators(trace, kinds=("operator", "annotation"), sort="total_ns")
    keep = [ENGINE_OPERATOR.search(str(name)) is not None for name in table["name"]]
    return table[keep].reset_index(drop=True)
