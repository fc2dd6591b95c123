"""The charts of a trace, in the order in which pages show them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from torchtrt_viz.charts.chart import Chart
from torchtrt_viz.errors import OptionError

if TYPE_CHECKING:
    from torchtrt_viz.model.trace_data import TraceData

__all__ = ["CHARTS", "chart"]

CHARTS: dict[str, str] = {
    "layers": "layers:layers",
    "layer_types": "layers:layer_types",
    "plan": "plan:plan",
    "delegate_phases": "phases:delegate_phases",
    "kernels": "kernels:kernels",
    "gpu_time": "device_time:gpu_time",
    "idle": "device_time:idle",
    "critical_path": "critical:critical",
    "launch_delay": "launches:launch_delay",
    "longest_delays": "launches:longest_delays",
    "graph_launches": "over_time:graph_launches",
    "collectives": "over_time:collectives",
    "roofline": "roofline:roofline",
    "flame_gpu": "flame:flame_gpu",
    "flame": "flame:flame",
    "memory": "memory:memory",
}
"""Module and function below `torchtrt_viz.charts` that makes each."""


def chart(trace: TraceData, name: str, **options: object) -> Chart:
    """Make a chart by its name; ``options`` are those of its function.

    Raises
    ------
    OptionError
        For a name that is no chart.
    """
    if name not in CHARTS:
        raise OptionError("chart", name, f"one of {', '.join(CHARTS)}")
    module, _, function = CHARTS[name].partition(":")
    make: Callable[..., object] = getattr(import_module(f"torchtrt_viz.charts.{module}"), function)
    return cast("Chart", make(trace, **options))
