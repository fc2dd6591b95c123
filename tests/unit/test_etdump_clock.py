"""Ticks, their unit and origin, and the sidecar that tells them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from etdump_writer import etdump, profile, run
from hypothesis import given
from hypothesis import strategies as st

import torchtrt_viz as tv
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.formats.etdump.clock import Clock, ticks_to_ns, unwrap

U64 = st.integers(0, (1 << 64) - 1)


@given(st.lists(U64, min_size=1, max_size=20), st.integers(1, (1 << 32) - 1), st.integers(1, (1 << 32) - 1))
def test_scaling_is_exact_wherever_it_fits(ticks: list[int], numerator: int, denominator: int) -> None:
    ns, fits = ticks_to_ns(np.array(ticks, np.uint64), Clock(numerator, denominator))
    for tick, value, ok in zip(ticks, ns.tolist(), fits.tolist(), strict=True):
        exact = Fraction(tick * numerator, denominator)
        if ok:
            assert value == exact.numerator // exact.denominator
        else:
            assert value == 0
            assert tick >= (1 << 63) or exact >= (1 << 63) - numerator


def test_one_to_one_up_to_the_last_nanosecond() -> None:
    ticks = np.array([0, (1 << 63) - 1, 1 << 63], np.uint64)
    ns, fits = ticks_to_ns(ticks, Clock())
    assert ns.tolist() == [0, (1 << 63) - 1, 0]
    assert fits.tolist() == [True, True, False]


def test_a_counter_of_32_bits_that_wraps() -> None:
    top = 1 << 32
    #         before      across the wrap      after, then one that a delegate logged late, then after
    start = [top - 500, top - 60, 100, top - 90, 200]
    end = [top - 400, 50, 150, top - 70, 300]
    own = np.ones(len(end), bool)
    wide_start, wide_end, wraps = unwrap(np.array(start, np.uint64), np.array(end, np.uint64), own)
    assert wraps == 1
    assert wide_start.tolist() == [top - 500, top - 60, top + 100, top - 90, top + 200]
    assert wide_end.tolist() == [top - 400, top + 50, top + 150, top - 70, top + 300]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ([5, 10], [7, 12]),  # nothing falls
        ([1 << 33, 10], [1 << 33, 12]),  # not a counter of 32 bits
        ([100], [50]),  # one event that ends before it begins is an error, not a wrap
        ([3_000_000, 10], [4_000_000, 12]),  # falls by far less than half of the range
    ],
)
def test_other_times_are_left_alone(start: list[int], end: list[int]) -> None:
    before = np.array(start, np.uint64), np.array(end, np.uint64)
    after = unwrap(*before, np.ones(len(before[0]), bool))
    assert after[2] == 0
    assert after[0].tolist() == start
    assert after[1].tolist() == end


def dump(path: Path, **times: int) -> Path:
    path.write_bytes(
        etdump(
            [
                run([profile("Method::init", 1_000, 2_000, chain=-1, instruction=0)], "Default"),
                run([profile("Method::execute", 3_000, 4_500, chain=-1, instruction=0)]),
            ]
        )
    )
    return path


def sidecar(path: Path, document: Any) -> None:
    path.with_name(path.name + ".json").write_text(
        document if isinstance(document, str) else json.dumps(document)
    )


def test_without_a_sidecar_the_base_is_unknown(tmp_path: Path) -> None:
    trace = tv.load(dump(tmp_path / "a.etdp"))
    assert trace.meta["base_ns"] is None
    assert "neither their unit nor their origin" in trace.meta["clock"]
    assert trace.spans["start_ns"].tolist() == [1_000, 3_000]


def test_the_anchor_places_the_dump_in_time(tmp_path: Path) -> None:
    path = dump(tmp_path / "a.etdp")
    sidecar(
        path,
        {
            "anchor": {
                "ticks": 2_000,
                "unix_ns": 1_700_000_000_123_456_789,
                "tick_numerator": 125,
                "tick_denominator": 3,
            },
            "versions": {"executorch": "1.5.1"},
        },
    )
    trace = tv.load(path)
    assert trace.meta["warnings"] == []
    # 2000 ticks of 41.67 ns are 83333 ns
    assert trace.meta["base_ns"] == 1_700_000_000_123_456_789 - 83_333
    assert trace.spans["start_ns"].tolist() == [41_666, 125_000]
    assert trace.spans["dur_ns"].tolist() == [83_333 - 41_666, 187_500 - 125_000]
    assert trace.meta["versions"] == {"executorch": "1.5.1"}
    assert "a.etdp.json" in trace.meta["clock"]


def test_of_several_anchors_the_tightest_is_taken(tmp_path: Path) -> None:
    path = dump(tmp_path / "a.etdp")
    loose = {"ticks_before": 1_000, "ticks_after": 9_000, "unix_ns": 1}
    tight = {"ticks_before": 5_000, "ticks_after": 5_010, "unix_ns": 1_000_000}
    sidecar(path, {"anchors": [loose, tight, {"ticks": "x"}]})
    assert tv.load(path).meta["base_ns"] == 1_000_000 - 5_005


def test_blocks_name_methods_threads_and_failures(tmp_path: Path) -> None:
    path = dump(tmp_path / "a.etdp")
    sidecar(
        path,
        {
            "blocks": [
                {"name": "Default", "method": "prefill", "thread": 7},
                {"name": "Execute", "method": "prefill", "thread": 8, "status": "failed", "error": "0x12"},
            ]
        },
    )
    trace = tv.load(path)
    runs = trace.meta["etdump"]["runs"]
    assert runs["method"].tolist() == ["prefill", "prefill"]
    assert runs["status"].tolist() == ["load", "failed"]
    assert runs["thread"].tolist() == [7, 8]
    assert trace.tracks["thread"].tolist() == ["7", "8"]
    assert trace.spans["run_id"].tolist() == ["prefill", "prefill"]
    assert trace.spans["track"].tolist() == [0, 1]
    assert trace.meta["base_ns"] is None


WRONG: list[tuple[Any, str]] = [
    ("{", "not JSON"),
    ([], "top level"),
    ({"anchor": {"ticks": 1.5, "unix_ns": 3}}, "anchor"),
    ({"anchor": {"ticks": 1, "unix_ns": 3, "tick_denominator": 0}}, "anchor"),
    ({"anchor": {"ticks": -1, "unix_ns": 3}}, "anchor"),
    ({"anchor": {"ticks": True, "unix_ns": 3}}, "anchor"),
    ({"blocks": {"0": "forward"}}, "blocks"),
    ({"blocks": [{"method": "forward"}]}, "1 blocks"),
    ({"blocks": [{"name": "Execute"}, {"name": "Execute"}]}, "names"),
]


@pytest.mark.parametrize(("document", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_sidecar_is_reported_and_not_used(tmp_path: Path, document: Any, message: str) -> None:
    path = dump(tmp_path / "a.etdp")
    sidecar(path, document)
    trace = tv.load(path)
    (warning,) = trace.meta["warnings"]
    assert warning.path == str(path) + ".json"
    assert message in str(warning)
    assert trace.meta["base_ns"] is None
    assert trace.meta["etdump"]["runs"]["method"].tolist() == [None, None]
    with pytest.raises(TraceFormatError):
        tv.load(path, strict=True)


def test_a_compressed_dump_finds_its_sidecar(tmp_path: Path) -> None:
    import gzip

    plain = dump(tmp_path / "a.etdp")
    sidecar(plain, {"anchor": {"ticks": 0, "unix_ns": 5_000_000}})
    packed = tmp_path / "a.etdp.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert tv.load(packed).meta["base_ns"] == 5_000_000


def test_a_dump_in_an_archive_finds_its_sidecar(tmp_path: Path) -> None:
    import zipfile

    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.loading.reading import read_source

    plain = dump(tmp_path / "a.etdp")
    archive = tmp_path / "x.zip"
    for content, base in ((None, None), ('{"anchor": {"ticks": 0, "unix_ns": 7}}', 7)):
        with zipfile.ZipFile(archive, "w") as out:
            out.write(plain, "rank0/a.etdp")
            if content is not None:
                out.writestr("rank0/a.etdp.json", content)
        trace = read_source(Source(archive, "rank0/a.etdp"), LoadOptions())
        assert trace.meta["base_ns"] == base
        assert trace.meta["warnings"] == []
