"""Made-up traces for the tests of timelines and reports; every one says so in its ``meta``."""

from __future__ import annotations

import numpy as np

from torchtrt_viz.model import schema
from torchtrt_viz.model.args import MappingArgs
from torchtrt_viz.trace import Trace

HOSTILE = (
    '<img src=x onerror="window.hacked=1">',
    "</script><script>window.hacked=1</script>",
    "'\"&<b>bold</b>",
    "a\x00b\n\u202e",
)

_BLOCK = (
    ("aten::layer_norm", ("void layer_norm_kernel<float>(int, float)",)),
    ("aten::linear", ("ampere_sgemm_128x64_tn",)),
    ("aten::scaled_dot_product_attention", ("flash_fwd_kernel<Flash_fwd_traits<64>>", "reduce_kernel<512>")),
    ("aten::linear", ("ampere_sgemm_128x64_tn",)),
    ("aten::add", ("vectorized_elementwise_kernel<4, Add>",)),
    ("aten::linear", ("ampere_sgemm_256x128_nn",)),
    ("aten::gelu", ("vectorized_elementwise_kernel<4, Gelu>",)),
    ("aten::linear", ("ampere_sgemm_128x128_nn",)),
    ("aten::add", ("vectorized_elementwise_kernel<4, Add>",)),
)


class _Builder:
    def __init__(self) -> None:
        self.rows: list[tuple] = []
        self.flows: list[tuple[int, int, int]] = []
        self.args: dict[int, dict] = {}

    def span(self, name, kind, domain, track, start, dur, **more) -> int:
        self.rows.append((name, kind, domain, track, int(start), int(dur), more))
        return len(self.rows) - 1


def model_trace(steps: int = 4, blocks: int = 6, seed: int = 3, hostile: bool = False) -> Trace:
    """A transformer-like loop: step > block > operator > launch on a thread, kernels on two streams.

    It also has a data-loading thread, an engine with phases and layers, aggregates, counters and instants.
    """
    rng = np.random.default_rng(seed)
    b = _Builder()
    main, loader, engine, stream, copies = range(5)
    clock = 0.0
    gpu = 0.0
    correlation = 0
    names = iter(HOSTILE * 50) if hostile else None
    for step in range(steps):
        begin = clock
        clock += 4_000
        step_row = b.span(f"ProfilerStep#{step}", "step", "host", main, begin, 0, iteration=step)
        b.span(
            "DataLoader.__next__", "python", "host", loader, begin - 30_000, 65_000 * rng.uniform(0.7, 1.3)
        )
        copy_at = clock + 6_000
        gpu = max(gpu, copy_at)
        b.span("Memcpy HtoD (Pinned -> Device)", "memcpy", "gpu", copies, gpu, 22_000, iteration=step)
        for block in range(blocks):
            block_begin = clock
            clock += 900
            row_block = b.span(f"TransformerBlock_{block}", "annotation", "host", main, block_begin, 0)
            for op, kernels in _BLOCK:
                op_begin = clock
                clock += 1_200 * rng.uniform(0.6, 1.6)
                title = next(names) if names is not None and rng.random() < 0.4 else op
                row_op = b.span(title, "operator", "host", main, op_begin, 0, iteration=step)
                b.args[row_op] = {"Input Dims": [[8, 512, 768], [768, 768]], "Input type": ["float", "float"]}
                for kernel in kernels:
                    launch = clock
                    cost = 2_600 * rng.uniform(0.8, 1.8)
                    correlation += 1
                    row_launch = b.span(
                        "cudaLaunchKernel", "runtime", "host", main, launch, cost, correlation=correlation
                    )
                    clock += cost + 300
                    took = (24_000 if "gemm" in kernel else 9_000) * rng.uniform(0.5, 1.5)
                    gpu = max(gpu + 800, launch + cost + 3_000)
                    row_kernel = b.span(
                        kernel, "kernel", "gpu", stream, gpu, took, correlation=correlation, iteration=step
                    )
                    b.args[row_kernel] = {
                        "grid": [96, 4, 1],
                        "block": [128, 1, 1],
                        "registers per thread": 96,
                    }
                    b.flows.append((row_launch, row_kernel, correlation))
                    if rng.random() < 0.08:
                        b.span("nccl:all_reduce", "communication", "gpu", copies, gpu + took * 0.4, took * 2)
                    gpu += took
                _close(b, row_op, clock)
                clock += 500
            _close(b, row_block, clock)
        sync = clock
        clock = max(clock + 2_000, gpu)
        b.span("cudaStreamSynchronize", "runtime", "host", main, sync, clock - sync)
        call = b.span(
            "torchtrt.delegate", "delegate", "host", engine, sync, 0, run_id="head_0", iteration=step
        )
        at = sync + 500
        for phase, share in (
            ("torchtrt.input_binding", 2_000),
            ("torchtrt.enqueue_host", 40_000),
            ("torchtrt.output_staging", 4_000),
            ("torchtrt.synchronize", 9_000),
        ):
            took = share * rng.uniform(0.8, 1.2)
            b.span(phase, "phase", "host", engine, at, took, run_id="head_0", iteration=step)
            if phase.endswith("enqueue_host"):
                for layer in range(6):
                    b.span(f"conv_{layer} + relu_{layer}", "layer", "host", engine, at + layer * took / 6,
                           took / 6 - 80, run_id="head_0", iteration=step)  # fmt: skip
            at += took + 200
        _close(b, call, at)
        clock = max(clock, at) + 12_000
        _close(b, step_row, clock)
        clock += 9_000
    for layer in range(5):
        b.span(f"layer_sum_{layer}", "layer", "gpu", engine, -1, 40_000 * (layer + 1), aggregate=True)
    return _finish(b, clock, rng)


def _close(b: _Builder, row: int, end: float) -> None:
    name, kind, domain, track, start, _, more = b.rows[row]
    b.rows[row] = (name, kind, domain, track, start, int(end) - start, more)


def _finish(b: _Builder, clock: float, rng) -> Trace:
    import pandas as pd

    from torchtrt_viz._native import native

    names, kinds, domains, tracks, starts, durs, more = zip(*b.rows, strict=True)
    track = np.array(tracks, np.int32)
    start, dur = np.array(starts, np.int64), np.array(durs, np.int64)
    aggregate = np.array([m.get("aggregate", False) for m in more])
    parent, depth, self_ns, _ = native("columns").nest(
        np.where(aggregate, 5, track).astype(np.int32), start, dur
    )
    start_column = pd.array(start, dtype="Int64")
    start_column[aggregate] = pd.NA
    spans = schema.SPANS.frame(
        {
            "name": names,
            "kind": kinds,
            "domain": domains,
            "timing": ["aggregate" if a else "measured" for a in aggregate],
            "track": track,
            "start_ns": start_column,
            "dur_ns": dur,
            "self_ns": self_ns,
            "depth": np.where(aggregate, 0, depth).astype(np.int32),
            "parent": np.where(aggregate, -1, parent),
            "correlation": np.array([m.get("correlation", -1) for m in more], np.int64),
            "iteration": np.array([m.get("iteration", -1) for m in more], np.int32),
            "rank": 0,
            "run_id": [m.get("run_id") for m in more],
        }
    )
    points = np.arange(0, clock, 15_000, dtype=np.int64)
    marks = np.arange(20_000, clock, 90_000, dtype=np.int64)
    return Trace(
        spans=spans,
        tracks=schema.TRACKS.frame(
            {
                "label": np.array(
                    ["thread 4242 (main)", "thread 4250 (loader)", "engine head_0", "stream 7", "stream 20"],
                    dtype=object,
                ),
                "type": ["thread", "thread", "engine", "stream", "stream"],
                "domain": ["host", "host", "host", "gpu", "gpu"],
                "process": np.array(["4242"] * 5, dtype=object),
                "thread": np.array(["4242", "4250", None, "7", "20"], dtype=object),
                "device": np.array([None, None, None, 0, 0], dtype=object),
                "rank": 0,
                "sort_index": np.arange(5),
            }
        ),
        instants=schema.INSTANTS.frame(
            {
                "name": ["[memory]"] * len(marks),
                "kind": "memory",
                "track": np.zeros(len(marks), np.int32),
                "ts_ns": marks,
                "state": ["unfinished" if i % 5 == 4 else "instant" for i in range(len(marks))],
            }
        ),
        counters=schema.COUNTERS.frame(
            {
                "name": ["allocated"] * len(points),
                "track": np.zeros(len(points), np.int32),
                "ts_ns": points,
                "value": 1e9 + np.cumsum(rng.normal(0, 3e7, len(points))),
                "unit": "bytes",
            }
        ),
        flows=schema.FLOWS.frame(
            {
                "name": ["ac2g"] * len(b.flows),
                "source": np.array([f[0] for f in b.flows], np.int64),
                "target": np.array([f[1] for f in b.flows], np.int64),
                "id": np.array([f[2] for f in b.flows], np.int64),
            }
        ),
        meta={"format": "synthetic", "synthetic": True, "clock": "made up, from 0", "base_ns": None},
        args=MappingArgs(b.args),
    )


def wide_trace(spans: int, tracks: int = 64, seed: int = 0) -> Trace:
    """``spans`` spans on ``tracks`` tracks, a quarter of them GPU streams; host spans nest eightfold."""
    track, start, dur, name, gpu = wide_columns(spans, tracks, seed)
    from torchtrt_viz._native import native

    parent, depth, self_ns, _ = native("columns").nest(track, start, dur)
    import pandas as pd

    n = len(track)
    on_gpu = gpu[track]
    return Trace(
        spans=schema.SPANS.frame(
            {
                "name": pd.Categorical.from_codes(name, [f"operation_{i}" for i in range(2000)]),
                "kind": np.where(on_gpu, schema.KINDS.index("kernel"), schema.KINDS.index("operator")).astype(
                    np.int8
                ),
                "domain": on_gpu.astype(np.int8),
                "track": track,
                "start_ns": start,
                "dur_ns": dur,
                "self_ns": self_ns,
                "depth": depth,
                "parent": parent,
                "rank": np.zeros(n, np.int32),
            }
        ),
        tracks=schema.TRACKS.frame(
            {
                "label": np.array(
                    [f"stream {i}" if gpu[i] else f"thread {i}" for i in range(tracks)], dtype=object
                ),
                "type": ["stream" if g else "thread" for g in gpu],
                "domain": ["gpu" if g else "host" for g in gpu],
                "process": np.array([str(100 + i // 16) for i in range(tracks)], dtype=object),
                "rank": 0,
            }
        ),
        meta={"format": "synthetic", "synthetic": True, "clock": "made up, from 0"},
    )


def wide_columns(spans: int, tracks: int, seed: int):
    """Columns of `wide_trace`, in the order in which spans end, as a profiler writes them."""
    rng = np.random.default_rng(seed)
    gpu = np.arange(tracks) >= tracks - max(1, tracks // 4)
    per = max(8, spans // tracks)
    made = [_stream(rng, per) if gpu[t] else _thread(rng, per) for t in range(tracks)]
    track = np.repeat(np.arange(tracks, dtype=np.int32), [len(s) for s, _ in made])
    start = np.concatenate([s for s, _ in made])
    dur = np.concatenate([d for _, d in made])
    name = (rng.zipf(1.3, len(track)) % 2000).astype(np.int16)
    order = np.argsort(start + dur, kind="stable")
    return track[order], start[order], dur[order], name[order], gpu


def _stream(rng, n):
    dur = rng.lognormal(7.5, 1.2, n)
    start = np.cumsum(rng.exponential(600, n) + np.r_[0, dur[:-1]])
    start -= (rng.random(n) < 0.01) * np.minimum(300, dur)  # a few kernels overlap
    return np.sort(start.astype(np.int64)), dur.astype(np.int64)


def _thread(rng, n):
    leaves = n * 7 // 8
    dur = (rng.lognormal(7, 1.3, leaves) + 1).astype(np.int64)
    start = np.cumsum(rng.exponential(300, leaves) + 2 + np.r_[0, dur[:-1]]).astype(np.int64)
    starts, ends = [start], [start + dur]
    while len(starts[-1]) > 8:
        first = np.arange(0, len(starts[-1]), 8)
        last = np.minimum(first + 7, len(starts[-1]) - 1)
        starts.append(starts[-1][first] - 1)
        ends.append(ends[-1][last] + 1)
    s, e = np.concatenate(starts), np.concatenate(ends)
    return s, e - s
