"""Every number of HolisticTraceAnalysis on every reference file, and why ours differs where it does.

`PlainDevice` reduces the raw file by plain loops. Without habits it gives the right values, and ours are
those, to the nanosecond. With the habits of that library it gives that library's values, as its version 0.5.0
printed them (``peer_values/hta.json``). So each difference is one of the named habits, and where none matters
both agree.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import other_tools
import pytest
from plain_device import HABITS, PlainDevice, describe

import torchtrt_viz as tv
from torchtrt_viz.analysis import (
    idle_causes,
    kernel_types,
    kernels,
    launch_delays,
    overlap,
    temporal_breakdown,
)
from torchtrt_viz.trace import Trace

HTA = other_tools.recorded("hta")

FILES = sorted(name for name, found in HTA["files"].items() if isinstance(found.get("temporal"), list))
WITHOUT_DEVICE = sorted(
    name
    for name, found in HTA["files"].items()
    if isinstance(found.get("temporal"), dict) and "failed" in found["temporal"]
)

ALL = frozenset(HABITS)
NAMES = {"COMPUTATION": "compute", "COMMUNICATION": "communication", "MEMORY": "copy"}


@lru_cache(maxsize=4)
def _plain(path: Path, habits: frozenset[str]) -> PlainDevice:
    return PlainDevice(path, habits)


@lru_cache(maxsize=1)
def _loaded(path: Path) -> Trace:
    trace = tv.load(path)
    assert isinstance(trace, Trace)
    return trace


@pytest.fixture(params=FILES, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _nonzero(table: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    found = {lane: {c.replace("_", " "): t for c, t in row.items() if t} for lane, row in table.items()}
    return {lane: row for lane, row in found.items() if row}


def _positive(found: dict[str, Any]) -> dict[str, float]:
    return {classes: time for classes, time in found.get("types", {}).items() if time}


def test_files_of_every_kind_were_read_by_that_library() -> None:
    assert HTA["HolisticTraceAnalysis"] == "0.5.0"
    assert len(FILES) == 13
    assert len(WITHOUT_DEVICE) == 14


def test_its_values_follow_from_its_habits(corpus: Path, name: str) -> None:
    found, plain = HTA["files"][name], _plain(corpus / name, ALL)
    assert list(plain.temporal()) == found["temporal"]
    share = plain.overlap()
    assert (None if share is None else round(share, 2)) == found["overlap"]
    types = {
        frozenset(NAMES[k] for k in key.split(" overlapping ")): t for key, t in _positive(found).items()
    }
    assert plain.types() == types
    assert _nonzero(plain.idle()) == _nonzero(found["idle"])
    assert list(plain.launches()) == found["launches"]
    table = plain.kernels()
    assert set(table) - {"other"} == {NAMES[kind] for kind in found["kernels"]}
    for kind, part in found["kernels"].items():
        durations = table[NAMES[kind]]
        assert (len(durations), sum(map(sum, durations.values()))) == (part["names"], part["sum"])
        for kernel, *numbers in part["top"]:
            assert describe(durations[kernel]) == pytest.approx(numbers, rel=1e-12, abs=1e-12)


def test_our_values_are_exact(corpus: Path, name: str) -> None:
    plain, trace = _plain(corpus / name, frozenset()), _loaded(corpus / name)
    (row,) = temporal_breakdown(trace).to_dict("records")
    keys = ("idle_ns", "compute_ns", "non_compute_ns", "span_ns")
    assert tuple(int(row[key]) for key in keys) == plain.temporal()
    assert _share(trace) == pytest.approx(plain.overlap())
    types = kernel_types(trace)
    assert {
        frozenset(row.classes.split(" + ")): int(row.ns) for row in types.itertuples(index=False)
    } == plain.types()
    idle: dict[str, dict[str, int]] = {}
    for gap in idle_causes(trace).itertuples(index=False):
        idle.setdefault(str(gap.stream).split()[-1], {})[str(gap.cause)] = int(gap.idle_ns)
    assert _nonzero(idle) == _nonzero(plain.idle())
    delays = launch_delays(trace)
    sums = (int(delays[key].sum()) for key in ("host_ns", "device_ns", "delay_ns"))
    assert (len(delays), *sums) == plain.launches()
    _compare_kernels(trace, plain)


def _share(trace: Trace) -> float | None:
    (value,) = overlap(trace)["overlap_pct"].to_numpy(dtype=float, na_value=math.nan)
    return None if math.isnan(value) else float(value)


def _compare_kernels(trace: Trace, plain: PlainDevice) -> None:
    expected = {
        (kernel, kind): durations
        for kind, part in plain.kernels().items()
        for kernel, durations in part.items()
    }
    table = kernels(trace)
    classes = {"fill": "copy"}
    assert len(table) == len(expected)
    for row in table.to_dict("records"):
        durations = expected[(row["name"], classes.get(row["class"], row["class"]))]
        total, most, least, mean, scatter = describe(durations)
        numbers = (row["calls"], row["total_ns"], row["max_ns"], row["min_ns"])
        assert numbers == (len(durations), total, most, least)
        assert row["mean_ns"] == pytest.approx(mean)
        if len(durations) > 1:
            assert row["std_ns"] == pytest.approx(scatter, rel=1e-9, abs=1e-6)


#: Analyses in which that library's values are ours, to its last digit.
EQUAL = {
    "kineto/a100_alexnet_cuda_sync.json.gz": {"overlap", "idle"},
    "kineto/a100_triton_cuda_driver.json.gz": {"overlap", "idle"},
    "kineto/b200_eager_pystacks_rank0_of8.json.gz": {"overlap"},
    "kineto/legacy_category_names_rank1.json.gz": {"temporal", "overlap", "types", "idle"},
    "kineto/legacy_tb_plugin_resnet50.json.gz": {"temporal", "overlap", "types", "idle"},
    "kineto/mi210_gpu_only.json.gz": {"overlap"},
    "kineto/mi250_rocm62_minitoy.json.gz": {"overlap"},
    "kineto/quirk_plain_json_backward_thread.json": {"temporal", "overlap", "types", "idle", "launches"},
}


def test_where_no_habit_matters_both_agree(corpus: Path, name: str) -> None:
    found, trace = HTA["files"][name], _loaded(corpus / name)
    (row,) = temporal_breakdown(trace).to_dict("records")
    keys = ("idle_ns", "compute_ns", "non_compute_ns", "span_ns")
    types = {frozenset(r.classes.split(" + ")): r.ns / 1000 for r in kernel_types(trace).itertuples()}
    idle: dict[str, dict[str, float]] = {}
    for gap in idle_causes(trace).itertuples(index=False):
        idle.setdefault(str(gap.stream).split()[-1], {})[str(gap.cause)] = gap.idle_ns / 1000
    share = _share(trace)
    delays = launch_delays(trace)
    sums = (delays[key].sum() / 1000 for key in ("host_ns", "device_ns", "delay_ns"))
    theirs = {
        frozenset(NAMES[k] for k in key.split(" overlapping ")): t for key, t in _positive(found).items()
    }
    equal = {
        "temporal": [row[key] / 1000 for key in keys] == found["temporal"],
        "overlap": (None if share is None else round(share, 2)) == found["overlap"],
        "types": types == theirs,
        "idle": _nonzero(idle) == _nonzero(found["idle"]),
        "launches": [len(delays), *sums] == found["launches"],
    }
    assert {analysis for analysis, same in equal.items() if same} == EQUAL.get(name, set())


_BOTH_STEPS = (651136, 271973, 308077, 1231186)
_BY_NAME = (73669, 10153, 664, 84486)
_CLIPPED = (98, 3113616, 66203, 39283)

# What each habit does to one value: the file, the analysis, that library's value, and the same without it.
EFFECTS = [
    # the same in ns: one microsecond in ten of kernels is lost where they are short
    ("microseconds", "mi210_gpu_only", "temporal", (1199, 4780, 0, 5979), (636081, 5343422, 0, 5979503)),
    # the second of two steps is the half of the file
    ("last step", "multirank_sampled_rank-0", "overlap", 11.81, 14.95),
    (
        "last step",
        "multirank_sampled_rank-0",
        "launches",
        (602, 5109, 302241, 9880122),
        (1204, 11050, 607844, 20539698),
    ),
    # waiting on a stream is neither compute nor idle
    (
        "synchronisation",
        "a100_alexnet_cuda_sync",
        "temporal",
        (12929684, 10637, 55690, 12996011),
        (12854103, 10630, 55511, 12920244),
    ),
    # a host operator of 94 us for a kernel of less than 2
    ("any stream", "a100_triton_cuda_driver", "temporal", (0, 94, 0, 94), (0, 1, 0, 1)),
    # all-reduce kernels that are not called nccl
    (
        "names",
        "b200_eager_pystacks_rank0_of8",
        "temporal",
        (73669, 10153, 664, 84486),
        (73669, 8033, 2784, 84486),
    ),
    # kernels that overlap on their stream count as negative idle time
    ("previous end", "b200_eager_pystacks_rank0_of8", "idle", 73732, 73742),
    # no call of HIP, none of the driver
    ("four calls", "mi250_rocm62_minitoy", "launches", (0, 0, 0, 0), (16, 6716, 131, 108)),
    # a graph of 221 kernels; its launch is none of the four calls
    (
        "a launch a piece",
        "a100_rank0_of16_train",
        "launches",
        (5500, 741558, 318168, 667776696),
        (5280, 688796, 318168, 642494805),
    ),
    (
        "no early start",
        "a100_alexnet_cuda_sync",
        "launches",
        (98, 3113616, 66203, 39283),
        (98, 3113616, 66203, -15825),
    ),
]


def test_every_habit_has_its_example() -> None:
    assert {habit for habit, *_ in EFFECTS} == ALL


@pytest.mark.parametrize(("habit", "file", "analysis", "with_it", "without"), EFFECTS)
def test_what_a_habit_does(
    corpus: Path, habit: str, file: str, analysis: str, with_it: Any, without: Any
) -> None:
    def value(habits: frozenset[str]) -> Any:
        found = getattr(_plain(corpus / "kineto" / f"{file}.json.gz", habits), analysis)()
        if analysis == "idle":
            return sum(time for causes in found.values() for time in causes.values())
        return round(found, 2) if analysis == "overlap" else found

    base = ALL - {"four calls"} if habit == "a launch a piece" else ALL
    assert value(base) == with_it
    assert value(base - {habit}) == without


@pytest.mark.parametrize("file", WITHOUT_DEVICE)
def test_without_device_work_it_fails_and_ours_are_empty(corpus: Path, file: str) -> None:
    assert HTA["files"][file]["temporal"] == {"failed": "IndexError"}
    assert HTA["files"][file]["idle"] == {"failed": "ValueError"}
    trace = _loaded(corpus / file)
    for analysis in (temporal_breakdown, overlap, kernel_types, idle_causes, launch_delays, kernels):
        assert len(analysis(trace)) == 0


def test_files_it_cannot_read(corpus: Path) -> None:
    failed = {Path(file).name for file, found in HTA["files"].items() if "failed" in found}
    assert failed == {"empty.pt.trace.json.gz", "truncated.pt.trace.json.gz"}
    assert len(_loaded(corpus / "ranks" / "broken" / "truncated.pt.trace.json.gz").spans) > 1000


@pytest.mark.slow
def test_the_library_itself_says_so(corpus: Path) -> None:
    now = other_tools.ask("hta", corpus, "hta")
    if now["HolisticTraceAnalysis"] != HTA["HolisticTraceAnalysis"]:
        pytest.skip(f"values are kept of {HTA['HolisticTraceAnalysis']}, not {now['HolisticTraceAnalysis']}")
    for file, found in HTA["files"].items():
        # with some versions of pandas it lists classes that ran together for 0 us
        assert {**now["files"][file], "types": _positive(now["files"][file])} == {
            **found,
            "types": _positive(found),
        }
