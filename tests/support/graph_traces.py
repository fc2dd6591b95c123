"""Pairs of made-up traces: the capture of graphs, and replays of them of which the true owners are known.

Every piece of replayed work carries in its argument ``truth`` the number of the captured call that it came
from, which no loader looks at: a test reads it to tell right from wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rank_traces import trace_json, write

__all__ = ["Call", "Launch", "capture", "model", "replay", "write_pair"]

_PID, _DEVICE = 100, 0
_WORK = {"kernel": "kernel", "copy": "gpu_memcpy", "fill": "gpu_memset"}
_CALLS = {"kernel": "LaunchKernel", "copy": "MemcpyAsync", "fill": "MemsetAsync"}
_NAMES = {"copy": "Memcpy DtoD (Device -> Device)", "fill": "Memset (Device)"}


@dataclass(frozen=True)
class Call:
    """One captured call that puts a piece of work into a graph.

    Attributes
    ----------
    kernel
        Name of the kernel; of a copy or fill it does not matter.
    operator, module, batch
        Who made the call: ``operator`` on a tensor of ``batch`` rows, in a module.
    what
        kernel, copy or fill.
    stream
        Stream that it was captured on.
    """

    kernel: str
    operator: str
    module: str = "Layer_0"
    batch: int = 32
    what: str = "kernel"
    stream: int = 7
    number: int = -1

    @property
    def shape(self) -> list[list[int]]:
        """Shapes that the operator saw."""
        return [[self.batch, 16], [16, 16]]


@dataclass(frozen=True)
class Launch:
    """One launch of a graph of these calls.

    Attributes
    ----------
    work
        Its calls in the order in which they began, streams mixed as they ran.
    step
        Text of the range around it; launches of one step follow each other and share it.
    host_us, kernel_us
        Duration of the call on the host, and of each piece of work.
    """

    work: tuple[Call, ...]
    step: str = "execute_context_0(0)_generation_32(32)"
    host_us: float = 100.0
    kernel_us: float = 5.0


def model(layers: int = 3, batch: int = 32, suffix: str = "") -> list[Call]:
    """Return the calls of a small decoder, numbered; kernels of layers have equal names."""
    calls: list[Call] = []
    for layer in range(layers):
        where = f"Layer_{layer}"
        calls += [
            Call(f"norm{suffix}", "aten::rms_norm", where, batch),
            Call(f"gemm{suffix}", "aten::addmm", where, batch),
            Call("attention", "vllm::attention", where, batch),
            Call("copy", "aten::copy_", where, batch, "copy"),
            Call(f"gemm{suffix}", "aten::mm", where, batch),
        ]
    return numbered(calls)


def numbered(calls: Iterable[Call]) -> list[Call]:
    """Return the calls with their numbers."""
    return [replace(call, number=number) for number, call in enumerate(calls)]


@dataclass
class _Events:
    """Events being written, in the dialect of one vendor."""

    vendor: str
    named: bool = True
    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 0

    def add(
        self, cat: str, name: str, ts: float, dur: float, tid: int = 1, pid: int = _PID, **args: Any
    ) -> None:
        self.events.append(
            {
                "ph": "X",
                "cat": cat,
                "name": name,
                "pid": pid,
                "tid": tid,
                "ts": round(ts, 3),
                "dur": round(dur, 3),
                "args": args,
            }
        )

    def call(self, name: str, ts: float, dur: float, **args: Any) -> int:
        self.correlation += 1
        self.add("cuda_runtime", f"{self.vendor}{name}", ts, dur, correlation=self.correlation, **args)
        return self.correlation

    def launch(self, call: Call, ts: float) -> int:
        args = {"kernel": call.kernel} if self.named and call.what == "kernel" else {}
        return self.call(_CALLS[call.what], ts, 1.0, **args)

    def work(
        self, call: Call, ts: float, dur: float, correlation: int, stream: int | None = None, **args: Any
    ) -> None:
        on = call.stream if stream is None else stream
        name = call.kernel if call.what == "kernel" else _NAMES[call.what]
        place = {"device": _DEVICE, "stream": on, "correlation": correlation}
        self.add(_WORK[call.what], name, ts, dur, tid=on, pid=_DEVICE, **place, **args)

    def text(self, **header: Any) -> bytes:
        return trace_json(self.events, **header)


def capture(
    graphs: Sequence[Sequence[Call]],
    *,
    vendor: str = "hip",
    named: bool = True,
    said: str | None = "capture_32_FULL",
    warm_up: bool = True,
    calls: bool = True,
    ended: bool = True,
    **header: Any,
) -> bytes:
    """Return the recording of captures of these graphs, one after the other.

    Parameters
    ----------
    named
        Launches name their kernels (ROCm) or do not (CUDA).
    said
        Text of the range around everything; None: no range.
    warm_up
        Everything runs once before, outside the capture, as engines do.
    calls
        The calls that begin and end a capture were recorded.
    ended
        The end of the last capture was recorded.
    """
    out = _Events(vendor, named)
    at = 1000.0
    for number, graph in enumerate(graphs):
        if warm_up:
            for call in graph:
                out.add("cpu_op", call.operator, at, 8.0, **{"Input Dims": call.shape})
                out.work(call, at + 20, 3.0, out.launch(call, at + 2))
                at += 10
            at += 50
        if calls:
            out.call("StreamBeginCapture", at, 1.0)
        at += 2
        module, begun = None, at
        for call in graph:
            if call.module != module:
                if module is not None:
                    out.add("python_function", f"nn.Module: {module}", begun, at - begun)
                module, begun = call.module, at
            out.add("python_function", f"model.py({call.number}): forward", at + 0.5, 9.0)
            types = {"Input type": ["c10::BFloat16", "c10::BFloat16"]}
            out.add("cpu_op", call.operator, at + 1, 8.0, **{"Input Dims": call.shape}, **types)
            out.launch(call, at + 3)
            at += 10
        if module is not None:
            out.add("python_function", f"nn.Module: {module}", begun, at - begun)
        if calls and (ended or number + 1 < len(graphs)):
            out.call("StreamEndCapture", at + 1, 1.0)
        at += 20
    if said is not None:
        out.add("user_annotation", said, 990.0, at - 980.0)
    return out.text(**header)


def replay(
    launches: Sequence[Launch],
    *,
    vendor: str = "hip",
    nodes: bool = False,
    streams: dict[int, int] | None = None,
    eager: Sequence[Call] = (),
    **header: Any,
) -> bytes:
    """Return the recording of these launches.

    Parameters
    ----------
    nodes
        Work carries the number of its graph node, as CUPTI gives it.
    streams
        Stream that work of each captured stream ran on; the captured one where it is not named.
    eager
        Operators that ran outside graphs, before the launches.
    """
    out = _Events(vendor)
    at, device = 1000.0, 2000.0
    for call in eager:
        out.add("cpu_op", call.operator, at, 8.0, **{"Input Dims": call.shape})
        out.work(call, device, 3.0, out.launch(call, at + 2), truth=-1)
        at, device = at + 10, device + 10
    step, begun = None, at
    for number, launch in enumerate(launches):
        if launch.step != step:
            if step:
                out.add("user_annotation", step, begun, at - begun)
            step, begun = launch.step, at
        correlation = out.call("GraphLaunch", at + 5, launch.host_us)
        device = max(device, at + 20)
        ready: dict[int, float] = {}
        for call in launch.work:
            on = (streams or {}).get(call.stream, call.stream)
            begin = max(device, ready.get(on, 0.0))
            ids = {"graph id": 5, "graph node id": (5 << 32) + call.number} if nodes else {}
            out.work(call, begin, launch.kernel_us, correlation, on, truth=call.number, replay=number, **ids)
            ready[on] = begin + launch.kernel_us
            device += 1.0 if len(set(one.stream for one in launch.work)) > 1 else launch.kernel_us
        device = max([device, *ready.values()])
        at += launch.host_us + 20
    if step:
        out.add("user_annotation", step, begun, at - begun)
    return out.text(**header)


def write_pair(
    folder: Path,
    replayed: bytes,
    captures: dict[str, bytes],
    *,
    details: list[dict[str, Any]] | None = None,
    name: str = "graph_execution.json.gz",
) -> Path:
    """Write a replay, and beside it a folder of captures as engines do."""
    write(folder / name, replayed)
    for file, content in captures.items():
        write(folder / "capture_traces" / file, content)
    if details is not None:
        write(folder / "capture_traces" / "execution_details.json", json.dumps(details).encode())
    return folder
