"""A stand-in for the parts of vLLM 0.32 that the plugin touches, after its published interface."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any


class WorkerProfiler:
    """Delays and limits, as vLLM counts them."""

    def __init__(self, config: Any) -> None:
        self._delay_iters, self._max_iters = config.delay_iterations, config.max_iterations
        self._seen = self._recorded = 0
        self._active = self._running = False

    def start(self) -> None:
        if self._active:
            return
        self._active = True
        if not self._delay_iters:
            self._start()
            self._running = True

    def step(self) -> None:
        if not self._active:
            return
        self._seen += 1
        if not self._running and self._seen == self._delay_iters:
            self._start()
            self._running = True
        if self._running and self._profiler_step():
            self._recorded += 1
        if 0 < self._max_iters < self._recorded and self._running:
            self.stop()

    def stop(self) -> None:
        if self._active:
            self._active, self._seen, self._recorded = False, 0, 0
            if self._running:
                self._stop()
                self._running = False

    def shutdown(self) -> None:
        if self._running:
            self.stop()


class TorchProfilerWrapper(WorkerProfiler):
    """What vLLM's constructor leaves; its own recording is not needed."""

    def __init__(self, config: Any, worker_name: str, local_rank: int = 0) -> None:
        import torch

        super().__init__(config)
        self.local_rank = local_rank
        self.profiler_config = config
        self._torch_profiler_trace_dir = config.torch_profiler_dir
        self._worker_name = worker_name
        self._uses_schedule = config.warmup_iterations > 0 or config.wait_iterations > 0
        self._profiler_kwargs = {
            "activities": [torch.profiler.ProfilerActivity.CPU],
            "record_shapes": config.torch_profiler_record_shapes,
            "profile_memory": config.torch_profiler_with_memory,
            "with_stack": config.torch_profiler_with_stack,
            "with_flops": config.torch_profiler_with_flops,
        }

    def set_output_name(self, worker_name: str) -> None:
        self._worker_name = worker_name

    def _start(self) -> None:
        raise AssertionError("vLLM's own recording was started")

    def _stop(self) -> None:
        raise AssertionError("vLLM's own recording was stopped")

    def _profiler_step(self) -> bool:
        return True

    def annotate_context_manager(self, name: str) -> Any:
        return nullcontext()


class LLMEngine:
    """Passes the prefix on, as the one of vLLM does to its workers."""

    def __init__(self, worker: TorchProfilerWrapper) -> None:
        self.worker = worker

    def start_profile(self, profile_prefix: str | None = None) -> None:
        name = "dp0_pp0_tp0_dcp0_ep0_rank0"
        self.worker.set_output_name(f"{profile_prefix}_{name}" if profile_prefix else name)
        self.worker.start()

    def stop_profile(self) -> None:
        self.worker.stop()


class AsyncLLM(LLMEngine):
    """The same for servers."""

    async def start_profile(self, profile_prefix: str | None = None, **more: Any) -> None:  # type: ignore[override]
        LLMEngine.start_profile(self, profile_prefix)


def config(folder: Any, **more: Any) -> SimpleNamespace:
    """Return the defaults of vLLM's ``ProfilerConfig``."""
    return SimpleNamespace(
        **{
            "torch_profiler_dir": str(folder),
            "torch_profiler_with_stack": True,
            "torch_profiler_record_shapes": False,
            "torch_profiler_with_memory": False,
            "torch_profiler_with_flops": False,
            "delay_iterations": 0,
            "max_iterations": 0,
            "wait_iterations": 0,
            "warmup_iterations": 0,
            "active_iterations": 5,
            **more,
        }
    )


def modules() -> dict[str, ModuleType]:
    """Return the modules under vLLM's names, with fresh classes."""
    out = {}
    for name in ("vllm", "vllm.profiler", "vllm.profiler.wrapper", "vllm.v1", "vllm.v1.engine"):
        out[name] = ModuleType(name)
    for name, kinds in {
        "vllm.profiler.wrapper": (TorchProfilerWrapper,),
        "vllm.v1.engine.llm_engine": (LLMEngine,),
        "vllm.v1.engine.async_llm": (AsyncLLM,),
    }.items():
        module = out.setdefault(name, ModuleType(name))
        for kind in kinds:
            setattr(module, kind.__name__, type(kind.__name__, (kind,), {}))
    out["vllm.profiler"].wrapper = out["vllm.profiler.wrapper"]  # type: ignore[attr-defined]
    return out


def install(monkeypatch: Any) -> dict[str, ModuleType]:
    """Put the modules where vLLM's would be."""
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made
