"""The small inputs from other people's reports that are about names, copies and merged ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

import torchtrt_viz as tv


@pytest.fixture(scope="module")
def outside(cases: Path) -> Path:
    folder = cases / "outside"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder


@pytest.mark.parametrize("name", ["", "sglang_merged_ranks.json"])
def test_merged_ranks_in_one_file(outside: Path, name: str) -> None:
    session = tv.load(outside / "merged_ranks_one_file" / name)
    assert isinstance(session, tv.Session)
    assert session.ranks["rank"].tolist() == [0, 1]
    for rank in (0, 1):
        trace = session[rank]
        kernels = trace.spans[trace.spans["kind"] == "kernel"]
        assert set(kernels["name"]) == {f"gemm_rank{rank}"}
        launches = trace.spans[trace.spans["kind"] == "runtime"].set_index("correlation")["start_ns"]
        linked = kernels["correlation"].map(launches)
        assert len(kernels) == linked.notna().sum() == 4
        assert (trace.flows["source"] >= 0).sum() == (trace.flows["target"] >= 0).sum() == 4


def test_a_date_is_no_host_and_companions_are_no_ranks(outside: Path) -> None:
    session = tv.load(outside / "names_invent_hosts" / "hta_named")
    assert session.ranks["rank"].tolist() == [0, 1]
    assert session.ranks["host"].isna().all()
    trace = tv.load(outside / "names_invent_hosts" / "mac.zip")
    assert isinstance(trace, tv.Trace)
    assert trace.meta["rank"] == 0
    assert not [w for w in trace.meta["warnings"] if w.code in ("damaged_rank", "not_a_trace")]


def test_one_recording_of_jax_beside_an_xplane(outside: Path) -> None:
    for depth in ("", "jaxlog/plugins/profile/2026_01_02"):
        trace = tv.load(outside / "same_recording_twice" / depth)
        assert isinstance(trace, tv.Trace)
        assert Path(trace.meta["sources"][0]).name == "vm.trace.json.gz"
        said = {Path(w.path).name: w.message for w in trace.meta["warnings"] if w.path}
        assert "same recording" in said["perfetto_trace.json.gz"]
        assert "XPlane" in said["vm.xplane.pb"]


def test_several_documents_in_one_file(outside: Path) -> None:
    trace = tv.load(outside / "several_documents_in_one_file")
    assert len(trace.spans) == 35
    assert "another_document" in [w.code for w in trace.meta["warnings"]]


@pytest.mark.parametrize("strict", [False, True])
def test_a_graph_is_no_trace(outside: Path, strict: bool) -> None:
    folder = outside / "foreign_protobuf_as_empty_trace"
    for path in (folder, folder / "frozen_graph.pb"):
        with pytest.raises(tv.TraceFormatError, match="GraphDef"):
            tv.load(path, strict=strict)
