"""The engine: starts the workers, hands requests to them, and coordinates their profiles."""

from __future__ import annotations

import itertools
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchtrt_viz.errors import CaptureError
from torchtrt_viz.examples.serving_pd.model import ModelSize
from torchtrt_viz.examples.serving_pd.worker import WorkerSpec, run_worker
from torchtrt_viz.serving.contract.settings import Settings
from torchtrt_viz.serving.control.pipes import PipeHub

__all__ = ["PDEngine", "Request"]

_START_S = 120.0


@dataclass
class Request:
    """A request and how far it is.

    Attributes
    ----------
    state
        prefilling, transferring, decoding, finished or failed.
    tokens
        What was generated.
    """

    request: str
    transfer: str
    prompt: list[int]
    max_tokens: int
    prefill: str
    decode: str
    tag: int
    state: str = "prefilling"
    tokens: list[int] = field(default_factory=list)


class PDEngine:
    """A prefill/decode engine; use it as a context manager, on one thread.

    Its profiles are driven through ``engine.coordinator`` (a :class:`ProfileCoordinator`).

    Parameters
    ----------
    prefill, decode
        Numbers of workers.
    settings
        Of profiling; annotations are on in this engine.
    """

    def __init__(
        self,
        prefill: int = 2,
        decode: int = 2,
        *,
        size: ModelSize | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.settings = settings or Settings(annotations=True)
        self.requests: dict[str, Request] = {}
        self.lost: list[str] = []
        self._numbers = itertools.count()
        self._folder = Path(tempfile.mkdtemp(prefix="serving_pd-"))
        names = [f"P{i}" for i in range(prefill)] + [f"D{i}" for i in range(decode)]
        self._prefill, self._decode = names[:prefill], names[prefill:]
        self._ranks = {name: rank for rank, name in enumerate(names)}
        # Workers are forked from a small process that has imported torch once, and nothing else.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torchtrt_viz.examples.serving_pd.preload"])
        self.processes: dict[str, Any] = {}
        pipes = {}
        for name, rank in self._ranks.items():
            spec = WorkerSpec(
                name=name,
                role="prefill" if name in self._prefill else "decode",
                rank=rank,
                world_size=len(names),
                rendezvous=f"file://{self._folder / 'rendezvous'}",
                size=size or ModelSize(),
                settings=self.settings,
            )
            ours, theirs = context.Pipe()
            process = context.Process(target=run_worker, args=(spec, theirs), name=name, daemon=True)
            process.start()
            theirs.close()
            self.processes[name], pipes[name] = process, ours
        self._ready: set[str] = set()
        self.hub = PipeHub(pipes, on_message=self._message, on_lost=self._worker_lost, settings=self.settings)
        self.coordinator = self.hub.coordinator
        self.coordinator.attach()

    def __enter__(self) -> PDEngine:
        try:
            self._wait_until(lambda: len(self._ready) == len(self._ranks), _START_S)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- requests ----------------------------------------------------------------------------------------

    def submit(self, prompt: Sequence[int], max_tokens: int = 8) -> Request:
        """Hand a request to a prefill worker; it is served by :meth:`pump`."""
        number = next(self._numbers)
        job = Request(
            request=f"req-{number}",
            transfer=f"xfer-{number}",
            prompt=list(prompt),
            max_tokens=max_tokens,
            prefill=self._prefill[number % len(self._prefill)],
            decode=self._decode[number % len(self._decode)],
            tag=number,
        )
        self.requests[job.request] = job
        self.hub.send(
            job.prefill,
            {
                "type": "prefill",
                "request": job.request,
                "transfer": job.transfer,
                "prompt": job.prompt,
                "to": self._ranks[job.decode],
                "tag": job.tag,
            },
        )
        return job

    def pump(self, timeout: float = 0.0) -> bool:
        """Serve for a moment: receive and answer what has come."""
        return self.hub.pump(timeout)

    def finish(self, timeout: float = 60.0) -> list[Request]:
        """Serve until every request is finished; return them.

        Raises
        ------
        CaptureError
            When that takes longer than ``timeout``, or a worker is lost.
        """
        self._wait_until(lambda: all(r.state == "finished" for r in self.requests.values()), timeout)
        return list(self.requests.values())

    def _wait_until(self, done: Any, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not done():
            self.pump(0.02)
            if self.lost:
                raise CaptureError(f"workers were lost: {', '.join(self.lost)}")
            if time.monotonic() > deadline:
                raise CaptureError(f"the workers took more than {timeout:g} s")

    def _message(self, worker: str, received: dict[str, Any]) -> None:
        """Route a worker's message by what it is about."""
        kind = received["type"]
        if kind == "ready":
            self._ready.add(worker)
            return
        job = self.requests[received["request"]]
        if kind == "prefilled":
            job.state = "transferring"
            self.hub.send(
                job.decode,
                {
                    "type": "activate",
                    "request": job.request,
                    "transfer": job.transfer,
                    "from": self._ranks[job.prefill],
                    "tag": job.tag,
                    "shape": received["shape"],
                    "token": received["token"],
                    "max_tokens": job.max_tokens,
                },
            )
        elif kind == "received":
            job.state = "decoding"
            self.hub.send(job.prefill, {"type": "released", "request": job.request, "transfer": job.transfer})
        elif kind == "finished":
            job.state, job.tokens = "finished", received["tokens"]

    def _worker_lost(self, worker: str) -> None:
        self.lost.append(worker)
        for job in self.requests.values():
            if worker in (job.prefill, job.decode) and job.state != "finished":
                job.state = "failed"

    # -- the end -----------------------------------------------------------------------------------------

    def close(self, timeout: float = 120.0) -> None:
        """Stop the workers; each finishes its archives first."""
        for name in self.hub.alive:
            try:
                self.hub.send(name, {"type": "stop"})
            except OSError:
                continue
        deadline = time.monotonic() + timeout
        while self.hub.alive and time.monotonic() < deadline:
            self.hub.pump(0.05)
        for process in self.processes.values():
            process.join(max(0.1, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        shutil.rmtree(self._folder, ignore_errors=True)
