"""Real files: one argument of many events by the fast way and the slow one, and decoding in small windows."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from trace_events import decode, summary

import torchtrt_viz as tv
from torchtrt_viz.trace import Trace


def _same(trace: Trace, key: str) -> None:
    rows = np.arange(len(trace.spans))
    codes, values = trace.args.values(rows, key)
    slow = trace.args.read(rows)
    for code, found in zip(codes.tolist(), slow, strict=True):
        assert (code < 0) == (key not in found)
        if code >= 0:
            assert values[code] == found[key] or (values[code] != values[code] and found[key] != found[key])


@pytest.mark.parametrize(
    "name",
    [
        "a100_ddp_nccl_fwdbwd.json.gz",
        "mi250_rocm62_minitoy.json.gz",
        "legacy_category_names_rank1.json.gz",
        "a100_triton_cuda_driver.json.gz",
    ],
)
@pytest.mark.parametrize("key", ["External id", "Input Dims", "grid", "stream", "not there"])
def test_real_files_give_the_same_either_way(corpus: Path, name: str, key: str) -> None:
    trace = tv.load(corpus / "kineto" / name)
    assert isinstance(trace, Trace)
    _same(trace, key)


def test_hard_inputs_give_the_same_either_way(cases: Path) -> None:
    read = 0
    for path in sorted((cases / "kineto").glob("*.json")) + sorted((cases / "kineto_quirks").glob("*.json")):
        try:
            trace = tv.load(path)
        except tv.TraceFormatError:
            continue
        for key in sorted({key for found in trace.args.read() for key in found})[:20]:
            _same(trace, key)
        read += 1
    assert read >= 30


@pytest.mark.parametrize("name", ["a100_alexnet_cuda_sync.json.gz", "mi250_rocm62_minitoy.json.gz"])
@pytest.mark.parametrize("window", [64, 200, 777, 5000])
def test_real_traces_in_small_windows(name: str, window: int, corpus: Path) -> None:
    content = gzip.decompress((corpus / "kineto" / name).read_bytes())
    assert summary(decode(content, window)) == summary(decode(content))
