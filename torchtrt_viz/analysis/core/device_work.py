"""The work of devices in a trace: kernels, copies, fills and collectives, sorted into classes.

Ranges that merely annotate a GPU stream and synchronisation records are not work. The phases and layers of an
engine that were measured on a device are its work where nothing finer was recorded: where kernels were, they
are the work, and counting both would count it twice. All tables and findings about devices take it from here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torchtrt_viz.analysis.core.ancestry import outermost
from torchtrt_viz.analysis.core.cache import kept
from torchtrt_viz.analysis.core.intervals import IntervalSet, inside_of, merge
from torchtrt_viz.analysis.core.masks import among, codes, ints, measured, names_matching
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["CLASSES", "DEVICE_KINDS", "DeviceWork", "device_work"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

DEVICE_KINDS = ("kernel", "memcpy", "memset", "communication")
_ENGINE_KINDS = ("phase", "layer")
CLASSES = ("compute", "communication", "copy", "fill")


class _Collective:
    """Names of collectives' kernels, as `re.Pattern.search` finds them."""

    #: Every name that the pattern finds holds one of these; most kernels hold none, and are passed over.
    WORDS = ("ccl", "nvshmem", "reduce", "lamport", "multimem_all")
    PATTERN = re.compile(
        r"nccl\w*Kernel|nccl\w*DevKernel|ncclDev|^nccl|rccl|mscclpp|nvshmem|oneShotAllReduce|twoShotAllReduce"
        r"|cross_device_reduce|all_?reduce_kernel|allreduce_fusion|lamport|quickreduce|multimem_all",
        re.IGNORECASE,
    )

    def search(self, name: str) -> re.Match[str] | None:
        """Return where the pattern is found, None where it is not."""
        low = name.lower()
        return self.PATTERN.search(name) if any(word in low for word in self.WORDS) else None


_COMMUNICATION = _Collective()
_COPY = re.compile(r"^Memcpy\b|^dma|^MEMORY_COPY_|^(Copy)(Host|Device|Buffer)|__amd_rocclr_copy")
_FILL = re.compile(r"^Memset\b|__amd_rocclr_fill|^FillBuffer")


@dataclass(frozen=True)
class DeviceWork:
    """Measured device work, one entry per span, ordered by start.

    Attributes
    ----------
    row
        Row of ``trace.spans``.
    start, end
        ns on the trace's base.
    kind
        Position in `CLASSES`.
    track
        Row of ``trace.tracks``.
    device
        Device index, -1 where the trace does not say.
    """

    row: Ints
    start: Ints
    end: Ints
    kind: NDArray[np.int8]
    track: NDArray[np.int32]
    device: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def dur(self) -> Ints:
        """Durations in ns."""
        return self.end - self.start

    def of(self, mask: Mask) -> DeviceWork:
        """Return the part where ``mask`` is true."""
        return DeviceWork(
            self.row[mask],
            self.start[mask],
            self.end[mask],
            self.kind[mask],
            self.track[mask],
            self.device[mask],
        )

    def is_class(self, *names: str) -> Mask:
        """Say for each entry whether its class is one of ``names``."""
        out: Mask = np.zeros(len(self.kind), bool)
        for name in names:
            out |= self.kind == CLASSES.index(name)
        return out

    def busy(self, *names: str) -> IntervalSet:
        """Return when anything (of these classes) ran, as a set of intervals."""
        if not names:
            return merge(self.start, self.end)
        mask = self.is_class(*names)
        return merge(self.start[mask], self.end[mask])

    def devices(self) -> list[int]:
        """Return the device indices that occur, -1 for unknown."""
        return [int(device) for device in np.unique(self.device)]


def work_mask(trace: TraceData) -> Mask:
    """Say for each span whether it is measured device work."""
    spans = trace.spans
    here = among(spans["domain"], ("gpu",)) & measured(trace)
    out: Mask = here & among(spans["kind"], DEVICE_KINDS)
    if (here & among(spans["kind"], _ENGINE_KINDS)).any():
        out |= _engine_work(trace, here)
    return out


def _engine_work(trace: TraceData, here: Mask) -> Mask:
    """Say for each span whether it is a phase, or else a layer, that stands for work nobody recorded finer.

    That is the outermost phase in which no kernel of its device begins, and the outermost layer in which
    none does and that no phase of its engine covers.
    """
    spans = trace.spans
    parent = spans["parent"].to_numpy()
    start, dur = ints(spans["start_ns"]), spans["dur_ns"].to_numpy()
    device = track_devices(trace)[spans["track"].to_numpy()]
    engine = codes(spans["run_id"])
    kernel = np.flatnonzero(here & among(spans["kind"], ("kernel", "communication")))
    phase = outermost(parent, here & among(spans["kind"], ("phase",)))
    layer = outermost(parent, here & among(spans["kind"], ("layer",)))
    out = np.zeros(len(spans), bool)
    for kind, finer in ((phase, False), (layer, True)):
        rows = np.flatnonzero(kind)
        for number in np.unique(device[rows]):
            mine = rows[device[rows] == number]
            same = kernel if number < 0 else kernel[(device[kernel] == number) | (device[kernel] < 0)]
            begins = np.sort(start[same])
            first = np.searchsorted(begins, start[mine], side="left")
            none = np.searchsorted(begins, start[mine] + dur[mine], side="left") == first
            out[mine[none]] = True
        if finer and phase.any():
            for number in np.unique(engine[rows]):
                mine = rows[engine[rows] == number]
                around = np.flatnonzero(phase & (engine == number))
                covered = merge(start[around], start[around] + dur[around])
                out[mine[inside_of(covered, start[mine])]] = False
    return out


def classify(trace: TraceData, rows: Ints) -> NDArray[np.int8]:
    """Return the class (position in `CLASSES`) of spans, as if each were device work.

    The kind that the loader gave decides; a span of kind kernel is looked at by name, because collectives,
    and on some platforms copies and fills, are recorded as kernels.
    """
    spans = trace.spans
    out = np.zeros(len(rows), np.int8)
    kind = spans["kind"].iloc[rows]
    kernel = among(kind, ("kernel",))
    names = spans["name"]
    out[kernel & names_matching(names, _COMMUNICATION, rows)] = CLASSES.index("communication")
    out[kernel & names_matching(names, _COPY, rows)] = CLASSES.index("copy")
    out[kernel & names_matching(names, _FILL, rows)] = CLASSES.index("fill")
    out[among(kind, ("communication",))] = CLASSES.index("communication")
    out[among(kind, ("memcpy",))] = CLASSES.index("copy")
    out[among(kind, ("memset",))] = CLASSES.index("fill")
    return out


def device_work(trace: TraceData) -> DeviceWork:
    """Return the measured device work of a trace, ordered by start (then by end, then by row)."""
    return kept(trace, "device work", INPUTS, lambda: _device_work(trace))


#: What `device_work` reads.
INPUTS = {
    "spans": ("name", "kind", "domain", "timing", "track", "start_ns", "dur_ns", "parent", "run_id"),
    "tracks": ("device",),
}


def _device_work(trace: TraceData) -> DeviceWork:
    spans = trace.spans
    rows = np.flatnonzero(work_mask(trace))
    start = ints(spans["start_ns"])[rows]
    order = np.argsort(start, kind="stable")
    end = start + spans["dur_ns"].to_numpy()[rows]
    if (np.diff(start[order]) == 0).any():
        order = np.lexsort((end, start))
    rows, start, end = rows[order], start[order], end[order]
    track = spans["track"].to_numpy()[rows]
    parts = (rows, start, end, classify(trace, rows), track, track_devices(trace)[track])
    for part in parts:
        part.flags.writeable = False  # several analyses look at the same
    return DeviceWork(*parts)


def track_devices(trace: TraceData) -> Ints:
    """Return the device index of every track, -1 where unknown."""
    devices = trace.tracks["device"]
    return devices.to_numpy(dtype=np.int64, na_value=-1)


def device_label(device: int) -> object:
    """Return a device index as tables show it: NA where unknown."""
    return pd.NA if device < 0 else device
