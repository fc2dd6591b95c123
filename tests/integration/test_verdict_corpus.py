"""Verdicts on other people's runs: every finding leads to its table, and to spans that can be true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from shared_files import shared_folder

import torchtrt_viz as tv
from torchtrt_viz.analysis.answers.judgement import judge
from torchtrt_viz.errors import TorchTrtVizError
from torchtrt_viz.report.verdict.text import verdict_text

SMALL = 400_000  # bytes
ROOMS = ("kineto", "etdump", "nsys", "ranks/tp4", "writers", "vllm", "flight_recorder", "trex")


def _traces(folder: Path, largest: int | None) -> Iterator[tv.Trace]:
    """Load the files of a folder one by one; of many small ones every tenth, where not all are wanted."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    if largest is not None:
        files = [path for path in files if path.stat().st_size <= largest]
        files = files[:: 1 + len(files) // 16]
    for path in files:
        try:
            loaded = tv.load(path)
        except TorchTrtVizError:
            continue
        if isinstance(loaded, tv.Trace):
            yield loaded
        else:
            yield from (trace for _, trace in loaded.traces())


@pytest.mark.parametrize("room", ROOMS)
def test_every_finding_has_evidence_that_evaluates(room: str) -> None:
    folder = shared_folder("corpus") / room
    checked = [_check(trace) for trace in _traces(folder, SMALL)]
    assert checked or room in ("nsys", "vllm"), f"no small trace in {folder}"


@pytest.mark.slow
def test_every_finding_of_every_file_has_evidence_that_evaluates() -> None:
    assert sum(_check(trace) for trace in _traces(shared_folder("corpus"), None)) > 200


def _check(trace: tv.Trace) -> int:
    judged = judge(trace)
    verdict_text(judged)
    table = judged.frame()
    assert len(table) <= 7
    for row, finding in zip(table.itertuples(), judged.findings, strict=True):
        made = eval(row.frame, {"trace": trace})
        assert isinstance(made, pd.DataFrame), row.frame
        assert len(made), row.frame
        timing = trace.spans["timing"].iloc[finding.evidence.rows]
        assert row.kind == "doubt" or not timing.isin(["implausible", "ticks"]).any(), row.kind
        assert pd.isna(row.could_save_pct) or 0 < row.could_save_pct <= 100.001, row.kind
        assert row.finding
        assert row.evidence
        assert row.basis
    assert table["could_save_pct"].dropna().is_monotonic_decreasing
    return 1


def test_idle_time_and_busy_share_of_a_real_trace_by_a_raw_walk() -> None:
    """Kernels, copies and fills out of the JSON itself, merged by hand."""
    import gzip
    import json

    path = shared_folder("corpus") / "kineto" / "a100_ddp_nccl_fwdbwd.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    work = sorted(
        (float(event["ts"]), float(event["ts"]) + float(event["dur"]))
        for event in events
        if event.get("ph") == "X" and event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    busy, reach = 0.0, work[0][0]
    for begin, end in work:
        busy += max(0.0, end - max(begin, reach))
        reach = max(reach, end)
    idle = reach - work[0][0] - busy
    judged = judge(tv.load(path))
    bar = next(bar for bar in judged.bars if bar.domain == "gpu")
    assert bar.busy_ns == pytest.approx(1000 * busy, abs=20_000)
    first = judged.findings[0]
    assert first.kind == "idle"
    assert first.could_save_ns is not None
    assert first.could_save_ns <= 1000 * idle + 20_000
    assert f"idle {idle / 1000:.3g} ms" in first.head
