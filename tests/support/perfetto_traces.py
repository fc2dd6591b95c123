"""Perfetto traces of several sequences with most of what writers do."""

from __future__ import annotations

import random

from perfetto_gpu import context, counter_spec, counters, interned_gpu, specification, stage
from perfetto_messages import (
    BEGIN,
    COUNTER,
    END,
    INSTANT,
    annotation,
    compressed,
    counter,
    event,
    field,
    fixed64,
    interned,
    mark,
    message,
    packet,
    process,
    snapshot,
    thread,
    track,
)


def some_trace(seed: int) -> bytes:
    """A trace of several sequences with most of what writers do, in a random order of features."""
    random.seed(seed)
    out = [
        process(1, 42, "model"),
        thread(2, 1, 42, 43, "main"),
        thread(3, 1, 42, 44, "worker"),
        track(4, "GPU lane"),
        counter(5, "memory", unit=3),
        counter(6, "steps", unit=2, incremental=True, multiplier=2),
        snapshot({6: 1_000_000, 3: 5_000_000, 1: 1_700_000_000_000_000_000}),
        interned(
            {1: {1: "cpu_op", 2: "kernel"}, 2: {i: f"op{i}" for i in range(1, 6)}, 3: {1: "size"}}, sequence=1
        ),
        interned({1: {1: "runtime"}, 2: {1: "launch"}}, sequence=2),
        packet({59: message({11: message({11: 3, 31: [6]})}), 13: 2}, 2),
    ]
    now = 1_000_000
    open_slices = 0
    for i in range(120):
        now += random.randrange(1, 2_000)
        choice = random.random()
        if choice < 0.4:
            extra = annotation(1, random.choice([i, i / 4, f"text {i}", [1, 2], {"k": True}]))
            if i % 5 == 0:
                extra += fixed64(47, i % 20 + 1)
            if i % 7 == 0:
                extra += fixed64(48, (i - 7) % 20 + 1)
            out.append(
                mark(now, event(BEGIN, random.randrange(1, 6), track=2, category=1, extra=extra), flags=2)
            )
            open_slices += 1
        elif choice < 0.6 and open_slices:
            out.append(mark(now, event(END, track=2), flags=2))
            open_slices -= 1
        elif choice < 0.7:
            out.append(mark(now, event(COUNTER, track=5, extra=field(30, random.randrange(10_000))), flags=2))
        elif choice < 0.8:
            # the other sequence, on another clock, with a value of an extra counter
            body = event(BEGIN, 1, category=1, extra=field(12, random.randrange(100)))
            out.append(mark(now + 4_000_000, body, sequence=2, flags=2, more={58: 3}))
            out.append(mark(now + 4_000_300, event(END), sequence=2, flags=2, more={58: 3}))
        elif choice < 0.9:
            out.append(mark(now, event(INSTANT, "tick", track=4, category="user"), flags=2))
        else:
            inside = mark(now, event(BEGIN, "gpu work", track=4, category=2), flags=2)
            inside += mark(now + 100, event(END, track=4), flags=2)
            out.append(compressed(inside) if i % 2 else inside)
            now += 100
    for _ in range(open_slices):
        now += 50
        out.append(mark(now, event(END, track=2), flags=2))
    return b"".join(out)


def some_gpu_trace(seed: int) -> bytes:
    """Work and counters of two sequences that give the same ids to other names, and submissions."""
    rng = random.Random(seed)
    stages = ("gemm", "softmax", "copy")
    out = [
        interned_gpu(
            context(1, 42),
            specification(1, f"queue {sequence}"),
            *(specification(2 + i, f"{name} {sequence}") for i, name in enumerate(stages)),
            sequence=sequence,
        )
        for sequence in (1, 2)
    ]
    described = counter_spec(1, "utilisation", [37]) + counter_spec(2, "power", [29])
    out.append(counters(0, {}, descriptor=described))
    now = 1_000
    for i in range(80):
        now += rng.randrange(1, 500)
        sequence = rng.choice((1, 2))
        choice = rng.random()
        if choice < 0.6:
            dur = rng.randrange(1, 2_000)
            out.append(
                stage(now, dur, event=i, queue=1, stage=rng.randrange(2, 5), context=1, sequence=sequence)
            )
        elif choice < 0.8:
            out.append(counters(now, {1: rng.randrange(100), 2: rng.random()}))
        elif choice < 0.9:
            out.append(packet({8: now, 71: message({1: 0, 2: 42, 3: rng.randrange(1 << 30)})}))
        else:
            out.append(packet({8: now, 65: field(2, message({1: 30, 2: 42, 3: 43, 6: i}))}))
    return b"".join(out)
