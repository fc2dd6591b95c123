"""ETRecords: what is read of them, and which runs of a dump they are allowed to explain."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from etdump_writer import Table, etdump, profile, run

import torchtrt_viz as tv
from torchtrt_viz.errors import CaptureError, TraceFormatError
from torchtrt_viz.formats.etdump.etrecord import read_etrecord
from torchtrt_viz.formats.etdump.slim_etrecord import slim_etrecord

STACK = (
    'File "/home/me/model.py", line 12, in forward\n    x = self.fc(x)\n'
    'File "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward\n    return'
)


def node(
    name: str, target: str, handle: Any, module: str | None = None, stack: str | None = None
) -> dict[str, Any]:
    metadata = {"debug_handle": json.dumps(handle)}
    if module is not None:
        metadata["nn_module_stack"] = f"L__self__,,m.Net;L__self__{module},{module},torch.nn.Linear"
    if stack is not None:
        metadata["stack_trace"] = stack
    return {"name": name, "target": target, "inputs": [], "metadata": metadata}


def program(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"graph_module": {"graph": {"nodes": list(nodes)}}}


EDGE = "edge_dialect_exported_program"
SIN = "executorch.exir.dialects.edge.ops.aten.sin.default"
ADD = "executorch.exir.dialects.edge.ops.aten.add.Tensor"
COPY = "executorch.exir.dialects.edge.ops.dim_order_ops._to_dim_order_copy.default"


def members(**changes: Any) -> dict[str, Any]:
    """Return the members of an ETRecord of a method with a delegate, a kernel and another delegate."""
    out: dict[str, Any] = {
        "ETRECORD_V0": "",
        f"{EDGE}/forward": program(
            node("sin", SIN, 1, "a", STACK),
            node("cos", "executorch.exir.dialects.edge.ops.aten.cos.default", [2, 3], "a.b"),
            node("add", ADD, 4, "", 'File "/usr/lib/python3/site-packages/x.py", line 3, in f\n    y'),
            node("copy", COPY, 5),
        ),
        f"{EDGE}/forward_state_dict": "not JSON, and never opened",
        "debug_handle_map": {"forward": {"0": [1, 2, 3], "1": 4, "2": [5, 5]}},
        "delegate_map": {
            "forward": {
                "0": {
                    "name": "TensorRTBackend",
                    "delegate_map": {"torchtrt.delegate": [1, 2, 3], "layer_1": [2], "1": [1]},
                },
                "2": {"name": "XnnpackBackend", "delegate_map": {}},
            }
        },
        "export_graph_id": 140,
    }
    out.update(changes)
    return {name: content for name, content in out.items() if content is not None}


def record(path: Path, content: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in content.items():
            archive.writestr(name, value if isinstance(value, str) else json.dumps(value))
    return path


def execution(*identifiers: str | int, kernel: str = "add.out", at: int = 100, ended: bool = True) -> Table:
    """Return a run of that method: delegate 0 logs ``identifiers``, then the kernel, then delegate 2."""
    events = []
    for i, name in enumerate(identifiers):
        keys: dict[str, Any] = {"number": name} if isinstance(name, int) else {"identifier": name}
        events.append(profile(None, at + 11 + 3 * i, at + 12 + 3 * i, instruction=0, **keys))
    events += [
        profile("DELEGATE_CALL", at + 10, at + 99, instruction=0),
        profile(f"native_call_{kernel}", at + 101, at + 102, instruction=1),
        profile("OPERATOR_CALL", at + 100, at + 103, instruction=1),
        profile("DELEGATE_CALL", at + 110, at + 120, instruction=2),
    ]
    if ended:
        events.append(profile("Method::execute", at, at + 200, chain=-1, instruction=0))
    return run(events)


def load(tmp_path: Path, content: dict[str, Any], *runs: Table, **options: Any) -> Any:
    dump = tmp_path / "run.etdp"
    dump.write_bytes(etdump(list(runs)))
    return tv.load(dump, etrecord=record(tmp_path / "x.etrecord", content), **options)


def codes(trace: Any) -> list[str]:
    return [warning.code for warning in trace.meta["warnings"]]


def test_what_is_read(tmp_path: Path) -> None:
    found = read_etrecord(record(tmp_path / "x.etrecord", members()))
    method = found.methods["forward"]
    assert found.graph_id == 140
    assert found.problems == []
    assert method.instructions == {0: (1, 2, 3), 1: (4,), 2: (5,)}
    assert {i: d.backend for i, d in method.delegates.items()} == {0: "TensorRTBackend", 2: "XnnpackBackend"}
    sin, cos = method.find((1, 2, 3))
    assert (sin.op, sin.name, sin.module, sin.module_type) == (
        "aten.sin.default",
        "sin",
        "a",
        "torch.nn.Linear",
    )
    assert sin.source == "/home/me/model.py:12"
    assert sin.stack_trace == STACK
    assert (cos.op, cos.source, cos.module) == ("aten.cos.default", None, "a.b")
    assert method.find((4,))[0].source == "/usr/lib/python3/site-packages/x.py:3"
    assert method.find((5,))[0].op == "dim_order_ops._to_dim_order_copy.default"
    assert method.find((5,))[0].module is None


def test_events_lead_back_to_the_graph(tmp_path: Path) -> None:
    trace = load(tmp_path, members(), execution("torchtrt.delegate", "layer_1", 1))
    assert codes(trace) == []
    args = trace.args.read()
    assert args[0]["op_types"] == ["aten.sin.default", "aten.cos.default"]
    assert args[0]["backend"] == "TensorRTBackend"
    assert args[0]["module"] == "a, a.b"
    assert args[0]["source"] == "/home/me/model.py:12"
    assert args[1]["op_types"] == ["aten.cos.default"]
    assert args[1]["debug_handles"] == [2]
    assert args[2]["op_types"] == ["aten.sin.default"]
    assert args[4]["op_types"] == args[5]["op_types"] == ["aten.add.Tensor"]
    assert args[4]["modules"] == ["(root)"]
    assert args[6]["backend"] == "XnnpackBackend"
    assert "op_types" not in args[7]
    assert trace.spans["run_id"].tolist() == [
        *["forward/TensorRTBackend@0"] * 4,
        *["forward"] * 2,
        "forward/XnnpackBackend@2",
        "forward",
    ]
    table = trace.meta["etrecord"]["events"]
    assert table["delegate_debug_id"].tolist() == ["torchtrt.delegate", "layer_1", 1, None, None, None, None]
    assert table["name"].tolist()[3:] == [
        "DELEGATE_CALL",
        "native_call_add.out",
        "OPERATOR_CALL",
        "DELEGATE_CALL",
    ]
    assert table["op_types"].tolist()[1] == ["aten.cos.default"]
    assert table["total_ns"].tolist()[3:] == [89, 1, 3, 10]
    assert trace.meta["etrecord"]["methods"] == ["forward"]


def test_identifiers_are_looked_up_exactly(tmp_path: Path) -> None:
    """An identifier that contains a recorded one is not that one."""
    trace = load(
        tmp_path, members(), execution("layer_1", "layer_10", "layer_1.x", 11, 10, "torchtrt.delegate.x")
    )
    found = ["op_types" in args for args in trace.args.read(range(6))]
    assert found == [True, False, False, False, False, False]


@pytest.mark.parametrize(
    "wrong",
    [
        # an instruction that the record does not have
        run([profile("OPERATOR_CALL", 1, 2, instruction=9), profile("DELEGATE_CALL", 3, 4, instruction=0)]),
        # a kernel where the record has a delegate
        run([profile("OPERATOR_CALL", 1, 2, instruction=0)]),
        # a delegate where the record has a kernel
        run([profile("DELEGATE_CALL", 1, 2, instruction=1)]),
        # a run that ended without passing all instructions
        run([profile("DELEGATE_CALL", 2, 3, instruction=0), profile("Method::execute", 1, 4, chain=-1)]),
        # another kernel
        execution("torchtrt.delegate", kernel="mul.out", ended=False),
    ],
)
def test_a_record_of_another_program_is_not_used(tmp_path: Path, wrong: Table) -> None:
    content = members(delegate_map={"forward": {str(i): {"name": "X", "delegate_map": {}} for i in (0, 2)}})
    trace = load(tmp_path, content, wrong)
    assert codes(trace) == ["wrong_etrecord"]
    assert all("op_types" not in args and "backend" not in args for args in trace.args.read())
    assert len(trace.meta["etrecord"]["events"]) == 0
    with pytest.raises(TraceFormatError, match="another program"):
        load(tmp_path, content, wrong, strict=True)


def test_identifiers_that_are_all_unknown_tell_another_program(tmp_path: Path) -> None:
    trace = load(tmp_path, members(), execution("layer_77", kernel="mul.out", ended=False))
    assert codes(trace) == ["wrong_etrecord"]


def test_a_run_that_failed_is_explained(tmp_path: Path) -> None:
    failed = run([profile("DELEGATE_CALL", 10, 20, instruction=0)])
    trace = load(tmp_path, members(), failed, execution("layer_1"))
    assert codes(trace) == []
    assert trace.args[0]["backend"] == "TensorRTBackend"


def two_methods(first: str, second: str) -> dict[str, Any]:
    return {
        "ETRECORD_V0": "",
        f"{EDGE}/prefill": program(node("a", first, 1)),
        f"{EDGE}/decode": program(node("b", second, 1)),
        "debug_handle_map": {"prefill": {"0": 1}, "decode": {"0": 1}},
        "delegate_map": {"prefill": {}, "decode": {}},
    }


def of_kernel(name: str) -> Table:
    return run(
        [
            profile(f"native_call_{name}", 11, 12, instruction=0),
            profile("OPERATOR_CALL", 10, 13, instruction=0),
            profile("Method::execute", 9, 14, chain=-1, instruction=0),
        ]
    )


def test_methods_are_told_apart_by_their_kernels(tmp_path: Path) -> None:
    trace = load(
        tmp_path, two_methods(SIN, ADD), of_kernel("add.out"), of_kernel("sin.out"), of_kernel("add.out")
    )
    assert codes(trace) == []
    assert trace.meta["etdump"]["runs"]["method"].tolist() == ["decode", "prefill", "decode"]
    assert trace.args[0]["op_types"] == ["aten.add.Tensor"]
    assert trace.args[3]["op_types"] == ["aten.sin.default"]
    assert trace.spans["run_id"].tolist()[::3] == ["decode", "prefill", "decode"]


def test_methods_that_cannot_be_told_apart_are_not_guessed(tmp_path: Path) -> None:
    trace = load(tmp_path, two_methods(SIN, SIN), of_kernel("sin.out"))
    assert codes(trace) == ["ambiguous_method"]
    assert "op_types" not in trace.args[0]
    (tmp_path / "run.etdp.json").write_text(json.dumps({"blocks": [{"name": "Execute", "method": "decode"}]}))
    trace = load(tmp_path, two_methods(SIN, SIN), of_kernel("sin.out"))
    assert codes(trace) == []
    assert trace.args[0]["op_types"] == ["aten.sin.default"]


def test_some_runs_of_another_program(tmp_path: Path) -> None:
    trace = load(tmp_path, two_methods(SIN, ADD), of_kernel("sin.out"), of_kernel("mul.out"))
    assert codes(trace) == ["etrecord_unmatched_runs"]
    assert trace.args[0]["op_types"] == ["aten.sin.default"]
    assert "op_types" not in trace.args[3]


def test_older_writers_kept_one_method_without_its_name(tmp_path: Path) -> None:
    content = members()
    content[EDGE] = content.pop(f"{EDGE}/forward")
    content["debug_handle_map"] = content["debug_handle_map"]["forward"]
    content["delegate_map"] = content["delegate_map"]["forward"]
    trace = load(tmp_path, content, execution("layer_1"))
    assert codes(trace) == []
    assert trace.args[0]["op_types"] == ["aten.cos.default"]


def test_nodes_of_nested_graphs(tmp_path: Path) -> None:
    inner = program(node("sin", SIN, 1))["graph_module"]
    outer = node("cond", "torch.ops.higher_order.cond", 9)
    outer["inputs"] = [{"arg": {"as_graph": {"name": "true", **inner}}}, {"arg": {"as_int": 1}}, None]
    content = two_methods(SIN, ADD)
    content[f"{EDGE}/prefill"] = program(outer)
    found = read_etrecord(record(tmp_path / "x.etrecord", content))
    assert found.methods["prefill"].nodes[1][0].op == "aten.sin.default"
    assert found.methods["prefill"].nodes[9][0].op == "higher_order.cond"


def test_a_record_without_maps_explains_nothing(tmp_path: Path) -> None:
    trace = load(tmp_path, members(debug_handle_map=None, delegate_map=None), execution("layer_1"))
    assert codes(trace) == ["etrecord_without_maps"]


def test_damaged_members_are_left_out(tmp_path: Path) -> None:
    trace = load(tmp_path, members(**{f"{EDGE}/forward": '{"graph_module": '}), execution("layer_1"))
    assert codes(trace) == ["etrecord_damaged"]
    assert trace.args[0]["backend"] == "TensorRTBackend"
    assert trace.args[0]["op_types"] == []


@pytest.mark.parametrize(
    "value",
    [
        [],
        7,
        None,
        "x",
        {"forward": 3},
        {"forward": {"x": [1], "0": ["a", None, True], "1": {"y": 2}}},
        {"forward": []},
    ],
)
def test_maps_of_any_shape_do_no_harm(tmp_path: Path, value: Any) -> None:
    content = members(debug_handle_map=json.dumps(value), delegate_map=json.dumps(value))
    trace = load(tmp_path, content, execution("layer_1"))
    assert codes(trace) == ["etrecord_without_maps"]


@pytest.mark.parametrize(
    "graph", [[], {"nodes": 3}, {"nodes": [3, {"metadata": []}, {"metadata": {"debug_handle": "{"}}]}]
)
def test_graphs_of_any_shape_do_no_harm(tmp_path: Path, graph: Any) -> None:
    content = members(**{f"{EDGE}/forward": {"graph_module": {"graph": graph}}})
    trace = load(tmp_path, content, execution("layer_1"))
    assert codes(trace) == []
    assert trace.args[0]["op_types"] == []


def test_what_is_no_record(tmp_path: Path) -> None:
    dump = tmp_path / "run.etdp"
    dump.write_bytes(etdump([execution("layer_1")]))
    text = tmp_path / "text.etrecord"
    text.write_text("something else")
    trace = tv.load(dump, etrecord=text)
    assert codes(trace) == ["etrecord_unreadable"]
    assert "etrecord" not in trace.meta
    assert len(trace.spans) == 6
    other = record(tmp_path / "other.etrecord", {"archive/data.pkl": "x"})
    with pytest.raises(TraceFormatError, match="ETRECORD_V0"):
        read_etrecord(other)
    with pytest.raises(TraceFormatError, match="ETRECORD_V0"):
        tv.load(dump, etrecord=other, strict=True)
    with pytest.raises(TraceFormatError, match="no such file"):
        tv.load(dump, etrecord=tmp_path / "missing.etrecord")


def test_a_slim_record_explains_the_same_and_holds_no_weights(tmp_path: Path) -> None:
    heavy = {f"{EDGE}/forward_constants": "x" * 100_000, f"{EDGE}/forward_example_inputs": "inputs"}
    whole = record(tmp_path / "whole.etrecord", members(**heavy))
    slim = slim_etrecord(whole, tmp_path / "slim.etrecord")
    with zipfile.ZipFile(slim) as archive:
        assert set(archive.namelist()) == {
            "ETRECORD_V0",
            f"{EDGE}/forward",
            "debug_handle_map",
            "delegate_map",
            "export_graph_id",
        }
    assert slim.stat().st_size < 3_000
    assert read_etrecord(slim).methods == read_etrecord(whole).methods
    with pytest.raises(CaptureError, match="exists already"):
        slim_etrecord(whole, slim)
    first = slim.read_bytes()
    slim_etrecord(whole, slim, force=True)
    assert slim.read_bytes() == first  # no date of its making


def test_what_is_no_record_is_not_copied(tmp_path: Path) -> None:
    other = record(tmp_path / "other.zip", {"model.json": "{}"})
    with pytest.raises(TraceFormatError, match=r"not an ETRecord.*ETRECORD_V0"):
        slim_etrecord(other, tmp_path / "out")
    (tmp_path / "text").write_text("no zip")
    for name in ("text", "absent"):
        with pytest.raises(TraceFormatError, match="not an ETRecord"):
            slim_etrecord(tmp_path / name, tmp_path / "out")
    assert not (tmp_path / "out").exists()
