"""Pages of Nsight Compute: every form, every number, and which launch of a trace each kernel is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ncu_pages import DETAILS, OLD, SUMMARY, details, line, raw, said

import torchtrt_viz as tv
from torchtrt_viz.errors import OptionError, TraceFormatError
from torchtrt_viz.formats.ncu.numbers import decimal_comma, number

TIME = ("gpu__time_duration.sum", "nsecond")
BYTES = ("dram__bytes.sum", "Mbyte")
PREFIX = '==PROF== Connected to process 77 (/usr/bin/app)\nstep 1, loss "0.3\n'
PREFIX += '==PROF== Profiling "add" - 0: 0%....50%....100% - 8 passes\n'


def load(tmp_path: Path, content: str, name: str = "page.csv", **options: Any) -> tv.Trace:
    path = tmp_path / name
    path.write_text(content)
    loaded = tv.load(path, **options)
    assert isinstance(loaded, tv.Trace)
    return loaded


def metrics(trace: tv.Trace) -> list[list[Any]]:
    found = trace.kernel_metrics()[["launch", "metric", "unit", "value"]].astype(object)
    return found.where(found.notna(), None).values.tolist()


def test_the_raw_page(tmp_path: Path) -> None:
    rows = [(said(0, "add(float *)"), ["1,248", "12.5"]), (said(1, "mul<(int)4>"), ["3,000,000", "n/a"])]
    page = PREFIX + raw([TIME, BYTES], rows) + "==PROF== Disconnected from process 77\n"
    trace = load(tmp_path, page)
    assert trace.meta["format"] == "ncu"
    assert trace.meta["ncu"]["layout"] == "raw"
    assert trace.spans[["name", "kind", "domain", "timing", "dur_ns"]].values.tolist() == [
        ["add(float *)", "kernel", "gpu", "aggregate", 1248],
        ["mul<(int)4>", "kernel", "gpu", "aggregate", 3_000_000],
    ]
    assert trace.spans["start_ns"].isna().all()
    assert metrics(trace) == [
        [0, "gpu__time_duration.sum", "nsecond", 1248.0],
        [0, "dram__bytes.sum", "Mbyte", 12.5],
        [1, "gpu__time_duration.sum", "nsecond", 3e6],
        [1, "dram__bytes.sum", "Mbyte", None],
    ]
    assert trace.args[0]["grid"] == [8, 1, 1]
    assert trace.args[0]["passes"] == 8
    assert trace.args[1]["dram__bytes.sum"] == "n/a"
    assert trace.kernels()["total_ns"].tolist() == [3_000_000, 1248]
    assert trace.tracks[["label", "process", "process_name", "device"]].values.tolist() == [
        ["GPU 0 stream 7", "77", "app", 0]
    ]
    found = trace.meta["accounting"]
    assert (found["in_file"], found["read"], found["bookkeeping"]) == (3, 3, {"units": 1})
    assert found["span_ns"] == 3_001_248
    assert trace.meta["warnings"] == []


def test_the_details_page(tmp_path: Path) -> None:
    """One name in two sections, a rule with quotes and a line break, times in us."""
    sol, memory = "GPU Speed Of Light Throughput", "Memory Workload Analysis"
    rows = [
        (sol, "Memory Throughput", "%", "14.26"),
        (sol, "Duration", "us", "2.85"),
        (memory, "Memory Throughput", "byte/s", "12,943,820,224"),
    ]
    trace = load(tmp_path, details([(said(0, "k"), rows), (said(1, "k"), rows)]))
    assert trace.meta["ncu"]["layout"] == "list"
    assert trace.spans["dur_ns"].tolist() == [2850, 2850]
    details_of = trace.args[0]
    assert details_of["Memory Throughput"] == 14.26
    assert details_of[f"{memory}: Memory Throughput"] == 12_943_820_224
    table = trace.kernel_metrics(metrics=["Memory Throughput"])
    assert table["section"].tolist() == [sol, memory] * 2
    assert table["value"].tolist() == [14.26, 12_943_820_224] * 2
    assert trace.meta["accounting"]["bookkeeping"] == {"rules": 2}
    assert trace.meta["accounting"]["in_file"] == 8


def test_the_form_of_2020(tmp_path: Path) -> None:
    row = (
        "0",
        "21524",
        "cfd",
        "127.0.0.1",
        "compute(int)",
        "2020-Apr-07 17:01:05",
        "1",
        "7",
        "GPU Speed Of Light",
    )
    page = line(OLD) + "\n" + line((*row, "Duration", "usecond", "15.2"))
    trace = load(tmp_path, page)
    assert trace.spans["dur_ns"].tolist() == [15_200]
    assert "grid" not in trace.args[0]


def test_summaries_are_averages_of_many(tmp_path: Path) -> None:
    row = ("77", "app", "127.0.0.1", "k", "1", "7", "(256, 1, 1)", "(8, 1, 1)", "0", "9.0", "5", "SOL")
    page = line(SUMMARY) + line((*row, "Duration", "us", "1", "3", "2"))
    trace = load(tmp_path, page)
    assert trace.meta["ncu"]["layout"] == "summary"
    assert trace.kernels()[["calls", "total_ns", "mean_ns"]].values.tolist() == [[5, 10_000, 2000.0]]


def test_processes_devices_and_streams_are_apart(tmp_path: Path) -> None:
    places = [{"process": "77"}, {"process": "78"}, {"process": "78", "device": "1"}, {"stream": "13"}]
    rows = [(said(at, "k", **place), ["5"]) for at, place in enumerate(places)]
    trace = load(tmp_path, raw([TIME], rows))
    assert trace.spans["track"].tolist() == [0, 1, 2, 3]
    assert trace.tracks["process"].tolist() == ["77", "78", "78", "77"]
    assert trace.kernels(by="device")["calls"].tolist() == [3, 1]


def test_numbers_of_other_languages() -> None:
    assert [number(text, False) for text in ("1,234.5", "12", "1e3", "1,2", "n/a", "7 (3; 4)", "-4")] == [
        *(1234.5, 12.0, 1000.0, None, None, 7.0, -4.0),
    ]
    assert [number(text, True) for text in ("1.234,5", "12", "12,25", "1.234", "1 234,5")] == [
        *(1234.5, 12.0, 12.25, 1234.0, 1234.5),
    ]
    assert decimal_comma(["12,5", "1.234"])
    assert not decimal_comma(["12.5", "1,234"])
    assert number("9" * 500, False) is None


def test_a_page_of_another_language(tmp_path: Path) -> None:
    rows = [(said(0, "k"), ["1.248", "12,5"]), (said(1, "k"), ["2.000.000", "0,25"])]
    trace = load(tmp_path, raw([TIME, BYTES], rows))
    assert trace.spans["dur_ns"].tolist() == [1248, 2_000_000]
    assert trace.kernel_metrics()["value"].tolist() == [1248, 12.5, 2_000_000, 0.25]


def test_without_a_time_a_kernel_is_in_no_sum(tmp_path: Path) -> None:
    cycles = ("sm__cycles_elapsed.max", "cycle")
    trace = load(tmp_path, raw([cycles, BYTES], [(said(0, "k"), ["5,000", "1"]), (said(1, "k"), ["", "1"])]))
    assert trace.spans["timing"].tolist() == ["ticks", "ticks"]
    assert trace.spans["dur_ns"].tolist() == [5000, 0]
    assert trace.kernels().empty
    assert [w.code for w in trace.meta["warnings"]] == ["no_time"]
    assert len(trace.kernel_metrics()) == 3


def test_what_is_no_row_is_counted(tmp_path: Path) -> None:
    page = raw([TIME], [(said(0, "k"), ["5"])]) + 'loss, 0.5\nthe "end\n' + line((*said(1, "k"), "7"))
    trace = load(tmp_path, page)
    assert trace.spans["dur_ns"].tolist() == [5, 7]
    found = trace.meta["accounting"]
    assert found["left_out"] == {"text_around": 2}
    assert found["in_file"] == 5
    cut = page[: page.rindex('"7"') + 2]
    assert [w.code for w in load(tmp_path, cut).meta["warnings"]] == ["truncated", "text_around"]
    with pytest.raises(TraceFormatError):
        load(tmp_path, cut, strict=True)


def test_no_page_says_what_to_do(tmp_path: Path) -> None:
    denied = "==PROF== Connected to process 1 (/a)\n==ERROR== ERR_NVGPUCTRPERM - no permission\n"
    with pytest.raises(TraceFormatError, match="ERR_NVGPUCTRPERM"):
        load(tmp_path, denied)
    with pytest.raises(TraceFormatError, match="--csv --page raw"):
        load(tmp_path, '==PROF== Profiling "k" - 0: 100% - 8 passes\n  k (1, 1, 1)x(1, 1, 1), Context 1\n')
    with pytest.raises(TraceFormatError, match="header without rows"):
        load(tmp_path, line(DETAILS))
    for content in (b"NVR\0" + bytes(40), b"\x01\x02\x03\x04" * 9):
        (tmp_path / "my run.ncu-rep").write_bytes(content)
        with pytest.raises(TraceFormatError) as caught:
            tv.load(tmp_path / "my run.ncu-rep")
        command = "ncu --import 'my run.ncu-rep' --csv --page raw > 'my run'.csv"
        assert command in str(caught.value.hint)


def kernels(*launches: tuple[str, list[int] | None]) -> bytes:
    """A trace of torch.profiler with these launches, one after the other."""
    events = [
        {
            **{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10 * at, "dur": 3},
            "args": {"device": 0, "stream": 7} | ({"grid": grid, "block": [256, 1, 1]} if grid else {}),
        }
        for at, (name, grid) in enumerate(launches)
    ]
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()


FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, float*)"
FILL_AS_PRINTED = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float> >(int, float *)"
)


def joined(tmp_path: Path, trace: bytes, *rows: tuple[str, str]) -> list[tuple[Any, ...]]:
    (tmp_path / "page.csv").write_text(
        raw([TIME], [(said(at, name, grid), ["5"]) for at, (name, grid) in enumerate(rows)])
    )
    loaded = tv.load(trace)
    assert isinstance(loaded, tv.Trace)
    found = loaded.kernel_metrics(tmp_path / "page.csv")
    same = loaded.kernel_metrics(tv.load(tmp_path / "page.csv"))
    assert same.equals(found)
    columns = found[["row", "match", "candidates"]].astype(object)
    return [tuple(row) for row in columns.where(columns.notna(), None).values.tolist()]


def test_one_launch_is_exact_and_several_are_ordered(tmp_path: Path) -> None:
    trace = kernels((FILL, [8, 1, 1]), ("add", [4, 1, 1]), (FILL, [16, 1, 1]), ("add", [4, 1, 1]))
    found = joined(
        tmp_path,
        trace,
        (FILL_AS_PRINTED, "(16, 1, 1)"),
        ("add(float *)", "(4, 1, 1)"),
        ("add(float *)", "(4, 1, 1)"),
        ("other", "(4, 1, 1)"),
    )
    assert found == [(2, "exact", 1), (1, "ordered", 2), (3, "ordered", 2), (None, "none", 0)]


def test_what_fits_several_is_joined_to_none(tmp_path: Path) -> None:
    trace = kernels(("add", [4, 1, 1]), ("add", [4, 1, 1]), ("mul<4>", None), ("mul<8>", [1, 1, 1]))
    found = joined(tmp_path, trace, ("add", "(4, 1, 1)"), ("mul<(int)4>", "(8, 1, 1)"), ("mul", "(1, 1, 1)"))
    assert found == [(None, "by_name", 2), (2, "by_name", 1), (None, "by_name", 2)]


def test_only_a_page_is_joined(tmp_path: Path) -> None:
    trace = tv.load(kernels(("add", [4, 1, 1])))
    assert isinstance(trace, tv.Trace)
    assert trace.kernel_metrics().empty
    with pytest.raises(OptionError, match="page"):
        trace.kernel_metrics(trace)


def test_the_page_is_unharmed_by_hostile_text(tmp_path: Path) -> None:
    name = '<script>alert("1")</script>,\x00' + "x" * 100_000
    trace = load(tmp_path, raw([("=cmd()", "%")], [(said(0, name.replace("\x00", "")), ["=1+1"])]))
    assert trace.kernel_metrics()["text"].tolist() == ["=1+1"]
    quotes = line((*OLD, "x")[: len(OLD)]) + '"' * 200_001
    with pytest.raises(TraceFormatError):
        load(tmp_path, quotes)


def test_a_page_beside_a_trace_is_no_rank(tmp_path: Path) -> None:
    page = raw([TIME], [(said(0, "add"), ["5"])])
    (tmp_path / "page.csv").write_text(page)
    assert isinstance(tv.load(tmp_path), tv.Trace)
    (tmp_path / "run.pt.trace.json").write_bytes(kernels(("add", [8, 1, 1])))
    trace = tv.load(tmp_path)
    assert isinstance(trace, tv.Trace)
    assert trace.meta["format"] == "kineto"
    assert [w.code for w in trace.meta["warnings"] if "kernel_metrics" in w.message] == ["not_a_trace"]
    assert trace.kernel_metrics(tmp_path / "page.csv")["match"].tolist() == ["exact"]
