"""Protobuf files of other programs: refused by name, alone and in a folder, never an empty trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from perfetto_messages import BEGIN, END, event, field, mark, message, packet, track

from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.files import load
from torchtrt_viz.formats.io.foreign_protobuf import foreign_protobuf
from torchtrt_viz.formats.perfetto.sniff import looks_like_perfetto


def node(name: str, op: str, *inputs: str) -> bytes:
    """A NodeDef in its GraphDef."""
    attribute = message({1: "dtype", 2: message({6: 1})})
    return field(1, message({1: name, 2: op, 3: list(inputs), 5: attribute}))


def plane(name: str, number: int | None = None) -> bytes:
    """An XPlane with a line and an event, in its XSpace."""
    line = message({1: 1, 2: "Stream #1", 3: 5, 4: message({1: 1, 2: 10, 3: 50})})
    body = field(1, number) if number is not None else b""
    return field(1, body + message({2: name, 3: line, 4: message({1: 1, 2: message({1: 1, 2: "op"})})}))


GRAPH = node("x", "Placeholder") + node("w/read", "Identity", "w") + node("y", "MatMul", "x", "w/read")
ONNX = message({1: 8, 2: "pytorch", 3: "2.1", 7: message({1: message({1: "a", 4: "Relu"}), 2: "main"})})
SAVED = message({1: 1, 2: message({1: message({4: "serve", 5: "2.15.0"}), 2: GRAPH})})
PPROF = (
    field(1, message({1: 1, 2: 2})) * 2
    + field(2, message({1: 5, 2: 9}))
    + field(6, b"")
    + b"".join(field(6, text) for text in ("samples", "count"))
)
CONFIG = message(
    {1: message({1: 65536, 4: 1}), 2: message({1: message({1: "track_event", 2: 0})}), 3: 10_000}
)
HLO = field(
    1, message({1: "jit_f", 2: "main.1", 3: message({1: "main.1", 2: message({1: "p", 2: "parameter"})})})
)
UNKNOWN = field(1, message({1: "one", 2: "a b c", 7: 5})) * 4

FILES = {
    "graph.pb": (GRAPH, "GraphDef"),
    "model.onnx": (ONNX, "ONNX"),
    "saved_model.pb": (SAVED, "SavedModel"),
    "profile.pb": (PPROF, "pprof"),
    "config.pb": (CONFIG, "Perfetto trace configuration"),
    "module.hlo.pb": (HLO, "HLO"),
}


XPLANES = {
    "vm.xplane.pb": plane("/host:CPU") + plane("/device:GPU:0", 1),
    "device_first.pb": plane("/device:GPU:0 (pid 1)", 2) + plane("/host:CPU", 3),
    "metadata_first.pb": plane("/host:metadata"),
}


@pytest.mark.parametrize("name", XPLANES)
def test_an_xplane_is_read_and_named_to_who_takes_it_for_something_else(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_bytes(XPLANES[name])
    assert not looks_like_perfetto(XPLANES[name])
    assert load(path).meta["format"] == "xplane"
    with pytest.raises(TraceFormatError, match=r"XPlane.*format='xplane'"):
        load(path, format="perfetto")


@pytest.mark.parametrize("name", FILES)
def test_what_it_is_and_what_to_do(tmp_path: Path, name: str):
    content, what = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert not looks_like_perfetto(content)
    for options in ({}, {"strict": True}, {"format": "perfetto"}):
        with pytest.raises(TraceFormatError) as caught:
            load(path, **options)
        assert what in str(caught.value), options
        assert caught.value.hint


@pytest.mark.parametrize("name", FILES)
def test_in_a_folder_it_is_no_trace(tmp_path: Path, name: str):
    (tmp_path / name).write_bytes(FILES[name][0])
    (tmp_path / "run.pftrace").write_bytes(
        track(1, "main") + mark(1, event(BEGIN, "a", track=1)) + mark(2, event(END, track=1))
    )
    loaded = load(tmp_path)
    traces = list(loaded) if hasattr(loaded, "ranks") else [loaded]
    assert len(traces) == 1


def test_a_name_that_the_content_contradicts(tmp_path: Path):
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(HLO)
    with pytest.raises(TraceFormatError, match=r"(?s)HLO.*\.trace\.json\.gz"):
        load(path)
    path.write_bytes(GRAPH)  # its name says one thing, its content another: both are said
    with pytest.raises(TraceFormatError, match=r"XPlane.*GraphDef"):
        load(path)


def test_another_message_is_no_empty_trace(tmp_path: Path):
    path = tmp_path / "unknown.bin"
    path.write_bytes(UNKNOWN)
    assert foreign_protobuf(UNKNOWN) is None
    assert not looks_like_perfetto(UNKNOWN)
    for options in ({}, {"format": "perfetto"}):
        with pytest.raises(TraceFormatError) as caught:
            load(path, **options)
        assert caught.value.hint


def test_the_shared_files(cases: Path):
    path = cases / "outside/foreign_protobuf_as_empty_trace/frozen_graph.pb"
    for strict in (False, True):
        with pytest.raises(TraceFormatError, match="GraphDef"):
            load(path, strict=strict)


def test_traces_are_traces():
    for data in (
        track(1, "a"),
        packet({8: 1, 1: message({1: 0})}),
        packet({50: b"x\x9c\x03\x00\x00\x00\x00\x01"}, None),
        packet({11: event(BEGIN, "a")}, None),
        packet({36: bytes(16)}, None),
        packet({33: CONFIG}),
        packet({128: message({1: message({1: "NVIDIA H200"})})}, None),
    ):
        assert looks_like_perfetto(data)
        assert foreign_protobuf(data) is None
    for cut in range(6, len(GRAPH)):
        assert not looks_like_perfetto(GRAPH[:cut])
