"""Arguments are read from the file when asked for, however it is packed."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from trace_events import complete, load_events

import torchtrt_viz as tv
from torchtrt_viz import TraceFormatError
from torchtrt_viz.formats.io.options import LoadOptions
from torchtrt_viz.formats.io.source import Source
from torchtrt_viz.loading.reading import read_source
from torchtrt_viz.trace import Trace


def arguments(i: int) -> dict[str, Any]:
    text = "long " * (400_000 if i == 300 else i % 50)
    return {"index": i, "list": [[i, {"x": None}], 1.5e-3, True], "text": text, "big": 2**64 - 1 - i}


EVENTS = [complete(f"n{i % 9}", i, 1, args=arguments(i)) for i in range(600)]
CONTENT = json.dumps({"traceEvents": EVENTS}, indent=1).encode()
EXPECTED = [event["args"] for event in EVENTS]


def packed(kind: str, folder: Path) -> Source:
    path = folder / f"file.{kind}"
    if kind == "json":
        path.write_bytes(CONTENT)
    elif kind == "gz":
        path.write_bytes(gzip.compress(CONTENT[:100_000]) + gzip.compress(CONTENT[100_000:]))
    elif kind == "zst":
        path.write_bytes(zstandard.compress(CONTENT))
    elif kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/trace.json", CONTENT)
        return Source(path, "a/trace.json")
    elif kind == "tar":
        with tarfile.open(path, "w:gz") as archive:
            data = gzip.compress(CONTENT)
            info = tarfile.TarInfo("trace.json.gz")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        return Source(path, "trace.json.gz")
    elif kind == "memory":
        return Source(path, data=CONTENT)
    return Source(path)


@pytest.fixture(params=["json", "gz", "zst", "zip", "tar", "memory"])
def trace(request: pytest.FixtureRequest, tmp_path: Path) -> Trace:
    return read_source(packed(request.param, tmp_path), LoadOptions())


def test_all_rows(trace: Trace) -> None:
    assert trace.args.read() == EXPECTED
    assert trace.spans["start_ns"].tolist() == [i * 1000 for i in range(600)]


def test_any_rows_in_any_order(trace: Trace) -> None:
    rows = np.random.default_rng(0).integers(0, 600, 50)
    assert trace.args.read(rows) == [EXPECTED[row] for row in rows]
    assert trace.args[300] == EXPECTED[300]
    assert trace.args[-1] == EXPECTED[-1]
    assert trace.args.read([]) == []


def test_column(trace: Trace) -> None:
    assert trace.args.column("big").tolist() == [2**64 - 1 - i for i in range(600)]


def test_rows_given_out_do_not_share_state(trace: Trace) -> None:
    first = trace.args[5]
    first["list"].append("changed")
    first["new"] = 1
    assert trace.args[5] == EXPECTED[5]
    twice = trace.args.read([5, 5])
    twice[0]["new"] = 1
    assert twice[1] == EXPECTED[5]


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(CONTENT)
    loaded = tv.load(path)
    path.write_bytes(CONTENT + b" ")
    with pytest.raises(TraceFormatError, match="has changed since"):
        loaded.args[0]
    os.remove(path)
    with pytest.raises(TraceFormatError, match="has changed since"):
        loaded.args[0]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (None, {}),
        ("missing", {}),
        ([1, 2], {"args": [1, 2]}),
        ("text", {"args": "text"}),
        ({}, {}),
        (7, {"args": 7}),
    ],
)
def test_arguments_that_are_no_object(args: Any, expected: dict[str, Any], tmp_path: Path) -> None:
    event = complete("x", 1, 1, args=args)
    if args == "missing":
        del event["args"]
    assert load_events(tmp_path, [event]).args.read() == [expected]


def test_the_last_event_of_a_file_that_stops_behind_it(tmp_path: Path) -> None:
    for packing in ("json", "gz"):
        path = tmp_path / f"cut.{packing}"
        whole = b'{"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":1}}'
        path.write_bytes(gzip.compress(whole) if packing == "gz" else whole)
        assert tv.load(path, format="kineto").args.read() == [{"x": 1}]


def test_damaged_compression_gives_what_precedes_it(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(CONTENT)[:-3000])
    trace = tv.load(path)
    assert 0 < len(trace.spans) < 600
    assert trace.args.read() == EXPECTED[: len(trace.spans)]
    assert {w.code for w in trace.meta["warnings"]} == {"damaged_stream", "truncated"}
    with pytest.raises(TraceFormatError):
        tv.load(path, strict=True)


def test_progress_counts_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(CONTENT)
    seen: list[tuple[int, int | None]] = []
    tv.load(path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
