"""The roofs of a roofline as a frame."""

from __future__ import annotations

import pandas as pd

from torchtrt_viz.analysis.columns.device import DEVICE_ROOFS
from torchtrt_viz.analysis.core.tables import text
from torchtrt_viz.analysis.device.device_specs import Device, device_of, find_device
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["device_roofs"]


@returns(DEVICE_ROOFS)
def device_roofs(trace: TraceData, *, device: Device | str | None = None) -> pd.DataFrame:
    """What the trace's device can do at best, by precision.

    Parameters
    ----------
    device
        A known device's name, or a `Device`; None: the one that the trace names, if it is known.

    Returns
    -------
    pandas.DataFrame
        One row per precision; none where the device, or its limits, are not known.

    Raises
    ------
    OptionError
        For a device that is not known.

    Examples
    --------
    >>> tv.analysis.device_roofs(trace, device="A100")["precision"].tolist()[:2]
    ['fp64', 'fp32']
    """
    known = device_of(trace) if device is None else find_device(device)
    peaks = {} if known is None else dict(known.tflops)
    bandwidth = 0.0 if known is None else known.bandwidth_gbps
    return DEVICE_ROOFS.typed(
        pd.DataFrame(
            {
                "device": text([known.name if known else None] * len(peaks)),
                "precision": text(list(peaks)),
                "tflops": pd.array(list(peaks.values()), dtype="Float64"),
                "gbps": pd.array([bandwidth] * len(peaks), dtype="Float64"),
                "ridge": pd.array([1e3 * peak / bandwidth for peak in peaks.values()], dtype="Float64"),
            }
        )
    )
