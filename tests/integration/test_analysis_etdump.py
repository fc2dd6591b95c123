"""Tables of real ETDumps: what executorch's Inspector reports for the same files, and what it cannot."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torchtrt_viz as tv
from torchtrt_viz.analysis import orchestration, provenance, variability
from torchtrt_viz.trace import Trace

FILES = (
    "probe_layers",
    "mv2q_portable",
    "encoder_xnnpack",
    "mv2q_xnnpack",
    "qcnn_xnnpack_int8",
    "dynamic_xnnpack",
)


def _load(corpus: Path, name: str) -> Trace:
    record = corpus / "etdump" / f"{name}.etrecord"
    trace = tv.load(corpus / "etdump" / f"{name}.etdp", etrecord=record if record.exists() else None)
    assert isinstance(trace, Trace)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_statistics_equal_those_of_inspector(corpus: Path, name: str) -> None:
    devtools = pytest.importorskip("executorch.devtools")
    from executorch.devtools.inspector import TimeScale

    inspector = devtools.Inspector(
        etdump_path=str(corpus / "etdump" / f"{name}.etdp"), target_time_scale=TimeScale.NS
    )
    wanted: dict[Any, list[float]] = defaultdict(list)
    for block in inspector.event_blocks:
        if block.name != "Execute":
            continue
        for event in block.events:
            key = (event._instruction_id, event.name)
            wanted[key].append((event.perf_data.raw, event.perf_data))
    trace = _load(corpus, name)
    ours: dict[Any, list[int]] = defaultdict(list)
    details = trace.args.read()
    spans = trace.spans
    for row in range(len(spans)):
        found = details[row]
        if found.get("block_name") != "Execute":
            continue
        label = str(found.get("delegate_debug_id", spans["name"].iloc[row]))
        ours[found.get("instruction", 0), label].append(int(spans["dur_ns"].iloc[row]))
    assert set(ours) == set(wanted)
    for key, parts in wanted.items():
        mine = np.array(ours[key], dtype=np.float64)
        raw = np.concatenate([np.asarray(values, dtype=np.float64) for values, _ in parts])
        assert np.sort(mine) == pytest.approx(np.sort(raw))
        if len(parts) == 1:
            (_, perf) = parts[0]
            assert mine.mean() == pytest.approx(perf.avg)
            assert np.quantile(mine, (0.1, 0.5, 0.9)).tolist() == pytest.approx(
                [perf.p10, perf.p50, perf.p90]
            )
            assert (mine.min(), mine.max()) == pytest.approx((perf.min, perf.max))


@pytest.mark.parametrize("name", FILES)
def test_tables_divide_the_time_of_the_methods(corpus: Path, name: str) -> None:
    trace = _load(corpus, name)
    spans = trace.spans
    methods = int(spans.loc[(spans["kind"] == "method").to_numpy(), "dur_ns"].sum())
    assert methods > 0
    parts = orchestration(trace)
    assert parts["total_ns"].sum() == methods
    delegates = trace.delegates()
    measured = int(delegates["host_total_ns"].sum())
    assert parts.set_index("part").loc["delegates", "total_ns"] == measured
    if measured:
        assert delegates["host_pct"].sum() == pytest.approx(100 * measured / methods)
    for _, part in trace.layers().groupby("engine"):
        # an engine whose clock saw no time at all has no shares
        whole = part["pct"].sum()
        assert whole == pytest.approx(100) if part["total_ns"].sum() else part["pct"].isna().all()
    for _, part in trace.phases().groupby("delegate"):
        assert part["pct"].sum() == pytest.approx(100)


def test_phases_of_the_seven_events(corpus: Path) -> None:
    table = _load(corpus, "probe_layers").phases(rest=False)
    names = {
        "torchtrt.input_binding",
        "torchtrt.shape_inference",
        "torchtrt.output_binding",
        "torchtrt.enqueue_host",
        "torchtrt.output_staging",
        "torchtrt.synchronize",
    }
    for _, part in table.groupby("delegate"):
        assert set(part["phase"]) == names
        assert (part["calls"] == 5).all()
    enqueue = table[table["phase"] == "torchtrt.enqueue_host"]
    assert (enqueue["role"] == "launch overhead").all()


def test_events_lead_back_to_the_exported_graph_where_it_was_recorded(corpus: Path) -> None:
    table = provenance(_load(corpus, "probe_layers")).set_index(["of", "what"])
    assert table.loc[("delegate calls", "graph operators"), "known"] == 2
    assert table.loc[("layers", "graph operators"), "known"] == 5, "one layer has no entry in the map"
    bare = tv.load(corpus / "etdump" / "probe_layers.etdp")
    assert provenance(bare)["known"].sum() == 0
    assert bare.questions()["measured"].tolist()[5] == "no"


def test_variability_of_three_hundred_runs(corpus: Path) -> None:
    trace = tv.load(corpus / "etdump" / "cnn_xnnpack_300runs.etdp")
    durations = trace.spans.loc[(trace.spans["kind"] == "method").to_numpy(), "dur_ns"].to_numpy()
    row = variability(trace, level="method", skip_warmup=False).iloc[0]
    assert row["samples"] == len(durations) == 300
    assert row["p99_ns"] == pytest.approx(np.quantile(durations, 0.99))
    assert row["cv_pct"] == pytest.approx(100 * durations.std(ddof=1) / durations.mean())


def test_every_table_of_every_readable_dump(corpus: Path) -> None:
    read = 0
    for path in sorted((corpus / "etdump").glob("*.etdp")):
        try:
            trace = tv.load(path)
        except tv.TraceFormatError:
            continue
        for table in (
            "operators",
            "kernels",
            "delegates",
            "phases",
            "layers",
            "memory",
            "host_gpu",
            "summary",
        ):
            getattr(trace, table)()
        assert len(trace.questions()) == 6
        trace.explain()
        read += 1
    assert read >= 20
