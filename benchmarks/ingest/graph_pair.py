"""Make the traces of an engine that replays graphs, with the traces of the graphs' capture beside them.

    python benchmarks/ingest/graph_pair.py FOLDER [--layers 12] [--steps 40] [--sizes 8,16,32]

writes ``FOLDER/engine.pt.trace.json`` and ``FOLDER/capture_traces/bs_N_rank0.json.gz`` as SGLang does: a
decoder of so many layers, captured once for each batch size, and so many decoding steps, each one launch of
the graph of its size. Both say of themselves that they are synthetic.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["generate"]

PID, THREAD, DEVICE, STREAM = 4242, 4242, 0, 7
WIDTH, HEADS, EXPERTS = 2048, 16, 8
BASE_NS = 1_790_857_026_000_000_000


def decoder(layers: int, batch: int) -> Iterator[tuple[str, str, list[list[int]], str, float]]:
    """Yield the calls of a forward: operator, module, input shapes, kernel, its duration in µs."""
    row = [batch, WIDTH]
    tile = 16 if batch <= 16 else 32
    for layer in range(layers):
        block = f"DecoderLayer_{layer}"
        yield "aten::rms_norm", block, [row, [WIDTH]], "rms_norm_kernel", 2.1
        yield "aten::addmm", block, [[3 * WIDTH], row, [WIDTH, 3 * WIDTH]], f"gemm_bf16_{tile}x128", 9.5
        yield "engine::rotary", block, [row, row], "rotary_kernel", 1.8
        heads = [batch, HEADS, WIDTH // HEADS]
        yield "engine::paged_attention", block, [heads, heads, heads], "paged_attention_kernel", 14.0
        yield "aten::addmm", block, [[WIDTH], row, [WIDTH, WIDTH]], f"gemm_bf16_{tile}x64", 4.2
        yield "aten::rms_norm", block, [row, [WIDTH]], "rms_norm_kernel", 2.1
        router = [batch, EXPERTS]
        yield "aten::mm", block, [row, [WIDTH, EXPERTS]], f"gemm_bf16_{tile}x64", 1.9
        yield "engine::moe_forward", block, [row, router], f"grouped_gemm_up_{tile}", 26.0
        yield "engine::moe_forward", block, [row, router], f"grouped_gemm_down_{tile}", 19.0
    yield "aten::mm", "LMHead_0", [row, [WIDTH, 32_000]], f"gemm_bf16_{tile}x256", 48.0


def _event(cat: str, name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
    where = {"pid": more.pop("pid", PID), "tid": more.pop("tid", THREAD)}
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        **where,
        "ts": round(ts, 3),
        "dur": round(dur, 3),
        "args": more,
    }


def _document(events: list[dict[str, Any]], name: str) -> bytes:
    header = {"schemaVersion": 1, "synthetic": 1, "record_shapes": 1, "with_stack": 1}
    rank = {"backend": "nccl", "rank": 0, "world_size": 1}
    document = {**header, "distributedInfo": rank, "baseTimeNanoseconds": BASE_NS, "displayTimeUnit": "ms"}
    return json.dumps({**document, "traceName": name, "traceEvents": events}).encode()


def _capture(layers: int, batch: int) -> list[dict[str, Any]]:
    """Return the events of one capture: each call with operator, module and source line; nothing runs."""
    at, number = 1000.0, 1
    events = [_event("cuda_runtime", "hipStreamBeginCapture", at, 1.0, correlation=number)]
    modules: dict[str, list[float]] = {}
    open_call: tuple[str, str, str] | None = None
    for operator, module, shapes, kernel, _ in decoder(layers, batch):
        number += 1
        call = (operator, module, str(shapes))
        if operator != "engine::moe_forward" or call != open_call:
            at += 12
            line = 40 + len(operator)
            events.append(_event("python_function", f"engine/layers.py({line}): forward", at, 11.0))
            events.append(
                _event(
                    "cpu_op",
                    operator,
                    at + 1,
                    9.0,
                    **{"Input Dims": shapes, "Input type": ["c10::BFloat16"] * 3},
                )
            )
            launch = at + 2
        else:
            launch = at + 6  # the second kernel of one operator
        open_call = call
        events.append(
            _event("cuda_runtime", "hipLaunchKernel", launch, 1.5, correlation=number, kernel=kernel)
        )
        begin, _ = modules.setdefault(module, [at - 0.5, at])
        modules[module] = [begin, at + 11.5]
    events.append(_event("cuda_runtime", "hipStreamEndCapture", at + 14, 1.0, correlation=number + 1))
    events += [_event("python_function", f"nn.Module: {name}", b, e - b) for name, (b, e) in modules.items()]
    events.append(_event("user_annotation", f"capture_{batch}_DECODE", 990.0, at - 960))
    return events


def _replay(layers: int, steps: int, sizes: Sequence[int], seed: int) -> list[dict[str, Any]]:
    """Return the events of the steps: one launch each, and its kernels on the device."""
    chance = np.random.default_rng(seed)
    events: list[dict[str, Any]] = []
    host = device = 1000.0
    for step in range(steps):
        size = int(chance.choice(sizes))
        smaller = max((one for one in sizes if one < size), default=0)
        batch = int(chance.integers(smaller + 1, size + 1))  # the smallest graph that serves it is launched
        correlation = 10 * step + 10
        copy = {"kind": "HtoD", "bytes": 4 * batch}
        events.append(_event("cpu_op", "aten::copy_", host + 3, 14.0, **{"Input Dims": [[batch], [batch]]}))
        events.append(_event("cuda_runtime", "hipMemcpyAsync", host + 6, 8.0, correlation=correlation))
        device = max(device, host + 16)
        place = {"pid": DEVICE, "tid": STREAM, "device": DEVICE, "stream": STREAM}
        events.append(
            _event(
                "gpu_memcpy",
                "Memcpy HtoD (Host -> Device)",
                device,
                2.0,
                correlation=correlation,
                **place,
                **copy,
            )
        )
        device += 4
        events.append(_event("cuda_runtime", "hipGraphLaunch", host + 25, 180.0, correlation=correlation + 1))
        device = max(device, host + 60)
        for _, _, _, kernel, usual in decoder(layers, size):
            dur = usual * (0.6 + size / 80) * float(chance.lognormal(0, 0.03))
            events.append(_event("kernel", kernel, device, dur, correlation=correlation + 1, **place))
            device += dur + 0.8
        end = max(host + 230, device)
        events.append(_event("user_annotation", f"step[DECODE bs={batch}]", host, end - host))
        host = end + 30
    return events


def generate(
    folder: Path, *, layers: int = 12, steps: int = 40, sizes: Sequence[int] = (8, 16, 32), seed: int = 1
) -> Path:
    """Write the traces; returns the folder."""
    captures = folder / "capture_traces"
    captures.mkdir(parents=True, exist_ok=True)
    for size in sizes:
        name = f"bs_{size}_rank0.json.gz"
        (captures / name).write_bytes(gzip.compress(_document(_capture(layers, size), name)))
    name = "engine.pt.trace.json"
    (folder / name).write_bytes(_document(_replay(layers, steps, sizes, seed), name))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument(
        "--sizes", type=lambda text: [int(size) for size in text.split(",")], default=[8, 16, 32]
    )
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    folder = generate(
        given.folder, layers=given.layers, steps=given.steps, sizes=given.sizes, seed=given.seed
    )
    print(folder)


if __name__ == "__main__":
    main()
