"""One training step as torch.profiler would record it: the reference that the generator repeats.

The step is made up. A small transformer is trained with data parallelism: a main thread with Python frames,
operators, launches and allocations, an autograd thread, two streams of one device. What is modelled are the
proportions of real traces: 35 % operators, 20 % Python frames, 30 % flow events, 7 % kernels with names of
two hundred letters, about 320 bytes an event.

Times are nanoseconds from the beginning of the step. Texts hold ``{field}`` for what changes from step to
step; `Event.fields` says what each is made of.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["Event", "StepModel"]

PID, MAIN, AUTOGRAD, DEVICE = 4711, 4711, 4790, 0
COMPUTE, COMMUNICATION = 7, 20


@dataclass
class Event:
    """One event of the step. ``ids`` are its numbers beside times, as (counter, value in the step)."""

    phase: str
    category: str
    name: str
    pid: int
    tid: int
    start: int
    end: int = 0
    args: str = ""
    ids: list[tuple[str, int]] = field(default_factory=list)
    flow: int = 0


class StepModel:
    """The events of one step, in the sections in which Kineto writes them.

    Parameters
    ----------
    seed
        The same seed gives the same step.
    blocks
        Transformer blocks.
    """

    def __init__(
        self, seed: int, blocks: int = 8, *, stack: bool = True, shapes: bool = True, memory: bool = True
    ):
        self._random = random.Random(seed)
        self._stack, self._shapes, self._memory_on = stack, shapes, memory
        self.operators: list[Event] = []
        self.allocations: list[Event] = []
        self.frames: list[Event] = []
        self.device: list[Event] = []
        self.counters = {"external": 0, "correlation": 0, "sequence": 0, "python": 0, "flow": 0, "index": 0}
        self.overlaps = 0
        self._clock = {MAIN: 0, AUTOGRAD: 0}
        self._free = {COMPUTE: 0, COMMUNICATION: 0}
        self._modules = [
            (kind, f"nn.Module: {kind}_{i}")
            for i, kind in enumerate(
                [
                    "LayerNorm",
                    "Linear",
                    "Attention",
                    "Linear",
                    "Dropout",
                    "LayerNorm",
                    "Linear",
                    "GELU",
                    "Linear",
                ]
                * blocks
            )
        ]
        self._backward: list[tuple[str, int, int]] = []
        self._build()

    # -- building blocks -------------------------------------------------------------------------------

    def _next(self, counter: str) -> int:
        self.counters[counter] += 1
        return self.counters[counter]

    def _pass(self, thread: int, low: int = 300, high: int = 4000) -> int:
        self._clock[thread] += self._random.randint(low, high)
        return self._clock[thread]

    def _frame(self, name: str, thread: int, start: int, end: int, parent: int) -> int:
        number = self._next("python")
        if self._stack:
            caller = '"Python parent id": %d' if parent else '"Python parent id": null'
            ids = [("python", number), ("index", self._next("index"))]
            self.frames.append(
                Event(
                    "X",
                    "python_function",
                    name,
                    PID,
                    thread,
                    start,
                    end,
                    f'{caller}, "Python id": %d, "Ev Idx": %d',
                    [("python", parent), *ids] if parent else ids,
                )
            )
        return number

    def _operator(
        self, name: str, thread: int, start: int, end: int, *, sequence: int = 0, category: str = "cpu_op"
    ) -> int:
        external = self._next("external")
        args = '"External id": %d,"Record function id": 0'
        ids = [("external", external)]
        if self._shapes and category == "cpu_op":
            rows, columns = (
                self._random.choice([64, 128, 512, 2048]),
                self._random.choice([768, 1024, 3072, 4096]),
            )
            args += (
                ', "Concrete Inputs": ["", "", "", "1", "1"], "Input type": ["c10::BFloat16", '
                '"c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"], '
                f'"Input Strides": [[1], [{columns}, 1], [1, {columns}], [], []], '
                f'"Input Dims": [[{columns}], [{rows}, {columns}], [{columns}, {columns}], [], []]'
            )
        if sequence:
            args += (
                ', "Sequence number": %d, "Fwd thread id": 1'
                if thread == AUTOGRAD
                else ', "Fwd thread id": 0, "Sequence number": %d'
            )
            ids.append(("sequence", sequence))
        args += ', "Ev Idx": %d'
        ids.append(("index", self._next("index")))
        self.operators.append(Event("X", category, name, PID, thread, start, end, args, ids))
        return external

    def _fwdbwd(self, phase: str, thread: int, start: int, flow: int) -> None:
        self.operators.append(
            Event(phase, "fwdbwd", "fwdbwd", PID, thread, start, ids=[("flow", flow)], flow=flow)
        )

    def _allocation(self, thread: int, device: bool) -> None:
        if not self._memory_on:
            return
        size = self._random.choice([512, 4096, 1 << 20, 3 << 20]) * self._random.choice([1, -1])
        kind, number, total = (1, 0, 1 << 33) if device else (0, -1, 1 << 26)
        self.allocations.append(
            Event(
                "i",
                "cpu_instant_event",
                "[memory]",
                PID,
                thread,
                self._clock[thread],
                0,
                f'"Total Reserved": {total + (1 << 28)}, "Total Allocated": {total + size}, "Bytes": {size}, '
                f'"Device Id": {number}, "Device Type": {kind}, '
                f'"Addr": {self._random.randrange(1 << 40, 1 << 46)}, "Ev Idx": %d',
                [("index", self._next("index"))],
            )
        )

    def _launch(
        self,
        call: str,
        thread: int,
        kernel: str,
        external: int,
        duration: int,
        *,
        stream: int = COMPUTE,
        category: str = "kernel",
        extra: str = "",
        early: int = 0,
    ) -> None:
        """Record a launch on the host, the device work it starts, and the flow between them."""
        start = self._pass(thread)
        end = self._pass(thread, 2000, 9000)
        correlation = self._next("correlation")
        begin = max(end + self._random.randint(1000, 6000), self._free[stream] - early)
        if begin < self._free[stream]:
            self.overlaps += 1
        self._free[stream] = max(self._free[stream], begin + duration) + self._random.randint(200, 900)
        args = (
            f'"External id": %d,      "queued": 0, "device": {DEVICE}, "context": 1,      '
            f'"stream": {stream}, "correlation": %d'
        )
        if category == "kernel":
            pick, real = self._random.randint, self._random.random
            args += (
                f',      "registers per thread": {pick(16, 255)},      "shared memory": {16 * pick(0, 1024)},'
                f'      "blocks per SM": {real() * 9:.6f},      "warps per SM": {real() * 99:.6f},'
                f'      "grid": [{pick(1, 4096)}, 1, 1],      "block": [{32 * pick(1, 16)}, 1, 1],'
                f'      "est. achieved occupancy %%": {pick(0, 100)}'
            )
        elif category == "gpu_memcpy":
            args += f', "bytes": 8192000, "memory bandwidth (GB/s)": {self._random.random() * 900}'
        self.device.append(
            Event(
                "X",
                category,
                kernel,
                DEVICE,
                stream,
                begin,
                begin + duration,
                args + extra,
                [("external", external), ("correlation", correlation)],
            )
        )
        self.device.append(
            Event(
                "f",
                "ac2g",
                "ac2g",
                DEVICE,
                stream,
                begin,
                ids=[("correlation", correlation)],
                flow=correlation,
            )
        )
        driver = call.startswith("cu") and not call.startswith("cuda")
        self.device.append(
            Event(
                "X",
                "cuda_driver" if driver else "cuda_runtime",
                call,
                PID,
                thread,
                start,
                end,
                '"External id": %d,      "cbid": 211, "correlation": %d',
                [("external", external), ("correlation", correlation)],
            )
        )
        self.device.append(
            Event(
                "s", "ac2g", "ac2g", PID, thread, start, ids=[("correlation", correlation)], flow=correlation
            )
        )

    def _runtime(self, call: str, thread: int, external: int) -> None:
        """Record a call that starts nothing; Kineto writes the end of a flow for it all the same."""
        start = self._pass(thread)
        end = self._pass(thread, 500, 2500)
        correlation = self._next("correlation")
        self.device.append(
            Event(
                "X",
                "cuda_runtime",
                call,
                PID,
                thread,
                start,
                end,
                '"External id": %d,      "cbid": 203, "correlation": %d',
                [("external", external), ("correlation", correlation)],
            )
        )
        self.device.append(
            Event(
                "f", "ac2g", "ac2g", PID, thread, start, ids=[("correlation", correlation)], flow=correlation
            )
        )

    def _kernel_name(self, stem: str) -> str:
        width = self._random.choice([1, 2, 4, 8])
        functor = self._random.choice(
            [
                "CUDAFunctor_add<c10::BFloat16>",
                "BinaryFunctor<float, float, float, binary_internal::MulFunctor<float> >",
                "AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
                "binary_internal::MulFunctor<float> >",
                "(anonymous namespace)::GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda()#1}",
            ]
        )
        if stem == "gemm":
            tile = self._random.choice(["128x128", "256x128", "64x64", "128x64"])
            layout, stages = self._random.choice(["nn", "tn", "nt"]), self._random.randint(2, 5)
            return f"ampere_bf16_s16816gemm_bf16_{tile}_ldg8_f2f_stages_{width}x{stages}_{layout}"
        array = f"std::array<char*, {width + 1}ul>"
        return (
            f"void at::native::{stem}<{width}, at::native::{functor}, {array} >(int, at::native::{functor}, "
            f"{array}, TrivialOffsetCalculator<{width}, unsigned int>, "
            f"at::native::memory::LoadWithCast<{width}>)"
        )

    # -- the step --------------------------------------------------------------------------------------

    def _build(self) -> None:
        begin = self._clock[MAIN]
        root = self._frame("train.py(88): train_step", MAIN, begin, 0, 0)
        root_event = self.frames[-1] if self._stack else None
        step_slot = len(self.operators)
        external = self._operator("ProfilerStep#%d", MAIN, begin, 0, category="user_annotation")
        for index, (kind, module) in enumerate(self._modules):
            self._forward(index, kind, module, root)
        self._clock[AUTOGRAD] = self._clock[MAIN] + 20000
        for kind, sequence, flow in reversed(self._backward):
            self._backward_of(kind, sequence, flow)
        self._reduce(external)
        self._clock[MAIN] = self._clock[AUTOGRAD] + 15000
        self._optimize(root)
        end = self._clock[MAIN] + 5000
        self.duration = max(end, *self._free.values()) + 20000
        for event in (root_event, self.operators[step_slot]):
            if event is not None:
                event.end = end
        self.operators[step_slot].ids.insert(0, ("step", 0))
        self.device.append(
            Event(
                "X",
                "gpu_user_annotation",
                "ProfilerStep#%d",
                DEVICE,
                COMPUTE,
                self._first_kernel(),
                self._free[COMPUTE],
                '"External id": %d',
                [("step", 0), ("external", external)],
            )
        )

    def _first_kernel(self) -> int:
        return min(e.start for e in self.device if e.category == "kernel" and e.tid == COMPUTE)

    def _forward(self, index: int, kind: str, module: str, root: int) -> None:
        start = self._pass(MAIN)
        number = self._frame(module, MAIN, start, 0, root)
        frames = [self.frames[-1]] if self._stack else []
        for depth, name in enumerate(
            (
                f"torch/nn/modules/{kind.lower()}.py({100 + index}): forward",
                f"<built-in function {kind.lower()}>",
                "torch/nn/modules/module.py(1773): _wrapped_call_impl",
                "torch/nn/modules/module.py(1784): _call_impl",
                "C:\\\\Users\\\\dev\\\\model\\\\blocks.py(%%d): call"
                if index % 9 == 0
                else "torch/_tensor.py(%%d): wrapped",
            )
        ):
            number = self._frame(
                name.replace("%%d", str(10 * depth + index % 40)), MAIN, self._pass(MAIN, 200, 900), 0, number
            )
            if self._stack:
                frames.append(self.frames[-1])
        names = {
            "Linear": ["aten::linear", "aten::addmm"],
            "LayerNorm": ["aten::layer_norm", "aten::native_layer_norm"],
            "Attention": [
                "aten::scaled_dot_product_attention",
                "aten::_scaled_dot_product_flash_attention",
                "aten::_flash_attention_forward",
            ],
            "Dropout": ["aten::dropout", "aten::native_dropout"],
            "GELU": ["aten::gelu"],
        }[kind]
        sequence, flow = self._next("sequence"), self._next("flow")
        opened = []
        external = 0
        for name in names:
            at = self._pass(MAIN, 400, 1500)
            external = self._operator(name, MAIN, at, 0, sequence=sequence)
            opened.append(self.operators[-1])
            if len(opened) == 1:
                self._fwdbwd("s", MAIN, at, flow)
        for name in ("aten::t", "aten::transpose", "aten::view", "aten::as_strided", "aten::empty"):
            at = self._pass(MAIN, 200, 900)
            self._operator(name, MAIN, at, self._pass(MAIN, 200, 900))
        self._allocation(MAIN, device=True)
        if index % 6 == 0:
            self._runtime("cudaStreamIsCapturing", MAIN, external)
        call = "cuLaunchKernel" if kind == "Attention" else "cudaLaunchKernel"
        stem = "gemm" if kind in ("Linear", "Attention") else "vectorized_elementwise_kernel"
        # Programmatic dependent launch lets a kernel begin before the one before it has ended.
        early = 1500 if index == 4 else 0
        self._launch(
            call, MAIN, self._kernel_name(stem), external, self._random.randint(3000, 90000), early=early
        )
        if kind == "Linear":
            self._launch(
                "cudaLaunchKernel",
                MAIN,
                self._kernel_name("unrolled_elementwise_kernel"),
                external,
                self._random.randint(1500, 9000),
            )
        for event in reversed(opened):
            event.end = self._pass(MAIN, 200, 900)
        for event in reversed(frames):
            event.end = self._pass(MAIN, 100, 500)
        self._backward.append((kind, sequence, flow))

    def _backward_of(self, kind: str, sequence: int, flow: int) -> None:
        node = {
            "Linear": "AddmmBackward0",
            "LayerNorm": "NativeLayerNormBackward0",
            "Attention": "ScaledDotProductFlashAttentionBackward0",
            "Dropout": "NativeDropoutBackward0",
            "GELU": "GeluBackward0",
        }[kind]
        start = self._pass(AUTOGRAD)
        self._operator(f"autograd::engine::evaluate_function: {node}", AUTOGRAD, start, 0, sequence=sequence)
        outer = self.operators[-1]
        at = self._pass(AUTOGRAD, 300, 1200)
        external = self._operator(node, AUTOGRAD, at, 0, sequence=sequence)
        inner = self.operators[-1]
        self._fwdbwd("f", AUTOGRAD, at, flow)
        for name, stem in (
            (("aten::mm", "gemm"), ("aten::sum", "reduce_kernel"))
            if kind == "Linear"
            else (("aten::mul", "elementwise_kernel"),)
        ):
            at = self._pass(AUTOGRAD, 300, 1200)
            external = self._operator(name, AUTOGRAD, at, 0)
            operator = self.operators[-1]
            self._allocation(AUTOGRAD, device=True)
            self._launch(
                "cudaLaunchKernel",
                AUTOGRAD,
                self._kernel_name(stem),
                external,
                self._random.randint(2000, 60000),
            )
            operator.end = self._pass(AUTOGRAD, 200, 900)
        inner.end = self._pass(AUTOGRAD, 200, 900)
        outer.end = self._pass(AUTOGRAD, 200, 900)

    def _reduce(self, external: int) -> None:
        for bucket in range(3):
            start = self._pass(AUTOGRAD)
            self._operator("nccl:all_reduce", AUTOGRAD, start, 0, category="user_annotation")
            annotation = self.operators[-1]
            self._launch(
                "cudaLaunchKernelExC",
                AUTOGRAD,
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                external,
                self._random.randint(200000, 900000),
                stream=COMMUNICATION,
                extra=f', "Collective name": "allreduce", "In msg nelems": {6637568 + bucket}, '
                f'"Out msg nelems": {6637568 + bucket}, "Group size": 8, "dtype": "BFloat16", '
                '"Process Group Name": "0", "Process Group Ranks": [0, 1, 2, 3, 4, 5, 6, 7], '
                '"Comms Id": 10159970886766084423',
            )
            annotation.end = self._pass(AUTOGRAD, 200, 900)

    def _optimize(self, root: int) -> None:
        start = self._pass(MAIN)
        self._frame("torch/optim/adamw.py(210): step", MAIN, start, 0, root)
        frame = self.frames[-1] if self._stack else None
        at = self._pass(MAIN, 300, 900)
        self._operator("Optimizer.step#AdamW.step", MAIN, at, 0, category="user_annotation")
        annotation = self.operators[-1]
        for name in (
            "aten::_foreach_add_",
            "aten::_foreach_mul_",
            "aten::_foreach_lerp_",
            "aten::_foreach_addcmul_",
            "aten::_foreach_sqrt",
            "aten::_foreach_div_",
            "aten::_foreach_addcdiv_",
        ) * 3:
            at = self._pass(MAIN, 300, 900)
            external = self._operator(name, MAIN, at, 0)
            operator = self.operators[-1]
            self._launch(
                "cudaLaunchKernel",
                MAIN,
                self._kernel_name("multi_tensor_apply_kernel"),
                external,
                self._random.randint(4000, 40000),
            )
            operator.end = self._pass(MAIN, 200, 900)
        annotation.end = self._pass(MAIN, 200, 900)
        at = self._pass(MAIN, 300, 900)
        external = self._operator("aten::copy_", MAIN, at, 0)
        operator = self.operators[-1]
        self._launch(
            "cudaMemcpyAsync", MAIN, "Memcpy DtoH (Device -> Pinned)", external, 3100, category="gpu_memcpy"
        )
        self._launch("cudaMemsetAsync", MAIN, "Memset (Device)", external, 1200, category="gpu_memset")
        operator.end = self._pass(MAIN, 200, 900)
        if frame is not None:
            frame.end = self._pass(MAIN, 200, 900)
        self._runtime("cudaDeviceSynchronize", MAIN, external)
