"""Tables about graphs as people read them: without folders, and what ran on the GPU first."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["gpu_first", "launches"]


def launches(graphs: pd.DataFrame) -> pd.DataFrame:
    """Leave folders out, and the column of reasons where everything was matched."""
    frame = graphs.copy()
    frame["capture"] = [PurePath(path).name if isinstance(path, str) else None for path in graphs["capture"]]
    return frame if frame["note"].notna().any() else frame.drop(columns="note")


def gpu_first(operators: pd.DataFrame) -> pd.DataFrame:
    """Put GPU work first where graphs ran operators: these took no host time, and would stand last."""
    if not len(operators) or not (operators["graph_calls"] > 0).any():
        return operators
    front = ["name", "calls", "graph_calls", "device_self_ns", "device_total_ns", "device_graph_ns"]
    frame = operators.sort_values("device_self_ns", ascending=False, kind="stable")
    frame = frame[[*front, *(name for name in frame.columns if name not in front)]].reset_index(drop=True)
    said = operators.attrs["coverage"]
    frame.attrs["coverage"] = f"{said} Most GPU work first: graphs ran part of it."
    return frame
