"""Prefill and decode workers: what an engine adds to be profiled is marked with ``# profiling``."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from torchtrt_viz.examples.serving_pd.model import KVCache, ModelSize, TinyTransformer
from torchtrt_viz.serving.contract.identity import RankIdentity
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.control.pipes import PipeWorker
from torchtrt_viz.serving.rank.annotations import unrecorded
from torchtrt_viz.serving.rank.profiler import RankProfiler

__all__ = ["WorkerSpec", "run_worker"]

_IDLE_S = 0.005
_DRAIN_S = 120.0


@dataclass(frozen=True)
class WorkerSpec:
    """Everything a worker process is told when it starts.

    Attributes
    ----------
    name, role
        As "P0" and "prefill".
    rank, world_size
        Within the process group over which keys and values travel.
    rendezvous
        Where the process group meets, as torch.distributed takes it.
    """

    name: str
    role: str
    rank: int
    world_size: int
    rendezvous: str
    size: ModelSize = field(default_factory=ModelSize)
    settings: Settings = field(default_factory=Settings)


def run_worker(spec: WorkerSpec, pipe: Any) -> None:
    """Run a worker until it is told to stop, or its engine is gone."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=spec.rendezvous, rank=spec.rank, world_size=spec.world_size)
    worker = (_Prefill if spec.role == "prefill" else _Decode)(spec, pipe)
    try:
        worker.run()
    finally:
        worker.pipe.close(_DRAIN_S)  # profiling: stop, and finish the archives
        pipe.close()


class _Worker:
    """The loop that both kinds share."""

    def __init__(self, spec: WorkerSpec, pipe: Any) -> None:
        self.spec = spec
        self.model = TinyTransformer(spec.size)
        self.running = True
        identity = RankIdentity.here(role=spec.role, instance=spec.name)
        self.profiler = RankProfiler(identity, spec.settings)  # profiling
        self.profiler.attach()  # profiling
        self.pipe = PipeWorker(pipe, self.profiler)  # profiling: the engine's own messages go through it too
        self.pipe.send({"type": "ready"})

    def run(self) -> None:
        while self.running:
            self.receive()
            with self.profiler.engine_step(self.spec.role) as step:  # profiling
                step.worked = self.step()

    def receive(self) -> None:
        """Take every message that has come; wait a little when there is no work."""
        timeout = 0.0 if self.has_work() else _IDLE_S
        while self.running and (received := self.pipe.receive(timeout)) is not None:
            self.message(received)
            timeout = 0.0
        if self.pipe.closed:
            self.running = False

    def has_work(self) -> bool:
        raise NotImplementedError

    def step(self) -> bool:
        """Do one step; False when there was nothing to do."""
        raise NotImplementedError

    def message(self, received: dict[str, Any]) -> None:
        if received["type"] == "stop":
            self.running = False
        elif received["type"] == "fail":
            self.fail = received["text"]

    fail: str | None = None

    def fail_if_told(self) -> None:
        """Raise what a test asked for, in the middle of a step."""
        if self.fail is not None:
            text, self.fail = self.fail, None
            raise RuntimeError(text)


class _Prefill(_Worker):
    """Runs prompts and sends their keys and values on."""

    def __init__(self, spec: WorkerSpec, pipe: Any) -> None:
        self.waiting: deque[dict[str, Any]] = deque()
        self.sent: dict[str, tuple[Any, torch.Tensor]] = {}
        super().__init__(spec, pipe)

    def has_work(self) -> bool:
        return bool(self.waiting)

    def message(self, received: dict[str, Any]) -> None:
        if received["type"] == "prefill":
            self.profiler.request_begins(received["request"])  # profiling
            self.waiting.append(received)
        elif received["type"] == "released":
            work, _ = self.sent.pop(received["transfer"])
            work.wait()
            self.profiler.request_ends(received["request"])  # profiling
        else:
            super().message(received)

    def step(self) -> bool:
        if not self.waiting:
            return False
        annotate = self.profiler.annotate
        with annotate("schedule"):
            job = self.waiting.popleft()
        ids = {"request": job["request"], "transfer": job["transfer"]}
        prompt = torch.tensor(job["prompt"])
        with annotate("prefill", **ids, tokens=len(prompt)):
            self.fail_if_told()
            logits, kv = self.model.prefill(prompt)
        with annotate("sampling", request=job["request"]):
            token = int(logits.argmax())
        kv = kv.contiguous()
        with annotate("kv_send", **ids), unrecorded():
            work = dist.isend(kv, dst=job["to"], tag=job["tag"])
        self.sent[job["transfer"]] = (work, kv)
        self.pipe.send({"type": "prefilled", **ids, "token": token, "shape": list(kv.shape)})
        return True


class _Decode(_Worker):
    """Receives keys and values, and generates token by token for all its requests together."""

    def __init__(self, spec: WorkerSpec, pipe: Any) -> None:
        self.cache = KVCache(spec.size)
        self.free = list(range(spec.size.slots))
        self.arrived: deque[dict[str, Any]] = deque()
        self.active: dict[str, dict[str, Any]] = {}
        super().__init__(spec, pipe)

    def has_work(self) -> bool:
        return bool(self.active) or bool(self.arrived)

    def message(self, received: dict[str, Any]) -> None:
        if received["type"] == "activate":
            self.profiler.request_begins(received["request"])  # profiling
            self.arrived.append(received)
        else:
            super().message(received)

    def step(self) -> bool:
        worked = self._take_one()
        return self._decode() or worked

    def _take_one(self) -> bool:
        """Receive one transfer that is on its way, if there is a slot for it."""
        if not self.arrived or not self.free:
            return False
        annotate = self.profiler.annotate
        job = self.arrived.popleft()
        ids = {"request": job["request"], "transfer": job["transfer"]}
        with annotate("kv_recv", **ids):
            kv = torch.empty(job["shape"])
            dist.recv(kv, src=job["from"], tag=job["tag"])
        with annotate("activate", **ids):
            slot = self.free.pop()
            self.cache.put(slot, kv)
            self.active[job["request"]] = {**job, "slot": slot, "tokens": [job["token"]]}
        self.pipe.send({"type": "received", **ids})
        return True

    def _decode(self) -> bool:
        if not self.active:
            return False
        annotate = self.profiler.annotate
        with annotate("schedule"):
            jobs = list(self.active.values())
            names = [job["request"] for job in jobs]
            slots = torch.tensor([job["slot"] for job in jobs])
            tokens = torch.tensor([job["tokens"][-1] for job in jobs])
        with annotate("decode", request=names):
            self.fail_if_told()
            logits = self.model.decode(tokens, slots, self.cache)
        with annotate("sampling", request=names):
            chosen = logits.argmax(-1).tolist()
        for job, token in zip(jobs, chosen, strict=True):
            job["tokens"].append(token)
            if len(job["tokens"]) >= job["max_tokens"]:
                self._finish(job)
        return True

    def _finish(self, job: dict[str, Any]) -> None:
        del self.active[job["request"]]
        self.free.append(job["slot"])
        self.profiler.request_ends(job["request"])  # profiling
        self.pipe.send({"type": "finished", "request": job["request"], "tokens": job["tokens"]})
