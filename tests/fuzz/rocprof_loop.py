"""Mutate recordings and load them: the program that ``test_fuzz_rocprof.py`` runs.

python tests/fuzz/rocprof_loop.py SEED COUNT FORM FILE...; a COUNT that ends in s is a number of seconds.
"""

from __future__ import annotations

import copy
import json
import random
import resource
import sys
import time
from pathlib import Path
from typing import Any

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))

import torchtrt_viz as tv  # noqa: E402
from torchtrt_viz.errors import TraceFormatError  # noqa: E402
from torchtrt_viz.formats.io.options import LoadOptions  # noqa: E402
from torchtrt_viz.formats.io.source import Source  # noqa: E402
from torchtrt_viz.loading.reading import read_source  # noqa: E402

WORDS = [0, 1, 2, 13, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF]
VALUES: list[Any] = [
    *(None, True, 0, -1, 2**31, 2**63, 2**64, -(2**70), 1e308, 0.5, "", "7", "0x10", "<b>", "\ud800"),
    *([], {}, [[]], [None], {"handle": 2**64}, {"x": -1}, "a" * 5000),
]


def mutated_bytes(rng: random.Random, data: bytes, page: int) -> bytes:
    """Change some bytes, cut, or exchange pages."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8, 40])):
        at = rng.randrange(len(out))
        what = rng.randrange(6)
        if what == 0:
            out[at] = rng.randrange(256)
        elif what == 1:
            out[at : at + 4] = rng.choice(WORDS).to_bytes(4, "big")
        elif what == 2:
            out[at : at + rng.randrange(9)] = rng.randbytes(rng.randrange(9))
        elif what == 3 and len(out) > 1000 and rng.random() < 0.2:
            del out[at:]
            out += bytes(max(0, 100 - len(out)))
        else:
            count = len(out) // page or 1
            to, of = page * rng.randrange(count), page * rng.randrange(count)
            out[to : to + page] = out[of : of + page]
    return bytes(out)


def mutated_json(rng: random.Random, data: bytes) -> bytes:
    """Change values of a document; now and then bytes of its text."""
    if rng.random() < 0.3:
        return mutated_bytes(rng, data, 64)
    document = json.loads(data)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        holder = document
        while True:
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
            if not keys:
                break
            key = rng.choice(keys)
            inner = holder[key]
            if isinstance(inner, (dict, list)) and inner and rng.random() < 0.9:
                holder = inner
                continue
            what = rng.random()
            if what < 0.7:
                holder[key] = copy.deepcopy(rng.choice(VALUES))
            elif what < 0.85:
                del holder[key]
            elif isinstance(holder, list):
                holder += copy.deepcopy(holder[:50])
            else:
                holder[str(rng.choice(VALUES))[:20]] = copy.deepcopy(inner)
            break
    text = json.dumps(document).encode()
    return text[: rng.randrange(len(text))] if rng.random() < 0.1 else text


def check(data: bytes, form: str) -> bool:
    """Load and use; says whether it loaded."""
    name = {"onnxruntime": "kineto"}.get(form, "rocprof")
    try:
        trace = tv.Trace.of(read_source(Source("fuzz", data=data), LoadOptions(), name))
        trace.args.read(range(0, len(trace.spans), 1 + len(trace.spans) // 50))
        trace.instant_args.read(range(min(len(trace.instants), 50)))
    except TraceFormatError as error:
        if error.offset is None:
            raise
        return False
    trace.kernels(by="stream")
    trace.operators(by=["node", "provider"])
    trace.nvtx()
    trace.memory()
    assert (trace.spans["dur_ns"] >= 0).all()
    found = trace.meta["accounting"]
    assert found["in_file"] == found["read"] + sum(found["left_out"].values()) + sum(found["unread"].values())
    return True


def main(seed: str, amount: str, form: str, *names: str) -> None:
    """Run so many inputs, or so many seconds."""
    rng = random.Random(seed)
    files = [Path(name).read_bytes() for name in names]
    until = time.monotonic() + float(amount[:-1]) if amount.endswith("s") else None
    tried = loaded = 0
    while time.monotonic() < until if until is not None else tried < int(amount):
        data = rng.choice(files)
        data = mutated_json(rng, data) if form in ("json", "onnxruntime") else mutated_bytes(rng, data, 512)
        tried += 1
        try:
            loaded += check(data, form)
        except BaseException:
            Path(f"fuzz-{form}-{seed}.bin").write_bytes(data) if until is not None else None
            raise
    print(loaded, tried - loaded)


if __name__ == "__main__":
    main(*sys.argv[1:])
