"""A serving engine with prefill (P) and decode (D) workers, on the CPU, over gloo.

A small transformer answers requests: a P worker runs the prompt, sends the keys and values to a D worker,
and that one generates the tokens. It is real in everything that profiling has to deal with: processes,
pipes with the engine's own messages, KV transfers, continuous batching, idle workers. The model's weights
are random.

- `model`: the transformer and its cache of keys and values;
- `worker`: P and D workers, each with a `RankProfiler` and a `ProfileWorker`;
- `engine`: the coordinator, with a `PipeHub`;
- `demo`: one function that runs it all and records it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtrt_viz.examples.serving_pd.demo import run_demo
    from torchtrt_viz.examples.serving_pd.engine import PDEngine

__all__ = ["PDEngine", "run_demo"]

_HOME = {"PDEngine": "engine", "run_demo": "demo"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"torchtrt_viz.examples.serving_pd.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
