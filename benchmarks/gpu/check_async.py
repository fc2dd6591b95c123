"""Does profiling leave the asynchronous contract of TensorRT engines alone? The checks, on a real GPU.

What `capture_ext/tests/tensorrt/engine_test.cpp` proves on a simulated device, with CUDA's own streams and
events: a small TensorRT engine runs on buffers of the device and a stream of the caller's, behind about 1 ms
of other work, at every level from off to layers. Checked are

- results: equal to the bit between levels, and right
- asynchrony: the call returns while the device still works, in less host time than that work takes
- waits: no level makes the host wait for the device where level off does not, back to back calls and teardown
  included (CUPTI sees every function of the driver that waits, also those that TensorRT calls)
- GPU time: what the capture reports lies within the time between two CUDA events around the call, and differs
  from it by at most 20 us or 15 %; layers are reported at level layers only, and sum up to no more
- torch: the operator of AOTInductor packages on torch's streams, its default one included

Needs: an NVIDIA GPU; `tensorrt` (10 or 11) with its Python package; CUPTI (comes with torch's CUDA build);
this package built where NvInfer.h and cuda_runtime_api.h were found::

    TENSORRT_INCLUDE_DIR=.../include CUDA_HOME=/usr/local/cuda pip install '.[capture]'
    python benchmarks/gpu/check_async.py

Exit status: 0 all hold, 1 something does not, 2 this machine cannot run it (the message says what it lacks).
`--simulated` runs the same script on the stand-ins that the tests build (paths in TORCHTRT_VIZ_NVINFER and
TORCHTRT_VIZ_CUDART), in a build against their headers: that is how the script itself is tested.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from cuda_device import Array, Cuda, NoDevice
from plans import Case, simulated, tensorrt_plan
from wait_counter import Waits, wait_counter

LEVELS = ("off", "delegate", "phases", "layers")
CALLS = 8
BUSY_MS = 1.0
GPU_TIME = "torchtrt.enqueue_gpu"


@dataclass
class Measured:
    """What one level did."""

    level: str
    y: np.ndarray | None = None
    host_ns: list[int] = field(default_factory=list)
    in_flight: int = 0  # calls that returned while the device worked
    elapsed_ns: list[int] = field(default_factory=list)
    alone: Waits = field(default_factory=Waits)  # calls with the stream empty before them
    queued: Waits = field(default_factory=Waits)  # calls back to back
    teardown: Waits = field(default_factory=Waits)
    ended: bool = False  # teardown waited for the work
    gpu_ns: dict[int, int] = field(default_factory=dict)  # by call
    layers_ns: dict[int, int] = field(default_factory=dict)


class Checks:
    """Collects what does not hold."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def __call__(self, holds: bool, what: str) -> None:
        if not holds:
            self.failed.append(what)


def measure(level: str, case: Case, cuda: Cuda, counter: Any) -> Measured:
    """Run the engine at one level: alone, back to back, and to its end."""
    from torchtrt_viz._native import native
    from torchtrt_viz.capture import Engine

    out = Measured(level)
    stream, begin, end = cuda.stream(), cuda.event(), cuda.event()
    x, y = Array(cuda, case.x.shape), Array(cuda, case.expected.shape)
    x.put(case.x, stream)
    recording = native("capture").Recording()
    engine = Engine(case.plan, name="check", level=level)
    for _ in range(2):  # kernels are loaded and memory is allocated in the first calls
        engine(x, out=[y], stream=stream)
        cuda.wait(stream)
    for _ in range(CALLS):
        cuda.busy(stream)
        cuda.record(begin, stream)
        before = cuda.host_ns()
        with counter.block() as waits:
            engine(x, out=[y], stream=stream)
        out.host_ns.append(cuda.host_ns() - before)
        cuda.record(end, stream)
        out.in_flight += not cuda.ready(end)
        _add(out.alone, waits)
        cuda.wait(stream)
        out.elapsed_ns.append(cuda.elapsed_ns(begin, end))
    out.y = y.get(stream)
    with counter.block() as out.queued:
        for _ in range(4):
            cuda.busy(stream)
            engine(x, out=[y], stream=stream)
    cuda.record(end, stream)
    with counter.block() as out.teardown:
        engine.close()
    out.ended = cuda.ready(end)
    _take(recording.stop(), out)
    cuda.wait(stream)
    for array in (x, y):
        array.free()
    return out


def _add(to: Waits, waits: Waits) -> None:
    to.calls.update(waits.calls)
    to.waited.update(waits.waited)


def _take(columns: dict[str, Any], out: Measured) -> None:
    """Sort the recorded device times by call; the warm-up is left out."""
    names = np.array(columns["names"], dtype=object)[columns["name"]] if len(columns["name"]) else []
    for name, kind, call, start, stop, device in zip(
        names, columns["kind"], columns["call"], columns["start_ns"], columns["end_ns"], columns["on_device"],
        strict=True,
    ):  # fmt: skip
        if not device:
            continue
        layer = columns["kinds"][kind] == "layer"
        into = out.layers_ns if layer else out.gpu_ns
        if layer or name == GPU_TIME:
            into[int(call) - 2] = into.get(int(call) - 2, 0) + int(stop - start)


def judge(off: Measured, one: Measured, case: Case, busy_ms: float, simulated: bool, check: Checks) -> None:
    """Compare a level with level off."""
    level = one.level
    # TensorRT computes layer times through functions that wait, for work that is known to be done: where it
    # can be told that those calls did not wait, they are no harm
    strict = simulated or level != "layers"
    assert one.y is not None
    assert off.y is not None
    check(one.y.tobytes() == off.y.tobytes(), f"{level}: results differ from those of level off")
    scale = float(np.abs(case.expected).max())
    wrong = float(np.abs(one.y - case.expected).max())
    check(wrong <= case.tolerance * scale, f"{level}: results are off by {wrong:g} of {scale:g}")
    check(one.in_flight == CALLS, f"{level}: {CALLS - one.in_flight} of {CALLS} calls waited for the device")
    host = median(one.host_ns)
    check(host < busy_ms * 1e6, f"{level}: a call took {host / 1e3:.0f} us, as long as the work before it")
    for what in ("alone", "queued", "teardown"):
        _judge_waits(getattr(off, what), getattr(one, what), f"{level}, {what}", strict, check)
    check(one.ended, f"{level}: teardown did not wait for the work in flight")
    expected = 2 + CALLS + 4 if level in ("phases", "layers") else 0
    check(len(one.gpu_ns) == expected, f"{level}: device time of {len(one.gpu_ns)} calls, not of {expected}")
    wanted = expected if level == "layers" else 0
    check(len(one.layers_ns) == wanted, f"{level}: layers of {len(one.layers_ns)} calls, not of {wanted}")
    for call, elapsed in enumerate(one.elapsed_ns):
        gpu = one.gpu_ns.get(call)
        if gpu is None:
            continue
        off_by = elapsed - gpu
        check(
            -5_000 <= off_by <= max(20_000, 0.15 * elapsed),
            f"{level}: call {call} reports {gpu / 1e3:.1f} us, the events around it {elapsed / 1e3:.1f} us",
        )
        layers = one.layers_ns.get(call)
        check(
            layers is None or 0 < layers <= 1.1 * gpu + 20_000,
            f"{level}: layers of call {call} sum up to {(layers or 0) / 1e3:.1f} us of {gpu / 1e3:.1f} us",
        )


def _judge_waits(off: Waits, one: Waits, what: str, strict: bool, check: Checks) -> None:
    extra = one.calls - off.calls
    waited = one.waited - off.waited
    check(not (extra and strict), f"{what}: {_text(one.calls)}, where level off makes {_text(off.calls)}")
    check(not waited, f"{what}: the host waited in {_text(one.waited)}, at level off in {_text(off.waited)}")


def _text(counts: Counter[str]) -> str:
    return ", ".join(f"{n}x {name}" for name, n in sorted(counts.items())) or "no call that waits"


def staged(case: Case, counter: Any, check: Checks) -> None:
    """From memory of the host: the one wait that there is, and no other."""
    from torchtrt_viz.capture import Engine

    first: tuple[Waits, np.ndarray] | None = None
    for level in LEVELS:
        with Engine(case.plan, name="staged", level=level) as engine:
            engine(case.x)
            with counter.block() as waits:
                (y,) = engine(case.x)
        if first is None:
            first = (waits, y)
        check(y.tobytes() == first[1].tobytes(), f"staged, {level}: results differ from those of level off")
        extra = waits.calls - first[0].calls
        check(
            not extra or level == "layers", f"staged, {level}: {_text(waits.calls)} is more than at level off"
        )


def through_torch(case: Case, check: Checks) -> str:
    """The operator that AOTInductor packages call, on torch's own streams."""
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    from torchtrt_viz._native import native
    from torchtrt_viz.capture import load_torch_ops
    from torchtrt_viz.formats.engine.blob import pack_blob

    load_torch_ops()
    module = native("capture")
    blob = torch.frombuffer(bytearray(pack_blob(case.plan, io_bindings=[])), dtype=torch.uint8)
    cuda = torch.cuda.is_available()
    x = torch.from_numpy(case.x).to("cuda" if cuda else "cpu")
    run = torch.ops.torchtrt_viz.execute_engine
    results: list[bytes] = []
    for level in LEVELS:
        module.set_profile(execution=level != "off", level=level, format="etdump")
        for stream in (torch.cuda.Stream(), torch.cuda.default_stream()) if cuda else (None,):
            with torch.cuda.stream(stream) if stream is not None else nullcontext():
                run([x], blob, "torch")
                if stream is not None:
                    torch.cuda.synchronize()
                    torch.cuda._sleep(4_000_000)  # about 2 ms
                (y,) = run([x * 1], blob, "torch")  # an input that is still being computed
                if stream is not None:
                    working = not stream.query()
                    check(working, f"torch, {level}: the call waited for the device")
                results.append(y.cpu().numpy().tobytes())
    module.reset_profile()
    torch.ops.torchtrt_viz.release_engines()
    check(len(set(results)) == 1, "torch: results differ between levels or streams")
    return f"{len(results)} runs on {'CUDA streams' if cuda else 'the host: torch has no CUDA'}"


def table(rows: list[Measured]) -> None:
    """Print what was measured."""
    print(
        f"{'level':9} {'host us':>8} {'in flight':>9} {'GPU us':>8} {'events us':>9} {'layers us':>9}  waits"
    )
    for row in rows:
        gpu = [row.gpu_ns[call] for call in range(CALLS) if call in row.gpu_ns]
        layers = [row.layers_ns[call] for call in range(CALLS) if call in row.layers_ns]
        cells = [f"{median(v) / 1e3:.1f}" if v else "-" for v in (row.host_ns, gpu, row.elapsed_ns, layers)]
        counts = [sum(w.calls.values()) for w in (row.alone, row.queued, row.teardown)]
        print(
            f"{row.level:9} {cells[0]:>8} {row.in_flight:>6}/{CALLS:<2} {cells[1]:>8} {cells[2]:>9} "
            f"{cells[3]:>9}  {counts[0]} alone, {counts[1]} back to back, {counts[2]} at the end"
        )


def main() -> int:
    """Run every check; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulated", action="store_true", help="on the tests' stand-ins")
    options = parser.parse_args()
    try:
        from torchtrt_viz.errors import TorchTrtVizError
        from torchtrt_viz.runtime.modules import capture_module

        try:
            if not capture_module().TENSORRT_ENGINE:
                raise NoDevice(
                    "this build of torchtrt_viz has no TensorRT engine: build it where CMake finds NvInfer.h "
                    "(TENSORRT_INCLUDE_DIR) and cuda_runtime_api.h (CUDA_HOME)"
                )
        except TorchTrtVizError as error:
            raise NoDevice(str(error)) from error
        cuda = Cuda()
        if cuda.simulated != options.simulated:
            raise NoDevice("the CUDA runtime is " + ("" if cuda.simulated else "not ") + "the simulated one")
        case = simulated() if options.simulated else tensorrt_plan()
        counter = wait_counter(cuda)
    except NoDevice as missing:
        print(f"not run: {missing}", file=sys.stderr)
        return 2
    check = Checks()
    busy_ms = cuda.calibrate(BUSY_MS)
    print(f"{cuda.name()}, TensorRT {case.version}; {busy_ms:.2f} ms of work before each call")
    rows = [measure(level, case, cuda, counter) for level in LEVELS]
    table(rows)
    for row in rows:
        judge(rows[0], row, case, busy_ms, cuda.simulated, check)
    staged(case, counter, check)
    print(f"torch: {through_torch(case, check)}")
    for failure in check.failed:
        print(f"FAILED {failure}")
    print("all checks hold" if not check.failed else f"{len(check.failed)} checks failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
