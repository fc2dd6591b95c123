"""From the columns of an ETDump to a trace: names, kinds, instances, runs, instants, arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from etdump_writer import Scalar, Table, allocation, debug, etdump, profile, run, tensor

import torchtrt_viz as tv
from torchtrt_viz.errors import TorchTrtVizError, TraceFormatError
from torchtrt_viz.formats.etdump.tensor import debug_tensor


def load(tmp_path: Path, *runs: Table, **options: Any) -> Any:
    path = tmp_path / "run.etdp"
    path.write_bytes(etdump(list(runs)))
    return tv.load(path, **options)


def meta(**facts: Any) -> bytes:
    return json.dumps(facts).encode()


def call(
    at: int, instruction: int, number: int, runtime: str = "host", timing: str = "measured"
) -> list[Table]:
    """Return one call of an engine's delegate, from ``at`` to ``at`` + 1000."""
    facts = meta(
        method="forward", call=number, engine_id=f"abc_forward_{instruction}", engine_runtime=runtime
    )
    return [
        profile(None, at + 101, at + 151, identifier="torchtrt.input_binding", instruction=instruction),
        profile(None, at + 201, at + 901, identifier="torchtrt.enqueue_host", instruction=instruction),
        profile(
            None,
            at + 211,
            at + 311,
            identifier="layer_0000",
            instruction=instruction,
            metadata=meta(name="conv", op="conv2d", timing=timing),
        ),
        profile(
            None,
            at + 311,
            at + 811,
            identifier="layer_0001",
            instruction=instruction,
            metadata=meta(name="fc", op="linear", module="head", timing=timing),
        ),
        profile(
            None, at + 51, at + 951, identifier="torchtrt.delegate", instruction=instruction, metadata=facts
        ),
        profile("DELEGATE_CALL", at, at + 1000, instruction=instruction),
    ]


def executed(at: int, number: int, **options: Any) -> Table:
    return run(
        [
            *call(at + 100, 0, number, **options),
            profile("native_call_add.out", at + 1201, at + 1303, instruction=1),
            profile("OPERATOR_CALL", at + 1200, at + 1310, instruction=1),
            profile("Method::execute", at, at + 2000, chain=-1, instruction=0),
        ]
    )


def test_a_whole_dump(tmp_path: Path) -> None:
    loading = run(
        [
            profile("Method::init", 20, 80, chain=-1, instruction=0),
            profile("Program::load_method", 10, 90, chain=-1, instruction=0),
        ],
        "Default",
    )
    trace = load(tmp_path, loading, executed(1_000, 0), executed(5_000, 1))
    spans = trace.spans
    assert trace.meta["warnings"] == []
    assert spans["name"].tolist()[:11] == [
        "Method::init",
        "Program::load_method",
        "torchtrt.input_binding",
        "torchtrt.enqueue_host",
        "conv",
        "fc",
        "torchtrt.delegate",
        "DELEGATE_CALL",
        "native_call_add.out",
        "OPERATOR_CALL",
        "Method::execute",
    ]
    assert spans["kind"].tolist()[:11] == [
        "other",
        "other",
        "phase",
        "phase",
        "layer",
        "layer",
        "delegate",
        "delegate",
        "operator",
        "operator",
        "method",
    ]
    assert spans["iteration"].fillna(-1).tolist() == [-1] * 2 + [0] * 9 + [1] * 9
    one_run = np.array([4, 4, 1, 1, 5, 8, 7, 8, -1])
    assert spans["parent"].tolist() == [
        1,
        -1,
        *np.where(one_run < 0, -1, one_run + 2).tolist(),
        *np.where(one_run < 0, -1, one_run + 11).tolist(),
    ]
    assert spans["start_ns"].tolist()[2:4] == [1_201, 1_301]
    assert spans["self_ns"].tolist()[3] == 700 - 100 - 500
    assert set(spans["domain"]) == {"host"}
    assert set(spans["timing"]) == {"measured"}
    assert spans["track"].tolist() == [0] * 20
    engine = "abc_forward_0"
    assert spans["run_id"].tolist()[2:11] == [engine] * 6 + ["forward"] * 3
    assert spans["run_id"].isna().tolist()[:2] == [True, True]
    assert trace.tracks["type"].tolist() == ["method"]
    runs = trace.meta["etdump"]["runs"]
    assert runs["method"].tolist() == [None, "forward", "forward"]
    assert runs["iteration"].tolist() == [-1, 0, 1]
    assert runs["status"].tolist() == ["load", "ok", "ok"]
    assert runs["start_ns"].tolist() == [10, 1_000, 5_000]
    assert runs["dur_ns"].tolist()[1:] == [2_000, 2_000]
    assert runs["dur_ns"].isna().tolist() == [True, False, False]


def test_arguments(tmp_path: Path) -> None:
    trace = load(tmp_path, executed(1_000, 0), executed(5_000, 41))
    engine = {"engine_id": "abc_forward_0", "engine_runtime": "host"}
    where = {"block": 1, "block_name": "Execute", "method": "forward", "chain": 0, "instruction": 0}
    assert trace.args[13] == {**where, "delegate_debug_id": "torchtrt.delegate", **engine, "call": 41}
    assert trace.args[12] == {
        **where,
        "delegate_debug_id": "layer_0001",
        **engine,
        "name": "fc",
        "op": "linear",
        "module": "head",
        "timing": "measured",
    }
    assert trace.args[14] == {**where, **engine}
    assert trace.args[17] == {"block": 1, "block_name": "Execute", "method": "forward", "chain": -1}
    assert trace.args.column("op")[2:4].tolist() == ["conv2d", "linear"]


def test_layers_of_a_device_have_a_track_of_their_own(tmp_path: Path) -> None:
    trace = load(tmp_path, executed(1_000, 0, runtime="tensorrt", timing="device"))
    spans = trace.spans
    assert spans["domain"].tolist()[:6] == ["host", "host", "gpu", "gpu", "host", "host"]
    assert spans["timing"].tolist()[:6] == [
        "measured",
        "measured",
        "modeled",
        "modeled",
        "measured",
        "measured",
    ]
    assert spans["parent"].tolist()[2:4] == [-1, -1]
    assert spans["track"].tolist()[:6] == [0, 0, 1, 1, 0, 0]
    assert trace.tracks["label"].tolist()[1] == "engine abc_forward_0"
    assert trace.tracks["domain"].tolist() == ["host", "gpu"]
    # the device's time takes nothing from the host's
    assert spans["self_ns"].tolist()[1] == 700


def test_the_devices_time_of_a_call_is_gpu_time(tmp_path: Path) -> None:
    def one(at: int, number: int) -> Table:
        *events, delegate, outer = call(at + 100, 0, number, runtime="tensorrt", timing="device")
        # as an engine that stays asynchronous writes it: what it tells at call 1 is call 0's
        device = meta(timing="device", domain="gpu", **({"call": number - 1} if number else {}))
        later = profile(
            None, at + 301, at + 1701, identifier="torchtrt.enqueue_gpu", instruction=0, metadata=device
        )
        whole = profile("Method::execute", at, at + 2000, chain=-1, instruction=0)
        return run([*events, later, delegate, outer, whole])

    trace = load(tmp_path, one(1_000, 0), one(5_000, 1))
    spans = trace.spans
    rows = np.flatnonzero(spans["name"] == "torchtrt.enqueue_gpu")
    assert spans["kind"].to_numpy()[rows].tolist() == ["phase", "phase"]
    assert spans["domain"].to_numpy()[rows].tolist() == ["gpu", "gpu"]
    assert spans["timing"].to_numpy()[rows].tolist() == ["modeled", "modeled"]
    assert spans["dur_ns"].to_numpy()[rows].tolist() == [1_400, 1_400]
    assert spans["run_id"].to_numpy()[rows].tolist() == ["abc_forward_0"] * 2
    assert trace.tracks["domain"].to_numpy()[spans["track"].to_numpy()[rows]].tolist() == ["gpu", "gpu"]
    assert trace.args[int(rows[1])]["call"] == 0
    # no part of the host's times, which are what they are without it
    host = (spans["kind"] == "phase") & (spans["domain"] == "host")
    assert set(spans["name"][host]) == {"torchtrt.input_binding", "torchtrt.enqueue_host"}
    assert "torchtrt.enqueue_gpu" not in set(trace.phases()["phase"])
    delegates = trace.delegates()
    assert delegates["gpu_ns"].tolist() == [2_800]
    assert delegates["launch_overhead_ns"].tolist() == [1_400]


def test_durations_laid_end_to_end_are_modeled(tmp_path: Path) -> None:
    trace = load(tmp_path, executed(1_000, 0, timing="laid_out"))
    spans = trace.spans
    assert spans["timing"].tolist()[2:4] == ["modeled", "modeled"]
    assert spans["parent"].tolist()[2:4] == [1, 1]
    assert spans["self_ns"].tolist()[1] == 100
    assert spans["domain"].tolist()[2] == "host"


def test_layers_that_share_a_name_stay_apart(tmp_path: Path) -> None:
    events = [
        profile(None, 11, 12, identifier=f"layer_{i}", instruction=0, metadata=meta(name="relu"))
        for i in range(2)
    ]
    events += [
        profile(None, 13, 14, number=5, instruction=0, metadata=meta(name="conv")),
        profile(None, 10, 15, identifier="torchtrt.delegate", instruction=0),
        profile("DELEGATE_CALL", 9, 16, instruction=0),
        profile(None, 21, 22, identifier="layer_0", instruction=1, metadata=meta(name="relu")),
        profile(None, 20, 25, identifier="torchtrt.delegate", instruction=1),
        profile("DELEGATE_CALL", 19, 26, instruction=1),
    ]
    names = load(tmp_path, run(events)).spans["name"].tolist()
    assert names == [
        "relu [layer_0]",
        "relu [layer_1]",
        "conv",
        "torchtrt.delegate",
        "DELEGATE_CALL",
        "relu",
        "torchtrt.delegate",
        "DELEGATE_CALL",
    ]


def test_other_delegates_names_are_left_as_they_are(tmp_path: Path) -> None:
    events = [
        profile(None, 11, 12, identifier='{"name": "where"}', instruction=3, metadata=b'{"name": "x"}'),
        profile(None, 13, 14, number=0, instruction=3, metadata=b"\xff\x00"),
        profile(None, 14, 15, identifier="", instruction=3, metadata=b"plain text"),
        profile("DELEGATE_CALL", 10, 16, instruction=3),
    ]
    trace = load(tmp_path, run(events))
    assert trace.spans["name"].tolist() == ['{"name": "where"}', "#0", "(no name)", "DELEGATE_CALL"]
    assert trace.spans["run_id"].tolist() == ["delegate@3"] * 4
    assert trace.args[0]["name"] == "x"
    assert trace.args[1]["metadata"] == "0xff00"
    assert trace.args[1]["delegate_debug_id"] == 0
    assert trace.args[2]["metadata"] == "plain text"


def test_metadata_cannot_pose_as_what_the_reader_found(tmp_path: Path) -> None:
    events = [
        profile(
            None, 1, 2, identifier="x", instruction=3, metadata=meta(instruction=9, op_types=["aten.add"])
        ),
    ]
    (args,) = load(tmp_path, run(events)).args.read()
    assert args["instruction"] == 3
    assert args["metadata"] == {"instruction": 9}


def test_metadata_with_bare_nan_is_read(tmp_path: Path) -> None:
    (args,) = load(
        tmp_path, run([profile(None, 1, 2, identifier="x", metadata=b'{"flops": NaN, "n": 1}')])
    ).args.read()
    assert args["n"] == 1


def test_failed_runs_are_unfinished_methods(tmp_path: Path) -> None:
    failed = run([profile("DELEGATE_CALL", 5_000, 5_100, instruction=0)])
    empty = run([])
    trace = load(tmp_path, executed(1_000, 0), failed, empty, executed(9_000, 1))
    assert trace.meta["etdump"]["runs"]["status"].tolist() == ["ok", "unfinished", "unfinished", "ok"]
    assert trace.meta["etdump"]["runs"]["iteration"].tolist() == [0, 1, 2, 3]
    (instant,) = trace.instants.to_dict("records")
    assert instant["name"] == "Method::execute"
    assert instant["state"] == "unfinished"
    assert instant["ts_ns"] == 5_000
    assert trace.instant_args[0]["iteration"] == 1
    assert trace.meta["warnings"] == []


def test_times_that_cannot_be_are_instants(tmp_path: Path) -> None:
    top = (1 << 64) - 1
    events = [
        profile("good", 10, 20, instruction=1),
        profile("backwards", 100, 90, instruction=2),
        profile("beyond", 50, top, instruction=3),
        debug({0: Scalar("<b", 2)}, instruction=1),
        profile("last", 30, 40, instruction=4),
    ]
    trace = load(tmp_path, run(events))
    assert trace.spans["name"].tolist() == ["good", "last"]
    assert trace.instants["name"].tolist() == ["logged value", "backwards", "beyond", "Method::execute"]
    assert trace.instants["state"].tolist() == ["instant", "invalid", "invalid", "unfinished"]
    assert trace.instants["ts_ns"].tolist() == [40, 100, 50, 10]
    assert trace.instant_args[2]["instruction"] == 3
    assert trace.args[1]["instruction"] == 4
    (warning,) = trace.meta["warnings"]
    assert (warning.code, warning.count) == ("invalid_duration", 2)
    with pytest.raises(TraceFormatError):
        load(tmp_path, run(events), strict=True)


def test_logged_tensors_lead_to_the_debug_buffer(tmp_path: Path) -> None:
    content = np.arange(24, dtype=np.float32)
    buffer = b"\0" * 64 + content.tobytes() + np.array([0x3F80, 0xC000], np.uint16).tobytes()
    events = [
        debug({0: Scalar("<b", 5), 1: tensor(6, [2, 3, 4], [12, 4, 1], 64)}, instruction=7),
        debug({0: Scalar("<b", 5), 1: tensor(6, [4, 6], [1, 4], 64)}, instruction=7, identifier="y"),
        debug({0: Scalar("<b", 5), 1: tensor(15, [2], [1], 160)}, chain=(1 << 64) - 1),
        debug({0: Scalar("<b", 6), 2: Table({0: [tensor(4, [1], [1], 0), tensor(6, [], [], 68)]})}),
        debug({0: Scalar("<b", 1), 3: Table({0: Scalar("<q", -5)})}, name="n"),
        profile("OPERATOR_CALL", 10, 20, instruction=7),
        profile("Method::execute", 5, 25, chain=-1, instruction=0),
    ]
    trace = load(tmp_path, run(events))
    assert trace.instants["ts_ns"].tolist() == [20] * 5
    assert trace.instants["name"].tolist() == ["logged value"] * 4 + ["n"]
    args = trace.instant_args.read()
    assert args[0] == {
        "block": 0,
        "chain": 0,
        "instruction": 7,
        "value_type": "tensor",
        "dtype": "float32",
        "sizes": [2, 3, 4],
        "strides": [12, 4, 1],
        "offset": 64,
        "nbytes": 96,
    }
    assert debug_tensor(args[0], buffer).tolist() == content.reshape(2, 3, 4).tolist()
    assert args[1]["delegate_debug_id"] == "y"
    assert debug_tensor(args[1], buffer).tolist() == content.reshape(6, 4).T.tolist()
    assert args[2]["chain"] == -1
    assert debug_tensor(args[2], buffer).tolist() == [1.0, -2.0]
    assert [entry["dtype"] for entry in args[3]["tensors"]] == ["int64", "float32"]
    assert debug_tensor(args[3]["tensors"][1], buffer).tolist() == 1.0
    assert args[4]["value"] == -5


@pytest.mark.parametrize(
    ("sizes", "strides", "offset", "message"),
    [
        ([100], [1], 0, "belongs to another dump"),
        ([1], [1], -8, "belongs to another dump"),
        ([1 << 40], [0], 0, "belongs to another dump"),
        ([2], [-1], 0, "cannot be"),
    ],
)
def test_tensors_outside_of_the_buffer(
    sizes: list[int], strides: list[int], offset: int, message: str
) -> None:
    args = {"dtype": "float32", "sizes": sizes, "strides": strides, "offset": offset}
    with pytest.raises(TorchTrtVizError, match=message):
        debug_tensor(args, bytes(64))
    with pytest.raises(TorchTrtVizError, match="no tensor"):
        debug_tensor({}, b"")
    with pytest.raises(TorchTrtVizError, match="no type"):
        debug_tensor({**args, "dtype": "float8_e5m2"}, b"")


def test_allocations_are_instants_of_their_allocator(tmp_path: Path) -> None:
    events = [allocation(2, 4096), profile("A", 10, 20), allocation(9, 1)]
    trace = load(tmp_path, run(events, allocators=["method", "planned"]), run([allocation(1, 7)]))
    frame = trace.meta["etdump"]["allocations"]
    assert frame["allocator"].tolist() == ["planned", "allocator 9", "allocator 1"]
    assert frame["bytes"].tolist() == [4096, 1, 7]
    assert frame["ts_ns"].isna().tolist() == [False, False, True]
    assert trace.instants["name"].tolist()[:2] == ["allocate: planned", "allocate: allocator 9"]
    assert trace.instants["ts_ns"].tolist()[:2] == [20, 20]
    assert trace.instants["kind"].tolist()[:2] == ["memory", "memory"]
    assert trace.instant_args[0] == {"block": 0, "allocator": "planned", "bytes": 4096}


def test_events_that_repeat_within_a_run_are_all_kept(tmp_path: Path) -> None:
    events = []
    for turn in range(5):
        at = 100 * turn + 10
        events.append(profile("native_call_mul.out", at, at + 5, instruction=3))
        events.append(profile("OPERATOR_CALL", at - 1, at + 6, instruction=3))
    trace = load(tmp_path, run([*events, profile("Method::execute", 1, 600, chain=-1, instruction=0)]))
    assert len(trace.spans) == 11
    assert trace.spans["parent"].tolist() == [1, 10, 3, 10, 5, 10, 7, 10, 9, 10, -1]


def test_runs_that_overlap_lie_on_lanes(tmp_path: Path) -> None:
    def at(start: int, end: int) -> Table:
        return run([profile("Method::execute", start, end, chain=-1, instruction=0)])

    trace = load(tmp_path, at(0, 100), at(50, 150), at(120, 130), at(160, 170))
    assert trace.spans["track"].tolist() == [0, 1, 0, 0]
    assert len(trace.tracks) == 2


def test_delegates_that_disagree_name_no_method(tmp_path: Path) -> None:
    events = [
        profile(None, 1, 2, identifier="torchtrt.delegate", instruction=0, metadata=meta(method="a")),
        profile(None, 3, 4, identifier="torchtrt.delegate", instruction=1, metadata=meta(method="b")),
    ]
    trace = load(tmp_path, run(events))
    assert trace.meta["etdump"]["runs"]["method"].tolist() == [None]
    assert trace.spans["run_id"].tolist() == ["delegate@0", "delegate@1"]


def test_names_that_become_equal_are_one_category(tmp_path: Path) -> None:
    events = [
        profile(b"a\xff", 1, 2),
        profile(b"a\xfe", 3, 4),
        profile(None, 5, 6, number=1),
        profile("#1", 7, 8),
    ]
    trace = load(tmp_path, run(events))
    assert trace.spans["name"].tolist() == ["a�", "a�", "#1", "#1"]
    assert [warning.code for warning in trace.meta["warnings"]] == ["invalid_text"]


def test_a_cut_off_dump_keeps_what_is_whole(tmp_path: Path) -> None:
    data = etdump([executed(1_000, 0), executed(5_000, 1)])
    path = tmp_path / "cut.etdp"
    path.write_bytes(data[: len(data) * 3 // 4])
    trace = tv.load(path)
    assert 9 <= len(trace.spans) < 18
    codes = {warning.code: warning for warning in trace.meta["warnings"]}
    assert codes["truncated"].offset == len(data) * 3 // 4
    assert codes["damaged"].offset is not None
    with pytest.raises(TraceFormatError, match="Load without strict=True"):
        tv.load(path, strict=True)


def test_bytes_behind_the_dump_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "more.etdp"
    data = etdump([executed(1_000, 0)])
    path.write_bytes(data + b"surplus bytes")
    trace = tv.load(path)
    assert len(trace.spans) == 9
    assert [(w.code, w.offset) for w in trace.meta["warnings"]] == [("trailing_bytes", len(data))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes"),
        (b"ED", "identifier ED00"),
        (b"\x10\0\0\0ED00", "reference that leads outside"),
        (b"\x04\0\0\0\x04\0\0\0ED00", "damaged"),
    ],
)
def test_what_is_no_dump_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.etdp"
    path.write_bytes(content)
    with pytest.raises(TraceFormatError, match=message) as caught:
        tv.load(path, format="etdump")
    assert str(path) in str(caught.value)
    assert caught.value.offset is not None
    assert caught.value.hint


def test_the_rank_is_passed_on(tmp_path: Path) -> None:
    from torchtrt_viz.formats.io.options import LoadOptions
    from torchtrt_viz.formats.io.source import Source
    from torchtrt_viz.loading.reading import read_source

    path = tmp_path / "run.etdp"
    path.write_bytes(etdump([executed(1_000, 0)]))
    trace = read_source(Source(path), LoadOptions(rank=3))
    assert set(trace.spans["rank"]) == {3}
    assert trace.tracks["rank"].tolist() == [3]
    assert trace.meta["rank"] == 3
