"""Host spans that launch device work, and host spans that wait for it."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.masks import among, measured, names_matching
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["enqueue_mask", "launch_mask", "wait_mask"]

Mask = NDArray[np.bool_]

LAUNCH = re.compile(
    r"^(cuda|cu|hip)(Launch|ModuleLaunch|ExtLaunch|ExtModuleLaunch|GraphLaunch|Memcpy|Memset|HccModuleLaunch"
    r"|LaunchHostFunc)|^mtia.*[Ll]aunch|^runFunction|^urEnqueue|^zeCommandListAppend"
)
WAIT = re.compile(
    r"^(cuda|cu|hip)(Device|Stream|Event|Ctx)Synchronize|^(cuda|cu|hip)StreamWaitValue|\.synchronize$"
    r"|^urQueueFinish|^urEventWait|^zeFenceHostSynchronize|^zeCommandQueueSynchronize"
)
ENQUEUE = re.compile(r"(^|[.:])enqueue(_host)?$|^enqueue")


def _host(trace: TraceData) -> Mask:
    return among(trace.spans["domain"], ("host",)) & measured(trace)


def launch_mask(trace: TraceData) -> Mask:
    """Say for each span whether it is a runtime or driver call that puts work on a device's queue."""
    spans = trace.spans
    return _host(trace) & among(spans["kind"], ("runtime",)) & names_matching(spans["name"], LAUNCH)


def wait_mask(trace: TraceData) -> Mask:
    """Say for each span whether the host waits in it for a device."""
    spans = trace.spans
    return _host(trace) & among(spans["kind"], ("runtime", "phase")) & names_matching(spans["name"], WAIT)


def enqueue_mask(trace: TraceData) -> Mask:
    """Say for each span whether it is the enqueue of a delegate's engine, as the host sees it."""
    spans = trace.spans
    return _host(trace) & among(spans["kind"], ("phase",)) & names_matching(spans["name"], ENQUEUE)
