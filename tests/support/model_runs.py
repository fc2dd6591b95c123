"""Runs of small models on a host and a device, written down layer by layer, for tests of their structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trace_builder import Builder

from torchtrt_viz.trace import Trace


@dataclass(frozen=True)
class Op:
    """An operator (or module, or range): what it calls, and the kernels it launches, each with its ns."""

    name: str
    inner: Sequence[Op] = ()
    kernels: Sequence[tuple[str, int]] = ()
    kind: str = "operator"
    own: int = 100  # host time of its own, ns


def module(name: str, *inner: Op) -> Op:
    """Return a call of a module."""
    return Op(f"nn.Module: {name}", inner, kind="python")


def linear(number: int = 0, product: str = "sm90_xmma_gemm_bf16") -> Op:
    """Return a linear layer: a module, three operators, one kernel."""
    transposed = Op("aten::t", [Op("aten::transpose")])
    return module(
        f"Linear_{number}", Op("aten::linear", [transposed, Op("aten::addmm", kernels=[(product, 5_000)])])
    )


def relu() -> Op:
    """Return an activation outside of any module."""
    return Op("aten::relu", [Op("aten::clamp_min", kernels=[("relu_kernel", 1_000)])])


def norm(number: int = 0) -> Op:
    """Return a normalisation."""
    native = Op("aten::native_layer_norm", kernels=[("vectorized_layer_norm_kernel", 2_000)])
    return module(f"LayerNorm_{number}", Op("aten::layer_norm", [native]))


@dataclass
class Run:
    """Writes iterations of a list of operators.

    Attributes
    ----------
    threads
        Labels of threads; the first runs the program. The others have an operator each, ``aten::on_N``.
    streams
        Numbers of streams; kernels take turns.
    scale
        Factor of the kernels' durations, by iteration and name.
    """

    threads: Sequence[int] = (11,)
    streams: Sequence[int] = (7,)
    scale: Callable[[int, str], float] = lambda _iteration, _name: 1.0
    _now: int = 1_000
    _free: int = 0
    _correlation: int = 0
    _kernels: int = 0
    builder: Builder = field(default_factory=Builder)

    def write(self, program: Sequence[Op], iterations: Sequence[int] = (0,), steps: bool = True) -> Trace:
        """Write the program once per iteration, in the given order of numbers."""
        rows = {
            number: self.builder.track(f"thread {number}", thread=str(number), process="1")
            for number in self.threads
        }
        lanes = [self.builder.stream(number) for number in self.streams]
        main = rows[self.threads[0]]
        for iteration in iterations:
            begin = self._now
            self._now += 50
            for at, number in enumerate(self.threads[1:]):
                row, mark = rows[number], iteration if steps else None
                self.builder.span(f"aten::on_{at}", begin + 10, 40, row, iteration=mark)
            for op in program:
                self._op(op, main, lanes, iteration, steps)
            if steps:
                self.builder.span(
                    f"ProfilerStep#{iteration}", begin, self._now - begin, main, "step", iteration=iteration
                )
            self._now += 500
        return self.builder.build()

    def _op(self, op: Op, main: int, lanes: list[int], iteration: int, steps: bool) -> None:
        begin = self._now
        number = iteration if steps else None
        self._now += op.own // 2
        for inner in op.inner:
            self._op(inner, main, lanes, iteration, steps)
        for name, dur in op.kernels:
            self._correlation += 1
            self.builder.span(
                "cudaLaunchKernel",
                self._now,
                20,
                main,
                "runtime",
                correlation=self._correlation,
                iteration=number,
            )
            start = max(self._free, self._now + 30)
            took = round(dur * self.scale(iteration, name))
            lane = lanes[self._kernels % len(lanes)]
            self.builder.span(
                name, start, took, lane, "kernel", correlation=self._correlation, iteration=number
            )
            self._kernels += 1
            self._free = start + took
            self._now += 40
        self._now += op.own - op.own // 2
        self.builder.span(op.name, begin, self._now - begin, main, op.kind, iteration=number)


def run(program: Sequence[Op], iterations: int = 1) -> Trace:
    """Return a run of some iterations."""
    return Run().write(program, range(iterations))
