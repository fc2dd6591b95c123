"""Delegates that log another clock than the runtime's, as ExecuTorch's backends do."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from etdump_writer import Table, etdump, profile, run

import torchtrt_viz as tv
from torchtrt_viz.formats.etdump.args import etrecord_table
from torchtrt_viz.formats.etdump.clock import Clock
from torchtrt_viz.formats.etdump.dump import decode, timed
from torchtrt_viz.formats.etdump.runs import make_runs

S, MS, US = 1_000_000_000, 1_000_000, 1_000


def load(tmp_path: Path, *runs: Table, sidecar: dict[str, Any] | None = None, **options: Any) -> Any:
    path = tmp_path / "run.etdp"
    path.write_bytes(etdump(list(runs)))
    if sidecar is not None:
        (tmp_path / "run.etdp.json").write_text(json.dumps(sidecar))
    return tv.load(path, **options)


def executed(at: int, logged: list[Table], length: int = 7 * MS, instruction: int = 1) -> Table:
    """Return a run of one delegate's call, from ``at`` for ``length``, in which it logged some events."""
    return run(
        [
            *logged,
            profile("DELEGATE_CALL", at, at + length, instruction=instruction),
            profile("Method::execute", at - 1000, at + length + 1000, chain=-1, instruction=0),
        ]
    )


def event(name: str | None, start: int, end: int, number: int = -1) -> Table:
    return profile(None, start, end, identifier=name, number=number, instruction=1)


def rows(trace: Any, timing: str) -> list[str]:
    spans = trace.spans
    return spans["name"][spans["timing"] == timing].astype(str).tolist()


def self_of_calls(trace: Any) -> list[int]:
    spans = trace.spans
    return spans["self_ns"][spans["name"] == "DELEGATE_CALL"].tolist()


def warning(trace: Any) -> Any:
    (found,) = [w for w in trace.meta["warnings"] if w.code == "foreign_clock"]
    return found


def qnn() -> list[Table]:
    """Return what QnnProfiler.cpp logs: start 0, a number of cycles, bytes or microseconds as end."""
    return [
        event("Accelerator (execute) time", 0, 1_500_000),
        event("conv2d:OpId_3", 0, 1_250_000),
        event("DSP heap (bytes)", 0, 4_194_304),
        event("RPC (execute) time (us)", 0, 5_200),
    ]


@pytest.mark.parametrize("at", [5 * S, 900 * MS])
def test_qnn_logs_numbers_from_0(tmp_path: Path, at: int) -> None:
    trace = load(tmp_path, *(executed(at + i * 10 * MS, qnn()) for i in range(3)))
    assert self_of_calls(trace) == [7 * MS] * 3
    assert warning(trace).count == 12
    assert "delegate@1" in warning(trace).message
    spans = trace.spans
    ticks = spans["timing"] == "ticks"
    assert int(ticks.sum()) == 12
    assert spans["domain"][ticks].isna().all()
    assert spans["start_ns"][ticks].isna().all()
    assert spans["parent"][ticks].tolist() == [-1] * 12
    assert spans["dur_ns"][ticks].tolist()[:4] == [1_500_000, 1_250_000, 4_194_304, 5_200]
    assert spans["run_id"][ticks].astype(str).tolist() == ["delegate@1"] * 12
    track = trace.tracks.iloc[int(spans["track"][ticks].iloc[0])]
    assert track["domain"] is None or track["domain"] != track["domain"]
    said = trace.args[int(np.flatnonzero(ticks)[1])]
    assert (said["unit"], said["start_ticks"], said["end_ticks"]) == ("unknown", 0, 1_250_000)
    assert trace.duration_ns == 20 * MS + 7 * MS + 2 * US


def test_vulkan_logs_host_phases_and_a_gpus_timestamps_in_one_call(tmp_path: Path) -> None:
    def one(at: int, gpu: int) -> Table:
        return executed(
            at,
            [
                event("ETVK_COPY_INPUTS", at + 100 * US, at + 300 * US),
                event("ETVK_EXECUTE", at + 300 * US, at + 6_000 * US),
                event('{conv2d_dw, "dispatch_id": 0}', gpu, gpu + 2 * MS),
                event('{binary_add, "dispatch_id": 1}', gpu + 2 * MS, gpu + 3 * MS),
                event("ETVK_COPY_OUTPUTS", at + 6_100 * US, at + 6_400 * US),
            ],
        )

    trace = load(tmp_path, one(5 * S, 77 * S), one(6 * S, 78 * S + 12_345))
    assert (
        rows(trace, "ticks")
        == [
            '{conv2d_dw, "dispatch_id": 0}',
            '{binary_add, "dispatch_id": 1}',
        ]
        * 2
    )
    spans = trace.spans
    host = spans[spans["name"].isin(["ETVK_COPY_INPUTS", "ETVK_EXECUTE", "ETVK_COPY_OUTPUTS"])]
    assert host["timing"].tolist() == ["measured"] * 6
    assert host["domain"].tolist() == ["host"] * 6
    assert host["start_ns"].tolist()[:3] == [5 * S + 100 * US, 5 * S + 300 * US, 5 * S + 6_100 * US]
    assert spans["name"].iloc[host["parent"].to_numpy()].tolist() == ["DELEGATE_CALL"] * 6
    # 0.2 + 5.7 + 0.3 of 7 ms are the host's own phases
    assert self_of_calls(trace) == [800 * US] * 2
    layers = trace.layers(untimed=False)
    assert set(layers["name"]) == {"ETVK_COPY_INPUTS", "ETVK_EXECUTE", "ETVK_COPY_OUTPUTS"}
    assert float(layers["pct"].sum()) == pytest.approx(100)


def test_neutron_numbers_its_events_and_counts_the_npus_ticks(tmp_path: Path) -> None:
    logged = [event(None, 40_000 + 1_000 * i, 40_000 + 1_000 * (i + 1), number=i) for i in range(3)]
    trace = load(tmp_path, executed(2 * S, logged))
    assert rows(trace, "ticks") == ["#0", "#1", "#2"]
    assert self_of_calls(trace) == [7 * MS]


def test_xnnpacks_microseconds_stay_the_hosts(tmp_path: Path) -> None:
    """Laid end to end from the call's start, and rounded: the last begins behind the call's end."""
    at, logged = 1 * S + 1, []
    for i in range(8):
        logged.append(event(f"Convolution #{i}", at + 123 + i * MS, at + 123 + (i + 1) * MS))
    trace = load(tmp_path, executed(at, logged))
    assert rows(trace, "ticks") == []
    assert rows(trace, "modeled") == [f"Convolution #{i}" for i in range(8)]
    assert set(trace.spans["domain"]) == {"host"}
    assert trace.meta["warnings"] == []


def test_events_of_the_runtimes_clock_are_exact(tmp_path: Path) -> None:
    """VGF, Ethos-U and others time themselves with the tracer."""
    at = 3 * S + 17
    logged = [
        event("VGF_COPY_INPUTS", at + 11, at + 1_003),
        event("VGF_DISPATCH", at + 1_003, at + 5_000_021),
        event("VGF_EXECUTE", at + 5, at + 6_999_001),
    ]
    trace = load(tmp_path, executed(at, logged))
    spans = trace.spans
    assert set(spans["timing"]) == {"measured"}
    assert spans["dur_ns"].tolist()[:3] == [992, 4_999_018, 6_998_996]
    assert self_of_calls(trace) == [7 * MS - 6_998_996]


def test_one_name_of_one_delegate_is_of_one_clock(tmp_path: Path) -> None:
    """A clock that runs at another pace may meet the call by chance: one event elsewhere tells them all."""
    calls = [
        executed(S + i * 10 * MS, [event("op", S + i * 11 * MS + 10, S + i * 11 * MS + 90)]) for i in range(9)
    ]
    trace = load(tmp_path, *calls)
    assert rows(trace, "ticks") == ["op"] * 9
    assert self_of_calls(trace) == [7 * MS] * 9


def test_longer_than_its_call_twice_over_is_no_time_of_the_host(tmp_path: Path) -> None:
    trace = load(tmp_path, executed(S, [event("cycles", S + 5, S + 5 + 40 * MS)]))
    assert rows(trace, "ticks") == ["cycles"]


def test_a_runtime_without_a_clock_makes_no_times_of_cycles(tmp_path: Path) -> None:
    """Arm's runner returns 0 for every tick where the core has no counter."""
    events = [
        event("npu", 0, 123_456),
        profile("DELEGATE_CALL", 0, 0, instruction=1),
        profile("Method::execute", 0, 0, chain=-1, instruction=0),
    ]
    trace = load(tmp_path, run(events))
    assert rows(trace, "ticks") == ["npu"]


def test_without_calls_the_method_tells(tmp_path: Path) -> None:
    """The runtime was told to log methods only."""
    events = [
        event("op (cycles)", 0, 100),
        event("phase", S + 10, S + 20),
        profile("Method::execute", S, S + MS, chain=-1, instruction=0),
    ]
    trace = load(tmp_path, run(events))
    assert rows(trace, "ticks") == ["op (cycles)"]
    assert rows(trace, "measured") == ["phase", "Method::execute"]


def test_a_foreign_clock_is_no_wrap_of_the_runtimes(tmp_path: Path) -> None:
    """Ticks below 2**32 fall from 3 s to a few cycles and rise again with every event that QNN logs."""
    trace = load(tmp_path, executed(3 * S, qnn()), executed(3 * S + 10 * MS, qnn()))
    assert [w.code for w in trace.meta["warnings"]] == ["foreign_clock"]
    spans = trace.spans
    assert spans["start_ns"][spans["name"] == "DELEGATE_CALL"].tolist() == [3 * S, 3 * S + 10 * MS]
    assert rows(trace, "ticks")[0] == "Accelerator (execute) time"
    assert spans["dur_ns"].tolist()[0] == 1_500_000


def test_numbers_are_as_recorded_whatever_the_runtimes_ticks_are(tmp_path: Path) -> None:
    anchor = {"ticks": 1, "unix_ns": 1_700_000_000 * S, "tick_numerator": 125, "tick_denominator": 3}
    broken = profile("OPERATOR_CALL", 9_000, 8_000, instruction=0)  # an instant: rows move up
    trace = load(
        tmp_path,
        run(
            [
                broken,
                event("op", 0, 777),
                profile("DELEGATE_CALL", 6_000, 9_000, instruction=1),
                profile("Method::execute", 3_000, 12_000, chain=-1, instruction=0),
            ]
        ),
        sidecar={"anchor": anchor},
    )
    assert trace.spans["dur_ns"].tolist() == [777, 125_000, 375_000]
    assert trace.args[0]["end_ticks"] == 777


def test_no_answer_counts_them_as_time(tmp_path: Path) -> None:
    trace = load(tmp_path, *(executed(5 * S + i * 10 * MS, qnn()) for i in range(3)), strict=True)
    layers = trace.layers()
    assert layers["total_ns"].isna().all()
    assert layers["pct"].isna().all()
    assert len(layers) == 4
    (answer,) = trace.questions().iloc[[3]].itertuples()
    assert answer.measured == "no"
    assert "12 events" in answer.answer
    assert trace.delegates()["layers_ns"].isna().all()
    assert trace.delegates()["host_total_ns"].tolist() == [21 * MS]
    summary = trace.summary().set_index("item")["value"]
    assert summary["ticks records"] == 12
    assert pd.isna(summary["layers timed"])
    host = trace.host_gpu().set_index("measure")["ns"]
    assert int(host["host busy"]) == 21 * MS + 3 * 2 * US
    accounting = trace.meta["accounting"]
    assert accounting["ticks"] == 3 * (1_500_000 + 1_250_000 + 4_194_304 + 5_200)
    assert accounting["span_ns"] == 3 * (7 * MS + 7 * MS + 2 * US)


def test_a_record_sums_no_numbers_of_another_clock(tmp_path: Path) -> None:
    dump, _ = decode(etdump([executed(S, [event("cycles", 0, 9), event("phase", S + 1, S + 5)])]), "x")
    events = timed(dump["events"], Clock(), "x").events
    runs, _ = make_runs(dump, events, None)
    mapping: Any = SimpleNamespace(runs={0}, find=lambda *_: {})
    foreign = np.array([True, False, False, False])
    table = etrecord_table(mapping, events, runs, dump["strings"], foreign).set_index("delegate_debug_id")
    assert pd.isna(table.loc["cycles", "total_ns"])
    assert table.loc["phase", "total_ns"] == 4


def test_views_and_files_take_rows_without_a_domain(tmp_path: Path) -> None:
    trace = load(tmp_path, executed(5 * S, qnn()))
    trace.to_html(tmp_path / "page.html")
    trace.to_perfetto(tmp_path / "trace.pftrace")
    again = tv.load(tmp_path / "trace.pftrace")
    ticks = again.spans[again.spans["timing"] == "ticks"]
    assert ticks["domain"].isna().all()
    assert ticks["start_ns"].isna().all()
    assert ticks["dur_ns"].tolist() == [1_500_000, 1_250_000, 4_194_304, 5_200]
    assert again.tracks["domain"].isna().tolist() == [False, True]
    part = trace.select(trace.spans["domain"].isna())
    assert len(part.spans) == 4
    assert part.args[0]["unit"] == "unknown"
    assert len(tv.compare(trace, trace)) == 2


def test_widgets_take_rows_without_a_domain(tmp_path: Path) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed (extra lab)")
    trace = load(tmp_path, executed(5 * S, qnn()))
    trace.timeline()
    trace.explore()
