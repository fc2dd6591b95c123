"""Mutated dumps: read, or refused with a message; nothing is run, and nothing else is raised."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from flight_recorder_dumps import Job, old_document

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.flight_recorder.reader import read
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source

INPUTS = int(os.environ.get("TORCHTRT_VIZ_FUZZ_INPUTS", "1500"))
PIECES = [
    b"cos\nsystem\n",
    b"c__builtin__\neval\n",
    b"\x8c\x02os\x8c\x06system\x93",
    b"(X\x04\x00\x00\x00exitoR",
    b"R",
    b"b",
    b"o",
    b"(",
    b"]",
    b"}",
    b"t",
    b"e",
    b"u",
    b"s",
    b"a",
    b".",
    b"h\x00",
    b"r\xff\xff\xff\xff",
    b"j\x00\x00\x00\x00",
    b"X\xff\xff\xff\x7f",
    b"\x8a\x08" + struct.pack("<q", -1),
    b"\x8a\xff" + b"\xff" * 255,
    b"G\x7f\xf8\x00\x00\x00\x00\x00\x00",
    b"\x85" * 50,
    b"N",
    b"\x89",
    b"\xff",
    b'"entries":',
    b"[" * 200,
    b"-1",
    b"1e999",
]


def seeds() -> list[bytes]:
    job = Job(2, [("1", "tp", (0, 1))])
    for _ in range(2):
        job.call("all_reduce", [[16]])
        job.call("all_gather", [[2]], [[4]], group="1")
        job.send(0, 1)
    job.call("all_reduce", state="started")
    document = job.document(0)
    plain: list[Any] = [document, old_document("1.4", (0, 1), 3), old_document(None, (0, 1), 3)]
    pickled = [pickle.dumps(each, protocol) for each in plain for protocol in (2, 4)]
    return [*pickled, json.dumps(document).encode()]


def mutate(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out)) if out else 0
        what = rng.randrange(5)
        if what == 0 and out:
            out[at] = rng.randrange(256)
        elif what == 1:
            out[at:at] = rng.choice(PIECES)
        elif what == 2:
            del out[at : at + rng.randint(1, 40)]
        elif what == 3:
            other = rng.randrange(len(out)) if out else 0
            out[at:at] = out[other : other + rng.randint(1, 60)]
        else:
            del out[at:]
    return bytes(out)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", ["one", "two"])
def test_mutated_dumps_are_read_or_refused(
    seed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a dump ran something")

    monkeypatch.setattr(os, "system", never)
    monkeypatch.setattr(subprocess, "Popen", never)
    monkeypatch.chdir(tmp_path)
    rng = random.Random(seed)
    texts = seeds()
    loaded = refused = 0
    for _ in range(INPUTS // 2):
        data = mutate(rng, rng.choice(texts))
        try:
            trace = read(Source("rank_0", data=data), LoadOptions(rank=0))
        except TraceFormatError:
            refused += 1
            continue
        loaded += 1
        accounting = trace.meta["accounting"]
        assert accounting["in_file"] == accounting["read"] + sum(accounting["left_out"].values())
        assert len(trace.spans) + len(trace.instants) <= accounting["read"]
        assert (trace.spans["dur_ns"] >= 0).all()
        trace.args.read()
        trace.instant_args.read()
    assert loaded > 20
    assert refused > 20
    assert not list(tmp_path.iterdir())
