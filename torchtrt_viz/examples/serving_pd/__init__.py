"""A serving engine with prefill (P) and decode (D) workers, on the CPU, over gloo.

A small transformer answers requests: a P worker runs the prompt, sends the keys and values to a D worker,
and that one generates the tokens. It is real in everything that profiling has to deal with: processes,
pipes with the engine's own messages, KV transfers, continuous batching, idle workers. The model's weights
are random.

- `model`: the transformer and its cache of keys and values;
- `worker`: P and D workers, each with a `RankProfiler` and a `PipeWorker`;
- `engine`: the coordinator, with a `PipeHub`;
- `demo`: one function that runs it all and records it.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
