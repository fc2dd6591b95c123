"""Every kind of trace at hand comes back equal from Parquet: samples, and real files of others' runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from saved_checks import same_trace, same_value
from shared_files import shared_file

import torchtrt_viz as tv
from torchtrt_viz.analysis.catalogue import TABLES
from torchtrt_viz.errors import TraceFormatError
from torchtrt_viz.trace import Trace

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"

#: One or two of each kind; `test_every_file` takes all.
CHOSEN = (
    "kineto/a100_triton_cuda_driver.json.gz",
    "kineto/mi250_rocm62_minitoy.json.gz",
    "kineto/legacy_category_names_rank1.json.gz",
    "etdump/probe_layers.etdp",
    "etdump/bad_utf8_name.etdp",
    "etdump/cond_portable.etdp",
    "nsys/nsight-2025.5.2.sqlite",
    "trex/trex_samples",
    "writers/onnxruntime_profile.json",
    "flight_recorder/rank_1",
    "graphs/vllm_decode_full",
    "ranks/ddp2",
    "ranks/broken",
)


def traces(path: Path) -> Iterator[Trace]:
    loaded = tv.load(path)
    if isinstance(loaded, Trace):
        yield loaded
    else:
        yield from (trace for _, trace in loaded.traces())


def back_and_forth(trace: Trace, folder: Path, *, tables: bool) -> None:
    back = tv.load(trace.save(folder))
    same_trace(trace, back)
    for name in TABLES if tables else ():
        same_value(getattr(trace, name)(), getattr(back, name)(), name)


@pytest.mark.parametrize("name", ["eager.pt.trace.json", "demo_capture", "package", "perfetto", "trex"])
def test_samples(name: str, tmp_path: Path) -> None:
    for number, trace in enumerate(traces(SAMPLES / name)):
        back_and_forth(trace, tmp_path / str(number), tables=True)


@pytest.mark.parametrize("name", CHOSEN)
def test_one_of_each_kind(name: str, tmp_path: Path) -> None:
    found = list(traces(shared_file(f"corpus/{name}")))
    assert found
    for number, trace in enumerate(found):
        back_and_forth(trace, tmp_path / str(number), tables=number == 0)


@pytest.mark.slow  # two minutes: pytest -m slow tests/integration/test_saved_corpus.py
def test_every_file(tmp_path: Path, corpus: Path) -> None:
    count = 0
    for path in sorted(each for each in corpus.rglob("*") if each.is_file()):
        try:
            found = list(traces(path))
        except TraceFormatError:
            continue
        for trace in found:
            back_and_forth(trace, tmp_path / str(count), tables=True)
            count += 1
    assert count > 200


@pytest.mark.parametrize(
    "name", ["graphs/vllm_decode_full", "ranks/pd2x2", "flight_recorder", "ranks/broken"]
)
def test_sessions(name: str, tmp_path: Path) -> None:
    loaded = tv.load(shared_file(f"corpus/{name}"))
    back = tv.load(loaded.save(tmp_path / "saved"))
    same_value(loaded.meta, back.meta, "meta")
    if isinstance(loaded, Trace):
        return
    same_value(loaded.ranks, back.ranks, "ranks")
    for table in ("hangs", "positions", "operators", "explain"):
        made, again = getattr(loaded, table)(), getattr(back, table)()
        # what could not be read had other words for it than what was not saved for that
        assert [path for path, _ in made.attrs.pop("skipped", [])] == [
            path for path, _ in again.attrs.pop("skipped", [])
        ]
        same_value(made, again, table)
